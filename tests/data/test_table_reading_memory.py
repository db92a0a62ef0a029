"""Tables that are in memory, and files of Arrow, Parquet and JSON: the same values whatever holds them."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
import math
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.data.tables import is_table_source, json_lines, read_table
from wonderland.errors import DTypeError, InputError, ShapeError

UTC = datetime.UTC
CET = datetime.timezone(datetime.timedelta(hours=1))


def values(table: wl.data.Table) -> dict[str, list[Any]]:
    """Numbers as floats, dates as they are, texts as strings; None for what is missing."""
    found = {}
    for name, column in table.columns.items():
        shown = column.strings().tolist() if column.kind == "text" else column.values.tolist()
        found[name] = [None if gone else value for value, gone in zip(shown, column.missing, strict=True)]
    return found


# name: values of Python, what the table has
COLUMNS: dict[str, tuple[list[Any], list[Any]]] = {
    "whole": ([1, 2, None], [1, 2, None]),
    "real": ([1.5, math.nan, None], [1.5, None, None]),
    "both": ([1, 2.5, decimal.Decimal("0.5")], [1, 2.5, 0.5]),
    "large": ([2**53 + 1, 1, None], ["9007199254740993", "1", None]),
    "text": (["x", " y ", "NA"], ["x", "y", None]),
    "open": ([True, None, False], ["True", None, "False"]),
    "mixed": ([1, "x", math.nan], ["1", "x", None]),
    "halves": ([1.0, "x", 2.5], ["1", "x", "2.5"]),
    "truth": ([True, 1, None], ["True", "1", None]),
    "day": (
        [datetime.date(2020, 1, 2), None, datetime.datetime(2020, 1, 2, 3)],
        [datetime.datetime(2020, 1, 2), None, datetime.datetime(2020, 1, 2, 3)],
    ),
    "zoned": (
        [datetime.datetime(2020, 1, 2, 3, tzinfo=CET), datetime.datetime(2020, 1, 2, 3, tzinfo=UTC), None],
        [datetime.datetime(2020, 1, 2, 2), datetime.datetime(2020, 1, 2, 3), None],
    ),
    "took": ([datetime.timedelta(minutes=1), None, datetime.timedelta(milliseconds=5)], [60, None, 0.005]),
    "noon": ([datetime.time(12), None, datetime.time(13)], ["12:00:00", None, "13:00:00"]),
    "name": ([b"abc", uuid.UUID(int=1), Path("x/y")], ["abc", str(uuid.UUID(int=1)), "x/y"]),
    "nothing": ([None, None, math.nan], [None, None, None]),
    "scalars": ([np.float32(0.5), np.int8(3), np.array(2)], [0.5, 3, 2]),
    "moments": ([np.datetime64("2020-01-02"), None, None], [datetime.datetime(2020, 1, 2), None, None]),
    "spans": ([np.timedelta64(2, "m"), None, np.timedelta64("NaT")], [120, None, None]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_objects_of_python(name: str) -> None:
    given, wanted = COLUMNS[name]
    array = np.empty(len(given), object)
    array[:] = given
    for column in (given, tuple(given), array):
        assert values(read_table({name: column})) == {name: wanted}
    rows = [{name: value} for value in given]
    assert values(read_table(rows)) == {name: wanted}
    for value, one in zip(given, wanted, strict=True):
        if name not in ("large", "mixed", "halves", "truth"):  # alone they are what they are
            assert values(read_table({name: value})) == {name: [one]}


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.array([1, 2], np.int8), [1, 2]),
        (np.array([2**53, -(2**53)]), [2.0**53, -(2.0**53)]),
        (np.array([2**63, 1], np.uint64), [str(2**63), "1"]),
        (np.array([0.5, np.nan], np.float16), [0.5, None]),
        (np.array([True, False]), ["True", "False"]),
        (np.array(["x", "?"]), ["x", None]),
        (np.array([b"x", b""]), ["x", None]),
        (np.array(["2020-01-02", "NaT"], "datetime64[D]"), [datetime.datetime(2020, 1, 2), None]),
        (np.array([1500, "NaT"], "timedelta64[ms]"), [1.5, None]),
        (np.ma.array([1, 2], mask=[False, True]), [1, None]),
        (wl.tensor([1.0, 2.0]), [1, 2]),
    ],
)
def test_arrays(array: Any, wanted: list[Any]) -> None:
    assert values(read_table({"a": array})) == {"a": wanted}
    if isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray):
        records = np.empty(2, [("a", array.dtype)])
        records["a"] = array
        assert values(read_table(records)) == {"a": wanted}


def test_rows_and_names() -> None:
    table = read_table([{"a": 1}, {"b": "x", "a": 2}])
    assert (table.names, values(table)) == (("a", "b"), {"a": [1, 2], "b": [None, "x"]})
    assert read_table(table) is table
    assert read_table({1: [2], ("x", "y"): [3]}).names == ("1", "x.y")
    assert len(read_table(np.zeros((), [("a", float)]))) == 1


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({}, "no columns"),
        ([], "no columns"),
        ({"a": []}, "no rows"),
        ({"a": [1], "b": [1, 2]}, "1 values in 'a' and 2 in 'b'"),
        ({"a": 1, "b": [1, 2]}, "one value in 'a' and several in 'b'"),
        ({"a": np.zeros((2, 2))}, "column 'a' has the shape (2, 2)"),
        ({"a": np.zeros(2, complex)}, "column 'a' holds complex128"),
        ({"a": [1, [2]]}, "column 'a' holds a list in row 1"),
        ({"a": [b"\xff"]}, "column 'a' holds bytes that are no text"),
        ({1: [1], "1": [2]}, "two columns '1'"),
        ([{"a": 1}, 3], "row 1 of the list is a int"),
        (np.zeros((2, 2), [("a", float)]), "shape (2, 2)"),
        (np.zeros(2, [("a", float, 3)]), "column 'a' has the shape (2, 3)"),
        (np.zeros(3), "a ndarray is no table"),
        (3, "a int is no table"),
    ],
)
def test_what_is_no_table(source: Any, says: str) -> None:
    with pytest.raises((InputError, DTypeError, ShapeError)) as error:
        read_table(source)
    assert says in str(error.value)
    with pytest.raises(InputError, match="delimiter is for files"):
        read_table({"a": [1]}, delimiter=",")


# --- data frames


class Series:
    """The little of pandas' and polars' series that is asked for."""

    def __init__(self, name: str, values: list[Any], dtype: Any) -> None:
        self.name, self.values, self.dtype = name, values, dtype

    def to_numpy(self) -> np.ndarray:
        return np.array(self.values, self.dtype if isinstance(self.dtype, np.dtype) else None)

    def astype(self, kind: type) -> Series:
        return self

    def tolist(self) -> list[Any]:
        return self.values

    to_list = tolist


class PandasFrame:
    """A frame that says that it comes from pandas."""

    def __init__(self, series: list[Series]) -> None:
        self.columns, self.iloc = [one.name for one in series], self
        self.series = series

    def __getitem__(self, place: tuple[slice, int]) -> Series:
        return self.series[place[1]]


PandasFrame.__module__ = "pandas.core.frame"


class PolarsFrame:
    """A frame that says that it comes from polars."""

    def __init__(self, series: list[Series]) -> None:
        self.columns, self.series = [one.name for one in series], series

    def get_columns(self) -> list[Series]:
        return self.series


PolarsFrame.__module__ = "polars.dataframe.frame"


class PolarsType:
    def is_float(self) -> bool:
        return False


def test_stand_ins_of_frames() -> None:
    pandas = PandasFrame(
        [Series("a", [1, 2], np.dtype("i8")), Series("b", ["x", None], np.dtype("O")), Series("c", [1, None], "Int64")]
    )
    wanted: dict[str, list[Any]] = {"a": [1, 2], "b": ["x", None], "c": [1, None]}
    assert is_table_source(pandas)
    assert values(read_table(pandas)) == wanted
    polars = PolarsFrame([Series(name, column, PolarsType()) for name, column in wanted.items()])
    assert is_table_source(polars)
    assert values(read_table(polars)) == wanted
    with pytest.raises(InputError, match="two columns 'a'"):
        read_table(PandasFrame([Series("a", [1], np.dtype("i8"))] * 2))
    with pytest.raises(DTypeError, match="no table with rows"):
        read_table(type("LazyFrame", (), {"__module__": "polars.lazyframe.frame"})())


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    moments = pd.to_datetime(["2020-01-02 03:00", None, "2020-01-03 00:00"])
    frame = pd.DataFrame(
        {
            "int": [1, 2, 3],
            "Int64": pd.array([1, None, 3], "Int64"),
            "Float64": pd.array([0.5, None, 3], "Float64"),
            "boolean": pd.array([True, None, False], "boolean"),
            "bool": [True, False, True],
            "string": pd.array(["x", None, "y"], "string"),
            "object": ["x", np.nan, 1],
            "category": pd.Categorical(["b", None, "a"], ["a", "b", "c"]),
            "levels": pd.Categorical([3, None, 1]),
            "date": moments,
            "zoned": moments.tz_localize("Europe/Rome"),
            "took": pd.to_timedelta(["1s", None, "2min"]),
            "period": pd.PeriodIndex(["2020-01", "2020-02", "2020-03"], freq="M"),
            "interval": pd.interval_range(0, 3),
            "sparse": pd.array([0, 0, 1], "Sparse[int]"),
        },
        index=[5, 3, 9],
    )
    found = values(read_table(frame))
    day = datetime.datetime
    assert found == {
        "int": [1, 2, 3],
        "Int64": [1, None, 3],
        "Float64": [0.5, None, 3],
        "boolean": ["True", None, "False"],
        "bool": ["True", "False", "True"],
        "string": ["x", None, "y"],
        "object": ["x", None, "1"],
        "category": ["b", None, "a"],
        "levels": [3, None, 1],
        "date": [day(2020, 1, 2, 3), None, day(2020, 1, 3)],
        "zoned": [day(2020, 1, 2, 2), None, day(2020, 1, 2, 23)],
        "took": [1, None, 120],
        "period": [day(2020, 1, 1), day(2020, 2, 1), day(2020, 3, 1)],
        "interval": ["(0, 1]", "(1, 2]", "(2, 3]"],
        "sparse": [0, 0, 1],
    }


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "int": [1, None, 3],
            "float": [0.5, None, math.nan],
            "text": ["x", None, "y"],
            "bool": [True, None, False],
            "date": [datetime.date(2020, 1, 2), None, datetime.date(2020, 1, 3)],
            "took": [datetime.timedelta(seconds=1), None, None],
        }
    ).with_columns(pl.col("text").cast(pl.Categorical).alias("category"))
    day = datetime.datetime
    assert values(read_table(frame)) == {
        "int": [1, None, 3],
        "float": [0.5, None, None],
        "text": ["x", None, "y"],
        "bool": ["True", None, "False"],
        "date": [day(2020, 1, 2), None, day(2020, 1, 3)],
        "took": [1, None, None],
        "category": ["x", None, "y"],
    }
    with pytest.raises(DTypeError, match="collect"):
        read_table(frame.lazy())


# --- Arrow and Parquet


@pytest.fixture
def arrow() -> tuple[Any, dict[str, list[Any]]]:
    pa = pytest.importorskip("pyarrow")
    moment = datetime.datetime(2020, 1, 2, 3)
    table = pa.table(
        {
            "int": pa.array([1, None, 3], pa.int16()),
            "large": pa.array([2**60, None, 3], pa.int64()),
            "float": pa.array([0.5, None, math.nan]),
            "bool": pa.array([True, None, False]),
            "text": pa.array(["x", None, "NA"]),
            "coded": pa.array(["x", None, "y"]).dictionary_encode(),
            "date": pa.array([moment.date(), None, None], pa.date32()),
            "stamp": pa.array([moment, None, None], pa.timestamp("ns")),
            "zoned": pa.array([moment.replace(tzinfo=CET), None, None], pa.timestamp("ms", "Europe/Rome")),
            "cost": pa.array([decimal.Decimal("1.25"), None, None], pa.decimal128(5, 2)),
            "null": pa.nulls(3),
            "time": pa.array([datetime.time(1), None, None]),
        }
    )
    wanted: dict[str, list[Any]] = {
        "int": [1, None, 3],
        "large": [str(2**60), None, "3"],
        "float": [0.5, None, None],
        "bool": ["True", None, "False"],
        "text": ["x", None, None],
        "coded": ["x", None, "y"],
        "date": [datetime.datetime(2020, 1, 2), None, None],
        "stamp": [moment, None, None],
        "zoned": [datetime.datetime(2020, 1, 2, 2), None, None],
        "cost": [1.25, None, None],
        "null": [None] * 3,
        "time": ["01:00:00", None, None],
    }
    return table, wanted


def test_arrow_tables_and_files(arrow: Any, tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table, wanted = arrow
    assert values(read_table(table)) == wanted
    assert values(read_table(table.to_batches()[0])) == wanted
    assert values(read_table(pa.concat_tables([table, table])))["coded"] == wanted["coded"] * 2
    spans = pa.table({"took": pa.array([datetime.timedelta(seconds=2), None])})
    assert values(read_table(spans)) == {"took": [2, None]}
    parquet.write_table(table, tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.feather"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    for name in ("t.parquet", "t.feather", "t.arrow"):
        assert is_table_source(tmp_path / name)
        assert values(read_table(tmp_path / name)) == wanted
        data = (tmp_path / name).read_bytes()
        with pytest.raises(InputError, match="bytes, found"):
            read_table(tmp_path / name, expect_size=3)
        for broken in (data[: len(data) // 2], data[:100], data[:8]):
            (tmp_path / f"b{name}").write_bytes(broken)
            with pytest.raises(InputError, match=r"damaged|is empty"):
                read_table(tmp_path / f"b{name}")
        with pytest.raises(InputError, match="header is for delimited text"):
            read_table(tmp_path / name, header=True)


def test_arrow_tables_that_are_none(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(DTypeError, match="column 'a' holds list"):
        read_table(pa.table({"a": [[1]]}))
    with pytest.raises(InputError, match="is empty"):
        read_table(pa.table({"a": pa.array([], pa.int8())}))
    with pytest.raises(InputError, match="two columns 'a'"):
        read_table(pa.table([[1], [2]], names=["a", "a"]))


def test_an_arrow_file_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": np.zeros(100_000)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema, options=options) as writer,
    ):
        writer.write_table(table)
    monkeypatch.setattr("wonderland.data.tables.arrow.unpacked_limit", lambda size: 100 * size)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_table(tmp_path / "t.arrow")


# --- JSON

ROWS: list[dict[str, Any]] = [
    {"a": 1, "b": "x", "c": True, "d": {"e": 2.5}},
    {"a": None, "b": 3, "late": "z"},
    {"a": 2**60, "c": False, "d": {"e": None}},
]
FOUND = {
    "a": ["1", None, str(2**60)],
    "b": ["x", "3", None],
    "c": ["True", None, "False"],
    "d.e": [2.5, None, None],
    "late": [None, "z", None],
}


@pytest.mark.parametrize("at_once", [1, 2, 1 << 13])
def test_json(tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "ROWS", at_once)
    (tmp_path / "t.jsonl").write_text("\n\n".join(map(json.dumps, ROWS)))
    (tmp_path / "t.json").write_text(json.dumps(ROWS, indent=2))
    (tmp_path / "l.json").write_text("\n".join(map(json.dumps, ROWS)) + "\n")
    (tmp_path / "t.ndjson.gz").write_bytes(gzip.compress((tmp_path / "t.jsonl").read_bytes()))
    for name in ("t.jsonl", "t.json", "l.json", "t.ndjson.gz"):
        assert values(read_table(tmp_path / name)) == FOUND
    assert read_table(tmp_path / "t.jsonl").place(1) == "line 3"
    assert read_table(tmp_path / "t.json").place(1) == "row 1"
    for indent in (None, 1):
        (tmp_path / "c.json").write_text(json.dumps({"a": [1, 2], "b": ["x", None]}, indent=indent))
        assert values(read_table(tmp_path / "c.json")) == {"a": [1, 2], "b": ["x", None]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ('{"a": 1}\n{"a": 2', "an object in line 2"),
        ('{"a": 1}\n[2]\n', "an object in line 2, found a list"),
        ('{"a": 1}\n{"a": [2]}\n', "a list in the field 'a' of line 2"),
        ('{"a": {"b": {"c": 1}}}\n{}\n', "an object in the field 'a.b' of line 1"),
        ('{"a": 1, "a": 2}\n', "a name comes twice"),
        ('{"a": {"b": 1}, "a.b": 2}\n', "two fields 'a.b' in line 1"),
        ('[{"a": 1}, 2]', "found a int in row 1"),
        ("[1", "expected JSON"),
        ("3", "a list of objects, found a int"),
        ("[" * 1000, "expected JSON"),
        ("{}\n{}\n", "is empty"),
    ],
)
def test_bad_json(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "t.jsonl").write_text(content)
    with pytest.raises(InputError) as error:
        read_table(tmp_path / "t.jsonl")
    assert says in str(error.value)
