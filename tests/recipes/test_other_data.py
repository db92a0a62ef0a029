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


def probabilities(run, path, **options):
    return np.array(recipes.predict(run, {"name": str(path), **options})["probabilities"])


def test_columns_are_taken_by_name(loans, tmp_path):
    run, data = loans
    expected = probabilities(run, data)
    record = wl.data.read_csv(data, target="repaid")
    logits = np.asarray(recipes.open_run(run).model(wl.asarray(record.features)))
    np.testing.assert_allclose(expected, np.asarray(wl.softmax(wl.asarray(logits))), rtol=1e-6)
    for i, order in enumerate([("city", "income", "age"), ("income", "repaid", "city", "age")]):
        np.testing.assert_array_equal(probabilities(run, table(tmp_path / f"{i}.csv", order)), expected)
    for name, delimiter in (("a.csv", ";"), ("b.tsv", "\t"), ("c.csv", "|")):
        path = table(tmp_path / name, ("city", "age", "income"), delimiter=delimiter)
        np.testing.assert_array_equal(probabilities(run, path), expected)


def test_a_file_that_holds_few_categories_is_encoded_by_those_of_the_training(loans, tmp_path):
    run, data = loans
    expected = probabilities(run, data)
    for i in (0, 1, 2):  # one row, one category
        path = table(tmp_path / f"{i}.csv", ("age", "income", "city"), ROWS[i : i + 1])
        np.testing.assert_allclose(probabilities(run, path), expected[i : i + 1], rtol=1e-6)


def test_evaluation_has_the_training_classes(loans, tmp_path):
    run, data = loans
    expected = recipes.evaluate(run)
    assert recipes.evaluate(run, {"name": str(data)}) == expected
    assert recipes.evaluate(run, {"name": str(table(tmp_path / "a.csv", NAMES[::-1]))}) == expected
    only = [row for row in ROWS if row[3] == "yes"]
    found = recipes.evaluate(run, {"name": str(table(tmp_path / "yes.csv", NAMES, only))}, "train")
    p = probabilities(run, table(tmp_path / "same.csv", NAMES[:3], only))
    assert 0 < found["accuracy"] <= 1
    assert (p[:, 1] > p[:, 0]).mean() == pytest.approx(found["accuracy"], abs=0.3)


