"""The target of a table: classes by name, or numbers with their center and scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.errors import InputError
from .categories import in_order
from .distinct import canonical, distinct
from .kinds import guess_kind
from .numbers import center_and_scale, decimal_mark, parse_numbers, read_numbers
from .table import Column, Table

TASKS = ("auto", "classification", "regression")
MOST_CLASSES = 20  # different whole numbers that may be classes


@dataclass(frozen=True)
class TargetSchema:
    """What is to be predicted.

    >>> TargetSchema("repaid", classes=("no", "yes"), counts=(30.0, 70.0)).task
    'classification'

    - `classes`: their names in order, None for numbers; `counts` are their examples in the training rows;
    - `center`, `scale`: the mean and deviation of numbers in the training rows;
    - `whole`: whether the numbers, or the names of the classes, are whole numbers;
    - `missing`: how many rows have no target;
    - `reason`: why these are classes or numbers, where it could be otherwise.
    """

    name: str
    classes: tuple[str, ...] | None = None
    counts: tuple[float, ...] = ()
    center: float = 0.0
    scale: float = 1.0
    whole: bool = False
    missing: int = 0
    reason: str = ""
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.decimal not in (".", ","):
            raise InputError("the scale or the decimal mark of a target is not what it should be.")
        if self.classes is not None and (len(self.classes) < 2 or len(self.counts) != len(self.classes)):
            raise InputError("the classes of a target do not fit their counts.")

    @property
    def task(self) -> str:
        """ "classification" or "regression"."""
        return "regression" if self.classes is None else "classification"

    def encode(self, table: Table) -> np.ndarray:
        """The targets of a table: classes as int64, or numbers as float32, in the user's units."""
        column = table[self.name]
        if not len(column):
            return np.zeros(0, np.int64 if self.classes is not None else np.float32)
        if self.classes is None:
            found = read_numbers(column, self.decimal)
            if found.words:
                row = min(found.first.values())
                word = next(w for w, r in found.first.items() if r == row)
                raise InputError(
                    f"{table.name}: the target {self.name!r} is {word!r} in {table.place(row)}, which is no number.",
                    "numbers, or rows without it",
                )
            self._refuse_missing(table, np.isnan(found.numbers))
            return found.numbers.astype(np.float32)
        values, codes = distinct(column)
        self._refuse_missing(table, codes < 0)
        known = {canonical(name): i for i, name in enumerate(self.classes)}
        places = np.array([known.get(canonical(v), known.get(_TRUTH.get(v, ""), -1)) for v in values], np.int64)
        if (places < 0).any():
            row = int(np.argmax(places[codes] < 0))
            listed = ", ".join(self.classes[:8]) + (", ..." if len(self.classes) > 8 else "")
            raise InputError(
                f"{table.name}: the target {self.name!r} is {values[codes[row]]!r} in {table.place(row)},"
                f" a class that training did not know.",
                f"rows whose class is one of {listed}",
            )
        return places[codes]

    def _refuse_missing(self, table: Table, missing: np.ndarray) -> None:
        if missing.any():
            rows = np.flatnonzero(missing)
            where = ", ".join(table.place(int(row)) for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
            raise InputError(
                f"{table.name}: the target {self.name!r} is missing in {len(rows)} of {len(table)} rows ({where}).",
                "rows with a target",
            )

    def describe(self) -> str:
        """What it is, in a few words."""
        why = f" ({self.reason})" if self.reason else ""
        if self.classes is None:
            return f"numbers, mean {self.center:.4g}, deviation {self.scale:.4g}{why}"
        total = sum(self.counts) or 1.0
        shown = [f"{c} {n / total:.0%}" for c, n in zip(self.classes[:4], self.counts, strict=False)]
        return f"{len(self.classes)} classes: {', '.join(shown)}{', ...' if len(self.classes) > 4 else ''}{why}"


_TRUTH = {"1": "True", "0": "False"}


def infer_target(
    table: Table, name: str, task: str = "auto", rows: np.ndarray | None = None, order: tuple[str, ...] = ()
) -> TargetSchema:
    """What the target of a table is.

    >>> y = Column("y", np.array([1.0, 0.0, 1.0, np.nan]))
    >>> infer_target(Table("t", {"y": y}), "y").classes
    ('0', '1')

    Classes are those of the whole table; counts, center and scale are those of `rows`.
    """
    column = table[name]
    if task not in TASKS:
        raise InputError(f"task: {task!r} is not known.", f"one of {', '.join(TASKS)}")
    missing = int(column.missing.sum())
    if missing == len(column):
        raise InputError(f"{table.name}: the target {name!r} is missing in every row.", "another column as the target")
    if column.kind == "date" or (column.kind == "text" and task == "auto" and guess_kind(column).kind == "date"):
        raise InputError(f"{table.name}: the target {name!r} is a date.", "a target of numbers or classes")
    values, codes = distinct(column)
    if len(values) == 1:
        raise InputError(
            f"{table.name}: the target {name!r} is always {values[0]!r}: there is nothing to predict.",
            "another column as the target, or rows with other values",
        )
    numbers, decimal = _as_numbers(column, values)
    classes, reason = (task == "classification", "") if task != "auto" else _are_classes(numbers, values, codes)
    chosen = slice(None) if rows is None else rows
    if not classes:
        if numbers is None:
            row = int(np.argmax(np.isin(codes, np.flatnonzero(np.isnan(parse_numbers(values, decimal))))))
            raise InputError(
                f"{table.name}: the target {name!r} is no number in {table.place(row)}: {values[codes[row]]!r}.",
                'numbers, or task="classification"',
            )
        there = numbers[chosen][~np.isnan(numbers[chosen])]
        if not len(there):
            raise InputError(f"{table.name}: the training rows have no target {name!r}.", "rows with a target")
        center, scale = center_and_scale(there)
        whole = bool((there == np.floor(there)).all())
        return TargetSchema(name, None, (), center, scale, whole, missing, reason, decimal)
    present = int((codes >= 0).sum())
    if len(values) > max(2, 0.9 * present) and present > 4:
        raise InputError(
            f"{table.name}: the target {name!r} has {len(values)} different values in {present} rows: no classes.",
            "a target whose classes have several examples each" + ("" if numbers is None else ', or task="regression"'),
        )
    names = [o for o in order if canonical(o) in {canonical(v) for v in values}] if order else in_order(values)
    if order and len(names) < len(values):
        strange = next(v for v in values if canonical(v) not in {canonical(o) for o in order})
        raise InputError(f"the order of the target {name!r} lacks {strange!r}.", "an order of all its classes")
    places = {canonical(n): i for i, n in enumerate(names)}
    found = np.array([places[canonical(v)] for v in values])[codes[chosen][codes[chosen] >= 0]]
    counts = np.bincount(found, minlength=len(names)).tolist()
    return TargetSchema(
        name,
        tuple(names),
        tuple(map(float, counts)),
        whole=numbers is not None,
        missing=missing,
        reason=reason,
        decimal=decimal,
    )


def _as_numbers(column: Column, values: list[str]) -> tuple[np.ndarray | None, str]:
    """All targets as numbers, if they are; words that mean nothing do not stand in the way of reading it so."""
    if column.kind == "number":
        return column.values, "."
    decimal = decimal_mark(values)
    numbers = read_numbers(column, decimal)
    return (None, decimal) if numbers.words else (numbers.numbers, decimal)


def _are_classes(numbers: np.ndarray | None, values: list[str], codes: np.ndarray) -> tuple[bool, str]:
    if numbers is None:
        return True, ""
    there = numbers[~np.isnan(numbers)]
    if not bool((there == np.floor(there)).all()) or len(values) > MOST_CLASSES:
        return False, ""
    if len(values) == 2:
        return True, ""
    if len(there) >= 5 * len(values):
        return True, 'few whole numbers; task="regression" for numbers'
    return False, 'task="classification" for classes'
