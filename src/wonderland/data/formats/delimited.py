"""CSV and its relatives: one row per line, columns between delimiters."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ...core.errors import InputError
from ...core.typing import DTypeLike, PathLike
from ...storage.bounds import LEAST_TEXT
from ..record import DatasetRecord
from .files import damaged, read_bytes
from .schema import TableSchema
from .tables import find_column, is_number, kept_columns, parse_column, read_like, table_record

_DELIMITERS = ",;\t|"


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
    - `on_missing`: "error" lists the lines, "drop" leaves those rows out, "nan" keeps them as NaN. Empty fields, NA,
      N/A, NaN, null, None and ? are missing.
    - `like`: the `schema` of another record. Columns are taken by its names, and categories and classes have its
      numbers; a table with other columns, or with a category that it does not have, is refused.
    """
    source = str(path)
    names, rows, lines, header = read_rows(path, header, delimiter, expect_size, expect_sha256, like)
    if like is not None:
        settled = {
            "columns": columns,
            "categorical": categorical,
            "encode": encode != "one_hot",
            "task": task != "auto",
        }
        places, texts, chosen = read_like(source, names, like, header, target, **settled)
    else:
        places = kept_columns(source, names, columns, target)
        texts = {find_column(source, names, column) for column in categorical}
        chosen = None if target is None else names[find_column(source, names, target)]
    fields = list(zip(*rows, strict=True))
    found = [parse_column(source, names[i], fields[i], lines, i in texts) for i in places]
    return table_record(
        source,
        found,
        lines,
        target=chosen,
        task=task,
        encode=encode,
        on_missing=on_missing,
        dtype=dtype,
        others=[name for i, name in enumerate(names) if i not in places],
        header=header,
        like=like,
    )


def read_rows(
    path: PathLike,
    header: bool | None = None,
    delimiter: str | None = None,
    expect_size: int | None = None,
    expect_sha256: str | None = None,
    like: TableSchema | None = None,
) -> tuple[list[str], list[list[str]], list[int], bool]:
    """The names of the columns, the rows as texts, the line in which each ends, and whether there is a header."""
    source = str(path)
    data = read_bytes("read_csv", path, expect_size, expect_sha256, least=LEAST_TEXT)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise damaged("read_csv", path, f"UTF-8 text, found byte {data[error.start]:#x} in line {line}") from None
    if "\0" in text:
        raise damaged("read_csv", path, "text, found a zero byte")
    rows, lines = _rows(source, text, _delimiter(text) if delimiter is None else delimiter)
    if header is None:
        named = like is not None and like.header and any(name.strip() in like.features for name in rows[0])
        header = named or _has_header(rows)
    names = [name.strip() for name in rows[0]] if header else [f"column_{i}" for i in range(len(rows[0]))]
    if header:
        rows, lines = rows[1:], lines[1:]
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise InputError(f"read_csv: {source!r} names two columns {repeated[0]!r}.", "different names")
    if not rows:
        raise InputError(f"read_csv: {source!r} has a header and no rows.", "header=False if line 1 holds data")
    return names, rows, lines, header


def _rows(source: str, text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """The rows that are not empty, all of one length, and the line in which each ends."""
    rows, lines = [], []
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"\0':
        raise InputError(f"read_csv: delimiter={delimiter!r}.", "one character, as ',' or ';'")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        for row in reader:
            if any(field.strip() for field in row):
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise damaged("read_csv", source, f"complete rows, line {reader.line_num} is not", error) from None
    if not rows:
        raise InputError(f"read_csv: {source!r} is empty.", "a file with rows")
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(rows[0]):
            raise damaged(
                "read_csv", source, f"{len(rows[0])} columns as in the first line, found {len(row)} in line {line}"
            )
    return rows, lines


def _delimiter(text: str) -> str:
    """The delimiter that the first lines have in common, the same number of times each."""
    lines = [line for line in text.split("\n", 20)[:20] if line.strip()]
    if len(lines) > 1 and len(text) > sum(map(len, lines)) + 40:
        lines = lines[:-1]
    best, score = ",", 0
    for candidate in _DELIMITERS:
        try:
            counts = [len(row) - 1 for row in csv.reader(lines, delimiter=candidate)]
        except csv.Error:  # no table with this one between its columns
            continue
        if counts and min(counts) > score:
            best, score = candidate, min(counts)
    return best


def _has_header(rows: list[list[str]]) -> bool:
    """Whether the first line names columns: it has no number, and what follows has some or never repeats it."""
    if any(_looks_numeric(field) for field in rows[0]):
        return False
    if any(_looks_numeric(field) for row in rows[1:20] for field in row):
        return True
    # texts only: names of columns do not come back as values
    return all(name not in {row[i] for row in rows[1:]} for i, name in enumerate(rows[0]))


def _looks_numeric(field: str) -> bool:
    return is_number(field) and field.strip().lower() != "nan"
