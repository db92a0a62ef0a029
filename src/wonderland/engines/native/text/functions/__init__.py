"""Elementary functions on vectors of any width, without branches but for huge angles. Each says how exact it is.

Called with (builder, names of the arguments, LLVM's scalar type, width) it writes its text, and returns the name of
the result.
"""

from __future__ import annotations

from typing import NamedTuple

from ..builder import Builder
from . import combined, error, exponential, inverse_error, logarithm, trigonometric, vector
from .vector import Formula, Vector, in_library, wide


class Function(NamedTuple):
    """A formula for float32 and one for float64, and how exact they are."""

    single: Formula
    double: Formula
    # the largest errors in units in the last place of the exact result, of float32 and of float64; what is not said is
    # the C library's
    ulps: tuple[float, ...] = ()

    def __call__(self, b: Builder, args: list[str], scalar: str, w: int) -> str:
        formula = self.single if scalar == "float" else self.double
        return formula(*(Vector(b, a, scalar, w) for a in args)).name


exp = Function(exponential.exp, exponential.exp, ulps=(1.0, 1.0))
exp_flushed = Function(exponential.exp_flushed, exponential.exp_flushed)
exp2 = Function(exponential.exp2, exponential.exp2, ulps=(1.0, 1.0))
expm1 = Function(exponential.expm1, exponential.expm1, ulps=(1.5, 2.5))
sigmoid = Function(exponential.sigmoid, exponential.sigmoid, ulps=(2.5, 2.5))
tanh = Function(exponential.tanh, exponential.tanh, ulps=(2.5, 3.0))
sinh = Function(wide(exponential.sinh), in_library("sinh"), ulps=(0.51,))
cosh = Function(wide(exponential.cosh), in_library("cosh"), ulps=(0.51,))
log = Function(logarithm.log, logarithm.log, ulps=(1.0, 1.0))
log2 = Function(logarithm.log2, logarithm.log2, ulps=(1.1, 1.0))
log10 = Function(logarithm.log10, logarithm.log10, ulps=(1.0, 1.0))
log1p = Function(logarithm.log1p, logarithm.log1p, ulps=(1.5, 1.5))
asinh = Function(wide(logarithm.asinh), in_library("asinh"), ulps=(0.51,))
acosh = Function(wide(logarithm.acosh), in_library("acosh"), ulps=(0.51,))
atanh = Function(wide(logarithm.atanh), in_library("atanh"), ulps=(0.51,))
power = Function(logarithm.power, logarithm.power, ulps=(0.51, 1.1))
sin = Function(trigonometric.sin, trigonometric.sin, ulps=(1.6, 1.6))
cos = Function(trigonometric.cos, trigonometric.cos, ulps=(1.6, 1.6))
tan = Function(trigonometric.tan, trigonometric.tan, ulps=(4.0, 4.0))
asin = Function(trigonometric.asin, in_library("asin"), ulps=(2.0,))
acos = Function(trigonometric.acos, in_library("acos"), ulps=(1.5,))
atan = Function(trigonometric.atan, in_library("atan"), ulps=(1.75,))
atan2 = Function(trigonometric.atan2, in_library("atan2"), ulps=(2.0,))
hypot = Function(wide(trigonometric.hypot), in_library("hypot"), ulps=(0.51,))
erf = Function(error.erf, error.erf, ulps=(2.0, 1.5))
erfc = Function(wide(error.erfc), in_library("erfc"), ulps=(0.51,))
erfinv = Function(wide(inverse_error.erfinv), inverse_error.erfinv)
logaddexp = Function(combined.logaddexp, combined.logaddexp)
copysign = Function(vector.copysign, vector.copysign)
floor_divide = Function(combined.floor_divide, combined.floor_divide)
remainder = Function(combined.remainder, combined.remainder)

BOUNDS = {name: found.ulps for name, found in globals().items() if isinstance(found, Function) and found.ulps}
