r"""Numbers of events: Poisson and binomial.

Means below 10 are drawn by inversion: the number of terms of the distribution function that a fraction
exceeds. Larger means by the transformed rejection of Hörmann (1993), which accepts about three proposals in
four whatever the mean. All of it is computed in float64, so counts are exact up to 2^53.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from ..arrays import abs as absolute
from ..arrays import any as any_
from ..arrays import (
    asarray,
    astype,
    broadcast_to,
    exp,
    floor,
    log,
    log1p,
    maximum,
    minimum,
    sqrt,
    stop_gradient,
    take,
    where,
)
from ..arrays.conversion import convert
from ..core import dtypes
from ..core.dtypes import DType, as_dtype, float64, int32, int64
from ..core.errors import DTypeError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike
from ..transforms.control.loops import while_loop
from .arguments import Parameter, check, check_shape_first, key_and_shape, known, parameter
from .keys import pair
from .rejection import first_accepted
from .words import Shape, draw_fraction, draw_open_fraction

_LARGE = 10.0  # means from here on are drawn by rejection
_TERMS = 200  # a count with a mean below 10 exceeds this with a probability below 1e-100


def poisson(
    shape: ShapeLike | None = None, rate: ArrayLike = 1.0, *, key: KeyLike = None, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Poisson: k with probability \(\lambda^k e^{-\lambda}/k!\), for rates up to 1e15.

    >>> import wonderland as wl
    >>> k = wl.random.poisson((20000,), 3.5, key=wl.random.key(0))
    >>> f"{k.astype(float).mean():.1f} {k.astype(float).var():.1f}"
    '3.5 3.5'
    """
    check_shape_first("poisson", shape, rate)
    rate = parameter("poisson", rate)
    check("poisson", "the rate", rate, lambda v: (v >= 0) & (v <= 1e15), "rates from 0 to 1e15")
    target = _count_type("poisson", dtype)
    key, sizes = key_and_shape("poisson", shape, key, target, rate)
    rate = _full(rate, key, sizes)
    small = rate < _LARGE

    def inverted(key: Tensor) -> Tensor:
        mean = where(small, rate, 0)
        return _inverted(key, sizes, exp(-mean), lambda k: mean / k)

    def rejected(key: Tensor) -> Tensor:
        mean = where(small, _LARGE, rate)
        b = 0.931 + 2.53 * sqrt(mean)
        a = -0.059 + 0.02483 * b
        height = 1.1239 + 1.1328 / (b - 3.4)

        def log_ratio(k: Tensor) -> Tensor:
            return -_excess(k) - _deviance(k, mean) - log(height)

        return _rejected(key, sizes, a, b, mean + 0.43, None, log_ratio)

    return astype(_either(key, small, inverted, rejected), target)


