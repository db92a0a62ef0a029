"""Tables from text files: what csv and float find, in blocks of any size; and what is no table."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import struct
import sys
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import wonderland as wl
from wonderland.data.tables import delimited_text, is_table_source, read_table
from wonderland.data.tables.coded_texts import MISSING, MISSING_NUMBERS, clean_text
from wonderland.data.tables.delimited_numbers import parse_decimals
from wonderland.errors import FileError, InputError


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def make(content: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return make


def values(table: wl.data.Table) -> dict[str, list[Any]]:
    """Numbers as floats, texts as strings, None for what is missing."""
    found = {}
    for name, column in table.columns.items():
        shown = column.values.tolist() if column.kind == "number" else column.strings().tolist()
        found[name] = [None if gone else value for value, gone in zip(shown, column.missing, strict=True)]
    return found


# --- agreement with csv and float

LETTERS = st.sampled_from(["1", "0", ".", "-", "e", "a", '"', ",", "\n", "\r\n", " ", "é", "NA", "007", "_", "x;"])
FIELDS = st.one_of(
    st.lists(LETTERS, max_size=4).map("".join),
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.integers(1, 4).flatmap(lambda w: st.lists(st.lists(FIELDS, min_size=w, max_size=w), max_size=10)),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    ending=st.sampled_from(["\n", "\r\n"]),
    block=st.sampled_from([1, 3, 10, 50, 10_000]),
    cells=st.sampled_from([1, 7, 1000]),
)
def test_fields_are_those_of_csv_and_numbers_those_of_float(
    rows: list[list[str]], quoting: Any, ending: str, block: int, cells: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, lineterminator=ending).writerows(rows)
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(text.getvalue().encode())
    reader = csv.reader(io.StringIO(text.getvalue(), newline=""), skipinitialspace=True)
    wanted = [(row, reader.line_num) for row in reader if any(row) or len(row) > 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited_text, "BLOCK", block)
        patch.setattr(delimited_text, "CELLS", cells)
        if not wanted:
            with pytest.raises(InputError, match="is empty"):
                read_table(path, header=False, delimiter=",")
            return
        table = read_table(path, header=False, delimiter=",")
    assert table.lines is not None
    assert table.lines.tolist() == [line for _, line in wanted]
    for i, column in enumerate(table.columns.values()):
        fields = [row[i] for row, _ in wanted]
        if column.kind == "text":
            assert column.strings().tolist() == [clean_text(field) for field in fields]
            continue
        for field, value in zip(fields, column.values.tolist(), strict=True):
            if math.isnan(value):
                assert field.strip().lower() in MISSING_NUMBERS
            else:
                assert struct.pack("d", float(field)) == struct.pack("d", value)


def test_decimals_are_python_s_floats() -> None:
    random = np.random.default_rng(0)
    texts = [f"{x:.{random.integers(0, 12)}f}" for x in random.normal(size=3000) * 10.0 ** random.integers(-5, 8, 3000)]
    texts += ["0", "-0", "+1.5", ".5", "5.", "-.25", "9007199254740992", "900719925474098.5"]
    fields = np.array([text.encode() for text in texts])
    letters = fields.view(np.uint8).reshape(len(fields), -1)
    numbers, understood, codes = parse_decimals(letters, np.array([len(text) for text in texts]))
    assert understood[:3000].mean() > 0.9
    assert understood[3000:].all()
    for text, number in zip(np.array(texts)[understood].tolist(), numbers[understood].tolist(), strict=True):
        assert struct.pack("d", float(text)) == struct.pack("d", number)
    assert not codes.any()
    for text in (b"1.2.3", b"--1", b".", b"-", b"+", b"1e5", b"12a", b"1 2", b"1-2", b"9007199254740993", b"0x1f"):
        letters = np.array([text]).view(np.uint8).reshape(1, -1)
        assert not parse_decimals(letters, np.array([len(text)]))[1].any(), text


# --- what fields mean


@pytest.mark.parametrize("block", [5, 1 << 21])
def test_columns_that_turn_out_to_hold_texts(write: Any, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited_text, "BLOCK", block)
    numbers = "".join(f"{i}.50,{i},{i},-,1\n" for i in range(1, 20))
    table = read_table(write("late,zip,big,dash,none\n" + numbers + "x,007,9007199254740993,-,-\n"))
    assert [table[name].kind for name in table.names] == ["text", "text", "text", "text", "number"]
    assert table["late"].strings().tolist() == [f"{i}.50" for i in range(1, 20)] + ["x"]  # as they were written
    assert table["zip"].strings()[[0, -1]].tolist() == ["1", "007"]
    assert table["big"].strings()[-1] == "9007199254740993"
    assert table["dash"].strings().tolist() == ["-"] * 20
    assert table["none"].missing.tolist() == [False] * 19 + [True]


def test_what_is_missing(write: Any) -> None:
    words = ["NULL", "n/a", "NaN", "None", "?", "#N/A", "<NA>", "\\N", "", "  "]
    table = read_table(write("a,b,c\n" + "".join(f"{word},{word},x\n" for word in words) + "1,-,x\n2,y,-\n3,--,\n"))
    assert all(word.strip().lower() in MISSING for word in words)
    assert values(table)["a"] == [None] * 10 + [1, 2, 3]
    assert values(table)["b"] == [None] * 10 + ["-", "y", "--"]  # among texts a dash may be a name
    assert values(table)["c"] == ["x"] * 11 + ["-", None]
    assert values(read_table(write("a,b\n1,NA\n,NA\n"))) == {"a": [1, None], "b": [None, None]}
    assert read_table(write("a,b\n1,NA\n,NA\n"))["b"].kind == "number"


def test_numbers_that_are_none_and_booleans(write: Any) -> None:
    table = read_table(write("a;b;c;d;e\n1_0;true;$5;1e400;١\n2;FALSE;7%;-inf;2\n"))
    assert values(table)["a"] == ["1_0", "2"]
    assert values(table)["b"] == ["True", "False"]
    assert values(table)["c"] == ["$5", "7%"]
    assert table["d"].values.tolist() == [math.inf, -math.inf]
    assert table["e"].values.tolist() == [1, 2]


def test_names_and_headers(write: Any) -> None:
    assert read_table(write(",b, c \n1,2,3\n")).names == ("column_0", "b", "c")
    table = read_table(write("1,2\n3,4\n"))
    assert (table.names, table.header, len(table), table.place(1)) == (("column_0", "column_1"), False, 2, "line 2")
    assert read_table(write("1,2\n3,4\n"), header=True).names == ("1", "2")
    assert read_table(write('"a\nb",c\n1,2\n')).place(0) == "line 3"
    assert values(read_table(write("a\n1\n\n2\n"))) == {"a": [1, 2]}  # an empty line is no row


def test_delimiters(write: Any) -> None:
    for delimiter in ";\t|:¦ ":
        text = delimiter.join(("a", "b")) + "\n" + delimiter.join(("1", "x,y")) + "\n"
        found = read_table(write(text), delimiter=None if delimiter in ";\t|" else delimiter)
        assert values(found) == {"a": [1], "b": ["x,y"]}, delimiter


def test_a_stray_quote_is_a_letter_and_rows_go_on(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited_text, "BLOCK", 32)
    rows = [f'{i},plain {i},"quoted, {i}"' for i in range(20)]
    rows[11] = '11,5" pipe,"say ""so"""'
    table = read_table(write("n,s,q\n" + "\n".join(rows)))
    assert table["n"].values.tolist() == list(range(20))
    assert table["s"].strings()[[10, 11, 19]].tolist() == ["plain 10", '5" pipe', "plain 19"]
    assert table["q"].strings()[[10, 11, 19]].tolist() == ["quoted, 10", 'say "so"', "quoted, 19"]


