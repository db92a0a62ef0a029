"""The first call of every training step, which traces and compiles, beside JAX's: time, processor time and memory.

Ours is measured twice: with nothing compiled before, and with the code that the first process left on disk. The
aims are half of JAX's time, a quarter of a second for gpt from disk, and a peak below 300 MB.
"""

from __future__ import annotations

import tempfile

from .large import LARGE
from .options import Options
from .printed import Ratios, Table, cell
from .rivals import OURS, rivals, run
from .steps import Results
from .variety import VARIETY
from .workloads import WORKLOADS

NAMES = [*WORKLOADS, *VARIETY, *LARGE, "associative"]


def measured(name: str, options: Options) -> dict[str, Results]:
    """Ours, cold and from disk, and JAX's, in turn."""
    everybody = [rival for rival in rivals(options) if rival.name in (OURS, "jax")]
    results = {rival.name: Results() for rival in everybody}
    for _ in range(options.rounds):
        for rival in everybody:
            with tempfile.TemporaryDirectory() as folder:
                cache = f"{folder}/code"
                if rival.name == OURS:
                    results[OURS].cold += run(rival, [name], 0, cache).values()
                results[rival.name].lines += run(rival, [name], 0, cache).values()
    return results


def main(options: Options) -> None:
    names = [name for name in NAMES if not options.workloads or name in options.workloads]
    peers = [rival.name for rival in rivals(options) if rival.name == "jax"]
    ratios = Ratios("First call, nothing compiled before: the peer's / ours", "s", peers, options, best=False)
    found: dict[str, dict[str, Results]] = {}
    for name in names:
        found[name] = measured(name, options)
        ratios.row(name, {who: results.first for who, results in found[name].items()})
    if names:
        ratios.means()
    columns = ["workload", "from disk s", "processor s", "jax processor s", "peak MB", "jax peak MB"]
    table = Table("First call: from disk, processor time and the peak of memory", columns, options)
    for name, results in found.items():
        ours, jax = results[OURS], results.get("jax", Results())
        table.row(
            name,
            cell(ours.warm, ".2f"),
            cell(ours.best_cold("first_cpu_s"), ".2f"),
            cell(jax.best_cold("first_cpu_s"), ".2f"),
            cell(ours.best_cold("first_mb"), ".0f"),
            cell(jax.best_cold("first_mb"), ".0f"),
        )
