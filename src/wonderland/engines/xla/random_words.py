"""Random bits: Philox, the same as on the other engines, on words of 64 bits that hold 32 each."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from ...core.primitive import Shape
from ...primitives.random_bits import MULTIPLIERS, WEYL

ROUNDS = 10


def _random_bits(key: jax.Array, shape: Shape, domain: int) -> jax.Array:
    def word(value: int) -> jax.Array:
        return jnp.asarray(value, jnp.uint64)

    size, keys, low = math.prod(shape), key.reshape(-1, 2).astype(jnp.uint64), word(0xFFFFFFFF)
    blocks = -(-size // 4)
    k0, k1 = keys[:, :1], keys[:, 1:]
    number = jnp.arange(blocks, dtype=jnp.uint64)[None]
    c0, c1, c2, c3 = number & low, number >> word(32), word(0), word(domain)
    for i in range(ROUNDS):
        if i:
            k0, k1 = (k0 + word(WEYL[0])) & low, (k1 + word(WEYL[1])) & low
        even, odd = c0 * word(MULTIPLIERS[0]), c2 * word(MULTIPLIERS[1])
        c0, c1, c2, c3 = (odd >> word(32)) ^ c1 ^ k0, odd & low, (even >> word(32)) ^ c3 ^ k1, even & low
    words = jnp.stack(jnp.broadcast_arrays(c0, c1, c2, c3), axis=-1).astype(jnp.uint32)
    return words.reshape(len(keys), 4 * blocks)[:, :size].reshape(key.shape[:-1] + shape)


PLAIN: dict[str, Callable[..., jax.Array]] = {"random_bits": _random_bits}
