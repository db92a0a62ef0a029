"""One way in for tables: files, standard input, data frames, columns and rows in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import DTypeError
from .delimited_files import TextFile
from .delimited_text import read_delimited
from .frames import table_of_columns, table_of_frame, table_of_records, table_of_rows
from .table import Table


def read_table(
    source: Any,
    *,
    header: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    expect_size: int | None = None,
    expect_sha256: str | None = None,
) -> Table:
    """The table of a file or of what is in memory: columns of numbers, texts or dates, as they are.

    >>> import wonderland as wl
    >>> table = wl.data.read_table({"age": [31, 54], "city": ["Rome", None]})
    >>> table.names, table["city"].missing.tolist()
    (('age', 'city'), [False, True])
    """
    if isinstance(source, Table):
        return source
    library = type(source).__module__.partition(".")[0]
    if library in ("pandas", "polars"):
        return table_of_frame(source)
    if isinstance(source, Mapping):
        return table_of_columns(source)
    if isinstance(source, np.ndarray) and source.dtype.names:
        return table_of_records(source)
    if isinstance(source, (list, tuple)):
        return table_of_rows(source)
    if isinstance(source, np.ndarray):
        raise DTypeError(f"read_table: an array of {source.dtype} has no names.", "a dict of columns")
    file = TextFile("read_table", source, encoding, expect_size, expect_sha256)
    return read_delimited(file, header, delimiter)


def is_table_source(source: Any) -> bool:
    """Whether `read_table` takes a source, by its type and the ending of its name."""
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        return name == "-" or (
            os.path.isfile(name) and str(name).lower().removesuffix(".gz").rpartition(".")[2] in ("csv", "tsv", "data")
        )
    if isinstance(source, (Table, Mapping)):
        return True
    if type(source).__module__.partition(".")[0] in ("pandas", "polars"):
        return hasattr(source, "columns")
    if isinstance(source, np.ndarray):
        return bool(source.dtype.names)
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(row, Mapping) for row in source)
