"""Elementary functions on vectors of any width, without branches but for huge angles. BOUNDS says how exact they are.

Each name is a function (builder, names of the arguments, LLVM's scalar type, width) -> name of the result.
"""

from __future__ import annotations

from collections.abc import Callable

from ..builder import Builder
from . import combined, error, exponential, inverse_error, logarithm, trigonometric
from .vector import Formula, Vector, in_library, wide

Emit = Callable[[Builder, list[str], str, int], str]


def _emitter(single: Formula, double: Formula) -> Emit:
    """A formula for float32 and one for float64."""

    def emit(b: Builder, args: list[str], scalar: str, w: int) -> str:
        formula = single if scalar == "float" else double
        return formula(*(Vector(b, a, scalar, w) for a in args)).name

    return emit


def lanes(name: str) -> Emit:
    """A function of the C library, called for each lane."""
    return _emitter(in_library(name), in_library(name))


exp = _emitter(exponential.exp, exponential.exp)
exp_flushed = _emitter(exponential.exp_flushed, exponential.exp_flushed)
exp2 = _emitter(exponential.exp2, exponential.exp2)
expm1 = _emitter(exponential.expm1, exponential.expm1)
sigmoid = _emitter(exponential.sigmoid, exponential.sigmoid)
tanh = _emitter(exponential.tanh, exponential.tanh)
sinh = _emitter(wide(exponential.sinh), in_library("sinh"))
cosh = _emitter(wide(exponential.cosh), in_library("cosh"))
log = _emitter(logarithm.log, logarithm.log)
log2 = _emitter(logarithm.log2, logarithm.log2)
log10 = _emitter(logarithm.log10, logarithm.log10)
log1p = _emitter(logarithm.log1p, logarithm.log1p)
asinh = _emitter(wide(logarithm.asinh), in_library("asinh"))
acosh = _emitter(wide(logarithm.acosh), in_library("acosh"))
atanh = _emitter(wide(logarithm.atanh), in_library("atanh"))
power = _emitter(logarithm.power, logarithm.power)
sin = _emitter(trigonometric.sin, trigonometric.sin)
cos = _emitter(trigonometric.cos, trigonometric.cos)
tan = _emitter(trigonometric.tan, trigonometric.tan)
asin = _emitter(trigonometric.asin, in_library("asin"))
acos = _emitter(trigonometric.acos, in_library("acos"))
atan = _emitter(trigonometric.atan, in_library("atan"))
atan2 = _emitter(trigonometric.atan2, in_library("atan2"))
hypot = _emitter(wide(trigonometric.hypot), in_library("hypot"))
erf = _emitter(error.erf, error.erf)
erfc = _emitter(wide(error.erfc), in_library("erfc"))
erfinv = _emitter(wide(inverse_error.erfinv), inverse_error.erfinv)
logaddexp = _emitter(combined.logaddexp, combined.logaddexp)
floor_divide = _emitter(combined.floor_divide, combined.floor_divide)
remainder = _emitter(combined.remainder, combined.remainder)

# The largest errors, in units in the last place of the exact result, of float32 and of float64. What is missing is
# asked of the C library.
BOUNDS: dict[str, tuple[float, ...]] = {
    "exp": (1.0, 1.0),
    "exp2": (1.0, 1.0),
    "expm1": (1.5, 2.5),
    "sigmoid": (2.5, 2.5),
    "tanh": (2.5, 3.0),
    "sinh": (0.51,),
    "cosh": (0.51,),
    "log": (1.0, 1.0),
    "log2": (1.1, 1.0),
    "log10": (1.0, 1.0),
    "log1p": (1.5, 1.5),
    "asinh": (0.51,),
    "acosh": (0.51,),
    "atanh": (0.51,),
    "power": (0.51, 1.1),
    "sin": (1.6, 1.6),
    "cos": (1.6, 1.6),
    "tan": (4.0, 4.0),
    "asin": (2.0,),
    "acos": (1.5,),
    "atan": (1.75,),
    "atan2": (2.0,),
    "hypot": (0.51,),
    "erf": (2.0, 1.5),
    "erfc": (0.51,),
}
