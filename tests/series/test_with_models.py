"""A forecaster from end to end: windows, a causal loss, and forecasts that beat the baselines."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import series


@pytest.mark.book("8-09", "8-48", "8-62", "8-63", "8-66", name=("wl.series.sequence_loss", "wl.series.causal_rollout"))
def test_a_causal_forecaster_beats_the_naive_forecast():
    x = series.make_sines(300, periods=(12.0,), noise=0.02)
    train, test = series.forecast_split(x, 24, test_size=0.25, every_step=True)
    model = wl.models.CausalConvNet(1, 1, channels=8, dilations=(1, 2), key=wl.random.key(0))
    optimizer = wl.optim.Adam(model, lr=0.02)
    step = wl.jit(wl.value_and_grad(lambda model, x, y: series.sequence_loss(model(x), y)))
    inputs, targets = train.__getitems__(np.arange(0, len(train), 13))
    for _ in range(100):
        _, gradients = step(model, inputs, targets)
        optimizer.step(gradients)
    inputs, targets = (wl.asarray(part) for part in test.__getitems__(np.arange(0, len(test), 5)))
    error = float(series.sequence_loss(model(inputs), targets))
    assert error < float(series.sequence_loss(inputs, targets)) / 4  # the naive forecast is the input
    # what follows the last value to learn from, a quarter of a period: better than to repeat that value
    context, truth = x[201:225], x[225:228]
    forecast = np.asarray(series.causal_rollout(model, context, 3))
    mase = wl.metrics.MeanAbsoluteScaledError(x[:225])
    assert mase(forecast, truth) < mase(np.asarray(series.naive(context, 3)), truth) / 2


def test_steps_of_a_model_and_whole_sequences_agree():
    model = wl.models.CausalConvNet(2, 2, channels=4, dilations=(1, 2), key=wl.random.key(1))
    x = wl.random.normal((3, 6, 2), key=wl.random.key(2))
    np.testing.assert_allclose(np.asarray(series.unroll(model.step, x)[0]), np.asarray(model(x)), atol=1e-5)
    free = series.unroll(model.step, x, p=1.0)[0]
    mixed = series.scheduled_sampling(model, x, 1.0, passes=5)
    np.testing.assert_allclose(np.asarray(model(mixed)), np.asarray(free), atol=1e-5)
    ahead = series.causal_rollout(model, x[:, :1], 5, window=6)
    np.testing.assert_allclose(np.asarray(ahead), np.asarray(free)[:, :5], atol=1e-5)
