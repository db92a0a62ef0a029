"""Parquet, read by pyarrow (`pip install wonderland[arrow]`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, InputError
from ..extras import need
from ..record import DatasetRecord
from .files import damaged, read_bytes
from .schema import TableSchema
from .tables import Column, find_column, kept_columns, read_like, table_record


def read_parquet(
    path: Any,
    *,
    target: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    categorical: Sequence[str | int] = (),
    encode: str = "one_hot",
    task: str = "auto",
    on_missing: str = "error",
    dtype: Any = np.float32,
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
        file = parquet.ParquetFile(pyarrow.BufferReader(data))
        every = list(file.schema_arrow.names)
        if like is not None:
            settled = {"columns": columns, "categorical": categorical, "encode": encode != "one_hot"}
            places, as_text, chosen = read_like(source, every, like, True, target, task=task != "auto", **settled)
        else:
            places = kept_columns(source, every, columns, target)
            as_text = {find_column(source, every, column) for column in categorical}
            chosen = None if target is None else every[find_column(source, every, target)]
        table = file.read(columns=[every[i] for i in places])
    except (pyarrow.ArrowException, OSError) as error:
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


def _column(source: str, name: str, column: Any, as_text: bool) -> Column:
    types = need("read_parquet", "pyarrow.types", "arrow")
    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    missing = np.asarray(column.is_null())
    if types.is_string(kind) or types.is_large_string(kind) or as_text:
        texts = ["" if value is None else str(value) for value in column.to_pylist()]
        return Column(name, np.array(texts, dtype=object), missing)
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
        raise DTypeError(f"{source}: column {name!r} holds {kind}.", "columns=[...] without it")
    values = np.array([np.nan if value is None else float(value) for value in column.to_pylist()])
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise InputError(f"{source}: column {name!r} is not finite in row {infinite[0] + 1}.", "finite numbers")
    return Column(name, values, missing | np.isnan(values))
