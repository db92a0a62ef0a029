"""The eight steps of `benchmarks/workloads.py` in JAX: parameters are trees, models are functions of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..measuring import Step

Params = Any
rng = np.random.default_rng(0)


def normal(*shape: int, std: float = 1.0, dtype: Any = jnp.float32) -> Array:
    return jnp.asarray(std * rng.normal(size=shape), dtype)


def labels(count: int, *shape: int) -> Array:
    return jnp.asarray(rng.integers(0, count, shape))


def dense(size: int, out: int, bias: bool = True, dtype: Any = jnp.float32) -> Params:
    """The parameters of a linear layer."""
    weight = {"weight": normal(size, out, std=size**-0.5, dtype=dtype)}
    return weight | {"bias": jnp.zeros(out, dtype)} if bias else weight


def linear(p: Params, x: Array) -> Array:
    return x @ p["weight"] + p["bias"] if "bias" in p else x @ p["weight"]


def scale(size: int) -> Params:
    """The parameters of a normalization."""
    return {"weight": jnp.ones(size), "bias": jnp.zeros(size)}


def normalize(p: Params, x: Array, axes: tuple[int, ...]) -> Array:
    """Layer and batch normalization, the latter without running averages: one thing less to do than the others."""
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["weight"] + p["bias"]


def cross_entropy(logits: Array, y: Array) -> Array:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()


def adam(p: Params, grads: Params, state: Any, lr: float = 1e-3, decay: float = 0.0) -> tuple[Params, Any]:
    m, v, t = state
    t = t + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)

    def update(p: Array, m: Array, v: Array) -> Array:
        return p * (1 - lr * decay) - lr * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)

    return jax.tree.map(update, p, m, v), (m, v, t)


def sgd(lr: float) -> Callable[[Params, Params, Any], tuple[Params, Any]]:
    return lambda p, grads, state: (jax.tree.map(lambda p, g: p - lr * g, p, grads), state)


def training(params: Params, loss_of: Any, *batch: Array, optimizer: Any = adam, state: Any = None) -> Step:
    """A training step of one compiled call, which may write over the parameters and the optimizer's state."""
    if state is None:
        zeros = [jax.tree.map(jnp.zeros_like, params) for _ in range(2)]
        state = (*zeros, jnp.zeros(())) if optimizer is adam else ()

    def update(params: Params, state: Any, *batch: Array) -> tuple[Params, Any, Array]:
        loss, grads = jax.value_and_grad(loss_of)(params, *batch)
        return *optimizer(params, grads, state), loss

    compiled = jax.jit(update, donate_argnums=(0, 1))
    now = [params, state]

    def step() -> Array:
        *now[:], loss = compiled(*now, *batch)
        return loss.block_until_ready()

    return step


def function(f: Any, *args: Any) -> Step:
    compiled = jax.jit(f)
    return lambda: jax.block_until_ready(compiled(*args))


def perceptron() -> Params:
    return [dense(784, 256), dense(256, 128), dense(128, 10)]


def classify(params: Params, x: Array, y: Array) -> Array:
    for p in params[:-1]:
        x = jax.nn.relu(linear(p, x))
    return cross_entropy(linear(params[-1], x), y)


def mlp() -> Step:
    return training(perceptron(), classify, normal(64, 784), labels(10, 64))


def mlp_tiny() -> Step:
    def loss_of(p: Params, x: Array, y: Array) -> Array:
        return jnp.square(linear(p[1], jnp.tanh(linear(p[0], x))) - y).mean()

    return training([dense(20, 32), dense(32, 1)], loss_of, normal(32, 20), normal(32, 1), optimizer=sgd(1e-2))


def convolve(x: Array, weight: Array, stride: int = 1, groups: int = 1, padding: Any = "SAME", **more: Any) -> Array:
    """Of images or signals, channels last, by filters (..., channels, out)."""
    layout = ("NHWC", "HWIO", "NHWC") if x.ndim == 4 else ("NWC", "WIO", "NWC")
    strides = (stride,) * (x.ndim - 2)
    return lax.conv_general_dilated(
        x, weight, strides, padding, dimension_numbers=layout, feature_group_count=groups, **more
    )