@pytest.mark.parametrize(
    "names, row, message",
    [
        (("age", "income", "city"), (40, 1500, "Oslo"), r"column 'city' has the new category 'Oslo' in line 2"),
        (("age", "city"), (40, "Rome"), r"the column 'income' is missing"),
        (("age", "income", "city", "zip"), (40, 1500, "Rome", 1), r"the column 'zip' is new"),
        (("age", "income", "town"), (40, 1500, "Rome"), r"the column 'city' is missing"),
        (("age", "income", "city"), ("old", 1500, "Rome"), r"column 'age' has 'old' in line 2, instead of a number"),
        (("age", "income", "city"), (40, "", "Rome"), r"2 missing values: line 2 column 'income'"),
        (("age", "income", "city"), (40, "1500", ""), r"2 missing values: line 2 column 'city'"),
        (None, (40, 1500, "Rome"), r"has no header, and the columns are known by their names"),
    ],
)
def test_a_table_that_differs_is_refused_with_the_difference(loans, tmp_path, capsys, names, row, message):
    path = written(tmp_path / "new.csv", names, [row] * 2)
    assert main(["predict", str(loans[0]), "--data", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(message, err)


@pytest.mark.parametrize(
    "options, message",
    [
        (["encode=codes"], "encode is settled already"),
        (["columns=['age']"], "columns is settled already"),
        (["on_missing=nan"], "NaN or infinite, the first in example 1"),
        (["target=income"], "the column 'income' is missing"),
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
    with pytest.raises(wl.errors.InputError, match="'repaid' has the new category 'maybe' in line 2"):
        recipes.evaluate(loans[0], {"name": str(path)})
    with pytest.raises(wl.errors.InputError, match="no column 'repaid'"):
        recipes.evaluate(loans[0], {"name": str(table(tmp_path / "none.csv", NAMES[:3]))})


def test_data_of_the_run_that_have_changed_since_are_refused(tmp_path):
    data = written(tmp_path / "loans.csv", NAMES, ROWS)
    run = trained(tmp_path / "run", "linear", data, "data.target=repaid")
    expected = recipes.evaluate(run)
    table(data, NAMES[::-1])
    assert recipes.evaluate(run) == expected
    written(data, NAMES, [(*row[:2], "Oslo", row[3]) for row in ROWS])
    with pytest.raises(wl.errors.InputError, match="the new category 'Oslo'"):
        recipes.evaluate(run)


def test_columns_that_were_left_out_may_come_again(tmp_path):
    data = written(tmp_path / "loans.csv", (*NAMES, "id"), [(*row, f"n{i}") for i, row in enumerate(ROWS)])
    changes = ["data.target=3", "data.columns=[1, 0]", "data.task=classification"]
    run = trained(tmp_path / "run", "linear", data, *changes)
    expected = probabilities(run, data)
    np.testing.assert_array_equal(probabilities(run, table(tmp_path / "a.csv", NAMES[1::-1])), expected)
    assert recipes.evaluate(run)["examples"] == recipes.evaluate(run, {"name": str(data)})["examples"]


def test_tables_without_a_header_are_known_by_the_places_of_their_columns(tmp_path):
    data = written(tmp_path / "loans.csv", None, ROWS)
    run = trained(tmp_path / "run", "linear", data, "data.target=-1")
    few = written(tmp_path / "few.csv", None, [row[:3] for row in ROWS])
    np.testing.assert_array_equal(probabilities(run, few), probabilities(run, data))
    for name, names, rows in (("a", NAMES[:3], [row[:3] for row in ROWS]), ("b", None, [row[1:3] for row in ROWS])):
        with pytest.raises(wl.errors.InputError, match=r"has a header|is missing|instead of a number"):
            recipes.predict(run, {"name": str(written(tmp_path / f"{name}.csv", names, rows))})


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
        with pytest.raises(wl.errors.InputError, match=r"new category '1\.25'|has fractions"):
            recipes.evaluate(run, {"name": str(halves)})


def test_parquet_is_read_as_csv_was(loans, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    run, data = loans
    columns = {name: list(values) for name, values in zip(NAMES, zip(*ROWS, strict=True), strict=True)}
    columns["income"] = [float(value) for value in columns["income"]]
    swapped = pa.table({name: columns[name] for name in NAMES[::-1]})
    parquet.write_table(swapped, tmp_path / "a.parquet")
    np.testing.assert_allclose(probabilities(run, tmp_path / "a.parquet"), probabilities(run, data), rtol=1e-6)
    parquet.write_table(swapped.drop(["city"]), tmp_path / "b.parquet")
    with pytest.raises(wl.errors.InputError, match="the column 'city' is missing"):
        recipes.predict(run, {"name": str(tmp_path / "b.parquet")})


def test_bundled_data_have_names_too(tmp_path):
    run = trained(tmp_path / "run", "linear", "iris")
    iris = wl.data.iris()
    rows = [(*map(str, x), iris.target_names[y]) for x, y in zip(iris.features, iris.targets, strict=True)]
    names = (*iris.feature_names, "kind")
    order = [2, 0, 4, 3, 1]
    path = written(tmp_path / "iris.csv", [names[i] for i in order], [[row[i] for i in order] for row in rows])
    found = recipes.evaluate(run, {"name": str(path), "target": "kind"}, "train")
    assert found["examples"] > 100
    expected = probabilities(run, "iris")
    plain = written(tmp_path / "x.csv", names[3::-1], [row[3::-1] for row in rows])
    np.testing.assert_allclose(probabilities(run, plain), expected, rtol=1e-6)
    np.save(tmp_path / "x.npy", iris.features)
    with pytest.raises(wl.errors.InputError, match="the columns have no names"):
        recipes.predict(run, {"name": str(tmp_path / "x.npy")})


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
            recipes.evaluate(run, {"name": str(tmp_path / "a.npz")}, "train")


def test_numbers_that_are_not_finite_have_no_prediction(tmp_path):
    run = trained(tmp_path / "run", "linear", "moons")
    np.save(tmp_path / "a.npy", np.array([[0.0, 1.0], [np.nan, 0.0]]))  # another size of floats is no difference
    with pytest.raises(wl.errors.InputError, match=r"1 numbers .* first in example 1"):
        recipes.predict(run, {"name": str(tmp_path / "a.npy")})
    np.save(tmp_path / "a.npy", np.array([[0.0, 1.0]]))
    assert len(recipes.predict(run, {"name": str(tmp_path / "a.npy")})["predictions"]) == 1


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
    assert len(recipes.predict(run, {"name": str(tmp_path / "x.npy")})["predictions"]) == 3


# --- series and texts


def test_series_are_read_by_the_names_of_their_channels(tmp_path):
    t = np.arange(120)
    rows = [(f"{a:.4f}", f"{b:.4f}") for a, b in zip(np.sin(t / 5), np.cos(t / 7), strict=True)]
    data = written(tmp_path / "s.csv", ("a", "b"), rows)
    run = trained(tmp_path / "run", "forecaster", data, "data.context=8", "model.channels=4", "model.dilations=[1,2]")
    assert recipes.evaluate(run) == recipes.evaluate(run, {"name": str(data)})
    expected = recipes.predict(run, {"name": str(data), "steps": 2})
    swapped = written(tmp_path / "t.csv", ("b", "a"), [row[::-1] for row in rows])
    assert recipes.predict(run, {"name": str(swapped), "steps": 2}) == expected
    other = written(tmp_path / "u.csv", ("a", "c"), rows)
    with pytest.raises(wl.errors.InputError, match="the column 'b' is missing"):
        recipes.predict(run, {"name": str(other), "steps": 2})


def test_a_language_model_keeps_its_tokens(tmp_path):
    (tmp_path / "a.txt").write_text("the cat sat on the mat. " * 40)
    (tmp_path / "b.txt").write_text("mat the on sat cat the. " * 40)
    (tmp_path / "c.txt").write_text("the dog sat on the mat! " * 40)
    small = ["data.context=16", "model.channels=4", "model.dilations=[1]"]
    run = trained(tmp_path / "run", "wavenet", tmp_path / "a.txt", *small)
    assert recipes.evaluate(run) == recipes.evaluate(run, {"name": str(tmp_path / "a.txt")})
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
    expected = recipes.evaluate(run)
    swapped = written(tmp_path / "b.csv", ("verdict", "review"), [row[::-1] for row in rows], ";")
    assert recipes.evaluate(run, {"name": str(swapped)}) == expected
    few = written(tmp_path / "c.csv", ("review",), [(text,) for text, _ in rows])
    found = recipes.predict(run, {"name": str(few)})
    assert found == recipes.predict(run, {"name": str(data)})
    new = written(tmp_path / "d.csv", ("review", "verdict"), [(text, "so-so") for text, _ in rows])
    with pytest.raises(wl.errors.InputError, match="the class 'so-so' is new to the run"):
        recipes.evaluate(run, {"name": str(new)})
    (tmp_path / "e.csv").write_text("review\nfine, really fine\n")  # a comma that should be quoted
    with pytest.raises(wl.errors.InputError, match="found 2 in line 2"):
        recipes.predict(run, {"name": str(tmp_path / "e.csv")})


# --- runs of earlier versions


def test_runs_that_kept_no_schema_say_so(loans, tmp_path):
    path = loans[0] / "model.safetensors"
    recipe = json.loads(metadata(path)["recipe"])
    del recipe["about"]["inputs"]
    save(load(path), tmp_path / "model.safetensors", {"recipe": json.dumps(recipe)})
    for ask in (recipes.evaluate, recipes.predict):
        with pytest.raises(wl.errors.FileError, match="of an earlier version"):
            ask(tmp_path, {"name": str(loans[1])})
    assert recipes.evaluate(tmp_path)["accuracy"] == recipes.evaluate(loans[0])["accuracy"]  # its own data, as always
