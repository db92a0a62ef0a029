"""Single operations, compiled: `OPERATIONS[name]()` gives a call of one of them, as `workloads.py` does for steps.

The name says what is computed: `matmul_512` multiplies two matrices of 512 x 512. Those that end in `grad` compute the
gradients of the sum of the squared result with respect to all arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import wonderland as wl
from wonderland import nn

from .options import Options
from .printed import Ratios
from .rivals import OURS, best_seconds, rivals

F = nn.functional
Shape = tuple[int, ...]


def call(f: Callable[..., Any], *shapes: Shape) -> Callable[[], functools.partial[Any]]:
    """A maker of a compiled call of f on normal numbers of these shapes."""
    return lambda: functools.partial(wl.jit(f), *[wl.random.normal(shape) for shape in shapes])


def gradients(f: Callable[..., Any], *shapes: Shape) -> Callable[[], functools.partial[Any]]:
    return call(wl.grad(lambda *args: wl.square(f(*args)).sum(), argnums=tuple(range(len(shapes)))), *shapes)


def convolve(stride: int = 1, groups: int = 1) -> Callable[[wl.Tensor, wl.Tensor], wl.Tensor]:
    return lambda x, w: F.conv2d(x, w, stride=stride, padding=w.shape[0] // 2, groups=groups)


def attend(q: wl.Tensor, k: wl.Tensor, v: wl.Tensor) -> wl.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def normalize(x: wl.Tensor, weight: wl.Tensor, bias: wl.Tensor) -> wl.Tensor:
    return F.layer_norm(x, x.shape[-1], weight, bias)


def chain(x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    return wl.tanh(x) * wl.exp(-y * y) + wl.sigmoid(x + y)


HEADS = (8, 4, 256, 32)  # (batch, heads, tokens, head's width)

OPERATIONS: dict[str, Callable[[], functools.partial[Any]]] = {
    "matmul_64": call(wl.matmul, (64, 64), (64, 64)),
    "matmul_512": call(wl.matmul, (512, 512), (512, 512)),
    "matmul_tall": call(wl.matmul, (4096, 128), (128, 128)),
    "matmul_thin": call(wl.matmul, (8, 1024), (1024, 1024)),
    "matmul_batch": call(wl.matmul, (64, 64, 64), (64, 64, 64)),
    "matmul_transposed": call(lambda x, y: x.T @ y, (1024, 256), (1024, 256)),
    "conv_3x3": call(convolve(), (16, 32, 32, 64), (3, 3, 64, 64)),
    "conv_3x3_grad": gradients(convolve(), (16, 32, 32, 64), (3, 3, 64, 64)),
    "conv_1x1": call(convolve(), (16, 16, 16, 128), (1, 1, 128, 256)),
    "conv_7x7_stride2": call(convolve(stride=2), (4, 112, 112, 3), (7, 7, 3, 64)),
    "conv_depthwise": call(convolve(groups=64), (16, 32, 32, 64), (3, 3, 1, 64)),
    "attention": call(attend, HEADS, HEADS, HEADS),
    "attention_grad": gradients(attend, HEADS, HEADS, HEADS),
    "softmax": call(wl.softmax, (512, 1000)),
    "log_softmax_long": call(wl.log_softmax, (32, 50000)),
    "layer_norm": call(normalize, (2048, 256), (256,), (256,)),
    "layer_norm_grad": gradients(normalize, (2048, 256), (256,), (256,)),
    "elementwise": call(chain, (1000, 1000), (1000, 1000)),
    "elementwise_small": call(chain, (10, 10), (10, 10)),
    "gelu": call(F.gelu, (1000, 1000)),
    "sum_all": call(wl.sum, (1000, 1000)),
    "sum_rows": call(lambda x: x.sum(1), (1000, 1000)),
    "sum_columns": call(lambda x: x.sum(0), (1000, 1000)),
    "variance": call(lambda x: x.var(0), (1000, 1000)),
    "argmax": call(lambda x: x.argmax(1), (1000, 1000)),
    "cumulative_sum": call(lambda x: wl.cumulative_sum(x, axis=1), (1000, 1000)),
    "sort": call(lambda x: wl.sort(x, axis=1), (100, 1000)),
    "transpose": call(lambda x: x.T + 0.0, (1000, 1000)),
}


def main(
    options: Options | None = None,
    operations: dict[str, Callable[[], functools.partial[Any]]] = OPERATIONS,
    title: str = "Single operations",
) -> None:
    """One process of each rival measures all operations; every round asks each rival once."""
    options = options or Options()
    names = [name for name in operations if not options.workloads or name in options.workloads]
    if not names:
        return
    everybody = rivals(options, operations=True)
    best = best_seconds(everybody, names, options)
    peers = [rival.name for rival in everybody if rival.name != OURS]
    table = Ratios(f"{title}: the peer's time / ours (above 1: ours is faster)", "us", peers, options, best=False)
    for name in names:
        table.row(name, {rival: 1e6 * times[name] if name in times else None for rival, times in best.items()})
    table.means()


if __name__ == "__main__":
    main()
