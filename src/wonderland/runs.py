"""Trained runs from their folders: opened, asked and listed.

    run = wl.runs.open("runs/flowers-tabular")
    run.predict("new_flowers.csv").to_csv("predictions.csv")
    run.evaluate("more_flowers.csv")

A run is also what `recipes.run` returns. `Run` says what it can do.
"""

from __future__ import annotations

import builtins
import html
import os
from collections.abc import Iterator
from dataclasses import dataclass

from .core.errors import FileError
from .recipes.evaluating import Run as Run
from .recipes.evaluating import open_run
from .recipes.kept import read_results, read_settings
from .recipes.predictions import Predictions as Predictions
from .recipes.predictions import Row

__all__ = ["Predictions", "Run", "Runs", "list", "open"]


def open(folder: str | os.PathLike[str]) -> Run:
    """The run that `wonderland train` or `recipes.run` left in a folder; its `model.safetensors` will do as well.

    >>> import tempfile
    >>> import wonderland as wl
    >>> settings = wl.recipes.Settings.of(model="linear", data="moons", changes=["epochs=3"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = wl.recipes.run(settings, folder, progress=False, png=False)
    ...     run = wl.runs.open(folder)
    ...     len(run.predict([[0.0, 1.0], [1.0, -0.5]])), sorted(run.settings), run.schema
    (2, ['data', 'model', 'train'], None)

    Nothing in the file is executed. A run that is not finished is refused.
    """
    return open_run(folder)


@dataclass(frozen=True)
class Runs:
    """Runs with their results: one dict for each, with the `folder`, `model`, `data`, and what was measured."""

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, i: int) -> Row:
        return self.rows[i]

    @property
    def names(self) -> builtins.list[str]:
        """The names of the columns, in the order in which they come up."""
        return builtins.list({name: None for row in self.rows for name in row})

    def _cells(self) -> builtins.list[builtins.list[str]]:
        return [[_shown(row.get(name)) for name in self.names] for row in self.rows]

    def __repr__(self) -> str:
        lines = [self.names, *self._cells()]
        if not self.rows:
            return "no runs"
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = ("  ".join(f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
        return "\n".join(padded)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.names)
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._cells())
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def list(folder: str | os.PathLike[str] = "runs") -> Runs:
    """The runs in the folders of a folder, with what each measured on its test data.

    >>> import os, tempfile
    >>> import wonderland as wl
    >>> settings = wl.recipes.Settings.of(model="linear", data="moons", changes=["epochs=3"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = wl.recipes.run(settings, os.path.join(folder, "first"), progress=False, png=False)
    ...     found = wl.runs.list(folder)
    >>> found[0]["model"], found[0]["data"], found[0]["state"]
    ('linear', 'moons', 'finished')

    One that is not finished, or whose files are damaged, says so in its `state`.
    """
    folder = os.fspath(folder)
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise FileError(f"runs: cannot read {folder}: {error.strerror}.", "the folder in which runs are") from None
    inside = (os.path.join(folder, name) for name in names)
    return Runs(tuple(_row(path) for path in inside if os.path.exists(os.path.join(path, "settings.json"))))


def _row(folder: str) -> Row:
    row: Row = {"folder": folder}
    try:
        settings = read_settings(os.path.join(folder, "settings.json"))
        row |= {section: str(settings.get(section, {}).get("name", "")) for section in ("model", "data")}
        finished = os.path.exists(os.path.join(folder, "model.safetensors"))
        row["state"] = "finished" if finished else "not finished"
        if finished:
            row |= {k: v for k, v in read_results(os.path.join(folder, "results.json")).items() if type(v) is float}
    except FileError:
        row["state"] = "damaged"
    return row


def _shown(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
