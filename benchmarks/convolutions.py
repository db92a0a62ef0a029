"""A grid of convolutions, forward and backward: `python -m benchmarks convolutions --peers PYTHON`.

Each case computes the convolution and the gradients of the sum of its squares with respect to input and filter, against
PyTorch with channels last. Every round asks each rival once, and the best of all rounds counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from wonderland import nn

from . import operations
from .convolution_grid import GRID, Convolution
from .options import Options

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


def main(options: Options | None = None) -> None:
    operations.main(options, CONVOLUTIONS, "Convolutions, forward and backward")


if __name__ == "__main__":
    main()
