"""Forecasts over several steps."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import series
from wonderland.errors import InputError, ShapeError

rng = np.random.default_rng(0)


@pytest.mark.book("8-53", name=("wl.series.rollout", "wl.series.direct_forecast"))
def test_a_perfect_model_gives_the_closed_form():
    seen = []

    def model(x):
        seen.append(x.shape)
        return 0.9 * x[..., -1, :]

    x = rng.normal(size=(3, 5, 2))
    wanted = x[:, -1:] * 0.9 ** np.arange(1, 7)[:, None]
    np.testing.assert_allclose(np.asarray(series.rollout(model, x, 6)), wanted, rtol=1e-12)
    assert set(seen) == {(3, 5, 2)}  # the window keeps its length
    np.testing.assert_allclose(np.asarray(wl.jit(lambda x: series.rollout(model, x, 6))(x)), wanted, rtol=1e-12)
    direct = [lambda x, h=h: 0.9**h * x[..., -1, :] for h in range(1, 7)]
    np.testing.assert_allclose(np.asarray(series.direct_forecast(direct, x)), wanted, rtol=1e-12)
    whole = lambda x: x[..., -1:, :] * wl.asarray(0.9 ** np.arange(1, 7))[:, None]
    np.testing.assert_allclose(np.asarray(series.direct_forecast(whole, x, 6)), wanted, rtol=1e-12)
    wl.check_grads(lambda x: series.rollout(lambda x: wl.sin(x).sum(-2), x, 3), (x,))


def test_the_oldest_value_leaves_the_window():
    windows = []

    def model(x):
        windows.append(np.asarray(x)[:, 0].tolist())
        return x[0] + 10.0

    y = series.rollout(model, np.array([[1.0], [2.0], [3.0]]), 4)
    assert windows == [[1, 2, 3], [2, 3, 11], [3, 11, 12], [11, 12, 13]]
    assert y[:, 0].tolist() == [11, 12, 13, 21]


def test_errors_of_a_recursive_forecast_add_up():
    wrong = lambda x: 0.8 * x[..., -1, :]
    errors = np.abs(np.asarray(series.rollout(wrong, np.ones((1, 1)), 3))[:, 0] - 0.9 ** np.arange(1, 4))
    assert errors[0] < errors[1] < errors[2]


def test_exogenous_values_come_along():
    known = rng.normal(size=(2, 9, 1))
    x = rng.normal(size=(2, 4, 1))
    y = series.rollout(lambda pair: pair[1][..., -1, :] + 0.0 * pair[0][..., -1, :], x, 5, exogenous=known)
    np.testing.assert_allclose(np.asarray(y), known[:, 4:])
    with pytest.raises(ShapeError, match=r"\(\.\.\., 9, channels\)"):
        series.rollout(lambda pair: pair[0][..., -1, :], x, 5, exogenous=known[:, :8])


def causal(x):
    """An output for every time: a mean of the past that counts recent values more."""
    t = x.shape[-2]
    weights = np.tri(t) / (1.0 + np.maximum(0, np.arange(t)[:, None] - np.arange(t)))
    return wl.sin(wl.einsum("ij,...jc->...ic", wl.asarray(weights), x))


@pytest.mark.book("8-64", "8-65", name="wl.series.causal_rollout")
def test_the_window_fills_up_and_then_slides():
    inputs = []

    def shift(x):  # the prediction at a place is the value there plus one
        inputs.append(np.asarray(x)[:, 0].tolist())
        return x + 1.0

    y = series.causal_rollout(shift, np.array([[1.0], [2.0]]), 4, window=4)
    assert inputs == [[1, 2, 0, 0], [1, 2, 3, 0], [1, 2, 3, 4], [2, 3, 4, 5]]
    assert y[:, 0].tolist() == [3, 4, 5, 6]  # read at place n; at place t it would be 1
    x = rng.normal(size=(3, 2, 2))
    wanted, window = [], x
    for _ in range(5):  # the same, on the prefix without any padding
        window = np.concatenate([window, np.asarray(causal(wl.asarray(window)))[:, -1:]], axis=1)[:, -4:]
        wanted.append(window[:, -1])
    wanted = np.stack(wanted, axis=1)
    np.testing.assert_allclose(np.asarray(series.causal_rollout(causal, x, 5, window=4)), wanted, rtol=1e-12)
    compiled = wl.jit(lambda x: series.causal_rollout(causal, x, 5, window=4))
    np.testing.assert_allclose(np.asarray(compiled(x)), wanted, rtol=1e-12)
    full = rng.normal(size=(3, 4, 2))
    np.testing.assert_allclose(
        np.asarray(series.causal_rollout(causal, full, 5)),
        np.asarray(series.rollout(causal, full, 5, every_step=True)),
        rtol=1e-12,
    )
    long = rng.normal(size=(3, 9, 2))
    np.testing.assert_allclose(
        np.asarray(series.causal_rollout(causal, long, 3, window=4)),
        np.asarray(series.causal_rollout(causal, long[:, -4:], 3)),
        rtol=1e-12,
    )


@pytest.mark.book("8-55", name="wl.series.causal_rollout")
def test_padding_at_the_end_is_not_seen_and_padding_before_is_data():
    sequences = [rng.normal(size=(n, 1)) for n in (4, 2, 3)]
    batch = wl.data.pad_sequence(sequences, batch_first=True, padding_value=7.0)
    together = np.asarray(series.causal_rollout(causal, batch, 6, window=5, lengths=[4, 2, 3]))
    for row, x in zip(together, sequences, strict=True):
        np.testing.assert_allclose(row, np.asarray(series.causal_rollout(causal, x, 6, window=5)), rtol=1e-12)
    mean = lambda x: wl.mean(x, axis=-2)
    left = [series.rollout(mean, np.pad(sequences[1], ((n, 0), (0, 0))), 1) for n in (0, 1, 2)]
    assert len({round(float(y[0, 0]), 9) for y in left}) == 3


def test_bad_forecasts_are_refused():
    x = np.zeros((2, 4, 1))
    with pytest.raises(ShapeError, match="every_step=True"):
        series.rollout(causal, x, 2)
    with pytest.raises(ShapeError, match="an output for every time"):
        series.causal_rollout(lambda x: x[..., -1, :], x, 2)
    with pytest.raises(ShapeError, match="does not continue"):
        series.rollout(lambda x: wl.zeros((2, 3)), x, 2)
    with pytest.raises(ShapeError, match="a context of shape"):
        series.rollout(causal, np.zeros(4), 2)
    with pytest.raises(ShapeError, match="one time or more"):
        series.rollout(causal, np.zeros((2, 0, 1)), 2)
    with pytest.raises(InputError, match="steps=0"):
        series.rollout(causal, x, 0, every_step=True)
    with pytest.raises(InputError, match="a length is 5"):
        series.causal_rollout(causal, x, 2, lengths=[5, 1])
    with pytest.raises(ShapeError, match="one per sequence"):
        series.causal_rollout(causal, x, 2, lengths=[1])
    with pytest.raises(InputError, match="window=3 is shorter"):
        series.causal_rollout(causal, x, 2, window=3, lengths=[1, 2])
    with pytest.raises(InputError, match="2 models, horizon=3"):
        series.direct_forecast([lambda x: x[..., -1, :]] * 2, x, 3)
    with pytest.raises(ShapeError, match="or a list of models"):
        series.direct_forecast(lambda x: x[..., -1, :], x)
