"""Functions that act element by element, with broadcasting. Book, section 2.1.1."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..dtypes import is_complex, is_integer
from ..errors import DTypeError
from ..interpreter import bind
from ..primitives import elementwise as p
from ..primitives.creation import full_like, zeros_like
from ..tensor import Tensor
from .conversion import as_inexact, as_tensor, convert, promote, promote_inexact

# --- arithmetic


def add(x1: Any, x2: Any, /) -> Tensor:
    """x1 + x2.

    >>> import wonderland as wl
    >>> wl.add(wl.ones(3), 2)
    tensor([3., 3., 3.])
    """
    if not (isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype):
        x1, x2 = promote("add", x1, x2)
    if x1.dtype is dtypes.bool_:
        return p.bitwise_or(x1, x2)
    return bind(p.add, x1, x2)


def subtract(x1: Any, x2: Any, /) -> Tensor:
    """x1 - x2."""
    if not (isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype):
        x1, x2 = promote("subtract", x1, x2)
    return bind(p.subtract, x1, x2)


def multiply(x1: Any, x2: Any, /) -> Tensor:
    """x1 * x2, element by element: the Hadamard product. Book, D.2.4."""
    if not (isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype):
        x1, x2 = promote("multiply", x1, x2)
    if x1.dtype is dtypes.bool_:
        return p.bitwise_and(x1, x2)
    return bind(p.multiply, x1, x2)


def divide(x1: Any, x2: Any, /) -> Tensor:
    """x1 / x2; integers become floating first."""
    if not (isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype and dtypes.is_inexact(x1.dtype)):
        x1, x2 = promote_inexact("divide", x1, x2)
    return bind(p.divide, x1, x2)


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """The largest integer not above x1 / x2; derivative zero."""
    return p.floor_divide(*promote("floor_divide", x1, x2))


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """x1 - floor(x1 / x2) * x2: the sign is that of x2."""
    return p.remainder(*promote("remainder", x1, x2))


def pow(x1: Any, x2: Any, /) -> Tensor:
    r"""\(x_1^{x_2}\). At x1 = 0 the derivative with respect to x1 is that of the polynomial for exponents 0, 1, 2, ...;
    the derivative with respect to the exponent is 0 there.

    >>> import wonderland as wl
    >>> print(wl.grad(lambda x: x**2)(0.0), wl.grad(lambda x: x**0)(0.0))
    tensor(0.) tensor(0.)
    """
    if type(x2) is int and isinstance(x1, Tensor) and x1.dtype.kind != "b":
        if x2 == 2:
            return p.square(x1)
    a, b = promote("pow", x1, x2)
    return p.power(a, b)


power = pow


def negative(x: Any, /) -> Tensor:
    """-x."""
    return p.negative(as_tensor("negative", x))


def positive(x: Any, /) -> Tensor:
    """x itself."""
    return as_tensor("positive", x)


def abs(x: Any, /) -> Tensor:
    r"""\(|x|\), for complex numbers the modulus. The derivative at 0 is 0."""
    x = as_tensor("abs", x)
    return x if x.dtype is dtypes.bool_ else p.abs_(x)


absolute = abs


def sign(x: Any, /) -> Tensor:
    """-1, 0 or 1; x / |x| for complex numbers. Derivative zero."""
    return p.sign(as_tensor("sign", x))


def square(x: Any, /) -> Tensor:
    r"""\(x^2\)."""
    return p.square(as_tensor("square", x))


def reciprocal(x: Any, /) -> Tensor:
    r"""\(1/x\)."""
    return 1 / as_inexact("reciprocal", x)


def sqrt(x: Any, /) -> Tensor:
    r"""\(\sqrt{x}\); NaN for negative numbers, and the derivative at 0 is infinite."""
    return p.sqrt(as_inexact("sqrt", x))


def rsqrt(x: Any, /) -> Tensor:
    r"""\(1/\sqrt{x}\)."""
    return 1 / p.sqrt(as_inexact("rsqrt", x))


# --- exponentials and logarithms


def exp(x: Any, /) -> Tensor:
    r"""\(e^x\), element by element (the matrix exponential is `wl.linalg.matrix_exp`)."""
    return p.exp(as_inexact("exp", x))


def exp2(x: Any, /) -> Tensor:
    r"""\(2^x\)."""
    x = as_inexact("exp2", x)
    return p.power(full_like(x, 2), x)


def expm1(x: Any, /) -> Tensor:
    r"""\(e^x - 1\), exact for small x."""
    return p.expm1(as_inexact("expm1", x))


def log(x: Any, /) -> Tensor:
    r"""\(\ln x\)."""
    return p.log(as_inexact("log", x))


def log1p(x: Any, /) -> Tensor:
    r"""\(\ln(1 + x)\), exact for small x."""
    return p.log1p(as_inexact("log1p", x))


def log2(x: Any, /) -> Tensor:
    r"""\(\log_2 x\)."""
    return p.log2(as_inexact("log2", x))


def log10(x: Any, /) -> Tensor:
    r"""\(\log_{10} x\)."""
    return p.log10(as_inexact("log10", x))


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    r"""\(\ln(e^{x_1} + e^{x_2})\) without overflow."""
    return p.logaddexp(*promote_inexact("logaddexp", x1, x2))


# --- trigonometric and hyperbolic


def sin(x: Any, /) -> Tensor:
    """The sine."""
    return p.sin(as_inexact("sin", x))


def cos(x: Any, /) -> Tensor:
    """The cosine."""
    return p.cos(as_inexact("cos", x))


def tan(x: Any, /) -> Tensor:
    """The tangent."""
    return p.tan(as_inexact("tan", x))


def asin(x: Any, /) -> Tensor:
    """The angle with sine x, in [-pi/2, pi/2]."""
    return p.asin(as_inexact("asin", x))


def acos(x: Any, /) -> Tensor:
    """The angle with cosine x, in [0, pi]."""
    return p.acos(as_inexact("acos", x))


def atan(x: Any, /) -> Tensor:
    """The angle with tangent x, in [-pi/2, pi/2]."""
    return p.atan(as_inexact("atan", x))


def atan2(x1: Any, x2: Any, /) -> Tensor:
    """The angle of the point (x2, x1), in [-pi, pi]."""
    return p.atan2(*promote_inexact("atan2", x1, x2))


def sinh(x: Any, /) -> Tensor:
    """The hyperbolic sine."""
    return p.sinh(as_inexact("sinh", x))


def cosh(x: Any, /) -> Tensor:
    """The hyperbolic cosine."""
    return p.cosh(as_inexact("cosh", x))


def tanh(x: Any, /) -> Tensor:
    """The hyperbolic tangent."""
    return p.tanh(as_inexact("tanh", x))


def asinh(x: Any, /) -> Tensor:
    """The inverse of sinh."""
    return p.asinh(as_inexact("asinh", x))


def acosh(x: Any, /) -> Tensor:
    """The inverse of cosh."""
    return p.acosh(as_inexact("acosh", x))


def atanh(x: Any, /) -> Tensor:
    """The inverse of tanh."""
    return p.atanh(as_inexact("atanh", x))


def hypot(x1: Any, x2: Any, /) -> Tensor:
    r"""\(\sqrt{x_1^2 + x_2^2}\) without overflow; the derivative at the origin is 0."""
    return p.hypot(*promote_inexact("hypot", x1, x2))


# --- special


def erf(x: Any, /) -> Tensor:
    r"""The error function \(\frac{2}{\sqrt\pi}\int_0^x e^{-t^2}\,dt\)."""
    return p.erf(as_inexact("erf", x))


def erfc(x: Any, /) -> Tensor:
    """1 - erf(x), exact for large x."""
    return p.erfc(as_inexact("erfc", x))


def erfinv(x: Any, /) -> Tensor:
    """The inverse of erf, on [-1, 1]."""
    return p.erfinv(as_inexact("erfinv", x))


# --- rounding and comparison of sizes


def _rounding(name: str, primitive: Any, x: Any) -> Tensor:
    x = as_tensor(name, x)
    if x.dtype.kind in "iu":
        return x  # type: ignore[no-any-return]
    return primitive(x)  # type: ignore[no-any-return]


def floor(x: Any, /) -> Tensor:
    """The largest integer not above x; derivative zero."""
    return _rounding("floor", p.floor, x)


def ceil(x: Any, /) -> Tensor:
    """The smallest integer not below x; derivative zero."""
    return _rounding("ceil", p.ceil, x)


def trunc(x: Any, /) -> Tensor:
    """x without its fraction; derivative zero."""
    return _rounding("trunc", p.trunc, x)


def round(x: Any, /) -> Tensor:
    """The nearest integer, halves to even; derivative zero."""
    return _rounding("round", p.round_, x)


def maximum(x1: Any, x2: Any, /) -> Tensor:
    """The larger of two; equal arguments share the derivative."""
    return p.maximum(*promote("maximum", x1, x2))


def minimum(x1: Any, x2: Any, /) -> Tensor:
    """The smaller of two; equal arguments share the derivative."""
    return p.minimum(*promote("minimum", x1, x2))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """x limited to [min, max]; either may be None. The derivative is 1 from min to max (both included), 0 outside."""
    x = as_tensor("clip", x)
    for bound, outside in ((min, p.less), (max, p.greater)):
        if bound is not None:
            limit = convert(promote("clip", x, bound)[1], x.dtype)
            x = p.where(outside(x, limit), limit, x)
    return x


def copysign(x1: Any, x2: Any, /) -> Tensor:
    """The size of x1 with the sign of x2."""
    return p.copysign(*promote_inexact("copysign", x1, x2))


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next floating-point number after x1 towards x2."""
    return p.nextafter(*promote_inexact("nextafter", x1, x2))


