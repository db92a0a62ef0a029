"""`python -m benchmarks.few_bits`: products with weights of int8, with rows as they are and with rows rounded to int8.

A row is one size; ours in float32 is beside them. All are kernels of compiled functions, on as many threads as
WONDERLAND_THREADS says; the weights are parameters, so what is made of them alone is kept from call to call.
"""

from __future__ import annotations

import functools

import numpy as np

import wonderland as wl

from .interleaved import best_times
from .options import Options
from .printed import Table

SIZES = ((768, 3072), (2048, 2048))  # (k, n) of the weights
ROWS = (1, 4, 16, 128, 512)


def main() -> None:
    columns = ["(k, n), rows", "float32", "int8", "rounded", "float32 / rounded", "int8 / rounded"]
    table = Table("Products with weights of few bits: billions of operations in a second", columns, Options())
    for k, n in SIZES:
        layer = wl.nn.Linear(k, n, bias=False).eval()
        layers = [layer, wl.quantize(layer, "int8"), wl.quantize(layer, "int8", activations="int8")]
        for rows in ROWS:
            x = wl.asarray(np.random.default_rng(0).normal(size=(rows, k)).astype(np.float32))
            apply = wl.no_grad()(wl.jit(lambda layer, x: layer(x)))
            times = best_times({str(i): functools.partial(apply, one, x) for i, one in enumerate(layers)}, seconds=0.05)
            plain, int8, rounded = times.values()
            speeds = [f"{2 * rows * k * n / time / 1e9:.0f}" for time in (plain, int8, rounded)]
            table.row(f"{(k, n)}, {rows}", *speeds, f"{plain / rounded:.2f}", f"{int8 / rounded:.2f}")


if __name__ == "__main__":
    main()
