"""Exponentials, logarithms, trigonometric and hyperbolic functions and erf, element by element."""

from __future__ import annotations

from ..core.shortcuts import of_one, of_two
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import elementwise as p
from ..primitives.creation import full_like
from .conversion import as_inexact, as_real, promote_inexact

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "log", "log10", "log1p", "log2", "logaddexp", "sin", "sinh", "tan", "tanh",
]  # fmt: skip

# --- exponentials and logarithms


@of_one(p.exp)
def exp(x: ArrayLike, /) -> Tensor:
    r"""\(e^x\), element by element: \([\exp X]_{ij} = e^{X_{ij}}\). Book, E.2.6.

    >>> import wonderland as wl
    >>> print(wl.exp(1.0))
    tensor(2.71828)

    The matrix exponential (E.2.7) is `wl.linalg.matrix_exp`.
    """
    return p.exp(as_inexact("exp", x))


def exp2(x: ArrayLike, /) -> Tensor:
    r"""\(2^x\).

    >>> import wonderland as wl
    >>> wl.exp2(wl.tensor([3, -1]))
    tensor([8. , 0.5])
    """
    x = as_inexact("exp2", x)
    return p.power(full_like(x, 2), x)


@of_one(p.expm1)
def expm1(x: ArrayLike, /) -> Tensor:
    r"""\(e^x - 1\), exact for small x.

    >>> import wonderland as wl
    >>> print(wl.expm1(1e-10))
    tensor(1.e-10)
    """
    return p.expm1(as_inexact("expm1", x))


@of_one(p.log)
def log(x: ArrayLike, /) -> Tensor:
    r"""\(\ln x\).

    >>> import wonderland as wl
    >>> print(wl.log(10.0))
    tensor(2.30258)
    """
    return p.log(as_inexact("log", x))


@of_one(p.log1p)
def log1p(x: ArrayLike, /) -> Tensor:
    r"""\(\ln(1 + x)\), exact for small x.

    >>> import wonderland as wl
    >>> print(wl.log1p(1e-10))
    tensor(1.e-10)
    """
    return p.log1p(as_inexact("log1p", x))


@of_one(p.log2)
def log2(x: ArrayLike, /) -> Tensor:
    r"""\(\log_2 x\).

    >>> import wonderland as wl
    >>> wl.log2(wl.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    return p.log2(as_inexact("log2", x))


@of_one(p.log10)
def log10(x: ArrayLike, /) -> Tensor:
    r"""\(\log_{10} x\).

    >>> import wonderland as wl
    >>> print(wl.log10(1000.0))
    tensor(3.)
    """
    return p.log10(as_inexact("log10", x))


@of_two(p.logaddexp)
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(\ln(e^{x_1} + e^{x_2})\) without overflow.

    >>> import wonderland as wl
    >>> print(wl.logaddexp(wl.tensor(1000.0, wl.float64), 1000.0))
    tensor(1000.69314718, dtype=float64)
    """
    return p.logaddexp(*promote_inexact("logaddexp", x1, x2))


# --- trigonometric


@of_one(p.sin)
def sin(x: ArrayLike, /) -> Tensor:
    """The sine.

    >>> import wonderland as wl
    >>> wl.sin(wl.tensor([0.0, wl.pi / 2]))
    tensor([0., 1.])
    """
    return p.sin(as_inexact("sin", x))


@of_one(p.cos)
def cos(x: ArrayLike, /) -> Tensor:
    """The cosine.

    >>> import wonderland as wl
    >>> wl.cos(wl.tensor([0.0, wl.pi]))
    tensor([ 1., -1.])
    """
    return p.cos(as_inexact("cos", x))


@of_one(p.tan)
def tan(x: ArrayLike, /) -> Tensor:
    """The tangent.

    >>> import wonderland as wl
    >>> print(wl.tan(0.5))
    tensor(0.54630)
    """
    return p.tan(as_inexact("tan", x))


@of_one(p.asin)
def asin(x: ArrayLike, /) -> Tensor:
    """The angle with sine x, in [-pi/2, pi/2].

    >>> import wonderland as wl
    >>> print(wl.asin(1.0))
    tensor(1.57079)
    """
    return p.asin(as_inexact("asin", x))


