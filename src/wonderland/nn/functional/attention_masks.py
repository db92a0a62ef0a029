"""Masks of attention: who may attend to whom, (queries, keys), true = may. Book, section 11.1.1; notes, 5.9.1.

Queries stand at places 0, 1, ..., or further on by an `offset`, keys at 0, 1, .... Masks of two kinds are combined by
`&` (both must allow it) and `|` (one of them is enough).
"""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...random.continuous import uniform
from ...random.streams import take_key

__all__ = [
    "band_mask", "block_mask", "causal_mask", "dilated_mask", "global_mask", "length_mask", "prefix_mask",
    "random_mask",
]  # fmt: skip


def _sizes(name: str, queries: int, keys: int | None, offset: int = 0) -> tuple[Tensor, Tensor, int, int]:
    """The places of queries as a column and of keys as a row, and how many there are of each."""
    t = as_int(name, "queries", queries, 0)
    s = t + offset if keys is None else as_int(name, "keys", keys, 0)
    return arrays.arange(t)[:, None] + offset, arrays.arange(s)[None, :], t, s


def causal_mask(queries: int, keys: int | None = None, offset: int = 0) -> Tensor:
    """Token i sees the tokens j <= i: what comes later is hidden. Book, section 11.1.1.

    >>> causal_mask(3).tolist()
    [[True, False, False], [True, True, False], [True, True, True]]

    The book prints the condition the other way round, which would hide the past.
    """
    i, j, _, _ = _sizes("causal_mask", queries, keys, as_int("causal_mask", "offset", offset, 0))
    return j <= i


def prefix_mask(queries: int, prefix: int, keys: int | None = None) -> Tensor:
    """All tokens see the first `prefix` ones, and else the past: a decoder that reads its input both ways.

    >>> prefix_mask(3, 2).tolist()
    [[True, True, False], [True, True, False], [True, True, True]]
    """
    i, j, _, _ = _sizes("prefix_mask", queries, keys)
    return (j <= i) | (j < as_int("prefix_mask", "prefix", prefix, 0))


def band_mask(queries: int, width: int, keys: int | None = None, causal: bool = False) -> Tensor:
    """Tokens see those less than `width` places away, on both sides or, if causal, behind them. Notes, 5.9.1.

    >>> band_mask(4, 2, causal=True).tolist()[3]
    [False, False, True, True]
    """
    width = as_int("band_mask", "width", width, 1)
    i, j, _, _ = _sizes("band_mask", queries, keys)
    near = (i - j < width) & (j - i < width)
    return near & (j <= i) if causal else near


def dilated_mask(queries: int, width: int, dilation: int, keys: int | None = None, causal: bool = False) -> Tensor:
    """A band with holes: every `dilation`-th place, less than `width` of these steps away. Notes, 5.9.1.

    >>> dilated_mask(5, 3, 2, causal=True).tolist()[4]
    [True, False, True, False, True]
    """
    width, dilation = as_int("dilated_mask", "width", width, 1), as_int("dilated_mask", "dilation", dilation, 1)
    i, j, _, _ = _sizes("dilated_mask", queries, keys)
    near = band_mask(queries, (width - 1) * dilation + 1, keys, causal)
    return near & ((i - j) % dilation == 0)


def global_mask(queries: int, tokens: ArrayLike, keys: int | None = None) -> Tensor:
    """Some tokens see all others and are seen by all; the others see only those. Notes, 5.9.1.

    >>> global_mask(3, [0]).tolist()
    [[True, True, True], [True, False, False], [True, False, False]]

    `tokens` are their places. Usually together with a band: `global_mask(n, [0]) | band_mask(n, 3)`.
    """
    i, j, t, s = _sizes("global_mask", queries, keys)
    chosen = arrays.reshape(as_tensor("global_mask", arrays.asarray(tokens)), (-1,))
    if chosen.size and not 0 <= int(chosen.min()) <= int(chosen.max()) < max(t, s):
        raise InputError(f"global_mask: tokens {chosen.tolist()} of {max(t, s)}.", f"places from 0 to {max(t, s) - 1}")
    rows, columns = (arrays.any(x[..., None] == chosen, axis=-1) for x in (i, j))
    return rows | columns


def random_mask(queries: int, count: int, keys: int | None = None, *, key: KeyLike = None) -> Tensor:
    """Every token sees `count` others, chosen at random. Notes, 5.9.1.

    >>> import wonderland as wl
    >>> random_mask(6, 2, key=wl.random.key(0)).sum(axis=1).tolist()
    [2, 2, 2, 2, 2, 2]
    """
    _, _, t, s = _sizes("random_mask", queries, keys)
    count = as_int("random_mask", "count", count, 0)
    if count > s:
        raise InputError(f"random_mask: {count} of {s} keys.", f"at most {s}")
    drawn = uniform((t, s), key=take_key("random_mask", key))
    ranks = arrays.argsort(arrays.argsort(drawn, axis=1), axis=1)
    return ranks < count


def block_mask(queries: int, size: int, keys: int | None = None, causal: bool = False) -> Tensor:
    """Tokens see those of their own block of `size` places. Notes, 5.9.1.

    >>> block_mask(4, 2).tolist()
    [[True, True, False, False], [True, True, False, False], [False, False, True, True], [False, False, True, True]]
    """
    size = as_int("block_mask", "size", size, 1)
    i, j, _, _ = _sizes("block_mask", queries, keys)
    same = i // size == j // size
    return same & (j <= i) if causal else same


def length_mask(lengths: ArrayLike, time: int) -> Tensor:
    """Which tokens of sequences (..., time) are real, given how many: the mask of padding at the end.

    >>> length_mask([1, 3], 3).tolist()
    [[True, False, False], [True, True, True]]
    """
    counts = as_tensor("length_mask", arrays.asarray(lengths))
    return arrays.arange(as_int("length_mask", "time", time, 0)) < arrays.expand_dims(counts, -1)