def pool(x: Array, size: int = 2) -> Array:
    window = (1, *(size,) * (x.ndim - 2), 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def filters(*shape: int) -> Array:
    return normal(*shape, std=float(np.prod(shape[:-1])) ** -0.5)


def cnn() -> Step:
    def block(p: Params, x: Array) -> Array:
        return jax.nn.relu(normalize(p["norm"], convolve(x, p["weight"]), (0, 1, 2)))

    def loss_of(p: Params, x: Array, y: Array) -> Array:
        x = pool(block(p[1], block(p[0], x)))
        x = pool(block(p[3], block(p[2], x)))
        return cross_entropy(linear(p[5], block(p[4], x).mean((1, 2))), y)

    sizes = ((3, 32), (32, 32), (32, 64), (64, 64), (64, 128))
    params = [{"weight": filters(3, 3, i, o), "norm": scale(o)} for i, o in sizes]
    return training([*params, dense(128, 10)], loss_of, normal(64, 32, 32, 3), labels(10, 64))


def block(width: int) -> Params:
    """The parameters of a transformer's block."""
    return {
        "norm1": scale(width),
        "norm2": scale(width),
        "qkv": dense(width, 3 * width),
        "out": dense(width, width),
        "up": dense(width, 4 * width),
        "down": dense(4 * width, width),
    }


def transform(p: Params, x: Array, heads: int, mask: Array | None = None) -> Array:
    b, t, d = x.shape
    qkv = linear(p["qkv"], normalize(p["norm1"], x, (-1,))).reshape(b, t, 3, heads, d // heads)
    q, k, v = jnp.moveaxis(qkv, 2, 0)  # (b, t, heads, d / heads) each
    a = jax.nn.dot_product_attention(q, k, v, mask=mask, is_causal=mask is None)
    x = x + linear(p["out"], a.reshape(b, t, d))
    return x + linear(p["down"], jax.nn.gelu(linear(p["up"], normalize(p["norm2"], x, (-1,)))))


def gpt(vocabulary: int = 96, width: int = 128, blocks: int = 4, heads: int = 4, context: int = 128) -> Step:
    def loss_of(p: Params, ids: Array, y: Array) -> Array:
        x = p["tokens"][ids] + p["positions"]
        for q in p["blocks"]:
            x = transform(q, x, heads)
        return cross_entropy(linear(p["head"], normalize(p["norm"], x, (-1,))), y)

    params = {
        "tokens": normal(vocabulary, width),
        "positions": normal(context, width, std=0.02),
        "blocks": [block(width) for _ in range(blocks)],
        "norm": scale(width),
        "head": dense(width, vocabulary, bias=False),
    }
    ids = labels(vocabulary, 16, context + 1)
    return training(params, loss_of, ids[:, :-1], ids[:, 1:])


def lstm(hidden: int = 128) -> Step:
    def loss_of(p: Params, x: Array, y: Array) -> Array:
        def cell(carry: tuple[Array, Array], u: Array) -> tuple[tuple[Array, Array], None]:
            h, c = carry
            i, f, g, o = jnp.split(u + linear(p["state"], h), 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zero = jnp.zeros((x.shape[0], hidden))
        (h, _), _ = lax.scan(cell, (zero, zero), jnp.swapaxes(linear(p["input"], x), 0, 1))
        return cross_entropy(linear(p["out"], h), y)

    params = {"input": dense(32, 4 * hidden), "state": dense(hidden, 4 * hidden, bias=False), "out": dense(hidden, 10)}
    return training(params, loss_of, normal(32, 64, 32), labels(10, 32))


def gcn(nodes: int = 2708, edges: int = 10556) -> Step:
    source, target = labels(nodes, edges), labels(nodes, edges)
    weight = jnp.asarray(rng.random((edges, 1)), jnp.float32)

    def spread(x: Array) -> Array:
        return jax.ops.segment_sum(x[source] * weight, target, nodes)

    def loss_of(p: Params, x: Array, y: Array) -> Array:
        return cross_entropy(spread(linear(p[1], jax.nn.relu(spread(linear(p[0], x))))), y)

    features = jnp.asarray(rng.random((nodes, 1433)) < 0.01, jnp.float32)
    return training([dense(1433, 16), dense(16, 7)], loss_of, features, labels(7, nodes))


def hvp() -> Step:
    params = perceptron()
    direction = jax.tree.map(lambda p: normal(*p.shape), params)

    def product(params: Params, direction: Params, x: Array, y: Array) -> Any:
        return jax.jvp(jax.grad(lambda p: classify(p, x, y)), (params,), (direction,))

    return function(product, params, direction, normal(64, 784), labels(10, 64))


def persample() -> Step:
    gradients = jax.vmap(jax.grad(classify), in_axes=(None, 0, 0))
    return function(gradients, perceptron(), normal(64, 784), labels(10, 64))


WORKLOADS: dict[str, Callable[[], Step]] = {f.__name__: f for f in (mlp, mlp_tiny, cnn, gpt, lstm, gcn, hvp, persample)}
