"""Tables of one's own: planned, split, trained in the user's units, and what is wrong with them said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, recipes
from wonderland.cli import main
from wonderland.errors import FileError, InputError, WonderlandError
from wonderland.recipes import Settings
from wonderland.recipes.choosing import suited_model
from wonderland.recipes.running import usual_batch
from wonderland.recipes.table_parts import cut_rows
from wonderland.recipes.tasks import TASKS
from wonderland.storage import safetensors

RNG = np.random.default_rng(0)
N = 400
AREA, ROOMS, AGE = RNG.uniform(30, 250, N), RNG.integers(1, 8, N), RNG.uniform(0, 100, N)
PRICE = 400_000 + 3000 * (AREA - 140) + 15_000 * ROOMS - 1200 * AGE + RNG.normal(0, 2000, N)
HOUSES = {"area": AREA.round(1), "rooms": ROOMS, "age": AGE.round(1), "price": PRICE.round()}


def written(path, columns):
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join("" if v is None else str(v) for v in row) for row in rows)]
    path.write_text("\n".join(lines))
    return str(path)


def trained(folder, data, *changes, model="linear", **settings):
    chosen = Settings.of(model=model, data=data, changes=list(changes))
    return recipes.run(chosen, folder, progress=False, png=False, **settings)


def prepared(data, validation=0.1, seed=0, run=None, **options):
    return TASKS["supervised"].prepare({"name": data, **options}, validation, seed, run=run)


# --- numbers in the user's units


def test_prices_need_no_settings(tmp_path):
    path = written(tmp_path / "houses.csv", HOUSES)
    done = recipes.run(
        Settings.of(data=path, changes=["data.target=price"]), tmp_path / "run", progress=False, png=False
    )
    assert done.results["r2"] > 0.99
    assert done.results["mae"] < 30_000 < done.results["baseline_mae"]
    assert done.results["loss"] < 0.02  # in units of the deviation, where the mean has 1
    found = done.predict(path).predictions
    assert np.corrcoef(np.ravel(found), PRICE)[0, 1] > 0.99


def test_units_do_not_matter(tmp_path):
    """Arrays, whose targets are numbers of any size: the runs differ by rounding alone."""
    x = RNG.normal(size=(200, 3)).astype(np.float32)
    y = x @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=200)
    losses = []
    for scale, shift in ((1.0, 0.0), (1e-6, 0.0), (1.0, 1e4), (1e9, -4e9)):
        np.savez(tmp_path / f"{scale}{shift}.npz", x=x, y=scale * y + shift)
        with wl.using_backend("numpy"):
            settings = ["epochs=1", "steps=300", "batch_size=16"]
            done = trained(tmp_path / f"{scale}{shift}", str(tmp_path / f"{scale}{shift}.npz"), *settings)
        losses.append(done.results["loss"])
        assert done.results["r2"] > 0.9
    assert losses == pytest.approx([losses[0]] * 4, rel=2e-2)


def test_the_loss_is_the_squared_error_in_units_of_the_training_deviation(tmp_path):
    path = written(tmp_path / "houses.csv", HOUSES)
    with wl.using_backend("numpy"):
        done = trained(tmp_path / "run", path, "data.target=price", "epochs=2")
    data = prepared(path, target="price")
    predicted = np.asarray(wl.train.predict(done.model, data.test[0]), np.float64)
    expected = np.mean((predicted - data.test[1]) ** 2) / np.var(data.train[1].astype(np.float64))
    assert done.results["loss"] == pytest.approx(expected, rel=1e-4)
    assert isinstance(list(done.model)[-1], nn.Restore)


def test_named_losses_of_errors_are_in_the_same_units(tmp_path):
    path = written(tmp_path / "houses.csv", HOUSES)
    with wl.using_backend("numpy"):
        done = trained(tmp_path / "run", path, "data.target=price", "loss=huber_loss", "epochs=30")
    assert done.history["loss"][0] < 1
    assert done.results["r2"] > 0.9


def test_runs_that_did_not_know_units_are_read_as_they_were(tmp_path):
    """A model of an earlier version ends without them; its loss was in the user's units."""
    x = RNG.normal(size=(60, 2)).astype(np.float32)
    np.savez(tmp_path / "a.npz", x=x, y=x.sum(1) + 0.5)
    with wl.using_backend("numpy"):
        trained(tmp_path / "run", str(tmp_path / "a.npz"), "epochs=1")
    path = tmp_path / "run" / "model.safetensors"
    recipe = json.loads(safetensors.metadata(path)["recipe"])
    del recipe["about"]["units"]
    state = {k: np.asarray(v) for k, v in wl.load(path).items() if not k.startswith("2.")}
    wl.save(state, path, {"recipe": json.dumps(recipe)})
    run = recipes.open_run(tmp_path / "run")
    layers = list(run.model)
    assert [type(layer) for layer in layers] == [nn.Standardize, nn.Sequential]
    data = prepared(str(tmp_path / "a.npz"))
    error = np.asarray(run.model(wl.asarray(data.test[0]))) - data.test[1]
    assert run.evaluate()["loss"] == pytest.approx(np.mean(error**2), rel=1e-5)


