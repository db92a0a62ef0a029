"""From a table to a record of numbers: which columns are categorical, what is missing and where, what the target is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.arguments import shown
from ...core.errors import DTypeError, InputError
from ...core.typing import DTypeLike
from ..record import DatasetRecord
from ..tables.coded_texts import text_column
from ..tables.delimited_columns import is_number
from ..tables.reading import read_table
from ..tables.table import Column, Table
from .schema import TableSchema

MOST_CATEGORIES = 1000  # as columns of zeros and ones; more are names of rows rather than of categories


def read_records(
    source: object,
    *,
    target: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    categorical: Sequence[str | int] = (),
    encode: str = "one_hot",
    task: str = "auto",
    on_missing: str = "error",
    dtype: DTypeLike = np.float32,
    like: TableSchema | None = None,
    expect_size: int | None = None,
    expect_sha256: str | None = None,
) -> DatasetRecord:
    """The record of anything that `read_table` takes: a data frame, columns by name, JSON lines, Arrow.

    >>> record = read_records({"age": [31, 54], "city": ["Rome", "Pisa"], "repaid": ["yes", "no"]}, target="repaid")
    >>> record.feature_names, record.targets
    (('age', 'city=Pisa', 'city=Rome'), array([1, 0]))

    The options are those of `read_csv`.
    """
    return record_of_table(
        read_table(source, expect_size=expect_size, expect_sha256=expect_sha256),
        target=target,
        columns=columns,
        categorical=categorical,
        encode=encode,
        task=task,
        on_missing=on_missing,
        dtype=dtype,
        like=like,
    )


def record_of_table(
    table: Table,
    *,
    target: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    categorical: Sequence[str | int] = (),
    encode: str = "one_hot",
    task: str = "auto",
    on_missing: str = "error",
    dtype: DTypeLike = np.float32,
    like: TableSchema | None = None,
    written: bool = False,
    every: Sequence[str] | None = None,
) -> DatasetRecord:
    """The record of a table, with a schema of its own or one that it must be `like`.

    Texts that were `written` in a text file are numbers if all of a column are, and a mixture is refused.
    `every` has the names of all columns of a file of which the table has some.
    """
    source, names = table.name, list(every or table.names)
    _one_of(source, "task", task, ("auto", "classification", "regression"))
    _one_of(source, "encode", encode, ("one_hot", "codes"))
    _one_of(source, "on_missing", on_missing, ("error", "drop", "nan"))
    places, texts, chosen = places_to_read(
        source, names, table.header, target, columns, categorical, encode, task, like
    )
    found = {names[i]: _column(table, names[i], i in texts, written) for i in places}
    kept = _rows_kept(table, found, on_missing, chosen)
    others = [name for name in names if name not in found]
    schema = like or _schema(source, list(found.values()), kept, chosen, task, encode, others, table.header)
    features: list[np.ndarray] = []
    for name, categories in schema.features.items():
        if categories is None:
            features.append(_numbers(table, found[name])[kept])
            continue
        codes = _codes(table, found[name], categories, kept)
        if schema.encode == "codes":
            features.append(codes)
        else:  # a missing category is NaN in all of its columns
            hot = np.where(np.isnan(codes)[:, None], np.nan, codes[:, None] == np.arange(len(categories)))
            features.extend(hot.T)
    if not features:
        raise InputError(f"{source}: no column is left for the features.", "a file with two columns or more")
    targets = None if chosen is None else _targets(table, found[chosen], schema, kept, dtype)
    return DatasetRecord(
        np.stack(features, axis=1).astype(dtype),
        targets,
        source,
        schema.feature_names(),
        tuple(schema.classes or ()),
        schema=schema,
    )


def _column(table: Table, name: str, as_text: bool, written: bool) -> Column:
    """A column of finite numbers, or of texts."""
    column = table[name]
    if column.kind == "date":
        raise DTypeError(f"{table.name}: column {name!r} holds dates.", "columns=[...] without it")
    if as_text:
        return column if column.texts is not None else text_column(name, column.strings())
    if written and column.texts is not None:
        column = _written_numbers(table, column)
    if column.texts is None and np.isinf(column.values).any():
        row = int(np.flatnonzero(np.isinf(column.values))[0])
        raise InputError(f"{table.name}: column {name!r} is not finite in {_place(table, row)}.", "finite numbers")
    return column


def _written_numbers(table: Table, column: Column) -> Column:
    """Texts as numbers if all are some. A mixture is refused at the row where it begins."""
    texts = column.texts or ()
    parsed = np.array([is_number(text) for text in texts] + [True])  # the last is for what is missing
    if parsed.all():
        return Column(column.name, np.array([*map(float, texts), np.nan])[column.values])
    if parsed[:-1].any():
        row = int(np.flatnonzero(~parsed[column.values])[0])
        raise InputError(
            f"{table.name}: column {column.name!r} has numbers, but {_place(table, row)} holds "
            f"{texts[column.values[row]]!r}.",
            f"mend that line, or categorical=[{column.name!r}] if these are names of categories",
        )
    return column


def _place(table: Table, row: int) -> str:
    """Where a row stands: its line, or its number counted from 1."""
    return f"row {row + 1}" if table.lines is None else table.place(row)


def places_to_read(
    source: str,
    names: list[str],
    header: bool,
    target: str | int | None,
    columns: Sequence[str | int] | None,
    categorical: Sequence[str | int],
    encode: str,
    task: str,
    like: TableSchema | None,
) -> tuple[list[int], set[int], str | None]:
    """The places of the columns that a record needs, those of them that hold texts, and the target's name."""
    chosen = None if target is None else find_column(source, names, target)
    if like is None:
        texts = {find_column(source, names, column) for column in categorical}
        places = kept_columns(source, names, columns, target)
        return places, texts, None if chosen is None else names[chosen]
    settled = {"columns": columns, "categorical": categorical, "encode": encode != "one_hot", "task": task != "auto"}
    if given := [name for name, value in settled.items() if value]:
        raise InputError(f"{source}: {given[0]} is settled already, by the table that this is like.", "without it")
    like.check_names(source, [name for i, name in enumerate(names) if i != chosen], header)
    wanted = [names.index(name) for name in like.features]
    as_text = [i for i in wanted if like.features[names[i]] is not None]
    if chosen is not None:
        wanted.append(chosen)
        as_text += [chosen] if like.classes is not None else []
    return wanted, set(as_text), None if chosen is None else names[chosen]


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
    features = {c.name: _categories(c, kept) if c.texts is not None else None for c in columns if c.name != target}
    for name, categories in features.items():
        if encode == "one_hot" and categories is not None and len(categories) > MOST_CATEGORIES:
            raise InputError(
                f"{source}: column {name!r} has {len(categories):,} different texts.",
                "encode='codes', or columns=[...] without it",
            )
    classes, whole = None, False
    if target is not None:
        column = next(c for c in columns if c.name == target)
        if column.texts is not None:
            if task == "regression":
                raise DTypeError(f"{source}: the target {target!r} holds texts.", "task='classification'")
            classes = _categories(column, kept)
        elif task == "classification":
            classes = [f"{label:g}" for label in np.unique(column.values[kept])]
        else:
            whole = task == "auto" and _is_whole(column.values[kept])
    return TableSchema(features, target, classes, whole, encode, list(others), header)


