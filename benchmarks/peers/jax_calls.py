"""What calls of compiled functions cost in JAX, for `benchmarks.calls`: run by an interpreter that has it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]
import numpy as np

from ..interleaved import best_times

LAYERS, WIDTH, BATCH = 50, 8, 4
ROWS, FEATURES = 128, 16


def ways() -> dict[str, Callable[[], object]]:
    add, one, two = jax.jit(lambda x, y: x + y), jnp.float32(1.0), jnp.float32(2.0)
    x, y = jnp.ones((BATCH, WIDTH)), jnp.zeros((BATCH, WIDTH))
    params = _params()
    forward = jax.jit(_forward)
    loss = jax.jit(lambda params, x, y: ((_forward(params, x) - y) ** 2).mean())
    return {
        "scalar addition": lambda: add(one, two).block_until_ready(),
        "a handful of tensors": _logistic(),
        "a loss, recorded": lambda: loss(params[:1], x, y).block_until_ready(),
        "forward, 100 parameters": lambda: forward(params, x).block_until_ready(),
        "forward, 100 parameters, recorded": lambda: forward(params, x).block_until_ready(),
        "training step, 100 parameters": _training(x, y),
    }


def _params() -> Any:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return jnp.asarray(rng.normal(size=shape).astype(np.float32) * 0.3)

    return [(draw(WIDTH, WIDTH), draw(WIDTH)) for _ in range(LAYERS)]


def _forward(params: Any, x: Any) -> Any:
    for w, b in params:
        x = x @ w + b
    return x


def _logistic() -> Callable[[], object]:
    @jax.jit
    def step(w: Any, b: Any, x: Any, y: Any) -> Any:
        def loss(w: Any, b: Any) -> Any:
            z = x @ w + b
            return (jnp.logaddexp(0, z) - y * z).mean()

        dw, db = jax.grad(loss, argnums=(0, 1))(w, b)
        return w - 0.1 * dw, b - 0.1 * db

    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(ROWS, FEATURES)).astype(np.float32)), jnp.ones(ROWS)
    state = [jnp.zeros(FEATURES), jnp.zeros(())]

    def call() -> None:
        state[0], state[1] = step(state[0], state[1], x, y)
        state[0].block_until_ready()

    return call


def _training(x: Any, y: Any) -> Callable[[], object]:
    """Adam by hand, with the memory of parameters and moments given away."""

    def step(params: Any, first: Any, second: Any, count: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: ((_forward(p, x) - y) ** 2).mean())(params)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
        scale, second_scale = 1 / (1 - 0.9**count), 1 / (1 - 0.999**count)
        changed = jax.tree.map(
            lambda p, m, v: p - 1e-3 * m * scale / (jnp.sqrt(v * second_scale) + 1e-8), params, first, second
        )
        return changed, first, second, count, loss

    compiled = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    params = _params()
    first, second = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
    state = [params, first, second, jnp.zeros(())]

    def call() -> None:
        *state[:], loss = compiled(*state, x, y)
        loss.block_until_ready()

    return call


if __name__ == "__main__":
    rounds = 4 * int(sys.argv[1])
    print(json.dumps({name: 1e6 * best_times({name: call}, rounds, 0.05)[name] for name, call in ways().items()}))
