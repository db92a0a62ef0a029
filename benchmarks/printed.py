"""Tables that grow while things are measured, for the terminal or as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .options import Options
from .rivals import OURS


class Table:
    """Prints each row when it is known. Markdown has no columns named in `absolute`: only ratios are kept."""

    def __init__(
        self,
        title: str,
        columns: Iterable[str],
        options: Options,
        absolute: Iterable[str] = (),
        widths: tuple[int, int] = (20, 10),  # of the first column and, at least, of the others
    ) -> None:
        self.title: str | None = title
        self.columns = list(columns)
        self.markdown = options.markdown
        self.shown = [not (self.markdown and name in set(absolute)) for name in self.columns]
        self.widths = [widths[0], *[max(len(name), widths[1]) for name in self.columns[1:]]]

    def row(self, *cells: str) -> None:
        if self.title is not None:
            print(f"\n{self.title}\n" if self.markdown else f"\n{self.title}")
            self.title = None
            self._print(self.columns)
            if self.markdown:
                self._print(["---"] * len(self.columns))
        self._print(list(cells))

    def _print(self, cells: list[str]) -> None:
        kept = [(cell, width) for cell, width, shown in zip(cells, self.widths, self.shown, strict=True) if shown]
        if self.markdown:
            print("| " + " | ".join(cell for cell, _ in kept) + " |", flush=True)
        else:
            (first, width), *rest = kept
            print(f"{first:<{width}}" + "".join(f"  {cell:>{width}}" for cell, width in rest), flush=True)


def comparison(title: str, options: Options) -> Table:
    """Ours beside a reference, one measurement a row: see `compared`."""
    columns = ["what", "ours", "ours / reference", "reference", "aim"]
    return Table(title, columns, options, absolute=["ours"], widths=(60, 10))


def compared(ours: float, reference: float, unit: str, against: str, aim: str) -> tuple[str, str, str, str]:
    return f"{ours:,.3g} {unit}", f"{ours / reference:.2f}", against, aim


def geometric_mean(numbers: Iterable[float | None]) -> float | None:
    logs = [math.log(x) for x in numbers if x]
    return math.exp(sum(logs) / len(logs)) if logs else None


def cell(x: float | None, style: str) -> str:
    return "" if x is None else format(x, style)


class Ratios:
    """A table of everybody's figures, the ratios of the peers' to ours, and their geometric means.

    The last column is the best peer's, unless the figures of different peers do not mean the same.
    """

    def __init__(self, title: str, unit: str, peers: list[str], options: Options, best: bool = True) -> None:
        self.peers, self.best = peers, best
        absolute = [f"{name} {unit}" for name in ("ours", *peers)]
        columns = ["workload", *absolute, *peers, *(["best peer"] if best else [])]
        self.table = Table(title, columns, options, absolute)
        self.ratios: list[list[float | None]] = []

    def row(self, name: str, figures: dict[str, float | None]) -> None:
        ours, *theirs = (figures[who] for who in (OURS, *self.peers))
        ratios = [x / ours if x is not None and ours else None for x in theirs]
        if self.best:
            ratios.append(min((x for x in ratios if x is not None), default=None))
        self.ratios.append(ratios)
        self.table.row(name, *[cell(x, ".3f") for x in (ours, *theirs)], *[cell(x, ".2f") for x in ratios])

    def means(self) -> None:
        means = [geometric_mean(column) for column in zip(*self.ratios, strict=True)]
        self.table.row("geometric mean", *[""] * (1 + len(self.peers)), *[cell(x, ".2f") for x in means])
