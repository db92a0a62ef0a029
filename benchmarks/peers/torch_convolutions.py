"""The grid of `benchmarks/convolutions.py` in PyTorch, with channels last."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor

from ..convolution_grid import GRID, Convolution
from ..measuring import Step
from .torch_workloads import compiled

FUNCTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def gradients(case: Convolution) -> Callable[[], Step]:
    axes = len(case.kernel)

    def convolve(x: Tensor, w: Tensor) -> Tensor:
        # views of memory that has channels last, for which PyTorch has kernels of its own
        x, w = (a.movedim(-1, 1) for a in (x, w))
        return FUNCTIONS[axes](
            x, w, stride=case.stride, padding=case.padding, dilation=case.dilation, groups=case.groups
        )

    def make() -> Step:
        *kernel, inputs, out = case.weight
        args = [torch.randn(case.x, requires_grad=True), torch.randn((out, *kernel, inputs), requires_grad=True)]
        run = compiled(convolve)
        return lambda: torch.autograd.grad(run(*args).square().sum(), args)

    return make


CONVOLUTIONS: dict[str, Callable[[], Step]] = {name: gradients(case) for name, case in GRID.items()}
