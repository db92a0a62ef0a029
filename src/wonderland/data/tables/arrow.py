"""Tables of Arrow and its files, Parquet and IPC (Feather), by pyarrow (`pip install wonderland[arrow]`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...core.errors import DTypeError, InputError, WonderlandError
from ...core.typing import Foreign, PathLike
from ...storage.bounds import unpacked_limit
from ..extras import need
from ..formats.files import damaged, read_bytes
from ..formats.parquet_pages import unpacked_pages
from .coded_texts import BOOLEANS, CodedTexts, text_column
from .delimited_numbers import EXACT
from .frames import column_of, column_of_values
from .table import Column, Table

ARROW_FILE = b"ARROW1"  # as the file format of IPC begins; the stream format has no mark of its own
_STREAM = b"\xff\xff\xff\xff"


def table_of_arrow(source: Foreign, name: str = "the Arrow table", who: str = "read_table") -> Table:
    """The table of a `pyarrow.Table` or record batch.

    >>> import pyarrow as pa
    >>> table_of_arrow(pa.table({"a": [1, None], "b": ["x", "y"]}))["a"].values
    array([ 1., nan])
    """
    names = list(source.column_names)
    if repeated := [text for i, text in enumerate(names) if text in names[:i]]:
        raise InputError(f"{who}: {name} names two columns {repeated[0]!r}.", "different names")
    if not names or not source.num_rows:
        raise InputError(f"{who}: {name} is empty.", "a table with rows and columns")
    pyarrow = need(who, "pyarrow", "arrow")
    columns = {text: _column(who, name, text, pyarrow.chunked_array(source.column(text))) for text in names}
    return Table(name, columns)


def read_parquet_table(
    who: str,
    path: PathLike,
    choose: Callable[[list[str]], Sequence[str]] | None = None,
    expect_size: int | None = None,
    expect_sha256: str | None = None,
) -> tuple[Table, list[str]]:
    """The table of a Parquet file, all of it or the columns that are chosen from its names; and these names."""
    parquet, pyarrow = (need(who, module, "arrow") for module in ("pyarrow.parquet", "pyarrow"))
    data = read_bytes(who, path, expect_size, expect_sha256, unpack=False)
    if not (data.startswith(b"PAR1") and data.endswith(b"PAR1")):
        raise damaged(who, path, "a Parquet file, which begins and ends with PAR1")
    try:
        every = list(parquet.read_schema(pyarrow.BufferReader(data)).names)
        table = _read_parquet(who, data, every if choose is None else list(choose(every)))
        table.validate(full=True)
    except WonderlandError:
        raise
    except Exception as error:  # what a damaged file takes the library to is its own affair
        raise damaged(who, path, "a Parquet table", error) from None
    return table_of_arrow(table, str(path), who), every


def _read_parquet(who: str, data: bytes, names: list[str]) -> Foreign:
    """The columns, after a look at what they promise. Texts stay numbered, so that a long one costs its bytes once."""
    parquet, pyarrow = (need(who, module, "arrow") for module in ("pyarrow.parquet", "pyarrow"))
    schema = parquet.read_schema(pyarrow.BufferReader(data))
    texts = [name for name in names if _is_text(schema.field(name).type)]
    file = parquet.ParquetFile(pyarrow.BufferReader(data), read_dictionary=texts, page_checksum_verification=True)
    limit = unpacked_limit(len(data))
    for promised in (file.metadata.num_rows * len(names) * 8, unpacked_pages(data)):
        if promised > limit:
            raise ValueError(f"it promises {promised:,} bytes, more than {limit:,}")
    return file.read(columns=names)


def read_arrow_table(
    who: str, path: PathLike, expect_size: int | None = None, expect_sha256: str | None = None
) -> Table:
    """The table of an Arrow file: the file format, which is Feather's, or the stream format."""
    ipc, pyarrow = (need(who, module, "arrow") for module in ("pyarrow.ipc", "pyarrow"))
    data = read_bytes(who, path, expect_size, expect_sha256, unpack=False)
    if not data.startswith((ARROW_FILE, _STREAM)):
        raise damaged(who, path, "an Arrow IPC file or stream, or Feather of version 2")
    limit = unpacked_limit(len(data))
    try:
        if data.startswith(ARROW_FILE):
            file = ipc.open_file(pyarrow.BufferReader(data))
            schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
        else:
            stream = ipc.open_stream(pyarrow.BufferReader(data))
            schema, batches = stream.schema, iter(stream)
        kept, size = [], 0
        for batch in batches:
            size += batch.nbytes
            if size > limit:
                raise ValueError(f"it unpacks to more than {limit:,} bytes")
            kept.append(batch)
        table = pyarrow.Table.from_batches(kept, schema)
        table.validate(full=True)  # offsets that point out of the file would be followed blindly
    except Exception as error:  # what a damaged file takes the library to is its own affair
        raise damaged(who, path, "an Arrow table", error) from None
    return table_of_arrow(table, str(path), who)


