"""One process that measures steps: the best time, the first call and the memory, as a line of JSON for each.

    {"workload": "mlp", "peer": "torch", "step_ms": .., "mean_ms": .., "first_s": .., "first_cpu_s": .., "rss_mb": ..,
     "base_mb": .., "first_mb": .., "steady_mb": ..}

`step_ms` is the best mean of eight rounds, `mean_ms` the mean of all; `first_s` the time of the first call, which may
trace and compile, and `first_cpu_s` what all threads computed in it, which other programs disturb less. `rss_mb` is the
most memory that the process ever had, `base_mb` what it had before the model was made, `first_mb` the most until the
end of the first call, and `steady_mb` the most that it had after it, without what compiling took.

Only the standard library is used here, so that ours and the peers are measured by the same code in any interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterable
from typing import Any

Step = Callable[[], Any]
STATUS, RESET = pathlib.Path("/proc/self/status"), pathlib.Path("/proc/self/clear_refs")


def threads() -> int:
    """How many threads everybody may use: the processors of this process, or what OMP_NUM_THREADS says."""
    chosen = os.environ.get("OMP_NUM_THREADS", "")
    if chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def best_time(step: Step, seconds: float) -> float:
    """The best mean time of a step, in seconds, of eight rounds that take about `seconds` together."""
    return min(_rounds(step, seconds))


def _rounds(step: Step, seconds: float) -> list[float]:
    once = min(_time(step, 1) for _ in range(4))
    n = max(2, int(seconds / 8 / once))
    return [_time(step, n) / n for _ in range(8)]


def _time(step: Step, n: int) -> float:
    start = time.perf_counter()
    for _ in range(n):
        step()
    return time.perf_counter() - start


def faster(*steps: Step) -> Step:
    """The fastest of several ways to compute the same, by their second calls."""
    return min(steps, key=lambda step: (step(), _time(step, 1))[1])


def memory_mb() -> float:
    """The memory of this process that is in use now, in MB; 0 where the system does not tell."""
    return _status("VmRSS:")


def peak_mb() -> float:
    """The most memory that this process had, in MB."""
    # Not getrusage: its peak begins with that of the process that started this one.
    return _status("VmHWM:")


def _status(field: str) -> float:
    if not STATUS.exists():
        return 0.0
    return next(
        (int(line.split()[1]) / 1024 for line in STATUS.read_text().splitlines() if line.startswith(field)), 0.0
    )


def _reset_peak() -> None:
    """Let the peak begin again from what is in use now, where the system can do that."""
    try:
        RESET.write_text("5")
    except OSError:
        return


def figures(make: Callable[[], Step], seconds: float) -> tuple[dict[str, float], Step]:
    """What is measured of one workload, and its step."""
    base = memory_mb()
    step = make()
    computed = time.process_time()
    first = _time(step, 1)
    computed, whole = time.process_time() - computed, peak_mb()
    found = {"step_ms": first * 1e3, "first_s": first, "first_cpu_s": computed, "first_mb": whole}
    if seconds > 0:
        _reset_peak()
        rounds = _rounds(step, seconds)
        found |= {"step_ms": min(rounds) * 1e3, "mean_ms": sum(rounds) / len(rounds) * 1e3}
    return found | {"rss_mb": max(whole, peak_mb()), "base_mb": base, "steady_mb": peak_mb()}, step


def line(workload: str, peer: str, found: dict[str, float]) -> None:
    print(json.dumps({"workload": workload, "peer": peer, **found}), flush=True)


def arguments(program: str, workloads: Iterable[str]) -> argparse.ArgumentParser:
    """The command line that every such process has."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description="The time of one training step.")
    parser.add_argument("workloads", nargs="+", choices=list(workloads), metavar="workload")
    parser.add_argument("--seconds", type=float, default=4.0, help="for how long to measure; 0: the first call alone")
    return parser
