"""Tables of JSON: an object on each line, or a list of objects, or an object of columns."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from ...core.errors import InputError
from ...storage.parsing import parse_json
from ..formats.files import damaged
from .coded_texts import CodedTexts
from .delimited_files import TextFile, text_lines
from .frames import column_of_values, table_of_columns
from .table import Column, Table

ROWS = 1 << 13  # objects that live at once
_LONGEST = 1 << 29  # bytes of a document that is parsed as a whole


def read_json_table(file: TextFile) -> Table:
    """The table of a file of JSON. Objects inside a row become columns with a dot, `a.b`; what is missing is missing.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "t.jsonl")
    >>> _ = path.write_text('{"age": 31, "at": {"city": "Rome"}}\\n{"age": null}\\n')
    >>> table = read_json_table(TextFile("demo", path))
    >>> table.names, table["at.city"].strings().tolist(), table.place(1)
    (('age', 'at.city'), ['Rome', ''], 'line 2')
    """
    lines = _is_lines(file)
    parts: dict[str, list[Column]] = {}
    places: list[np.ndarray] = []
    count = 0
    rows = _rows_of_lines(file) if lines else _rows_of_document(file)
    if isinstance(rows, Table):
        return rows
    while some := _take(rows):
        for name in dict.fromkeys(key for row, _ in some for key in row):
            column = column_of_values(name, [row.get(name) for row, _ in some])
            known = parts.setdefault(name, [])
            if (known_rows := sum(map(len, known))) < count:
                known.append(Column(name, np.full(count - known_rows, np.nan)))
            known.append(column)
        count += len(some)
        places.append(np.array([place for _, place in some]))
    file.check_unchanged()
    if not count or not parts:
        raise InputError(f"{file.who}: {file.name!r} is empty.", "a file with rows")
    columns = {}
    for name, known in parts.items():
        gap = Column(name, np.full(count - sum(map(len, known)), np.nan))
        columns[name] = joined([*known, gap])
    return Table(file.name, columns, True, np.concatenate(places) if lines else None)


def joined(parts: list[Column]) -> Column:
    """One column of several, one below the other: of texts, if they are of different kinds.

    >>> joined([column_of_values("a", [1, None]), column_of_values("a", ["x"])]).strings().tolist()
    ['1', '', 'x']
    """
    name = parts[0].name
    kinds = {part.kind for part in parts if not part.missing.all()}
    if kinds <= {"number"}:
        return Column(name, np.concatenate([part.values for part in parts if part.kind == "number" or len(part)]))
    if kinds == {"date"}:
        gaps = (np.full(len(part), "NaT", "datetime64[us]") if part.kind != "date" else part.values for part in parts)
        return Column(name, np.concatenate(list(gaps)))
    coded = CodedTexts()
    values = []
    for part in parts:
        if part.texts is None:
            values.append(coded.codes(part.strings()))
        else:
            values.append(np.append(coded.codes(part.texts), np.int32(-1))[part.values])
    return Column(name, np.concatenate(values), tuple(coded.texts))


def _take(rows: Iterator[tuple[dict[str, object], int]]) -> list[tuple[dict[str, object], int]]:
    return [row for _, row in zip(range(ROWS), rows, strict=False)]


def _is_lines(file: TextFile) -> bool:
    """Whether the first line is an object of its own: not the beginning of a longer one or of a list, nor columns."""
    lines = list(islice(filter(str.strip, text_lines(file.blocks())), 2))
    if not lines or not lines[0].lstrip().startswith("{"):
        return False
    try:
        found = parse_json(lines[0])
    except ValueError:
        return False
    return len(lines) > 1 or not any(isinstance(value, list) for value in found.values())


def _rows_of_lines(file: TextFile) -> Iterator[tuple[dict[str, object], int]]:
    for number, line in enumerate(text_lines(file.blocks()), 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except ValueError as error:
            raise damaged(file.who, file.name, f"an object in line {number}", error) from None
        if not isinstance(value, dict):
            raise damaged(file.who, file.name, f"an object in line {number}, found a {type(value).__name__}")
        yield _flat(file, value, f"line {number}"), number


def _rows_of_document(file: TextFile) -> Iterator[tuple[dict[str, object], int]] | Table:
    content = io.BytesIO()
    for block in file.blocks():
        content.write(block)
        if content.tell() > _LONGEST:
            raise InputError(f"{file.who}: {file.name!r} is one JSON value of many bytes.", "an object on each line")
    if not content.getvalue().strip():
        return iter(())
    try:
        value = parse_json(content.getvalue())
    except ValueError as error:
        raise damaged(file.who, file.name, "JSON", error) from None
    if isinstance(value, Mapping):
        return table_of_columns(_flat(file, value, "the object", lists=True), file.name)
    if not isinstance(value, list):
        raise damaged(file.who, file.name, f"a list of objects, found a {type(value).__name__}")
    return _rows_of_list(file, value)


def _rows_of_list(file: TextFile, rows: list[object]) -> Iterator[tuple[dict[str, object], int]]:
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise damaged(file.who, file.name, f"a list of objects, found a {type(row).__name__} in row {i}")
        yield _flat(file, row, f"row {i}"), i


def _flat(file: TextFile, row: Mapping[str, object], place: str, lists: bool = False) -> dict[str, object]:
    """A row without objects inside; a list has no place in it unless the row is one of columns."""
    found: dict[str, object] = {}
    for name, value in row.items():
        inner = {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        for key, part in inner.items():
            if isinstance(part, dict) or (isinstance(part, list) and not lists):
                kind = "an object" if isinstance(part, dict) else "a list"
                raise InputError(
                    f"{file.who}: {file.name!r} has {kind} in the field {key!r} of {place}.",
                    "numbers, texts, booleans and null, at most one object deep",
                )
            if key in found:
                raise InputError(f"{file.who}: {file.name!r} has two fields {key!r} in {place}.", "different names")
            found[key] = part
    return found
