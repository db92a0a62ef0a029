"""Conformal sets and intervals contain the truth as often as promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import wonderland as wl
from wonderland import decisions
from wonderland.errors import InputError, ModuleError, ShapeError


def drawn(n, seed, m=4):
    """Probabilities, and labels drawn from sharper ones: the model is not calibrated."""
    r = np.random.default_rng(seed)
    z = r.normal(size=(n, m))
    y = (special.softmax(2 * z, 1).cumsum(1) > r.random((n, 1))).argmax(1)
    return special.softmax(z, 1), y


@pytest.mark.book("4.71", "B4-38", name="wl.decisions.prediction_set")
def test_prediction_sets():
    p = np.array([[0.6, 0.3, 0.1, 0.0], [0.25, 0.25, 0.25, 0.25]])
    np.testing.assert_array_equal(decisions.prediction_set(p, 0.0), p > 0)
    sizes = [decisions.prediction_set(p, g).numpy().sum(1) for g in (0.0, 0.1, 0.25, 0.5, 0.9)]
    assert np.all(np.diff(sizes, axis=0) <= 0)
    assert sizes[-1].tolist() == [0, 0], "a set may be empty"
    assert decisions.prediction_set(p, 0.25, inclusive=True).numpy()[1].all()
    assert not decisions.prediction_set(p, 0.25).numpy()[1].any()
    compiled = wl.jit(lambda p: decisions.prediction_set(p, 0.2))(wl.asarray(p))
    np.testing.assert_array_equal(compiled, p > 0.2)


@pytest.mark.book("4.72", "B4-38", name=("wl.decisions.ConformalClassifier", "wl.decisions.coverage"))
def test_coverage_is_kept_and_gamma_is_the_largest_that_does():
    calibration, test = drawn(1000, 0), drawn(20_000, 1)
    gammas, sizes = [], []
    for alpha in (0.05, 0.1, 0.2):
        conformal = decisions.ConformalClassifier().calibrate(*calibration, alpha=alpha)
        sets = conformal.predict(test[0])
        covered = decisions.coverage(sets, test[1])
        # both the calibration set (n = 1000) and the test set are samples
        error = math.sqrt(alpha * (1 - alpha) * (1 / 1000 + 1 / 20_000))
        assert abs(covered - (1 - alpha)) < 3 * error
        gammas.append(conformal.gamma)
        sizes.append(sets.numpy().sum(1).mean())
        own = calibration[0][np.arange(1000), calibration[1]]
        # the finite-sample quantile: k - 1 true classes are left out, one more would break the promise
        assert (own < conformal.gamma).sum() == math.floor(alpha * 1001) - 1
        assert conformal.gamma in own, "and the tie is in the set"
    assert np.all(np.diff(gammas) > 0), "gamma grows with alpha"
    assert np.all(np.diff(sizes) < 0)
    # a threshold that was not calibrated promises nothing: 1 - gamma is not the coverage
    loose = decisions.coverage(decisions.prediction_set(test[0], 0.9), test[1])
    assert loose < 0.5


@pytest.mark.book("4.72", name="wl.decisions.ConformalClassifier")
def test_the_promise_holds_on_average_over_small_calibration_sets():
    alpha, covered = 0.25, []
    test = drawn(400, 99)
    for seed in range(300):
        conformal = decisions.ConformalClassifier().calibrate(*drawn(7, seed), alpha=alpha)
        covered.append(decisions.coverage(conformal.predict(test[0]), test[1]))
    # k = floor(.25 * 8) = 2 of 7: exactly 1 - 2/8
    assert np.mean(covered) == pytest.approx(0.75, abs=4 * np.std(covered) / math.sqrt(300) + 0.04)
    assert np.mean(covered) > 0.72
    few = decisions.ConformalClassifier().calibrate(*drawn(3, 0), alpha=0.1)
    assert few.gamma == 0.0
    assert few.predict(test[0]).numpy().all(), "too few examples: every class"


def test_intervals_for_regression():
    r = np.random.default_rng(0)
    for alpha in (0.1, 0.3):
        x, tx = r.normal(size=2000), r.normal(size=20_000)
        y, ty = (v**2 + (0.5 + np.abs(v)) * r.normal(size=v.size) for v in (x, tx))
        conformal = decisions.ConformalRegressor().calibrate(x**2, y, alpha)
        low, high = conformal.predict(tx**2)
        inside = ((low.numpy() <= ty) & (ty <= high.numpy())).mean()
        assert abs(inside - (1 - alpha)) < 3 * math.sqrt(alpha * (1 - alpha) * (1 / 2000 + 1 / 20_000))
        scaled = decisions.ConformalRegressor().calibrate(x**2, y, alpha, scale=0.5 + np.abs(x))
        low, high = scaled.predict(tx**2, scale=0.5 + np.abs(tx))
        inside = (low.numpy() <= ty) & (ty <= high.numpy())
        assert abs(inside.mean() - (1 - alpha)) < 0.03
        # where the noise is small the scaled intervals are not too wide
        assert abs(inside[np.abs(tx) < 0.3].mean() - (1 - alpha)) < 0.04
    # the quantile by hand: ceil(.9 * 10) = 9 of 9 scores; with 8 there are too few
    assert decisions.ConformalRegressor().calibrate(np.zeros(9), np.arange(9.0), 0.1).quantile == 8.0
    assert decisions.ConformalRegressor().calibrate(np.zeros(8), np.arange(8.0), 0.1).quantile == math.inf


def test_bad_input():
    p, y = drawn(10, 0)
    with pytest.raises(InputError, match="gamma"):
        decisions.prediction_set(p, 1.5)
    with pytest.raises(InputError, match="simplex"):
        decisions.prediction_set(p * 2, 0.5)
    for conformal, data in ((decisions.ConformalClassifier(), (p, y)), (decisions.ConformalRegressor(), (p[:, 0], y))):
        for alpha in (0.0, 1.0, -0.1, float("nan")):
            with pytest.raises(InputError, match="alpha"):
                conformal.calibrate(*data, alpha=alpha)
        with pytest.raises(ModuleError, match="not been calibrated"):
            conformal.predict(data[0])
    with pytest.raises(InputError, match="simplex"):
        decisions.ConformalClassifier().calibrate(p * np.nan, y)
    with pytest.raises(InputError, match="not among"):
        decisions.ConformalClassifier().calibrate(p, y + 4)
    with pytest.raises(ShapeError):
        decisions.ConformalClassifier().calibrate(p[:0], y[:0])
    with pytest.raises(ShapeError):
        decisions.ConformalRegressor().calibrate(p[:, 0], y[:, None])
    with pytest.raises(InputError, match="not finite"):
        decisions.ConformalRegressor().calibrate(p[:, 0], y * np.nan)
    with pytest.raises(InputError, match="scale"):
        decisions.ConformalRegressor().calibrate(p[:, 0], y, scale=np.zeros(10))
    with pytest.raises(ShapeError, match="mask"):
        decisions.coverage(p, y)
