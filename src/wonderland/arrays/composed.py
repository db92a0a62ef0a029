"""Elementwise functions that are short formulas over others: angles, steps, remainders, choices, and NumPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.arguments import as_list
from ..core.dtypes import is_complex
from ..core.errors import InputError
from ..core.primitive import Primitive
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import elementwise as p
from ..primitives import roots
from ..primitives.creation import full, ones_like, zeros_like
from .arithmetic import abs as abs_
from .arithmetic import divide, pow, remainder
from .complexes import conj, imag
from .conversion import as_inexact, as_real, as_tensor, promote, promote_inexact, promote_kind
from .logic import as_bool, bitwise_invert, bitwise_left_shift, bitwise_right_shift, where
from .transcendental import acos, acosh, asin, asinh, atan, atan2, atanh

__all__ = [
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "conjugate", "deg2rad", "degrees",
    "fabs", "float_power", "fmod", "heaviside", "invert", "iscomplex", "isneginf", "isposinf", "isreal", "left_shift",
    "logaddexp2", "mod", "rad2deg", "radians", "right_shift", "rint", "select", "sinc", "true_divide",
]  # fmt: skip

arccos, arccosh, arcsin, arcsinh = acos, acosh, asin, asinh
arctan, arctan2, arctanh = atan, atan2, atanh
conjugate, invert, left_shift, right_shift = conj, bitwise_invert, bitwise_left_shift, bitwise_right_shift
mod, true_divide = remainder, divide


def fabs(x: ArrayLike, /) -> Tensor:
    """The absolute value as a floating tensor.

    >>> import wonderland as wl
    >>> wl.fabs(wl.tensor([-1, 2]))
    tensor([1., 2.])
    """
    return abs_(as_real("fabs", x))


def rint(x: ArrayLike, /) -> Tensor:
    """The nearest integer, halves to even, as a floating tensor; derivative zero.

    >>> import wonderland as wl
    >>> wl.rint(wl.tensor([0.5, 1.7]))
    tensor([0., 2.])
    """
    return p.round_(as_inexact("rint", x))


# --- angles


def deg2rad(x: ArrayLike, /) -> Tensor:
    r"""Degrees in radians: \(\pi x / 180\).

    >>> import wonderland as wl
    >>> wl.deg2rad(wl.tensor([180.0]))
    tensor([3.1415927])
    """
    return as_real("deg2rad", x) * (math.pi / 180)


def rad2deg(x: ArrayLike, /) -> Tensor:
    r"""Radians in degrees: \(180 x / \pi\).

    >>> import wonderland as wl
    >>> wl.rad2deg(wl.tensor([wl.pi]))
    tensor([180.])
    """
    return as_real("rad2deg", x) * (180 / math.pi)


radians, degrees = deg2rad, rad2deg


def sinc(x: ArrayLike, /) -> Tensor:
    r"""\(\sin(\pi x)/(\pi x)\), and 1 at 0; all derivatives are exact there, too.

    >>> import wonderland as wl
    >>> wl.sinc(wl.tensor([0.0, 0.5]))
    tensor([1.       , 0.6366197])
    """
    z = as_inexact("sinc", x) * math.pi
    near = p.less(abs_(z), full((), 1, abs_(z).dtype))
    # the series of sin(z)/z in the square of z
    w = p.square(where(near, z, 0.0))
    series = ones_like(w)
    for k in range(11, 0, -1):
        series = 1 - series * w / (2 * k * (2 * k + 1))
    far = where(near, 1.0, z)
    return where(near, series, p.sin(far) / far)


# --- powers, remainders and logarithms


def cbrt(x: ArrayLike, /) -> Tensor:
    r"""\(\sqrt[3]{x}\), also of negative numbers; the derivative is infinite at 0.

    >>> import wonderland as wl
    >>> wl.cbrt(wl.tensor([-8.0, 27.0]))
    tensor([-2.,  3.])
    """
    return roots.cbrt(as_real("cbrt", x))


def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(x_1^{x_2}\) in a floating type, also for integers: negative exponents are allowed.

    >>> import wonderland as wl
    >>> wl.float_power(wl.tensor([2, 4]), -1)
    tensor([0.5 , 0.25])
    """
    return pow(*promote_inexact("float_power", x1, x2))


