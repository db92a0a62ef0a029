"""`python -m benchmarks.step gpt`: the time of one training step of a workload, as a line of JSON.

`step_ms` is the best mean of eight rounds, `first_s` the time of the first call, which traces and compiles, `rss_mb`
the most memory that the process had. `--backend numpy` runs the graphs without native code.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable

import wonderland as wl

from .workloads import WORKLOADS


def measure(step: Callable[[], object], seconds: float = 4.0) -> tuple[float, float]:
    """The best time of a step and the time of the first, in seconds; the rounds together take about `seconds`."""
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    for _ in range(3):
        step()
    start = time.perf_counter()
    step()
    once = time.perf_counter() - start
    n, best = max(2, int(seconds / 8 / once)), float("inf")
    for _ in range(8):
        start = time.perf_counter()
        for _ in range(n):
            step()
        best = min(best, (time.perf_counter() - start) / n)
    return best, first


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step", description="The time of one training step.")
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--backend", default="native", help="native (the default) or numpy")
    parser.add_argument("--seconds", type=float, default=4.0, help="for how long to measure")
    options = parser.parse_args()
    wl.set_backend(options.backend)
    best, first = measure(WORKLOADS[options.workload](), options.seconds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = {
        "workload": options.workload,
        "peer": "wonderland",
        "step_ms": best * 1e3,
        "first_s": first,
        "rss_mb": memory,
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
