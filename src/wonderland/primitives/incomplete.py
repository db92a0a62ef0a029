r"""The incomplete gamma and beta functions: probabilities of gamma and beta variables.

They are integrals over a logarithmic axis of the lighter tail, by Gauss and Legendre's rule: formulas without loops,
which differentiate by themselves with respect to the parameters. The other tail is one minus that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from ..core.tensor import Tensor
from ..core.typing import Array
from .composed import Composed, Functions, Value
from .elementwise import exp, log, where
from .gamma import lgamma, log_gamma_of, stirling

LARGE = 10.0  # from here on factors are compared with Stirling's formula, so that large terms cancel on paper


@functools.cache
def _nodes() -> tuple[Array, Array]:
    """Points and weights on [0, 1], closer to each other near 0, where the integrand is largest."""
    points, weights = np.polynomial.legendre.leggauss(96)
    points = (points + 1) / 2
    return points * points, points * weights


def _integral(m: Functions[Value], reach: Value, exponent: Callable[[Value], Value]) -> Value:
    """The integral of exp(exponent(s)) from 0 to reach, in size; beyond it the integrand is below e^-40."""
    points, weights = _nodes()
    reach = m.constant_part(reach)
    axes = (-1,) + (1,) * reach.ndim
    s = reach * m.reshape(m.constant(points), axes)
    return m.abs(reach) * m.sum(m.exp(exponent(s)) * m.reshape(m.constant(weights), axes), axis=0)


def _excess(m: Functions[Value], u: Value, ratio: Value) -> Value:
    """u - ln(1 + u) for ratio = 1 + u without cancellation, by the series in u / (2 + u) where u is small."""
    near = m.abs(u) < 0.4
    small = m.where(near, u, 0.0)
    r = small / (2 + small)
    w = r * r
    total: Value | float = 1 / 31
    for k in range(29, 2, -2):
        total = total * w + 1 / k
    return m.where(near, r * (small - 2 * w * total), u - m.log(m.where(near, 1.0, ratio)))


def _log_gamma(m: Functions[Value], x: Value) -> Value:
    return lgamma(x) if isinstance(x, Tensor) else log_gamma_of(m, x)


# --- gamma


def _gamma_factor(m: Functions[Value], a: Value, x: Value) -> Value:
    """x^a e^-x / Gamma(a)."""
    big = a >= LARGE
    base = m.where(big, a, LARGE)
    z = m.where(big, x, base)
    stirlings = -base * _excess(m, (z - base) / base, z / base) + 0.5 * m.log(base / (2 * math.pi)) - stirling(m, base)
    low = m.where(big, 1.0, a)
    direct = low * m.log(x) - x - _log_gamma(m, low)
    return m.exp(m.where(big, stirlings, direct))


def _gamma_tail(m: Functions[Value], a: Value, x: Value) -> tuple[Value, Value, Value]:
    """The probability of the lighter tail, whether it is the lower one, and where both are known without it."""
    inside = (a > 0) & (a < math.inf) & (x > 0) & (x < math.inf)
    b, z = m.where(inside, a, 1.0), m.where(inside, x, 1.0)
    below = z <= b
    # t = z e^s: to the left of z for small z, to its right for large ones
    heavy = m.where(below, 1.0, z)
    right = m.where(heavy < 32, m.log1p(80 / heavy), m.sqrt(80 / heavy))
    reach = m.where(below, -(40 / b + m.sqrt(80 / b)), right)
    gap = b - z
    # a s - z (e^s - 1), in which the terms that cancel are subtracted first
    integral = _integral(m, reach, lambda s: gap * s - z * (m.expm1(s) - s))
    return integral * _gamma_factor(m, b, z), below, inside


def _outside(m: Functions[Value], a: Value, x: Value) -> Value:
    """P(a, x) at the ends: 0 at x = 0, 1 at infinity, and for a = 0; NaN where it is not defined."""
    known = m.where(x == 0, 0.0, m.where((x == math.inf) | (a == 0), 1.0, m.where(a == math.inf, 0.0, math.nan)))
    refused = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | ((a == math.inf) & (x == math.inf)) | (a != a) | (x != x)
    return m.where(refused, math.nan, known)


def gammainc_of(m: Functions[Value], a: Value, x: Value) -> Value:
    tail, below, inside = _gamma_tail(m, a, x)
    return m.where(inside, m.where(below, tail, 1 - tail), _outside(m, a, x))


def gammaincc_of(m: Functions[Value], a: Value, x: Value) -> Value:
    tail, below, inside = _gamma_tail(m, a, x)
    return m.where(inside, m.where(below, 1 - tail, tail), 1 - _outside(m, a, x))


def _power(x: Tensor, p: Tensor) -> Tensor:
    """ln x^p, and 0 for p = 0 also at x = 0."""
    return where(p == 0, p * 0, p * log(where(p == 0, x * 0 + 1, x)))


def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    return exp(_power(x, a - 1) - x - lgamma(a))


# --- beta


def _beta_factor(m: Functions[Value], a: Value, b: Value, x: Value) -> Value:
    """x^a (1 - x)^b / B(a, b)."""
    big = (a >= LARGE) & (b >= LARGE)
    p, q = m.where(big, a, LARGE), m.where(big, b, LARGE)
    t = m.where(big, x, 0.5)
    n = p + q
    # relative distances of x and 1 - x from where the integrand is largest
    over, under = (t * n - p) / p, (p - t * n) / q
    stirlings = -p * _excess(m, over, t * n / p) - q * _excess(m, under, (1 - t) * n / q)
    stirlings = stirlings + 0.5 * m.log(p * q / (2 * math.pi * n))
    stirlings = stirlings - stirling(m, p) - stirling(m, q) + stirling(m, n)
    low, high = m.where(big, 1.0, a), m.where(big, 1.0, b)
    direct = low * m.log(x) + high * m.log1p(-x) - _log_gamma(m, low) - _log_gamma(m, high) + _log_gamma(m, low + high)
    return m.exp(m.where(big, stirlings, direct))


def betainc_of(m: Functions[Value], a: Value, b: Value, x: Value) -> Value:
    inside = (a > 0) & (a < math.inf) & (b > 0) & (b < math.inf) & (x > 0) & (x < 1)
    p, q, t = m.where(inside, a, 1.0), m.where(inside, b, 1.0), m.where(inside, x, 0.5)
    n = p + q
    below = t * n <= p
    # beyond the first bound the tail has fallen as a normal one, beyond the second as its first or last power
    middle = m.sqrt(80 * n / (p * q))
    left = m.minimum(40 / p + middle, (40 - n * m.log1p(-t)) / p)
    right = m.minimum(40 / q + middle, (40 - n * m.log(t)) / q)
    reach = m.where(below, -left, right)

    def exponent(s: Value) -> Value:
        """a ln(y / x) + b ln((1 - y) / (1 - x)) where the log-odds of y are those of x plus s."""
        down, up = m.minimum(s, 0.0), m.maximum(s, 0.0)
        return p * s - n * m.where(s < 0, m.log1p(t * m.expm1(down)), up + m.log1p((1 - t) * m.expm1(-up)))

    tail = _integral(m, reach, exponent) * _beta_factor(m, p, q, t)
    ends = m.where((a > 0) & (b > 0) & (x == 0), 0.0, m.where((a > 0) & (b > 0) & (x == 1), 1.0, math.nan))
    return m.where(inside, m.where(below, tail, 1 - tail), ends)


def _beta_density(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    return exp(_power(x, a - 1) + _power(1 - x, b - 1) + lgamma(a + b) - lgamma(a) - lgamma(b))


gammainc = Composed("gammainc", gammainc_of, (None, lambda out, a, x: _gamma_density(a, x)))
gammaincc = Composed("gammaincc", gammaincc_of, (None, lambda out, a, x: -_gamma_density(a, x)))
betainc = Composed("betainc", betainc_of, (None, None, lambda out, a, b, x: _beta_density(a, b, x)))
