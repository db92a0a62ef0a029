"""Tables that are in memory already: data frames, columns by name, rows as dicts, structured arrays."""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
import numbers
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...core.errors import DTypeError, InputError, ShapeError
from ...core.typing import Foreign
from .coded_texts import BOOLEANS, text_column
from .delimited_columns import EXACT
from .table import Column, Table

_WHO = "read_table"


def is_frame(source: object) -> bool:
    """Whether something of pandas or polars is a data frame, whose rows are there: not a series or a lazy frame."""
    return hasattr(source, "get_columns") or (hasattr(source, "iloc") and hasattr(source, "columns"))


def table_of_frame(frame: Foreign) -> Table:
    """The table of a data frame of pandas or polars, without the index."""
    library = type(frame).__module__.partition(".")[0]
    if not is_frame(frame):
        raise DTypeError(
            f"{_WHO}: a {type(frame).__name__} of {library} is no table with rows.",
            "a data frame: frame.collect(), series.to_frame()",
        )
    names = _names("the frame", frame.columns)
    if library == "polars":
        columns = [_polars_column(name, series) for name, series in zip(names, frame.get_columns(), strict=True)]
    else:
        columns = [_pandas_column(name, frame.iloc[:, i]) for i, name in enumerate(names)]
    return _table(f"the {library} frame", {column.name: column for column in columns})


def table_of_columns(columns: Mapping[str, object], name: str = "the dict") -> Table:
    """The table of columns by name, or of one row by the names of its values.

    >>> table_of_columns({"age": [31, None], "city": ["Rome", "Pisa"]})["age"].values
    array([31., nan])
    >>> len(table_of_columns({"age": 31, "city": "Rome"}))
    1
    """
    names = _names(name, columns)
    single = [key for key in columns if _is_scalar(columns[key])]
    if single and len(single) < len(columns):
        other = next(key for key in columns if not _is_scalar(columns[key]))
        raise InputError(
            f"{_WHO}: {name} has one value in {str(single[0])!r} and several in {str(other)!r}.",
            "lists of one length, or one value each",
        )
    if single:
        return _table(
            name, {text: column_of_values(text, [columns[key]]) for text, key in zip(names, columns, strict=True)}
        )
    found = {text: column_of(text, columns[key]) for text, key in zip(names, columns, strict=True)}
    sizes = {len(column): text for text, column in found.items()}
    if len(sizes) > 1:
        (short, one), (long, two) = sorted(sizes.items())[:: len(sizes) - 1]
        raise ShapeError(
            f"{_WHO}: {name} has {short} values in {one!r} and {long} in {two!r}.", "columns of one length"
        )
    return _table(name, found)


def table_of_rows(rows: Sequence[object], name: str = "the list") -> Table:
    """The table of rows by the names of their values. What a row does not name is missing.

    >>> table_of_rows([{"age": 31}, {"city": "Rome"}])["city"].strings().tolist()
    ['', 'Rome']
    """
    found: list[Mapping[str, object]] = []
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DTypeError(f"{_WHO}: row {i} of {name} is a {type(row).__name__}.", "a dict for each row")
        found.append(row)
    names = list(dict.fromkeys(key for row in found for key in row))
    shown = _names(name, names)
    columns = {
        text: column_of_values(text, [row.get(key) for row in found]) for text, key in zip(shown, names, strict=True)
    }
    return _table(name, columns)


def table_of_records(array: np.ndarray) -> Table:
    """The table of a structured array.

    >>> table_of_records(np.array([(1, "x"), (2, "y")], [("a", int), ("b", "U1")]))["a"].values
    array([1., 2.])
    """
    flat = np.atleast_1d(array)
    if flat.ndim > 1:
        raise ShapeError(f"{_WHO}: a structured array of shape {array.shape}.", "one axis: the rows")
    return _table("the array", {name: column_of(name, flat[name]) for name in flat.dtype.names or ()})


def _table(name: str, columns: dict[str, Column]) -> Table:
    table = Table(name, columns)
    if not columns or not len(table):
        raise InputError(f"{_WHO}: {name} has no {'rows' if columns else 'columns'}.", "a table with rows")
    return table


def _names(source: str, names: Iterable[object]) -> list[str]:
    """The names of columns as texts: numbers as they are shown, those of several levels with dots between them."""
    texts = [".".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names]
    if len(set(texts)) < len(texts):
        repeated = next(text for i, text in enumerate(texts) if text in texts[:i])
        raise InputError(f"{_WHO}: {source} names two columns {repeated!r}.", "different names")
    return texts


# --- data frames


