"""`wl.report.compare`: the curves of several runs in the same frames. Notes, section 3.4.3."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import InputError
from ..train.history import History
from ..viz.plot import PALETTE, Curve
from .curves import (
    EVENT,
    best_epoch,
    between,
    duration,
    event_epochs,
    groups,
    over_epochs,
    scale_of,
    series,
    thin,
    title_of,
)
from .page import figures, is_number, table
from .pictures import Picture, Section
from .provenance import versions_section
from .writing import checked_path, save


def compare(
    path: str | os.PathLike[str],
    histories: Mapping[str, History],
    *,
    title: str = "Comparison of runs",
    png: bool = True,
) -> list[str]:
    """Write a page that lays the curves of runs over each other, and a table of their best epochs.

    >>> import os, tempfile
    >>> import wonderland as wl
    >>> runs = {name: wl.train.History([{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.2}]) for name in ("a", "b")}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(wl.report.compare(os.path.join(folder, "runs.html"), runs, png=False))
    1

    Each run has a colour, training dashed and validation drawn through; red dots are events, such as a reduced learning
    rate. Returns the paths written, as `wl.report.write` does.
    """
    path = checked_path(path)
    if not isinstance(histories, Mapping) or not histories:
        raise InputError("compare: no runs.", "a dict from names to histories, not empty")
    for name, history in histories.items():
        if not isinstance(history, History):
            raise InputError(f"compare: the run {name!r} is a {type(history).__name__}.", "what wl.train.fit returns")
    pictures = comparison_pictures(histories)
    html = figures(pictures) + _runs(histories)
    return save(path, title, [Section("Runs", html, {"curves": pictures} if pictures else {}), versions_section()], png)


def comparison_pictures(histories: Mapping[str, History]) -> list[Picture]:
    """A picture for each thing that was measured in any of the runs."""
    bases = dict.fromkeys(base for history in histories.values() for base in groups(history))
    pictures: list[Picture] = []
    for base in bases:
        drawn: list[tuple[str, str, History, Any, Any]] = []
        for run, history in histories.items():
            for name in groups(history).get(base, []):
                x, y = series(history, name)
                if np.isfinite(y).any():
                    drawn.append((str(run), name, history, x, y))
        if not drawn:
            continue
        scale = scale_of(base, [y for *_, y in drawn])
        colours = {str(run): PALETTE[i % len(PALETTE)] for i, run in enumerate(histories)}
        both = len({name for _, name, *_ in drawn}) > 1
        lines: list[Curve] = []
        dots: list[Curve] = []
        for run, name, history, x, y in drawn:
            training = both and name == base
            lines.append(Curve(*thin(x, y), "" if training else run, dashed=training, colour=colours[run]))
            usable, places = np.isfinite(y), event_epochs(history)
            if len(places) and base != "lr":
                label = "" if dots else "event"
                there = between(places, x[usable], y[usable], scale)
                dots.append(Curve(places, there, label, dots=True, colour=EVENT))
        said = title_of(base) + (": training dashed, validation drawn through" if both else "")
        pictures.append(over_epochs(said, [*lines, *dots], lines, scale))
    return pictures


def _runs(histories: Mapping[str, History]) -> str:
    names = list(dict.fromkeys(name for history in histories.values() for name in history.names()))
    rows = []
    for run, history in histories.items():
        best = best_epoch(history) or {}
        seconds = [r["seconds"] for r in history.records if is_number(r.get("seconds"))]
        values = [best.get(name) if is_number(best.get(name)) else None for name in names]
        rows.append([str(run), len(history), best.get("epoch"), *values, duration(sum(seconds)) if seconds else None])
    head = ["run", "epochs", "best epoch", *(name.replace("_", " ") for name in names), "time"]
    return table(head, rows, caption="The best epoch of each run, by its validation loss (or training loss)")
