"""A grid of matrix products: `python -m benchmarks products --peers PYTHON`.

Square, tall, wide and batched products, one to sixteen rows, transposed factors, beside NumPy's BLAS and PyTorch, each
in a process of its own: threads of a library that wait for work in a loop would slow down the next one. The last column
is ours as a share of what the machine could do: of the peak of its multiply-adds, or, where a few rows make reading y
the limit, of the speed of a plain read (the compiled sum of as many numbers).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import wonderland as wl
from wonderland.inspect.limits import limits

from . import operations
from .measuring import best_time
from .options import Options
from .printed import Table, cell, geometric_mean
from .product_grid import GRID, MatrixProduct
from .rivals import OURS, Rival, best_seconds, rivals

FEW_ROWS = 8  # for which reading y is the limit


def call(case: MatrixProduct) -> Callable[[], functools.partial[Any]]:
    def multiply(x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
        return (x.mT if case.x_transposed else x) @ (y.mT if case.y_transposed else y)

    return operations.call(multiply, *case.shapes)


PRODUCTS: dict[str, Callable[[], functools.partial[Any]]] = {name: call(case) for name, case in GRID.items()}


def least(case: MatrixProduct, seconds: float) -> float:
    """The time in seconds that the machine needs at least: for the multiply-adds, or to read y."""
    computing = case.operations / 2 / limits().of(False)
    if case.m > FEW_ROWS:
        return computing
    read = operations.call(wl.sum, case.shapes[1])()
    read()
    return max(computing, best_time(read, seconds))


def main(options: Options | None = None) -> None:
    options = options or Options()
    names = [name for name in GRID if not options.workloads or name in options.workloads]
    numpy = Rival("numpy", "numpy", (sys.executable, "-m", "benchmarks.peers.numpy_products"))
    everybody = [*rivals(options, operations=True), *([] if "numpy" in options.skip else [numpy])]
    best = best_seconds(everybody, names, options)
    peers = [rival.name for rival in everybody if rival.name != OURS]
    absolute = [f"{name} GFLOP/s" for name in ("ours", *peers)]
    columns = ["product", *absolute, *peers, "best peer", "of the limit"]
    table = Table("Matrix products: the peer's time / ours (above 1: ours is faster)", columns, options, absolute)
    ratios = []
    for name in names:
        case, mine = GRID[name], best[OURS].get(name)
        if mine is None:
            continue
        theirs = [best[peer].get(name) for peer in peers]
        found = [t / mine if t else None for t in theirs]
        found.append(min((x for x in found if x is not None), default=None))
        ratios.append(found)
        speeds = [1e-9 * case.operations / t if t else None for t in (mine, *theirs)]
        share = least(case, options.seconds / 10) / mine
        table.row(name, *[cell(x, ".1f") for x in speeds], *[cell(x, ".2f") for x in found], f"{share:.0%}")
    means = [geometric_mean(column) for column in zip(*ratios, strict=True)]
    table.row("geometric mean", *[""] * len(absolute), *[cell(x, ".2f") for x in means], "")


if __name__ == "__main__":
    main()
