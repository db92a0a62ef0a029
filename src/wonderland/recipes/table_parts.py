"""How the rows of a table are cut into parts: by chance, by time, or by groups that stay together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..core.errors import InputError
from ..data import train_test_split
from ..data.generators import SPLIT, generator
from ..data.tables.dates import read_dates
from ..data.tables.kinds import guess_kind
from ..data.tables.table import Table

SPLITS = ("random", "time", "group")
TEST = 0.2  # the share of the rows that is for testing
Cut = tuple[np.ndarray, np.ndarray]  # rows that stay, rows that go to the other part


def cut_rows(
    table: Table, labels: np.ndarray | None, kind: str, column: str | None, validation: float, seed: int
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """The rows to train on, to validate with (or None) and to test with, each in order.

    >>> from wonderland.data.tables import read_table
    >>> table = read_table({"year": [2020, 2024, 2021, 2023, 2022]})
    >>> [rows.tolist() for rows in cut_rows(table, None, "time", "year", 0.25, 0)]
    [[0, 2, 4], [3], [1]]
    """
    cut = _cutter(table, labels, kind, column, seed)
    rest, test = cut(np.arange(len(table)), TEST)
    held = None
    if validation:
        rest, held = cut(rest, validation)
    return rest, held, test


def _cutter(
    table: Table, labels: np.ndarray | None, kind: str, column: str | None, seed: int
) -> Callable[[np.ndarray, float], Cut]:
    if kind == "random" or column is None:
        return lambda rows, share: by_chance(rows, labels, share, seed)
    if kind == "time":
        times = times_of(table, column)
        return lambda rows, share: latest(table.name, rows, times, share)
    codes = groups_of(table, column)
    return lambda rows, share: by_groups(table.name, rows, codes, share, seed)


def by_chance(rows: np.ndarray, labels: np.ndarray | None, share: float, seed: int) -> Cut:
    """Two parts of the rows, with the same shares of the classes where there are enough of each."""
    chosen = None if labels is None else labels[rows]
    if chosen is not None:
        counts = np.bincount(chosen)
        few = counts[counts > 0].min() * min(share, 1 - share) < 1
        chosen = None if few else chosen
    first, second = train_test_split(rows, test_size=share, seed=seed, stratify=chosen)
    return np.sort(np.asarray(first)), np.sort(np.asarray(second))


def latest(name: str, rows: np.ndarray, times: np.ndarray, share: float) -> Cut:
    """The latest rows are the second part; equal times stay on one side, and rows without a time in the first part."""
    known = ~(np.isnat(times[rows]) if times.dtype.kind == "M" else np.isnan(times[rows]))
    when = times[rows][known]
    if not len(when):
        raise InputError(f"{name}: no row has a time.", "another column as data.time, or data.split=random")
    cut = np.sort(when)[len(when) - max(round(share * len(rows)), 1)] if share * len(rows) < len(when) else when.min()
    late = np.zeros(len(rows), bool)
    late[known] = when >= cut
    if late.all():  # too many rows at the last moment: the cut is behind the first moment
        late[known] = when > when.min()
    if late.all() or not late.any():
        raise InputError(f"{name}: all rows are of one time.", "another column as data.time, or data.split=random")
    return rows[~late], rows[late]


def by_groups(name: str, rows: np.ndarray, groups: np.ndarray, share: float, seed: int) -> Cut:
    """Whole groups in one part or the other, so that about a share of the rows is in the second."""
    found, members, counts = np.unique(groups[rows], return_inverse=True, return_counts=True)
    if len(found) < 2:
        raise InputError(f"{name}: the rows are of one group.", "another column as data.group, or data.split=random")
    order = generator(seed, purpose=SPLIT).permutation(len(found))
    wanted = np.searchsorted(np.cumsum(counts[order]), share * len(rows)) + 1
    chosen = np.zeros(len(found), bool)
    chosen[order[: min(wanted, len(found) - 1)]] = True
    return rows[~chosen[members]], rows[chosen[members]]


def times_of(table: Table, name: str) -> np.ndarray:
    """The moments of a column: dates, texts that are dates, or numbers."""
    column = table[name]
    if column.kind == "date":
        return column.values
    guess = guess_kind(column)
    if guess.kind == "date":
        return read_dates(column, guess.source)[0]
    if column.kind == "number":
        return column.values
    raise InputError(f"{table.name}: the column {name!r} is no time.", "a column of dates or of numbers")


def groups_of(table: Table, name: str) -> np.ndarray:
    """The groups of the rows as numbers; rows without one are groups of their own."""
    column = table[name]
    codes = (
        np.unique(column.values, return_inverse=True)[1].astype(np.int64)
        if column.texts is None
        else column.values.astype(np.int64)
    )
    alone = column.missing
    codes[alone] = codes.max(initial=0) + 1 + np.arange(np.count_nonzero(alone))
    return codes


def check_split(kind: object, names: Sequence[str]) -> None:
    """Refuse a way to split that there is not."""
    if kind not in SPLITS:
        raise InputError(f"data.split = {kind!r}.", f"one of {', '.join(SPLITS)}; columns: {', '.join(names[:12])}")
