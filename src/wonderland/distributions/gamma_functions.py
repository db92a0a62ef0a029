r"""The gamma function and its relatives, in float64, with derivatives of every order.

\(\ln\Gamma\) is Stirling's series from 8 on, and the recurrence below. The incomplete functions are integrals over a
logarithmic axis of the lighter tail, by Gauss and Legendre's rule: formulas without loops, which differentiate by
themselves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arrays
from ..arrays.conversion import as_real
from ..dtypes import float64
from ..random import gamma_family
from ..tensor import Tensor, wrap
from ..transforms.custom import stop_gradient

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _wide(name: str, *xs: Any) -> tuple[Any, ...]:
    """Operands in float64, and the dtype of the result."""
    real = [as_real(name, x) for x in xs]
    return (*(arrays.astype(x, float64) for x in real), arrays.result_type(*(x.dtype for x in real)))


def log_gamma(x: Any) -> Tensor:
    r"""\(\ln\Gamma(x)\) for x > 0; \(\Gamma(n + 1) = n!\).

    >>> import wonderland as wl
    >>> print(wl.exp(wl.distributions.log_gamma(wl.tensor(5.0))))
    tensor(24.)
    """
    x, dtype = _wide("log_gamma", x)
    small = x < 8
    low = arrays.where(small, x, 1.0)
    steps = low
    for i in range(1, 8):
        steps = steps * (low + i)
    y = arrays.where(small, low + 8, x)
    w = 1 / (y * y)
    series = _STIRLING[-1]
    for coefficient in reversed(_STIRLING[:-1]):
        series = series * w + coefficient
    value = (y - 0.5) * arrays.log(y) - y + 0.5 * math.log(2 * math.pi) + series / y
    return arrays.astype(value - arrays.where(small, arrays.log(steps), 0.0), dtype)


def digamma(x: Any) -> Tensor:
    r"""\(\psi(x) = \frac{d}{dx}\ln\Gamma(x)\) for x > 0.

    >>> import wonderland as wl
    >>> print(wl.distributions.digamma(wl.tensor(1.0)))  # minus Euler's constant
    tensor(-0.577216)
    """
    x, dtype = _wide("digamma", x)
    return arrays.astype(gamma_family.digamma(x), dtype)


def log_beta(a: Any, b: Any) -> Tensor:
    r"""\(\ln B(a, b) = \ln\Gamma(a) + \ln\Gamma(b) - \ln\Gamma(a + b)\).

    >>> import wonderland as wl
    >>> print(wl.exp(wl.distributions.log_beta(wl.tensor(2.0), wl.tensor(3.0))))
    tensor(0.083333)
    """
    a, b, dtype = _wide("log_beta", a, b)
    return arrays.astype(log_gamma(a) + log_gamma(b) - log_gamma(a + b), dtype)


def gamma_probability(a: Any, x: Any) -> Tensor:
    r"""\(P(a, x) = \frac{1}{\Gamma(a)}\int_0^x t^{a-1}e^{-t}\,dt\): a gamma variable is below x with this probability.

    >>> import wonderland as wl
    >>> print(wl.distributions.gamma_probability(wl.tensor(1.0), wl.tensor(2.0)))  # 1 - e^-2
    tensor(0.864665)
    """
    a, x, dtype = _wide("gamma_probability", a, x)
    inside = (x > 0) & (x < arrays.inf)
    z = arrays.where(inside, x, 1.0)
    below = z <= a
    # t = z e^s: to the left of z for small z, to its right for large ones
    heavy = arrays.where(below, 1.0, z)
    right = arrays.where(heavy < 32, arrays.log1p(80 / heavy), arrays.sqrt(80 / heavy))
    reach = arrays.where(below, -(40 / a + arrays.sqrt(80 / a)), right)
    tail = _tail(reach, lambda s: a * s - z * arrays.expm1(s))
    tail = tail * arrays.exp(a * arrays.log(z) - z - log_gamma(a))
    p = arrays.where(below, tail, 1 - tail)
    return arrays.astype(arrays.where(inside, p, arrays.where(x > 0, 1.0, x * 0)), dtype)


def beta_probability(a: Any, b: Any, x: Any) -> Tensor:
    r"""\(I_x(a, b) = \frac{1}{B(a, b)}\int_0^x t^{a-1}(1-t)^{b-1}\,dt\): a beta variable is below x so often.

    >>> import wonderland as wl
    >>> print(wl.distributions.beta_probability(wl.tensor(2.0), wl.tensor(1.0), wl.tensor(0.5)))
    tensor(0.25)
    """
    a, b, x, dtype = _wide("beta_probability", a, b, x)
    inside = (x > 0) & (x < 1)
    t = arrays.where(inside, x, 0.5)
    u = arrays.log(t) - arrays.log1p(-t)
    below = t * (a + b) <= a
    middle = arrays.sqrt(80 * (a + b) / (a * b))
    reach = arrays.where(below, -(40 / a + middle), 40 / b + middle)
    left, right = arrays.log(t), arrays.log1p(-t)  # ln sigma(u) and ln sigma(-u)

    def exponent(s: Tensor) -> Tensor:
        return a * (-arrays.softplus(-(u + s)) - left) + b * (-arrays.softplus(u + s) - right)

    tail = _tail(reach, exponent) * arrays.exp(a * left + b * right - log_beta(a, b))
    p = arrays.where(below, tail, 1 - tail)
    return arrays.astype(arrays.where(inside, p, arrays.where(x >= 1, 1.0, x * 0)), dtype)


@functools.cache
def _nodes() -> tuple[Any, Any]:
    points, weights = np.polynomial.legendre.leggauss(96)
    return wrap((points + 1) / 2), wrap(weights / 2)


def _tail(reach: Tensor, exponent: Callable[[Tensor], Tensor]) -> Tensor:
    """The integral of e^exponent(s) from 0 to reach, in size; beyond it the integrand is below e^-40."""
    points, weights = _nodes()
    reach = stop_gradient(reach)
    axes = (-1,) + (1,) * reach.ndim
    r, weight = arrays.reshape(points, axes), arrays.reshape(weights, axes)
    s = reach * (r * r)  # points lie close near the end where the integrand is largest
    return arrays.abs(reach) * arrays.sum(arrays.exp(exponent(s)) * (2 * r * weight), axis=0)
