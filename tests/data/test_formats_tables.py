"""CSV and Parquet: what is a header, a number, a category, missing, a target; and errors that name the line."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.data.formats.parquet_pages import unpacked_pages
from wonderland.errors import DTypeError, InputError

TABLE = "age,city,score,label\n31,Rome,0.5,yes\n54,Pisa,1.5,no\n28,Rome,2.5,yes\n"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def make(text: str, name: str = "t.csv") -> Path:
        path = tmp_path / name
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return make


class TestCsv:
    def test_numbers_are_numpy_s(self, write: Any) -> None:
        array = np.random.default_rng(0).standard_normal((20, 4))
        path = write("\n".join(",".join(repr(float(v)) for v in row) for row in array))
        record = wl.data.read_csv(path, dtype=np.float64)
        np.testing.assert_array_equal(record.features, np.loadtxt(path, delimiter=","))
        assert record.feature_names == ("column_0", "column_1", "column_2", "column_3")
        assert record.targets is None

    @pytest.mark.parametrize("target", ["label", 3, -1])
    def test_target_by_name_or_number(self, write: Any, target: Any) -> None:
        record = wl.data.load(write(TABLE), target=target)
        assert record.targets.tolist() == [1, 0, 1]
        assert record.target_names == ("no", "yes")
        assert record.feature_names == ("age", "city=Pisa", "city=Rome", "score")
        np.testing.assert_array_equal(record.features, [[31, 0, 1, 0.5], [54, 1, 0, 1.5], [28, 0, 1, 2.5]])

    @pytest.mark.parametrize("delimiter", [";", "\t", "|"])
    def test_other_delimiters_quotes_and_gzip(self, write: Any, delimiter: str) -> None:
        text = (
            TABLE.replace(",", delimiter).replace("Rome", '"Ro,me; of"')
            if delimiter == "\t"
            else TABLE.replace(",", delimiter)
        )
        record = wl.data.load(write("\ufeff" + text.replace("\n", "\r\n"), "t.csv.gz"), target="score", encode="codes")
        assert record.feature_names == ("age", "city", "label")
        np.testing.assert_array_equal(record.features, [[31, 1, 1], [54, 0, 0], [28, 1, 1]])
        assert record.targets.tolist() == [0.5, 1.5, 2.5]

    def test_kinds_of_targets(self, write: Any) -> None:
        path = write("x,y\n1,3\n2,7\n3,3\n")
        assert wl.data.read_csv(path, target="y").targets.tolist() == [3, 7, 3]
        classes = wl.data.read_csv(path, target="y", task="classification")
        assert (classes.targets.tolist(), classes.target_names) == ([0, 1, 0], ("3", "7"))
        numbers = wl.data.read_csv(path, target="y", task="regression")
        assert numbers.targets.dtype == np.float32
        text = wl.data.read_csv(path, target="y", categorical=["x"])
        assert text.feature_names == ("x=1", "x=2", "x=3")
        with pytest.raises(DTypeError, match="holds texts"):
            wl.data.read_csv(write(TABLE), target="label", task="regression")

    def test_columns(self, write: Any) -> None:
        path = write(TABLE)
        record = wl.data.read_csv(path, columns=["score", 0], target="label")
        assert record.feature_names == ("age", "score")  # in the order of the file
        assert record.targets.tolist() == [1, 0, 1]
        assert wl.data.read_csv(path, columns=[0]).features.shape == (3, 1)
        many = write("name,y\n" + "".join(f"n{i}_,{i}\n" for i in range(1100)))
        with pytest.raises(InputError, match="column 'name' has 1,100 different texts"):
            wl.data.read_csv(many, target="y")
        assert wl.data.read_csv(many, target="y", encode="codes").features.shape == (1100, 1)
        assert wl.data.read_csv(write("a,b\n1_0,1\n2_1,2\n")).feature_names == ("a=1_0", "a=2_1", "b")

    def test_headers(self, write: Any) -> None:
        assert len(wl.data.read_csv(write("1,2\n3,4\n"))) == 2
        assert len(wl.data.read_csv(write("a,b\n3,4\n"))) == 1
        assert len(wl.data.read_csv(write("a,b\nx,y\n"))) == 1
        assert len(wl.data.read_csv(write("a,b\nx,b\n"))) == 2  # names do not come back as values
        assert len(wl.data.read_csv(write("1,2\n3,4\n"), header=True)) == 1
        assert len(wl.data.read_csv(write("only,one\n"), header=False)) == 1

    def test_missing_values_are_reported_by_line(self, write: Any) -> None:
        path = write("a,b,y\n1,x,0\n\n,x,1\n3,NA,0\n4,z,1\n")
        with pytest.raises(InputError, match=r"2 missing values: line 4 column 'a', line 5 column 'b'"):
            wl.data.read_csv(path, target="y")
        kept = wl.data.read_csv(path, target="y", on_missing="drop")
        np.testing.assert_array_equal(kept.features, [[1, 1, 0], [4, 0, 1]])
        assert kept.targets.tolist() == [0, 1]
        nan = wl.data.read_csv(path, target="y", on_missing="nan")
        np.testing.assert_array_equal(nan.features, [[1, 1, 0], [np.nan, 1, 0], [3, np.nan, np.nan], [4, 0, 1]])
        with pytest.raises(InputError, match="the target is missing in line 4"):
            wl.data.read_csv(path, target="a", on_missing="nan")
        with pytest.raises(InputError, match="no row without missing"):
            wl.data.read_csv(write("a,b\n1,\n,2\n"), on_missing="drop")

    @pytest.mark.parametrize(
        ("text", "options", "says"),
        [
            ("", {}, "is empty"),
            ("a,b\n", {"header": True}, "a header and no rows"),
            ("a,b\n1,2\n3\n", {}, "expected 2 columns as in the first line, found 1 in line 3"),
            ("a,b\n1,2\n3,4,5\n", {}, "found 3 in line 3"),
            ("a,a\n1,2\n", {}, "two columns 'a'"),
            ("a,b\n1,2\n3,4x\n", {}, "column 'b' has numbers, but line 3 holds '4x'"),
            ("a,b\n1,inf\n", {}, "column 'b' is not finite in line 2"),
            ("a,b\n1,2\n", {"target": "c"}, "no column 'c'"),
            ("a,b\n1,2\n", {"target": 2}, "no column 2"),
            ("a\n1\n", {"target": "a"}, "no column is left"),
            ("a,b\n1,2\n", {"delimiter": "::"}, "delimiter='::'"),
            ("a,b\n1,2\n", {"on_missing": "x"}, "on_missing='x'"),
            ("a,b\n1,2\n", {"encode": "x"}, "encode='x'"),
            ("a,b\n1,2\n", {"task": "x"}, "task='x'"),
            ("a,b\n1,2\n", {"categorical": ["z"]}, "no column 'z'"),
            ('a,b\n1,"2\n', {}, "complete rows"),
            ("a,b\n1,\0\n", {}, "a zero byte"),
        ],
    )
    def test_bad_files(self, write: Any, text: str, options: dict[str, Any], says: str) -> None:
        path = write(text)
        with pytest.raises(InputError) as error:
            wl.data.read_csv(path, **options)
        assert says in str(error.value)
        assert "t.csv" in str(error.value) or "delimiter" in says

    def test_other_encodings_are_refused_by_line(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_bytes("a,b\n1,2\n3,é\n".encode("latin-1"))
        with pytest.raises(InputError, match="UTF-8 text, found byte 0xe9 in line 3"):
            wl.data.read_csv(tmp_path / "t.csv")


def test_other_tables_become_the_same_records(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = wl.data.load(write(TABLE), target="label")
    columns = {"age": [31, 54, 28], "city": ["Rome", "Pisa", "Rome"], "score": [0.5, 1.5, 2.5]}
    columns["label"] = ["yes", "no", "yes"]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = write("\n".join(map(json.dumps, rows)), "t.jsonl")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TABLE.encode())))
    for source in (columns, rows, lines, wl.data.read_table(columns), "-"):
        record = wl.data.load(source, target="label")
        np.testing.assert_array_equal(record.features, wanted.features)
        np.testing.assert_array_equal(record.targets, wanted.targets)
        assert record.feature_names == wanted.feature_names
        assert record.target_names == wanted.target_names
    with pytest.raises(DTypeError, match="column 'a' holds dates"):
        wl.data.load({"a": np.array(["2020-01-01"], "datetime64[D]"), "b": [1]})
    with pytest.raises(InputError, match="bytes, found"):
        wl.data.load(lines, expect_size=1)


class TestParquet:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = arrow.table(
            {
                "age": [31, 54, 28],
                "city": arrow.array(["Rome", "Pisa", "Rome"]).dictionary_encode(),
                "score": [0.5, 1.5, 2.5],
                "label": ["yes", "no", "yes"],
            }
        )
        parquet.write_table(table, tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    def test_agrees_with_the_same_csv(self, path: Path, write: Any) -> None:
        for options in ({"target": "label"}, {"target": 0, "encode": "codes"}, {"categorical": ["age"]}):
            ours, other = wl.data.load(path, **options), wl.data.load(write(TABLE), **options)
            np.testing.assert_array_equal(ours.features, other.features)
            np.testing.assert_array_equal(ours.targets, other.targets)
            assert ours.feature_names == other.feature_names
        assert wl.data.read_parquet(path, columns=["age", "score"]).features.shape == (3, 2)
        assert wl.data.read_parquet(path, columns=["age"], target="label").targets.tolist() == [1, 0, 1]
        with pytest.raises(InputError, match="no column 'x'"):
            wl.data.read_parquet(path, columns=["x"])

    def test_bad_files(self, path: Path, tmp_path: Path) -> None:
        import pyarrow as arrow
        import pyarrow.parquet as parquet

        data = path.read_bytes()
        for broken in (data[:-10], data[:40] + data[-8:], b"PAR1PAR1"):
            (tmp_path / "b.parquet").write_bytes(broken)
            with pytest.raises(InputError, match=r"b\.parquet"):
                wl.data.read_parquet(tmp_path / "b.parquet")
        parquet.write_table(arrow.table({"a": [1.0, None], "b": [float("inf"), 1.0]}), tmp_path / "n.parquet")
        with pytest.raises(InputError, match="column 'b' is not finite in row 1"):
            wl.data.read_parquet(tmp_path / "n.parquet")
        with pytest.raises(InputError, match="row 2 column 'a'"):
            wl.data.read_parquet(tmp_path / "n.parquet", columns=["a"])
        parquet.write_table(arrow.table({"a": [[1], [2]]}), tmp_path / "l.parquet")
        with pytest.raises(DTypeError, match="column 'a' holds list"):
            wl.data.read_parquet(tmp_path / "l.parquet")


def test_what_the_pages_of_a_parquet_file_promise() -> None:
    """The footer and the page headers, read here, agree with what pyarrow knows."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": np.arange(500.0), "s": ["x", "yy"] * 250, "n": [None, 1] * 250})
    for packing in ("none", "snappy", "zstd"):
        for version in ("1.0", "2.0"):
            file = io.BytesIO()
            parquet.write_table(
                table, file, compression=packing, data_page_version=version, row_group_size=200, data_page_size=100
            )
            data = file.getvalue()
            about = parquet.ParquetFile(io.BytesIO(data)).metadata
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            with_headers = sum(g.column(i).total_uncompressed_size for g in groups for i in range(g.num_columns))
            assert 0.5 * with_headers < unpacked_pages(data) < with_headers
            with pytest.raises(ValueError, match="footer"):
                unpacked_pages(data[:-8] + b"\xff" * 4 + b"PAR1")
