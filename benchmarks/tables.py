"""Tables that grow while things are measured, for the terminal or as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .options import Options
from .rivals import OURS


class Table:
    """Prints each row when it is known. Markdown has no columns named in `absolute`: only ratios are kept."""

    def __init__(self, title: str, columns: Iterable[str], options: Options, absolute: Iterable[str] = ()) -> None:
        self.columns = list(columns)
        self.markdown = options.markdown
        self.shown = [not (self.markdown and name in set(absolute)) for name in self.columns]
        self.widths = [max(len(name), 10) for name in self.columns]
        self.title: str | None = title

    def row(self, name: str, *cells: str) -> None:
        if self.title is not None:
            print(f"\n{self.title}\n" if self.markdown else f"\n{self.title}")
            self.title = None
            self._print(self.columns)
            if self.markdown:
                self._print(["---"] * len(self.columns))
        self._print([name, *cells])

    def _print(self, cells: list[str]) -> None:
        kept = [(cell, width) for cell, width, shown in zip(cells, self.widths, self.shown, strict=True) if shown]
        if self.markdown:
            print("| " + " | ".join(cell for cell, _ in kept) + " |", flush=True)
        else:
            (first, width), *rest = kept
            print(f"{first:<{max(width, 48)}}" + "".join(f"  {cell:>{width}}" for cell, width in rest), flush=True)


def comparison(title: str, options: Options) -> Table:
    """Ours beside a reference, one measurement a row: see `compared`."""
    return Table(title, ["what", "ours", "reference", "ours / reference", "aim"], options, absolute=["ours"])


def compared(ours: float, reference: float, unit: str, against: str, aim: str) -> tuple[str, str, str, str]:
    return f"{ours:.3g} {unit}", against, f"{ours / reference:.2f}", aim


def geometric_mean(numbers: Iterable[float | None]) -> float | None:
    logs = [math.log(x) for x in numbers if x]
    return math.exp(sum(logs) / len(logs)) if logs else None


def cell(x: float | None, style: str) -> str:
    return "" if x is None else format(x, style)


class Ratios:
    """A table of everybody's figures, the ratios of the peers' to ours, and their geometric means."""

    def __init__(self, title: str, unit: str, peers: list[str], options: Options) -> None:
        self.peers = peers
        absolute = [f"{name} {unit}" for name in ("ours", *peers)]
        self.table = Table(title, ["workload", *absolute, *peers, "best peer"], options, absolute)
        self.ratios: list[list[float | None]] = []

    def row(self, name: str, figures: dict[str, float | None]) -> None:
        ours, *theirs = (figures[who] for who in (OURS, *self.peers))
        best = min((x for x in theirs if x is not None), default=None)
        ratios = [x / ours if x is not None and ours else None for x in (*theirs, best)]
        self.ratios.append(ratios)
        self.table.row(name, *[cell(x, ".3f") for x in (ours, *theirs)], *[cell(x, ".2f") for x in ratios])

    def means(self) -> None:
        means = [geometric_mean(column) for column in zip(*self.ratios, strict=True)]
        self.table.row("geometric mean", *[""] * (1 + len(self.peers)), *[cell(x, ".2f") for x in means])
