"""CSV and its relatives: one row per line, columns between delimiters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.typing import DTypeLike, PathLike
from ..record import DatasetRecord
from ..tables.delimited_files import TextFile
from ..tables.delimited_text import find_form, no_rows, read_delimited, rows_of
from .schema import TableSchema
from .tables import record_of_table


def read_csv(
    path: PathLike,
    *,
    target: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    categorical: Sequence[str | int] = (),
    encode: str = "one_hot",
    task: str = "auto",
    on_missing: str = "error",
    dtype: DTypeLike = np.float32,
    like: TableSchema | None = None,
    expect_size: int | None = None,
    expect_sha256: str | None = None,
) -> DatasetRecord:
    """The record of a table in a text file (UTF-8, plain or gzipped).

    >>> import pathlib, tempfile, wonderland as wl
    >>> path = pathlib.Path(tempfile.mkdtemp(), "loans.csv")
    >>> _ = path.write_text("age,city,repaid\\n31,Rome,yes\\n54,Pisa,no\\n28,Rome,yes\\n")
    >>> loans = wl.data.read_csv(path, target="repaid")
    >>> loans.feature_names
    ('age', 'city=Pisa', 'city=Rome')
    >>> loans.features
    array([[31.,  0.,  1.],
           [54.,  1.,  0.],
           [28.,  0.,  1.]], dtype=float32)
    >>> loans.targets, loans.target_names
    (array([1, 0, 1]), ('no', 'yes'))

    - `target`: a column by name or number (-1 is the last); without it the record has features only.
    - `columns`: those that become features, by name or number; all but the target by default.
    - `header`, `delimiter`: found by looking (a first line without numbers above lines with some is a header).
    - Columns of texts, and those named in `categorical`, are encoded: `encode="one_hot"` or `"codes"`, with the
      categories in sorted order.
    - `task`: "classification" numbers the distinct targets 0, 1, ... and names them; "regression" keeps numbers; "auto"
      does the first for texts, and keeps integers as they are.
    - `on_missing`: "error" lists the lines, "drop" leaves those rows out, "nan" keeps them as NaN. What is
      missing is as in `read_table`: empty fields, NA, NaN, null, ? ...
    - `like`: the `schema` of another record. Columns are taken by its names, and categories and classes have its
      numbers; a table with other columns, or with a category that it does not have, is refused.
    """
    file = TextFile("read_csv", path, "utf-8", expect_size, expect_sha256)
    known = like.features if like is not None and like.header else ()
    return record_of_table(
        read_delimited(file, header, delimiter, known),
        target=target,
        columns=columns,
        categorical=categorical,
        encode=encode,
        task=task,
        on_missing=on_missing,
        dtype=dtype,
        like=like,
        written=True,
    )


def read_rows(
    path: PathLike,
    header: bool | None = None,
    delimiter: str | None = None,
    expect_size: int | None = None,
    expect_sha256: str | None = None,
) -> tuple[list[str], list[list[str]], list[int], bool]:
    """The names of the columns, the rows as texts, the line in which each ends, and whether there is a header."""
    file = TextFile("read_csv", path, "utf-8", expect_size, expect_sha256)
    form = find_form(file, header, delimiter)
    found = list(rows_of(file, form))
    if not found:
        raise no_rows(file)
    return form.names, [row for row, _ in found], [line for _, line in found], form.header
