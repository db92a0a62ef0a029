"""The steps of `benchmarks/variety.py` in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from ..measuring import Step
from .jax_workloads import (
    Params,
    adam,
    block,
    convolve,
    cross_entropy,
    dense,
    filters,
    function,
    labels,
    linear,
    normal,
    normalize,
    pool,
    rng,
    scale,
    sgd,
    training,
    transform,
)


def batch_norm(p: Params, x: Array) -> Array:
    return normalize(p, x, tuple(range(x.ndim - 1)))


def resnet() -> Step:
    def residual(channels: int, out: int) -> Params:
        params = {"conv1": filters(3, 3, channels, out), "conv2": filters(3, 3, out, out)}
        params |= {"norm1": scale(out), "norm2": scale(out)}
        return params | ({} if channels == out else {"short": filters(1, 1, channels, out)})

    def apply(p: Params, x: Array, stride: int) -> Array:
        edge = [(1, 1), (1, 1)]
        y = jax.nn.relu(batch_norm(p["norm1"], convolve(x, p["conv1"], stride, padding=edge)))
        y = batch_norm(p["norm2"], convolve(y, p["conv2"], padding=edge))
        return jax.nn.relu(y + (convolve(x, p["short"], stride, padding="VALID") if "short" in p else x))

    def loss_of(p: Params, x: Array, y: Array) -> Array:
        x = convolve(x, p["first"]) + p["bias"]
        for q, stride in zip(p["blocks"], (1, 2, 2), strict=True):
            x = apply(q, x, stride)
        return cross_entropy(linear(p["out"], x.mean((1, 2))), y)

    blocks = [residual(32, 32), residual(32, 64), residual(64, 128)]
    params = {"first": filters(3, 3, 3, 32), "bias": jnp.zeros(32), "blocks": blocks, "out": dense(128, 10)}
    return training(params, loss_of, normal(32, 32, 32, 3), labels(10, 32))


def separable() -> Step:
    def loss_of(p: Params, x: Array, y: Array) -> Array:
        for q, stride in zip(p["blocks"], (1, 2, 2), strict=True):
            x = convolve(x, q["depth"], stride, groups=x.shape[-1], padding=[(1, 1), (1, 1)])
            x = jax.nn.relu6(batch_norm(q["norm"], convolve(x, q["point"])))
        return cross_entropy(linear(p["out"], x.mean((1, 2))), y)

    blocks = [
        {"depth": filters(3, 3, 1, i), "point": filters(1, 1, i, o), "norm": scale(o)}
        for i, o in ((3, 32), (32, 64), (64, 128))
    ]
    return training({"blocks": blocks, "out": dense(128, 10)}, loss_of, normal(32, 32, 32, 3), labels(10, 32))


def signal() -> Step:
    def loss_of(p: Params, x: Array, y: Array) -> Array:
        x = jax.nn.relu(convolve(x, p["first"], 2, padding=[(4, 4)]) + p["bias1"])
        x = jax.nn.relu(convolve(x, p["second"], padding=[(2, 2)]) + p["bias2"])
        x = convolve(pool(x, 4), p["third"], padding=[(2, 2)], rhs_dilation=(2,)) + p["bias3"]
        return cross_entropy(linear(p["out"], jax.nn.relu(x).mean(1)), y)

    params = {"first": filters(9, 1, 16), "second": filters(5, 16, 32), "third": filters(3, 32, 64)}
    params |= {f"bias{i + 1}": jnp.zeros(n) for i, n in enumerate((16, 32, 64))} | {"out": dense(64, 5)}
    return training(params, loss_of, normal(32, 1024, 1), labels(5, 32))


def autoencoder() -> Step:
    def loss_of(p: Params, x: Array, y: Array) -> Array:
        for weight, bias in p["down"]:
            x = jax.nn.relu(convolve(x, weight, 2, padding=[(1, 1), (1, 1)]) + bias)
        for i, (weight, bias) in enumerate(p["up"]):
            layout = ("NHWC", "HWIO", "NHWC")
            x = lax.conv_transpose(x, weight, (2, 2), [(2, 2), (2, 2)], dimension_numbers=layout) + bias
            x = jax.nn.relu(x) if i < 2 else jax.nn.sigmoid(x)
        return jnp.square(x - y).mean()

    down = [(filters(4, 4, i, o), jnp.zeros(o)) for i, o in ((1, 16), (16, 32), (32, 64))]
    up = [(filters(4, 4, i, o), jnp.zeros(o)) for i, o in ((64, 32), (32, 16), (16, 1))]
    x = jnp.asarray(rng.random((64, 32, 32, 1)), jnp.float32)
    return training({"down": down, "up": up}, loss_of, x, x)


def gru(hidden: int = 128) -> Step:
    def layer(p: Params, x: Array) -> Array:
        """Over (time, batch, features)."""

        def cell(h: Array, u: Array) -> tuple[Array, Array]:
            (r, z, n), (hr, hz, hn) = jnp.split(u, 3, -1), jnp.split(linear(p["state"], h), 3, -1)
            z = jax.nn.sigmoid(z + hz)
            h = (1 - z) * jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn) + z * h
            return h, h

        return lax.scan(cell, jnp.zeros((x.shape[1], hidden)), linear(p["input"], x))[1]

    def loss_of(p: Params, x: Array, y: Array) -> Array:
        outputs = layer(p["second"], layer(p["first"], jnp.swapaxes(x, 0, 1)))
        return cross_entropy(linear(p["out"], outputs[-1]), y)

    params = {
        name: {"input": dense(size, 3 * hidden), "state": dense(hidden, 3 * hidden)}
        for name, size in (("first", 64), ("second", hidden))
    }
    return training(params | {"out": dense(hidden, 10)}, loss_of, normal(32, 50, 64), labels(10, 32))


def encoder(context: int = 512, width: int = 128) -> Step:
    lengths = jnp.asarray(rng.integers(context // 2, context + 1, 4))
    mask = jnp.arange(context) < lengths[:, None]  # true where there is a token

    def loss_of(p: Params, ids: Array, y: Array) -> Array:
        x = p["tokens"][ids] + p["positions"]
        for q in p["blocks"]:
            x = transform(q, x, 4, mask[:, None, None, :])
        mean = jnp.where(mask[..., None], x, 0.0).sum(1) / mask.sum(1, keepdims=True)
        return cross_entropy(linear(p["out"], mean), y)

    params = {"tokens": normal(1000, width), "positions": normal(context, width, std=0.02)}
    params |= {"blocks": [block(width) for _ in range(2)], "out": dense(width, 2)}
    return training(params, loss_of, labels(1000, 4, context), labels(2, 4))


def text(vocabulary: int = 20000) -> Step:
    def loss_of(p: Params, ids: Array, y: Array) -> Array:
        return cross_entropy(linear(p["out"], p["tokens"][ids].mean(1)), y)

    params = {"tokens": normal(vocabulary, 64), "out": dense(64, 4)}
    return training(params, loss_of, labels(vocabulary, 128, 64), labels(4, 128))


def regularized() -> Step:
    def loss_of(p: Params, key: Array, x: Array, y: Array) -> Array:
        for q, k in zip(p["blocks"], jax.random.split(key), strict=True):
            x = jax.nn.relu(batch_norm(q["norm"], linear(q["linear"], x)))
            x = jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x / 0.5, 0.0)
        return cross_entropy(linear(p["out"], x), y)

    def update(params: Params, state: Any, key: Array, x: Array, y: Array) -> Any:
        key, now = jax.random.split(key)
        loss, grads = jax.value_and_grad(loss_of)(params, now, x, y)
        return *adam(params, grads, state, decay=1e-2), key, loss

    params = {"blocks": [{"linear": dense(n, 256), "norm": scale(256)} for n in (100, 256)], "out": dense(256, 10)}
    compiled, batch = jax.jit(update, donate_argnums=(0, 1)), (normal(128, 100), labels(10, 128))
    zeros = [jax.tree.map(jnp.zeros_like, params) for _ in range(2)]
    now = [params, (*zeros, jnp.zeros(())), jax.random.key(0)]

    def step() -> Array:
        *now[:], loss = compiled(*now, *batch)
        return loss.block_until_ready()

    return step


def wide(width: int = 1024) -> Step:
    def loss_of(params: Params, x: Array, y: Array) -> Array:
        for p in params[:-1]:
            x = jax.nn.gelu(linear(p, x), approximate=False)
        return cross_entropy(linear(params[-1], x), y)

    def momentum(p: Params, grads: Params, state: Any) -> tuple[Params, Any]:
        state = jax.tree.map(lambda v, g: 0.9 * v + g, state, grads)
        return jax.tree.map(lambda p, v: p - 1e-2 * v, p, state), state

    params = [*[dense(width, width) for _ in range(3)], dense(width, 10)]
    still = jax.tree.map(jnp.zeros_like, params)
    return training(params, loss_of, normal(256, width), labels(10, 256), optimizer=momentum, state=still)


def logistic(p: Params, x: Array, y: Array) -> Array:
    return cross_entropy(linear(p, x), y)


def digits() -> Step:
    return training(dense(64, 10), logistic, normal(32, 64), labels(10, 32), optimizer=sgd(0.1))


def regression() -> Step:
    jax.config.update("jax_enable_x64", True)

    def loss_of(p: Params, x: Array, y: Array) -> Array:
        return jnp.square(linear(p[1], jnp.tanh(linear(p[0], x))) - y).mean()

    wide = jnp.float64
    x, y = normal(256, 30, dtype=wide), normal(256, 1, dtype=wide)
    return training([dense(30, 100, dtype=wide), dense(100, 1, dtype=wide)], loss_of, x, y)


def vocabulary(words: int = 50000) -> Step:
    return training(dense(256, words), logistic, normal(64, 256), labels(words, 64), optimizer=sgd(0.1))


def two_layers(p: Params, x: Array) -> Array:
    return linear(p[1], jnp.tanh(linear(p[0], x)))


def jacobian() -> Step:
    jacobians = jax.vmap(jax.jacrev(two_layers, argnums=1), in_axes=(None, 0))
    return function(jacobians, [dense(16, 64), dense(64, 16)], normal(32, 16))


def hessian() -> Step:
    hessians = jax.vmap(jax.hessian(lambda p, x: two_layers(p, x)[0], argnums=1), in_axes=(None, 0))
    return function(hessians, [dense(12, 32), dense(32, 1)], normal(32, 12))


VARIETY: dict[str, Callable[[], Step]] = {
    f.__name__: f
    for f in (resnet, separable, signal, autoencoder, gru, encoder, text)
    + (regularized, wide, digits, regression, vocabulary, jacobian, hessian)
}