# --- encodings

TEXT = "name,größe\nJosé,1\nZoë,2\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_encodings_are_found(write: Any, encoding: str, ending: str) -> None:
    table = read_table(write(TEXT.encode(encoding), "t" + ending))
    assert values(table) == {"name": ["José", "Zoë"], "größe": [1, 2]}
    again = read_table(write(TEXT.encode(encoding), "t" + ending), encoding=encoding)
    assert again.names == table.names


def test_encodings_that_are_wrong(write: Any) -> None:
    mixed = write("a,b\n1,é\n".encode() + "2,é\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"UTF-8 text, found byte 0xe9 in line 3"):
        read_table(mixed)
    with pytest.raises(InputError, match=r"UTF-8 text, found byte 0xe9 in line 2"):
        read_table(write("a,b\n1,é\n".encode("latin-1")), encoding="utf-8")
    with pytest.raises(InputError, match=r"ascii text, found byte 0xc3 in line 2"):
        read_table(write("a,b\n1,é\n"), encoding="ascii")
    with pytest.raises(InputError, match="byte 0xef in line 1"):  # a mark that breaks off
        read_table(write(b"\xef"), encoding="utf-8-sig")
    with pytest.raises(InputError, match="encoding='nonsense'"):
        read_table(write("a,b\n1,2\n"), encoding="nonsense")
    with pytest.raises(InputError, match="encoding='zlib'"):
        read_table(write("a,b\n1,2\n"), encoding="zlib")
    with pytest.raises(InputError, match="byte 0x81 in line 2"):  # of no letter in cp1252 either
        read_table(write(b"a,b\n1,\x81\n"))


# --- what is no table


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("", {}, "is empty"),
        ("\n \n", {}, "is empty"),
        ("a,b\n", {"header": True}, "a header and no rows"),
        ("a,b\n1,2\n3\n", {}, "expected 2 columns as in the first line, found 1 in line 3"),
        ("a,b\n1,2\n\n3,4,5\n", {}, "found 3 in line 4"),
        ("a,b\n1,2\n3\n4\n", {}, "found 1 in line 3"),  # as many fields as whole rows would have
        ("a,a\n1,2\n", {}, "two columns 'a'"),
        ('a,b\n1,2\n3,"4\n5,6\n', {}, "complete rows, line 3 is not"),
        ('a,b\n1,2\n3,"4"x\n5,6\n', {}, "complete rows, line 3 is not"),
        ("a,b\n1,2\n3,\0\n", {}, "text, found a zero byte in line 3"),
        ("a,b\n1," + "x" * 200_000 + "\n", {}, "complete rows, line 2 is not"),
        ("a,b\n1,2\n", {"delimiter": "::"}, "delimiter='::'"),
        ("a,b\n1,2\n", {"delimiter": '"'}, "delimiter='\"'"),
        ("a,b\n1,2\n", {"expect_size": 3}, "3 bytes, found 8"),
        ("a,b\n1,2\n", {"expect_sha256": "00"}, "sha256 00, found"),
        (",".join("ab"[i % 2] + str(i) for i in range(100_001)) + "\n", {}, "100,001 columns in its first line"),
    ],
)
def test_bad_files(write: Any, content: str, options: dict[str, Any], says: str) -> None:
    path = write(content)
    with pytest.raises(InputError) as error:
        read_table(path, **options)
    assert says in str(error.value)