def _pandas_column(name: str, series: Foreign) -> Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return column_of(name, series.to_numpy())
    if hasattr(dtype, "categories"):  # each category is looked at once
        known = column_of_values(name, list(dtype.categories))
        codes = np.asarray(series.cat.codes, np.int64)
        return _taken(known, codes)
    if getattr(dtype, "tz", None) is not None:
        return column_of(name, series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    kind = str(dtype)
    if kind.startswith("period"):
        return column_of(name, series.dt.to_timestamp().to_numpy())
    if kind.startswith("Sparse"):
        return _pandas_column(name, series.sparse.to_dense())
    return column_of_values(name, series.astype(str if kind.startswith("interval") else object).tolist())


def _polars_column(name: str, series: Foreign) -> Column:
    if series.dtype.is_float() and not series.null_count():
        return column_of(name, series.to_numpy())
    return column_of_values(name, series.to_list())


def _taken(known: Column, codes: np.ndarray) -> Column:
    """The column of some values by their numbers, -1 where one is missing."""
    if known.kind == "text":
        values = np.append(known.values, np.int32(-1))
    else:
        values = np.append(known.values, np.array("NaT" if known.kind == "date" else np.nan, known.values.dtype))
    return Column(known.name, values[codes], known.texts)


# --- one column


def column_of(name: str, values: object) -> Column:
    """The column of an array, a tensor or a sequence of values.

    >>> column_of("open", np.array([True, False])).strings().tolist()
    ['True', 'False']
    """
    if isinstance(values, (list, tuple)):
        return column_of_values(name, values)
    if type(values).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(values, "to_list"):
        return (_pandas_column if hasattr(values, "iloc") else _polars_column)(name, values)
    array = np.ma.asarray(values) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if array.ndim != 1:
        raise ShapeError(f"{_WHO}: column {name!r} has the shape {array.shape}.", "one value for each row")
    if isinstance(array, np.ma.MaskedArray):
        return column_of_values(name, array.tolist())
    kind = array.dtype.kind
    if kind == "b":
        return Column(name, array.astype(np.int32), BOOLEANS)
    if kind in "iu":
        if array.dtype.itemsize == 8 and len(array) and (int(array.max()) > EXACT or int(array.min()) < -EXACT):
            return text_column(name, map(str, array.tolist()))
        return Column(name, array.astype(np.float64))
    if kind == "f":
        return Column(name, array.astype(np.float64))
    if kind == "M":
        return Column(name, array.astype("datetime64[us]"))
    if kind == "m":
        return Column(name, _seconds(array))
    if kind == "U":
        return text_column(name, array.tolist())
    if kind in "SO":
        return column_of_values(name, array.tolist())
    raise DTypeError(f"{_WHO}: column {name!r} holds {array.dtype}.", "numbers, texts or dates")


def _seconds(durations: np.ndarray) -> np.ndarray:
    """Durations in seconds."""
    seconds = durations.astype("timedelta64[us]").astype(np.float64) / 1e6
    seconds[np.isnat(durations)] = np.nan
    return seconds


_FAMILIES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "boolean"),
    ((np.timedelta64, datetime.timedelta), "duration"),  # the first is an integer to Python
    ((numbers.Integral, np.integer), "whole"),
    ((numbers.Real, np.floating, decimal.Decimal, fractions.Fraction), "real"),
    ((datetime.date, np.datetime64), "date"),  # a datetime is a date
    ((str, bytes, datetime.time, uuid.UUID, os.PathLike), "text"),
)


def column_of_values(name: str, values: Sequence[Foreign]) -> Column:
    """The column of Python's objects: numbers, booleans, dates, durations (in seconds), texts, or texts of a mixture.

    >>> column_of_values("a", [1, None, 2.5]).values, column_of_values("a", [1, "x", True]).strings().tolist()
    (array([1. , nan, 2.5]), ['1', 'x', 'True'])
    """
    families = {kind: _family(kind) for kind in set(map(type, values))}
    if None in families.values():
        return _odd(name, values, families)
    found = set(families.values()) - {"missing"}
    if "real" in found and found - {"real", "whole"}:  # NaN stands for a missing value beside anything
        values = [None if families[type(v)] == "real" and v != v else v for v in values]
        found = {families[type(v)] for v in values if v is not None} - {"missing"}
    gone = [families.get(type(v), "missing") == "missing" for v in values]
    if not found:
        return Column(name, np.full(len(values), np.nan))
    if found <= {"whole", "real"}:
        whole = [v for v, missing in zip(values, gone, strict=True) if not missing and families[type(v)] == "whole"]
        if not whole or max(map(abs, whole)) <= EXACT:
            filled = (math.nan if missing else float(v) for v, missing in zip(values, gone, strict=True))
            return Column(name, np.fromiter(filled, np.float64, len(values)))
    if found == {"date"}:
        return Column(name, np.array([_instant(None if m else v) for v, m in zip(values, gone, strict=True)]))
    if found == {"duration"}:
        spans = [np.timedelta64("NaT") if m else np.timedelta64(v) for v, m in zip(values, gone, strict=True)]
        return Column(name, _seconds(np.array(spans, "timedelta64[us]")))
    return text_column(name, ["" if m else _written(name, v) for v, m in zip(values, gone, strict=True)])


def _family(kind: type) -> str | None:
    if kind is type(None) or kind.__name__ in ("NAType", "NaTType", "MaskedConstant"):  # the last ones are pandas'
        return "missing"
    return next((family for kinds, family in _FAMILIES if issubclass(kind, kinds)), None)


def _odd(name: str, values: Sequence[Foreign], families: Mapping[type, str | None]) -> Column:
    """Values that are arrays or tensors of one number each, or an error that names the first that is no value."""
    for row, value in enumerate(values):
        if families[type(value)] is None and not (getattr(value, "shape", None) == () and hasattr(value, "item")):
            raise DTypeError(
                f"{_WHO}: column {name!r} holds a {type(value).__name__} in row {row}.", "numbers, texts or dates"
            )
    return column_of_values(name, [v.item() if families[type(v)] is None else v for v in values])


def _instant(value: Foreign) -> np.datetime64:
    """A date as it is in UTC if it says where it is, else as it is."""
    if value is None:
        return np.datetime64("NaT", "us")
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _written(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise DTypeError(f"{_WHO}: column {name!r} holds bytes that are no text.", "texts") from None
    if isinstance(value, (float, np.floating)) and abs(float(value)) < EXACT and float(value).is_integer():
        return str(int(value))
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def _is_scalar(value: object) -> bool:
    return (
        isinstance(value, (str, bytes))
        or not (hasattr(value, "__len__") or hasattr(value, "__iter__"))
        or getattr(value, "shape", None) == ()
    )
