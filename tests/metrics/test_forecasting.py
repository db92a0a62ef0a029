"""Scaled and symmetric errors of forecasts."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, ShapeError


def test_symmetric_percentage_error():
    rng = np.random.default_rng(0)
    p, y = rng.normal(size=(2, 6, 3))
    metric = wl.metrics.SymmetricMAPE()
    wanted = np.mean([200 * abs(a - b) / (abs(a) + abs(b)) for a, b in zip(p.ravel(), y.ravel(), strict=True)])
    assert metric(p, y) == pytest.approx(wanted)
    metric.update(p[:2], y[:2])
    metric.update(p[2:], y[2:])
    assert metric.compute() == pytest.approx(wanted)
    assert metric(np.zeros(2), np.zeros(2)) == 0
    assert metric(np.ones(2), -np.ones(2)) == 200
    assert metric.name == "smape"


def test_scaled_error_of_the_naive_forecast_is_one():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200).cumsum()
    for period in (1, 7):
        metric = wl.metrics.MeanAbsoluteScaledError(x, period)
        assert metric(x[:-period], x[period:]) == pytest.approx(1.0)
        assert metric(1e3 * x[:-period], 1e3 * x[period:]) == pytest.approx(1e3 * metric(x[:-period], x[period:]))
    two = np.stack([x, 100 * x], axis=1)  # each channel has its own scale
    assert wl.metrics.MeanAbsoluteScaledError(two)(two[:-1], two[1:]) == pytest.approx(1.0)


def test_bad_series_are_refused():
    with pytest.raises(ShapeError, match="longer than the period"):
        wl.metrics.MeanAbsoluteScaledError(np.arange(3.0), 3)
    with pytest.raises(InputError, match="repeats itself exactly"):
        wl.metrics.MeanAbsoluteScaledError(np.ones(5))
    with pytest.raises(ShapeError, match="channels last"):
        wl.metrics.MeanAbsoluteScaledError(np.random.default_rng(0).normal(size=(9, 2)))(
            np.ones((4, 3)), np.ones((4, 3))
        )
