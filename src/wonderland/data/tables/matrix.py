"""Tables of numbers alone as arrays: frames, dicts of columns and lists, wherever a model is fed with arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...core.arguments import shown
from ...core.dtypes import default_float, default_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, Foreign
from .table import Column, Table

_REMEDY = (
    "wl.data.infer_schema(table).encode(table).features, `wonderland train --data FILE`, or columns of numbers alone"
)


def has_columns(source: object) -> bool:
    """Whether something is a table or a column of one: of pandas, polars or pyarrow, ours, or a dict of columns.

    >>> has_columns({"age": [31, 42]}), has_columns(np.zeros((2, 3))), has_columns([1.0, 2.0])
    (True, False, False)
    """
    if isinstance(source, (Tensor, np.ndarray)):
        return False
    if isinstance(source, (Table, Column)):
        return True
    if isinstance(source, Mapping):
        return bool(source) and all(isinstance(name, str) and _is_column(c) for name, c in source.items())
    return _is_frame(source) or _is_series(source)


def is_list_of_numbers(source: object) -> bool:
    """Whether something is a list of numbers, or of lists of numbers, and no list of batches.

    >>> is_list_of_numbers([[1, 2], [3, 4]]), is_list_of_numbers([np.zeros(2), np.zeros(2)]), is_list_of_numbers([])
    (True, False, False)
    """
    while isinstance(source, list) and source:
        source = source[0]
    return isinstance(source, (int, float, str, np.generic))


def as_matrix(what: str, source: object, *, targets: bool = False) -> Array:
    """A table of numbers as (rows, columns), a column as (rows,): float32; whole numbers in a column stay integers.

    >>> as_matrix("fit", {"age": [31, 42], "height": [1.8, 1.6]})
    array([[31. ,  1.8],
           [42. ,  1.6]], dtype=float32)
    >>> as_matrix("fit", [0, 1, 1])
    array([0, 1, 1])

    `targets`: a table of whole numbers stays integers, too. What is missing, a text or a date is refused with the
    name of its column.
    """
    columns = _columns(source)
    if columns is None:
        found = _numeric(what, None, _values(source))
        return found if found.ndim < 2 or targets or found.dtype.kind == "f" else found.astype(default_float)
    if not columns:
        raise InputError(f"{what}: a table without columns.", "a table with columns of numbers")
    parts = [_numeric(what, name, values) for name, values in columns.items()]
    if len({len(part) for part in parts}) > 1:
        sizes = ", ".join(f"{name!r} {len(part)}" for name, part in zip(columns, parts, strict=True))
        raise ShapeError(f"{what}: the columns have different lengths: {sizes}.", "columns of one length")
    whole = targets and all(part.dtype.kind == "i" for part in parts)
    return np.stack([part.astype(default_int if whole else default_float) for part in parts], axis=1)


def split_off(what: str, source: object, target: str) -> tuple[Array, Array]:
    """The other columns of a table as inputs, and one of them as targets.

    >>> split_off("fit", {"age": [31, 42], "ill": [0, 1]}, "ill")[1]
    array([0, 1])
    """
    columns = _columns(source)
    if columns is None or target not in columns:
        known = "it has none" if columns is None else ", ".join(map(repr, columns))
        raise InputError(f"{what}: the data have no column {target!r} for the targets.", f"one of {known}")
    y = columns.pop(target)
    return as_matrix(what, columns), _numeric(what, target, y)


def _columns(source: Foreign) -> dict[str, Foreign] | None:
    """The values of each column; None for a single column without others beside it."""
    if isinstance(source, Table):
        return {name: _values(column) for name, column in source.columns.items()}
    if isinstance(source, Mapping):
        return {name: _values(column) for name, column in source.items()}
    if _is_frame(source):
        names = getattr(source, "column_names", None) or list(source.columns)
        return {str(name): _values(source[name]) for name in names}
    return None


def _values(column: object) -> Foreign:
    if isinstance(column, Column):
        return column.strings() if column.kind == "text" else column.values
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _numeric(what: str, name: str | None, values: object) -> Array:
    """One column as float32, or int64 if its numbers are whole by type."""
    place = "" if name is None else f" in the column {name!r}"
    try:
        found = np.asarray(values)
        if found.dtype.kind == "O":  # numbers with gaps, as None or pandas' NA
            flat = [np.nan if v is None or str(v) in ("<NA>", "NaT") else v for v in found.ravel().tolist()]
            text = next((v for v in flat if isinstance(v, str)), None)
            found = np.array(flat, dtype=float if text is None else str).reshape(found.shape)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: not numbers{place} ({error}).", _REMEDY) from None
    kind = found.dtype.kind
    if kind in "US":
        raise InputError(f"{what}: texts{place}, such as {shown(str(found.flat[0]))}.", _REMEDY)
    if kind not in "biuf":
        raise InputError(f"{what}: {found.dtype} values{place}.", _REMEDY)
    if kind == "f" and np.isnan(found).any():
        row = int(np.argwhere(np.isnan(found))[0][0])
        raise InputError(f"{what}: a missing value{place}, in row {row}; {int(np.isnan(found).sum())} in all.", _REMEDY)
    return found.astype(default_float if kind == "f" else default_int)


def _is_frame(source: object) -> bool:
    """A frame of pandas or polars, or a table of pyarrow."""
    named = hasattr(source, "columns") and hasattr(source, "to_numpy")
    return not isinstance(source, type) and (named or hasattr(source, "column_names")) and hasattr(source, "shape")


def _is_series(source: object) -> bool:
    return not isinstance(source, type) and hasattr(source, "to_numpy") and hasattr(source, "__len__")


def _is_column(values: Foreign) -> bool:
    if isinstance(values, (list, tuple)):
        return bool(values) and not isinstance(values[0], (list, tuple, dict, np.ndarray, Tensor))
    return isinstance(values, Column) or _is_series(values) or np.ndim(values) == 1
