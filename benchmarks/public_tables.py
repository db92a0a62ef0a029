"""Ten tables that everybody has: they come with scikit-learn, statsmodels and vega_datasets."""

from __future__ import annotations

import contextlib
import csv
import datetime
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Value = float | str | datetime.date | None  # None: missing
Columns = dict[str, list[Value]]


@dataclass(frozen=True)
class PublicTable:
    """Columns by name, the one to predict, and whether it has classes or numbers."""

    name: str
    columns: Columns
    target: str
    classes: bool

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def features(self) -> list[str]:
        """The names of all columns but the target."""
        return [name for name in self.columns if name != self.target]

    def select(self, rows: np.ndarray) -> PublicTable:
        """The table of some rows."""
        chosen = {name: [values[i] for i in rows] for name, values in self.columns.items()}
        return PublicTable(self.name, chosen, self.target, self.classes)


class NeedsPackageError(Exception):
    """A table comes with a package that is not there."""


def _package(name: str, wheel: str) -> object:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NeedsPackageError(f"{error}: pip install {wheel}") from None


def _toy(name: str, target: str = "target") -> PublicTable:
    """One of scikit-learn's toy tables; numbers of classes become their names."""
    datasets = _package("sklearn.datasets", "scikit-learn")
    found = getattr(datasets, f"load_{name}")()
    columns: Columns = {
        str(column): values.tolist() for column, values in zip(found.feature_names, found.data.T, strict=True)
    }
    if name == "linnerud":  # three targets: the first is taken
        return PublicTable(name, {**columns, target: found.target[:, 0].tolist()}, target, classes=False)
    classes = name != "diabetes"
    names = found.target_names if classes else None
    columns[target] = [str(names[i]) for i in found.target] if names is not None else found.target.tolist()
    return PublicTable(name, columns, target, classes)


def _statsmodels(name: str, target: str, classes: bool) -> PublicTable:
    """One of statsmodels' tables, in which all columns are numbers."""
    frame = _package(f"statsmodels.datasets.{name}", "statsmodels").load_pandas().data  # type: ignore[attr-defined]
    columns: Columns = {str(column): [float(v) for v in frame[column].tolist()] for column in frame.columns}
    if classes:
        columns[target] = [f"{value:.0f}" for value in columns[target]]
    return PublicTable(name, columns, target, classes)


def _vega(name: str, target: str, classes: bool) -> PublicTable:
    """One of Vega's tables, a JSON or CSV file in its package; rows without a target are left out."""
    data = getattr(_package("vega_datasets", "vega_datasets").local_data, name)  # type: ignore[attr-defined]
    text = data.raw().decode()
    rows = json.loads(text) if data.filename.endswith(".json") else list(csv.DictReader(text.splitlines()))
    columns: Columns = {column: [_value(row[column]) for row in rows] for column in rows[0]}
    table = PublicTable(name, columns, target, classes)
    return table.select(np.flatnonzero([value is not None for value in columns[target]]))


def _value(value: Any) -> Value:
    """A number, a day, a text, or nothing."""
    if value is None or value == "":
        return None
    for kind in (float, lambda text: datetime.date.fromisoformat(text.replace("/", "-"))):
        with contextlib.suppress(ValueError):
            return kind(value)
    return str(value)


# chosen before anything was measured: all toy tables, and four in which there are gaps, dates, names and ordinals
TABLES: Mapping[str, Callable[[], PublicTable]] = {
    "iris": lambda: _toy("iris"),
    "digits": lambda: _toy("digits"),
    "wine": lambda: _toy("wine"),
    "breast_cancer": lambda: _toy("breast_cancer"),
    "diabetes": lambda: _toy("diabetes"),
    "linnerud": lambda: _toy("linnerud", "Weight"),
    "cars": lambda: _vega("cars", "Miles_per_Gallon", classes=False),
    "seattle_weather": lambda: _vega("seattle_weather", "weather", classes=True),
    "fair": lambda: _statsmodels("fair", "affairs", classes=False),
    "anes96": lambda: _statsmodels("anes96", "vote", classes=True),
}
