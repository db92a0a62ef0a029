"""`predict` and `evaluate` with other data: read as those of the training were, or refused with the difference."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.cli import main
from wonderland.recipes import Settings
from wonderland.recipes.series_inputs import continued
from wonderland.storage import load, save
from wonderland.storage.safetensors import metadata


def trained(folder, model, data, *changes):
    settings = Settings.of(model=model, data=str(data), changes=["epochs=1", *changes])
    with wl.using_backend("numpy"):
        recipes.run(settings, folder, progress=False, png=False)
    return folder


def written(path, names, rows, delimiter=","):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows([names, *rows] if names else rows)
    path.write_text(out.getvalue())
    return path


RNG = np.random.default_rng(0)
CITIES = ("Bari", "Pisa", "Rome")
AGES = RNG.integers(18, 80, 60).tolist()
ROWS = [(a, f"{RNG.normal(1500, 300):.1f}", CITIES[i % 3], ("no", "yes")[a > 40]) for i, a in enumerate(AGES)]
NAMES = ("age", "income", "city", "repaid")


@pytest.fixture(scope="module")
def loans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loans")
    data = written(folder / "loans.csv", NAMES, ROWS)
    return trained(folder / "run", "linear", data, "data.target=repaid"), data


def table(path, wanted, rows=ROWS, **settings):
    """Some columns of the rows, in the order wanted."""
    return written(path, wanted, [[row[NAMES.index(name)] for name in wanted] for row in rows], **settings)


def probabilities(run, source, **options):
    """(rows, classes)"""
    found = recipes.predict(run, {"name": str(source) if hasattr(source, "exists") else source, **options})
    return np.stack(list(found.probabilities.values()), -1)


def test_columns_are_taken_by_name(loans, tmp_path):
    run, data = loans
    expected = probabilities(run, data)
    opened = wl.runs.open(run)
    features = opened.schema.encode(wl.data.read_table(data)).features
    np.testing.assert_allclose(expected, np.asarray(wl.softmax(opened.model(wl.asarray(features)))), rtol=1e-6)
    for i, order in enumerate([("city", "income", "age"), ("income", "repaid", "city", "age")]):
        np.testing.assert_array_equal(probabilities(run, table(tmp_path / f"{i}.csv", order)), expected)
    for name, delimiter in (("a.csv", ";"), ("b.tsv", "\t"), ("c.csv", "|")):
        path = table(tmp_path / name, ("city", "age", "income"), delimiter=delimiter)
        np.testing.assert_array_equal(probabilities(run, path), expected)


def test_a_row_alone_is_what_it_is_among_others(loans, tmp_path):
    run, data = loans
    expected = probabilities(run, data)
    for i in (0, 1, 2):  # one row, one category
        path = table(tmp_path / f"{i}.csv", ("age", "income", "city"), ROWS[i : i + 1])
        np.testing.assert_allclose(probabilities(run, path), expected[i : i + 1], rtol=1e-6)
        row = dict(zip(NAMES, ROWS[i], strict=True)) | {"income": float(ROWS[i][1])}
        np.testing.assert_allclose(probabilities(run, row), expected[i : i + 1], rtol=1e-6)


def test_gaps_and_unseen_categories_change_their_own_row_alone(loans, tmp_path, capsys):
    run, data = loans
    rows = [list(row) for row in ROWS]
    rows[3][2], rows[5][1], rows[7][0] = "Oslo", "", ""
    found = probabilities(run, table(tmp_path / "a.csv", NAMES[2::-1], rows))
    same = ~np.isin(np.arange(60), (3, 5, 7))
    np.testing.assert_array_equal(found[same], probabilities(run, data)[same])
    assert np.isfinite(found).all()
    for i in (3, 5, 7):
        alone = probabilities(run, table(tmp_path / "b.csv", NAMES[:3], rows[i : i + 1]))
        np.testing.assert_allclose(alone, found[i : i + 1], rtol=1e-6)
    assert main(["predict", str(run), "--data", str(tmp_path / "a.csv")]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 61
    assert "Oslo" in err
    assert "city" in err


def test_sources_of_every_kind_have_the_same_answers(loans, tmp_path, monkeypatch, capsys):
    run, data = loans
    expected = probabilities(run, data)
    columns = {name: list(values) for name, values in zip(NAMES, zip(*ROWS, strict=True), strict=True)}
    columns["income"] = [float(value) for value in columns["income"]]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "a.json").write_text(json.dumps(rows))
    records = np.array(
        [tuple(row.values()) for row in rows], [("age", "i8"), ("income", "f8"), ("city", "U9"), ("repaid", "U3")]
    )
    sources = [columns, rows, records, wl.data.read_table(columns), tmp_path / "a.jsonl", tmp_path / "a.json"]
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sources.append(pyarrow.table({name: columns[name] for name in NAMES[::-1]}))
    parquet.write_table(sources[-1], tmp_path / "a.parquet")
    sources.append(tmp_path / "a.parquet")
    for source in sources:
        np.testing.assert_allclose(probabilities(run, source), expected, rtol=1e-6)
    for text in (data.read_text(), lines):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["predict", str(run), "--data", "-", "--json", "--probabilities"]) == 0
        found = json.loads(capsys.readouterr().out)
        np.testing.assert_allclose([row["probability of yes"] for row in found], expected[:, 1], rtol=1e-6)


def test_evaluation_measures_all_that_it_is_given(loans, tmp_path):
    run, data = loans
    own = recipes.evaluate(run)
    assert own["examples"] == 12
    everything = recipes.evaluate(run, {"name": str(data)})
    assert everything["examples"] == 60
    said = probabilities(run, data).argmax(1) == [row[3] == "yes" for row in ROWS]
    assert everything["accuracy"] == pytest.approx(said.mean())
    share = np.mean([row[3] == "yes" for row in ROWS])
    assert everything["baseline_accuracy"] == pytest.approx(max(share, 1 - share))
    swapped = recipes.evaluate(run, {"name": str(table(tmp_path / "a.csv", NAMES[::-1]))})
    assert {**swapped, "notes": 0} == {**everything, "notes": 0}
    assert recipes.evaluate(run, part="train")["examples"] > 30
    with pytest.raises(wl.errors.InputError, match="all of which are measured"):
        recipes.evaluate(run, {"name": str(data)}, "train")


def test_evaluation_of_files_without_a_class_and_without_some_targets(loans, tmp_path, capsys):
    run, _ = loans
    only = [row for row in ROWS if row[3] == "yes"]
    found = recipes.evaluate(run, {"name": str(table(tmp_path / "yes.csv", NAMES, only))})
    p = probabilities(run, table(tmp_path / "same.csv", NAMES[:3], only))
    assert found["accuracy"] == pytest.approx((p[:, 1] > p[:, 0]).mean())
    assert found["examples"] == len(only)
    one = recipes.evaluate(run, {"name": str(table(tmp_path / "one.csv", NAMES, only[:1]))})
    assert one["examples"] == 1
    some = [(*row[:3], "" if i % 4 == 0 else row[3]) for i, row in enumerate(ROWS)]
    path = table(tmp_path / "some.csv", NAMES, some)
    found = recipes.evaluate(run, {"name": str(path)})
    assert (found["examples"], found["left_out"]) == (45, 15)
    assert main(["evaluate", str(run), "--data", str(path)]) == 0
    assert "(45 examples, 15 left out without a target)" in capsys.readouterr().out
    assert len(probabilities(run, path)) == 60  # each row has a prediction


@pytest.mark.parametrize(
    "names, row, message",
    [
        (("age", "city"), (40, "Rome"), r"the column 'income' is missing"),
        (("age", "income", "town"), (40, 1500, "Rome"), r"the column 'city' is missing"),
        (("colour",), ("red",), r"the columns 'age', 'income', 'city' are missing"),
        (None, (40, 1500, "Rome"), r"has no header, and the columns are known by their names"),
    ],
)
def test_a_table_that_differs_is_refused_with_the_difference(loans, tmp_path, capsys, names, row, message):
    path = written(tmp_path / "new.csv", names, [row] * 2)
    target = tmp_path / "found.csv"
    assert main(["predict", str(loans[0]), "--data", str(path), "--out", str(target)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(message, err)
    assert not target.exists()


@pytest.mark.parametrize(
    "content", [b"", b"age,income,city\n", b"\x00\x01\x02", b"age,income,city\n1,2\n1,2,3,4\n", b"\xff\xfe\x00"]
)
def test_broken_files_have_no_predictions(loans, tmp_path, capsys, content):
    (tmp_path / "new.csv").write_bytes(content)
    assert main(["predict", str(loans[0]), "--data", str(tmp_path / "new.csv")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "new.csv" in err


def test_columns_that_training_did_not_have_are_said_and_ignored(loans, tmp_path, capsys):
    run, data = loans
    rows = [(*row[:3], i) for i, row in enumerate(ROWS)]
    path = written(tmp_path / "more.csv", ("age", "income", "city", "zip"), rows)
    assert main(["predict", str(run), "--data", str(path), "--out", str(tmp_path / "found.json")]) == 0
    assert "'zip'" in capsys.readouterr().err
    np.testing.assert_array_equal(probabilities(run, path), probabilities(run, data))
    assert len(json.loads((tmp_path / "found.json").read_text())) == 60


def test_an_output_that_cannot_be_written_leaves_nothing(loans, tmp_path, capsys):
    run, data = loans
    (tmp_path / "taken.csv").mkdir()
    for out, message in ((tmp_path / "taken.csv", "taken.csv"), (tmp_path / "a.xlsx", "one of .csv")):
        assert main(["predict", str(run), "--data", str(data), "--out", str(out)]) == 2
        assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken.csv"]
    assert main(["predict", str(run), "--data", str(data), "--out", "a.csv", "--json"]) == 2


@pytest.mark.parametrize(
    "options, message",
    [
        (["encode=codes"], "encode is settled already"),
        (["columns=['age']"], "columns is settled already"),
        (["target=income"], "the target of the run is 'repaid'"),
        (["colour=red"], "colour"),
    ],
)
def test_options_that_would_change_the_meaning_are_refused(loans, tmp_path, capsys, options, message):
    path = written(tmp_path / "new.csv", NAMES[:3], [(40, 1500, "Rome"), (41, "", "Pisa")])
    more = [part for option in options for part in ("--set", option)]
    assert main(["predict", str(loans[0]), "--data", str(path), *more]) == 2
    assert message in capsys.readouterr().err


def test_classes_that_are_new_or_missing(loans, tmp_path):
    path = table(tmp_path / "maybe.csv", NAMES, [(*row[:3], "maybe") for row in ROWS])
    with pytest.raises(wl.errors.InputError, match="maybe"):
        recipes.evaluate(loans[0], {"name": str(path)})
    with pytest.raises(wl.errors.InputError, match="no column 'repaid'"):
        recipes.evaluate(loans[0], {"name": str(table(tmp_path / "none.csv", NAMES[:3]))})
    assert len(probabilities(loans[0], path)) == 60  # which no prediction needs


def test_data_of_the_run_that_have_changed_since(tmp_path):
    data = written(tmp_path / "loans.csv", NAMES, ROWS)
    run = trained(tmp_path / "run", "linear", data, "data.target=repaid")
    expected = recipes.evaluate(run)
    table(data, NAMES[::-1])
    assert recipes.evaluate(run) == expected
    written(data, NAMES[1:], [row[1:] for row in ROWS])
    with pytest.raises(wl.errors.InputError, match="the column 'age' is missing"):
        recipes.evaluate(run)


def test_columns_that_were_left_out_may_come_again(tmp_path):
    data = written(tmp_path / "loans.csv", (*NAMES, "id"), [(*row, f"n{i}") for i, row in enumerate(ROWS)])
    changes = ["data.target=3", "data.columns=[1, 0]", "data.task=classification"]
    run = trained(tmp_path / "run", "linear", data, *changes)
    expected = probabilities(run, data)
    np.testing.assert_array_equal(probabilities(run, table(tmp_path / "a.csv", NAMES[1::-1])), expected)


def test_rows_are_named_by_their_identifier(tmp_path, capsys):
    data = written(tmp_path / "loans.csv", ("loan_id", *NAMES), [(f"n{i}", *row) for i, row in enumerate(ROWS)])
    run = trained(tmp_path / "run", "linear", data, "data.target=repaid")
    assert main(["predict", str(run), "--data", str(data), "--probabilities", "--threshold", "0.3"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["loan_id"] for row in rows] == [f"n{i}" for i in range(60)]
    assert [row["prediction"] for row in rows] == [
        "yes" if float(row["probability of yes"]) >= 0.3 else "no" for row in rows
    ]


def test_tables_without_a_header_are_known_by_the_places_of_their_columns(tmp_path):
    data = written(tmp_path / "loans.csv", None, ROWS)
    run = trained(tmp_path / "run", "linear", data, "data.target=-1")
    few = written(tmp_path / "few.csv", None, [row[:3] for row in ROWS])
    np.testing.assert_array_equal(probabilities(run, few), probabilities(run, data))
    two = written(tmp_path / "two.csv", None, [row[1:3] for row in ROWS])
    with pytest.raises(wl.errors.InputError, match="2 columns and no header"):
        recipes.predict(run, {"name": str(two)})


@pytest.mark.parametrize("task", ["regression", "classification", "auto"])
def test_targets_that_are_numbers_keep_their_kind(tmp_path, task):
    y = [1.0 + i % 2 + (0.5 if task == "regression" and i > 30 else 0.0) for i in range(60)]
    data = written(tmp_path / "a.csv", ("x", "y"), [(i * 0.1, y[i]) for i in range(60)])
    run = trained(tmp_path / "run", "linear", data, "data.target=y", f"data.task={task}")
    whole = written(tmp_path / "b.csv", ("y", "x"), [(int(y[i]), i * 0.1) for i in range(30)])
    found = recipes.evaluate(run, {"name": str(whole)})
    assert ("accuracy" in found) == (task != "regression")
    if task != "regression":
        halves = written(tmp_path / "c.csv", ("y", "x"), [(1.25, i * 0.1) for i in range(30)])
        with pytest.raises(wl.errors.InputError, match=r"1\.25"):
            recipes.evaluate(run, {"name": str(halves)})


def test_prices_come_back_in_their_units(tmp_path, capsys):
    """A target of 400,000 is scaled for training; predictions and measures are in its units."""
    rng = np.random.default_rng(0)
    area = rng.uniform(50, 200, 300)
    price = 2500 * area + 50_000 + rng.normal(0, 1000, 300)
    rows = [(f"{a:.2f}", f"{p:.0f}") for a, p in zip(area, price, strict=True)]
    data = written(tmp_path / "houses.csv", ("area", "price"), rows[:200])
    run = trained(tmp_path / "run", "linear", data, "data.target=price", "epochs=60", "lr=0.05")
    new = written(tmp_path / "new.csv", ("price", "area"), [row[::-1] for row in rows[200:]])
    found = recipes.evaluate(run, {"name": str(new)})
    assert found["examples"] == 100
    assert found["r2"] > 0.99
    assert found["mae"] < 0.1 * found["baseline_mae"]
    said = recipes.predict(run, {"name": str(new)}).values
    assert np.abs(said - price[200:]).mean() == pytest.approx(found["mae"], rel=0.01)


def test_frames_are_tables(loans):
    pandas = pytest.importorskip("pandas")
    run, data = loans
    np.testing.assert_allclose(probabilities(run, pandas.read_csv(data)), probabilities(run, data), rtol=1e-6)


def test_bundled_data_have_names_too(tmp_path):
    run = trained(tmp_path / "run", "linear", "iris")
    iris = wl.data.iris()
    rows = [(*map(str, x), iris.target_names[y]) for x, y in zip(iris.features, iris.targets, strict=True)]
    names = (*iris.feature_names, "kind")
    order = [2, 0, 4, 3, 1]
    path = written(tmp_path / "iris.csv", [names[i] for i in order], [[row[i] for i in order] for row in rows])
    found = recipes.evaluate(run, {"name": str(path), "target": "kind"})
    assert found["examples"] == 150
    expected = probabilities(run, "iris")
    plain = written(tmp_path / "x.csv", names[3::-1], [row[3::-1] for row in rows])
    np.testing.assert_allclose(probabilities(run, plain), expected, rtol=1e-6)
    np.save(tmp_path / "x.npy", iris.features)
    with pytest.raises(wl.errors.InputError, match="the columns have no names"):
        recipes.predict(run, {"name": str(tmp_path / "x.npy")})
    for source in (iris, iris.features, wl.asarray(iris.features), iris.features.tolist()):  # in the program's order
        np.testing.assert_allclose(probabilities(run, source), expected, rtol=1e-6)
    assert recipes.evaluate(run, {"name": (iris.features, iris.targets)})["examples"] == 150


# --- arrays


@pytest.fixture(scope="module")
def pixels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pixels")
    raw = wl.data.digits(raw=True)
    np.save(folder / "x.npy", raw.features[:80])
    np.save(folder / "y.npy", raw.targets[:80])
    return trained(folder / "run", "linear", folder / "x.npy", f"data.targets={folder / 'y.npy'}"), folder


def test_arrays_of_another_shape_or_type_are_refused(pixels, tmp_path):
    run, folder = pixels
    x = np.load(folder / "x.npy")
    assert probabilities(run, folder / "x.npy").shape == (80, 10)
    for array, message in (
        (x.astype(np.float32) / 16, "of type float32, those of the run were uint8"),
        (x.astype(np.int64), "of type int64"),
        (x[:, :4], r"the shape \(4, 8, 1\), the model takes \(8, 8, 1\)"),
        (x[:, :, :, 0].repeat(2, 1), "the model takes"),
        (x[:0], "no examples"),
    ):
        np.save(tmp_path / "a.npy", array)
        with pytest.raises(wl.errors.InputError, match=message):
            recipes.predict(run, {"name": str(tmp_path / "a.npy")})
        np.savez(tmp_path / "a.npz", x=array, y=np.zeros(len(array), np.int64))
        with pytest.raises(wl.errors.InputError, match=message):
            recipes.evaluate(run, {"name": str(tmp_path / "a.npz")})


def test_numbers_that_are_not_finite_have_no_prediction(tmp_path):
    run = trained(tmp_path / "run", "linear", "moons")
    np.save(tmp_path / "a.npy", np.array([[0.0, 1.0], [np.nan, 0.0]]))  # another size of floats is no difference
    with pytest.raises(wl.errors.InputError, match=r"1 numbers .* first in example 1"):
        recipes.predict(run, {"name": str(tmp_path / "a.npy")})
    np.save(tmp_path / "a.npy", np.array([[0.0, 1.0]]))
    assert len(recipes.predict(run, {"name": str(tmp_path / "a.npy")})) == 1


def test_labels_of_the_training_are_not_those_of_other_inputs(pixels, tmp_path):
    run, _ = pixels
    assert recipes.evaluate(run)["examples"] == 16
    np.save(tmp_path / "other.npy", wl.data.digits(raw=True).features[80:160])
    with pytest.raises(wl.errors.InputError, match="there is nothing to predict"):
        recipes.evaluate(run, {"name": str(tmp_path / "other.npy")})


def test_folders_of_images_have_the_training_classes(tmp_path):
    rng = np.random.default_rng(0)
    for kind in ("cat", "dog", "emu"):
        for i in range(8):
            (tmp_path / "all" / kind).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / "all" / kind / f"{i}.npy", rng.integers(0, 255, (8, 8, 1), np.uint8))
    run = trained(tmp_path / "run", "linear", tmp_path / "all", "validation=0.0")
    (tmp_path / "few").mkdir()
    (tmp_path / "all" / "emu").rename(tmp_path / "few" / "emu")
    (tmp_path / "all" / "dog").rename(tmp_path / "few" / "dog")
    found = TASK.prepare({"name": str(tmp_path / "few")}, 0.0, 0, run=recipes.open_run(run).about)
    assert sorted({*found.train[1], *found.test[1]}) == [1, 2]  # the numbers of dog and emu in training
    (tmp_path / "few" / "emu").rename(tmp_path / "few" / "ant")
    with pytest.raises(wl.errors.InputError, match="the class 'ant' is new to the run"):
        recipes.evaluate(run, {"name": str(tmp_path / "few")})


TASK = recipes.evaluating.TASKS["supervised"]


def test_sequences_are_no_grey_images(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 16, 3)).astype(np.float32)
    np.savez(tmp_path / "a.npz", x=x, y=(x.mean((1, 2)) > 0).astype(np.int64))
    run = trained(tmp_path / "run", "conv1d", tmp_path / "a.npz", "model.channels=[4]")
    assert recipes.evaluate(run)["examples"] == 8
    np.save(tmp_path / "x.npy", x[:3])
    assert len(recipes.predict(run, {"name": str(tmp_path / "x.npy")})) == 3


# --- series and texts


def test_series_are_read_by_the_names_of_their_channels(tmp_path):
    t = np.arange(120)
    rows = [(f"{a:.4f}", f"{b:.4f}") for a, b in zip(np.sin(t / 5), np.cos(t / 7), strict=True)]
    data = written(tmp_path / "s.csv", ("a", "b"), rows)
    run = trained(tmp_path / "run", "forecaster", data, "data.context=8", "model.channels=4", "model.dilations=[1,2]")
    assert recipes.evaluate(run)["examples"] < recipes.evaluate(run, {"name": str(data)})["examples"] == 112
    expected = recipes.predict(run, {"name": str(data), "steps": 2}).to_dict()
    assert list(expected) == ["prediction of a", "prediction of b"]
    swapped = written(tmp_path / "t.csv", ("b", "a"), [row[::-1] for row in rows])
    assert recipes.predict(run, {"name": str(swapped), "steps": 2}).to_dict() == expected
    columns = {"b": np.cos(t / 7).round(4), "a": np.sin(t / 5).round(4)}
    assert recipes.predict(run, {"name": columns, "steps": 2}).to_dict() == expected
    other = written(tmp_path / "u.csv", ("a", "c"), rows)
    with pytest.raises(wl.errors.InputError, match="the column 'b' is missing"):
        recipes.predict(run, {"name": str(other), "steps": 2})


def test_forecasts_have_the_dates_that_come_next_and_intervals(tmp_path, capsys):
    days = np.arange("2023-11-01", "2024-03-01", dtype="datetime64[D]").astype(str).tolist()
    values = np.sin(np.arange(len(days)) / 3).round(4).tolist()
    data = written(tmp_path / "s.csv", ("day", "sold"), list(zip(days, values, strict=True))[::-1])  # the newest first
    run = trained(tmp_path / "run", "forecaster", data, "data.context=6", "model.channels=4", "model.dilations=[1,2]")
    asked = ["predict", str(run), "--data", str(data), "--set", "steps=3"]
    assert main(asked) == 0
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["date"] for row in rows] == ["2024-03-01", "2024-03-02", "2024-03-03"]
    assert "order of 'day'" in err
    plain = recipes.predict(run, {"name": {"sold": values}, "steps": 3})
    assert plain.predictions == pytest.approx([float(row["prediction"]) for row in rows], rel=1e-5)
    assert plain.ids is None
    found = recipes.predict(run, {"name": str(data), "steps": 3}, interval=0.5)
    assert (found.lower < found.values).all()
    assert (found.values < found.upper).all()
    with pytest.raises(wl.errors.InputError, match="fewer steps"):
        recipes.predict(run, {"name": str(data), "steps": 30}, interval=0.5)
    twice = written(tmp_path / "t.csv", ("day", "sold"), [(days[0], 1.0)] * 20)
    with pytest.raises(wl.errors.InputError, match="stands in line 2 and in line 3"):
        recipes.predict(run, {"name": str(twice)})
    gap = written(tmp_path / "u.csv", ("day", "sold"), [(day, "" if i == 4 else 1.0) for i, day in enumerate(days)])
    with pytest.raises(wl.errors.InputError, match=r"1 values of 'sold' .* line 6"):
        recipes.predict(run, {"name": str(gap)})


@pytest.mark.parametrize(
    "dates, ahead",
    [
        (["2024-01-01T00:00", "2024-01-01T00:30", "2024-01-01T01:00"], ["2024-01-01T01:30:00", "2024-01-01T02:00:00"]),
        (["2023-12-29", "2024-01-01", "2024-01-02"], ["2024-01-03", "2024-01-04"]),
        (["2024-01-04", "2024-01-05", "2024-01-08", "2024-01-09", "2024-01-12"], ["2024-01-15", "2024-01-16"]),
        (["2023-10-15", "2023-11-15", "2023-12-15"], ["2024-01-15", "2024-02-15"]),
        (["2023-12-31", "2024-01-31", "2024-02-29"], ["2024-03-31", "2024-04-30"]),
        (["2022-07-01", "2022-10-01", "2023-01-01"], ["2023-04-01", "2023-07-01"]),
        (["2020-01-01", "2021-01-01", "2022-01-01"], ["2023-01-01", "2024-01-01"]),
    ],
)
def test_dates_are_continued_by_their_step(dates, ahead):
    assert continued(np.array(dates, "datetime64[us]"), 2)[0] == ahead


def test_a_language_model_keeps_its_tokens(tmp_path):
    (tmp_path / "a.txt").write_text("the cat sat on the mat. " * 40)
    (tmp_path / "b.txt").write_text("mat the on sat cat the. " * 40)
    (tmp_path / "c.txt").write_text("the dog sat on the mat! " * 40)
    small = ["data.context=16", "model.channels=4", "model.dilations=[1]"]
    run = trained(tmp_path / "run", "wavenet", tmp_path / "a.txt", *small)
    assert recipes.evaluate(run)["examples"] < recipes.evaluate(run, {"name": str(tmp_path / "a.txt")})["examples"]
    tokens = [
        recipes.evaluating.TASKS["language"].prepare(
            {"name": str(tmp_path / name), "context": 16}, 0.0, 0, run=recipes.open_run(run).about
        )
        for name in ("a.txt", "b.txt")
    ]
    assert tokens[0].about["tokenizer"] == tokens[1].about["tokenizer"]
    with pytest.raises(wl.errors.InputError, match="'d' is not among its 11 tokens"):
        recipes.evaluate(run, {"name": str(tmp_path / "c.txt")})
    with pytest.raises(wl.errors.InputError, match=r"no option data\.tokenizer"):
        recipes.evaluate(run, {"name": str(tmp_path / "a.txt"), "tokenizer": "bpe"})


def test_texts_keep_their_words_classes_and_columns(tmp_path):
    rows = [(f"a {word} film", verdict) for word, verdict in (("fine", "good"), ("dull", "bad")) for _ in range(15)]
    data = written(tmp_path / "a.csv", ("review", "verdict"), rows)
    changes = ["data.text=review", "data.target=verdict", "data.length=4", "model.channels=4"]
    run = trained(tmp_path / "run", "text_cnn", data, *changes)
    expected = recipes.evaluate(run, {"name": str(data)})
    assert expected["examples"] == 30
    swapped = written(tmp_path / "b.csv", ("verdict", "review"), [row[::-1] for row in rows], ";")
    assert recipes.evaluate(run, {"name": str(swapped)}) == {**expected, "notes": []}
    few = written(tmp_path / "c.csv", ("review",), [(text,) for text, _ in rows])
    for source in (str(few), {"review": [text for text, _ in rows]}, [text for text, _ in rows]):
        found = recipes.predict(run, {"name": source})
        assert found.to_dict() == recipes.predict(run, {"name": str(data)}).to_dict()
    new = written(tmp_path / "d.csv", ("review", "verdict"), [(text, "so-so") for text, _ in rows])
    with pytest.raises(wl.errors.InputError, match="the class 'so-so' is new to the run"):
        recipes.evaluate(run, {"name": str(new)})
    (tmp_path / "e.csv").write_text("review\nfine, really fine\n")  # a comma that should be quoted
    with pytest.raises(wl.errors.InputError, match="found 2 in line 2"):
        recipes.predict(run, {"name": str(tmp_path / "e.csv")})


# --- runs of earlier versions


def test_runs_that_kept_no_schema_say_so(tmp_path):
    run = trained(tmp_path / "run", "linear", "moons")
    recipe = json.loads(metadata(run / "model.safetensors")["recipe"])
    del recipe["about"]["inputs"]
    save(load(run / "model.safetensors"), tmp_path / "model.safetensors", {"recipe": json.dumps(recipe)})
    for ask in (recipes.evaluate, recipes.predict):
        with pytest.raises(wl.errors.FileError, match="of an earlier version"):
            ask(tmp_path, {"name": "moons"})
    assert recipes.evaluate(tmp_path)["accuracy"] == recipes.evaluate(run)["accuracy"]  # its own data, as always