def test_data_that_a_program_has_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = Settings.of(data=HOUSES, model="linear", changes=["data.target=price", "epochs=3"])
    with wl.using_backend("numpy"):
        done = recipes.run(settings, progress=False, png=False)
        other = recipes.run(
            Settings.of(
                data=tmp_path / written(tmp_path / "h.csv", HOUSES),
                model="linear",
                changes=["data.target=price", "epochs=3"],
            ),
            progress=False,
            png=False,
        )
        assert done.folder == "runs/data-linear"
        assert done.results == other.results
        assert recipes.open_run(done.folder).predict(HOUSES).predictions == done.predict(HOUSES).predictions
        changed = {**HOUSES, "area": HOUSES["area"] + 1}
        with pytest.raises(InputError, match="a run with other settings"):
            recipes.run(
                Settings.of(data=changed, model="linear", changes=["data.target=price", "epochs=3"]),
                progress=False,
                png=False,
            )
    with pytest.raises(WonderlandError, match="in memory"):
        recipes.evaluate(done.folder)


# --- messy tables

CITIES = ("Bari", "Pisa", "Rome")
AGES = RNG.integers(18, 80, 150)
DAYS = np.datetime64("2022-01-01") + RNG.permutation(150)
MESSY = {
    "id": [f"C{i:04d}" for i in range(150)],
    "age": [None if i % 9 == 0 else int(a) for i, a in enumerate(AGES)],
    "city": [None if i % 11 == 3 else CITIES[i % 3] for i in range(150)],
    "joined": [str(day) for day in DAYS],
    "repaid": [None if i % 50 == 7 else ("no", "yes")[int(a > 40)] for i, a in enumerate(AGES)],
}


@pytest.fixture(scope="module")
def loans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loans")
    path = written(folder / "loans.csv", MESSY)
    with wl.using_backend("numpy"):
        return trained(folder / "run", path, "data.target=repaid", "epochs=30", "lr=0.05"), path


def chances(run, source):
    found = run.predict(source)
    return np.stack(list(found.probabilities.values()), -1), found.notes


def test_gaps_dates_and_identifiers(loans):
    run, _ = loans
    assert run.results["accuracy"] >= 0.75 > run.results["baseline_accuracy"]
    schema = run.schema
    kinds = {column.name: column.kind for column in schema.columns}
    assert kinds == {"id": "identifier", "age": "number", "city": "category", "joined": "date", "repaid": "category"}
    assert schema.target.classes == ("no", "yes")
    assert len(schema.feature_names) < 20  # and no column for each day
    kept = json.loads(Path(run.folder, "schema.json").read_text())
    assert kept == json.loads(json.dumps(schema.to_dict()))


def test_swapped_extra_and_missing_columns(loans, tmp_path):
    run, path = loans
    expected, _ = chances(run, path)
    swapped = {name: MESSY[name] for name in ("joined", "city", "age", "id")}
    np.testing.assert_array_equal(chances(run, written(tmp_path / "a.csv", swapped))[0], expected)
    more = {"shoe": [40] * 150, **swapped}
    found, notes = chances(run, written(tmp_path / "b.csv", more))
    np.testing.assert_array_equal(found, expected)
    assert any("'shoe'" in note for note in notes)
    with pytest.raises(InputError, match="the column 'age' is missing"):
        run.predict(written(tmp_path / "c.csv", {n: v for n, v in swapped.items() if n != "age"}))


def test_a_row_alone_is_as_it_was_among_others(loans):
    run, path = loans
    expected, _ = chances(run, path)
    for i in (0, 3, 17, 149):
        row = {name: values[i] for name, values in MESSY.items() if name != "repaid"}
        np.testing.assert_allclose(chances(run, row)[0], expected[i : i + 1], rtol=1e-5)


