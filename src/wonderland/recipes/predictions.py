"""What a trained model says about inputs: one record, and the tables that are made of it."""

from __future__ import annotations

import csv
import html
import importlib
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..core.errors import InputError
from ..data.extras import need
from ..storage.atomic import write_atomically

Value: TypeAlias = Any  # a class, a number, a text, or a list of numbers or of classes
Row: TypeAlias = dict[str, Value]  # by the name of the column
SHOWN = 20  # rows of a picture in a notebook


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of n inputs, in their order, with all that is known of each.

    >>> found = Predictions.of(np.array([[0.75, 0.25], [0.5, 0.5]]), ("no", "yes"), ids=["a", "b"], id_name="file")
    >>> found.predictions, found.confidence.tolist(), found.probabilities["yes"].tolist()
    (['no', 'no'], [0.75, 0.5], [0.25, 0.5])
    >>> print(found.to_csv(probabilities=True), end="")
    file,prediction,confidence,probability of no,probability of yes
    a,no,0.75,0.75,0.25
    b,no,0.5,0.5,0.5

    `predictions` are classes, texts or numbers; lists of numbers where a model gives several, whose names are
    `outputs`. `ids` are what the inputs are called, as files, dates or nodes, and `id_name` what they are; without
    `ids` a row is known by its place. `lower` and `upper` are the ends of prediction intervals, `sets` the classes of
    prediction sets, and `level` how often either has the truth. `notes` say what was odd about the inputs.
    """

    predictions: list[Value]
    probabilities: Mapping[str, np.ndarray] | None = None
    confidence: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    sets: list[tuple[str, ...]] | None = None
    level: float | None = None
    ids: list[Value] | None = None
    id_name: str = "row"
    outputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        found: np.ndarray,
        class_names: Sequence[str] = (),
        *,
        ids: Sequence[object] | None = None,
        id_name: str = "row",
        outputs: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> Predictions:
        """From probabilities of classes (n, m), or from numbers (n,) or (n, m)."""
        more: Row = {"ids": None if ids is None else list(ids), "id_name": id_name, "notes": tuple(notes)}
        if class_names:
            best = found.argmax(-1)
            chances = {name: found[:, i] for i, name in enumerate(class_names)}
            return cls([class_names[i] for i in best], chances, found[np.arange(len(found)), best], **more)
        values = found.reshape(len(found), -1)
        if values.shape[1] == 1:
            return cls(short(values[:, 0]), outputs=tuple(outputs), **more)
        return cls([short(row) for row in values], outputs=tuple(outputs), **more)

    def __len__(self) -> int:
        return len(self.predictions)

    def __iter__(self) -> Iterator[Row]:
        """The rows, each a dict."""
        columns = self.to_dict()
        return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))

    def __getitem__(self, row: int) -> Row:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return next(iter(self.part(slice(row, row + 1 or None))))

    def part(self, rows: slice) -> Predictions:
        """The predictions of some rows."""
        cut = {
            name: value[rows]
            for name in ("predictions", "confidence", "lower", "upper", "sets", "ids")
            if (value := getattr(self, name)) is not None
        }
        chances = self.probabilities and {name: values[rows] for name, values in self.probabilities.items()}
        return replace(self, probabilities=chances, **cut)

    def __repr__(self) -> str:
        first = ", ".join(map(str, self.predictions[:3])) + (", ..." if len(self) > 3 else "")
        return f"Predictions({len(self)}: {first})"

    @property
    def values(self) -> np.ndarray:
        """The predictions as an array: of texts (n,), or of numbers (n,) or (n, m)."""
        return np.array(self.predictions)

    def noted(self, *notes: str) -> Predictions:
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def decided(self, threshold: float) -> Predictions:
        """With the second of two classes wherever its probability is `threshold` or more.

        >>> found = Predictions.of(np.array([[0.75, 0.25], [0.5, 0.5]]), ("no", "yes")).decided(0.3)
        >>> found.predictions, found.confidence.tolist()
        (['no', 'yes'], [0.75, 0.5])
        """
        names = list(self.probabilities or ())
        if len(names) != 2:
            what = f"{len(names)} classes" if names else "no classes"
            raise InputError(f"predict: threshold={threshold}, and the model has {what}.", "a model of two classes")
        if not 0 < threshold < 1:
            raise InputError(f"predict: threshold={threshold}.", "a probability between 0 and 1")
        assert self.probabilities is not None
        chances = np.stack([self.probabilities[name] for name in names], -1)
        chosen = (chances[:, 1] >= threshold).astype(int)
        sure = chances[np.arange(len(chances)), chosen]
        return replace(self, predictions=[names[i] for i in chosen], confidence=sure)

    # --- as columns

    def to_dict(self, probabilities: bool = True) -> dict[str, list[Value]]:
        """The columns as lists of plain values, in the order of a table; what is not finite is None.

        >>> Predictions.of(np.array([1.5, np.nan])).to_dict()
        {'prediction': [1.5, None]}
        """
        found: dict[str, list[Value]] = {} if self.ids is None else {self.id_name: self.ids}
        several = bool(self.predictions) and isinstance(self.predictions[0], list)
        names = self._names(len(self.predictions[0]) if several else 1)
        for i, name in enumerate(names):
            found[f"prediction{name}"] = [p[i] for p in self.predictions] if several else self.predictions
        if self.confidence is not None:
            found["confidence"] = short(self.confidence)
        if self.probabilities is not None and probabilities:
            found |= {f"probability of {name}": short(values) for name, values in self.probabilities.items()}
        for what, ends in (("lower", self.lower), ("upper", self.upper)):
            if ends is not None:
                columns = ends.reshape(len(ends), -1).T
                found |= {f"{what}{name}": short(values) for name, values in zip(names, columns, strict=True)}
        if self.sets is not None:
            found["set"] = [list(names) for names in self.sets]
        return {name: [_plain(value) for value in values] for name, values in found.items()}

    def _names(self, width: int) -> list[str]:
        """What follows "prediction", "lower" and "upper" in the names of columns."""
        if width == 1:
            return [""]
        named = len(self.outputs) == width
        return [f" of {self.outputs[i]}" if named else f"_{i}" for i in range(width)]

    def to_csv(self, path: str | os.PathLike[str] | None = None, *, probabilities: bool = False) -> str:
        """A table with a header, and a line for each input; written to `path` if there is one.

        The classes of a set are separated by "|".
        """
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        columns = self.to_dict(probabilities)
        rows.writerow(columns)
        rows.writerows(map(_cell, row) for row in zip(*columns.values(), strict=True))
        return _written(path, out.getvalue())

    def to_json(
        self, path: str | os.PathLike[str] | None = None, *, probabilities: bool = True, lines: bool = False
    ) -> str:
        """A list of records, or with `lines` a record on each line; written to `path` if there is one.

        >>> print(Predictions.of(np.array([1.5, 2.0]), ids=["2026-01-01", "2026-01-02"], id_name="date").to_json())
        [
        {"date": "2026-01-01", "prediction": 1.5},
        {"date": "2026-01-02", "prediction": 2.0}
        ]
        """
        columns = self.to_dict(probabilities)
        rows = zip(*columns.values(), strict=True)
        texts = [json.dumps(dict(zip(columns, row, strict=True)), allow_nan=False, ensure_ascii=False) for row in rows]
        text = "".join(f"{line}\n" for line in texts) if lines else "[\n" + ",\n".join(texts) + "\n]"
        return _written(path, text)

    def to_pandas(self, probabilities: bool = True) -> object:
        """A DataFrame, if pandas is installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise InputError("to_pandas: pandas is not installed.", "pip install pandas, or to_dict()") from None
        return pandas.DataFrame(self.to_dict(probabilities))

    def to_parquet(self, path: str | os.PathLike[str], *, probabilities: bool = True) -> None:
        """A Parquet file, if pyarrow is installed."""
        arrow, parquet = (need("to_parquet", module, "arrow") for module in ("pyarrow", "pyarrow.parquet"))
        sink = arrow.BufferOutputStream()
        parquet.write_table(arrow.table(self.to_dict(probabilities)), sink)
        write_atomically(path, sink.getvalue().to_pybytes())

    def write(self, path: str | os.PathLike[str], *, probabilities: bool = False) -> None:
        """A file in the format of its ending: .csv, .json, .jsonl or .parquet. It appears whole or not at all."""
        WRITERS[ending(path)](self, path, probabilities)

    def _repr_html_(self) -> str:
        columns = self.part(slice(SHOWN)).to_dict(len(self.probabilities or ()) <= 5)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        rows = list(zip(*columns.values(), strict=True))
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(_cell(value)))}</td>" for value in row) + "</tr>" for row in rows
        )
        more = f"<p>{len(self):,} rows, of which {SHOWN} are shown</p>" if len(self) > SHOWN else ""
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}{notes}"


