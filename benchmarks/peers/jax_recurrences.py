"""The recurrences of `benchmarks/recurrences.py` in JAX: `lax.scan` or `lax.associative_scan`, whichever is faster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from ..measuring import Step, faster
from .jax_workloads import Params, dense, function, linear, normal, rng

SIZES = {"small": (16, 64, 32, 64), "medium": (32, 100, 64, 128), "large": (64, 128, 128, 256)}


def gradients(outputs_of: Callable[..., Array], *inputs: Any) -> Step:
    weights = normal(*jax.eval_shape(outputs_of, *inputs).shape)

    def value(*given: Any) -> Array:
        return (outputs_of(*given) * weights).sum()

    return function(jax.value_and_grad(value, tuple(range(len(inputs)))), *inputs)


def lstm(size: str) -> Step:
    batch, steps, features, hidden = SIZES[size]

    def outputs(p: Params, x: Array) -> Array:
        def cell(carry: tuple[Array, Array], u: Array) -> tuple[tuple[Array, Array], Array]:
            h, c = carry
            i, f, g, o = jnp.split(u + linear(p["state"], h), 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((batch, hidden))
        u = jnp.swapaxes(linear(p["input"], x), 0, 1)
        return jnp.swapaxes(lax.scan(cell, (zero, zero), u)[1], 0, 1)

    params = {"input": dense(features, 4 * hidden), "state": dense(hidden, 4 * hidden)}
    return gradients(outputs, params, normal(batch, steps, features))


def gru(size: str) -> Step:
    batch, steps, features, hidden = SIZES[size]

    def outputs(p: Params, x: Array) -> Array:
        def cell(h: Array, u: Array) -> tuple[Array, Array]:
            (r, z, n), (hr, hz, hn) = jnp.split(u, 3, -1), jnp.split(linear(p["state"], h), 3, -1)
            z = jax.nn.sigmoid(z + hz)
            h = (1 - z) * jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn) + z * h
            return h, h

        u = jnp.swapaxes(linear(p["input"], x), 0, 1)
        return jnp.swapaxes(lax.scan(cell, jnp.zeros((batch, hidden)), u)[1], 0, 1)

    params = {"input": dense(features, 3 * hidden), "state": dense(hidden, 3 * hidden)}
    return gradients(outputs, params, normal(batch, steps, features))


def combine(p: tuple[Array, Array], q: tuple[Array, Array]) -> tuple[Array, Array]:
    return q[0] * p[0], q[0] * p[1] + q[1]


def by_scan(decay: Array, inputs: Array) -> Array:
    """s = decay * s + input along the second axis; the decay is the same in all steps."""

    def step(s: Array, now: Array) -> tuple[Array, Array]:
        s = decay * s + now
        return s, s

    return jnp.swapaxes(lax.scan(step, jnp.zeros_like(inputs[:, 0]), jnp.swapaxes(inputs, 0, 1))[1], 0, 1)


def by_prefixes(decay: Array, inputs: Array) -> Array:
    return lax.associative_scan(combine, (jnp.broadcast_to(decay, inputs.shape), inputs), axis=1)[1]


def lru(batch: int = 4, steps: int = 4096, width: int = 64, states: int = 64) -> Step:
    def outputs(recur: Callable[[Array, Array], Array], p: Params, u: Array) -> Array:
        decay = jnp.exp(lax.complex(-jnp.exp(p["nu"]), jnp.exp(p["theta"])))
        scale = jnp.exp(p["gamma"])
        s = recur(decay, lax.complex(u @ p["b_real"] * scale, u @ p["b_imag"] * scale))
        return s.real @ p["c_real"] - s.imag @ p["c_imag"] + u * p["d"]

    params = {name: normal(states) for name in ("nu", "theta", "gamma")} | {"d": normal(width)}
    params |= {name: normal(width, states, std=width**-0.5) for name in ("b_real", "b_imag")}
    params |= {name: normal(states, width, std=states**-0.5) for name in ("c_real", "c_imag")}
    u = normal(batch, steps, width)
    return faster(*(gradients(functools.partial(outputs, recur), params, u) for recur in (by_scan, by_prefixes)))


def recurrence(batch: int = 4, steps: int = 4096, states: int = 64) -> Step:
    def outputs(recur: Callable[[Array, Array], Array], nu: Array, theta: Array, real: Array, imag: Array) -> Array:
        s = recur(jnp.exp(lax.complex(-jnp.exp(nu), theta)), lax.complex(real, imag))
        return s.real + s.imag

    args = normal(states), normal(states), normal(batch, steps, states), normal(batch, steps, states)
    return faster(*(gradients(functools.partial(outputs, recur), *args) for recur in (by_scan, by_prefixes)))


def selective(channels: int, batch: int = 4, steps: int = 1024, states: int = 16) -> Step:
    def stepwise(x: Array, delta: Array, a: Array, b: Array, c: Array) -> Array:
        def step(h: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
            x, delta, b, c = now
            h = jnp.exp(delta[..., None] * a) * h + (delta * x)[..., None] * b[:, None]
            return h, (h * c[:, None]).sum(-1)

        sequences = tuple(jnp.swapaxes(s, 0, 1) for s in (x, delta, b, c))
        return jnp.swapaxes(lax.scan(step, jnp.zeros((batch, channels, states)), sequences)[1], 0, 1)

    def by_prefixes(x: Array, delta: Array, a: Array, b: Array, c: Array) -> Array:
        pairs = jnp.exp(delta[..., None] * a), (delta * x)[..., None] * b[:, :, None]
        return (lax.associative_scan(combine, pairs, axis=1)[1] * c[:, :, None]).sum(-1)

    x, delta = normal(batch, steps, channels), jnp.asarray(0.1 * rng.random((batch, steps, channels)), jnp.float32)
    a, b, c = -jnp.exp(normal(channels, states)), normal(batch, steps, states), normal(batch, steps, states)
    return faster(*(gradients(f, x, delta, a, b, c) for f in (stepwise, by_prefixes)))


def associative(batch: int = 4, steps: int = 4096, channels: int = 64) -> Step:
    a = jnp.asarray(rng.random((batch, steps, channels)), jnp.float32)
    return gradients(lambda a, b: lax.associative_scan(combine, (a, b), axis=1)[1], a, normal(batch, steps, channels))


RECURRENCES: dict[str, Callable[[], Step]] = {
    "lstm_small": functools.partial(lstm, "small"),
    "lstm_medium": functools.partial(lstm, "medium"),
    "lstm_large": functools.partial(lstm, "large"),
    "gru_small": functools.partial(gru, "small"),
    "gru_medium": functools.partial(gru, "medium"),
    "gru_large": functools.partial(gru, "large"),
    "lru": lru,
    "recurrence": recurrence,
    "selective_small": functools.partial(selective, 64),
    "selective_large": functools.partial(selective, 256),
    "associative": associative,
}
