"""The grid of `benchmarks/products.py` in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ..measuring import Step
from ..product_grid import GRID, MatrixProduct
from . import torch_operations


def call(case: MatrixProduct) -> Callable[[], Step]:
    def multiply(x: Tensor, y: Tensor) -> Tensor:
        return (x.mT if case.x_transposed else x) @ (y.mT if case.y_transposed else y)

    return torch_operations.call(multiply, *case.shapes)


PRODUCTS: dict[str, Callable[[], Step]] = {name: call(case) for name, case in GRID.items()}
