"""Attention as products and a softmax, which XLA fuses; what is masked does not contribute, even if it is NaN.

The matrix of scores is formed: memory grows with the product of the lengths. See primitives/attention.py for the
formulas; names are as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import bool_
from ...primitives.sight import Extras, Options, Parameters
from .contractions import matmul
from .widening import wide


class Scene:
    """Which queries and keys meet, and how far they are apart."""

    def __init__(self, q: jax.Array, k: jax.Array, operands: Sequence[jax.Array], options: Options) -> None:
        self.options = options
        self.q, self.k = wide(q), wide(k)
        self.extras: Extras[jax.Array] = Extras.of(operands, options)
        t, s = q.shape[-2], k.shape[-2]
        places = jnp.arange(t, dtype=jnp.int64)[:, None] // options.group
        if self.extras.offsets is not None:
            places = places + self.extras.offsets.astype(jnp.int64)[..., None, None]
        self.ahead = jnp.arange(s, dtype=jnp.int64) - places  # (.., t, s)
        self.seen = self._seen()

    def _seen(self) -> jax.Array | None:
        """True where a query sees a key; None if all see all."""
        parts, mask, options = [], self.extras.mask, self.options
        if mask is not None:
            parts.append(mask if mask.dtype == bool_ else mask != -np.inf)
        if options.ahead is not None:
            parts.append(self.ahead < options.ahead)
            if options.window is not None:
                parts.append(self.ahead > -options.window)
        if not parts:
            return None
        seen = parts[0]
        for part in parts[1:]:
            seen = seen & part
        return jnp.broadcast_to(seen, (*self.q.shape[:-1], self.k.shape[-2]))

    @property
    def distances(self) -> jax.Array:
        return -jnp.abs(self.ahead).astype(self.q.dtype)

    def scores(self) -> jax.Array:
        found = matmul(self.q * np.asarray(self.options.scale, self.q.dtype), self.k.mT)
        if self.extras.slopes is not None:
            found = found + self.extras.slopes[..., None] * self.distances
        if self.extras.mask is not None and self.extras.mask.dtype != bool_:
            found = found + wide(self.extras.mask)
        return self.only_seen(found, -np.inf)

    def weights(self, lse: jax.Array) -> jax.Array:
        return self.only_seen(jnp.exp(self.scores() - lse[..., None]))

    def only_seen(self, x: jax.Array, otherwise: float = 0.0) -> jax.Array:
        return x if self.seen is None else jnp.where(self.seen, x, jnp.asarray(otherwise, x.dtype))

    def product(self, left: jax.Array, right: jax.Array, turned: bool = False) -> jax.Array:
        """left right for a left (.., t, s) that is 0 where nothing is seen, or left^T right if turned.

        0 times what is not finite is NaN, so where there is such a thing, only what is seen is multiplied.
        """
        left = left.mT if turned else left
        if self.seen is None:
            return matmul(left, right)
        seen = self.seen.mT if turned else self.seen

        def apart(left: jax.Array, right: jax.Array) -> jax.Array:
            terms = left[..., None] * right[..., None, :, :]  # a loop that sums them: XLA stores none of them
            return jnp.sum(jnp.where(seen[..., None], terms, jnp.zeros((), terms.dtype)), axis=-2)

        return lax.cond(jnp.isfinite(right).all(), matmul, apart, left, right)


def _attention(
    q: jax.Array, k: jax.Array, v: jax.Array, *operands: jax.Array, **params: Unpack[Parameters]
) -> list[jax.Array]:
    scene = Scene(q, k, operands, Options(**params))
    scores = scene.scores()
    zero = jnp.zeros((), scores.dtype)
    top = jnp.max(scores, axis=-1, initial=-np.inf, keepdims=True)
    base = jnp.where(top == -np.inf, zero, top)
    weights = jnp.exp(scores - base)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    nothing = total == 0
    safe = jnp.where(nothing, jnp.ones((), total.dtype), total)
    lse = jnp.where(nothing, zero, top + jnp.log(safe))
    out = scene.product(weights, wide(v)) / safe
    return [out.astype(q.dtype), lse[..., 0]]


def _tangent(*args: jax.Array, **params: Unpack[Parameters]) -> list[jax.Array]:
    options = Options(**params)
    count = 3 + options.tilted
    tq, tk, tv, *tilts = map(wide, args[:count])
    q, k, v, lse, *operands = args[count:]
    scene = Scene(q, k, operands, options)
    p = scene.weights(lse)
    moved = (matmul(tq, scene.k.mT) + matmul(scene.q, tk.mT)) * np.asarray(options.scale, p.dtype)
    for tilt in tilts:
        moved = moved + tilt[..., None] * scene.distances
    change = scene.only_seen(p * moved)
    return [scene.product(change, wide(v)) + scene.product(p, tv), change.sum(axis=-1)]


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
    scene = Scene(q, k, operands, options)
    p = scene.weights(lse)
    plain = scene.only_seen(p * (matmul(g, wide(v).mT) + h[..., None]))
    change = plain * np.asarray(options.scale, p.dtype)
    found = [
        scene.product(change, scene.k).astype(q.dtype),
        scene.product(change, scene.q, turned=True).astype(k.dtype),
        scene.product(p, g, turned=True).astype(v.dtype),
    ]
    return [*found, (plain * scene.distances).sum(axis=-1)] if options.tilted else found


PLAIN: dict[str, Callable[..., list[jax.Array]]] = {
    "attention": _attention,
    "attention_tangent": _tangent,
    "attention_backward": _backward,
}
