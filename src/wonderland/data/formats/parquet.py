"""Parquet, read by pyarrow (`pip install wonderland[arrow]`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import DTypeError, InputError, WonderlandError
from ...core.typing import DTypeLike, PathLike
from ...storage.bounds import unpacked_limit
from ..extras import need
from ..record import DatasetRecord
from .files import damaged, read_bytes
from .parquet_pages import unpacked_pages
from .schema import TableSchema
from .tables import Column, find_column, kept_columns, read_like, table_record


def read_parquet(
    path: PathLike,
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
    """The record of a Parquet file of numbers and texts. The options are those of `read_csv`; rows count from 1.

    >>> import wonderland as wl
    >>> wl.data.read_parquet("loans.parquet", target="repaid")  # doctest: +SKIP
    DatasetRecord('loans.parquet', features (1000, 7) float32, targets (1000,) int64, 2 classes)
    """
    parquet, pyarrow = (need("read_parquet", module, "arrow") for module in ("pyarrow.parquet", "pyarrow"))
    source = str(path)
    data = read_bytes("read_parquet", path, expect_size, expect_sha256, unpack=False)
    if not (data.startswith(b"PAR1") and data.endswith(b"PAR1")):
        raise damaged("read_parquet", path, "a Parquet file, which begins and ends with PAR1")
    try:
        every = list(parquet.read_schema(pyarrow.BufferReader(data)).names)
        if like is not None:
            settled = {"columns": columns, "categorical": categorical, "encode": encode != "one_hot"}
            places, as_text, chosen = read_like(source, every, like, True, target, task=task != "auto", **settled)
        else:
            places = kept_columns(source, every, columns, target)
            as_text = {find_column(source, every, column) for column in categorical}
            chosen = None if target is None else every[find_column(source, every, target)]
        table = _table(data, [every[i] for i in places])
        table.validate(full=True)
    except WonderlandError:
        raise
    except Exception as error:  # what a damaged file takes the library to is its own affair
        raise damaged("read_parquet", path, "a Parquet table", error) from None
    if table.num_rows == 0 or table.num_columns == 0:
        raise InputError(f"read_parquet: {source!r} is empty.", "a file with rows and the columns asked for")
    found = [_column(source, every[i], table.column(every[i]), i in as_text) for i in places]
    return table_record(
        source,
        found,
        range(1, table.num_rows + 1),
        target=chosen,
        task=task,
        encode=encode,
        on_missing=on_missing,
        dtype=dtype,
        others=[name for i, name in enumerate(every) if i not in places],
        like=like,
    )


def _table(data: bytes, names: list[str]) -> Any:
    """The columns, after a look at what they promise. Texts stay numbered, so that a long one costs its bytes once."""
    parquet, pyarrow = (need("read_parquet", module, "arrow") for module in ("pyarrow.parquet", "pyarrow"))
    schema = parquet.read_schema(pyarrow.BufferReader(data))
    texts = [name for name in names if _is_text(schema.field(name).type)]
    file = parquet.ParquetFile(pyarrow.BufferReader(data), read_dictionary=texts, page_checksum_verification=True)
    limit = unpacked_limit(len(data))
    for promised in (file.metadata.num_rows * len(names) * 8, unpacked_pages(data)):
        if promised > limit:
            raise ValueError(f"it promises {promised:,} bytes, more than {limit:,}")
    return file.read(columns=names)


def _is_text(kind: Any) -> bool:
    types = need("read_parquet", "pyarrow.types", "arrow")
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _column(source: str, name: str, column: Any, as_text: bool) -> Column:
    types, pyarrow = (need("read_parquet", module, "arrow") for module in ("pyarrow.types", "pyarrow"))
    kind = column.type
    missing = np.asarray(column.is_null())
    if types.is_dictionary(kind) and _is_text(kind.value_type):
        return Column(name, _numbered_texts(column), missing)
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if _is_text(kind) or as_text:
        texts = ["" if value is None else str(value) for value in column.to_pylist()]
        return Column(name, np.array(texts, dtype=object), missing)
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
        raise DTypeError(f"{source}: column {name!r} holds {kind}.", "columns=[...] without it")
    values = np.array(column.cast(pyarrow.float64(), safe=False).to_numpy())
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise InputError(f"{source}: column {name!r} is not finite in row {infinite[0] + 1}.", "finite numbers")
    return Column(name, values, missing | np.isnan(values))


def _numbered_texts(column: Any) -> np.ndarray:
    """Texts that are given by their numbers in a list: each is one object, however often it comes."""
    parts: list[np.ndarray] = [np.empty(0, object)]
    for chunk in column.chunks:
        known = np.array([value or "" for value in chunk.dictionary.to_pylist()] + [""], dtype=object)
        parts.append(known[np.asarray(chunk.indices.fill_null(len(known) - 1))])
    return np.concatenate(parts)