def test_unseen_categories_are_counted_and_said(loans):
    run, _ = loans
    rows = [{"id": "x", "age": 30, "city": city, "joined": "2022-02-02"} for city in ("Oslo", "Rome", "Oslo")]
    found, notes = chances(run, rows)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[0], found[2])
    assert any(note.startswith("city: 2 of 3 rows") and "Oslo" in note for note in notes), notes


def test_evaluate_takes_all_rows_that_have_a_target(loans):
    run, path = loans
    found = run.evaluate(path)
    assert (found["examples"], found["left_out"]) == (147, 3)
    expected, _ = chances(run, path)
    truth = np.array([v == "yes" for v in MESSY["repaid"]])
    known = np.array([v is not None for v in MESSY["repaid"]])
    assert found["accuracy"] == pytest.approx((expected.argmax(1) == truth)[known].mean())


def test_the_run_measures_its_own_parts_again(loans):
    run, path = loans
    assert run.evaluate()["accuracy"] == run.results["accuracy"]
    again = prepared(path, run=run.about)
    first = prepared(path, target="repaid")
    for part in ("train", "validation", "test"):
        for a, b in zip(first.part(part), again.part(part), strict=True):
            np.testing.assert_array_equal(a, b)


def test_statistics_come_from_the_rows_to_train_on(tmp_path):
    values = RNG.normal(size=100)
    path = written(tmp_path / "a.csv", {"x": values, "y": values * 2 + 1})
    data = prepared(path, target="y")
    assert data.train[0][:, 0].mean() == pytest.approx(0, abs=1e-5)
    assert data.train[0][:, 0].std() == pytest.approx(1, abs=1e-5)
    assert abs(data.test[0][:, 0].mean()) > 1e-4


def test_what_is_kept_and_damaged(loans, tmp_path):
    run, _ = loans
    shutil.copytree(run.folder, tmp_path / "run")
    path = tmp_path / "run" / "model.safetensors"
    recipe = json.loads(safetensors.metadata(path)["recipe"])
    state = {k: np.asarray(v) for k, v in wl.load(path).items()}
    for damage in ({}, {"version": 99}, {"version": 1, "header": True, "target": None, "columns": 3}, "text", None):
        recipe["about"]["inputs"]["schema"] = damage
        wl.save(state, path, {"recipe": json.dumps(recipe)})
        with pytest.raises(WonderlandError):
            recipes.evaluate(tmp_path / "run")


# --- what is said before training


def test_the_plan_and_what_is_odd_are_shown(tmp_path, capsys):
    path = written(tmp_path / "loans.csv", {**MESSY, "copy": MESSY["repaid"], "same": [1] * 150})
    arguments = ["train", "--model", "linear", "--data", path, "--set", "epochs=1", "--set", "data.target=repaid"]
    with wl.using_backend("numpy"):
        assert main([*arguments, "--out", str(tmp_path / "run")]) == 0
    err = capsys.readouterr().err
    for text in ("column", "id      identifier", "age     number", "joined  date", "repaid  target"):
        assert text in err
    assert "3 rows without a 'repaid' are left out, the first in line 9" in err
    assert "'copy' alone predicts the target" in " ".join(err.split())
    assert all(len(line) <= 100 for line in err.splitlines() if not line.startswith("wonderland:"))
    with wl.using_backend("numpy"):
        assert main([*arguments, "--out", str(tmp_path / "quiet"), "--quiet"]) == 0
    assert "identifier" not in capsys.readouterr().err


def test_a_model_is_chosen_and_said(tmp_path, capsys):
    path = written(tmp_path / "houses.csv", HOUSES)
    arguments = ["train", "--data", path, "--set", "data.target=price", "--set", "epochs=1", "--set", "steps=2"]
    with wl.using_backend("numpy"):
        assert main([*arguments, "--out", str(tmp_path / "run")]) == 0
    assert "model tabular: the data are a table; --model NAME for another" in capsys.readouterr().err
    (tmp_path / "text.txt").write_text("once upon a time")
    assert suited_model({"name": str(tmp_path / "text.txt")})[0] == "gpt"
    assert suited_model({"name": path, "nodes": path})[0] == "gcn"
    np.save(tmp_path / "x.npy", np.zeros((3, 40, 40, 3), np.uint8))
    assert suited_model({"name": str(tmp_path / "x.npy")}) == ("resnet", "images of 40 x 40 pixels")
    assert Settings.of().model == {"name": "cnn"}
    (tmp_path / "run.toml").write_text(f"[data]\nname = {json.dumps(path)}\n[data.columns]\nage = 'category'\n")
    settings = Settings.of(file=tmp_path / "run.toml", changes=["model.dropout=0.1", "data.columns.rooms=ignore"])
    assert settings.model == {"name": "tabular", "dropout": 0.1}
    assert settings.data["columns"] == {"age": "category", "rooms": "ignore"}


