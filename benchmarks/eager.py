"""The overhead of operations that run at once: one addition, and value and gradient of a small network."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np

import wonderland as wl

from .interleaved import best_times
from .options import Options
from .printed import Table, compared, comparison


def addition(table: Table) -> None:
    a, b = np.ones(10, np.float32), np.ones(10, np.float32)
    x, y = wl.asarray(a), wl.asarray(b)
    times = best_times({"numpy": lambda: a + b, "wonderland": lambda: x + y}, rounds=15)
    cells = compared(times["wonderland"] * 1e6, times["numpy"] * 1e6, "us", "NumPy", "at most 6")
    table.row("add two 10-element tensors", *cells)


def network(table: Table) -> None:
    """Value and gradient of a 64-128-10 tanh network on a batch of 32, squared loss, against the `autograd` package."""
    rng = np.random.default_rng(0)
    shapes = [(64, 128), (128,), (128, 10), (10,)]
    params = [rng.normal(size=s).astype(np.float32) * 0.1 for s in shapes]
    x, y = rng.normal(size=(32, 64)).astype(np.float32), rng.normal(size=(32, 10)).astype(np.float32)

    def loss_in(xp: Any) -> Any:
        def loss(p: Any, x: Any, y: Any) -> Any:
            w1, b1, w2, b2 = p
            return xp.mean((xp.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)

        return loss

    ours = wl.value_and_grad(loss_in(wl))
    tensors, tx, ty = [wl.asarray(p) for p in params], wl.asarray(x), wl.asarray(y)
    compiled = wl.jit(ours)
    rivals = {"wonderland": lambda: ours(tensors, tx, ty), "jit": lambda: compiled(tensors, tx, ty)}
    against = "eager"
    if importlib.util.find_spec("autograd") is None:
        print("the autograd package is not installed (pip install autograd): no comparison", file=sys.stderr)
    else:
        import autograd
        import autograd.numpy

        theirs = autograd.value_and_grad(loss_in(autograd.numpy))
        rivals["autograd"] = lambda: theirs(params, x, y)
        against = "the autograd package"
    times = best_times(rivals)
    reference = times.get("autograd", times["wonderland"]) * 1e6
    for name, what, aim in (("wonderland", "eager", "at most 1"), ("jit", "under jit, evaluated by NumPy", "")):
        cells = compared(times[name] * 1e6, reference, "us", against, aim)
        table.row(f"value and gradient of a 2-layer network, {what}", *cells)


def main(options: Options | None = None) -> None:
    table = comparison("Overhead of operations that run at once", options or Options())
    addition(table)
    network(table)


if __name__ == "__main__":
    main()
