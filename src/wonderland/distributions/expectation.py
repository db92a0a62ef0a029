"""Expected values: exact sums, integrals, and means over draws with their standard error. Book, section A.4."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import arrays
from ..arrays.conversion import as_tensor
from ..core.dtypes import float64, is_floating
from ..core.errors import InputError, ShapeError
from ..core.giving import given_to
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, ArrayLike, KeyLike
from .compound import Mixture
from .distribution import Distribution


@dataclass
class Estimate:
    """A value that was estimated from draws, and its standard error.

    >>> import wonderland as wl
    >>> wl.distributions.Estimate(1.5, 0.1)
    Estimate(value=1.5, standard_error=0.1)
    """

    value: Any
    standard_error: Any


def monte_carlo(
    f: Callable[[Any], ArrayLike],
    sampler: Distribution | Callable[[int, KeyLike], object],
    n: int,
    key: KeyLike = None,
) -> Estimate:
    r"""\(\frac1n\sum_i f(x_i)\) over n draws, with the standard error \(s/\sqrt n\). Book, section A.4.

    >>> import wonderland as wl
    >>> d = wl.distributions.Normal(0.0, 1.0)
    >>> found = wl.distributions.monte_carlo(lambda x: x**2, d, 10000, key=wl.random.key(0))
    >>> bool(abs(found.value - 1.0) < 4 * found.standard_error)
    True

    `sampler` is a distribution, or a function `sampler(n, key)` that gives n draws; f works on all of them at once and
    keeps the first axis.
    """
    if n < 2:
        raise InputError(f"monte_carlo: n={n}.", "at least 2 draws, from which the error is estimated")
    draws = sampler.sample((n,), key) if isinstance(sampler, Distribution) else sampler(n, key)
    values = as_tensor("monte_carlo", f(draws))
    if not values.ndim or values.shape[0] != n:
        raise ShapeError(f"monte_carlo: {n} draws gave values of shape {values.shape}.", f"a first axis of size {n}")
    values = values if is_floating(values.dtype) else arrays.astype(values, float64)
    return Estimate(arrays.mean(values, axis=0), arrays.std(values, axis=0, correction=1) / math.sqrt(n))


def expectation(dist: Distribution, f: Callable[[Tensor], Tensor], n: int = 100_000, key: KeyLike = None) -> Tensor:
    r"""\(E[f(x)]\): the sum \(\sum_x f(x)\,p(x)\) or the integral \(\int f(x)\,p(x)\,dx\). Book, section A.4.

    >>> import wonderland as wl
    >>> prizes = wl.tensor([0.0, 10.0, 100.0])
    >>> lottery = wl.distributions.Categorical([0.6, 0.3, 0.1])
    >>> print(wl.distributions.expectation(lottery, lambda w: prizes[w]))
    tensor(13.)

    f works elementwise on a tensor of values. Sums over discrete values are exact and integrals over numbers good to
    about ten digits if f is smooth; over vectors it is a mean of n draws with `key`.
    """
    if isinstance(dist, Mixture):  # one component at a time, as they may be far apart
        return dist._over(expectation(dist.components, f, n, key))
    if dist.event_shape:
        return monte_carlo(f, dist, n, key).value
    if dist.discrete:
        values = dist.support()
        p = dist.prob(values)
        # what has no probability does not count, whatever f says there
        return arrays.sum(arrays.where(p == 0, 0.0, f(values) * p), axis=0)
    return _integral(dist, f)


def _integral(dist: Distribution, f: Callable[[Tensor], Tensor]) -> Tensor:
    low, high = dist.bounds
    if isinstance(high, Tensor) or high < math.inf:
        u, weights = _points("interval", len(dist.batch_shape))
        x, weights = low + (high - low) * u, weights * (high - low)
    else:
        u, weights = _points("ray", len(dist.batch_shape))
        centre, width = _middle(dist)
        if low == -math.inf:  # to both sides of the centre, where the density may have a kink
            x = arrays.concat([centre - width * u, centre + width * u], axis=0)
            weights = arrays.concat([weights * width] * 2, axis=0)
        else:
            x, weights = low + width * u, weights * width
    p = dist.prob(x)
    return arrays.astype(arrays.sum(arrays.where(p == 0, 0.0, f(x) * p) * weights, axis=0), dist.dtype)


def _middle(dist: Distribution) -> tuple[Tensor, Tensor]:
    """Where a distribution is, and how wide; for those without moments, by their parameters."""
    mean, deviation = arrays.stop_gradient(dist.mean), arrays.stop_gradient(dist.stddev)
    loc, scale = (arrays.stop_gradient(getattr(dist, name, 1.0)) for name in ("loc", "scale"))
    exists = arrays.isfinite(deviation)
    return arrays.where(exists, mean, loc), arrays.where(exists, deviation, scale)


@functools.cache
def _rule(kind: str) -> tuple[Array, Array]:
    """Points and weights of the double-exponential rule of Takahasi and Mori, for an integral over a kind of domain."""
    step = 0.02
    t = np.arange(-5.5 if kind == "ray" else -4.0, 4.0 + step / 2, step)  # a ray may begin with a pole
    inner, slope = 0.5 * math.pi * np.sinh(t), 0.5 * math.pi * np.cosh(t)
    if kind == "line":
        return np.sinh(inner), step * slope * np.cosh(inner)
    if kind == "ray":
        return np.exp(inner), step * slope * np.exp(inner)
    x = 1 / (1 + np.exp(-2 * inner))
    return np.clip(x, 1e-300, 1 - 2.0**-53), step * slope * 2 * x * (1 / (1 + np.exp(2 * inner)))


def _points(kind: str, axes: int) -> tuple[Tensor, Tensor]:
    points, weights = _rule(kind)
    shape = (-1, *(1,) * axes)
    return wrap(points.reshape(shape)), wrap(weights.reshape(shape))


def integrate(f: Callable[[Tensor], ArrayLike], low: float = -math.inf, high: float = math.inf) -> Tensor:
    r"""\(\int_l^h f(x)\,dx\) of a smooth function that works elementwise: the sum rule of densities. Book, section A.2.

    >>> import wonderland as wl
    >>> print(wl.distributions.integrate(lambda x: wl.exp(-x * x)))  # the root of pi
    tensor(1.77245385, dtype=float64)

    f gets a vector of some 400 points in float64, close together near 0 and near finite ends. It may return more axes
    behind.
    """
    if not low < high:
        raise InputError(f"integrate: from {low} to {high}.", "low < high")
    if low > -math.inf and high < math.inf:
        u, weights = _rule("interval")
        x, weights = low + (high - low) * u, weights * (high - low)
    elif low == -math.inf and high == math.inf:
        x, weights = _rule("line")
    else:
        u, weights = _rule("ray")
        x = low + u if low > -math.inf else high - u
    values = as_tensor("integrate", f(wrap(x)))
    if values.shape[:1] != (len(x),):
        raise ShapeError(f"integrate: {len(x)} points gave values of shape {values.shape}.", "an elementwise function")
    return arrays.tensordot(wrap(weights), values, axes=1)


@given_to(Distribution)
class Moments:
    """Expected values of powers."""

    def moment(self: Any, p: int) -> Tensor:
        r"""\(E[x^p]\)."""
        return expectation(self, lambda x: x**p)