def _is_text(kind: Foreign) -> bool:
    types = need("read_table", "pyarrow.types", "arrow")
    view = getattr(types, "is_string_view", lambda _: False)  # younger than the others
    return bool(types.is_string(kind) or types.is_large_string(kind) or view(kind))


def _column(who: str, source: str, name: str, column: Foreign) -> Column:
    types, pyarrow = (need(who, module, "arrow") for module in ("pyarrow.types", "pyarrow"))
    kind = column.type
    if types.is_dictionary(kind):
        if _is_text(kind.value_type):
            return _coded(name, column)
        column, kind = column.cast(kind.value_type), kind.value_type
    if _is_text(kind):
        return _coded(name, column.dictionary_encode())
    missing = np.asarray(column.is_null())
    if types.is_null(kind):
        return Column(name, np.full(len(column), np.nan))
    if types.is_boolean(kind):
        codes = np.asarray(column.fill_null(False)).astype(np.int32)
        codes[missing] = -1
        return Column(name, codes, BOOLEANS)
    if types.is_integer(kind):
        values = np.asarray(column.fill_null(0))
        if len(values) and (int(values.max()) > EXACT or int(values.min()) < -EXACT):
            texts = values.astype(str).astype(object)
            texts[missing] = ""
            return text_column(name, texts.tolist())
        return _with_gaps(name, values.astype(np.float64), missing)
    if types.is_floating(kind) or types.is_decimal(kind):
        return Column(name, np.array(column.cast(pyarrow.float64(), safe=False).to_numpy(), np.float64))
    if types.is_date(kind) or types.is_timestamp(kind):  # a time zone is how to show it: the numbers are in UTC
        microseconds = column.cast(pyarrow.timestamp("us"), safe=False).cast(pyarrow.int64()).fill_null(0)
        return _with_gaps(name, np.asarray(microseconds).astype("datetime64[us]"), missing)
    if types.is_duration(kind):
        spans = np.asarray(column.cast(pyarrow.int64()).fill_null(0)).astype(f"timedelta64[{kind.unit}]")
        spans[missing] = "NaT"
        return column_of(name, spans)
    if types.is_time(kind):
        return column_of_values(name, column.to_pylist())
    raise DTypeError(f"{source}: column {name!r} holds {kind}.", "a table without it")


def _with_gaps(name: str, values: np.ndarray, missing: np.ndarray) -> Column:
    values[missing] = np.array("NaT" if values.dtype.kind == "M" else np.nan, values.dtype)
    return Column(name, values)


def _coded(name: str, column: Foreign) -> Column:
    """Texts that are given by their numbers in a list: each is one object, however often it comes."""
    coded, parts = CodedTexts(), [np.empty(0, np.int32)]
    for chunk in column.chunks:
        known = coded.codes([value or "" for value in chunk.dictionary.to_pylist()])
        places = np.asarray(chunk.indices.fill_null(len(known)))
        parts.append(np.append(known, np.int32(-1))[places])
    return Column(name, np.concatenate(parts), tuple(coded.texts))
