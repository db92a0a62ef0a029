"""A grid of convolutions, forward and backward: `python -m benchmarks convolutions --peers PYTHON`.

Each case computes the convolution and the gradients of the sum of its squares with respect to input and filter, against
PyTorch with channels last. Every round asks each rival once, and the best of all rounds counts. A second table compares
ways to compute one convolution: loops, patches and a matrix product, spectra, and the primitive.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import wonderland as wl
from wonderland import nn

from . import operations
from .convolution_grid import GRID, Convolution
from .interleaved import best_times
from .options import Options
from .printed import Table

FUNCTIONS = {1: nn.functional.conv1d, 2: nn.functional.conv2d, 3: nn.functional.conv3d}


def gradients(case: Convolution) -> Callable[[], functools.partial[Any]]:
    f = functools.partial(
        FUNCTIONS[len(case.kernel)],
        stride=case.stride,
        padding=case.padding,
        dilation=case.dilation,
        groups=case.groups,
    )
    return operations.gradients(lambda x, w: f(x, w), case.x, case.weight)


CONVOLUTIONS: dict[str, Callable[[], functools.partial[Any]]] = {name: gradients(case) for name, case in GRID.items()}


def loops(x: wl.Tensor, w: wl.Tensor) -> Any:
    """The sum of the book, place by place."""
    a, b = np.asarray(x), np.asarray(w)
    rows, columns = (n - k + 1 for n, k in zip(a.shape[1:3], b.shape, strict=False))
    out = np.empty((len(a), rows, columns, b.shape[-1]), a.dtype)
    for i, j in np.ndindex(rows, columns):
        out[:, i, j] = np.tensordot(a[:, i : i + b.shape[0], j : j + b.shape[1]], b, 3)
    return out


def ways(options: Options) -> None:
    """One convolution of images of 64 x 64, computed in four ways, for small and large kernels."""
    F = nn.functional
    table = Table("Ways to convolve: ms", ["kernel", "loops", "patches", "spectra", "conv2d"], options)
    patches = wl.jit(lambda x, w: F.unfold(x, w.shape[:2]) @ w.reshape(-1, w.shape[-1]))
    spectra, direct = wl.jit(F.fft_conv), wl.jit(F.conv2d)
    for k in (3, 9, 31):
        args = wl.random.normal((2, 64, 64, 8)), wl.random.normal((k, k, 8, 8))
        makers: dict[str, Callable[..., wl.Tensor]] = {
            "loops": loops,
            "patches": patches,
            "spectra": spectra,
            "conv2d": direct,
        }
        times = best_times({name: functools.partial(f, *args) for name, f in makers.items()}, rounds=5)
        table.row(f"{k} x {k}", *[f"{1e3 * seconds:.2f}" for seconds in times.values()])


def main(options: Options | None = None) -> None:
    operations.main(options, CONVOLUTIONS, "Convolutions, forward and backward")
    if not (options and options.workloads):
        ways(options or Options())


if __name__ == "__main__":
    main()
