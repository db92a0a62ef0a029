"""A table as it was read: named columns of numbers, texts or dates, some missing. What they mean comes later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.errors import InputError, ShapeError


@dataclass(frozen=True, eq=False)
class Column:
    """The values of a column, in one of three forms.

    >>> city = Column("city", np.array([0, 1, -1, 0], np.int32), ("Rome", "Pisa"))
    >>> city.kind, city.missing.tolist(), city.strings().tolist()
    ('text', [False, False, True, False], ['Rome', 'Pisa', '', 'Rome'])

    - numbers: float64, NaN where one is missing;
    - texts: int32 codes into `texts`, which are all different; -1 where one is missing;
    - dates: datetime64[us], NaT where one is missing.
    """

    name: str
    values: np.ndarray
    texts: tuple[str, ...] | None = None

    @property
    def kind(self) -> str:
        """ "number", "text" or "date"."""
        return "text" if self.texts is not None else "date" if self.values.dtype.kind == "M" else "number"

    @property
    def missing(self) -> np.ndarray:
        """Where a value is missing."""
        if self.texts is not None:
            return self.values < 0
        return np.isnat(self.values) if self.kind == "date" else np.isnan(self.values)

    def strings(self) -> np.ndarray:
        """The values as texts, an object array; "" where one is missing."""
        if self.texts is not None:
            return np.array([*self.texts, ""], dtype=object)[self.values]  # the code -1 is the last
        shown = self.values.astype(str).astype(object) if self.kind == "date" else _numbers(self.values)
        shown[self.missing] = ""
        return shown

    def select(self, rows: np.ndarray) -> Column:
        """The column of some rows; it knows the same texts."""
        return replace(self, values=self.values[rows])

    def __len__(self) -> int:
        return len(self.values)


def _numbers(values: np.ndarray) -> np.ndarray:
    """Numbers as people write them: 3 and not 3.0."""
    return np.array([f"{v:.0f}" if v == np.floor(v) and abs(v) < 1e15 else repr(v) for v in values.tolist()], object)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length, by name and in order.

    >>> table = Table("people", {"age": Column("age", np.array([31.0, np.nan]))})
    >>> len(table), table.names, table["age"].missing.tolist(), table.place(1)
    (2, ('age',), [False, True], 'row 1')

    `header` says whether the names are the file's own; without one they are `column_0`, `column_1` ...
    `lines` are the lines of a text file in which the rows stand, for messages.
    """

    name: str
    columns: Mapping[str, Column]
    header: bool = True
    lines: np.ndarray | None = None

    def __post_init__(self) -> None:
        sizes = {len(column) for column in self.columns.values()}
        if len(sizes) > 1:
            raise ShapeError(f"{self.name}: columns of {sorted(sizes)} rows.", "columns of one length")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise InputError(f"{self.name}: there is no column {name!r}.", f"one of {', '.join(map(repr, self.names))}")
        return self.columns[name]

    def select(self, rows: np.ndarray | Sequence[int]) -> Table:
        """The table of some rows."""
        chosen = np.asarray(rows)
        columns = {name: column.select(chosen) for name, column in self.columns.items()}
        return replace(self, columns=columns, lines=None if self.lines is None else self.lines[chosen])

    def without(self, names: Iterable[str]) -> Table:
        """The table without some columns."""
        left = set(names)
        return replace(self, columns={n: c for n, c in self.columns.items() if n not in left})

    def place(self, row: int) -> str:
        """Where a row stands, for messages: its line in a file, or its number."""
        return f"row {row}" if self.lines is None else f"line {int(self.lines[row])}"
