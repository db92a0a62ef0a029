"""Attention in NumPy, a tile of scores at a time, so that memory grows linearly with the sequences. Book, 11.2.2.

The functions take checked arrays with any leading axes. A tile of scores is found once for the result, and once more
for a derivative, with the log-sum-exp that was kept: the matrix of all scores never exists. What the functions
compute is said in attention.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..core.dtypes import DType, float32, is_half
from ..core.typing import Array
from .sight import Extras, Options, distances

Place = tuple[slice, slice, slice]  # of a tile: which matrices, which queries, which keys

# A tile is as large as this many queries and keys of one matrix, or holds several matrices of shorter sequences: large
# enough for NumPy to work rather than to be called, small enough for the processor's caches.
ROWS, COLUMNS = 256, 1024


def wide_of(dtype: DType) -> DType:
    """The dtype of sums: float32 for half types."""
    return float32 if is_half(dtype) else dtype


class Scores:
    """The scores q k^T scale of many matrices, with -inf where a query may not attend, to be had by the tile."""

    def __init__(self, q: Array, k: Array, extras: Extras[Array], options: Options) -> None:
        self.lead = q.shape[:-2]
        self.count = math.prod(self.lead)
        self.rows, self.columns = q.shape[-2], k.shape[-2]
        self.wide = wide_of(q.dtype)
        self.q, self.k = self.flat(q), self.flat(k)
        self.options = options
        self.scale = options.scale
        self.offsets = np.zeros(1, np.int64)  # of each matrix, or of all
        if extras.offsets is not None:
            self.offsets = np.broadcast_to(extras.offsets, self.lead).reshape(self.count).astype(np.int64)
        self.slopes = None if extras.slopes is None else self.flat(extras.slopes)
        mask = extras.mask
        # a view: no matrix is repeated in memory
        self.mask = None if mask is None else np.broadcast_to(mask, (*self.lead, self.rows, self.columns))
        self.one_mask = mask is not None and math.prod(mask.shape[:-2]) == 1

    def flat(self, x: Array) -> Array:
        """Vectors (lead, n, d) as (count, n, d), and numbers (lead, n) as columns (count, n, 1)."""
        width = x.shape[-1] if x.ndim == len(self.lead) + 2 else 1
        return x.reshape(self.count, x.shape[len(self.lead)], width).astype(self.wide, copy=False)

    def blocks(self) -> Iterator[tuple[slice, slice, list[slice]]]:
        """Which matrices, which of their queries, and the blocks of keys that some of these may see."""
        rows, columns = max(1, min(ROWS, self.rows)), max(1, min(COLUMNS, self.columns))
        many = max(1, ROWS * COLUMNS // (rows * columns))
        for n in range(0, self.count, many):
            for i in range(0, self.rows, rows):
                last = min(i + rows, self.rows)
                some = slice(n, min(n + many, self.count))
                low, high = self.options.bounds(self.places(some, slice(i, last)), self.columns)
                seen = int(high.max(initial=0))
                keys = [slice(j, min(j + columns, seen)) for j in range(int(low.min(initial=seen)), seen, columns)]
                yield some, slice(i, last), keys

    def places(self, group: slice, rows: slice) -> Array:
        """Where queries sit: (matrices, rows), or (1, rows) if all matrices are alike."""
        found = np.arange(rows.start, rows.stop) // self.options.group
        return (self.offsets[group] if len(self.offsets) > 1 else self.offsets)[:, None] + found

    def distances(self, place: Place) -> Array:
        """-|place - j| for a tile."""
        group, rows, columns = place
        return distances(self.places(group, rows), columns.start, columns.stop).astype(self.wide)

    def tile(self, place: Place) -> Array:
        group, rows, columns = place
        scores = (self.q[group, rows] * self.scale) @ self.k[group, columns].swapaxes(-1, -2)
        if self.slopes is not None:
            scores += self.slopes[group, rows] * self.distances(place)
        if self.mask is not None:
            mask = self._mask(self.mask, place)
            if mask.dtype.kind != "b":
                scores += mask
        seen = self.seen(place)
        if seen is not None:
            np.copyto(scores, -np.inf, where=~seen)  # whatever the product is
        return scores

    def seen(self, place: Place) -> Array | None:
        """Which scores of a tile count; None if all do."""
        group, rows, columns = place
        found: Array | None = None
        if self.mask is not None:
            found = self._mask(self.mask, place)
            found = found if found.dtype.kind == "b" else found != -np.inf
        if self.options.ahead is not None:
            low, high = self.options.bounds(self.places(group, rows), self.columns)
            if low.max(initial=0) > columns.start or high.min(initial=self.columns) < columns.stop:
                keys = np.arange(columns.start, columns.stop)
                within = (keys >= low[..., None]) & (keys < high[..., None])
                within = within[0] if len(within) == 1 else within
                found = within if found is None else found & within
        return found

    def product(self, left: Array, right: Array, place: Place, turned: bool = False) -> Array:
        """left right, or left^T right if turned, for a left that lies as a tile: what is not seen does not count.

        It has the weight 0 there, and 0 times NaN or infinity is NaN. So a result without NaN is right.
        """
        left = left.swapaxes(-1, -2) if turned else left
        out = left @ right
        seen = self.seen(place) if np.isnan(out).any() else None
        if seen is None:
            return out
        seen = seen.swapaxes(-1, -2) if turned else seen
        left = np.where(seen, left, self.wide.type(0))
        bad = ~np.isfinite(right).all(axis=(0, -1))
        out = left[..., ~bad] @ right[:, ~bad]
        for k in np.flatnonzero(bad):
            out += np.where(seen[..., k, None], left[..., k, None] * right[:, k, None], self.wide.type(0))
        return out

    def changes(self, found: Array, p: Array, place: Place) -> Array:
        """found * p, with 0 where nothing is seen."""
        found *= p
        if np.isnan(found.sum()):
            seen = self.seen(place)
            if seen is not None:
                np.copyto(found, 0, where=~seen)
        return found

    def _mask(self, mask: Array, place: Place) -> Array:
        group, rows, columns = place
        if self.one_mask:
            return mask[(0,) * len(self.lead)][rows, columns]
        which: tuple[Array | slice, ...] = np.unravel_index(np.arange(group.start, group.stop), self.lead or (1,))
        return mask[(*which[: len(self.lead)], rows, columns)]


def attend(q: Array, k: Array, v: Array, extras: Extras[Array], options: Options) -> list[Array]:
    """The result (lead, t, e) and the log-sum-exp of every row of scores (lead, t)."""
    scores = Scores(q, k, extras, options)
    values = scores.flat(v)
    out = np.empty((scores.count, scores.rows, v.shape[-1]), q.dtype)
    lse = np.empty((scores.count, scores.rows, 1), scores.wide)
    for group, rows, blocks in scores.blocks():
        height = (group.stop - group.start, rows.stop - rows.start)
        top = np.full((*height, 1), -np.inf, scores.wide)  # the running maximum, and sums relative to its exponential
        total = np.zeros((*height, 1), scores.wide)
        sums = np.zeros((*height, v.shape[-1]), scores.wide)
        for columns in blocks:
            tile = scores.tile((group, rows, columns))
            higher = np.maximum(top, tile.max(axis=-1, keepdims=True))
            base = np.where(higher == -np.inf, scores.wide.type(0), higher)  # exp(-inf - 0) is 0
            weights = np.exp(np.subtract(tile, base, out=tile), out=tile)
            shrink = np.exp(top - base)
            total = total * shrink + weights.sum(axis=-1, keepdims=True)
            sums = sums * shrink + scores.product(weights, values[group, columns], (group, rows, columns))
            top = higher
        nothing = total == 0
        total[nothing] = 1
        out[group, rows] = sums / total
        lse[group, rows] = np.where(nothing, 0, top + np.log(total))
    return [out.reshape(*q.shape[:-1], v.shape[-1]), lse.reshape(q.shape[:-1])]


class Weights(NamedTuple):
    """One tile of exp(scores - log-sum-exp), and where it lies."""

    group: slice
    rows: slice
    columns: slice
    values: Array


def weights_of(scores: Scores, lse: Array) -> Iterator[Weights]:
    """The attention weights, tile by tile."""
    base = scores.flat(lse)
    for group, rows, blocks in scores.blocks():
        for columns in blocks:
            tile = scores.tile((group, rows, columns))
            np.subtract(tile, base[group, rows], out=tile)
            yield Weights(group, rows, columns, np.exp(tile, out=tile))


def push(
    tangents: Sequence[Array], q: Array, k: Array, v: Array, lse: Array, extras: Extras[Array], options: Options
) -> list[Array]:
    """For tangents of q, k, v, and of slopes if there are some: (P * dS) v + P tv and the row sums of P * dS."""
    scores = Scores(q, k, extras, options)
    v = scores.flat(v)
    tq, tk, tv, *tilts = (scores.flat(x) for x in tangents)
    moved = np.zeros((scores.count, scores.rows, v.shape[-1]), scores.wide)
    shift = np.zeros((scores.count, scores.rows, 1), scores.wide)
    for group, rows, columns, p in weights_of(scores, lse):
        place = group, rows, columns
        change = tq[group, rows] @ scores.k[group, columns].swapaxes(-1, -2)
        change += scores.q[group, rows] @ tk[group, columns].swapaxes(-1, -2)
        change *= scores.scale
        for tilt in tilts:
            change += tilt[group, rows] * scores.distances(place)
        change = scores.changes(change, p, place)
        moved[group, rows] += scores.product(change, v[group, columns], place)
        moved[group, rows] += scores.product(p, tv[group, columns], place)
        shift[group, rows] += change.sum(axis=-1, keepdims=True)
    return [moved.reshape(*q.shape[:-1], v.shape[-1]), shift.reshape(q.shape[:-1])]


def pull(
    adjoints: Sequence[Array], q: Array, k: Array, v: Array, lse: Array, extras: Extras[Array], options: Options
) -> list[Array]:
    """The transpose of `push`: adjoints of q, k, v, and of slopes if there are some, for adjoints of its results."""
    scores = Scores(q, k, extras, options)
    g, h = adjoints
    g, h, values = (scores.flat(x) for x in (g, h, v))
    dq, dk, dv = (np.zeros(x.shape, scores.wide) for x in (scores.q, scores.k, values))
    tilts = np.zeros(h.shape, scores.wide)
    for group, rows, columns, p in weights_of(scores, lse):
        place = group, rows, columns
        dv[group, columns] += scores.product(p, g[group, rows], place, turned=True)
        change = g[group, rows] @ values[group, columns].swapaxes(-1, -2)
        change += h[group, rows]
        change = scores.changes(change, p, place)
        if options.tilted:
            tilts[group, rows] += (change * scores.distances(place)).sum(axis=-1, keepdims=True)
        change *= scores.scale
        dq[group, rows] += scores.product(change, scores.k[group, columns], place)
        dk[group, columns] += scores.product(change, scores.q[group, rows], place, turned=True)
    found = [d.reshape(x.shape).astype(x.dtype, copy=False) for d, x in ((dq, q), (dk, k), (dv, v))]
    return [*found, tilts.reshape(q.shape[:-1])] if options.tilted else found