def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(x_1 - \operatorname{trunc}(x_1/x_2)\,x_2\): the sign is that of x1, where `remainder` has that of x2.

    >>> import wonderland as wl
    >>> wl.fmod(wl.tensor([7, -7]), 3)
    tensor([ 1, -1])
    """
    x, y = promote_kind("fmod", p.REAL_NUMERIC, x1, x2)
    rest = p.remainder(abs_(x), abs_(y))
    return p.where(p.less(x, zeros_like(x)), -rest, rest)


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(\log_2(2^{x_1} + 2^{x_2})\) without overflow.

    >>> import wonderland as wl
    >>> print(wl.logaddexp2(1000.0, 1000.0))
    tensor(1001.)
    """
    x, y = promote_kind("logaddexp2", p.FLOATING, *promote_inexact("logaddexp2", x1, x2))
    return p.logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)


# --- steps and choices


def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """0 for negative x1, 1 for positive x1, and x2 where x1 is 0.

    >>> import wonderland as wl
    >>> wl.heaviside(wl.tensor([-1.5, 0.0, 2.0]), 0.5)
    tensor([0. , 0.5, 1. ])
    """
    x, y = promote_kind("heaviside", p.FLOATING, *promote_inexact("heaviside", x1, x2))
    step = p.where(p.greater(x, zeros_like(x)), ones_like(x), zeros_like(x))
    return where(p.isnan(x), x, where(x == 0, y, step))


def select(conditions: Sequence[ArrayLike], choices: Sequence[ArrayLike], /, default: ArrayLike = 0) -> Tensor:
    """Of each place the choice whose condition is the first to hold; the default where none does.

    >>> import wonderland as wl
    >>> x = wl.arange(5)
    >>> wl.select([x < 2, x > 3], [x, x * 10], -1)
    tensor([ 0,  1, -1, -1, 40])
    """
    tests, values = as_list("select", "conditions", conditions), as_list("select", "choices", choices)
    if len(tests) != len(values) or not tests:
        raise InputError(f"select: {len(tests)} conditions and {len(values)} choices.", "one choice per condition")
    *values, found = promote("select", *values, default)
    for test, value in zip(reversed(tests), reversed(values), strict=True):
        found = p.where(as_bool("select", test), value, found)
    return found


# --- predicates


def _infinite(name: str, x: ArrayLike, sign: Primitive) -> Tensor:
    x = as_real(name, x)
    return p.bitwise_and(p.isinf(x), sign(x, zeros_like(x)))


def isposinf(x: ArrayLike, /) -> Tensor:
    """Plus infinity.

    >>> import wonderland as wl
    >>> wl.isposinf(wl.tensor([wl.inf, -wl.inf, 1.0]))
    tensor([ True, False, False])
    """
    return _infinite("isposinf", x, p.greater)


def isneginf(x: ArrayLike, /) -> Tensor:
    """Minus infinity.

    >>> import wonderland as wl
    >>> wl.isneginf(wl.tensor([wl.inf, -wl.inf, 1.0]))
    tensor([False,  True, False])
    """
    return _infinite("isneginf", x, p.less)


def iscomplex(x: ArrayLike, /) -> Tensor:
    """Whether the imaginary part is not 0.

    >>> import wonderland as wl
    >>> wl.iscomplex(wl.tensor([1 + 1j, 1 + 0j]))
    tensor([ True, False])
    """
    x = as_tensor("iscomplex", x)
    return imag(x) != 0 if is_complex(x.dtype) else full(x.shape, False, p.bool_)


def isreal(x: ArrayLike, /) -> Tensor:
    """Whether the imaginary part is 0.

    >>> import wonderland as wl
    >>> wl.isreal(wl.tensor([1 + 1j, 1 + 0j]))
    tensor([False,  True])
    """
    return ~iscomplex(x)
