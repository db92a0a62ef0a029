"""Arithmetic element by element, with broadcasting. Book, section 2.1.1.

Two arguments are brought to one dtype and broadcast to one shape: sizes agree from the right, or one of them is 1.
"""

from __future__ import annotations

from ..core import dtypes
from ..core.arguments import as_int
from ..core.dtypes import KIND
from ..core.primitive import Primitive
from ..core.shortcuts import of_one, of_two
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import elementwise as p
from ..primitives.creation import ones_like, zeros_like
from .conversion import as_inexact, as_real, as_result, as_tensor, convert, promote, promote_inexact, promote_kind
from .types import finfo

__all__ = [
    "abs", "absolute", "add", "ceil", "clip", "copysign", "divide", "floor", "floor_divide", "hypot", "maximum",
    "minimum", "multiply", "nan_to_num", "negative", "nextafter", "positive", "pow", "power", "reciprocal", "remainder",
    "round", "rsqrt", "sign", "signbit", "sqrt", "square", "subtract", "trunc",
]  # fmt: skip

# --- the four operations


@of_two(p.add)
def add(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 + x2; for bools, at least one true.

    >>> import wonderland as wl
    >>> wl.add(wl.ones(3), 2)
    tensor([3., 3., 3.])
    """
    x1, x2 = promote("add", x1, x2)
    if x1.dtype is dtypes.bool_:
        return p.bitwise_or(x1, x2)
    return p.add(x1, x2)


@of_two(p.subtract)
def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 - x2.

    >>> import wonderland as wl
    >>> wl.subtract(wl.tensor([5, 7]), 1)
    tensor([4, 6])
    """
    return p.subtract(*promote("subtract", x1, x2))


@of_two(p.multiply)
def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""The Hadamard product \([X \odot Y]_{ij} = X_{ij} Y_{ij}\); for bools, both true. Book, D.2.4.

    >>> import wonderland as wl
    >>> wl.multiply(wl.tensor([1.0, 2.0]), wl.tensor([3.0, 0.0]))
    tensor([3., 0.])
    """
    x1, x2 = promote("multiply", x1, x2)
    if x1.dtype is dtypes.bool_:
        return p.bitwise_and(x1, x2)
    return p.multiply(x1, x2)


@of_two(p.divide)
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 / x2; integers become floating first.

    >>> import wonderland as wl
    >>> wl.divide(wl.tensor([1, 3]), 2)
    tensor([0.5, 1.5])
    """
    return p.divide(*promote_inexact("divide", x1, x2))


@of_two(p.floor_divide)
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(\lfloor x_1 / x_2 \rfloor\); derivative zero.

    >>> import wonderland as wl
    >>> wl.floor_divide(wl.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    return p.floor_divide(*promote_kind("floor_divide", p.NUMERIC, x1, x2))


@of_two(p.remainder)
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(x_1 - \lfloor x_1 / x_2 \rfloor x_2\): the sign is that of x2.

    >>> import wonderland as wl
    >>> wl.remainder(wl.tensor([7, -7]), 3)
    tensor([1, 2])
    """
    return p.remainder(*promote_kind("remainder", p.NUMERIC, x1, x2))


# --- powers and roots


@of_two(p.power)
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(x_1^{x_2}\). Book, section 2.2.1.

    >>> import wonderland as wl
    >>> print(wl.grad(lambda x: x**2)(0.0), wl.grad(lambda x: x**0)(0.0))
    tensor(0.) tensor(0.)

    At x1 = 0 the derivative with respect to x1 is that of the polynomial for exponents 0, 1, 2, ...; the
    derivative with respect to the exponent is 0 there.
    """
    if type(x2) is int and x2 == 2 and isinstance(x1, Tensor) and x1.dtype is not dtypes.bool_:
        return square(x1)
    return p.power(*promote_kind("pow", p.NUMERIC, x1, x2))


power = pow


@of_one(p.square)
def square(x: ArrayLike, /) -> Tensor:
    r"""\(x^2\).

    >>> import wonderland as wl
    >>> wl.square(wl.tensor([-3, 2]))
    tensor([9, 4])
    """
    x = as_tensor("square", x)
    p.check_kind("square", p.NUMERIC, x)
    return p.square(x)


@of_one(p.sqrt)
def sqrt(x: ArrayLike, /) -> Tensor:
    r"""\(\sqrt{x}\); NaN for negative numbers, and the derivative \(1/(2\sqrt x)\) is infinite at 0.

    >>> import wonderland as wl
    >>> wl.sqrt(wl.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """
    return p.sqrt(as_inexact("sqrt", x))


def rsqrt(x: ArrayLike, /) -> Tensor:
    r"""\(1/\sqrt{x}\).

    >>> import wonderland as wl
    >>> wl.rsqrt(wl.tensor([4.0, 16.0]))
    tensor([0.5 , 0.25])
    """
    return reciprocal(p.sqrt(as_inexact("rsqrt", x)))


def reciprocal(x: ArrayLike, /) -> Tensor:
    r"""\(1/x\).

    >>> import wonderland as wl
    >>> wl.reciprocal(wl.tensor([2.0, 4.0]))
    tensor([0.5 , 0.25])
    """
    x = as_inexact("reciprocal", x)
    return p.divide(ones_like(x), x)


@of_two(p.hypot)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(\sqrt{x_1^2 + x_2^2}\) without overflow; the derivative at the origin is 0.

    >>> import wonderland as wl
    >>> wl.hypot(wl.tensor([3.0]), 4.0)
    tensor([5.])
    """
    return p.hypot(*promote_inexact("hypot", x1, x2))


# --- signs and sizes


@of_one(p.negative)
def negative(x: ArrayLike, /) -> Tensor:
    """-x.

    >>> import wonderland as wl
    >>> wl.negative(wl.tensor([1, -2]))
    tensor([-1,  2])
    """
    return p.negative(as_tensor("negative", x))


def positive(x: ArrayLike, /) -> Tensor:
    """x itself.

    >>> import wonderland as wl
    >>> wl.positive(wl.tensor([1, -2]))
    tensor([ 1, -2])
    """
    return as_result(as_tensor("positive", x))


@of_one(p.abs_)
def abs(x: ArrayLike, /) -> Tensor:
    r"""\(|x|\), for complex numbers the modulus. The derivative at 0 is 0. Book, section 6.4.4.

    >>> import wonderland as wl
    >>> wl.abs(wl.tensor([-1.5, 2.0])), wl.abs(wl.tensor(3 + 4j))
    (tensor([1.5, 2. ]), tensor(5.))
    """
    x = as_tensor("abs", x)
    return as_result(x) if x.dtype is dtypes.bool_ else p.abs_(x)


absolute = abs


@of_one(p.sign)
def sign(x: ArrayLike, /) -> Tensor:
    r"""-1, 0 or 1, with derivative zero; for complex numbers \(x / |x|\), and 0 at 0.

    >>> import wonderland as wl
    >>> wl.sign(wl.tensor([-2.0, 0.0, 5.0]))
    tensor([-1.,  0.,  1.])
    """
    return p.sign(as_tensor("sign", x))


@of_one(p.signbit)
def signbit(x: ArrayLike, /) -> Tensor:
    """Whether the sign bit is set: true for negative numbers and for -0.0.

    >>> import wonderland as wl
    >>> wl.signbit(wl.tensor([-1.0, -0.0, 0.0]))
    tensor([ True,  True, False])
    """
    return p.signbit(as_real("signbit", x))


@of_two(p.copysign)
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The size of x1 with the sign of x2.

    >>> import wonderland as wl
    >>> wl.copysign(wl.tensor([1.0, 2.0]), wl.tensor([-3.0, 0.5]))
    tensor([-1.,  2.])
    """
    return p.copysign(*promote_inexact("copysign", x1, x2))


@of_two(p.nextafter)
def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The next floating-point number after x1 towards x2.

    >>> import wonderland as wl
    >>> wl.nextafter(wl.tensor(1.0), 2.0) - 1 == wl.finfo(wl.float32).eps
    tensor(True)
    """
    return p.nextafter(*promote_inexact("nextafter", x1, x2))


# --- rounding


def _rounding(name: str, primitive: Primitive, x: ArrayLike) -> Tensor:
    x = as_tensor(name, x)
    p.check_kind(name, p.NUMERIC, x)
    return as_result(x) if x.dtype.kind in "iu" else primitive(x)


def floor(x: ArrayLike, /) -> Tensor:
    """The largest integer not above x; derivative zero.

    >>> import wonderland as wl
    >>> wl.floor(wl.tensor([1.5, -1.5]))
    tensor([ 1., -2.])
    """
    return _rounding("floor", p.floor, x)


def ceil(x: ArrayLike, /) -> Tensor:
    """The smallest integer not below x; derivative zero.

    >>> import wonderland as wl
    >>> wl.ceil(wl.tensor([1.5, -1.5]))
    tensor([ 2., -1.])
    """
    return _rounding("ceil", p.ceil, x)


def trunc(x: ArrayLike, /) -> Tensor:
    """x without its fraction; derivative zero.

    >>> import wonderland as wl
    >>> wl.trunc(wl.tensor([1.5, -1.5]))
    tensor([ 1., -1.])
    """
    return _rounding("trunc", p.trunc, x)


def round(x: ArrayLike, /, decimals: int = 0) -> Tensor:
    """The nearest integer, or the nearest number with so many decimals; halves to even; derivative zero.

    >>> import wonderland as wl
    >>> wl.round(wl.tensor([0.5, 1.5, 2.4])), wl.round(wl.tensor([0.126, 12.0]), 2), wl.round(wl.tensor([14, 26]), -1)
    (tensor([0., 2., 2.]), tensor([ 0.13, 12.  ]), tensor([10, 30]))
    """
    if decimals == 0:
        return _rounding("round", p.round_, x)
    decimals, x = as_int("round", "decimals", decimals), as_tensor("round", x)
    p.check_kind("round", p.NUMERIC, x)
    if x.dtype.kind in "iu":
        if decimals > 0:
            return as_result(x)
        return convert(round(convert(x, dtypes.float64), decimals), x.dtype)
    scale = convert(10.0 ** min(decimals if decimals > 0 else -decimals, 308), x.dtype)
    scaled = p.multiply(x, scale) if decimals > 0 else p.divide(x, scale)
    found = p.divide(p.round_(scaled), scale) if decimals > 0 else p.multiply(p.round_(scaled), scale)
    return p.where(p.isfinite(scaled), found, x)  # what is too large to be scaled has no decimals


# --- the larger and the smaller


@of_two(p.maximum)
def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The larger of two, NaN if one is NaN; equal arguments share the derivative.

    >>> import wonderland as wl
    >>> wl.maximum(wl.tensor([1.0, 5.0]), 3.0)
    tensor([3., 5.])
    """
    return p.maximum(*promote_kind("maximum", p.REAL, x1, x2))


@of_two(p.minimum)
def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The smaller of two, NaN if one is NaN; equal arguments share the derivative.

    >>> import wonderland as wl
    >>> wl.minimum(wl.tensor([1.0, 5.0]), 3.0)
    tensor([1., 3.])
    """
    return p.minimum(*promote_kind("minimum", p.REAL, x1, x2))


def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """x limited to [min, max]; either may be None. The derivative is 1 inside (ends included), 0 outside.

    >>> import wonderland as wl
    >>> wl.clip(wl.tensor([-1.0, 0.5, 3.0]), 0.0, 1.0)
    tensor([0. , 0.5, 1. ])
    """
    out = as_tensor("clip", x)
    for bound, outside in ((min, p.less), (max, p.greater)):
        if bound is None:
            continue
        wide, limit = promote("clip", out, bound)
        if KIND[wide.dtype] > KIND[out.dtype]:
            out = wide  # integers limited by fractions become fractions
        limit = convert(limit, out.dtype)
        out = p.where(outside(out, limit), limit, out)
    return as_result(out) if min is None and max is None else out


def nan_to_num(x: ArrayLike, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with NaN replaced by `nan` and infinities by the given numbers, or by the largest finite ones.

    >>> import math, wonderland as wl
    >>> wl.nan_to_num(wl.tensor([math.nan, 1.0, math.inf]), posinf=9.0)
    tensor([0., 1., 9.])

    No derivative passes where an element was replaced.
    """
    x = as_real("nan_to_num", x)
    limits = finfo(x.dtype)
    infinite = p.isinf(x)
    above = p.greater(x, zeros_like(x))
    high = convert(limits.max if posinf is None else posinf, x.dtype)
    low = convert(limits.min if neginf is None else neginf, x.dtype)
    finite = p.where(infinite, p.where(above, high, low), x)
    return p.where(p.isnan(finite), convert(nan, x.dtype), finite)