WRITERS: dict[str, Callable[[Predictions, str | os.PathLike[str], bool], object]] = {
    ".csv": lambda found, path, more: found.to_csv(path, probabilities=more),
    ".json": lambda found, path, more: found.to_json(path, probabilities=more),
    ".jsonl": lambda found, path, more: found.to_json(path, probabilities=more, lines=True),
    ".parquet": lambda found, path, more: found.to_parquet(path, probabilities=more),
}


def ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file that predictions can be written to; another one is refused.

    >>> ending("found/all.JSON")
    '.json'
    """
    found = os.path.splitext(os.fspath(path))[1].lower()
    if found not in WRITERS:
        raise InputError(f"predict: {os.fspath(path)} has no known ending.", f"one of {', '.join(WRITERS)}")
    return found


def short(values: np.ndarray) -> list[Value]:
    """Numbers as Python's, with as many digits as tell them from others of their type.

    >>> short(np.array([0.1, 2.5], np.float32))
    [0.1, 2.5]
    """
    found = np.asarray(values)
    if found.dtype != np.float32:
        return found.tolist()
    exact = found.astype(np.float64)
    size = np.where(np.isfinite(exact) & (exact != 0), np.abs(exact), 1.0)
    shift = -np.floor(np.log10(size))
    out, todo = exact.copy(), np.isfinite(exact)
    for digits in (7, 8, 9):  # nine are always enough
        by = shift + (digits - 1)
        up, down = 10.0 ** np.maximum(by, 0), 10.0 ** np.maximum(-by, 0)
        tried = np.rint(exact * up / down) / up * down
        fits = todo & (tried.astype(np.float32) == found)
        out[fits], todo = tried[fits], todo & ~fits
    return out.tolist()


def _plain(value: object) -> object:
    """A value as JSON has it: numbers that are not finite are None, and dates are texts."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, list, type(None))) else str(value)


def _cell(value: object) -> object:
    """A value as it stands in a table."""
    if isinstance(value, list):
        return "|".join(map(str, value))
    return "" if value is None else value


def _written(path: str | os.PathLike[str] | None, text: str) -> str:
    if path is not None:
        write_atomically(path, text)
    return text