def binomial(
    shape: ShapeLike | None = None,
    n: ArrayLike = 1,
    p: ArrayLike = 0.5,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Binomial: k with probability \(\binom{n}{k} p^k (1-p)^{n-k}\), successes in n trials; n up to 2^53.

    >>> import wonderland as wl
    >>> wl.random.binomial((3,), 10, 1.0)
    tensor([10, 10, 10])
    """
    check_shape_first("binomial", shape, n, p)
    n, p = parameter("binomial", n), parameter("binomial", p)
    check(
        "binomial",
        "n",
        n,
        lambda v: (v >= 0) & (v <= 2**53) & (v == np.floor(v)),
        "whole numbers from 0 to 2**53",
    )
    check("binomial", "p", p, lambda v: (v >= 0) & (v <= 1), "probabilities from 0 to 1")
    target = _count_type("binomial", dtype)
    key, sizes = key_and_shape("binomial", shape, key, target, n, p)
    n, p = _full(n, key, sizes), _full(p, key, sizes)
    rare = minimum(p, 1 - p)  # count the rarer outcome
    small = n * rare < _LARGE

    def inverted(key: Tensor) -> Tensor:
        trials = where(small, n, 0)
        odds = rare / (1 - rare)
        count = _inverted(key, sizes, exp(trials * log1p(-rare)), lambda k: odds * (trials + 1 - k) / k)
        return minimum(count, trials)

    def rejected(key: Tensor) -> Tensor:
        trials, q = where(small, 2 * _LARGE, n), where(small, 0.5, rare)
        mean, other = trials * q, trials * (1 - q)
        spread = sqrt(other * q)
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * q
        mode = floor((trials + 1) * q)

        def log_probability(k: Tensor) -> Tensor:
            return -_excess(k) - _excess(trials - k) - _deviance(k, mean) - _deviance(trials - k, other)

        top = log_probability(mode) + log((2.83 + 5.1 / b) * spread)
        return _rejected(key, sizes, a, b, mean + 0.5, trials, lambda k: log_probability(k) - top)

    count = _either(key, small, inverted, rejected)
    return astype(where(p > 0.5, n - count, count), target)


def _count_type(name: str, dtype: DTypeLike | None) -> DType:
    target = as_dtype(dtypes.default_int if dtype is None else dtype)
    if target == dtypes.bool_ or dtypes.is_complex(target):
        raise DTypeError(f"{name}: counts do not fit into {target}.", "dtype=wl.int64")
    return target


def _full(x: Parameter, key: Tensor, shape: Shape) -> Tensor:
    """A parameter in float64, without derivative: counts do not move when it does."""
    return broadcast_to(stop_gradient(convert(x, float64)), key.shape[:-1] + shape)


def _either(key: Tensor, small: Tensor, inverted: Callable[..., Tensor], rejected: Callable[..., Tensor]) -> Tensor:
    """Each element by the method for its mean; a method that nobody needs is not run if that is known."""
    first, second = pair(key)
    seen = known(small)
    if seen is not None and seen.all():
        return inverted(first)
    if seen is not None and not seen.any():
        return rejected(second)
    return where(small, inverted(first), rejected(second))


def _inverted(key: Tensor, shape: Shape, first: Tensor, ratio: Callable[[Tensor], Tensor]) -> Tensor:
    """The number of partial sums that a fraction has reached; term k is term k - 1 times ratio(k)."""
    # rounding may keep all partial sums a little below 1, so the fraction is kept below that
    u = minimum(draw_fraction(key, shape, float64), 1 - 2.0**-46)

    def unfinished(state: tuple[Tensor, ...]) -> Tensor:
        k, _, total, _ = state
        return (k < _TERMS) & any_(u >= total)

    def step(state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        k, term, total, count = state
        reached = u >= total
        k = k + 1
        term = term * ratio(astype(k, float64))
        return k, term, where(reached, total + term, total), count + astype(reached, float64)

    return while_loop(unfinished, step, (asarray(0, dtype=int32), first, first, 0 * u))[3]


def _rejected(
    key: Tensor,
    shape: Shape,
    a: Tensor,
    b: Tensor,
    centre: Tensor,
    most: Tensor | None,
    log_ratio: Callable[[Tensor], Tensor],
) -> Tensor:
    """Proposals floor((2 a / s + b) u + centre), s = 1/2 - |u|; `log_ratio` is probability over hat."""

    def propose(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        u = draw_open_fraction(first, shape, float64) - 0.5
        s = maximum(0.5 - absolute(u), 2.0**-54)
        k = floor((2 * a / s + b) * u + centre)
        inside = k >= 0 if most is None else (k >= 0) & (k <= most)
        k = where(inside, k, floor(centre))
        height = log(draw_open_fraction(second, shape, float64)) - log(a / (s * s) + b)
        return k, inside & (height <= log_ratio(k))

    return first_accepted(propose, key, shape, float64)


# --- logarithms of probabilities that keep their digits for large counts (Loader, 2000)


@functools.cache
def _small_excess() -> Tensor:
    exact = [0.0] + [math.lgamma(k + 1) - k * math.log(k) + k for k in range(1, 16)]
    return wrap(np.array(exact))


def _excess(k: Tensor) -> Tensor:
    r"""\(\ln k! - k\ln k + k\): what is left of the factorial beside its large part."""
    x = maximum(k, 1)
    w = 1 / (x * x)
    series = (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w / 1680))) / x
    return where(k < 16, take(_small_excess(), astype(minimum(k, 15), int64)), 0.5 * log(2 * math.pi * x) + series)


def _deviance(k: Tensor, mean: Tensor) -> Tensor:
    r"""\(k\ln(k/m) + m - k\), at least 0."""
    x = where(k == 0, 1, k)
    d = (mean - x) / x
    return where(k == 0, mean, x * (d - log1p(d)))
