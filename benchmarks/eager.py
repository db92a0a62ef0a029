"""Operations that run at once, without `jit`: small ones beside NumPy, large ones and training steps beside PyTorch.

Steps are those of workloads.py, called as they are written; `python -m benchmarks.step eager_mlp` measures one of them.
What is compiled on the way is compiled when it comes again, so the best of many calls is what a long training sees.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import wonderland as wl

from .interleaved import best_times
from .measuring import Step
from .options import Options
from .printed import Ratios, Table, compared, comparison
from .rivals import OURS, rivals, run
from .workloads import WORKLOADS, classify, labels, perceptron

SIZE = 1 << 20  # elements of a large operand, in rows of 256


def _as_written(name: str) -> Callable[[], Step]:
    """A maker of the step of a workload without its `jit`."""

    def make() -> Step:
        step = WORKLOADS[name]()
        return functools.partial(inspect.unwrap(step.func), *step.args)

    return make


def imperative() -> Step:
    """The step of the mlp in the imperative style."""
    model = perceptron()
    optimizer = wl.optim.Adam(model, lr=1e-3)
    x, y = wl.random.normal((64, 784)), labels(10, 64)

    def step() -> wl.Tensor:
        optimizer.zero_grad()
        loss = classify(model, x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _operation(f: Callable[..., Any]) -> Callable[[], Step]:
    def make() -> Step:
        x, y = wl.random.normal((SIZE // 256, 256)), wl.random.normal((SIZE // 256, 256))
        return functools.partial(f, x, y)

    return make


STEPS: dict[str, Callable[[], Step]] = {
    "eager_mlp_tiny": _as_written("mlp_tiny"),
    "eager_mlp": _as_written("mlp"),
    "eager_mlp_imperative": imperative,
    "eager_gpt": _as_written("gpt"),
}
LARGE: dict[str, Callable[[], Step]] = {
    "eager_add": _operation(lambda x, y: x + y),
    "eager_exp": _operation(lambda x, y: wl.exp(x)),
    "eager_tanh": _operation(lambda x, y: wl.tanh(x)),
    "eager_sum": _operation(lambda x, y: x.sum()),
    "eager_sum_rows": _operation(lambda x, y: x.sum(axis=1)),
    "eager_max_columns": _operation(lambda x, y: x.max(axis=0)),
    "eager_product": _operation(lambda x, y: x[:256] @ y.T),
}
EAGER = STEPS | LARGE


def small(table: Table) -> None:
    """Operations on ten elements, whose cost is that of the call."""
    a, b, m = np.linspace(0.1, 1.0, 10, dtype=np.float32), np.ones(10, np.float32), np.ones((4, 4), np.float32)
    x, y, w = wl.asarray(a), wl.asarray(b), wl.asarray(m)
    calls: dict[str, tuple[Step, Step]] = {
        "wl.add(x, y)": (lambda: wl.add(x, y), lambda: np.add(a, b)),
        "x * 2.0": (lambda: x * 2.0, lambda: a * 2.0),
        "x / y": (lambda: x / y, lambda: a / b),
        "x > y": (lambda: x > y, lambda: a > b),
        "wl.exp(x)": (lambda: wl.exp(x), lambda: np.exp(a)),
        "wl.maximum(x, y)": (lambda: wl.maximum(x, y), lambda: np.maximum(a, b)),
        "x.sum()": (lambda: x.sum(), lambda: a.sum()),
        "w @ w, 4 x 4": (lambda: w @ w, lambda: m @ m),
        "w.reshape(16)": (lambda: w.reshape(16), lambda: m.reshape(16)),
    }
    for what, (ours, numpys) in calls.items():
        times = best_times({"numpy": numpys, "wonderland": ours}, rounds=15, seconds=0.02)
        cells = compared(times["wonderland"] * 1e6, times["numpy"] * 1e6, "us", "NumPy", "at most 2.5")
        table.row(what, *cells)


def large(table: Table) -> None:
    """Operations on a million elements, beside one thread of NumPy."""
    a, b = (np.random.default_rng(i).normal(size=(SIZE // 256, 256)).astype(np.float32) for i in (0, 1))
    numpys: dict[str, Step] = {
        "eager_add": lambda: a + b,
        "eager_exp": lambda: np.exp(a),
        "eager_tanh": lambda: np.tanh(a),
        "eager_sum": lambda: a.sum(),
        "eager_sum_rows": lambda: a.sum(axis=1),
        "eager_max_columns": lambda: a.max(axis=0),
    }
    for name, theirs in numpys.items():
        ours = LARGE[name]()
        for _ in range(40):
            ours()
        times = best_times({"numpy": theirs, "wonderland": ours}, seconds=0.05)
        cells = compared(times["wonderland"] * 1e6, times["numpy"] * 1e6, "us", "NumPy", "at most 1")
        table.row(f"{name.removeprefix('eager_')}, a million elements", *cells)


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
        autograd = importlib.import_module("autograd")
        theirs = autograd.value_and_grad(loss_in(importlib.import_module("autograd.numpy")))
        rivals["autograd"] = lambda: theirs(params, x, y)
        against = "the autograd package"
    times = best_times(rivals)
    reference = times.get("autograd", times["wonderland"]) * 1e6
    for name, what, aim in (("wonderland", "eager", "at most 1"), ("jit", "under jit, evaluated by NumPy", "")):
        cells = compared(times[name] * 1e6, reference, "us", against, aim)
        table.row(f"value and gradient of a 2-layer network, {what}", *cells)


def beside_peers(options: Options) -> None:
    """The same in PyTorch, which runs at once, too; everybody in turn."""
    names = [name for name in EAGER if not options.workloads or name in options.workloads]
    everybody = [rival for rival in rivals(options) if rival.name in (OURS, "torch")]
    peers = [rival.name for rival in everybody if rival.name != OURS]
    table = Ratios("Without jit: the peer's time / ours (above 1: ours is faster)", "ms", peers, options)
    for name in names if peers else []:
        best: dict[str, float | None] = {rival.name: None for rival in everybody}
        for _ in range(options.rounds):
            for rival in everybody:
                for line in run(rival, [name], options.seconds).values():
                    best[rival.name] = min(line["step_ms"], best[rival.name] or line["step_ms"])
        table.row(name, best)
    table.means()


def main(options: Options | None = None) -> None:
    options = options or Options()
    table = comparison("Overhead of operations that run at once", options)
    small(table)
    large(table)
    network(table)
    beside_peers(options)


if __name__ == "__main__":
    main()
