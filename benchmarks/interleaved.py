"""Timing rivals in turn, so that a noisy machine disturbs them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def best_times(rivals: Mapping[str, Callable[[], object]], rounds: int = 7, seconds: float = 0.1) -> dict[str, float]:
    """The best time of one call for each rival; every round runs each rival for about `seconds`."""
    repeats = {}
    for name, run in rivals.items():
        run()
        start = time.perf_counter()
        run()
        repeats[name] = max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))
    best = dict.fromkeys(rivals, float("inf"))
    for _ in range(rounds):
        for name, run in rivals.items():
            n = repeats[name]
            start = time.perf_counter()
            for _ in range(n):
                run()
            best[name] = min(best[name], (time.perf_counter() - start) / n)
    return best
