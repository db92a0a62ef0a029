"""What the training loop adds to the bare compiled step of the mlp: in turns, best of several rounds."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import wonderland as wl
from wonderland import nn, train

from .options import Options
from .printed import Table
from .workloads import perceptron

BATCH, STEPS = 64, 300


def main(options: Options | None = None) -> None:
    options = options or Options()
    title = f"An epoch of {STEPS} steps of the mlp, batch {BATCH}"
    table = Table(title, ["how", "per step", "over bare"], options, absolute=["per step"], widths=(34, 10))
    best = measured(options.rounds * 4)
    bare = best["bare compiled step"]
    for name, seconds in best.items():
        table.row(name, f"{seconds * 1e6:.0f} µs", f"{seconds / bare - 1:+.1%}")


def measured(rounds: int, steps: int = STEPS) -> dict[str, float]:
    """Seconds per step of each way to train, the best of some rounds."""
    ways = {
        "bare compiled step": _bare(steps),
        "wl.train.fit, batches in a list": _fit(steps, as_list=True),
        "wl.train.fit, fed by a loader": _fit(steps, as_list=False),
    }
    best = {name: float("inf") for name in ways}
    for turn in range(rounds + 1):
        for name, run in ways.items():
            start = time.perf_counter()
            run()
            if turn:  # the first round compiles
                best[name] = min(best[name], (time.perf_counter() - start) / steps)
    return best


def _data(steps: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    n = BATCH * steps
    return rng.random((n, 784), dtype=np.float32), rng.integers(10, size=n)


def _bare(steps: int) -> Callable[[], None]:
    model, loss, step = perceptron(), nn.CrossEntropyLoss(), train.training_step()
    optimizer = wl.optim.Adam(model)
    x, y = _data(1)
    batch = (wl.asarray(x), wl.asarray(y))

    def run() -> None:
        for _ in range(steps):
            step(model, loss, optimizer, None, batch)

    return run


def _fit(steps: int, as_list: bool) -> Callable[[], None]:
    x, y = _data(steps)
    data = [(wl.asarray(x[:BATCH]), wl.asarray(y[:BATCH]))] * steps if as_list else (x, y)
    trainer = train.Trainer(perceptron(), nn.CrossEntropyLoss(), data, batch_size=BATCH, progress=False, check=False)

    def run() -> None:
        trainer.fit(trainer.epoch + 1)

    return run


if __name__ == "__main__":
    main()