def signbit(x: Any, /) -> Tensor:
    """Whether the sign bit is set."""
    return p.signbit(as_inexact("signbit", x))


# --- complex


def real(x: Any, /) -> Tensor:
    """The real part."""
    x = as_tensor("real", x)
    return p.real(x) if is_complex(x.dtype) else x


def imag(x: Any, /) -> Tensor:
    """The imaginary part; zero for real tensors."""
    x = as_tensor("imag", x)
    return p.imag(x) if is_complex(x.dtype) else zeros_like(x)


def conj(x: Any, /) -> Tensor:
    """The complex conjugate."""
    x = as_tensor("conj", x)
    return p.conj(x) if is_complex(x.dtype) else x


def angle(x: Any, /) -> Tensor:
    """The argument of a complex number, in [-pi, pi]."""
    x = as_inexact("angle", x)
    return p.atan2(imag(x), real(x))


def complex(real: Any, imag: Any, /) -> Tensor:
    """real + i imag."""
    return p.complex_(*promote_inexact("complex", real, imag))


# --- comparisons and logic


def equal(x1: Any, x2: Any, /) -> Tensor:
    """x1 == x2, element by element."""
    return p.equal(*promote("equal", x1, x2))


def not_equal(x1: Any, x2: Any, /) -> Tensor:
    """x1 != x2."""
    return p.not_equal(*promote("not_equal", x1, x2))


