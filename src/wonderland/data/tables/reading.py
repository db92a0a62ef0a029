"""One way in for tables: files, standard input, data frames, columns and rows in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...core.errors import DTypeError, InputError
from ...storage.bounds import gunzip_head
from ..formats.files import GZIP
from .arrow import ARROW_FILE, read_arrow_table, read_parquet_table, table_of_arrow
from .delimited_files import TextFile
from .delimited_text import find_delimiter, read_delimited
from .frames import is_frame, table_of_columns, table_of_frame, table_of_records, table_of_rows
from .json_lines import read_json_table
from .table import Table

_WHO = "read_table"
_HEAD = 1 << 14
_DELIMITED = ("csv", "tsv", "data")  # a .txt may be a table, too: its lines tell
_ARROW = ("arrow", "arrows", "feather", "ipc")
_JSON = ("json", "jsonl", "ndjson")
_BLANK = b"\xef\xbb\xbf \t\r\n"  # what may stand before JSON: the mark of UTF-8, empty lines
_FRAMES = ("pandas", "polars")


def read_table(
    source: object,
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

    | source | is |
    |---|---|
    | CSV, TSV, text (also .gz) | columns between delimiters; `header`, `delimiter`, `encoding` are found by looking |
    | JSON lines, JSON (also .gz) | an object for each row; objects inside it are columns `a.b` |
    | Parquet, Arrow, Feather | read by pyarrow |
    | "-" | standard input: CSV, JSON lines or JSON |
    | a frame of pandas or polars, a `pyarrow.Table` | its columns; an index is left out |
    | a dict of columns, or of values: one row | lists, arrays, tensors |
    | a list of dicts, a structured array | its rows |

    - Empty fields and NA, N/A, NaN, null, None, ?, #N/A, <NA>, \\\\N are missing; among numbers also -, -- and dots.
    - A column of a text file has numbers if all of its fields are some. Whole numbers with zeros before them (007) and
      those beyond 2**53 are texts, whole columns of them. Booleans are the texts False and True.
    - Dates with a time zone are in UTC, durations are seconds.
    - A text file is UTF-8, has a mark that says otherwise, or one byte a letter as in Latin-1 (cp1252).
    - What is ragged, not closed, of two encodings or changes meanwhile is refused with the line.
    """
    if isinstance(source, (str, os.PathLike)):
        return _read_file(source, header, delimiter, encoding, expect_size, expect_sha256)
    _without(
        f"for files, and this is a {type(source).__name__}",
        header=header,
        delimiter=delimiter,
        encoding=encoding,
        expect_size=expect_size,
        expect_sha256=expect_sha256,
    )
    if isinstance(source, Table):
        return source
    library = type(source).__module__.partition(".")[0]
    if library in _FRAMES:
        return table_of_frame(source)
    if library == "pyarrow" and hasattr(source, "column_names"):
        return table_of_arrow(source)
    if isinstance(source, Mapping):
        return table_of_columns(source)
    if isinstance(source, np.ndarray) and source.dtype.names:
        return table_of_records(source)
    if isinstance(source, (list, tuple)):
        return table_of_rows(source)
    raise DTypeError(
        f"{_WHO}: a {type(source).__name__} is no table.",
        "a path, a data frame, a dict of columns, a list of dicts or a structured array",
    )


def _read_file(
    source: str | os.PathLike[str],
    header: bool | None,
    delimiter: str | None,
    encoding: str | None,
    size: int | None,
    sha256: str | None,
) -> Table:
    try:
        kind = "" if source == "-" else _kind(Path(source).expanduser())
    except (OSError, RuntimeError, ValueError):  # reading it as text will say why
        kind = ""
    if kind in ("parquet", "arrow", "json"):
        _without(f"for delimited text, and {str(source)!r} is {kind}", header=header, delimiter=delimiter)
    if kind in ("parquet", "arrow"):
        _without(f"for text, and {str(source)!r} is {kind}", encoding=encoding)
    if kind == "parquet":
        return read_parquet_table(_WHO, source, None, size, sha256)[0]
    if kind == "arrow":
        return read_arrow_table(_WHO, source, size, sha256)
    file = TextFile(_WHO, source, encoding, size, sha256)
    if kind == "json" or (source == "-" and file.head.lstrip(_BLANK)[:1] in (b"{", b"[")):
        return read_json_table(file)
    return read_delimited(file, header, delimiter)


def _without(reason: str, **options: object) -> None:
    """Refuse options that would do nothing."""
    if given := [name for name, value in options.items() if value is not None]:
        raise InputError(f"{_WHO}: {given[0]} is {reason}.", "without it")


def is_table_source(source: object) -> bool:
    """Whether `read_table` takes a source, by its type, its ending and its first bytes.

    >>> is_table_source({"age": [31, 54]}), is_table_source([1, 2]), is_table_source("iris")
    (True, False, False)
    """
    if isinstance(source, (str, os.PathLike)):
        try:
            return source == "-" or bool(_kind(Path(source).expanduser()))
        except (OSError, RuntimeError, ValueError):  # a name that is none
            return False
    library = type(source).__module__.partition(".")[0]
    if library in _FRAMES:
        return is_frame(source)
    if library == "pyarrow":
        return hasattr(source, "column_names")
    if isinstance(source, np.ndarray):
        return bool(source.dtype.names)
    if isinstance(source, (list, tuple)):
        return bool(source) and all(isinstance(row, Mapping) for row in source)
    return isinstance(source, (Table, Mapping))


def _kind(path: Path) -> str:
    """ "parquet", "arrow", "json", "text", or "" for a file that is no table, by its first bytes and its ending."""
    if not path.is_file():
        return "text" if path.exists() and not path.is_dir() else ""  # a pipe can be read once, and not to look
    with path.open("rb") as file:
        head = file.read(4 * _HEAD)
    if head.startswith(GZIP):
        try:
            head = gunzip_head(head, _HEAD)
        except ValueError:  # damage, of which the reader tells more
            head = b""
    head = head[:_HEAD]
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if head.startswith(b"PAR1") or ending in ("parquet", "pq"):
        return "parquet"
    if head.startswith(ARROW_FILE) or ending in _ARROW:
        return "arrow"
    begin = head.lstrip(_BLANK)[:1]
    if ending in _JSON:
        return "json" if begin in (b"{", b"[") or ending != "json" else ""
    if ending in _DELIMITED:
        return "text"
    return "text" if ending == "txt" and _has_columns(head) else ""


def _has_columns(head: bytes) -> bool:
    """Whether the first lines of a text have the same number of columns, and more than one."""
    lines = head.decode("utf-8", "replace").splitlines()
    lines = [line for line in (lines[:-1] if len(head) == _HEAD else lines) if line.strip()][:20]
    counts = {line.count(find_delimiter(lines)) for line in lines}
    return len(counts) == 1 and counts != {0}
