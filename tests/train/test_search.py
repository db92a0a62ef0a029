"""Searching for settings."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError
from wonderland.train import Range, grid_settings, random_settings, search


@pytest.mark.book("5.20", name=("wl.train.search", "wl.train.grid_settings"))
def test_a_grid_has_all_combinations():
    space = {"width": [4, 8], "depth": [1, 2, 3], "activation": "relu", "lr": np.array([0.1])}
    found = list(grid_settings(space))
    assert len(found) == 2 * 3
    assert len({(s["width"], s["depth"]) for s in found}) == 6
    assert all(s["activation"] == "relu" and s["lr"] == 0.1 for s in found)
    built = [wl.models.MLP(2, [s["width"]] * s["depth"], 1, activation=s["activation"]) for s in found]
    assert {net.depth for net in built} == {1, 2, 3}


@pytest.mark.book("5.20", name=("wl.train.random_settings", "wl.train.Range"))
def test_random_settings_repeat_and_stay_in_their_ranges():
    space = {
        "lr": Range(1e-4, 1e-1, log=True),
        "width": Range(2, 5, whole=True),
        "p": Range(0.0, 0.5),
        "act": ["a", "b"],
    }
    found = list(random_settings(space, 400, seed=3))
    assert found == list(random_settings(space, 400, seed=3))
    assert found[:10] == list(random_settings(space, 10, seed=3))
    assert found != list(random_settings(space, 400, seed=4))
    logs = np.log10([s["lr"] for s in found])
    assert (logs >= -4).all()
    assert (logs <= -1).all()
    np.testing.assert_allclose(logs.mean(), -2.5, atol=0.2)  # evenly spread in the logarithm
    assert {s["width"] for s in found} == {2, 3, 4, 5}
    assert all(isinstance(s["width"], int) for s in found)
    assert {s["act"] for s in found} == {"a", "b"}
    assert {s["k"] for s in random_settings({"k": Range(1, 3, log=True, whole=True)}, 50)} == {1, 2, 3}


@pytest.mark.book("A3-55", name="wl.train.search")
def test_the_best_configuration_on_validation_data():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(60, 3)), np.array([[1.0], [-2.0], [0.5]])
    y = x @ w + 0.01 * rng.normal(size=(60, 1))
    train, validation = slice(0, 40), slice(40, 60)
    makers = {"sgd": wl.optim.SGD, "adam": wl.optim.Adam}

    def objective(optimizer, lr, batch):
        model = wl.nn.Linear(3, 1, dtype=wl.float64, key=wl.random.key(0))
        steps = makers[optimizer](model, lr=lr)
        gradient = wl.grad(lambda m, x, y: ((m(x) - y) ** 2).mean())
        for _ in range(3):
            for start in range(train.start, train.stop, batch):
                rows = slice(start, start + batch)
                steps.step(gradient(model, x[rows], y[rows]))
        return ((model(x[validation]) - y[validation]) ** 2).mean()

    seen = []
    space = {"optimizer": ["sgd", "adam"], "lr": [1e-4, 0.1], "batch": [10, 40]}
    result = search(objective, space, callback=seen.append)
    assert seen == result.trials
    assert len(seen) == 8
    assert result.score == min(t.score for t in result.trials)
    assert result.best["lr"] == 0.1  # the others have hardly moved
    assert float(objective(**result.best)) == pytest.approx(result.score)
    worst = search(objective, space, 3, maximize=True, seed=1)
    assert len(worst.trials) == 3
    assert worst.score == max(t.score for t in worst.trials)


def test_failures_are_listed_and_do_not_end_the_search():
    def objective(x):
        if x == 0:
            raise ZeroDivisionError("no inverse")
        return math.nan if x == 1 else 1 / x

    result = search(objective, {"x": [0, 1, 4, 2]})
    assert result.best == {"x": 4}
    assert [t.error for t in result.trials] == ["ZeroDivisionError: no inverse", "the score is NaN", None, None]
    with pytest.raises(InputError, match="all 2 trials failed; the first: ZeroDivisionError"):
        search(objective, {"x": [0, 1]})

    def broken(x):
        raise TypeError("a mistake of the program")

    with pytest.raises(TypeError):
        search(broken, {"x": [1]})


def test_bad_spaces():
    with pytest.raises(InputError, match="not a space"):
        search(lambda: 0, {})
    with pytest.raises(InputError, match="no choice for lr"):
        search(lambda lr: 0, {"lr": []})
    with pytest.raises(InputError, match="infinitely many"):
        search(lambda lr: 0, {"lr": Range(0.0, 1.0)})
    with pytest.raises(InputError, match=r"low=1\.0, high=0\.0"):
        Range(1.0, 0.0)
    with pytest.raises(InputError, match="0 < low"):
        Range(0.0, 1.0, log=True)
    with pytest.raises(InputError, match="n=0"):
        search(lambda lr: 0, {"lr": [1]}, 0)
    with pytest.raises(InputError, match="not a function"):
        search(3, {"lr": [1]})