def less(x1: Any, x2: Any, /) -> Tensor:
    """x1 < x2."""
    return p.less(*promote("less", x1, x2))


def less_equal(x1: Any, x2: Any, /) -> Tensor:
    """x1 <= x2."""
    return p.less_equal(*promote("less_equal", x1, x2))


def greater(x1: Any, x2: Any, /) -> Tensor:
    """x1 > x2."""
    return p.greater(*promote("greater", x1, x2))


def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    """x1 >= x2."""
    return p.greater_equal(*promote("greater_equal", x1, x2))


def isfinite(x: Any, /) -> Tensor:
    """Neither NaN nor infinite."""
    return p.isfinite(as_tensor("isfinite", x))


def isinf(x: Any, /) -> Tensor:
    """Infinite."""
    return p.isinf(as_tensor("isinf", x))


def isnan(x: Any, /) -> Tensor:
    """Not a number."""
    return p.isnan(as_tensor("isnan", x))


def _boolean(x: Any, name: str) -> Any:
    x = as_tensor(name, x)
    return x if x.dtype is dtypes.bool_ else p.not_equal(x, zeros_like(x))


def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Both true (numbers are true when not zero)."""
    return p.bitwise_and(_boolean(x1, "logical_and"), _boolean(x2, "logical_and"))


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """At least one true."""
    return p.bitwise_or(_boolean(x1, "logical_or"), _boolean(x2, "logical_or"))


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Exactly one true."""
    return p.bitwise_xor(_boolean(x1, "logical_xor"), _boolean(x2, "logical_xor"))


def logical_not(x: Any, /) -> Tensor:
    """Not true."""
    return p.bitwise_invert(_boolean(x, "logical_not"))


# --- bits


def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    """The bits set in both."""
    return p.bitwise_and(*promote("bitwise_and", x1, x2))


def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    """The bits set in either."""
    return p.bitwise_or(*promote("bitwise_or", x1, x2))


def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    """The bits set in exactly one."""
    return p.bitwise_xor(*promote("bitwise_xor", x1, x2))


def bitwise_invert(x: Any, /) -> Tensor:
    """Every bit flipped; logical not for bool."""
    return p.bitwise_invert(as_tensor("bitwise_invert", x))


def _shift(name: str, primitive: Any, x1: Any, x2: Any) -> Tensor:
    a, b = promote(name, x1, x2)
    if not is_integer(a.dtype):
        raise DTypeError(f"{name}: takes integer tensors, received {a.dtype}.", "x.astype(wl.int64)")
    return primitive(a, b)  # type: ignore[no-any-return]


def bitwise_left_shift(x1: Any, x2: Any, /) -> Tensor:
    """x1 shifted left by x2 bits."""
    return _shift("bitwise_left_shift", p.bitwise_left_shift, x1, x2)


def bitwise_right_shift(x1: Any, x2: Any, /) -> Tensor:
    """x1 shifted right by x2 bits."""
    return _shift("bitwise_right_shift", p.bitwise_right_shift, x1, x2)


# --- choice


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition holds, x2 elsewhere; the derivative goes to the one that was chosen.

    >>> import wonderland as wl
    >>> wl.where(wl.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    a, b = promote("where", x1, x2)
    return p.where(_boolean(condition, "where"), a, b)

