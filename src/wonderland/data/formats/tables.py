"""From named columns to numbers: which are categorical, what is missing and where, which one is the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.arguments import shown
from ...core.errors import DTypeError, InputError
from ...core.typing import DTypeLike
from ..record import DatasetRecord
from .schema import TableSchema

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
    target: str | None = None,
    task: str = "auto",
    encode: str = "one_hot",
    on_missing: str = "error",
    dtype: DTypeLike = np.float32,
    others: Sequence[str] = (),
    header: bool = True,
    like: TableSchema | None = None,
) -> DatasetRecord:
    """The record of a table, with a schema of its own or one that it must be `like`. `lines` are for messages."""
    _one_of(source, "task", task, ("auto", "classification", "regression"))
    _one_of(source, "encode", encode, ("one_hot", "codes"))
    _one_of(source, "on_missing", on_missing, ("error", "drop", "nan"))
    kept = _rows_kept(source, columns, lines, on_missing, target)
    schema = like or _schema(source, columns, kept, target, task, encode, others, header)
    found = {column.name: column for column in columns}
    features: list[np.ndarray] = []
    for name, categories in schema.features.items():
        if categories is None:
            features.append(_numbers(source, found[name], lines)[kept])
            continue
        codes = _codes(source, found[name], categories, kept, lines)
        if schema.encode == "codes":
            features.append(codes)
        else:  # a missing category is NaN in all of its columns
            hot = np.where(np.isnan(codes)[:, None], np.nan, codes[:, None] == np.arange(len(categories)))
            features.extend(hot.T)
    if not features:
        raise InputError(f"{source}: no column is left for the features.", "a file with two columns or more")
    targets, classes = None, schema.classes or ()
    if target is not None:
        targets = _targets(source, found[target], schema, kept, lines, dtype)
    names = schema.feature_names()
    return DatasetRecord(
        np.stack(features, axis=1).astype(dtype), targets, source, names, tuple(classes), schema=schema
    )


def read_like(
    source: str, names: list[str], like: TableSchema, header: bool, target: str | int | None, **settled: object
) -> tuple[list[int], set[int], str | None]:
    """The places to read of a table that must be like another, those of them that hold texts, and the target's name."""
    if given := [name for name, value in settled.items() if value]:
        raise InputError(f"{source}: {given[0]} is settled already, by the table that this is like.", "without it")
    chosen = None if target is None else find_column(source, names, target)
    like.check_names(source, [name for i, name in enumerate(names) if i != chosen], header)
    wanted = [names.index(name) for name in like.features]
    texts = [i for i in wanted if like.features[names[i]] is not None]
    if chosen is not None:
        wanted.append(chosen)
        texts += [chosen] if like.classes is not None else []
    return wanted, set(texts), None if chosen is None else names[chosen]


def find_column(source: str, names: list[str], target: str | int) -> int:
    """The place of the target, given by its name or its number, which may count from the end."""
    if isinstance(target, str) and target in names:
        return names.index(target)
    if isinstance(target, (int, np.integer)) and -len(names) <= target < len(names):
        return int(target) % len(names)
    raise InputError(
        f"{source}: no column {target!r}.", f"a number below {len(names)} or one of {', '.join(map(repr, names))}"
    )


def _schema(
    source: str,
    columns: Sequence[Column],
    kept: np.ndarray,
    target: str | None,
    task: str,
    encode: str,
    others: Sequence[str],
    header: bool,
) -> TableSchema:
    """The schema of a table as it is found in its rows: categories and classes in sorted order."""
    features = {c.name: _categories(c, kept) if c.is_text else None for c in columns if c.name != target}
    for name, categories in features.items():
        if encode == "one_hot" and categories is not None and len(categories) > MOST_CATEGORIES:
            raise InputError(
                f"{source}: column {name!r} has {len(categories):,} different texts.",
                "encode='codes', or columns=[...] without it",
            )
    classes, whole = None, False
    if target is not None:
        column = next(c for c in columns if c.name == target)
        if column.is_text:
            if task == "regression":
                raise DTypeError(f"{source}: the target {target!r} holds texts.", "task='classification'")
            classes = _categories(column, kept)
        elif task == "classification":
            classes = [f"{label:g}" for label in np.unique(column.values[kept])]
        else:
            whole = task == "auto" and _is_whole(column.values[kept])
    return TableSchema(features, target, classes, whole, encode, list(others), header)


