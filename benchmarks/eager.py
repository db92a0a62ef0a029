"""The overhead of operations that run at once: one addition, and value and gradient of a small network."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import wonderland as wl

from .interleaved import best_times, report


def addition() -> None:
    a, b = np.ones(10, np.float32), np.ones(10, np.float32)
    x, y = wl.asarray(a), wl.asarray(b)
    times = best_times({"numpy": lambda: a + b, "wonderland": lambda: x + y}, rounds=15)
    report("add two 10-element tensors", times["wonderland"] * 1e6, times["numpy"] * 1e6, "us", "at most 6")


def network() -> None:
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
    if importlib.util.find_spec("autograd") is None:
        print("the autograd package is not installed (pip install autograd): no comparison")
        times = best_times(rivals)
        reference = times["wonderland"]
    else:
        import autograd
        import autograd.numpy

        theirs = autograd.value_and_grad(loss_in(autograd.numpy))
        rivals["autograd"] = lambda: theirs(params, x, y)
        times = best_times(rivals)
        reference = times["autograd"]
    report(
        "value and gradient of a 2-layer network, eager", times["wonderland"] * 1e6, reference * 1e6, "us", "at most 1"
    )
    report("the same under jit (NumPy evaluator)", times["jit"] * 1e6, reference * 1e6, "us", "none yet")


def main() -> None:
    addition()
    network()


if __name__ == "__main__":
    main()
