"""Training steps of ours and of the peers: time, first call, memory, and the share of the machine's peak."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .options import Options
from .printed import Ratios, Table, cell
from .rivals import OURS, Rival, rivals, run
from .workloads import WORKLOADS


@dataclass
class Results:
    """What the processes of one rival said about one workload."""

    lines: list[dict[str, Any]] = field(default_factory=list)  # with compiled code from disk, where there is any
    cold: list[dict[str, Any]] = field(default_factory=list)  # the first call alone, without

    @property
    def milliseconds(self) -> float | None:
        return self._best(self.lines, "step_ms")

    @property
    def first(self) -> float | None:
        """Seconds of the first call when nothing is compiled yet."""
        return self._best(self.cold or self.lines, "first_s")

    @property
    def warm(self) -> float | None:
        """Seconds of the first call when the code of an earlier process is on disk."""
        return self._best(self.lines, "first_s") if self.cold else None

    @property
    def megabytes(self) -> float | None:
        """The peak of memory, compiling included, above what the process had before it made its model."""
        return self._above_base(self.whole)

    @property
    def loaded(self) -> float | None:
        """The same in a process that finds its compiled code on disk."""
        return self._above_base(self._best(self.lines, "rss_mb"))

    @property
    def whole(self) -> float | None:
        """The peak of memory of the process, with all that it has imported."""
        peaks = [self._best(lines, "rss_mb") for lines in (self.lines, self.cold)]
        return max((peak for peak in peaks if peak is not None), default=None)

    @property
    def steady(self) -> float | None:
        """The same without the first call."""
        return min((line["steady_mb"] - line["base_mb"] for line in self.lines), default=None)

    @property
    def share(self) -> tuple[float, float] | None:
        """GFLOP/s, and their share of the machine's peak, in the fastest process."""
        best = min(self.lines, key=lambda line: line["step_ms"], default=None)
        return None if best is None or "share" not in best else (best["gflops"], best["share"])

    def best_cold(self, which: str) -> float | None:
        """The least of a figure of the first calls that compile."""
        return self._best(self.cold or self.lines, which)

    def _above_base(self, peak: float | None) -> float | None:
        base = self._best(self.lines, "base_mb")
        return None if peak is None or base is None else peak - base

    def _best(self, lines: list[dict[str, Any]], which: str) -> float | None:
        return min((line[which] for line in lines), default=None)


def compete(workload: str, everybody: list[Rival], options: Options) -> dict[str, Results]:
    """Everybody in turn, several rounds."""
    results = {rival.name: Results() for rival in everybody}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            for rival in everybody:
                cache = f"{folder}/{rival.name}-{min(turn, max(rival.cold_rounds - 1, 0))}"
                if turn < rival.cold_rounds:
                    results[rival.name].cold += run(rival, [workload], 0, cache).values()
                more = ["--share"] if rival.name == OURS else []
                results[rival.name].lines += run(rival, [workload], options.seconds, cache, *more).values()
    return results


MEASURES: list[tuple[str, str, bool, Callable[[Results], float | None]]] = [
    ("Time of a step: the peer's / ours (above 1: ours is faster)", "ms", True, lambda r: r.milliseconds),
    ("First call, nothing compiled before: the peer's / ours", "s", False, lambda r: r.first),
    ("Peak of memory of the process: the peer's / ours", "MB", True, lambda r: r.whole),
    ("Peak of memory, without the imports: the peer's / ours", "MB", True, lambda r: r.megabytes),
    ("The same where compiled code is on disk: the peer's / ours", "MB", True, lambda r: r.loaded),
]


def main(
    options: Options | None = None,
    makers: dict[str, Callable[..., Any]] = WORKLOADS,
    measures: int = len(MEASURES),
    onnx: bool = False,
    jax: bool = True,
) -> None:
    """The first `measures` tables: those after it mean nothing where a peer tries several forms before it is measured.

    Without `jax` PyTorch as it is written is the only peer.
    """
    options = options or Options()
    names = [name for name in makers if not options.workloads or name in options.workloads]
    everybody = rivals(options, operations=not jax, onnx=onnx) if names else []
    peers = [rival.name for rival in everybody if rival.name != OURS]
    found: dict[str, dict[str, Results]] = {}
    for title, unit, best, figure in MEASURES[:measures] if names else []:
        table = Ratios(title, unit, peers, options, best)
        for name in names:
            if name not in found:
                found[name] = compete(name, everybody, options)
            table.row(name, {rival: figure(results) for rival, results in found[name].items()})
        table.means()
    _alone({name: results[OURS] for name, results in found.items()}, options)


def _alone(found: dict[str, Results], options: Options) -> None:
    """What there is to say about ours alone."""
    columns = ["workload", "first call s", "from disk s", "from disk / first", "steady MB", "GFLOP/s", "of the peak"]
    title = "Ours: the first call with compiled code on disk, and what products, convolutions and attentions reach"
    table = Table(title, columns, options, absolute=["first call s", "steady MB", "GFLOP/s"])
    for name, ours in found.items():
        rate, portion = ours.share or (None, None)
        less = ours.warm / ours.first if ours.warm and ours.first else None
        table.row(
            name,
            cell(ours.first, ".2f"),
            cell(ours.warm, ".2f"),
            cell(less, ".2f"),
            cell(ours.steady, ".0f"),
            cell(rate, ".1f"),
            cell(portion, ".0%"),
        )


if __name__ == "__main__":
    main()
