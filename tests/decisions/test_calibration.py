"""Calibration: the book's scenarios, measures against loops, and scalers against scikit-learn and SciPy."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special
from sklearn import isotonic
from sklearn import metrics as sk

import wonderland as wl
from wonderland import decisions
from wonderland.errors import DTypeError, InputError, ModuleError, ShapeError

rng = np.random.default_rng(0)


def overconfident(n=400, m=3, factor=3.0, seed=0):
    """Logits that are `factor` times those from which the labels were drawn."""
    r = np.random.default_rng(seed)
    z = r.normal(size=(n, m)) * 1.5
    y = (special.softmax(z, 1).cumsum(1) > r.random((n, 1))).argmax(1)
    return factor * z, y


@pytest.mark.book("4.63", "B4-32", name="wl.decisions.ece")
def test_labels_drawn_from_the_probabilities_are_calibrated():
    errors = []
    for n in (200, 20_000):
        z, y = overconfident(n, factor=1.0)
        errors.append(decisions.ece(special.softmax(z, 1), y))
    assert errors[1] < errors[0]
    assert errors[1] < 0.02


@pytest.mark.book("4.64", "B4-35", name=("wl.decisions.ece", "wl.decisions.mce"))
def test_two_scenarios():
    n = 40
    y = np.arange(n) % 4
    sure = np.full((n, 4), 0.2 / 3)
    sure[np.arange(n), y] = 0.8
    assert decisions.ece(sure, y) == pytest.approx(0.2), "always right and under-confident"
    assert (sure.argmax(1) == y).all()
    uniform = np.full((n, 4), 0.25)
    assert decisions.ece(uniform, y) == pytest.approx(0), "calibrated and useless"
    assert (uniform.argmax(1) == y).mean() == 0.25
    assert decisions.ece(np.full(10, 0.9), np.arange(10) < 6) == pytest.approx(0.3)
    assert decisions.ece(np.eye(4)[y], y) == 0.0


def loop(confidence, correct, bins):
    """E.4.21 as it reads: a loop over bins, the last of which has its right end."""
    gaps, shares = [], []
    for i in range(bins):
        low, high = i / bins, (i + 1) / bins
        inside = [j for j, p in enumerate(confidence) if low <= p < high or (i == bins - 1 and p == 1.0)]
        if inside:
            gaps.append(abs(np.mean(correct[inside]) - np.mean(confidence[inside])))
            shares.append(len(inside) / len(confidence))
    return np.dot(gaps, shares), max(gaps)


@pytest.mark.book("4.67", "4.68", name=("wl.decisions.reliability_curve", "wl.decisions.ece", "wl.decisions.mce"))
@given(st.integers(0, 2**32 - 1), st.integers(1, 15), st.integers(1, 30))
def test_measures_against_a_loop(seed, bins, n):
    r = np.random.default_rng(seed)
    confidence, correct = r.random(n), r.random(n) < 0.5
    confidence[0] = 1.0
    curve = decisions.reliability_curve(confidence, correct, bins)
    assert curve.counts.sum() == n
    assert curve.counts[-1] >= 1, "1 is in the last bin"
    assert np.isnan(curve.accuracy[curve.counts == 0]).all()
    expected = loop(confidence, correct, bins)
    found = decisions.ece(confidence, correct, bins), decisions.mce(confidence, correct, bins)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert 0 <= found[0] <= found[1] + 1e-12 <= 1 + 1e-12


@pytest.mark.book("4.67", name="wl.decisions.reliability_diagram")
def test_the_diagram():
    z, y = overconfident()
    svg = decisions.reliability_diagram(special.softmax(z, 1), y, bins=10, title="Test <set>")
    root = ET.fromstring(svg)
    curve = decisions.reliability_curve(special.softmax(z, 1), y)
    lines = list(root.iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(lines) == (curve.counts > 0).sum() + 1
    # bars of an over-confident model end below the diagonal
    used = curve.counts > 30
    assert used.any()
    assert (curve.accuracy[used] < curve.confidence[used]).all()
    assert (curve.edges[0], curve.edges[-1]) == (0, 1)


@pytest.mark.book("4.40", name="wl.decisions.brier_score")
def test_brier_score():
    p = np.array([[0.2, 0.05, 0.75]])
    assert decisions.brier_score(p, [2]).item() == pytest.approx(0.105)
    assert decisions.brier_score(p, [2], reduction="mean").item() == pytest.approx(0.035)
    y = rng.integers(0, 3, size=20)
    assert decisions.brier_score(np.eye(3)[y], y).item() == 0.0
    probs = special.softmax(rng.normal(size=(20, 3)), 1)
    squares = ((probs - np.eye(3)[y]) ** 2).sum(1).mean()
    assert decisions.brier_score(probs, y).item() == pytest.approx(squares)
    b = y > 0
    assert decisions.brier_score(probs[:, 0], b).item() == pytest.approx(sk.brier_score_loss(b, probs[:, 0]))
    pair = np.stack([1 - probs[:, 0], probs[:, 0]], 1)
    assert decisions.brier_score(pair, b.astype(int)).item() == pytest.approx(2 * sk.brier_score_loss(b, probs[:, 0]))
    tensors = wl.asarray(probs), wl.asarray(y)
    np.testing.assert_allclose(wl.jit(decisions.brier_score)(*tensors), squares, rtol=1e-12)
    slope = wl.grad(decisions.brier_score)(*tensors)
    np.testing.assert_allclose(slope, 2 * (probs - np.eye(3)[y]) / 20, atol=1e-14)


@pytest.mark.book("4.69", "B4-36", "B4-37", name="wl.decisions.TemperatureScaler")
def test_temperature_scaling():
    z, y = overconfident()
    nll = lambda t: -special.log_softmax(z / t, 1)[np.arange(len(y)), y].mean()
    scaler = decisions.TemperatureScaler().fit(z, y)
    best = optimize.minimize_scalar(nll, bounds=(0.1, 20), method="bounded", options={"xatol": 1e-10})
    assert scaler.temperature.item() == pytest.approx(best.x, rel=1e-5)
    assert nll(scaler.temperature.item()) <= nll(1.0)
    assert 2 < scaler.temperature.item() < 4.5
    p = scaler.predict_proba(z).numpy()
    np.testing.assert_array_equal(p.argmax(1), z.argmax(1))
    assert decisions.ece(p, y) < decisions.ece(special.softmax(z, 1), y) / 2
    for k in (0.01, 7.0, 25.0):
        scaled = decisions.TemperatureScaler().fit(k * z, y)
        assert scaled.temperature.item() == pytest.approx(k * scaler.temperature.item(), rel=1e-9)
    # logits from which the labels were drawn need no change
    own = decisions.TemperatureScaler().fit(*overconfident(20_000, factor=1.0))
    assert own.temperature.item() == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(wl.jit(lambda s, z: s(z))(scaler, wl.asarray(z)), scaler(z), rtol=1e-12)


def test_temperatures_without_a_minimum():
    z = np.array([[2.0, 0.0], [0.0, 2.0]])
    scaler = decisions.TemperatureScaler()
    with pytest.warns(decisions.CalibrationWarning, match="always right"):
        scaler.fit(z, [0, 1])
    assert scaler.temperature.item() == pytest.approx(0.001)
    with pytest.warns(decisions.CalibrationWarning, match="no use"):
        scaler.fit(z, [1, 0])
    assert scaler.temperature.item() == pytest.approx(1000)
    assert decisions.TemperatureScaler().fit(np.ones((2, 2)), [0, 1]).temperature.item() == 1.0
    huge = decisions.TemperatureScaler().fit([[100.0, 0.0]] * 3, [0, 0, 1])
    assert huge.temperature.item() == pytest.approx(100 / np.log(2)), "confidence 2/3"


def test_platt_scaling():
    s = rng.normal(size=200) * 2
    y = rng.random(200) < special.expit(1.7 * s - 0.4)
    scaler = decisions.PlattScaler().fit(s, y)
    target = np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / ((~y).sum() + 2))
    loss = lambda v: np.mean(np.logaddexp(0, v[0] * s + v[1]) - target * (v[0] * s + v[1]))
    best = optimize.minimize(loss, [0.0, 0.0], tol=1e-12).x
    np.testing.assert_allclose([scaler.scale.item(), scaler.offset.item()], best, atol=1e-5)
    np.testing.assert_allclose(scaler(s), special.expit(best[0] * s + best[1]), atol=1e-5)
    separated = decisions.PlattScaler().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert np.isfinite(separated.scale.item())


def test_isotonic_scaling():
    s = np.round(rng.normal(size=100), 1)
    y = rng.random(100) < special.expit(2 * s)
    ours = decisions.IsotonicScaler().fit(s, y)
    theirs = isotonic.IsotonicRegression(out_of_bounds="clip").fit(s, y)
    at = np.linspace(-4, 4, 101)
    np.testing.assert_allclose(ours(at), theirs.predict(at), atol=1e-10)
    assert np.all(np.diff(ours(at).numpy()) >= 0)


def test_bad_input():
    p, y = np.array([[0.5, 0.5], [0.1, 0.9]]), [0, 1]
    for bad in (p * 2, p - 1, p * np.nan, np.array([[1.5, -0.5], [0.5, 0.5]])):
        for measure in (decisions.ece, decisions.mce, decisions.brier_score, decisions.reliability_curve):
            with pytest.raises(InputError, match="simplex"):
                measure(bad, y)
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        decisions.ece([1.2, 0.5], [True, False])
    with pytest.raises(InputError, match="0 and 1"):
        decisions.ece([0.2, 0.5], [2, 0])
    with pytest.raises(InputError, match="not among the 2"):
        decisions.ece(p, [0, 2])
    with pytest.raises(DTypeError, match="integers"):
        decisions.ece(p, [0.0, 1.0])
    with pytest.raises(ShapeError):
        decisions.ece(p, [0])
    with pytest.raises(ShapeError):
        decisions.ece(np.zeros((0, 2)), np.zeros(0, int))
    with pytest.raises(ShapeError):
        decisions.ece(np.full((1, 2, 2), 0.5), y)
    with pytest.raises(InputError, match="bins"):
        decisions.ece(p, y, bins=0)
    with pytest.raises(InputError, match="reduction"):
        decisions.brier_score(p, y, reduction="none")
    with pytest.raises(ShapeError, match="logits"):
        decisions.TemperatureScaler().fit([1.0, 2.0], y)
    with pytest.raises(InputError, match="not finite"):
        decisions.TemperatureScaler().fit([[np.inf, 0.0], [0.0, 1.0]], y)
    with pytest.raises(InputError, match="bounds"):
        decisions.TemperatureScaler(bounds=(0, 1))
    for scaler in (decisions.PlattScaler(), decisions.IsotonicScaler()):
        with pytest.raises(InputError, match="all labels"):
            scaler.fit([1.0, 2.0], [1, 1])
        with pytest.raises(InputError, match="finite"):
            scaler.fit([1.0, np.nan], [0, 1])
    with pytest.raises(ModuleError, match="not been fitted"):
        decisions.IsotonicScaler()([1.0])