def test_bad_paths(tmp_path: Path, write: Any) -> None:
    with pytest.raises(InputError, match="there is no"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
    path = write(gzip.compress(b"a,b\n1,2\n" * 1000)[:-30], "t.csv")
    with pytest.raises(InputError, match="a whole gzip file"):
        read_table(path)
    if os.geteuid():
        path.chmod(0)
        with pytest.raises(FileError, match="cannot read"):
            read_table(path)


def test_a_file_that_changes_is_refused(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("a,b\n" + "1,2\n" * 100)
    split = delimited_text.split_block

    def change(*arguments: Any) -> Any:
        with path.open("a") as file:
            file.write("3,4\n")
        return split(*arguments)

    monkeypatch.setattr(delimited_text, "split_block", change)
    with pytest.raises(InputError, match="changed while it was read"):
        read_table(path)


def test_what_unpacks_to_too_much_is_refused(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wonderland.data.tables.delimited_files.unpacked_limit", lambda size, least: 1000)
    with pytest.raises(InputError, match="within 1,000 bytes"):
        read_table(write("a,b\n" + "1,2\n" * 1000, "t.csv.gz"))


# --- standard input, and what looks like a table


@pytest.mark.parametrize(
    "content",
    ["a,b\n1,x\n2,y\n", '{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n', '[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]'],
)
def test_standard_input(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    table = read_table("-")
    assert (table.name, values(table)) == ("standard input", {"a": [1, 2], "b": ["x", "y"]})


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    if not os.fork():
        path.write_text("a,b\n" + "1,2\n" * 5 + "x,3\n")
        os._exit(0)
    table = read_table(path)
    assert table["a"].strings().tolist() == ["1"] * 5 + ["x"]  # read again from what was kept
    os.wait()


def test_what_looks_like_a_table(write: Any, tmp_path: Path) -> None:
    for name, content, is_one in (
        ("t.csv", "a\n1\n", True),
        ("t.csv.gz", "a\n1\n", True),
        ("t.txt", "a;b\n1;2\n", True),
        ("t.txt", "A novel, perhaps.\nIt has lines.\n", False),
        ("t.json", '[{"a": 1}]', True),
        ("t.json", "3", False),
        ("t.jsonl.gz", '{"a": 1}', True),
        ("t.png", "\x89PNG", False),
        ("t.bin", "PAR1", True),
    ):
        assert is_table_source(write(content, name)) is is_one, name
    assert is_table_source("-")
    for other in ("iris", tmp_path, 3, [1], [], np.zeros(3), "\0", None):
        assert not is_table_source(other)
    assert is_table_source(np.zeros(3, [("a", float)]))
    assert is_table_source([{"a": 1}])
