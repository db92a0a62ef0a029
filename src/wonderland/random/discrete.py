"""Integers, coins and categories."""

from __future__ import annotations

import numpy as np

from ..arrays import argmax, astype, moveaxis, zeros_like
from ..arrays.conversion import as_shape, convert
from ..core import dtypes
from ..core.broadcasting import normalize_axis
from ..core.dtypes import as_dtype, is_integer, uint64
from ..core.errors import DTypeError, InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike
from .arguments import (
    Parameter,
    as_parameter_tensor,
    check,
    check_order,
    check_shape_first,
    exactly,
    floating_type,
    key_and_shape,
    known,
    parameter,
    working_type,
)
from .continuous import standard_gumbel
from .words import draw_fraction, draw_words

_MASK = 0xFFFFFFFF


def randint(
    shape: ShapeLike,
    low: ArrayLike,
    high: ArrayLike | None = None,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Integers from low to high - 1, each equally likely; `randint(shape, n)` from 0 to n - 1.

    >>> import wonderland as wl
    >>> dice = wl.random.randint((1000,), 1, 7, key=wl.random.key(0))
    >>> print(dice.min(), dice.max())
    tensor(1) tensor(6)

    Each is low plus \(\lfloor n w / 2^{96}\rfloor\), where n is high - low (at most \(2^{64} - 1\)) and w a
    random 96-bit number, so no probability is off by more than a factor \(1 \pm 2^{-32}\).
    """
    check_shape_first("randint", shape, low, high)
    if high is None:
        low, high = 0, low
    low, high = parameter("randint", low), parameter("randint", high)
    target = as_dtype(dtypes.default_int if dtype is None else dtype)
    if not is_integer(target):
        raise DTypeError(f"randint: draws integers, not {target}.", "dtype=wl.int64, or wl.random.uniform")
    for bound in (low, high):
        if not (isinstance(bound, int) or (isinstance(bound, Tensor) and is_integer(bound.dtype))):
            raise DTypeError(f"randint: a bound is {getattr(bound, 'dtype', type(bound).__name__)}.", "integer bounds")
    check_order("randint", low, high)
    limits = np.iinfo(target)
    check("randint", "low", low, lambda v: v >= limits.min, f"at least {limits.min} for {target}")
    check("randint", "high", high, lambda v: v <= limits.max + 1, f"at most {limits.max + 1} for {target}")
    span = _span(low, high)
    if span is not None and span >= 2**64:
        raise InputError(f"randint: the range has {span} numbers.", "at most 2**64 - 1 numbers")
    key, sizes = key_and_shape("randint", shape, key, target, low, high)
    start, stop = _modular(low), _modular(high)
    # the two ways give the same numbers; the short one needs a range that is known
    below = _below_narrow if span is not None and span <= _MASK else _below
    return astype(start + below(draw_words(key, sizes, 3), stop - start), target)


def _span(low: Parameter, high: Parameter) -> int | None:
    """The largest difference of bounds, if they are known."""
    first, last = exactly(low), exactly(high)
    if first is None or last is None or not first.size or not last.size:
        return None
    return int(np.max(last.astype(object) - first.astype(object)))  # Python's integers do not overflow


def _modular(x: Parameter) -> Tensor:
    """An integer modulo 2^64, in which sums and differences come out right whatever the signs."""
    return convert(x % 2**64 if isinstance(x, int) else x, uint64)


def _below(words: list[Tensor], n: Tensor) -> Tensor:
    """The whole part of n times the fraction whose digits are the words, the last digit first."""
    n_low, n_high = n & _MASK, n >> 32
    total = zeros_like(n)
    for word in words:
        digit = astype(word, uint64)
        low = digit * n_low + (total & _MASK)
        total = digit * n_high + (total >> 32) + (low >> 32)
    return total


def _below_narrow(words: list[Tensor], n: Tensor) -> Tensor:
    """The same for n below 2^32, where no product exceeds 64 bits."""
    total = zeros_like(n)
    for word in words:
        total = (astype(word, uint64) * n + total) >> 32
    return total


def bernoulli(
    shape: ShapeLike | None = None, p: ArrayLike = 0.5, *, key: KeyLike = None, dtype: DTypeLike | None = None
) -> Tensor:
    """True with probability p, in steps of 2^-24 (2^-53 if p is float64); 0 and 1 in another dtype.

    >>> import wonderland as wl
    >>> wl.random.bernoulli((3,), 1.0)
    tensor([ True,  True,  True])

    The derivative with respect to p is zero: the result does not change with small changes of p.
    """
    check_shape_first("bernoulli", shape, p)
    p = parameter("bernoulli", p)
    check("bernoulli", "p", p, lambda v: (v >= 0) & (v <= 1), "probabilities from 0 to 1")
    work = working_type(floating_type("bernoulli", None, p))
    target = dtypes.bool_ if dtype is None else as_dtype(dtype)
    p = convert(p, work)
    key, sizes = key_and_shape("bernoulli", shape, key, target, p)
    hit = draw_fraction(key, sizes, work) < p
    return hit if target == dtypes.bool_ else astype(hit, target)


def rademacher(shape: ShapeLike = (), *, key: KeyLike = None, dtype: DTypeLike | None = None) -> Tensor:
    """-1 or 1, each with probability one half, in a floating or a signed integer dtype.

    >>> import wonderland as wl
    >>> wl.unique(wl.random.rademacher((100,)))
    tensor([-1.,  1.])
    """
    check_shape_first("rademacher", shape)
    target = dtypes.default_float if dtype is None else as_dtype(dtype)
    if target.kind in "bu":
        raise DTypeError(f"rademacher: {target} cannot hold -1.", "a floating or a signed dtype")
    key, sizes = key_and_shape("rademacher", shape, key, target)
    (words,) = draw_words(key, sizes, 1)
    return astype(words >> 31, target) * 2 - 1


def categorical(logits: ArrayLike, axis: int = -1, shape: ShapeLike = (), *, key: KeyLike = None) -> Tensor:
    r"""Indices i with probability \(e^{z_i} / \sum_j e^{z_j}\): draws from the softmax of the logits.

    >>> import wonderland as wl
    >>> logits = wl.log(wl.tensor([0.5, 0.5, 0.0]))
    >>> wl.random.categorical(logits, shape=(10000,)).max()
    tensor(1)

    The result is int64 of the shape `shape` followed by the shape of the logits without the axis. The largest
    logit plus Gumbel noise wins, so logits need no normalisation and -inf is never drawn. Book, 8.4.
    """
    logits = as_parameter_tensor("categorical", logits)
    place = normalize_axis("categorical", axis, logits.ndim)
    logits = moveaxis(convert(logits, working_type(floating_type("categorical", None, logits))), place, -1)
    if not logits.shape[-1]:
        raise InputError(f"categorical: axis {axis} of the logits has size 0.", "at least one category")
    value = known(logits)
    if value is not None and not np.all(np.isfinite(value.max(axis=-1))):
        raise InputError(
            "categorical: some logits are NaN, +inf, or -inf for every category.",
            "at least one finite logit in each row",
        )
    sizes = (*as_shape("categorical", shape), *logits.shape)
    key, sizes = key_and_shape("categorical", sizes, key, logits.dtype, logits)
    return argmax(logits + standard_gumbel(key, sizes, logits.dtype), axis=-1)
