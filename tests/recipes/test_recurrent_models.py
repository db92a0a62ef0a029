"""Models that are for several tasks: series with classes, forecasts, and texts, by one name."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.cli import main
from wonderland.recipes import MODELS, Settings, build
from wonderland.recipes.catalogue import entry_for
from wonderland.recipes.settings import TrainSettings

# those on graphs are tested in test_graphs.py
NAMES = [name for name, entry in MODELS.items() if entry.also and "nodes" not in entry.tasks]
TEXT = "The cat sat on the mat. The dog sat on the log. " * 60


def test_which_models_they_are():
    assert set(NAMES) == {"lstm", "gru", "lru", "mamba", "rwkv"}
    for name in NAMES:
        assert MODELS[name].tasks == ("supervised", "language", "forecasting")
        for task in MODELS[name].tasks:
            found = MODELS[name].suited(task)
            assert found.task == task
            TrainSettings(**found.train).check()


@pytest.mark.parametrize(
    "data, task",
    [
        ("digits", "supervised"),
        ("sines", "forecasting"),
        ("lorenz", "forecasting"),
        ("a/book.txt", "language"),
        ("a/Book.TXT", "language"),
        ("energy.csv", "forecasting"),
        ("energy.csv.gz", "forecasting"),
        ("series.npz", "supervised"),
    ],
)
def test_the_task_follows_from_the_data(data, task):
    assert entry_for({"name": "lstm"}, {"name": data}).task == task
    assert entry_for({"name": "lstm", "task": "language"}, {"name": data}).task == "language"
    assert entry_for({"name": "conv1d"}, {"name": data}).task == "supervised"


def test_the_usual_data_are_those_of_the_task():
    assert Settings.of(model="gru").data == {"name": "digits"}
    forecasts = Settings.of(model="gru", changes=["model.task=forecasting", "data.context=16"])
    assert forecasts.data == {"name": "sines", "context": 16}
    with pytest.raises(wl.errors.InputError, match="gru has no data of its own"):
        Settings.of(model="gru", changes=["model.task=language"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "task, shape, x, out",
    [
        ("supervised", (20, 3), np.ones((2, 20, 3), "f"), (2, 5)),
        ("supervised", (8, 6, 1), np.ones((2, 8, 6, 1), "f"), (2, 5)),
        ("forecasting", (20, 5), np.ones((2, 20, 5), "f"), (2, 20, 5)),
        ("language", (20,), np.ones((2, 20), np.int64), (2, 20, 5)),
    ],
)
def test_models_fit_their_inputs(name, task, shape, x, out):
    model = build({"name": name}, shape, 5, {"task": task})
    assert model(x).shape == out


@pytest.mark.parametrize("name", NAMES)
def test_forecasts_are_causal(name):
    model = build({"name": name, "embed_dim": 8}, (10, 2), 2, {"task": "forecasting"}).eval()
    wl.nn.assert_causal(model, np.random.default_rng(0).normal(size=(2, 10, 2)).astype("f"))


def run(folder, name, *changes, data=None):
    settings = Settings.of(model=name, data=data, changes=["model.embed_dim=16", "model.depth=1", *changes])
    return recipes.run(settings, folder, progress=False, png=False)


@pytest.mark.parametrize("name", NAMES)
def test_classes_of_series(tmp_path, name):
    """Frequencies of noisy waves, from an array (n, time, channels)."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    t, phase = np.arange(24), rng.uniform(0, 6, (240, 1))
    x = np.sin(2 * np.pi * t * (y[:, None] + 1) / 24 + phase) + 0.1 * rng.normal(size=(240, 24))
    np.savez(tmp_path / "waves.npz", x=x[..., None].astype("f"), y=y)
    done = run(tmp_path / "run", name, "epochs=20", "batch_size=32", "lr=0.02", data=str(tmp_path / "waves.npz"))
    assert done.results["accuracy"] > 0.8
    again = recipes.evaluate(tmp_path / "run")
    assert again["accuracy"] == pytest.approx(done.results["accuracy"])
    found = recipes.predict(tmp_path / "run", {"name": str(tmp_path / "waves.npz")})
    assert len(found) == 240


@pytest.mark.parametrize("name", NAMES)
def test_forecasts(tmp_path, name):
    done = run(tmp_path, name, "model.task=forecasting", "epochs=20", "data.context=24", "data.n=300", "lr=0.02")
    assert done.results["mae"] < 0.5 * done.results["naive_mae"]
    assert recipes.evaluate(tmp_path)["mae"] == pytest.approx(done.results["mae"], rel=1e-6)
    assert np.shape(recipes.predict(tmp_path, {"name": "sines", "steps": 5}).predictions) == (5,)


@pytest.mark.parametrize("name", NAMES)
def test_texts(tmp_path, capsys, name):
    (tmp_path / "text.txt").write_text(TEXT)
    changes = ["steps=60", "epochs=2", "lr=0.02", "data.context=32", "data.stride=8", "validation=0.1"]
    done = run(tmp_path / "run", name, *changes, data=str(tmp_path / "text.txt"))
    assert done.results["perplexity"] < 5
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["train"]["steps"] == 60
    assert main(["generate", str(tmp_path / "run"), "--prompt", "The cat", "--length", "20"]) == 0
    assert capsys.readouterr().out.startswith("The cat")


def test_what_is_refused(tmp_path):
    with pytest.raises(wl.errors.InputError, match="not for the task 'masked'"):
        run(tmp_path, "lstm", "model.task=masked", data="digits")
    with pytest.raises(wl.errors.InputError, match="no option 'task'"):
        build({"name": "mlp", "task": "supervised"}, (4,), 2)
    with pytest.raises(wl.errors.ShapeError, match="no sequence"):
        run(tmp_path, "gru", data="iris")


def test_the_list_shows_their_tasks(capsys):
    main(["list", "models"])
    assert "model.task = supervised, language, forecasting" in capsys.readouterr().out