def _rows_kept(table: Table, columns: dict[str, Column], on_missing: str, target: str | None) -> np.ndarray:
    missing = np.stack([column.missing for column in columns.values()])
    places = np.argwhere(missing.T)  # by row
    names = list(columns)
    if on_missing == "error" and len(places):
        shown = ", ".join(f"{_place(table, row)} column {names[i]!r}" for row, i in places[:5])
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        raise InputError(
            f"{table.name}: {len(places)} missing values: {shown}{more}.", "on_missing='drop' or on_missing='nan'"
        )
    keep = ~missing.any(axis=0) if on_missing == "drop" else np.ones(len(table), bool)
    if target is not None and on_missing == "nan" and columns[target].missing.any():
        row = int(np.flatnonzero(columns[target].missing)[0])
        raise InputError(f"{table.name}: the target is missing in {_place(table, row)}.", "on_missing='drop'")
    if not keep.any():
        raise InputError(f"{table.name}: no row without missing values is left.", "on_missing='nan'")
    return np.flatnonzero(keep)


def _categories(column: Column, kept: np.ndarray) -> list[str]:
    texts = column.texts or ()
    return sorted(texts[code] for code in np.unique(column.values[kept]) if code >= 0)


def _codes(table: Table, column: Column, categories: Sequence[str], kept: np.ndarray) -> np.ndarray:
    """The number of each row's category (NaN where missing); one that is not among them is refused."""
    texts = column.texts or ()
    number = {category: float(i) for i, category in enumerate(categories)}
    known = np.array([number.get(text, -1.0) for text in texts] + [np.nan])
    codes = known[column.values[kept]]
    if (new := np.flatnonzero(codes < 0)).size:
        row = int(kept[new[0]])
        raise InputError(
            f"{table.name}: column {column.name!r} has the new category {texts[column.values[row]]!r} in "
            f"{_place(table, row)}.",
            f"one of {shown(list(categories))}",
        )
    return codes


def _numbers(table: Table, column: Column) -> np.ndarray:
    if column.texts is not None:
        row = int(np.flatnonzero(~column.missing)[0])
        raise InputError(
            f"{table.name}: column {column.name!r} has {column.texts[column.values[row]]!r} in {_place(table, row)}, "
            "instead of a number.",
            "numbers in this column, as before",
        )
    return column.values


def _targets(table: Table, column: Column, schema: TableSchema, kept: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    if schema.classes is not None:
        return _codes(table, _as_labels(column, schema.classes), schema.classes, kept).astype(np.int64)
    values = _numbers(table, column)[kept]
    if not schema.whole_target:
        return values.astype(dtype)
    if not _is_whole(values):
        raise InputError(
            f"{table.name}: the target {column.name!r} has fractions.", "whole numbers, as they were before"
        )
    return values.astype(np.int64)


def _as_labels(column: Column, classes: Sequence[str]) -> Column:
    """Numbers as the names of classes: 1.0 and "1.0" are "1", if that is one."""
    if column.texts is None:
        return text_column(column.name, ["" if np.isnan(v) else f"{v:g}" for v in column.values.tolist()])
    names = [v if v in classes or not is_number(v) else f"{float(v):g}" for v in column.texts]
    renamed = text_column(column.name, names)
    return Column(column.name, np.append(renamed.values, np.int32(-1))[column.values], renamed.texts)


def _is_whole(values: np.ndarray) -> bool:
    return bool((values == np.round(values)).all() and np.abs(values).max(initial=0) < 2**53)


def _one_of(source: str, what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{source}: {what}={value!r}.", f"one of {', '.join(map(repr, allowed))}")


def kept_columns(
    source: str, names: list[str], columns: Sequence[str | int] | None, target: str | int | None
) -> list[int]:
    """The places of the columns asked for and of the target, in the order of the file."""
    if columns is None:
        return list(range(len(names)))
    wanted = {find_column(source, names, column) for column in columns}
    return sorted(wanted if target is None else wanted | {find_column(source, names, target)})