def _rows_kept(
    source: str, columns: Sequence[Column], lines: Sequence[int], on_missing: str, target: str | None
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
    chosen = [column.missing for column in columns if column.name == target]
    if chosen and on_missing == "nan" and chosen[0].any():
        row = int(np.flatnonzero(chosen[0])[0])
        raise InputError(f"{source}: the target is missing in line {lines[row]}.", "on_missing='drop'")
    if not keep.any():
        raise InputError(f"{source}: no row without missing values is left.", "on_missing='nan'")
    return np.flatnonzero(keep)


def _categories(column: Column, kept: np.ndarray) -> list[str]:
    values, missing = column.values[kept], column.missing[kept]
    return sorted(set(values[~missing]))


def _codes(
    source: str, column: Column, categories: Sequence[str], kept: np.ndarray, lines: Sequence[int]
) -> np.ndarray:
    """The number of each row's category (NaN where missing); one that is not among them is refused."""
    number = {category: float(i) for i, category in enumerate(categories)}
    for row in kept:
        if column.values[row] not in number and not column.missing[row]:
            raise InputError(
                f"{source}: column {column.name!r} has the new category {column.values[row]!r} in line {lines[row]}.",
                f"one of {shown(list(categories))}",
            )
    return np.array([np.nan if column.missing[row] else number[column.values[row]] for row in kept], np.float64)


def _numbers(source: str, column: Column, lines: Sequence[int]) -> np.ndarray:
    if column.is_text:
        row = int(np.flatnonzero(~column.missing)[0])
        raise InputError(
            f"{source}: column {column.name!r} has {column.values[row]!r} in line {lines[row]}, instead of a number.",
            "numbers in this column, as before",
        )
    return column.values


def _targets(
    source: str, column: Column, schema: TableSchema, kept: np.ndarray, lines: Sequence[int], dtype: DTypeLike
) -> np.ndarray:
    if schema.classes is not None:
        return _codes(source, _as_labels(column, schema.classes), schema.classes, kept, lines).astype(np.int64)
    values = _numbers(source, column, lines)[kept]
    if not schema.whole_target:
        return values.astype(dtype)
    if not _is_whole(values):
        raise InputError(f"{source}: the target {column.name!r} has fractions.", "whole numbers, as they were before")
    return values.astype(np.int64)


def _as_labels(column: Column, classes: Sequence[str]) -> Column:
    """Numbers as the names of classes: 1.0 and "1.0" are "1", if that is one."""
    names = [v if v in classes or not is_number(v) else f"{float(v):g}" for v in column.values]
    return Column(column.name, np.array(names, dtype=object), column.missing)


def _is_whole(values: np.ndarray) -> bool:
    return bool((values == np.round(values)).all() and np.abs(values).max(initial=0) < 2**53)


def _one_of(source: str, what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{source}: {what}={value!r}.", f"one of {', '.join(map(repr, allowed))}")


def is_number(text: str | float) -> bool:
    """Whether a text is a number. Python's 1_000 is none: in data it is more likely a name.

    >>> is_number(" 1e-3"), is_number("1_000"), is_number("x")
    (True, False, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in str(text)


def kept_columns(
    source: str, names: list[str], columns: Sequence[str | int] | None, target: str | int | None
) -> list[int]:
    """The places of the columns asked for and of the target, in the order of the file."""
    if columns is None:
        return list(range(len(names)))
    wanted = {find_column(source, names, column) for column in columns}
    return sorted(wanted if target is None else wanted | {find_column(source, names, target)})
