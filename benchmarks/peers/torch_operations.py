"""The operations of `benchmarks/operations.py` in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor

from ..measuring import Step
from .torch_workloads import compiled

Shape = tuple[int, ...]


def call(f: Callable[..., Any], *shapes: Shape) -> Callable[[], Step]:
    """A maker of a call of f on normal numbers of these shapes, without gradients."""

    def make() -> Step:
        args, run = [torch.randn(shape) for shape in shapes], compiled(f)

        def step() -> Any:
            with torch.inference_mode():
                return run(*args)

        return step

    return make


def gradients(f: Callable[..., Any], *shapes: Shape) -> Callable[[], Step]:
    def make() -> Step:
        args, run = [torch.randn(shape, requires_grad=True) for shape in shapes], compiled(f)
        return lambda: torch.autograd.grad(run(*args).square().sum(), args)

    return make


def convolve(stride: int = 1, groups: int = 1) -> Callable[[Tensor, Tensor], Tensor]:
    """Of images (batch, height, width, channels) by filters (out, height, width, channels), both channels last."""

    def run(x: Tensor, w: Tensor) -> Tensor:
        x, w = (a.permute(0, 3, 1, 2) for a in (x, w))
        return F.conv2d(x, w, stride=stride, padding=w.shape[2] // 2, groups=groups)

    return run


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def normalize(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def chain(x: Tensor, y: Tensor) -> Tensor:
    return torch.tanh(x) * torch.exp(-y * y) + torch.sigmoid(x + y)


HEADS = (8, 4, 256, 32)  # (batch, heads, tokens, head's width)

OPERATIONS: dict[str, Callable[[], Step]] = {
    "matmul_64": call(torch.matmul, (64, 64), (64, 64)),
    "matmul_512": call(torch.matmul, (512, 512), (512, 512)),
    "matmul_tall": call(torch.matmul, (4096, 128), (128, 128)),
    "matmul_thin": call(torch.matmul, (8, 1024), (1024, 1024)),
    "matmul_batch": call(torch.matmul, (64, 64, 64), (64, 64, 64)),
    "matmul_transposed": call(lambda x, y: x.T @ y, (1024, 256), (1024, 256)),
    "conv_3x3": call(convolve(), (16, 32, 32, 64), (64, 3, 3, 64)),
    "conv_3x3_grad": gradients(convolve(), (16, 32, 32, 64), (64, 3, 3, 64)),
    "conv_1x1": call(convolve(), (16, 16, 16, 128), (256, 1, 1, 128)),
    "conv_7x7_stride2": call(convolve(stride=2), (4, 112, 112, 3), (64, 7, 7, 3)),
    "conv_depthwise": call(convolve(groups=64), (16, 32, 32, 64), (64, 3, 3, 1)),
    "attention": call(attend, HEADS, HEADS, HEADS),
    "attention_grad": gradients(attend, HEADS, HEADS, HEADS),
    "softmax": call(lambda x: x.softmax(-1), (512, 1000)),
    "log_softmax_long": call(lambda x: x.log_softmax(-1), (32, 50000)),
    "layer_norm": call(normalize, (2048, 256), (256,), (256,)),
    "layer_norm_grad": gradients(normalize, (2048, 256), (256,), (256,)),
    "elementwise": call(chain, (1000, 1000), (1000, 1000)),
    "elementwise_small": call(chain, (10, 10), (10, 10)),
    "gelu": call(F.gelu, (1000, 1000)),
    "sum_all": call(torch.sum, (1000, 1000)),
    "sum_rows": call(lambda x: x.sum(1), (1000, 1000)),
    "sum_columns": call(lambda x: x.sum(0), (1000, 1000)),
    "variance": call(lambda x: x.var(0, correction=0), (1000, 1000)),
    "argmax": call(lambda x: x.argmax(1), (1000, 1000)),
    "cumulative_sum": call(lambda x: x.cumsum(1), (1000, 1000)),
    "sort": call(lambda x: x.sort(1).values, (100, 1000)),
    "transpose": call(lambda x: x.T.contiguous(), (1000, 1000)),
}
