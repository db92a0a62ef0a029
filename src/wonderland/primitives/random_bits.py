"""Random bits from a counter: Philox-4x32-10 (Salmon et al., "Parallel random numbers", 2011).

Philox scrambles a counter of four 32-bit words under a key of two words into four words. It has no state, so
element i of a draw is known without the elements before it, and the same key gives the same bits eagerly,
compiled and batched.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from ..core.dtypes import uint32
from ..core.errors import DTypeError, ShapeError
from ..core.primitive import ZERO, Aval, Primitive, Shape
from ..core.typing import Array, Shaped
from .creation import check_size

# What a block of bits is for stands in the last word of its counter, so that the bits of a draw never are
# those from which new keys are made.
DRAW, SPLIT, FOLD = 0, 1, 2

_MASK = 0xFFFFFFFF
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
# the golden ratio and the square root of 3, less 1: added to the key in each round
WEYL = 0x9E3779B9, 0xBB67AE85
_TILE = 8192  # blocks computed together: small enough for the cache
_FEW = 16  # blocks for which Python's integers are faster than NumPy


Word = TypeVar("Word", int, Array)  # a Python integer, or an array of them


def philox(counter: tuple[Word, Word, Word, Word], key: tuple[Word, Word]) -> tuple[Word, Word, Word, Word]:
    """Ten rounds of Philox-4x32 on words that are Python integers, or uint64 arrays that hold 32 bits each.

    >>> [hex(word) for word in philox((0, 0, 0, 0), (0, 0))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for i in range(10):
        if i:
            k0, k1 = (k0 + WEYL[0]) & _MASK, (k1 + WEYL[1]) & _MASK
        even, odd = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = (odd >> 32) ^ c1 ^ k0, odd & _MASK, (even >> 32) ^ c3 ^ k1, even & _MASK
    return c0, c1, c2, c3


def _random_bits(key: Array, shape: Shape, domain: int) -> Array:
    size = math.prod(shape)
    lead = key.shape[:-1]
    check_size("random_bits", lead + shape, uint32)
    keys = key.reshape(-1, 2)
    out = np.empty((len(keys), -(-size // 4), 4), np.uint32)
    fill = _fill_few if out.size <= 4 * _FEW else _fill_many
    fill(out, keys, domain)
    return out.reshape(len(keys), 4 * out.shape[1])[:, :size].reshape(lead + shape)


def _fill_few(out: Array, keys: Array, domain: int) -> None:
    for row, (low, high) in zip(out, keys.tolist(), strict=True):
        for block in range(len(row)):
            row[block] = philox((block, 0, 0, domain), (low, high))


def _fill_many(out: Array, keys: Array, domain: int) -> None:
    """Tile by tile: some of the blocks for some of the keys."""
    low, high = keys.astype(np.uint64).T[:, :, None]
    blocks = out.shape[1]
    rows = max(1, _TILE // blocks)
    for start in range(0, blocks, _TILE):
        number = np.arange(start, min(start + _TILE, blocks), dtype=np.uint64)
        counter = number & _MASK, number >> 32, np.uint64(0), np.uint64(domain)
        for first in range(0, len(keys), rows):
            some = slice(first, first + rows)
            for i, word in enumerate(philox(counter, (low[some], high[some]))):
                out[some, start : start + _TILE, i] = word


def _random_bits_abstract(key: Shaped, shape: Shape, domain: int) -> Aval:
    if key.dtype != uint32:
        raise DTypeError(f"random_bits: a key is uint32, received {key.dtype}.", "wl.random.key(seed)")
    if key.shape[-1:] != (2,):
        raise ShapeError(f"random_bits: a key has shape (2,), received {key.shape}.", "wl.random.key(seed)")
    out = key.shape[:-1] + shape
    check_size("random_bits", out, uint32)
    return Aval(out, uint32)


# random_bits(key; shape, domain): uint32 of shape key.shape[:-1] + shape. Element i of the flattened draw is
# word i % 4 of block i // 4, whose counter is (low word of the block's number, high word, 0, domain).
random_bits: Primitive = Primitive(
    "random_bits",
    _random_bits,
    _random_bits_abstract,
    jvp=(ZERO,),
    batch=lambda args, batched, shape, domain: random_bits(args[0], shape=shape, domain=domain),
    cost=lambda key, shape, domain: 5 * math.prod(key.shape[:-1] + shape),  # 20 products for 4 words
)
