"""A hundred thousand steps of a small network: the memory must not grow."""

from __future__ import annotations

import wonderland as wl

from .measuring import memory_mb
from .options import Options
from .printed import Table
from .workloads import mlp_tiny

STEPS, SAMPLES = 100_000, 10
LIMIT = 1.0  # MB of growth after the first sample


def main(options: Options | None = None) -> None:
    table = Table(
        f"Memory in {STEPS:,} steps of mlp_tiny", ["steps", "MB", "since the first tenth"], options or Options()
    )
    step = mlp_tiny()
    curve: list[float] = []
    with wl.using_backend("native"):
        for sample in range(1, SAMPLES + 1):
            for _ in range(STEPS // SAMPLES):
                step()
            curve.append(memory_mb())
            table.row(f"{sample * STEPS // SAMPLES:,}", f"{curve[-1]:.2f}", f"{curve[-1] - curve[0]:+.2f}")
    growth = max(curve) - curve[0]
    table.row("flat" if growth < LIMIT else "not flat", "", f"{growth:+.2f}")


if __name__ == "__main__":
    main()
