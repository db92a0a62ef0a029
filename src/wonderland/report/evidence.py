"""What is known of a model and its data, read once for all that look for findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ..core.arguments import as_int
from ..core.errors import InputError, ShapeError
from ..core.typing import Array
from ..data.tables import Column, Group, Table
from ..data.tables.dates import read_dates
from ..data.tables.numbers import parse_numbers, unit_of
from ..train.history import History
from .baselines import Baselines, Measures
from .outcomes import Classified, Estimated

DAYS_OF_YEAR = 365.2425
Groups: TypeAlias = Iterable[Group | Sequence[object]]  # of a schema, or (name, start, stop)


@dataclass(frozen=True, eq=False)
class Source:
    """A column of the user's table: its features are those from `start` to `stop`, its values numbers or texts (n,)."""

    name: str
    start: int
    stop: int
    values: Array
    kind: str = ""  # of the schema, if there is one

    @property
    def is_number(self) -> bool:
        return self.values.dtype.kind == "f"


@dataclass(frozen=True, eq=False)
class Evidence:
    """Outcomes on test data and on training data, features of both, and the course of the training."""

    outcome: Classified | Estimated
    measures: Measures
    baselines: Baselines = field(default_factory=dict)
    on_training: Classified | Estimated | None = None  # of some rows
    test_x: Array | None = None  # (n, d), the rows of the outcome
    train_x: Array | None = None
    train_y: Array | None = None
    sources: Sequence[Source] = ()
    history: History | None = None


def sources_of(
    x: Array, names: Sequence[str] | None, groups: Groups | None, table: Table | None = None
) -> list[Source]:
    """The columns that features (n, d) come from, with their values: those of the table, or else of the features.

    >>> x = np.array([[0.5, 1.0, 0.0], [2.0, 0.0, 1.0]])
    >>> found = sources_of(x, ["age", "city=Pisa", "city=Rome"], [("age", 0, 1), ("city", 1, 3)])
    >>> [(source.name, source.values.tolist()) for source in found]
    [('age', [0.5, 2.0]), ('city', ['Pisa', 'Rome'])]
    """
    d = x.shape[1]
    known = [f"feature {k}" for k in range(d)] if names is None else [str(name) for name in names]
    if len(known) != d:
        raise ShapeError(f"report: {len(known)} feature_names for {d} features.", f"{d} names, or None")
    each = [(name, k, k + 1, "") for k, name in enumerate(known)] if groups is None else [_group(g) for g in groups]
    found = []
    for name, start, stop, kind in each:
        if not 0 <= start < stop <= d:
            raise InputError(f"report: the group {name!r} from {start} to {stop} of {d} features.", "parts of them")
        values = None
        if table is not None and name in table.columns and len(table) == len(x):
            values = _values(table[name], kind)
        if values is None:
            values = _decoded(x[:, start:stop], known[start:stop], name)
        found.append(Source(name, start, stop, values, kind))
    return found


def _group(group: Group | Sequence[object]) -> tuple[str, int, int, str]:
    if isinstance(group, Group):
        return group.column, group.start, group.stop, group.kind
    if len(group) not in (3, 4) or not all(type(place) is int for place in group[1:3]):
        raise InputError(f"report: the group {group!r}.", "(name, start, stop), or those of a schema")
    name, start, stop, kind = (*group, "")[:4]
    return str(name), as_int("report", "start", start), as_int("report", "stop", stop), str(kind)


def _values(column: Column, kind: str) -> Array | None:
    """The values as the user knows them: numbers, years or texts; None if most of them cannot be read."""
    if column.kind == "text" and kind not in ("date", "number", "count"):
        return np.where(column.missing, "missing", column.strings()).astype(str)
    if column.kind == "date" or kind == "date":
        moments, _ = read_dates(column)
        days = moments.astype("datetime64[D]").astype(np.float64)
        found = np.where(np.isnat(moments), np.nan, 1970.0 + days / DAYS_OF_YEAR)
    elif column.kind == "text":
        texts = column.strings().tolist()
        found = parse_numbers(texts, unit=unit_of(texts))
    elif kind in ("category", "ordinal"):
        return np.where(column.missing, "missing", column.strings()).astype(str)
    else:
        found = column.values
    return found if np.isfinite(found).mean() > 0.5 else None


def _decoded(block: Array, names: Sequence[str], column: str) -> Array:
    """The values of a column from its features: the category that is 1, or the first feature."""
    binary = np.array([bool(np.isin(part, (0.0, 1.0)).all()) for part in block.T])
    if binary.sum() > 1 and (block[:, binary].sum(axis=1) <= 1).all() and block[:, binary].any():
        words = [name.removeprefix(f"{column}=") for name, is_binary in zip(names, binary, strict=True) if is_binary]
        place = np.where(block[:, binary].any(axis=1), block[:, binary].argmax(axis=1), len(words))
        return np.array([*words, "other"])[place]
    return block[:, 0].astype(np.float64)


def category_counts(values: Array) -> Mapping[str, int]:
    """How often each text comes, the most frequent first."""
    kinds, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(kinds[i]): int(counts[i]) for i in order}
