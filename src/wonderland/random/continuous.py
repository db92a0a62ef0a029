r"""Continuous distributions made from fractions by a formula: a location, a scale and noise.

They are differentiable in their parameters: the noise does not depend on them (the reparametrisation \(x =
\mu + \sigma\varepsilon\)). All take the shape of the draw first; without one, the parameters give it. The key
may have leading axes, which then lead the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import astype, clip, concat, cos, erf, erfinv, finfo, log, log1p, reshape, sin, sqrt, tan, where
from ..arrays.conversion import convert
from ..core import dtypes
from ..core.dtypes import DType
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike
from .arguments import (
    Parameter,
    check,
    check_order,
    check_scale,
    check_shape_first,
    floating_parameters,
    key_and_shape,
    prepare,
    working_type,
)
from .words import Shape, draw_fraction, draw_open_fraction, draw_words, fraction, open_fraction, words_per


def uniform(
    shape: ShapeLike | None = None,
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Uniform on [low, high): \(x = l + (h - l)\,u\).

    >>> import wonderland as wl
    >>> x = wl.random.uniform((1000,), -1.0, 1.0, key=wl.random.key(0))
    >>> bool((x >= -1).all()), bool((x < 1).all())
    (True, True)

    u is a multiple of \(2^{-d}\) below 1, with d the binary digits of the dtype (24 for float32). A result
    that rounding would lift to `high` is replaced by `low`, so `high` is never drawn.
    """
    check_shape_first("uniform", shape, low, high)
    target, (low, high) = floating_parameters("uniform", dtype, low, high)
    check_order("uniform", low, high, target)
    check("uniform", "high - low", high - low, _fits(target), f"a range that {target} can hold")
    key, shape = key_and_shape("uniform", shape, key, target, low, high)
    u = draw_fraction(key, shape, target)
    if _is(low, 0) and _is(high, 1):
        return u
    x = rounded(astype(u, working_type(target)) * (high - low) + low, target)
    low, high = (convert(bound, target) for bound in (low, high))
    return where(x < high, x, low)


def _fits(dtype: DType) -> Callable[[Array], Array]:
    limit = float(finfo(dtype).max)
    return lambda v: np.abs(v) <= limit


