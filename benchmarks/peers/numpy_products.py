"""The grid of `benchmarks/products.py` by NumPy's BLAS, as lines of JSON (see measuring.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ..measuring import Step, arguments, figures, line
from ..product_grid import GRID, MatrixProduct


def call(case: MatrixProduct) -> Callable[[], Step]:
    def make() -> Step:
        x, y = (np.random.default_rng(0).normal(size=shape).astype(np.float32) for shape in case.shapes)
        left = x.swapaxes(-1, -2) if case.x_transposed else x
        right = y.swapaxes(-1, -2) if case.y_transposed else y
        return functools.partial(np.matmul, left, right)

    return make


def main() -> None:
    options = arguments("benchmarks.peers.numpy_products", GRID).parse_args()
    for name in options.workloads:
        found, _ = figures(call(GRID[name]), options.seconds)
        line(name, "numpy", found)


if __name__ == "__main__":
    main()