@of_one(p.acos)
def acos(x: ArrayLike, /) -> Tensor:
    """The angle with cosine x, in [0, pi].

    >>> import wonderland as wl
    >>> print(wl.acos(0.0))
    tensor(1.57079)
    """
    return p.acos(as_inexact("acos", x))


@of_one(p.atan)
def atan(x: ArrayLike, /) -> Tensor:
    """The angle with tangent x, in [-pi/2, pi/2].

    >>> import wonderland as wl
    >>> print(wl.atan(1.0))
    tensor(0.78539)
    """
    return p.atan(as_inexact("atan", x))


@of_two(p.atan2)
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The angle of the point with coordinates (x2, x1), in [-pi, pi].

    >>> import wonderland as wl
    >>> print(wl.atan2(-1.0, 0.0))
    tensor(-1.57079)
    """
    return p.atan2(*promote_inexact("atan2", x1, x2))


# --- hyperbolic


@of_one(p.sinh)
def sinh(x: ArrayLike, /) -> Tensor:
    r"""\((e^x - e^{-x})/2\).

    >>> import wonderland as wl
    >>> print(wl.sinh(1.0))
    tensor(1.17520)
    """
    return p.sinh(as_inexact("sinh", x))


@of_one(p.cosh)
def cosh(x: ArrayLike, /) -> Tensor:
    r"""\((e^x + e^{-x})/2\).

    >>> import wonderland as wl
    >>> print(wl.cosh(1.0))
    tensor(1.54308)
    """
    return p.cosh(as_inexact("cosh", x))


@of_one(p.tanh)
def tanh(x: ArrayLike, /) -> Tensor:
    r"""\(\sinh x / \cosh x\), in (-1, 1), with derivative \(1 - \tanh^2 x\).

    >>> import wonderland as wl
    >>> print(wl.tanh(0.5), wl.grad(wl.tanh)(0.0))
    tensor(0.46211) tensor(1.)
    """
    return p.tanh(as_inexact("tanh", x))


@of_one(p.asinh)
def asinh(x: ArrayLike, /) -> Tensor:
    """The inverse of sinh.

    >>> import wonderland as wl
    >>> print(wl.asinh(1.0))
    tensor(0.88137)
    """
    return p.asinh(as_inexact("asinh", x))


@of_one(p.acosh)
def acosh(x: ArrayLike, /) -> Tensor:
    """The inverse of cosh on [1, inf).

    >>> import wonderland as wl
    >>> print(wl.acosh(2.0))
    tensor(1.31695)
    """
    return p.acosh(as_inexact("acosh", x))


@of_one(p.atanh)
def atanh(x: ArrayLike, /) -> Tensor:
    """The inverse of tanh on (-1, 1).

    >>> import wonderland as wl
    >>> print(wl.atanh(0.5))
    tensor(0.54930)
    """
    return p.atanh(as_inexact("atanh", x))


# --- the error function


@of_one(p.erf)
def erf(x: ArrayLike, /) -> Tensor:
    r"""The error function \(\frac{2}{\sqrt\pi}\int_0^x e^{-t^2}\,dt\).

    >>> import wonderland as wl
    >>> print(wl.erf(1.0))
    tensor(0.84270)
    """
    return p.erf(as_real("erf", x))


@of_one(p.erfc)
def erfc(x: ArrayLike, /) -> Tensor:
    """1 - erf(x), exact also where erf(x) is nearly 1.

    >>> import wonderland as wl
    >>> print(wl.erfc(wl.tensor(5.0, wl.float64)))
    tensor(1.53745979e-12, dtype=float64)
    """
    return p.erfc(as_real("erfc", x))


@of_one(p.erfinv)
def erfinv(x: ArrayLike, /) -> Tensor:
    """The inverse of erf on [-1, 1].

    >>> import wonderland as wl
    >>> print(wl.erfinv(0.5))
    tensor(0.47693)
    """
    return p.erfinv(as_real("erfinv", x))