def normal(
    shape: ShapeLike | None = None,
    mean: ArrayLike = 0.0,
    std: ArrayLike = 1.0,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Normal with a mean and a standard deviation: \(x = \mu + \sigma\varepsilon\).

    >>> import wonderland as wl
    >>> x = wl.random.normal((10000,), 3.0, 2.0, key=wl.random.key(0))
    >>> f"{x.mean():.1f} {x.std():.1f}"
    '3.0 2.0'

    By the method of Box and Muller, two at a time: \(\sqrt{-2\ln u}\,(\cos 2\pi v, \sin 2\pi v)\). The size
    of the noise stays below 6.8 in float32 (9.5 in float64). Book, chapter 1 (notation).
    """
    check_scale("normal", "std", std)
    key, shape, target, (mean, std) = prepare("normal", shape, key, dtype, mean, std)
    return located(standard_normal(key, shape, working_type(target)), mean, std, target)


def standard_normal(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """Normal noise in float32 or float64."""
    size = math.prod(shape)
    n = words_per(dtype)
    words = draw_words(key, ((size + 1) // 2,), 2 * n)
    radius = sqrt(log(open_fraction(words[:n], dtype)) * -2.0)
    angle = fraction(words[n:], dtype) * (2 * math.pi)
    pairs = concat([radius * cos(angle), radius * sin(angle)], axis=-1)
    return reshape(pairs[..., :size] if size % 2 else pairs, key.shape[:-1] + shape)


def truncated_normal(
    shape: ShapeLike | None = None,
    low: ArrayLike = -2.0,
    high: ArrayLike = 2.0,
    mean: ArrayLike = 0.0,
    std: ArrayLike = 1.0,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Normal, given that it is in [low, high]: \(x = \Phi^{-1}(\Phi(l) + u\,(\Phi(h) - \Phi(l)))\).

    >>> import wonderland as wl
    >>> x = wl.random.truncated_normal((1000,), -0.1, 0.1, std=0.05, key=wl.random.key(0))
    >>> bool((abs(x) <= 0.1).all())
    True

    The bounds are values of x (not numbers of standard deviations) and may be infinite. An interval with a
    probability below 1e-7 is refused: so far out in the tail the inverse has too few digits.
    """
    check_order("truncated_normal", low, high)
    check("truncated_normal", "std", std, lambda v: v > 0, "std > 0")
    check_shape_first("truncated_normal", shape, low, high, mean, std)
    target, values = floating_parameters("truncated_normal", dtype, low, high, mean, std)
    low, high, mean, std = (convert(x, dtypes.float64) for x in values)
    first, last = (erf((bound - mean) / (std * math.sqrt(2))) for bound in (low, high))
    check(
        "truncated_normal",
        "the probability of [low, high]",
        0.5 * (last - first),
        lambda v: v > 1e-7,
        "a wider interval",
    )
    key, shape = key_and_shape("truncated_normal", shape, key, target, low, high, mean, std)
    u = draw_fraction(key, shape, dtypes.float64)
    end = 1 - 2.0**-53
    x = mean + std * math.sqrt(2) * erfinv(clip(first + u * (last - first), -end, end))
    return rounded(where(x < low, low, where(x > high, high, x)), target)


def exponential(
    shape: ShapeLike | None = None, scale: ArrayLike = 1.0, *, key: KeyLike = None, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Exponential with mean `scale`: \(x = -s\ln u\), density \(e^{-x/s}/s\) for x > 0.

    >>> import wonderland as wl
    >>> x = wl.random.exponential((20000,), 3.0, key=wl.random.key(0))
    >>> f"{x.mean():.1f}"
    '3.0'
    """
    check_scale("exponential", "scale", scale)
    key, shape, target, (scale,) = prepare("exponential", shape, key, dtype, scale)
    return located(_standard_exponential(key, shape, working_type(target)), 0, scale, target)


def _standard_exponential(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    return -log(draw_open_fraction(key, shape, dtype))


def gumbel(
    shape: ShapeLike | None = None,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Gumbel, the limit law of maxima: \(x = \mu - s\ln(-\ln u)\).

    >>> import wonderland as wl
    >>> x = wl.random.gumbel((20000,), key=wl.random.key(0))
    >>> f"{x.mean():.2f}"  # Euler's constant
    '0.58'

    The index of the largest logit plus Gumbel noise is a draw from the softmax of the logits.
    """
    check_scale("gumbel", "scale", scale)
    key, shape, target, (loc, scale) = prepare("gumbel", shape, key, dtype, loc, scale)
    return located(standard_gumbel(key, shape, working_type(target)), loc, scale, target)


def standard_gumbel(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """Gumbel noise in float32 or float64."""
    # 1 - u is as uniform as u, and makes the long tail on the right the one with the fine steps
    return -log(-log1p(-draw_open_fraction(key, shape, dtype)))


def laplace(
    shape: ShapeLike | None = None,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Laplace, density \(e^{-|x-\mu|/s}/(2s)\), as the difference of two exponentials.

    >>> import wonderland as wl
    >>> x = wl.random.laplace((20000,), 1.0, 2.0, key=wl.random.key(0))
    >>> f"{x.mean():.1f} {abs(x - 1).mean():.1f}"
    '1.0 2.0'
    """
    check_scale("laplace", "scale", scale)
    key, shape, target, (loc, scale) = prepare("laplace", shape, key, dtype, loc, scale)
    work = working_type(target)
    n = words_per(work)
    words = draw_words(key, shape, 2 * n)
    return located(log(open_fraction(words[:n], work)) - log(open_fraction(words[n:], work)), loc, scale, target)


def logistic(
    shape: ShapeLike | None = None,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Logistic, \(x = \mu + s\ln\frac{u}{1-u}\): its distribution function is the sigmoid.

    >>> import wonderland as wl
    >>> x = wl.random.logistic((20000,), key=wl.random.key(0))
    >>> f"{(x < 1).astype(float).mean():.2f} {wl.sigmoid(1.0):.2f}"
    '0.73 0.73'
    """
    check_scale("logistic", "scale", scale)
    key, shape, target, (loc, scale) = prepare("logistic", shape, key, dtype, loc, scale)
    u = draw_open_fraction(key, shape, working_type(target))
    return located(log(u) - log1p(-u), loc, scale, target)


def cauchy(
    shape: ShapeLike | None = None,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Cauchy, \(x = \mu \pm s/\tan(\pi u/2)\) with a random sign: no mean, no variance.

    >>> import wonderland as wl
    >>> x = wl.random.cauchy((20000,), key=wl.random.key(0))
    >>> f"{(abs(x) < 1).astype(float).mean():.1f}"
    '0.5'
    """
    check_scale("cauchy", "scale", scale)
    key, shape, target, (loc, scale) = prepare("cauchy", shape, key, dtype, loc, scale)
    work = working_type(target)
    *words, sign = draw_words(key, shape, words_per(work) + 1)
    size = 1 / tan(open_fraction(words, work) * (math.pi / 2))
    return located(where(sign >> 31 == 1, size, -size), loc, scale, target)


# --- from noise to the result


def located(noise: Tensor, loc: Parameter, scale: Parameter, dtype: DType) -> Tensor:
    """loc + scale * noise in the dtype of the result; a plain 0 and 1 cost nothing."""
    x = noise if _is(scale, 1) else noise * scale
    return rounded(x if _is(loc, 0) else x + loc, dtype)


def rounded(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype == dtype else astype(x, dtype)


def _is(x: Parameter, number: float) -> bool:
    """Whether a parameter is this very number (a traced one may become anything)."""
    return not isinstance(x, Tensor) and bool(x == number)
