"""CSV and its relatives as tables: read in batches of rows, so that texts live as long as a batch."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from ...core.errors import InputError
from ..formats.files import damaged
from .delimited_columns import GrowingColumn, is_number
from .delimited_files import TextFile
from .table import Table

CELLS = 1 << 18  # fields of a batch
MOST_COLUMNS = 100_000
_SAMPLE = 1000  # rows in which a header is looked for
_DELIMITERS = ",;\t|"
_LINE_END = re.compile(r"\r\n|\r|\n")


def read_delimited(file: TextFile, header: bool | None = None, delimiter: str | None = None) -> Table:
    """The table of a file of lines with a delimiter between columns.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "t.csv")
    >>> _ = path.write_text("age,city\\n31,Rome\\n-,Pisa\\n")
    >>> table = read_delimited(TextFile("demo", path))
    >>> table["age"].values, table["city"].strings().tolist(), table.place(1)
    (array([31., nan]), ['Rome', 'Pisa'], 'line 3')
    """
    form = find_form(file, header, delimiter)
    columns = [GrowingColumn() for _ in form.names]
    lines = []
    for i, batch in enumerate(batches(file, form)):
        lines.append(batch.lines)
        for column, fields in zip(columns, batch.columns(), strict=True):
            column.add(i, fields)
    if not lines:
        raise InputError(f"{file.who}: {file.name!r} has a header and no rows.", "header=False if line 1 holds data")
    # columns that began with numbers and turned out to hold texts: their first rows are wanted as they were written
    unread = [column.unread() for column in columns]
    for i, batch in enumerate(islice(batches(file, form), max(unread))):
        for column, fields, known in zip(columns, batch.columns(), unread, strict=True):
            if i < known:
                column.add_again(i, fields)
    file.check_unchanged()
    found = {name: column.column(name) for name, column in zip(form.names, columns, strict=True)}
    return Table(file.name, found, form.header, np.concatenate(lines))


@dataclass(frozen=True)
class Form:
    """How a file of lines holds its table."""

    names: list[str]
    header: bool
    delimiter: str


@dataclass(frozen=True)
class Batch:
    """Some rows of one length, and the line in which each ends."""

    rows: list[list[str]]
    lines: np.ndarray

    def columns(self) -> list[tuple[str, ...]]:
        """The fields by column."""
        return list(zip(*self.rows, strict=True))


def find_form(file: TextFile, header: bool | None, delimiter: str | None) -> Form:
    """The delimiter and the names of the columns, by looking at the first rows unless they are given."""
    if delimiter is None:
        with file.lines() as lines:
            delimiter = find_delimiter(list(islice(lines, 21)))
    elif not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"\0':
        raise InputError(f"{file.who}: delimiter={delimiter!r}.", "one character, as ',' or ';'")
    first = next(batches(file, Form([], False, delimiter), _SAMPLE), None)
    if first is None:
        raise InputError(f"{file.who}: {file.name!r} is empty.", "a file with rows")
    rows = first.rows
    if header is None:
        header = has_header(rows)
    names = [f"column_{i}" for i in range(len(rows[0]))]
    if header:
        names = [name.strip() or other for name, other in zip(rows[0], names, strict=True)]
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise InputError(f"{file.who}: {file.name!r} names two columns {repeated[0]!r}.", "different names")
    return Form(names, header, delimiter)


def batches(file: TextFile, form: Form, size: int | None = None) -> Iterator[Batch]:
    """The rows after the header that are not empty, checked; `form.names` may be unknown yet."""
    width, skip = len(form.names), form.header
    with file.lines() as lines:
        reader = csv.reader(lines, delimiter=form.delimiter, strict=True, skipinitialspace=True)
        while True:
            before = reader.line_num
            try:
                if not width:
                    first = next(filter(_filled, reader), None)
                    if first is None:
                        return
                    width = _width(file, first)
                    rows = [first]
                    before = reader.line_num - _lines_of(first)
                    rows += islice(reader, (size or max(1, CELLS // width)) - 1)
                else:
                    rows = list(islice(reader, size or max(1, CELLS // width)))
            except csv.Error as error:
                raise _unfinished(file, form, error) from None
            if not rows:
                return
            batch = _checked(file, rows, before, reader.line_num, width)
            if skip and batch.rows:
                batch, skip = Batch(batch.rows[1:], batch.lines[1:]), False
            if batch.rows:
                yield batch


def _checked(file: TextFile, rows: list[list[str]], before: int, after: int, width: int) -> Batch:
    """A batch without its empty rows, all others of one length."""
    if after - before == len(rows):
        lines = np.arange(before + 1, after + 1)
    else:  # some field goes over several lines
        lines = before + np.cumsum([_lines_of(row) for row in rows])
    if set(map(len, rows)) == {width} and all(map(any, rows)):
        return Batch(rows, lines)
    kept = [i for i, row in enumerate(rows) if _filled(row)]
    for i in kept:
        if len(rows[i]) != width:
            raise damaged(
                file.who, file.name, f"{width} columns as in the first line, found {len(rows[i])} in line {lines[i]}"
            )
    return Batch([rows[i] for i in kept], lines[kept])


def _width(file: TextFile, row: Sequence[str]) -> int:
    if len(row) > MOST_COLUMNS:
        raise InputError(
            f"{file.who}: {file.name!r} has {len(row):,} columns in its first line, more than {MOST_COLUMNS:,}.",
            "rows as lines (a transposed table?), or the delimiter: delimiter=';'",
        )
    return len(row)


def _lines_of(row: Sequence[str]) -> int:
    return 1 + sum(len(_LINE_END.findall(field)) for field in row)


def _filled(row: Sequence[str]) -> bool:
    return any(field.strip() for field in row)


def _unfinished(file: TextFile, form: Form, error: csv.Error) -> InputError:
    """The error with the line where the row begins that does not end."""
    begin = 1
    with file.lines() as lines:
        reader = csv.reader(lines, delimiter=form.delimiter, strict=True, skipinitialspace=True)
        try:
            for _ in reader:
                begin = reader.line_num + 1
        except csv.Error:
            pass
    return damaged(file.who, file.name, f"complete rows, line {begin} is not", error)


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
