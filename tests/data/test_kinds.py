"""What columns are, and how their texts are read."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wonderland.data.tables import KINDS, Column, Table, infer_schema, read_table
from wonderland.data.tables.dates import day_or_month_first, parse_date, parse_dates
from wonderland.data.tables.distinct import canonical, distinct
from wonderland.data.tables.kinds import guess_kind
from wonderland.data.tables.numbers import decimal_mark, parse_number, parse_numbers, read_numbers

N = 200
RNG = np.random.default_rng(0)


def column(name: str, values: list) -> Column:
    """A column of numbers if all are, else of texts; None is missing."""
    if all(v is None or isinstance(v, int | float) for v in values):
        return Column(name, np.array([np.nan if v is None else float(v) for v in values]))
    texts = list(dict.fromkeys(v for v in values if v is not None))
    places = {text: i for i, text in enumerate(texts)} | {None: -1}
    return Column(name, np.array([places[v] for v in values], np.int32), tuple(texts))


def some(choices: list, n: int = N) -> list:
    return [choices[int(i)] for i in RNG.integers(0, len(choices), n)]


WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"]
HEX = [f"{int(v):08x}" for v in RNG.integers(0, 2**31, N)]

CASES = [
    ("height", RNG.normal(size=N).tolist(), "number"),
    ("visits", np.floor(RNG.lognormal(2, 1, N)).tolist(), "count"),
    ("age", RNG.integers(18, 80, N).tolist(), "number"),
    ("pclass", some([1, 2, 3]), "number"),
    ("city", some(["Rome", "Pisa", "Milan"]), "category"),
    ("flag", some(["True", "False"]), "category"),
    ("size", some(["S", "M", "XL"]), "ordinal"),
    ("risk", some(["Low", "high", "MEDIUM"]), "ordinal"),
    ("place", some(["1st", "2nd", "3rd"]), "ordinal"),
    ("day", some(["Monday", "Friday", "Sunday"]), "ordinal"),
    ("mark", some(["A", "B+", "C-"]), "ordinal"),
    ("blood", some(["A", "B", "C"]), "category"),  # letters alone have no order
    ("low", some(["low", "high", "red"]), "category"),
    ("when", [f"2020-01-{d:02d}" for d in RNG.integers(1, 29, N)], "date"),
    ("when", [f"{d}.{m}.2021 13:45" for d, m in RNG.integers(1, 13, (N, 2))], "date"),
    ("when", [f"{m} {d}, 2021" for m, d in zip(some(["Jan", "March"]), range(1, 29), strict=False)], "date"),
    ("clock", [f"{h:02d}:{m:02d}" for h, m in RNG.integers(0, 24, (N, 2))], "date"),
    ("timestamp", (1.6e9 + RNG.integers(0, 10**7, N)).tolist(), "date"),
    ("created_ts", (1.6e12 + RNG.integers(0, 10**10, N)).tolist(), "date"),
    ("amount", (1.6e9 + RNG.integers(0, 10**7, N)).tolist(), "number"),  # nothing says that these are seconds
    ("date", [20210100.0 + float(d) for d in RNG.integers(1, 29, N)], "date"),
    ("note", [" ".join(some(WORDS, 7)) for _ in range(N)], "text"),
    ("price", [f"${v:,}" for v in RNG.integers(1000, 90000, N).tolist()], "number"),
    ("rate", [f"{v} %" for v in RNG.integers(0, 100, N).tolist()], "number"),
    ("half", [f"{v:.2f}".replace(".", ",") for v in RNG.normal(size=N)], "number"),
    ("nearly", ["unknown" if i < 5 else f"{v:.3f}" for i, v in enumerate(RNG.normal(size=N))], "number"),
    ("customer_id", RNG.permutation(N).tolist(), "identifier"),
    ("rows", list(range(N)), "identifier"),
    ("t", list(range(N)), "number"),  # a time, in order
    ("code", HEX, "identifier"),
    ("user_id", RNG.integers(0, 90, N).tolist(), "identifier"),
    ("region_id", some([1, 2, 3]), "category"),
    ("same", ["x"] * N, "constant"),
    ("same", [4] * N, "constant"),
    ("nothing", [None] * N, "constant"),
    ("or_nothing", some(["x", None]), "category"),
    ("or_nothing", some([4, None]), "category"),
    ("file", [f"pictures/{i}.JPG" for i in range(N)], "image"),
    ("file", [f"{i}.wav" for i in range(N)], "sound"),
]


@pytest.mark.parametrize("name, values, kind", CASES, ids=[f"{i}-{c[0]}-{c[2]}" for i, c in enumerate(CASES)])
def test_kind(name: str, values: list, kind: str) -> None:
    assert kind in KINDS
    assert guess_kind(column(name, values)).kind == kind
    # the same of half of the rows; but only all rows show that they are numbered
    if name != "rows":
        assert guess_kind(column(name, values), np.arange(0, len(values), 2)).kind == kind


def test_dates_of_an_arrow_are_dates() -> None:
    moments = np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]").astype("datetime64[us]")
    assert guess_kind(Column("x", moments)).kind == "date"
    assert guess_kind(Column("x", moments[:1].repeat(9))).kind == "constant"


def test_identifiers_that_repeat_name_groups() -> None:
    assert guess_kind(column("user_id", RNG.integers(0, 90, N).tolist())).repeats
    assert not guess_kind(column("user_id", RNG.permutation(N).tolist())).repeats


@pytest.mark.parametrize(
    "text, value",
    [
        ("1,234.5", 1234.5),
        ("$5", 5),
        ("-$5.50", -5.5),
        ("$-5", -5),
        ("12 %", 12),
        ("12%", 12),
        ("1.5e3", 1500),
        ("(3)", -3),
        ("($1,200)", -1200),
        ("\u22123", -3),
        ("1 234 567", 1234567),
        ("1'234", 1234),
        ("EUR 7", 7),
        ("7 USD", 7),
        ("12,34", math.nan),
        ("1,23,456", math.nan),
        ("1_000", math.nan),
        ("nan", math.nan),
        ("inf", math.nan),
        ("0x10", math.nan),
        ("٣", 3),
        ("ten", math.nan),
        ("", math.nan),
        ("-", math.nan),
        ("3 4", math.nan),
        ("1.2.3", math.nan),
    ],
)
def test_number_texts(text: str, value: float) -> None:
    assert np.array_equal(parse_number(text), value, equal_nan=True)
    assert np.array_equal(parse_numbers([text])[0], value, equal_nan=True)


@given(st.floats(-1e12, 1e12, allow_nan=False))
def test_numbers_are_read_as_python_writes_them(value: float) -> None:
    assert parse_number(repr(value)) == value
    cents = round(value, 2)
    assert parse_number(f"{cents:,.2f}") == float(f"{cents:.2f}")
    comma = f"{cents:,.2f}".translate(str.maketrans(",.", ".,"))
    assert parse_number(comma, decimal=",") == float(f"{cents:.2f}")


def test_the_decimal_mark_is_that_of_the_column() -> None:
    assert decimal_mark(["1.234,5", "7"]) == ","
    assert decimal_mark(["1,234.5", "7", "1,234"]) == "."
    x = column("x", ["1.500,25", "3,5", "2.000", "many"])
    found = read_numbers(x, ",")
    assert np.array_equal(found.numbers, [1500.25, 3.5, 2000, np.nan], equal_nan=True)
    assert (found.words, found.first) == ({"many": 1}, {"many": 3})


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%d %H:%M",
        "%Y-%m-%d %H:%M:%S.%f",
        "%d %b %Y",
        "%d-%b-%Y",
        "%B %d, %Y",
        "%b %d %Y %I:%M %p",
        "%a, %d %b %Y %H:%M:%S",
        "%A, %d %B %Y",
        "%m/%d/%Y",
        "%m/%d/%y",
        "%m/%d/%Y %H:%M",
    ],
)
def test_dates_are_read_as_datetime_writes_them(form: str) -> None:
    rng = np.random.default_rng(1)
    moments = [datetime.fromtimestamp(int(s), UTC).replace(tzinfo=None) for s in rng.integers(0, 1_700_000_000, 150)]
    texts = [moment.strftime(form) for moment in moments]
    expected = [datetime.strptime(text, form) for text in texts]
    assert parse_dates(texts).astype(datetime).tolist() == expected
    assert [parse_date(text) for text in texts] == expected  # one by one, without the quick way for many


def test_days_may_come_first() -> None:
    texts = [f"{d:02d}/{m:02d}/2020" for d in range(1, 29) for m in range(1, 13)]
    assert day_or_month_first(texts) == (True, True)
    expected = [datetime.strptime(text, "%d/%m/%Y") for text in texts]
    assert parse_dates(texts, day_first=True).astype(datetime).tolist() == expected


@pytest.mark.parametrize("zone, hours", [("Z", 0), ("+02:00", -2), ("-0530", 5.5), ("+01", -1), (" UTC", 0)])
def test_zones_become_utc(zone: str, hours: float) -> None:
    found = parse_dates([f"2024-03-05T10:00:00{zone}"])[0]
    assert found == np.datetime64("2024-03-05T10:00:00") + np.timedelta64(int(hours * 60), "m")


@pytest.mark.parametrize(
    "text",
    ["2024-02-30", "2024-13-01", "13/13/2024", "0000-01-01", "5 Foo 2024", "now", "2024", "", "25:00", "1.2", "May"],
)
def test_no_dates(text: str) -> None:
    assert parse_date(text) is None
    assert np.isnat(parse_dates([text] * 200)).all()
    # one that is none does not spoil the others
    many = parse_dates(["2024-02-28"] * 200 + [text])
    assert np.isnat(many[-1])
    assert not np.isnat(many[:-1]).any()


def test_equal_values_of_different_sources_are_one() -> None:
    assert canonical("7.0") == canonical("007") == canonical(" 7") == "7"
    assert canonical("true") == canonical("True") == "True"
    assert canonical("12345678901234567890") == "12345678901234567890"
    values, codes = distinct(column("x", ["7", "7.0", "a", " ", None, "7"]))
    assert (values, codes.tolist()) == (["7", "a"], [0, 0, 1, -1, -1, 0])


@given(st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=30))
def test_any_texts_have_a_kind(values: list[str | None]) -> None:
    found = column("x", [*values, None, "x"])
    assert guess_kind(found).kind in KINDS


@given(st.lists(st.floats(), min_size=1, max_size=30), st.sampled_from(["x", "id", "date", "timestamp"]))
def test_any_numbers_have_a_kind(values: list[float], name: str) -> None:
    with np.errstate(all="ignore"):
        assert guess_kind(Column(name, np.array(values))).kind in KINDS


def test_words_among_numbers_are_named_in_the_plan() -> None:
    nearly = ["unknown" if i < 5 else f"{v:.3f}" for i, v in enumerate(RNG.normal(size=N))]
    schema = infer_schema(Table("t", {"x": column("x", nearly)}))
    assert "'unknown'" in schema.plan()
    assert schema.feature_names == ("x", "x is missing")


def test_what_is_ambiguous_is_said_in_the_plan() -> None:
    texts = [f"{a}/{b}/2020" for a in range(1, 13) for b in range(1, 13)]
    assert "month first is a guess" in infer_schema(read_table({"x": texts})).plan()
    assert "guess" not in infer_schema(read_table({"x": [*texts, "13/1/2020"]})).plan()