def test_columns_are_what_is_said(tmp_path):
    path = written(tmp_path / "houses.csv", HOUSES)
    names = lambda **options: prepared(path, target="price", **options).about["inputs"]["schema"]

    def kinds(schema):
        return {column["name"]: (column["kind"], column["role"]) for column in schema["columns"]}

    assert kinds(names())["rooms"] == ("number", "feature")
    assert kinds(names(columns={"rooms": "category"}))["rooms"] == ("category", "feature")
    assert kinds(names(categorical=["rooms"]))["rooms"] == ("category", "feature")
    assert kinds(names(columns={"rooms": "ignore"}))["rooms"][1] == "left out"
    taken = kinds(names(columns=["area"]))
    assert [name for name, (_, role) in taken.items() if role == "feature"] == ["area"]
    assert names(columns=[0]) == names(columns=["area"])
    assert kinds(prepared(path, target=-1).about["inputs"]["schema"])["price"][1] == "target"
    assert prepared(path, target="rooms", task="regression").outputs == 1
    assert prepared(path, target="rooms").outputs == 7


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, r"nothing to predict; the columns are 'area', 'rooms', 'age', 'price'"),
        ({"target": "prize"}, r"no column 'prize'"),
        ({"target": 7}, r"no column 7"),
        ({"target": "price", "columns": {"rooms": "colour"}}, "cannot be 'colour'"),
        ({"target": "price", "columns": {"room": "number"}}, "no column 'room'"),
        ({"target": "price", "columns": 3}, r"data\.columns = 3"),
        ({"target": "price", "on_missing": "drop"}, "gaps are filled"),
        ({"target": "price", "encode": "codes"}, "by its kind"),
        ({"target": "price", "colour": 3}, "no option data.colour"),
        ({"target": "price", "split": "half"}, r"data\.split = 'half'"),
        ({"target": "price", "split": "time"}, "needs a column"),
        ({"target": "price", "split": "group", "group": "street"}, "no column 'street'"),
        ({"target": "price", "time": "age", "group": "rooms"}, "both say how to split"),
        ({"target": "price", "task": "guess"}, "guess"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, options, message):
    path = written(tmp_path / "houses.csv", HOUSES)
    with pytest.raises(InputError, match=message):
        prepared(path, **options)


def test_a_target_that_its_name_gives_away(tmp_path):
    path = written(tmp_path / "a.csv", {"x": RNG.normal(size=60), "Species": ["a", "b"] * 30})
    data = prepared(path)
    assert data.about["class_names"] == ["a", "b"]
    assert any("'Species', by its name" in note for note in data.notes)
    both = written(tmp_path / "b.csv", {"x": RNG.normal(size=60), "y": [1, 2] * 30, "label": ["a", "b"] * 30})
    with pytest.raises(InputError, match="nothing to predict"):
        prepared(both)


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"x": RNG.normal(size=20), "y": [3.5] * 20}, "always '3.5'"),
        ({"x": RNG.normal(size=20), "y": ["a"] * 20}, "always 'a'"),
        ({"x": RNG.normal(size=20), "y": [None] * 20}, "missing in every row"),
        ({"x": [None] * 20, "y": ["a", "b"] * 10}, "everything is missing"),
        ({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "a"]}, "too few"),
        ({"x": RNG.normal(size=20), "y": [f"class {i}" for i in range(20)]}, "no classes"),
    ],
)
def test_targets_that_nothing_can_be_learned_from(tmp_path, columns, message):
    path = written(tmp_path / "a.csv", columns)
    with pytest.raises(InputError, match=message):
        prepared(path, target="y")


def test_a_class_that_no_row_to_train_on_has(tmp_path):
    """By time, the last rows are of a class that was not there before: the model has a place for it."""
    days = [str(np.datetime64("2024-01-01") + i) for i in range(60)]
    path = written(tmp_path / "a.csv", {"day": days, "x": RNG.normal(size=60), "y": [*(["a", "b"] * 24), *["c"] * 12]})
    with wl.using_backend("numpy"):
        done = trained(tmp_path / "run", path, "data.target=y", "data.split=time", "epochs=2", "class_weights=balanced")
    assert done.about["class_names"] == ["a", "b", "c"]
    assert np.isfinite(done.results["loss"])
    data = prepared(path, target="y", split="time")
    assert any("'c'" in note and "0 examples" in note for note in data.notes)


