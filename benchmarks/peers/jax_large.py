"""The models of `benchmarks/large.py` in JAX."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import Array, lax

from ..measuring import Step
from .jax_inference import images, seen, vision
from .jax_variety import batch_norm
from .jax_workloads import (
    Params,
    convolve,
    cross_entropy,
    dense,
    filters,
    gpt,
    labels,
    linear,
    scale,
    training,
)

STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))  # blocks, channels inside them, stride of the first


def resnet50() -> Step:
    def layer(kernel: int, channels: int, out: int) -> Params:
        return {"weight": filters(kernel, kernel, channels, out), "norm": scale(out)}

    def apply(p: Params, x: Array, stride: int = 1) -> Array:
        edge = p["weight"].shape[0] // 2
        return batch_norm(p["norm"], convolve(x, p["weight"], stride, padding=[(edge, edge)] * 2))

    def residual(p: Params, x: Array, stride: int) -> Array:
        y = jax.nn.relu(apply(p["in"], x))
        y = apply(p["out"], jax.nn.relu(apply(p["middle"], y, stride)))
        return jax.nn.relu(y + (apply(p["short"], x, stride) if "short" in p else x))

    def loss_of(p: Params, x: Array, y: Array) -> Array:
        x = jax.nn.relu(apply(p["stem"], x, 2))
        x = lax.reduce_window(x, -float("inf"), lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)])
        strides = [stride if i == 0 else 1 for count, _, stride in STAGES for i in range(count)]
        for q, stride in zip(p["blocks"], strides, strict=True):
            x = residual(q, x, stride)
        return cross_entropy(linear(p["head"], x.mean((1, 2))), y)

    blocks: list[Params] = []
    before = 64
    for count, inside, _ in STAGES:
        for i in range(count):
            wide = 4 * inside
            block = {"in": layer(1, before, inside), "middle": layer(3, inside, inside), "out": layer(1, inside, wide)}
            blocks.append(block | ({"short": layer(1, before, wide)} if i == 0 else {}))
            before = wide
    params = {"stem": layer(7, 3, 64), "blocks": blocks, "head": dense(2048, 1000)}
    return training(params, loss_of, images(2), labels(1000, 2))


def gpt_512() -> Step:
    return gpt(width=512, heads=8)


def vit() -> Step:
    def loss_of(p: Params, x: Array, y: Array) -> Array:
        return cross_entropy(seen(p, x), y)

    return training(vision(), loss_of, images(8), labels(1000, 8))


LARGE: dict[str, Callable[[], Step]] = {f.__name__: f for f in (resnet50, gpt_512, vit)}
