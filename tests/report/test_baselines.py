"""Baselines against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, mean_absolute_error, r2_score
from sklearn.preprocessing import StandardScaler

import wonderland as wl
from wonderland.report.baselines import (
    class_baselines,
    class_measures,
    forecast_baselines,
    number_baselines,
    number_measures,
)


def halves(data):
    order = np.random.default_rng(0).permutation(len(data.target))
    cut = len(order) * 2 // 3
    return data.data[order[:cut]], data.target[order[:cut]], data.data[order[cut:]], data.target[order[cut:]]


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_classes(load):
    x, y, new, true = halves(load())
    found = class_baselines(y, true, int(y.max()) + 1, x, new)
    dummy = DummyClassifier(strategy="prior").fit(x, y)
    assert found["majority class"]["accuracy"] == pytest.approx(dummy.score(new, true))
    assert found["majority class"]["balanced_accuracy"] == pytest.approx(1 / (y.max() + 1))
    assert found["class shares"]["log_loss"] == pytest.approx(log_loss(true, dummy.predict_proba(new)))
    scale = StandardScaler().fit(x)
    linear = LogisticRegression(max_iter=5000).fit(scale.transform(x), y)
    p = linear.predict_proba(scale.transform(new))
    assert found["linear model"]["accuracy"] == pytest.approx(accuracy_score(true, p.argmax(1)), abs=0.02)
    assert found["linear model"]["log_loss"] == pytest.approx(log_loss(true, p), rel=0.1)


def test_drawing_classes_by_their_shares_is_right_as_often_as_said():
    rng = np.random.default_rng(0)
    y, true = rng.choice(3, 300, p=[0.7, 0.2, 0.1]), rng.choice(3, 5000, p=[0.5, 0.3, 0.2])
    shares = np.bincount(y) / len(y)
    drawn = rng.choice(3, len(true), p=shares)
    assert class_baselines(y, true, 3)["class shares"]["accuracy"] == pytest.approx((drawn == true).mean(), abs=0.03)


def test_numbers():
    x, y, new, true = halves(load_diabetes())
    found = number_baselines(y[:, None], true[:, None], x, new)
    for name, strategy in (("mean", "mean"), ("median", "median")):
        guess = DummyRegressor(strategy=strategy).fit(x, y).predict(new)
        assert found[name]["mae"] == pytest.approx(mean_absolute_error(true, guess))
        assert found[name]["r2"] == pytest.approx(r2_score(true, guess))
    scale = StandardScaler().fit(x)
    guess = Ridge(alpha=1e-3 * len(x)).fit(scale.transform(x), y).predict(scale.transform(new))
    assert found["linear model"]["r2"] == pytest.approx(r2_score(true, guess), abs=1e-3)


def test_measures_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 50)
    y = rng.integers(0, 3, 50)
    found = class_measures(p, y)
    assert found["accuracy"] == pytest.approx(accuracy_score(y, p.argmax(1)))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, p.argmax(1)))
    assert found["log_loss"] == pytest.approx(log_loss(y, p))
    a, b = rng.normal(size=(2, 30, 2))
    assert number_measures(a, b)["r2"] == pytest.approx(r2_score(b, a))
    assert number_measures(a, np.ones((30, 2)))["r2"] is None, "nothing to explain"


def test_forecasts_know_the_season_of_the_training():
    rng = np.random.default_rng(0)
    wave = np.sin(2 * np.pi * np.arange(400) / 12)[:, None] + 0.01 * rng.normal(size=(400, 1))
    windows = np.stack([wave[i : i + 25] for i in range(370)])
    x, y = windows[:, :-1], windows[:, -1]
    found = forecast_baselines(x[:300], y[:300], x[300:], y[300:])
    last = np.sqrt(np.mean((x[300:, -1] - y[300:]) ** 2))
    assert found["last value"]["rmse"] == pytest.approx(last)
    (name,) = [name for name in found if name.startswith("seasonal")]
    assert name in ("seasonal naive, 12 steps", "seasonal naive, 24 steps")
    assert found[name]["rmse"] < 0.1 * last
    assert found["linear model"]["rmse"] < 0.1 * last


def test_odd_features_break_nothing():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 4))
    x[:, 1], x[3, 2], x[:, 3] = 7.0, np.nan, 1e30 * x[:, 3]
    y = (x[:, 0] > 0).astype(int)
    assert class_baselines(y, y, 2, x, x)["linear model"]["accuracy"] > 0.9
    assert "linear model" not in class_baselines(y, y, 2, np.array(["a"] * 40), np.array(["a"] * 40))
    assert "linear model" not in class_baselines(np.zeros(40, int), y, 2, x, x), "one class alone is not learned"


@pytest.mark.parametrize("right, of", [(0, 5), (5, 5), (28, 30), (910, 1000)])
def test_wilsons_interval_has_the_shares_that_the_count_does_not_contradict(right, of):
    low, high = wl.metrics.wilson_interval(right, of)
    for end in (low, high):
        if 0 < end < 1:  # the definition: the share is 1.96 deviations away
            assert abs(right / of - end) == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / of))
    assert 0 <= low <= right / of <= high <= 1
    with pytest.raises(wl.errors.InputError):
        wl.metrics.wilson_interval(3, 2)
