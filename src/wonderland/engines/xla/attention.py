"""Attention by tiles of keys with a running maximum; what is masked does not contribute, even if it is NaN.

A tile has all queries and TILE keys, so memory grows with the number of queries and with that of keys, and not with
their product; up to TILE keys are one tile, without a loop. See primitives/attention.py for the formulas; names are
as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import bool_
from ...primitives.sight import Extras, Options, Parameters
from .contractions import matmul
from .widening import wide

TILE = 256
Index = int | jax.Array
State = TypeVar("State")


class Scene:
    """All queries and keys, and where they sit."""

    def __init__(self, q: jax.Array, k: jax.Array, operands: Sequence[jax.Array], options: Options) -> None:
        self.options = options
        self.q, self.k = wide(q), wide(k)
        self.extras: Extras[jax.Array] = Extras.of(operands, options)
        self.places = jnp.arange(q.shape[-2], dtype=jnp.int64)[:, None] // options.group
        if self.extras.offsets is not None:
            self.places = self.places + self.extras.offsets.astype(jnp.int64)[..., None, None]

    def over_tiles(self, step: Callable[[Tile, State], State], state: State) -> State:
        """The state after a step for each tile of keys, in their order."""
        keys = self.k.shape[-2]
        if keys <= TILE:
            return step(Tile(self, 0, keys), state)
        many, rest = divmod(keys, TILE)
        state = lax.fori_loop(0, many, lambda i, state: step(Tile(self, i * TILE, TILE), state), state)
        return step(Tile(self, many * TILE, rest), state) if rest else state


class Rows:
    """Vectors that are multiplied by weights, and whether all of them are finite: 0 times what is not is NaN.

    That is asked once for all tiles, since on several devices the answer is a message between them.
    """

    def __init__(self, values: jax.Array) -> None:
        self.values = wide(values)
        self.finite = jnp.isfinite(self.values).all()


class Tile:
    """Some keys, and what all queries have to do with them."""

    def __init__(self, scene: Scene, start: Index, width: int) -> None:
        self.scene, self.start, self.width = scene, start, width
        self.k = self.of(scene.k)
        self.mask = scene.extras.mask
        if self.mask is not None and self.mask.shape[-1] > 1:
            self.mask = lax.dynamic_slice_in_dim(self.mask, start, width, axis=self.mask.ndim - 1)
        self.ahead = start + jnp.arange(width, dtype=jnp.int64) - scene.places  # (.., t, width)
        self.seen = self._seen()

    def of(self, x: jax.Array) -> jax.Array:
        """The vectors of these keys, of those (.., s, d) of all."""
        return lax.dynamic_slice_in_dim(x, self.start, self.width, axis=x.ndim - 2)

    def into(self, x: jax.Array, part: jax.Array) -> jax.Array:
        """x with other vectors for these keys."""
        return lax.dynamic_update_slice_in_dim(x, part.astype(x.dtype), self.start, axis=x.ndim - 2)

    def _seen(self) -> jax.Array | None:
        """True where a query sees a key; None if all see all."""
        parts, options = [], self.scene.options
        if self.mask is not None:
            parts.append(self.mask if self.mask.dtype == bool_ else self.mask != -np.inf)
        if options.ahead is not None:
            parts.append(self.ahead < options.ahead)
            if options.window is not None:
                parts.append(self.ahead > -options.window)
        if not parts:
            return None
        seen = parts[0]
        for part in parts[1:]:
            seen = seen & part
        return jnp.broadcast_to(seen, (*self.scene.q.shape[:-1], self.width))

    @property
    def distances(self) -> jax.Array:
        return -jnp.abs(self.ahead).astype(self.scene.q.dtype)

    def scores(self) -> jax.Array:
        q, slopes = self.scene.q, self.scene.extras.slopes
        found = matmul(q * np.asarray(self.scene.options.scale, q.dtype), self.k.mT)
        if slopes is not None:
            found = found + slopes[..., None] * self.distances
        if self.mask is not None and self.mask.dtype != bool_:
            found = found + wide(self.mask)
        return self.only_seen(found, -np.inf)

    def weights(self, lse: jax.Array) -> jax.Array:
        return self.only_seen(jnp.exp(self.scores() - lse[..., None]))

    def only_seen(self, x: jax.Array, otherwise: float = 0.0) -> jax.Array:
        return x if self.seen is None else jnp.where(self.seen, x, jnp.asarray(otherwise, x.dtype))

    def with_keys(self, left: jax.Array, right: Rows) -> jax.Array:
        """left right for a left (.., t, width) that is 0 where nothing is seen, and vectors (.., s, d) of keys."""
        return _product(left, self.of(right.values), self.seen, right.finite)

    def with_queries(self, left: jax.Array, right: Rows) -> jax.Array:
        """left^T right for vectors (.., t, d) of queries."""
        return _product(left.mT, right.values, None if self.seen is None else self.seen.mT, right.finite)


def _product(left: jax.Array, right: jax.Array, seen: jax.Array | None, finite: jax.Array) -> jax.Array:
    """left right, where only what is seen is multiplied if not all is finite."""
    if seen is None:
        return matmul(left, right)

    def apart(left: jax.Array, right: jax.Array) -> jax.Array:
        terms = left[..., None] * right[..., None, :, :]  # a loop that sums them: XLA stores none of them
        return jnp.sum(jnp.where(seen[..., None], terms, jnp.zeros((), terms.dtype)), axis=-2)

    return lax.cond(finite, matmul, apart, left, right)


def _attention(
    q: jax.Array, k: jax.Array, v: jax.Array, *operands: jax.Array, **params: Unpack[Parameters]
) -> list[jax.Array]:
    scene, values = Scene(q, k, operands, Options(**params)), Rows(v)
    zero, column = jnp.zeros((), scene.q.dtype), (*q.shape[:-1], 1)
    Running = tuple[jax.Array, jax.Array, jax.Array]  # the largest score so far, and sums relative to its exponential

    def step(tile: Tile, state: Running) -> Running:
        top, total, sums = state
        scores = tile.scores()
        higher = jnp.maximum(top, jnp.max(scores, axis=-1, initial=-np.inf, keepdims=True))
        base = jnp.where(higher == -np.inf, zero, higher)  # exp(-inf - 0) is 0
        weights, shrink = jnp.exp(scores - base), jnp.exp(top - base)
        total = total * shrink + jnp.sum(weights, axis=-1, keepdims=True)
        return higher, total, sums * shrink + tile.with_keys(weights, values)

    first = (jnp.full(column, -np.inf, zero.dtype), jnp.zeros(column, zero.dtype))
    top, total, sums = scene.over_tiles(step, (*first, jnp.zeros((*q.shape[:-1], v.shape[-1]), zero.dtype)))
    nothing = total == 0
    safe = jnp.where(nothing, jnp.ones((), total.dtype), total)
    lse = jnp.where(nothing, zero, top + jnp.log(safe))
    return [(sums / safe).astype(q.dtype), lse[..., 0]]


def _tangent(*args: jax.Array, **params: Unpack[Parameters]) -> list[jax.Array]:
    options = Options(**params)
    count = 3 + options.tilted
    tq, tk, tv, *tilts = map(wide, args[:count])
    q, k, v, lse, *operands = args[count:]
    scene, values, moving = Scene(q, k, operands, options), Rows(v), Rows(tv)
    Sums = tuple[jax.Array, jax.Array]

    def step(tile: Tile, sums: Sums) -> Sums:
        p = tile.weights(lse)
        moved = (matmul(tq, tile.k.mT) + matmul(scene.q, tile.of(tk).mT)) * np.asarray(options.scale, p.dtype)
        for tilt in tilts:
            moved = moved + tilt[..., None] * tile.distances
        change = tile.only_seen(p * moved)
        out = sums[0] + tile.with_keys(change, values) + tile.with_keys(p, moving)
        return out, sums[1] + change.sum(axis=-1)

    first = jnp.zeros((*q.shape[:-1], v.shape[-1]), lse.dtype), jnp.zeros(q.shape[:-1], lse.dtype)
    return [*scene.over_tiles(step, first)]


def _backward(
    g: jax.Array,
    h: jax.Array,
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    lse: jax.Array,
    *operands: jax.Array,
    **params: Unpack[Parameters],
) -> list[jax.Array]:
    options = Options(**params)
    scene, values = Scene(q, k, operands, options), wide(v)
    queries, keys, adjoints = Rows(q), Rows(k), Rows(g)
    Found = tuple[jax.Array, jax.Array, jax.Array, jax.Array]

    def step(tile: Tile, found: Found) -> Found:
        dq, dk, dv, tilts = found
        p = tile.weights(lse)
        plain = tile.only_seen(p * (matmul(g, tile.of(values).mT) + h[..., None]))
        change = plain * np.asarray(options.scale, p.dtype)
        dq = dq + tile.with_keys(change, keys)
        dk = tile.into(dk, tile.with_queries(change, queries))
        dv = tile.into(dv, tile.with_queries(p, adjoints))
        return dq, dk, dv, tilts + (plain * tile.distances).sum(axis=-1) if options.tilted else tilts

    first = jnp.zeros(q.shape, lse.dtype), jnp.zeros_like(k), jnp.zeros_like(v), jnp.zeros_like(lse)
    dq, dk, dv, tilts = scene.over_tiles(step, first)
    return [dq.astype(q.dtype), dk, dv, *([tilts] if options.tilted else [])]


PLAIN: dict[str, Callable[..., list[jax.Array]]] = {
    "attention": _attention,
    "attention_tangent": _tangent,
    "attention_backward": _backward,
}
