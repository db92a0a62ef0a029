"""Schemas of tables: encoding beside scikit-learn, what is asked of later tables, splits and findings."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import wonderland as wl
from wonderland.data.tables import (
    Column,
    Schema,
    Table,
    findings,
    infer_schema,
    propose_split,
    read_table,
)
from wonderland.errors import FileError, InputError

N = 300
CITIES = ("Rome", "Pisa", "Milan", "Turin")


def messy(n: int = N, seed: int = 0) -> dict[str, list]:
    """A table with every kind of column and gaps."""
    rng = np.random.default_rng(seed)

    def gaps(values: list, share: float = 0.1) -> list:
        return [None if rng.random() < share else value for value in values]

    def pick(choices: tuple, n: int = n) -> list:
        return [choices[int(i)] for i in rng.integers(0, len(choices), n)]

    days = [str(np.datetime64("2020-01-01") + int(k)) for k in rng.integers(0, 900, n)]
    words = ("good", "bad", "very", "wine", "beer", "not", "nice", "old")
    return {
        "age": gaps(rng.integers(18, 80, n).astype(float).tolist()),
        "height": rng.normal(170, 10, n).tolist(),
        "income": gaps(rng.lognormal(3, 1.5, n).tolist()),
        "visits": np.floor(rng.lognormal(2, 1, n)).tolist(),
        "price": gaps([f"${v:,}" for v in rng.integers(1000, 99999, n).tolist()]),
        "city": gaps(pick(CITIES)),
        "colour": pick(("red", "blue")),
        "zip": [f"z{int(v)}" for v in rng.zipf(1.4, n) % 90],
        "size": gaps(pick(("S", "M", "L"))),
        "month": pick(("Jan", "Feb", "Mar", "Dec")),
        "day": gaps(days),
        "when": [f"{d:02d}/{m:02d}/2021 {h:02d}:30" for d, m, h in rng.integers(1, 13, (n, 3)).tolist()],
        "note": gaps([" ".join(pick(words, 6)) for _ in range(n)]),
        "code": [f"{int(v):08x}" for v in rng.integers(0, 2**31, n)],
        "label": pick(("no", "yes", "maybe")),
        "y": (4e5 + 1e5 * rng.normal(size=n)).tolist(),
    }


@pytest.fixture(scope="module")
def table() -> Table:
    return read_table(messy())


@pytest.fixture(scope="module")
def schema(table: Table) -> Schema:
    return infer_schema(table.without(["label"]), target="y", columns={"zip": "category"})


def group(schema: Schema, name: str) -> slice:
    found = next(g for g in schema.groups if g.column == name)
    return slice(found.start, found.stop)


# --- encoding


def test_kinds_and_groups(schema: Schema) -> None:
    kinds = {column.name: column.kind for column in schema.columns}
    assert kinds == {
        "age": "number", "height": "number", "income": "number", "visits": "count", "price": "number",
        "city": "category", "colour": "category", "zip": "category", "size": "ordinal", "month": "ordinal",
        "day": "date", "when": "date", "note": "text", "code": "identifier", "y": "number",
    }  # fmt: skip
    assert schema["code"].role == "left out"
    assert schema["y"].role == "target"
    # groups follow each other and hold all features
    assert [g.start for g in schema.groups] == [0, *(g.stop for g in schema.groups[:-1])]
    assert schema.groups[-1].stop == len(schema.feature_names) == len(set(schema.feature_names))
    assert {g.column for g in schema.groups} == set(kinds) - {"code", "y"}


def test_features_are_finite_and_moderate(schema: Schema, table: Table) -> None:
    features = schema.encode(table).features
    assert features.dtype == np.float32
    assert features.shape == (N, len(schema.feature_names))
    assert np.isfinite(features).all()
    assert np.abs(features).max() <= 8
    numbers = [group(schema, name).start for name in ("age", "height", "price", "size")]
    numbers += [schema.feature_names.index(name) for name in ("income tamed", "visits log")]
    np.testing.assert_allclose(features[:, numbers].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(features[:, numbers].std(axis=0), 1, atol=1e-3)


@pytest.mark.parametrize("name", ["age", "height"])
def test_numbers_beside_scikit_learn(schema: Schema, table: Table, name: str) -> None:
    oracle = make_pipeline(SimpleImputer(strategy="median", add_indicator=False), StandardScaler())
    x = table[name].values[:, None]
    found = schema.encode(table).features[:, group(schema, name)]
    np.testing.assert_allclose(found[:, 0], oracle.fit_transform(x)[:, 0], atol=1e-5)
    if np.isnan(x).any():
        np.testing.assert_array_equal(found[:, 1], np.isnan(x[:, 0]))
    else:
        assert found.shape[1] == 1


def test_counts_and_their_logarithms_beside_scikit_learn(schema: Schema, table: Table) -> None:
    x = table["visits"].values
    expected = np.clip(StandardScaler().fit_transform(np.stack([x, np.log1p(x)], axis=1)), -8, 8)
    np.testing.assert_allclose(schema.encode(table).features[:, group(schema, "visits")], expected, atol=1e-5)


def test_categories_beside_scikit_learn(schema: Schema, table: Table) -> None:
    values = table["city"].strings()[:, None]
    oracle = OneHotEncoder(categories=[[*sorted(CITIES), ""]], sparse_output=False)
    found = schema.encode(table).features[:, group(schema, "city")]
    np.testing.assert_array_equal(found, oracle.fit_transform(values))
    assert schema.feature_names[group(schema, "city")][-1] == "city is missing"


def test_rare_categories_share_a_place(schema: Schema, table: Table) -> None:
    values = table["zip"].strings().tolist()
    names = schema.feature_names[group(schema, "zip")]
    found = schema.encode(table).features[:, group(schema, "zip")]
    own = [name.removeprefix("zip=") for name in names if "=" in name]
    assert all(values.count(v) >= 3 for v in own)  # a hundredth of the rows
    other = np.array([v not in own for v in values])
    np.testing.assert_array_equal(found[:, names.index("zip is other")], other)
    np.testing.assert_array_equal(found[:, : len(own) + 1].sum(axis=1), 1)
    if "zip frequency" in names:
        counts = np.log1p([values.count(v) for v in values])
        expected = (counts - counts.mean()) / counts.std()
        np.testing.assert_allclose(found[:, -1], expected, atol=1e-5)


def test_dates_beside_datetime(schema: Schema, table: Table) -> None:
    names = schema.feature_names[group(schema, "when")]
    found = schema.encode(table).features[:, group(schema, "when")]
    assert schema["when"].encoding is not None
    assert "month first is a guess" in schema["when"].encoding.describe()
    moments = [wl.data.tables.dates.datetime.strptime(t, "%m/%d/%Y %H:%M") for t in table["when"].strings()]
    hours = np.array([m.hour + m.minute / 60 for m in moments])
    np.testing.assert_allclose(found[:, names.index("when hour sine")], np.sin(hours * np.pi / 12), atol=1e-6)
    weekday = np.array([m.weekday() for m in moments])
    np.testing.assert_allclose(found[:, names.index("when weekday cosine")], np.cos(weekday * 2 * np.pi / 7), atol=1e-6)
    month = np.array([m.month - 1 for m in moments])
    np.testing.assert_allclose(found[:, names.index("when month sine")], np.sin(month * np.pi / 6), atol=1e-6)
    seconds = np.array([m.timestamp() for m in moments])
    expected = (seconds - seconds.mean()) / seconds.std()
    np.testing.assert_allclose(found[:, names.index("when elapsed")], expected, atol=1e-4)


def test_texts_have_length_one_and_named_tokens(schema: Schema, table: Table) -> None:
    names = schema.feature_names[group(schema, "note")]
    found = schema.encode(table).features[:, group(schema, "note")]
    texts, missing = table["note"].strings(), table["note"].missing
    tokens = found[:, : names.index("note length")]
    np.testing.assert_allclose(np.linalg.norm(tokens[~missing], axis=1), 1, atol=1e-5)
    assert not tokens[missing].any()
    np.testing.assert_array_equal(found[:, -1], missing)
    place = names.index("note has wine")
    np.testing.assert_array_equal(found[:, place] > 0, ["wine" in t for t in texts])
    pair = next(name for name in names if name.startswith("note has ") and name.count(" ") == 3)
    words = pair.removeprefix("note has ")
    assert bool(np.all((found[:, names.index(pair)] > 0) == [words in t for t in texts]))


def test_heavy_tails_are_tamed(schema: Schema, table: Table) -> None:
    x = table["income"].values
    encoding = schema["income"].encoding
    assert encoding.shape == "tails"
    z = schema.encode(table).features[:, schema.feature_names.index("income tamed")]
    there = ~np.isnan(x)
    order = np.argsort(x[there])
    assert (np.diff(z[there][order]) >= 0).all()  # the order stays
    assert np.abs(z).max() < 5 < (np.nanmax(x) - np.nanmean(x)) / np.nanstd(x)


@pytest.mark.parametrize("name", [n for n in messy(20) if n not in ("label", "y", "code")])
def test_one_row_alone_is_as_among_others(schema: Schema, table: Table, name: str) -> None:
    """By every way in which a row can come: selected, as a dict of values, in another order of columns."""
    whole = schema.encode(table).features
    values = messy()
    part = group(schema, name)
    for row in (0, 1, 2, 7, N - 1):
        np.testing.assert_array_equal(schema.encode(table.select([row])).features[0, part], whole[row, part])
        alone = read_table({key: [value[row]] for key, value in reversed(values.items()) if key != "y"})
        np.testing.assert_array_equal(schema.encode(alone).features[0, part], whole[row, part])


def test_training_rows_alone_decide(table: Table) -> None:
    rows = np.arange(0, N, 2)
    changed = messy()
    for row in range(1, N, 2):
        changed["age"][row], changed["city"][row], changed["note"][row] = 1e6, "Atlantis", "zebra zebra"
    one = infer_schema(table, target="y", rows=rows)
    other = infer_schema(read_table(changed), target="y", rows=rows)
    assert one == other
    assert one["age"] == infer_schema(table.select(rows), target="y")["age"]
    mask = np.zeros(N, bool)
    mask[rows] = True
    assert infer_schema(table, target="y", rows=mask) == one


@pytest.mark.parametrize("value", [1e300, -1e300, np.inf, -np.inf, 5e-324, 1e154])
def test_wild_numbers_stay_finite(value: float) -> None:
    x = np.array([1.0, 2.0, 3.0, value] * 20)
    schema = infer_schema(read_table({"x": x}))
    assert np.isfinite(schema.encode(read_table({"x": x})).features).all()
    plain = infer_schema(read_table({"x": np.arange(50.0) ** 1.5}))
    assert np.isfinite(plain.encode(read_table({"x": x})).features).all()


# --- what the user says


def test_overrides(table: Table) -> None:
    said = {
        "age": "category",
        "city": "ignore",
        "note": {"kind": "text", "buckets": 16},
        "colour": {"kind": "ordinal", "order": ["red", "blue"]},
        "when": {"kind": "date", "day_first": True},
        "zip": {"kind": "category", "most": 3},
        "code": "text",
    }
    schema = infer_schema(table, target="y", columns=said)
    assert schema["age"].kind == "category"
    assert schema["city"].role == "left out"
    assert schema["city"].reason == "as you say"
    assert schema["when"].encoding.day_first
    assert sum("note has" in name for name in schema.feature_names) == 16
    assert sum(name.startswith("zip=") for name in schema.feature_names) == 3
    red = schema.encode(table).features[:, group(schema, "colour")][:, 0]
    assert (red < 0).tolist() == [c == "red" for c in table["colour"].strings()]


@pytest.mark.parametrize(
    "said, message",
    [
        ({"agee": "number"}, "no column 'agee'.*\n.*'age'"),
        ({"age": "nmber"}, "cannot be 'nmber'"),
        ({"age": {"kind": "number", "order": [1, 2]}}, "no setting 'order'"),
        ({"age": 3}, "cannot be 3"),
        ({"city": "number"}, "'city' cannot be number: row 2 has 'Milan'"),
        ({"city": "date"}, "'city' cannot be date: row 2 has 'Milan'"),
        ({"size": {"kind": "ordinal", "order": ["S", "M"]}}, "'size' cannot be ordinal: row . has 'L'"),
        ({"size": "ordinal"}, "the order of 'size' is not said"),
        ({"size": {"kind": "ordinal", "order": ["S", "S"]}}, "the order of 'size'"),
        ({"zip": {"kind": "category", "most": 0}}, "most of 'zip' is 0"),
        ({"y": "date"}, "the target 'y' cannot be date"),
        ("age", "is no mapping"),
    ],
)
def test_overrides_that_cannot_be(table: Table, said: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        infer_schema(table, target="y", columns=said)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"target": "why"}, "target: .* has no column 'why'"),
        ({"group": "why"}, "group: .* has no column 'why'"),
        ({"time": "why"}, "time: .* has no column 'why'"),
        ({"target": "y", "group": "y"}, "cannot also be the group"),
        ({"target": "y", "task": "ranking"}, "'ranking' is not known"),
        ({"rows": []}, "rows"),
        ({"rows": [N]}, "rows: 300 to 300 for 300 rows"),
        ({"rows": [-1]}, "rows: -1"),
        ({"target": "day"}, "is a date"),
        ({"target": "code"}, "no classes"),
        ({"target": "city", "task": "regression"}, "is no number in row 2: 'Milan'"),
        ({"target": "height", "task": "classification"}, "no classes"),
    ],
)
def test_settings_that_cannot_be(table: Table, settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        infer_schema(table, **settings)


def test_tables_that_say_nothing() -> None:
    with pytest.raises(InputError, match="no rows"):
        infer_schema(Table("t", {"x": Column("x", np.zeros(0))}))
    with pytest.raises(InputError, match=r"no column tells anything: .*everything is missing"):
        infer_schema(read_table({"x": [None] * 9, "z": ["a"] * 9, "y": range(9)}), target="y")


# --- what is asked of later tables


def test_columns_are_found_by_name(schema: Schema, table: Table) -> None:
    names = [name for name in reversed(table.names) if name not in ("y", "label")]
    turned = Table("new", {name: table[name] for name in names})
    found = schema.encode(turned)
    np.testing.assert_array_equal(found.features, schema.encode(table).features)
    assert found.notes == []


def test_missing_columns_are_all_named(schema: Schema, table: Table) -> None:
    with pytest.raises(InputError, match="the columns 'age', 'city' are missing"):
        schema.encode(table.without(["age", "city"]))
    # those that become no features are not needed
    schema.encode(table.without(["code", "y"]))


def test_extra_columns_are_said(schema: Schema, table: Table) -> None:
    assert schema.encode(table).notes == ["'label': a column that training did not have, ignored"]


def changed(table: Table, name: str, values: list) -> Table:
    other = read_table({name: values})[name]
    return Table(table.name, {**table.columns, name: other}, table.header, table.lines)


def test_unseen_categories_are_counted_and_average(schema: Schema, table: Table) -> None:
    base = table.without(["label"])
    values: list = base["colour"].strings().tolist()
    values[3], values[4], values[5] = "green", "green", None
    found = schema.encode(changed(base, "colour", values))
    assert any("2 of 300 rows have unseen categories, 'green' (2)" in note for note in found.notes)
    assert any("1 missing, none in training" in note for note in found.notes)
    part = found.features[:, group(schema, "colour")]
    shares = [table["colour"].strings().tolist().count(c) / N for c in ("blue", "red")]
    np.testing.assert_allclose(part[3:6], [shares] * 3, atol=1e-6)


def test_unseen_categories_are_other_where_others_were_seen(schema: Schema, table: Table) -> None:
    found = schema.encode(changed(table, "zip", ["nowhere"] * N))
    names = schema.feature_names[group(schema, "zip")]
    assert (found.features[:, group(schema, "zip")][:, names.index("zip is other")] == 1).all()


def test_words_where_numbers_belong(schema: Schema, table: Table) -> None:
    base = table.without(["label"])
    values: list = [float(v) for v in base["height"].values]
    few: list = ["tall", *values[1:]]
    found = schema.encode(changed(base, "height", few))
    assert found.notes == [
        "height: 1 value is no number ('tall') and counted as missing",
        f"height: 1 missing, none in training; the median {np.median(values):.4g} is used",
    ]
    with pytest.raises(InputError, match=r"column 'height': 200 of 300 values are no numbers; row 100 has 'tall'"):
        schema.encode(changed(base, "height", [*values[:100], *["tall"] * 200]))
    with pytest.raises(InputError, match=r"column 'day': 1 of 1 values are no dates; row 0 has 'soon'"):
        schema.encode(changed(base.select([0]), "day", ["soon"]))
    # a number where a text was is that text
    assert schema.encode(changed(base, "zip", [7.0] * N)).notes[0].startswith("zip: 300 of 300 rows have unseen")


def test_gaps_where_there_were_none(schema: Schema, table: Table) -> None:
    base = table.without(["label", "y"])
    empty = Table("gaps", {name: Column(name, np.full(3, np.nan)) for name in base.names})
    found = schema.encode(empty)
    assert np.isfinite(found.features).all()
    gapless = [c.name for c in schema.features if not c.missing]
    assert [n.partition(":")[0] for n in found.notes] == gapless
    assert len(schema.encode(base.select(np.zeros(0, int))).features) == 0


def test_flags_by_any_name() -> None:
    truth = [True, False, True, True] * 10
    schema = infer_schema(read_table({"flag": truth, "x": np.arange(40.0) ** 0.5}))
    expected = schema.encode(read_table({"flag": truth, "x": np.zeros(40)})).features
    for other in ([str(t).lower() for t in truth], [float(t) for t in truth]):
        found = schema.encode(read_table({"flag": other, "x": np.zeros(40)}))
        np.testing.assert_array_equal(found.features, expected)
        assert found.notes == []


def nameless(*columns: np.ndarray) -> Table:
    return Table("bare", {f"column_{i}": Column(f"column_{i}", c) for i, c in enumerate(columns)}, header=False)


def test_without_a_header_places_count() -> None:
    rng = np.random.default_rng(0)
    a, y, b = rng.normal(size=(3, 50))
    schema = infer_schema(nameless(a, y, b), target="column_1")
    assert not schema.header
    whole = schema.encode(nameless(a, y, b)).features
    np.testing.assert_array_equal(schema.encode(nameless(a, b)).features, whole)
    np.testing.assert_allclose(schema.encode_target(nameless(a, y, b)), y, rtol=1e-6)
    assert schema.has_target(nameless(a, y, b))
    assert not schema.has_target(nameless(a, b))
    with pytest.raises(InputError, match=r"has 1 columns and no header, where training had 3.*\n.*2 or 3 columns"):
        schema.encode(nameless(a))
    with pytest.raises(InputError, match="has a header"):
        schema.encode(read_table({"a": a, "b": b}))
    named = infer_schema(read_table({"a": a, "y": y}), target="y")
    with pytest.raises(InputError, match="has no header"):
        named.encode(nameless(a))


# --- targets


@pytest.mark.parametrize(
    "values, task, classes",
    [
        (["b", "a", "c", "a"], "auto", ("a", "b", "c")),
        ([True, False, True, True], "auto", ("False", "True")),
        ([10.0, 9.0, 10.0, 9.0], "auto", ("9", "10")),
        ([0, 1, 2, 3] * 10, "auto", ("0", "1", "2", "3")),
        ([0, 1, 2, 3] * 2, "auto", None),
        (list(range(40)), "auto", None),
        ([0.5, 1.5] * 20, "auto", None),
        ([0, 1, 2, 3] * 10, "regression", None),
        ([0.5, 1.5] * 20, "classification", ("0.5", "1.5")),
        (["$1,000", "$2,500.5"] * 20, "auto", None),
        ([f"{i} km" for i in range(40)], "auto", None),
        (["1", "2", "x"] * 5, "auto", ("1", "2", "x")),
    ],
)
def test_targets(values: list, task: str, classes: tuple[str, ...] | None) -> None:
    table = read_table({"x": np.arange(float(len(values))) ** 0.5, "y": values})
    schema = infer_schema(table, target="y", task=task)
    assert schema.target is not None
    assert schema.target.classes == classes
    found = schema.encode_target(table)
    if classes is None:
        numbers = [float(str(v).strip("$km ").replace(",", "")) for v in values]
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, numbers)
        assert schema.target.center == pytest.approx(np.mean(numbers))
        assert schema.target.scale == pytest.approx(np.std(numbers))
    else:
        assert found.dtype == np.int64
        assert [classes[i] for i in found] == [str(int(v)) if v in (9.0, 10.0) else str(v) for v in values]
        assert schema.target.counts == tuple(np.bincount(found, minlength=len(classes)))


def test_classes_are_those_of_all_rows() -> None:
    table = read_table({"x": np.arange(40.0) ** 0.5, "y": ["a", "b"] * 19 + ["c", "c"]})
    schema = infer_schema(table, target="y", rows=np.arange(38))
    assert schema.target is not None
    assert schema.target.classes == ("a", "b", "c")
    assert schema.target.counts == (19, 19, 0)


def test_targets_that_are_wrong() -> None:
    x = np.arange(40.0) ** 0.5
    with pytest.raises(InputError, match="is always 'a'"):
        infer_schema(read_table({"x": x, "y": ["a"] * 40}), target="y")
    with pytest.raises(InputError, match="is always '7'"):
        infer_schema(read_table({"x": x, "y": [7.0] * 40}), target="y")
    with pytest.raises(InputError, match=r"is always '7\.5'"):
        infer_schema(read_table({"x": x, "y": [7.5] * 40}), target="y", task="regression")
    with pytest.raises(InputError, match="is inf in row 3, too large"):
        infer_schema(read_table({"x": x, "y": [*x[:3], np.inf, *x[4:]]}), target="y")
    with pytest.raises(InputError, match="missing in every row"):
        infer_schema(read_table({"x": x, "y": [None] * 40}), target="y")
    table = read_table({"x": x, "y": ["a", "b"] * 20})
    schema = infer_schema(table, target="y")
    with pytest.raises(InputError, match=r"'c' in row 2, a class that training did not know"):
        schema.encode_target(read_table({"y": ["a", "b", "c"]}))
    with pytest.raises(InputError, match=r"missing in 2 of 3 rows \(row 1, row 2\)"):
        schema.encode_target(read_table({"y": ["a", None, None]}))
    numbers = infer_schema(read_table({"x": x, "y": x}), target="y")
    with pytest.raises(InputError, match="'high' in row 1, which is no number"):
        numbers.encode_target(read_table({"y": [1.0, "high"]}))
    with pytest.raises(InputError, match="no target"):
        infer_schema(table).encode_target(table)


def test_an_order_of_classes() -> None:
    table = read_table({"x": np.arange(40.0) ** 0.5, "y": ["low", "high"] * 20})
    order = {"y": {"kind": "ordinal", "order": ["low", "middle", "high"]}}
    assert infer_schema(table, target="y", columns=order).target.classes == ("low", "high")


# --- plans and JSON


def test_the_plan_is_narrow_and_has_a_line_for_each_column(schema: Schema) -> None:
    lines = schema.plan().splitlines()
    assert len(lines) == 1 + len(schema.columns)
    assert max(map(len, lines)) <= 100
    for line, column in zip(lines[1:], schema.columns, strict=True):
        assert line.startswith(column.name)
    assert "left out: almost every value is different" in schema.plan()
    wide = infer_schema(read_table({"x" * 300: np.arange(9.0) ** 0.5, "line\nbreak": ["a\nb", "c", "d"] * 3}))
    assert [len(line) <= 100 for line in wide.plan().splitlines()] == [True] * 3
    assert wide.plan(most=1).splitlines()[-1] == "... and 1 more columns"


def test_json_round_trip(schema: Schema, table: Table) -> None:
    stored = json.loads(json.dumps(schema.to_dict(), allow_nan=False))
    again = Schema.of_dict(stored)
    assert again == schema
    np.testing.assert_array_equal(again.encode(table).features, schema.encode(table).features)
    assert again.plan() == schema.plan()
    assert again.feature_names == schema.feature_names


def _paths(node: object, before: tuple = ()) -> list[tuple]:
    if isinstance(node, dict):
        return [p for key, value in node.items() for p in [(*before, key), *_paths(value, (*before, key))]]
    if isinstance(node, list) and node:
        return [(*before, 0), *_paths(node[0], (*before, 0))]
    return []


def test_damage_is_named(schema: Schema) -> None:
    """Any field that is gone or of another type is an error of ours."""
    stored = json.loads(json.dumps(schema.to_dict()))
    stored["columns"] = [c for c in stored["columns"] if c["name"] in ("age", "city", "size", "day", "note", "y")]
    Schema.of_dict(stored)
    for path in [p for i in range(6) for p in _paths(stored["columns"][i], ("columns", i))] + _paths(
        stored["target"], ("target",)
    ):
        damaged = copy.deepcopy(stored)
        place = damaged
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = {"strange": None}
        with pytest.raises((FileError, InputError)):
            Schema.of_dict(damaged)
    for key in ("version", "header", "columns"):
        with pytest.raises(FileError):
            Schema.of_dict({k: v for k, v in stored.items() if k != key})
    for nonsense in (None, [], "schema", {"version": 2}, {**stored, "target": {"name": "gone"}}):
        with pytest.raises(FileError, match="a stored schema"):
            Schema.of_dict(nonsense)  # type: ignore[arg-type]


@pytest.mark.parametrize("field, value", [("scale", 0.0), ("scale", -1.0), ("scale", float("nan")), ("shape", "cubic")])
def test_numbers_that_cannot_be_are_damage(schema: Schema, field: str, value: object) -> None:
    stored = schema.to_dict()
    stored["columns"][0]["encoding"][field] = value  # type: ignore[index]
    with pytest.raises(FileError, match="column 'age'"):
        Schema.of_dict(stored)


# --- splits and findings


def test_splits() -> None:
    n = 120
    rng = np.random.default_rng(0)
    days = [str(np.datetime64("2020-01-01") + i) for i in range(n)]
    x, y = rng.normal(size=(2, n))
    ordered = read_table({"day": days, "x": x, "y": y})
    found = propose_split(ordered, infer_schema(ordered, target="y"))
    assert (found.kind, found.column) == ("time", "day")
    backwards = ordered.select(np.arange(n)[::-1])
    assert propose_split(backwards, infer_schema(backwards, target="y")).kind == "time"
    shuffled = ordered.select(rng.permutation(n))
    assert propose_split(shuffled, infer_schema(shuffled, target="y")).kind == "random"
    found = propose_split(shuffled, infer_schema(shuffled, target="y", time="day"))
    assert (found.kind, found.column) == ("time", "day")
    classes = read_table({"day": days, "x": x, "y": ["a", "b"] * (n // 2)})
    assert propose_split(classes, infer_schema(classes, target="y")).kind == "random"
    people = read_table({"patient_id": np.arange(n) // 2, "x": x, "y": y})
    found = propose_split(people, infer_schema(people, target="y"))
    assert (found.kind, found.column) == ("group", "patient_id")
    named = infer_schema(classes, target="y", group="x")
    assert propose_split(classes, named).column == "x"
    assert "x" not in named.feature_names  # what a group is called is nothing to learn from


def clean(n: int = 400) -> dict[str, object]:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, n))
    return {"a": a, "b": b, "y": np.where(a + b + rng.normal(size=n) > 0, "yes", "no")}


def found(columns: dict, target: str = "y", **settings: object) -> str:
    table = read_table(columns)
    return "\n".join(findings(table, infer_schema(table, target=target, **settings)))  # type: ignore[arg-type]


def test_a_clean_table_has_no_findings() -> None:
    assert found(clean()) == ""
    assert found({**clean(), "y": clean()["a"] * 2.0 + np.random.default_rng(1).normal(size=400)}) == ""  # type: ignore[operator]


def test_leakage_is_found() -> None:
    table = clean()
    y = np.asarray(table["y"])
    rng = np.random.default_rng(1)
    said = found({**table, "copy": np.where(y == "yes", "approved", "refused")})
    assert "'copy' alone predicts the target (100.0% right by itself)" in said
    assert "data.columns.copy=ignore" in said
    assert "'score'" in found({**table, "score": np.where(y == "yes", 1.0, -1.0) * rng.uniform(0.5, 1.5, 400)})
    # present for one class alone
    assert "'paid_at' is missing or not" in found(
        {**table, "paid_at": np.where(y == "yes", rng.normal(size=400), np.nan)}
    )
    # a strong column is no leak
    assert found({**table, "good": np.where(rng.random(400) < 0.93, y, "yes")}) == ""
    price = np.exp(rng.normal(size=400))
    assert "'euro' is a copy of the target in other units" in found(
        {"x": rng.normal(size=400), "euro": price * 1.1, "y": price}
    )
    assert "'log' alone almost gives" in found({"x": rng.normal(size=400), "log": np.log(price), "y": price})
    assert found({"x": rng.normal(size=400), "near": price + rng.normal(size=400) * 0.3, "y": price}) == ""


def test_duplicates_and_conflicts_are_found() -> None:
    table = {name: np.asarray(values) for name, values in clean().items()}
    twice = {name: np.concatenate([values, values[:8]]) for name, values in table.items()}
    assert "8 rows (2.0%) are copies of others" in found(twice)
    other = {**twice, "y": np.concatenate([table["y"], np.where(table["y"][:8] == "yes", "no", "yes")])}
    assert "8 sets of equal features have different classes: no model gets more than 98.0% right" in found(other)
    # rows of few combinations are equal by chance
    rng = np.random.default_rng(0)
    few = {"a": rng.integers(0, 2, 400), "b": np.array(["x", "z"])[rng.integers(0, 2, 400)], "y": table["y"]}
    assert found(few) == ""


def test_imbalance_gaps_and_useless_columns_are_found() -> None:
    table = clean()
    rng = np.random.default_rng(2)
    rare = np.where(rng.random(400) < 0.09, "yes", "no")
    assert "of the rows are of the class 'no': a model that always answers it has this accuracy" in found(
        {**table, "y": rare}
    )
    lonely = np.asarray(table["y"]).astype(object)
    lonely[5] = "maybe"
    assert "the class 'maybe' of 'y' has 1 example to learn from" in found({**table, "y": lonely.tolist()})
    gaps = np.where(rng.random(400) < 0.7, np.nan, rng.normal(size=400))
    assert "'gaps' is missing in 7" in found({**table, "gaps": gaps})
    assert "'id': left out because they tell rows apart" in found({**table, "id": np.arange(400)})
    assert "'one': left out because they never change" in found({**table, "one": np.ones(400)})
    missing: list = np.asarray(table["y"]).tolist()
    missing[:7] = [None] * 7
    assert "7 rows have no target 'y'" in found({**table, "y": missing})


def test_names_at_the_top() -> None:
    assert wl.data.Schema is Schema
    assert wl.data.infer_schema is infer_schema


# --- anything at all

ODD_TEXTS = ["1", "3.5", "x", "-", " ", "2020-01-01", "3/4/21", "a b c", "\x00", "True", "low", "high", "1e999", "inf",
             "5e-324", "-1e308", "12 mm", "a.png", "²", "٣", "12:30", "25:00"]  # fmt: skip
ODD_NUMBERS = [0.0, 1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 3.5, 1.6e9, 20200101.0]


@pytest.mark.parametrize("seed", range(60))
def test_odd_tables_are_encoded_or_refused(seed: int) -> None:
    """No warning, no other error, only finite features, and a row alone is as among others."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 5, 12, 60]))
    columns = {}
    for name in ("x", "id", "date", "y"):
        if rng.random() < 0.4:
            columns[name] = Column(name, rng.choice(ODD_NUMBERS, n))
        else:
            some = rng.choice(ODD_TEXTS, int(rng.integers(2, 8)), replace=False)
            columns[name] = Column(name, rng.integers(-1, len(some), n).astype(np.int32), tuple(some.tolist()))
    table = Table("odd", columns)
    try:
        schema = infer_schema(table, target=[None, "y"][seed % 2], task=["auto", "regression"][seed % 3 == 0])
    except InputError:
        return
    whole = schema.encode(table).features
    assert np.isfinite(whole).all()
    assert Schema.of_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False))) == schema
    findings(table, schema)
    propose_split(table, schema)
    for row in range(min(n, 5)):
        try:
            alone = schema.encode(table.select([row])).features
        except InputError as error:
            assert "values are no" in str(error)  # noqa: PT017 - words that are few among others are all here
        else:
            np.testing.assert_array_equal(alone[0], whole[row])
