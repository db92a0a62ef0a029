r"""The gamma function \(\Gamma(x) = \int_0^\infty t^{x-1}e^{-t}\,dt\) and its relatives."""

from __future__ import annotations

import math

from .. import arrays
from ..arrays.conversion import as_real, promote_inexact
from ..core.arguments import as_int
from ..core.dtypes import float64
from ..core.errors import DTypeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import gamma as p
from ..primitives import incomplete
from .formulas import differentiate_formula

differentiate_formula(p.zeta, 0)
differentiate_formula(incomplete.gammainc, 0)
differentiate_formula(incomplete.gammaincc, 0)
differentiate_formula(incomplete.betainc, 0, 1)


def _real(name: str, *xs: ArrayLike) -> list[Tensor]:
    """Operands of one floating type."""
    found = promote_inexact(name, *xs)
    if found[0].dtype.kind == "c":
        raise DTypeError(f"{name}: takes real tensors, received {found[0].dtype}.", "wl.real(x)")
    return found


def lgamma(x: ArrayLike, /) -> Tensor:
    r"""\(\ln|\Gamma(x)|\); infinite at 0, -1, -2, ... The derivative is `digamma`.

    >>> import wonderland as wl
    >>> print(wl.exp(wl.special.lgamma(wl.tensor(5.0))))  # 4!
    tensor(24.)
    """
    return p.lgamma(as_real("lgamma", x))


gammaln = lgamma


def digamma(x: ArrayLike, /) -> Tensor:
    r"""\(\psi(x) = \frac{d}{dx}\ln\Gamma(x)\); NaN at -1, -2, ...

    >>> import wonderland as wl
    >>> print(wl.special.digamma(wl.tensor(1.0)))  # minus Euler's constant
    tensor(-0.577216)
    """
    return p.digamma(as_real("digamma", x))


psi = digamma


def polygamma(n: int, x: ArrayLike, /) -> Tensor:
    r"""\(\psi^{(n)}(x)\), the n-th derivative of `digamma`; n is a Python integer.

    >>> import wonderland as wl
    >>> print(wl.special.polygamma(1, wl.tensor(1.0)))  # pi^2 / 6
    tensor(1.64493)
    """
    order = as_int("polygamma", "n", n, least=0)
    x = as_real("polygamma", x)
    return p.polygamma(x, n=order) if order else p.digamma(x)


def zeta(s: ArrayLike, q: ArrayLike = 1.0, /) -> Tensor:
    r"""Hurwitz's zeta function \(\sum_{k \ge 0} (q + k)^{-s}\) for s > 1 and q > 0; Riemann's for q = 1.

    >>> import wonderland as wl
    >>> print(wl.special.zeta(wl.tensor(2.0)))  # pi^2 / 6
    tensor(1.64493)

    Differentiable in both. NaN outside.
    """
    s, q = _real("zeta", s, q)
    inside = (s > 1) & (q > 0)
    return arrays.where(inside, p.zeta(arrays.where(inside, s, 2.0), arrays.where(inside, q, 1.0)), math.nan)


def gamma(x: ArrayLike, /) -> Tensor:
    r"""\(\Gamma(x)\); \(\Gamma(n + 1) = n!\). NaN at -1, -2, ...

    >>> import wonderland as wl
    >>> wl.special.gamma(wl.tensor([1.0, 4.0, -0.5]))
    tensor([ 1.       ,  6.       , -3.5449078])
    """
    x = as_real("gamma", x)
    below = arrays.floor(x)
    odd = arrays.remainder(below, 2.0) == 1
    size = arrays.astype(arrays.exp(p.lgamma(arrays.astype(x, float64))), x.dtype)
    found = arrays.where((x < 0) & odd, -size, arrays.where(x == 0, 1 / x, size))
    return arrays.where((x < 0) & (below == x), math.nan, found)


def beta(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    r"""\(B(a, b) = \Gamma(a)\Gamma(b)/\Gamma(a + b)\) for positive a and b.

    >>> import wonderland as wl
    >>> print(wl.special.beta(wl.tensor(2.0), 3.0))
    tensor(0.083333)
    """
    return arrays.exp(betaln(a, b))


def betaln(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    r"""\(\ln B(a, b) = \ln\Gamma(a) + \ln\Gamma(b) - \ln\Gamma(a + b)\) for positive a and b.

    >>> import wonderland as wl
    >>> print(wl.exp(wl.special.betaln(wl.tensor(2.0), 3.0)))
    tensor(0.083333)
    """
    a, b = _real("betaln", a, b)
    x, y = (arrays.astype(v, float64) for v in (a, b))
    return arrays.astype(p.lgamma(x) + p.lgamma(y) - p.lgamma(x + y), a.dtype)


def multigammaln(x: ArrayLike, d: int, /) -> Tensor:
    r"""\(\ln\Gamma_d(x) = \frac{d(d-1)}4\ln\pi + \sum_{j<d}\ln\Gamma(x - j/2)\), for \(x > (d-1)/2\).

    >>> import wonderland as wl
    >>> print(wl.special.multigammaln(wl.tensor(3.0), 2))
    tensor(1.550195)
    """
    x, count = as_real("multigammaln", x), as_int("multigammaln", "d", d, least=1)
    terms = arrays.expand_dims(x, axis=-1) - arrays.arange(count).astype(x.dtype) / 2
    return arrays.sum(p.lgamma(terms), axis=-1) + count * (count - 1) / 4 * math.log(math.pi)


# --- incomplete


def gammainc(a: ArrayLike, x: ArrayLike, /) -> Tensor:
    r"""\(P(a, x) = \frac{1}{\Gamma(a)}\int_0^x t^{a-1}e^{-t}\,dt\): a gamma variable is below x with this probability.

    >>> import wonderland as wl
    >>> print(wl.special.gammainc(wl.tensor(1.0), wl.tensor(2.0)))  # 1 - e^-2
    tensor(0.864665)

    Differentiable in both; NaN for negative arguments.
    """
    return incomplete.gammainc(*_real("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike, /) -> Tensor:
    r"""\(Q(a, x) = 1 - P(a, x)\), exact also where it is small.

    >>> import wonderland as wl
    >>> print(wl.special.gammaincc(wl.tensor(1.0), wl.tensor(2.0)))  # e^-2
    tensor(0.135335)
    """
    return incomplete.gammaincc(*_real("gammaincc", a, x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    r"""\(I_x(a, b) = \frac{1}{B(a, b)}\int_0^x t^{a-1}(1-t)^{b-1}\,dt\): a beta variable is below x so often.

    >>> import wonderland as wl
    >>> print(wl.special.betainc(wl.tensor(2.0), wl.tensor(1.0), wl.tensor(0.5)))
    tensor(0.25)

    Differentiable in all three; NaN outside of \(a, b > 0\) and \(0 \le x \le 1\).
    """
    return incomplete.betainc(*_real("betainc", a, b, x))
