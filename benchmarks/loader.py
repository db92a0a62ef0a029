"""Whether a loader keeps up: batches per second, and the mlp's step fed by one beside the step on a fixed batch."""

from __future__ import annotations

import time

import numpy as np

import wonderland as wl

from .options import Options
from .printed import Table
from .workloads import mlp

EXAMPLES, BATCH, STEPS, ROUNDS = 60_000, 64, 100, 8


def main(options: Options | None = None) -> None:
    title = f"A loader of {EXAMPLES:,} x 784 float32, shuffled"
    table = Table(title, ["what", "per batch", "batches per second"], options or Options(), widths=(34, 10))
    rng = np.random.default_rng(0)
    x, y = rng.random((EXAMPLES, 784), dtype=np.float32), rng.integers(10, size=EXAMPLES)
    dataset = wl.data.TensorDataset(x, y)
    for batch in (BATCH, 128):
        for prefetch in (0, 2):
            best = min(_drained(wl.data.DataLoader(dataset, batch, shuffle=True, prefetch=prefetch)) for _ in range(3))
            who = "a thread" if prefetch else "the caller"
            table.row(f"batches of {batch} by {who}", f"{best * 1e6:.0f} µs", f"{1 / best:,.0f}")
    with wl.using_backend("native"):
        bare, fed, waited = _fed(dataset)
    table.row("mlp step, fixed batch", f"{bare * 1e6:.0f} µs", "")
    table.row("mlp step, fed by the loader", f"{fed * 1e6:.0f} µs", f"{fed / bare - 1:+.1%}")
    table.row("of which waiting (median)", f"{waited * 1e6:.0f} µs", f"{waited / bare:.1%} of a step")


def _drained(loader: wl.data.DataLoader) -> float:
    start = time.perf_counter()
    for _ in loader:
        pass
    return (time.perf_counter() - start) / len(loader)


def _fed(dataset: wl.data.TensorDataset) -> tuple[float, float, float]:
    """Seconds of a step on a fixed batch, of one on the next batch of a loader, and of the wait for it."""
    fixed = mlp(BATCH)
    step, (model, optimizer, *_) = fixed.func, fixed.args
    fixed()
    bare, fed, waits = [], [], []
    batches = iter(wl.data.DataLoader(dataset, BATCH, shuffle=True, drop_last=True))
    for _ in range(ROUNDS):  # in turns, so that both see the machine in the same mood
        start = time.perf_counter()
        for _ in range(STEPS):
            fixed()
        bare.append((time.perf_counter() - start) / STEPS)
        start = time.perf_counter()
        for _ in range(STEPS):
            asked = time.perf_counter()
            xb, yb = next(batches)
            waits.append(time.perf_counter() - asked)
            step(model, optimizer, xb, yb)
        fed.append((time.perf_counter() - start) / STEPS)
    return min(bare), min(fed), float(np.median(waits))


if __name__ == "__main__":
    main()
