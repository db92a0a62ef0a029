"""CSV and its relatives as tables: read in blocks, so that the texts of fields live as long as a block."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from ...core.errors import InputError
from ...core.waiting import Waiting
from ..formats.files import damaged
from .delimited_blocks import Batch, last_row_end, split_block
from .delimited_columns import Fields, Growing, GrowingColumn, is_number
from .delimited_files import TextFile, text_lines
from .table import Table

BLOCK = 1 << 21  # bytes that are cut into fields at once
CELLS = 1 << 16  # fields of a batch, where rows are read one by one
MOST_COLUMNS = 100_000
_BYTES_OF_A_COLUMN = 1 << 12  # of a block, at least
_LONGEST_ROW = 1 << 24  # bytes in which a block without a line end is looked for one
_SAMPLE = 1000  # rows in which a header is looked for
_DELIMITERS = ",;\t|"
_LINE_END = re.compile(rb"\r\n|\r|\n")


def read_delimited(
    file: TextFile, header: bool | None = None, delimiter: str | None = None, known: Collection[str] = ()
) -> Table:
    """The table of a file of lines with a delimiter between columns. A first line with a `known` name is a header.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "t.csv")
    >>> _ = path.write_text("age,city\\n31,Rome\\n-,Pisa\\n")
    >>> table = read_delimited(TextFile("demo", path))
    >>> table["age"].values, table["city"].strings().tolist(), table.place(1)
    (array([31., nan]), ['Rome', 'Pisa'], 'line 3')
    """
    form = find_form(file, header, delimiter, known)
    columns, lines = [GrowingColumn() for _ in form.names], Growing(np.int64)
    with Waiting(f"reading {file.name}", file.size, "MB", 10**6) as waiting:
        for batch in batches(file, form, waiting):
            for column, fields in zip(columns, batch.columns, strict=True):
                column.add(lines.size, fields)
            lines.put(lines.size, batch.lines)
    if not lines.size:
        raise no_rows(file)
    # columns that began with numbers and turned out to hold texts: their first rows are wanted as they were written
    row, unread = 0, [column.unread() for column in columns]
    for batch in batches(file, form) if any(unread) else ():
        if row >= max(unread):
            break
        for column, fields, wanted in zip(columns, batch.columns, unread, strict=True):
            if row < wanted:
                column.add_again(row, fields)
        row += len(batch.lines)
    file.check_unchanged()
    found = {name: column.column(name) for name, column in zip(form.names, columns, strict=True)}
    return Table(file.name, found, form.header, lines.whole())


def no_rows(file: TextFile) -> InputError:
    """The error for a header alone."""
    return InputError(f"{file.who}: {file.name!r} has a header and no rows.", "header=False if line 1 holds data")


@dataclass(frozen=True)
class Form:
    """How a file of lines holds its table."""

    names: list[str]
    header: bool
    delimiter: str


def find_form(file: TextFile, header: bool | None, delimiter: str | None, known: Collection[str] = ()) -> Form:
    """The delimiter and the names of the columns, by looking at the first rows unless they are given."""
    if delimiter is None:
        delimiter = find_delimiter(list(islice(text_lines(file.blocks()), 21)))
    elif not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"\0':
        raise InputError(f"{file.who}: delimiter={delimiter!r}.", "one character, as ',' or ';'")
    first = _rows(file, delimiter, file.blocks())
    rows = [row for row, _ in islice(first, 1)]
    if not rows:
        raise InputError(f"{file.who}: {file.name!r} is empty.", "a file with rows")
    width = len(rows[0])
    if width > MOST_COLUMNS:
        raise InputError(
            f"{file.who}: {file.name!r} has {width:,} columns in its first line, more than {MOST_COLUMNS:,}.",
            "rows as lines (a transposed table?), or the delimiter: delimiter=';'",
        )
    rows += [row for row, _ in islice(first, min(_SAMPLE, max(20, CELLS // width)))]
    if header is None:
        header = any(name.strip() in known for name in rows[0]) or has_header(
            [row for row in rows if len(row) == width]
        )
    names = [f"column_{i}" for i in range(width)]
    if header:
        names = [name.strip() or other for name, other in zip(rows[0], names, strict=True)]
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise InputError(f"{file.who}: {file.name!r} names two columns {repeated[0]!r}.", "different names")
    return Form(names, header, delimiter)


def batches(file: TextFile, form: Form, waiting: Waiting | None = None) -> Iterator[Batch]:
    """The rows after the header, all of one length."""
    # each column of a block costs some microseconds: wide tables want larger ones
    size = min(max(BLOCK, _BYTES_OF_A_COLUMN * len(form.names)), 16 * BLOCK)
    blocks, rest, line = file.blocks(size), b"", 0
    blocks = blocks if waiting is None else waiting.counting(blocks)
    if form.header:
        rest, line = _after_header(file, form, blocks)
    mark = form.delimiter.encode("utf-8")
    while len(mark) == 1 and mark != b" ":
        block = next(blocks, b"")
        rest += block
        if not block and rest and not rest.endswith(b"\n"):
            rest += b"\n"
        if not rest:
            return
        end = last_row_end(rest)
        if not end and block and len(rest) < _LONGEST_ROW:
            continue
        batch = split_block(rest[:end], mark[0], len(form.names), line) if end else None
        if batch is None:
            break
        if len(batch.lines):
            yield batch
        line += rest.count(b"\n", 0, end)
        rest = rest[end:]
    yield from _slow_batches(file, form, chain([rest], blocks), line)


def _after_header(file: TextFile, form: Form, blocks: Iterator[bytes]) -> tuple[bytes, int]:
    """What follows the header in the blocks that it took to find it, and the number of its lines."""
    taken: list[bytes] = []

    def kept() -> Iterator[bytes]:
        for block in blocks:
            taken.append(block)
            yield block

    _, line = next(_rows(file, form.delimiter, kept()))
    data = b"".join(taken)
    place = 0
    for _ in range(line):
        found = _LINE_END.search(data, place)
        place = found.end() if found else len(data)
    return data[place:], line


def _slow_batches(file: TextFile, form: Form, blocks: Iterator[bytes], line: int) -> Iterator[Batch]:
    """The same for rows that are read one by one; `line` lines are before them."""
    width = len(form.names)
    rows = _regular(file, width, _rows(file, form.delimiter, blocks, line))
    while some := list(islice(rows, max(1, CELLS // width))):
        columns = [
            Fields([field.encode("utf-8") for field in fields])
            for fields in zip(*(row for row, _ in some), strict=True)
        ]
        yield Batch(columns, np.array([place for _, place in some]))


def rows_of(file: TextFile, form: Form) -> Iterator[tuple[list[str], int]]:
    """The rows after the header, all of one length, each with the line in which it ends."""
    rows = _rows(file, form.delimiter, file.blocks())
    return _regular(file, len(form.names), islice(rows, int(form.header), None))


def _regular(file: TextFile, width: int, rows: Iterator[tuple[list[str], int]]) -> Iterator[tuple[list[str], int]]:
    for row, line in rows:
        if len(row) != width:
            expected = f"{width} columns as in the first line, found {len(row)} in line {line}"
            raise damaged(file.who, file.name, expected)
        yield row, line


def _rows(file: TextFile, delimiter: str, blocks: Iterator[bytes], line: int = 0) -> Iterator[tuple[list[str], int]]:
    """The rows, each with the line in which it ends; blank lines are none.

    A row of delimiters alone is one whose values are all missing: who asks about rows gets as many answers.
    """
    lines = text_lines(blocks)
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    begin = 0
    try:
        for row in reader:
            begin = reader.line_num
            if any(row) or len(row) > 1:
                yield row, line + begin
    except csv.Error as error:
        raise damaged(file.who, file.name, f"complete rows, line {line + begin + 1} is not", error) from None


def find_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that the first lines have in common, the same number of times each.

    >>> find_delimiter(["a;b,c", "1;2"])
    ';'
    """
    lines = [line for line in lines if line.strip()][:20]
    best, score = ",", 0
    for candidate in _DELIMITERS:
        try:
            counts = [len(row) - 1 for row in csv.reader(lines, delimiter=candidate)]
        except csv.Error:  # no table with this one between its columns
            continue
        if counts and min(counts) > score:
            best, score = candidate, min(counts)
    return best


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line names columns: it has no number, and what follows has some or never repeats it.

    >>> has_header([["a", "b"], ["1", "x"]]), has_header([["x", "y"], ["z", "y"]])
    (True, False)
    """
    if any(_looks_numeric(field) for field in rows[0]):
        return False
    if any(_looks_numeric(field) for field in chain.from_iterable(rows[1:20])):
        return True
    # texts only: names of columns do not come back as values
    return all(name not in {row[i] for row in rows[1:]} for i, name in enumerate(rows[0]))


def _looks_numeric(field: str) -> bool:
    return is_number(field) and field.strip().lower() != "nan"
