"""From random 32-bit words to fractions between 0 and 1, by steps that are exact or round once (IEEE 754)."""

from __future__ import annotations

import math

import ml_dtypes

from ..arrays import astype, minimum
from ..core import dtypes
from ..core.dtypes import DType
from ..core.tensor import Tensor
from ..primitives.random_bits import DRAW, random_bits
from ..primitives.structure import reshape

Shape = tuple[int, ...]


def draw_words(key: Tensor, shape: Shape, count: int) -> list[Tensor]:
    """`count` tensors of random words, each of shape key.shape[:-1] + shape."""
    lead = key.shape[:-1]
    if count == 1:
        return [random_bits(key, shape=shape, domain=DRAW)]
    flat = random_bits(key, shape=(count, math.prod(shape)), domain=DRAW)
    return [reshape(flat[(..., i, slice(None))], shape=lead + shape) for i in range(count)]


def words_per(dtype: DType) -> int:
    """The words that make one fraction."""
    return 2 if dtype == dtypes.float64 else 1


def fraction(words: list[Tensor], dtype: DType) -> Tensor:
    """A multiple of 2^-d in [0, 1), each equally likely; d is the number of digits of the dtype."""
    if dtype == dtypes.float64:
        high, low = words
        return astype(high >> 5, dtype) * 2.0**-27 + astype(low >> 6, dtype) * 2.0**-53
    digits = ml_dtypes.finfo(dtype).nmant + 1
    return astype(words[0] >> (32 - digits), dtype) * 2.0**-digits


def open_fraction(words: list[Tensor], dtype: DType) -> Tensor:
    """A number in (0, 1), finer near 0: from 2^-33 (2^-65 in float64) to the last one below 1."""
    if dtype == dtypes.float64:
        high, low = words
        u = astype(high, dtype) * 2.0**-32 + (astype(low, dtype) * 2.0**-64 + 2.0**-65)
        return minimum(u, 1 - 2.0**-53)
    return minimum(astype(words[0], dtype) * 2.0**-32 + 2.0**-33, 1 - 2.0**-24)


def draw_fraction(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    return fraction(draw_words(key, shape, words_per(dtype)), dtype)


def draw_open_fraction(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    return open_fraction(draw_words(key, shape, words_per(dtype)), dtype)


def draw_wide(key: Tensor, shape: Shape) -> Tensor:
    """Random integers of 64 bits."""
    high, low = draw_words(key, shape, 2)
    return (astype(high, dtypes.uint64) << 32) | astype(low, dtypes.uint64)
