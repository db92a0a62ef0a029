"""Tables as they come from people: gaps, units, dates, misspelt categories, few of a class, columns of no use.

    >>> from benchmarks.public_tables import TABLES
    >>> table = messy(TABLES["iris"]())
    >>> len(table) < 150, "number" in table.columns, "recorded" in table.columns
    (True, True, True)

What is done to a table depends on its name alone, so it is the same everywhere.
"""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Sequence

import numpy as np

from .public_tables import Columns, PublicTable, Value

LEVELS = ("low", "middling", "high", "extreme")
SLIPS = {"low": "Low", "middling": "midling", "high": "hihg", "extreme": "EXTREME"}


def messy(table: PublicTable) -> PublicTable:
    """The table as somebody might have kept it; the target is what it was."""
    rng = np.random.default_rng(zlib.crc32(table.name.encode()))
    table = table.select(_kept(table, rng))
    columns: Columns = dict(table.columns)
    numbers = [name for name in table.features if all(isinstance(v, float | None) for v in columns[name])]
    chosen = [str(name) for name in rng.permutation(numbers)]
    levels, units, hidden = (chosen[i % len(chosen)] for i in range(3))
    for name in table.features[:: max(len(table.features) // 5, 1)]:
        columns[name] = _gaps(columns[name], rng)
    columns[hidden] = _large_ones_missing(columns[hidden], rng)
    if units != levels:
        columns[units] = [None if v is None else f"{v:g} mm" for v in columns[units]]
    columns[levels] = _as_levels(columns[levels], rng)
    columns |= _useless(len(table), rng)
    order = [str(name) for name in rng.permutation(list(columns))]
    return PublicTable(table.name, {name: columns[name] for name in order}, table.target, table.classes)


def shuffled_columns(table: PublicTable, seed: int = 0) -> PublicTable:
    """The same rows with the columns in another order, as another export has them."""
    order = np.random.default_rng(seed).permutation(list(table.columns))
    return PublicTable(table.name, {str(name): table.columns[str(name)] for name in order}, table.target, table.classes)


def _kept(table: PublicTable, rng: np.random.Generator) -> np.ndarray:
    """All rows but two thirds of those of the rarest class; of numbers, but a third of those above the median."""
    target = table.columns[table.target]
    if table.classes:
        names, counts = np.unique(np.array(target, object).astype(str), return_counts=True)
        rare = names[counts.argmin()]
        return np.flatnonzero([str(v) != rare or rng.random() < 1 / 3 for v in target])
    values = np.array(target, float)
    return np.flatnonzero((values <= np.median(values)) | (rng.random(len(values)) < 2 / 3))


def _gaps(values: Sequence[Value], rng: np.random.Generator, share: float = 0.1) -> list[Value]:
    """Some values missing, whatever they were."""
    return [None if rng.random() < share else value for value in values]


def _large_ones_missing(values: Sequence[Value], rng: np.random.Generator) -> list[Value]:
    """Four in ten of the largest quarter missing: that one is missing says something."""
    known = [value for value in values if isinstance(value, float)]
    if not known:
        return list(values)
    limit = np.quantile(known, 0.75)
    return [None if isinstance(v, float) and v > limit and rng.random() < 0.4 else v for v in values]


def _as_levels(values: Sequence[Value], rng: np.random.Generator) -> list[Value]:
    """Numbers as words for their quarters; three in a hundred misspelt, one in a hundred something else."""
    limits = np.quantile([value for value in values if isinstance(value, float)], (0.25, 0.5, 0.75))

    def word(value: Value) -> Value:
        if value is None:
            return None
        level = LEVELS[int(np.searchsorted(limits, float(str(value))))]
        chance = rng.random()
        return "see note" if chance < 0.01 else SLIPS[level] if chance < 0.04 else level

    return [word(value) for value in values]


def _useless(n: int, rng: np.random.Generator) -> Columns:
    """Columns that say nothing: a running number, a day, a clerk of many, one value for all."""
    first = datetime.date(2019, 1, 1)
    days = [first + datetime.timedelta(int(day)) for day in rng.integers(0, 3 * 365, n)]
    numbers = [f"R-{i:05d}" for i in rng.permutation(n)]
    clerks = [f"clerk {i}" for i in rng.integers(0, 12, n)]
    return {"number": [*numbers], "recorded": [*days], "clerk": [*clerks], "unit": ["ward 3"] * n}
