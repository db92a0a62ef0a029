"""The target of a table: classes by name, or numbers with their center and scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...core.errors import InputError
from .categories import in_order
from .distinct import canonical, distinct, number_text, used_texts
from .kinds import guess_kind
from .numbers import center_and_scale, decimal_mark, parse_numbers, read_numbers, unit_of, without_unit
from .table import Column, Table

TASKS = ("auto", "classification", "regression")
LARGEST = 1e37  # a number of 32 bits has room for a little more
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
    unit: str = ""

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.decimal not in (".", ","):
            raise InputError(
                "the scale or the decimal mark of a target is not what it should be.",
                "a scale above 0, a point or a comma",
            )
        if self.classes is not None and (len(self.classes) < 2 or len(self.counts) != len(self.classes)):
            raise InputError(
                "the classes of a target do not fit their counts.", "two classes or more, a count for each"
            )

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
            found = read_numbers(column, self.decimal, self.unit)
            if found.words:
                row = min(found.first.values())
                word = next(w for w, r in found.first.items() if r == row)
                raise InputError(
                    f"{table.name}: the target {self.name!r} is {word!r} in {table.place(row)}, which is no number.",
                    "numbers, or rows without it",
                )
            self._refuse_missing(table, np.isnan(found.numbers))
            _check_finite(table, self.name, found.numbers)
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


def missing_in(column: Column) -> np.ndarray:
    """Where a column says nothing: values that are missing, and blank texts.

    >>> missing_in(Column("y", np.array([0, 1, -1], np.int32), ("a", " "))).tolist()
    [False, True, True]
    """
    if column.texts is None:
        return column.missing
    blank = np.array([*(not text.strip() for text in column.texts), True])
    return blank[column.values]


def _check_finite(table: Table, name: str, numbers: np.ndarray) -> None:
    wild = np.abs(numbers) > LARGEST
    if wild.any():
        row = int(np.argmax(wild))
        raise InputError(
            f"{table.name}: the target {name!r} is {numbers[row]:.3g} in {table.place(row)}, too large for 32 bits.",
            "rows without it, or other units",
        )


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
    missing = int(missing_in(column).sum())
    if missing == len(column):
        raise _nothing(table, name)
    if column.kind == "date" or (column.kind == "text" and task == "auto" and guess_kind(column).kind == "date"):
        raise InputError(f"{table.name}: the target {name!r} is a date.", "a target of numbers or classes")
    numbers = _as_numbers(column)
    if numbers is not None:
        _check_finite(table, name, numbers.values)
    if task == "regression" or (task == "auto" and numbers is not None and _many(numbers.values)):
        return _number_schema(table, name, numbers, rows)
    values, codes = distinct(column)
    if len(values) == 1:
        raise _constant(table, name, values[0])
    classes, reason = (True, "") if task != "auto" else _are_classes(numbers, len(values))
    if not classes:
        return _number_schema(table, name, numbers, rows, reason)
    found = _class_schema(table, name, values, codes, rows, order)
    return replace(found, whole=numbers is not None and not numbers.unit, missing=missing, reason=reason)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Targets that are all numbers, and how their texts write them."""

    values: np.ndarray
    decimal: str = "."
    unit: str = ""


def _as_numbers(column: Column) -> _Numbers | None:
    """All targets as numbers, if they are."""
    if column.kind == "number":
        return _Numbers(column.values)
    texts = used_texts(column)[0]
    unit = unit_of(texts)
    decimal = decimal_mark(without_unit(texts, unit))
    found = read_numbers(column, decimal, unit)
    return None if found.words else _Numbers(found.numbers, decimal, unit)


def _many(numbers: np.ndarray) -> bool:
    """Whether numbers are too many to be classes, seen in some of them or in their fractions."""
    there = numbers[~np.isnan(numbers)]
    if len(np.unique(there[:10_000])) > MOST_CLASSES:
        return True
    return not bool((there == np.floor(there)).all()) and there.min() < there.max()


def _are_classes(numbers: _Numbers | None, different: int) -> tuple[bool, str]:
    """Whether targets, whole numbers or texts, are classes; and why, where it could be otherwise."""
    if numbers is None or different == 2:
        return True, ""
    there = int((~np.isnan(numbers.values)).sum())
    if different <= MOST_CLASSES and there >= 5 * different:
        return True, 'few whole numbers; task="regression" for numbers'
    return False, 'task="classification" for classes' if different <= MOST_CLASSES else ""


def _nothing(table: Table, name: str) -> InputError:
    return InputError(f"{table.name}: the target {name!r} is missing in every row.", "another column as the target")


def _constant(table: Table, name: str, value: str) -> InputError:
    return InputError(
        f"{table.name}: the target {name!r} is always {value!r}: there is nothing to predict.",
        "another column as the target, or rows with other values",
    )


def _number_schema(
    table: Table, name: str, numbers: _Numbers | None, rows: np.ndarray | None, reason: str = ""
) -> TargetSchema:
    column = table[name]
    if numbers is None:
        values, codes = distinct(column)
        row = int(np.argmax(np.isin(codes, np.flatnonzero(np.isnan(parse_numbers(values, decimal_mark(values)))))))
        raise InputError(
            f"{table.name}: the target {name!r} is no number in {table.place(row)}: {values[codes[row]]!r}.",
            'numbers, or task="classification"',
        )
    chosen = numbers.values if rows is None else numbers.values[rows]
    there = chosen[~np.isnan(chosen)]
    if not len(there):
        raise InputError(f"{table.name}: the training rows have no target {name!r}.", "rows with a target")
    if np.nanmin(numbers.values) == np.nanmax(numbers.values):
        raise _constant(table, name, number_text(float(there[0])))
    center, scale = center_and_scale(there)
    return TargetSchema(
        name,
        center=center,
        scale=scale,
        whole=bool((there == np.floor(there)).all()),
        missing=int(missing_in(column).sum()),
        reason=reason,
        decimal=numbers.decimal,
        unit=numbers.unit,
    )


def _class_schema(
    table: Table, name: str, values: list[str], codes: np.ndarray, rows: np.ndarray | None, order: tuple[str, ...]
) -> TargetSchema:
    present = int((codes >= 0).sum())
    if len(values) > max(2, 0.9 * present) and present > 4:
        raise InputError(
            f"{table.name}: the target {name!r} has {len(values)} different values in {present} rows: no classes.",
            'a target whose classes have several examples each, or numbers and task="regression"',
        )
    known = {canonical(value) for value in values}
    names = [level for level in order if canonical(level) in known] if order else in_order(values)
    places = {canonical(level): i for i, level in enumerate(names)}
    if strange := [value for value in values if canonical(value) not in places]:
        raise InputError(f"the order of the target {name!r} lacks {strange[0]!r}.", "an order of all its classes")
    chosen = codes if rows is None else codes[rows]
    found = np.array([places[canonical(value)] for value in values])[chosen[chosen >= 0]]
    return TargetSchema(name, tuple(names), tuple(map(float, np.bincount(found, minlength=len(names)))))
