"""Training steps while other processes keep the processors busy: `python -m benchmarks load --peers PYTHON`.

With as many threads as processors, and other processes that never rest, some thread is always waiting for its turn. A
step that waits for the slowest of its threads loses more than its share of the machine.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from .options import Options
from .printed import Ratios
from .rivals import OURS, rivals, run

BUSY = (0, 1, 2)  # other processes
STEPS = ("mlp", "cnn", "gpt", "lstm")


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many other processes that compute all the time."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def main(options: Options | None = None) -> None:
    options = options or Options()
    names = [name for name in STEPS if not options.workloads or name in options.workloads]
    everybody = [rival for rival in rivals(options) if rival.name != "torch.compile"] if names else []
    peers = [rival.name for rival in everybody if rival.name != OURS]
    title = "Time of a step beside busy processes, the mean: the peer's / ours (above 1: ours is faster)"
    table = Ratios(title, "ms", peers, options)
    for name in names:
        for count in BUSY:
            times: dict[str, list[float]] = {rival.name: [] for rival in everybody}
            for _ in range(options.rounds):
                for rival in everybody:
                    with busy(count):
                        times[rival.name] += [line["mean_ms"] for line in run(rival, [name], options.seconds).values()]
            table.row(f"{name}, {count} busy", {rival: min(found, default=None) for rival, found in times.items()})


if __name__ == "__main__":
    main()
