"""The forward passes of `benchmarks/inference.py` in JAX; parameters are arguments of the compiled function."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from ..measuring import Step
from .jax_workloads import Params, dense, labels, linear, normal, normalize, scale

SIDE, TOKENS = 224, 128


def conv(w: Array, x: Array, stride: int = 1, padding: int = 0, groups: int = 1) -> Array:
    sides = ((padding, padding), (padding, padding))
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), sides, dimension_numbers=layout, feature_group_count=groups)


def filters(size: int, channels: int, out: int) -> Array:
    return normal(size, size, channels, out, std=(size * size * channels) ** -0.5)


def trained(size: int) -> Params:
    """A batch normalization with its statistics."""
    return scale(size) | {"mean": jnp.zeros(size), "var": jnp.ones(size)}


def batch_norm(p: Params, x: Array) -> Array:
    return (x - p["mean"]) * (lax.rsqrt(p["var"] + 1e-5) * p["weight"]) + p["bias"]


def answering(params: Params, forward: Callable[[Params, Array], Array], x: Array) -> Step:
    run = jax.jit(forward)
    return lambda: run(params, x).block_until_ready()


def images(batch: int) -> Array:
    return normal(batch, SIDE, SIDE, 3)


STAGES = (
    (64, 64, 1),
    (64, 64, 1),
    (64, 128, 2),
    (128, 128, 1),
    (128, 256, 2),
    (256, 256, 1),
    (256, 512, 2),
    (512, 512, 1),
)


def resnet18(batch: int) -> Step:
    def block(channels: int, out: int, stride: int) -> Params:
        both = {"conv1": filters(3, channels, out), "norm1": trained(out), "conv2": filters(3, out, out)}
        short = {"short": filters(1, channels, out), "norm3": trained(out)} if stride > 1 else {}
        return both | short | {"norm2": trained(out)}

    params = {"stem": filters(7, 3, 64), "norm": trained(64), "head": dense(512, 1000)}
    params["blocks"] = [block(*stage) for stage in STAGES]

    def forward(p: Params, x: Array) -> Array:
        x = jax.nn.relu(batch_norm(p["norm"], conv(p["stem"], x, 2, 3)))
        sides = ((0, 0), (1, 1), (1, 1), (0, 0))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), sides)
        for q, (_, _, stride) in zip(p["blocks"], STAGES, strict=True):
            y = jax.nn.relu(batch_norm(q["norm1"], conv(q["conv1"], x, stride, 1)))
            y = batch_norm(q["norm2"], conv(q["conv2"], y, 1, 1))
            x = jax.nn.relu(y + (batch_norm(q["norm3"], conv(q["short"], x, stride)) if "short" in q else x))
        return linear(p["head"], x.mean((1, 2)))

    return answering(params, forward, images(batch))


def convnext(batch: int) -> Step:
    widths, depths = (96, 192, 384, 768), (3, 3, 9, 3)

    def block(width: int) -> Params:
        mixed = {"conv": filters(7, 1, width), "bias": jnp.zeros(width), "norm": scale(width)}
        return mixed | {"up": dense(width, 4 * width), "down": dense(4 * width, width), "scale": 1e-6 * jnp.ones(width)}

    params: Params = {"stem": filters(4, 3, 96), "first": scale(96), "last": scale(768), "head": dense(768, 1000)}
    params["halves"] = [{"norm": scale(a), "conv": filters(2, a, b)} for a, b in itertools.pairwise(widths)]
    params["stages"] = [[block(width) for _ in range(depth)] for depth, width in zip(depths, widths, strict=True)]

    def forward(p: Params, x: Array) -> Array:
        x = normalize(p["first"], conv(p["stem"], x, 4), (-1,))
        for i, stage in enumerate(p["stages"]):
            if i:
                half = p["halves"][i - 1]
                x = conv(half["conv"], normalize(half["norm"], x, (-1,)), 2)
            for q in stage:
                y = normalize(q["norm"], conv(q["conv"], x, 1, 3, x.shape[-1]) + q["bias"], (-1,))
                x = x + q["scale"] * linear(q["down"], jax.nn.gelu(linear(q["up"], y), approximate=False))
        return linear(p["head"], normalize(p["last"], x.mean((1, 2)), (-1,)))

    return answering(params, forward, images(batch))


# --- transformers


def blocks(width: int) -> list[Params]:
    def block() -> Params:
        layers = {"qkv": dense(width, 3 * width), "out": dense(width, width)}
        layers |= {"up": dense(width, 4 * width), "down": dense(4 * width, width)}
        return layers | {"norm1": scale(width), "norm2": scale(width)}

    return [block() for _ in range(12)]


def attention(p: Params, x: Array, heads: int, causal: bool) -> Array:
    b, t, e = x.shape
    q, k, v = jnp.moveaxis(linear(p["qkv"], x).reshape(b, t, 3, heads, e // heads), 2, 0)
    return linear(p["out"], jax.nn.dot_product_attention(q, k, v, is_causal=causal).reshape(b, t, e))


def stack(layers: list[Params], x: Array, heads: int, causal: bool = False, first: bool = True) -> Array:
    for p in layers:

        def mlp(x: Array, p: Params = p) -> Array:
            return linear(p["down"], jax.nn.gelu(linear(p["up"], x), approximate=causal))

        if first:
            x = x + attention(p, normalize(p["norm1"], x, (-1,)), heads, causal)
            x = x + mlp(normalize(p["norm2"], x, (-1,)))
        else:
            x = normalize(p["norm1"], x + attention(p, x, heads, causal), (-1,))
            x = normalize(p["norm2"], x + mlp(x), (-1,))
    return x


def vision() -> Params:
    params = {"patches": dense(16 * 16 * 3, 384), "token": normal(1, 1, 384), "places": normal(197, 384)}
    return params | {"blocks": blocks(384), "norm": scale(384), "head": dense(384, 1000)}


def seen(p: Params, x: Array) -> Array:
    """The logits of a vision transformer."""
    n = SIDE // 16
    x = x.reshape(-1, n, 16, n, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(-1, n * n, 16 * 16 * 3)
    x = linear(p["patches"], x)
    x = jnp.concatenate([jnp.broadcast_to(p["token"], (len(x), 1, 384)), x], 1) + p["places"]
    return linear(p["head"], normalize(p["norm"], stack(p["blocks"], x, 6), (-1,))[:, 0])


def vit(batch: int) -> Step:
    return answering(vision(), seen, images(batch))


def bert(batch: int) -> Step:
    params: Params = {"tokens": normal(30522, 768), "segments": normal(2, 768), "places": normal(512, 768)}
    params |= {"norm": scale(768), "blocks": blocks(768)}

    def forward(p: Params, ids: Array) -> Array:
        x = p["tokens"][ids] + p["places"][: ids.shape[1]] + p["segments"][jnp.zeros_like(ids)]
        return stack(p["blocks"], normalize(p["norm"], x, (-1,)), 12, first=False)

    return answering(params, forward, labels(30522, batch, TOKENS))


def gpt2(batch: int) -> Step:
    params: Params = {"tokens": normal(50257, 768), "places": normal(1024, 768), "norm": scale(768)}
    params["blocks"] = blocks(768)

    def forward(p: Params, ids: Array) -> Array:
        x = p["tokens"][ids] + p["places"][: ids.shape[1]]
        return normalize(p["norm"], stack(p["blocks"], x, 12, causal=True), (-1,)) @ p["tokens"].T

    return answering(params, forward, labels(50257, batch, TOKENS))


BATCHES: tuple[tuple[Any, int], ...] = (
    (resnet18, 1), (resnet18, 16), (convnext, 1), (convnext, 16), (vit, 1), (bert, 1), (gpt2, 1),
)  # fmt: skip
INFERENCE: dict[str, Callable[[], Step]] = {f"{f.__name__}_{n}": functools.partial(f, n) for f, n in BATCHES}
