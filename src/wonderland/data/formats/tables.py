"""From named columns to numbers: which are categorical, what is missing and where, which one is the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import DTypeError, InputError
from ..record import DatasetRecord

MOST_CATEGORIES = 1000  # as columns of zeros and ones; more are names of rows rather than of categories
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})  # compared in lower case


@dataclass(frozen=True)
class Column:
    """A column of a table: texts (an object array) or numbers (float64), and where a value is missing."""

    name: str
    values: np.ndarray
    missing: np.ndarray

    @property
    def is_text(self) -> bool:
        return self.values.dtype == object


def parse_column(source: str, name: str, texts: Sequence[str], lines: Sequence[int], as_text: bool) -> Column:
    """Numbers if all texts are numbers, else texts. A mixture is refused at the row where it begins.

    >>> parse_column("t.csv", "age", ["31", "NA"], [2, 3], as_text=False).missing
    array([False,  True])
    """
    values = np.array([text.strip() for text in texts], dtype=object)
    missing = np.array([text.lower() in MISSING for text in values], dtype=bool)
    present = values[~missing]
    if as_text:
        return Column(name, values, missing)
    numbers = np.full(len(values), np.nan)
    parsed = [is_number(text) for text in present]
    if all(parsed):
        numbers[~missing] = present.astype(np.float64)
    else:
        if any(parsed):
            row = int(np.flatnonzero(~missing)[parsed.index(False)])
            raise InputError(
                f"{source}: column {name!r} has numbers, but line {lines[row]} holds {values[row]!r}.",
                f"mend that line, or categorical=[{name!r}] if these are names of categories",
            )
        return Column(name, values, missing)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise InputError(
            f"{source}: column {name!r} is not finite in line {lines[int(infinite[0])]}.", "finite numbers"
        )
    return Column(name, numbers, missing)


def table_record(
    source: str,
    columns: Sequence[Column],
    lines: Sequence[int],
    *,
    target: str | int | None = None,
    task: str = "auto",
    encode: str = "one_hot",
    on_missing: str = "error",
    dtype: Any = np.float32,
) -> DatasetRecord:
    """The record of a table. `lines` says where each row stands in the file, for messages."""
    _one_of(source, "task", task, ("auto", "classification", "regression"))
    _one_of(source, "encode", encode, ("one_hot", "codes"))
    _one_of(source, "on_missing", on_missing, ("error", "drop", "nan"))
    chosen = None if target is None else find_column(source, [column.name for column in columns], target)
    kept = _rows_kept(source, columns, lines, on_missing, chosen)
    features: list[np.ndarray] = []
    names: list[str] = []
    for i, column in enumerate(columns):
        if i == chosen:
            continue
        if not column.is_text:
            features.append(column.values[kept])
            names.append(column.name)
            continue
        categories, codes = _categories(column, kept)
        if encode == "codes":
            features.append(codes)
            names.append(column.name)
        else:
            if len(categories) > MOST_CATEGORIES:
                raise InputError(
                    f"{source}: column {column.name!r} has {len(categories):,} different texts.",
                    "encode='codes', or columns=[...] without it",
                )
            # a missing category is NaN in all of its columns
            hot = np.where(np.isnan(codes)[:, None], np.nan, codes[:, None] == np.arange(len(categories)))
            features.extend(hot.T)
            names.extend(f"{column.name}={category}" for category in categories)
    if not features:
        raise InputError(f"{source}: no column is left for the features.", "a file with two columns or more")
    targets, classes = (None, ()) if chosen is None else _targets(source, columns[chosen], kept, task, dtype)
    return DatasetRecord(np.stack(features, axis=1).astype(dtype), targets, source, tuple(names), classes)


def find_column(source: str, names: list[str], target: str | int) -> int:
    """The place of the target, given by its name or its number, which may count from the end."""
    if isinstance(target, str) and target in names:
        return names.index(target)
    if isinstance(target, (int, np.integer)) and -len(names) <= target < len(names):
        return int(target) % len(names)
    raise InputError(
        f"{source}: no column {target!r}.", f"a number below {len(names)} or one of {', '.join(map(repr, names))}"
    )


def _rows_kept(
    source: str, columns: Sequence[Column], lines: Sequence[int], on_missing: str, target: int | None
) -> np.ndarray:
    missing = np.stack([column.missing for column in columns])
    places = np.argwhere(missing.T)  # by row
    if on_missing == "error" and len(places):
        shown = ", ".join(f"line {lines[row]} column {columns[i].name!r}" for row, i in places[:5])
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        raise InputError(
            f"{source}: {len(places)} missing values: {shown}{more}.", "on_missing='drop' or on_missing='nan'"
        )
    keep = ~missing.any(axis=0) if on_missing == "drop" else np.ones(missing.shape[1], bool)
    if target is not None and on_missing == "nan" and missing[target].any():
        row = int(np.flatnonzero(missing[target])[0])
        raise InputError(f"{source}: the target is missing in line {lines[row]}.", "on_missing='drop'")
    if not keep.any():
        raise InputError(f"{source}: no row without missing values is left.", "on_missing='nan'")
    return np.flatnonzero(keep)


def _categories(column: Column, kept: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """The sorted categories, and each row's number among them (NaN where missing)."""
    values, missing = column.values[kept], column.missing[kept]
    categories = sorted(set(values[~missing]))
    number = {category: i for i, category in enumerate(categories)}
    return tuple(categories), np.array([number.get(value, np.nan) for value in values], dtype=np.float64)


def _targets(
    source: str, column: Column, kept: np.ndarray, task: str, dtype: Any
) -> tuple[np.ndarray, tuple[str, ...]]:
    if column.is_text:
        if task == "regression":
            raise DTypeError(f"{source}: the target {column.name!r} holds texts.", "task='classification'")
        categories, codes = _categories(column, kept)
        return codes.astype(np.int64), categories
    values = column.values[kept]
    whole = bool((values == np.round(values)).all())
    if task == "classification":
        labels, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64), tuple(f"{label:g}" for label in labels)
    if task == "auto" and whole and np.abs(values).max(initial=0) < 2**53:
        return values.astype(np.int64), ()
    return values.astype(dtype), ()


def _one_of(source: str, what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{source}: {what}={value!r}.", f"one of {', '.join(map(repr, allowed))}")


def is_number(text: str) -> bool:
    """Whether a text is a number. Python's 1_000 is none: in data it is more likely a name.

    >>> is_number(" 1e-3"), is_number("1_000"), is_number("x")
    (True, False, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def kept_columns(
    source: str, names: list[str], columns: Sequence[str | int] | None, target: str | int | None
) -> list[int]:
    """The places of the columns asked for and of the target, in the order of the file."""
    if columns is None:
        return list(range(len(names)))
    wanted = {find_column(source, names, column) for column in columns}
    return sorted(wanted if target is None else wanted | {find_column(source, names, target)})
