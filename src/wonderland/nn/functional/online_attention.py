r"""Attention by chunks of keys and values, as the book derives it. Book, section 11.2.2.

With \(h_c = \exp(Q K_c^\top) V_c\) and \(L_c = \exp(Q K_c^\top) 1\) for every chunk c, the result is
\(\sum_c h_c / \sum_c L_c\): chunks may come one after another, or from other workers, and no matrix of all scores is
needed. The exponentials would overflow, so the largest score so far, m, is kept, and sums of earlier chunks are
multiplied by \(\exp(m_{\text{old}} - m_{\text{new}})\).

This is the readable form; `scaled_dot_product_attention` does the same natively, and its backward pass by chunks, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ... import arrays
from ...arrays.conversion import promote_inexact
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike

__all__ = ["online_attention", "ring_attention"]


class Sums(NamedTuple):
    """What is kept of the chunks so far: the largest score (..., t, 1), the weights' sum, and the values' sum."""

    largest: Tensor
    total: Tensor
    values: Tensor


def online_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    chunk: int,
    scale: float | None = None,
    causal: bool = False,
    stable: bool = True,
) -> Tensor:
    r"""\(\operatorname{softmax}(q k^\top/\sqrt{d})\,v\) by chunks of so many keys and values. Book, E.11.4 to E.11.8.

    >>> import wonderland as wl
    >>> q, k, v = (wl.random.normal((10, 4), key=wl.random.key(i)) for i in range(3))
    >>> by_chunks = wl.nn.functional.online_attention(q, k, v, chunk=3)
    >>> bool(wl.allclose(by_chunks, wl.nn.functional.scaled_dot_product_attention(q, k, v), atol=1e-6))
    True

    (..., t, d), (..., s, d) and (..., s, e) give (..., t, e), the same for every `chunk`, which need not divide s. With
    `causal`, query i sees the keys j <= i, and chunks are skipped for the queries before them. `stable=False` is the
    form of the text, without the largest score: it overflows where scores are large. `scale` takes the place of
    \(1/\sqrt{d}\), which the text leaves out.
    """
    name = "online_attention"
    q, k, v = _checked(name, q, k, v)
    size = as_int(name, "chunk", chunk, 1)
    factor = _factor(name, q, scale)
    sums = _nothing(q, v)
    for start in range(0, k.shape[-2], size):
        end = min(start + size, k.shape[-2])
        first = start if causal else 0  # queries before that see nothing of the chunk
        if first >= q.shape[-2]:
            break
        asked, kept = q[..., first:, :], Sums(*(part[..., first:, :] for part in sums))
        offset = start - first if causal else None
        added = _added(kept, asked, k[..., start:end, :], v[..., start:end, :], factor, offset, stable)
        pairs = zip(sums, added, strict=True)
        sums = Sums(*(arrays.concat([old[..., :first, :], new], axis=-2) if first else new for old, new in pairs))
    return _result(sums)


def ring_attention(
    queries: Sequence[ArrayLike],
    keys: Sequence[ArrayLike],
    values: Sequence[ArrayLike],
    scale: float | None = None,
    causal: bool = False,
) -> list[Tensor]:
    """Attention of a sequence that is spread over workers, each with its part: simulated, one list entry for each.

    >>> import wonderland as wl
    >>> parts = [wl.ones((5, 4)), wl.zeros((5, 4))]  # ten tokens on two workers
    >>> [out.shape for out in wl.nn.functional.ring_attention(parts, parts, parts)]
    [(5, 4), (5, 4)]

    Every worker keeps its queries. In each round it adds the chunk of keys and values that it holds to its sums, and
    hands the chunk to its neighbour; after as many rounds as there are workers all have seen all. (The book has keys
    and queries go round, which would leave nothing to add to.) With `causal` the parts are in the order of time.
    """
    name, count = "ring_attention", len(queries)
    if not count or not len(keys) == len(values) == count:
        raise InputError(f"{name}: {count} queries, {len(keys)} keys, {len(values)} values.", "one of each per worker")
    workers = [_checked(name, *part) for part in zip(queries, keys, values, strict=True)]
    starts = [sum(k.shape[-2] for _, k, _ in workers[:i]) for i in range(count)]
    if causal and [q.shape[-2] for q, _, _ in workers] != [k.shape[-2] for _, k, _ in workers]:
        raise InputError(f"{name}: causal, and other numbers of queries than of keys.", "the same tokens for both")
    sums = [_nothing(q, v) for q, _, v in workers]
    held = list(range(count))  # whose chunk each worker has
    for _ in range(count):
        for i, owner in enumerate(held):
            if not (causal and owner > i):
                q, (_, k, v) = workers[i][0], workers[owner]
                offset = starts[owner] - starts[i] if causal else None
                sums[i] = _added(sums[i], q, k, v, _factor(name, q, scale), offset, stable=True)
        held = [held[i - 1] for i in range(count)]
    return [_result(part) for part in sums]


def _nothing(q: Tensor, v: Tensor) -> Sums:
    rows = q.shape[:-1]
    largest = arrays.full((*rows, 1), -math.inf, dtype=q.dtype)
    return Sums(largest, arrays.zeros((*rows, 1), dtype=q.dtype), arrays.zeros((*rows, v.shape[-1]), dtype=q.dtype))


def _added(sums: Sums, q: Tensor, k: Tensor, v: Tensor, factor: float, offset: int | None, stable: bool) -> Sums:
    """The sums with one more chunk; `offset` is how far its keys stand behind the queries, if that matters."""
    scores = (q @ arrays.swapaxes(k, -1, -2)) * factor
    if offset is not None:
        seen = arrays.arange(k.shape[-2]) + offset <= arrays.arange(q.shape[-2])[:, None]
        scores = arrays.where(seen, scores, -math.inf)
    if not stable:
        weights = arrays.exp(scores)
        total = sums.total + arrays.sum(weights, axis=-1, keepdims=True)
        return Sums(sums.largest, total, sums.values + weights @ v)
    largest = arrays.maximum(sums.largest, arrays.max(scores, axis=-1, keepdims=True))
    shift = arrays.where(largest == -math.inf, 0.0, largest)  # nothing seen yet
    old, weights = arrays.exp(sums.largest - shift), arrays.exp(scores - shift)
    total = sums.total * old + arrays.sum(weights, axis=-1, keepdims=True)
    return Sums(largest, total, sums.values * old + weights @ v)


def _result(sums: Sums) -> Tensor:
    return sums.values / arrays.where(sums.total == 0, 1.0, sums.total)


def _factor(name: str, q: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else float(as_number(name, "scale", scale))


def _checked(name: str, q: ArrayLike, k: ArrayLike, v: ArrayLike) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = promote_inexact(name, q, k, v)
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"{name}: queries {q.shape}, keys {k.shape}, values {v.shape}.", "(..., t, d), (..., s, d) and (..., s, e)"
        )
    return q, k, v
