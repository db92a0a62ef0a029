"""Prediction intervals and sets of a run: they have the truth as often as they promise."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

import wonderland as wl
from wonderland import recipes
from wonderland.cli import main
from wonderland.errors import FileError, InputError
from wonderland.recipes import Predictions, Settings
from wonderland.recipes.intervals import LEVELS, calibrated, with_intervals, with_sets


def enough(hits: np.ndarray, level: float, n: int) -> bool:
    """Whether a share of hits is what coverage of at least `level`, calibrated on n examples, gives but for one time
    of 10,000: hits are binomial, and their probability is itself a draw from a beta distribution."""
    k = int(np.ceil(level * (n + 1) - 1e-9))
    least = stats.betabinom(len(hits), k, n + 1 - k).ppf(1e-4)
    return hits.sum() >= least


@pytest.mark.parametrize("level", [0.5, 0.9, 0.97])
def test_intervals_have_the_truth_as_often_as_they_promise(level):
    rng = np.random.default_rng(0)
    truth, guess = rng.normal(size=(2, 500)), rng.normal(size=(2, 500))
    scale = np.array([[1.0], [50.0]])  # two numbers of each input, of which one is much larger
    truth, guess = scale * truth, scale * guess
    about = {"intervals": calibrated(guess[:, :200].T, truth[:, :200].T, ())}
    found = with_intervals(Predictions.of(guess[:, 200:].T), level, about)
    inside = (found.lower <= truth[:, 200:].T) & (found.upper >= truth[:, 200:].T)
    assert found.level >= level
    for hits in inside.T:
        assert enough(hits, level, 200)
        assert hits.mean() < min(level + 0.15, 1)  # and are no wider than that takes


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_sets_have_the_true_class_as_often_as_they_promise(level):
    rng = np.random.default_rng(1)
    chances = rng.dirichlet([0.5] * 4, 900)
    sharper = chances**2 / (chances**2).sum(1, keepdims=True)  # what a model that is too sure says
    truth = np.array([rng.choice(4, p=p) for p in chances])
    names = ["a", "b", "c", "d"]
    about = {"intervals": calibrated(sharper[:300], truth[:300], names)}
    found = with_sets(Predictions.of(sharper[300:], names), level, about)
    hits = np.array([names[y] in chosen for y, chosen in zip(truth[300:], found.sets, strict=True)])
    assert enough(hits, level, 300)
    assert all(prediction in chosen for prediction, chosen in zip(found.predictions, found.sets, strict=True))
    assert np.mean([len(chosen) for chosen in found.sets]) < 4


def test_what_cannot_be_promised_is_refused():
    about = {"intervals": calibrated(np.zeros((20, 1)), np.arange(20.0)[:, None], ())}
    assert with_intervals(Predictions.of(np.zeros(1)), 0.95, about).upper.tolist() == [19.0]
    with pytest.raises(InputError, match=r"0\.98 cannot be promised, and the run had 20"):
        with_intervals(Predictions.of(np.zeros(1)), 0.98, about)
    with pytest.raises(InputError, match=r"0\.995 or less"):
        with_intervals(Predictions.of(np.zeros(1)), 0.999, about)
    with pytest.raises(InputError, match="a probability between 0 and 1"):
        with_intervals(Predictions.of(np.zeros(1)), 90, about)
    with pytest.raises(InputError, match="validation data"):
        with_intervals(Predictions.of(np.zeros(1)), 0.9, {})
    with pytest.raises(InputError, match="no classes"):
        with_sets(Predictions.of(np.zeros(1)), 0.9, about)
    with pytest.raises(InputError, match="no intervals"):
        with_intervals(Predictions.of(np.eye(2), ("a", "b")), 0.9, about)


@pytest.mark.parametrize("odd", [3, [], {"bounds": 3}, {"bounds": [[1.0]], "examples": 4}, {"examples": 4}])
def test_damaged_intervals_are_the_files_fault(odd):
    with pytest.raises(FileError, match="odd intervals"):
        with_intervals(Predictions.of(np.zeros(1)), 0.9, {"intervals": odd})


def test_levels_in_between_promise_more():
    about = {"intervals": calibrated(np.zeros((400, 1)), np.arange(400.0)[:, None], ())}
    widths = [with_intervals(Predictions.of(np.zeros(1)), level, about).upper[0] for level in (*LEVELS, 0.87, 0.9)]
    assert widths[:-2] == sorted(widths[:-2])
    assert widths[-2] == widths[-1]


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("houses")
    rng = np.random.default_rng(0)
    area = rng.uniform(40, 200, 700)
    price = 3000 * area + rng.normal(0, 20_000, 700)
    rows = [f"{a:.2f},{p:.0f}" for a, p in zip(area, price, strict=True)]
    (folder / "old.csv").write_text("\n".join(["area,price", *rows[:400]]))
    (folder / "new.csv").write_text("\n".join(["area,price", *rows[400:]]))
    changes = ["data.target=price", "epochs=20", "lr=0.1", "validation=0.3"]
    settings = Settings.of(model="linear", data=str(folder / "old.csv"), changes=changes)
    with wl.using_backend("numpy"):
        recipes.run(settings, folder / "run", progress=False, png=False)
    return folder, price[400:]


def test_a_run_gives_intervals_of_new_data(houses, capsys):
    folder, truth = houses
    found = wl.runs.open(folder / "run").predict(folder / "new.csv", interval=0.9)
    assert enough((found.lower <= truth) & (truth <= found.upper), 0.9, 96)
    assert 40_000 < np.median(found.upper - found.lower) < 200_000
    asked = ["predict", str(folder / "run"), "--data", str(folder / "new.csv")]
    assert main([*asked, "--interval", "0.9", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["lower"] for row in rows] == pytest.approx(found.lower.tolist(), rel=1e-6)
    assert main([*asked, "--sets", "0.9"]) == 2
    assert "--interval 0.9" in capsys.readouterr().err


def test_without_validation_data_there_are_no_intervals(tmp_path, capsys):
    settings = Settings.of(model="linear", data="moons", changes=["epochs=1", "validation=0.0"])
    with wl.using_backend("numpy"):
        recipes.run(settings, tmp_path, progress=False, png=False)
    assert main(["predict", str(tmp_path), "--data", "moons", "--sets", "0.9"]) == 2
    assert "validation=0.1" in capsys.readouterr().err
