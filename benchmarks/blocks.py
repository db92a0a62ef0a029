"""`python -m benchmarks.blocks square_512 mlp`: the block of a product that is chosen, beside all that could have been.

The block (rows, vectors) follows from a model of the processor (`products/model.py`). Here every other one that fits
its registers is timed, too. Were one often faster, choosing by timing would pay.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import wonderland as wl
from wonderland.engines.native.machine import machine
from wonderland.engines.native.products import product

from .interleaved import best_times
from .options import Options
from .printed import Table
from .product_grid import NAMED, MatrixProduct

MODEL = product.block
LEAST = {16: 8, 32: 18}  # accumulators of a block that can be fast, by registers


def compiled(case: MatrixProduct, chosen: tuple[int, int] | None) -> Callable[[], object]:
    """The product with blocks of a size, where it allows that size."""

    def block(registers: int, m: int, vectors: int, k: int, multiple: int = 1, wide: int = 0, most: int = 32) -> Any:
        cycles, *found = MODEL(registers, m, vectors, k, multiple, wide, most)
        fits = chosen and chosen[0] <= m and chosen[0] % multiple == 0 and chosen[1] <= vectors
        return cycles, *(chosen if chosen and fits else found)

    plain = product.Product.describe
    described = mock.patch.object(product.Product, "describe", lambda step: f"{plain(step)} {chosen}")
    rng = np.random.default_rng(0)
    x, y = (wl.asarray(rng.normal(size=shape).astype(np.float32)) for shape in case.shapes)
    turned = case.x_transposed, case.y_transposed
    f = wl.jit(lambda *both: wl.matmul(*(v.mT if on else v for v, on in zip(both, turned, strict=True))))
    with mock.patch.object(product, "block", block), described:
        f(x, y)
    return functools.partial(f, x, y)


def main(names: list[str]) -> None:
    registers = machine().cpu.registers
    blocks = [
        (rows, vectors)
        for vectors in range(1, 5)
        for rows in range(2, 25)
        if LEAST[registers] <= rows * vectors and rows * vectors + vectors < registers
    ]
    columns = ["product", "chosen, GFLOP/s", "fastest / chosen", "fastest"]
    table = Table("Blocks of products: the fastest of all beside the one that is chosen", columns, Options())
    for name in names or list(NAMED):
        case = NAMED[name]
        rivals = {"chosen": compiled(case, None)} | {f"{r} x {v}": compiled(case, (r, v)) for r, v in blocks}
        times = best_times(rivals, rounds=15, seconds=0.005)
        mine = times.pop("chosen")
        fastest = min(times, key=times.__getitem__)
        table.row(name, f"{case.operations / mine / 1e9:.0f}", f"{mine / times[fastest]:.2f}", fastest)


if __name__ == "__main__":
    main(sys.argv[1:])