# --- splits


def test_splits_by_time_and_group(tmp_path):
    days = np.datetime64("2024-01-01") + RNG.permutation(100)
    who = RNG.integers(0, 12, 100)
    table = wl.data.read_table({"day": days.astype("datetime64[us]"), "who": [f"p{w}" for w in who]})
    train, held, test = cut_rows(table, None, "time", "day", 0.1, 0)
    assert days[train].max() < days[held].min() <= days[held].max() < days[test].min()
    assert (len(train), len(held), len(test)) == (72, 8, 20)
    parts = cut_rows(table, None, "group", "who", 0.2, 0)
    seen = [set(who[part]) for part in parts]
    assert sum(map(len, seen)) == len(set.union(*seen))
    assert sorted(np.concatenate(parts)) == list(range(100))
    other = cut_rows(table, None, "group", "who", 0.2, 1)
    assert set(other[2]) != set(parts[2])


def test_rows_in_the_order_of_time_are_split_by_it(tmp_path):
    days = [str(np.datetime64("2024-01-01") + i) for i in range(120)]
    path = written(tmp_path / "a.csv", {"day": days, "sold": RNG.normal(size=120).round(3)})
    data = prepared(path, target="sold")
    assert data.about["inputs"]["split"] == {"kind": "time", "column": "day"}
    assert any("split by time, column 'day'" in note for note in data.notes)
    assert prepared(path, target="sold", split="random").about["inputs"]["split"]["kind"] == "random"


# --- rare classes


def rare(path):
    x = RNG.normal(size=(600, 2))
    y = np.where(x[:, 0] + RNG.normal(size=600) > 2.2, "bad", "good")
    return written(path, {"a": x[:, 0].round(3), "b": x[:, 1].round(3), "y": y})


def test_class_weights_find_more_of_a_rare_class(tmp_path, capsys):
    path = rare(tmp_path / "a.csv")
    recall = []
    for weights in ("none", "balanced"):
        with wl.using_backend("numpy"):
            done = trained(tmp_path / weights, path, "data.target=y", "epochs=20", f"class_weights={weights}")
        test = prepared(path, target="y").test
        says = np.asarray(wl.train.predict(done.model, test[0])).argmax(1)
        recall.append(np.mean(says[test[1] == 0] == 0))
    assert recall[1] > recall[0] + 0.2
    assert any("are of the class 'good'" in note for note in prepared(path, target="y").notes)


def test_weights_are_refused_where_there_are_no_classes(tmp_path):
    path = written(tmp_path / "houses.csv", HOUSES)
    with pytest.raises(InputError, match="would do nothing: there are no classes"):
        trained(tmp_path / "run", path, "data.target=price", "class_weights=balanced")
    assert Settings.of(changes=["class_weights=none"]).train == {"class_weights": "none"}


def test_an_accuracy_that_is_the_share_of_a_class_is_said(tmp_path, capsys):
    y = ["yes"] * 10 + ["no"] * 190
    path = written(tmp_path / "a.csv", {"x": RNG.normal(size=200), "y": y})
    arguments = ["train", "--model", "linear", "--data", path, "--set", "data.target=y", "--set", "epochs=2"]
    with wl.using_backend("numpy"):
        assert main([*arguments, "--set", "lr=0.001", "--out", str(tmp_path / "run")]) == 0
    err = " ".join(capsys.readouterr().err.split())
    assert "is no more than the share of the commonest class, 95.00 %" in err
    assert "class_weights=balanced" in err


def test_batches_grow_with_the_data():
    assert [usual_batch(n) for n in (1, 5000, 10**6, 10**8)] == [64, 64, 4096, 4096]


def test_settings_of_tables_within_tables():
    settings = Settings.of(data="iris", model="linear", changes=["data.columns.a.b=number", "data.columns.c=ignore"])
    assert settings.data["columns"] == {"a.b": "number", "c": "ignore"}
    with pytest.raises(InputError, match="no table"):
        Settings.of(data="iris", model="linear", changes=["data.columns=[1]", "data.columns.a=number"])


def test_files_that_are_no_tables(tmp_path):
    for text, message in (("", "empty"), ("a,b\n1,2\n3\n4,5\n", "line 3"), ("a,a\n1,2\n", "'a'")):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises((InputError, FileError), match=message):
            prepared(str(tmp_path / "bad.csv"), target="a")
