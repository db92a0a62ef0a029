"""Echo state networks: a reservoir that stays as it is, a read-out in closed form, forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import models, nn, series
from wonderland.errors import InputError, ShapeError


def network(*args: Any, **settings: Any) -> models.EchoStateNetwork:
    return models.EchoStateNetwork(*args, **({"key": wl.random.key(0)} | settings))


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def test_it_computes_what_a_loop_computes() -> None:
    for skip in (False, True):
        model = network(2, 7, 3, leak=0.3, skip=skip, bias_scale=0.5)
        x = numbers(2, 6, 2)
        A, B, b, W, c = (np.asarray(t) for t in (model.A, model.B, model.b, model.readout.weight, model.readout.bias))
        s, wanted = np.zeros((2, 7)), []
        for i in range(6):
            s = 0.7 * s + 0.3 * np.tanh(s @ A + x[:, i] @ B + b)
            wanted.append((np.concatenate([s, x[:, i]], axis=-1) if skip else s) @ W + c)
        np.testing.assert_allclose(model(x), np.stack(wanted, axis=1), rtol=1e-4, atol=1e-5)
        assert model.num_parameters() == (7 + 2 * skip + 1) * 3
        np.testing.assert_allclose(model.states(x)[:, -1], s, atol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_it_keeps_every_promise_of_a_layer_with_a_state(compiled: bool) -> None:
    nn.assert_sequence_layer(network(4, 9, 3, leak=0.5, skip=True), numbers(3, 6, 4), compiled=compiled)


@pytest.mark.book("13.21", name="wl.models.EchoStateNetwork")
@pytest.mark.parametrize("radius", [0.0, 0.5, 0.95, 1.3])
@pytest.mark.parametrize("sparsity", [0.0, 0.8])
def test_the_reservoir_is_as_asked(radius: float, sparsity: float) -> None:
    model = network(2, 80, spectral_radius=radius, sparsity=sparsity)
    A = np.asarray(model.A, np.float64)
    assert np.abs(np.linalg.eigvals(A)).max() == pytest.approx(radius, rel=1e-4, abs=1e-12)
    if radius:
        assert (A == 0).mean() == pytest.approx(sparsity, abs=0.03)
    same = network(2, 80, spectral_radius=radius, sparsity=sparsity)
    np.testing.assert_array_equal(same.A, model.A)  # by its key


@pytest.mark.book("13.21", name="wl.models.EchoStateNetwork")
def test_only_the_read_out_is_trained_by_descent_and_in_closed_form() -> None:
    u, y = series.make_narma(400)
    model = network(1, 30, 1, washout=50)
    before = {name: np.asarray(t).copy() for name, t in model.state_dict().items()}
    assert sorted(name for name, p in model.named_parameters() if p.trainable) == ["readout.bias", "readout.weight"]
    assert set(wl.grad(lambda m: m(u).sum())(model)) == {"readout.bias", "readout.weight"}
    model.fit(u, y)
    closed = float(((model(u) - y)[50:] ** 2).mean())
    # the normal equations hold: residuals are orthogonal to the states, up to the penalty
    X = np.c_[np.asarray(model.states(u), np.float64)[50:], np.ones(350)]
    w = np.r_[np.asarray(model.readout.weight), np.asarray(model.readout.bias)[None]].astype(np.float64)
    wanted = np.linalg.solve(X.T @ X + 1e-6 * np.diag([1.0] * 30 + [0.0]), X.T @ y[50:])
    np.testing.assert_allclose(X @ w, X @ wanted, atol=1e-3)
    # by descent it comes near
    other = network(1, 30, 1)
    wl.train.fit(other, "mse_loss", (u[None], y[None]), epochs=300, lr=0.02, progress=False)
    descended = float(((other(u) - y)[50:] ** 2).mean())
    assert closed <= descended < 2 * y[50:].var()
    assert descended < 0.5 * float(((network(1, 30, 1)(u) - y)[50:] ** 2).mean())
    for fitted in (model, other):
        for name in ("A", "B", "b"):
            np.testing.assert_array_equal(np.asarray(fitted.state_dict()[name]), before[name])
        assert not np.array_equal(np.asarray(fitted.readout.weight), before["readout.weight"])


@pytest.mark.book("13.21", name=["wl.models.EchoStateNetwork", "wl.series.make_narma"])
def test_forecasts_beat_the_naive_one() -> None:
    x = series.make_sines(600, [25])
    found = network(1, 100).fit(x[:500]).forecast(x[:500], 100)
    naive = np.asarray(series.naive(wl.tensor(x[:500]), 100))
    assert np.abs(np.asarray(found) - x[500:]).max() < 1e-3
    assert ((np.asarray(found) - x[500:]) ** 2).mean() < 1e-5 * ((naive - x[500:]) ** 2).mean()
    u, y = series.make_narma(1500)
    predicted = np.asarray(network(1, 100, 1).fit(u[:1000], y[:1000])(u))[1000:]
    error, last = ((predicted - y[1000:]) ** 2).mean(), ((y[999:-1] - y[1000:]) ** 2).mean()
    assert error < 0.25 * last  # the last value
    assert error < 0.25 * y[1000:].var()  # the mean


def test_forecasts_are_those_of_a_loop_and_of_many_series() -> None:
    model = network(2, 20)
    x = numbers(3, 8, 2)
    found = np.asarray(model.forecast(x, 4))
    y, cache = model.extend(wl.tensor(x))
    now = y[:, -1]
    for i in range(4):
        np.testing.assert_allclose(found[:, i], now, rtol=1e-4, atol=1e-5)
        now, cache = model.step(now, cache)
    np.testing.assert_allclose(model.forecast(x[1], 4), found[1], rtol=1e-4, atol=1e-5)
    assert model.forecast(x, 1).shape == (3, 1, 2)


def test_states_forget_where_they_began() -> None:
    """The echo state property, which the washout is for; the more so the smaller the radius."""
    x = numbers(1, 60, 1)
    far = {}
    for radius in (0.3, 0.9):
        model = network(1, 40, spectral_radius=radius)
        _, zero = model.extend(wl.tensor(x))
        cache = nn.StateCache(1, s=wl.ones((1, 40)))
        _, one = model.extend(wl.tensor(x), cache)
        far[radius] = np.abs(np.asarray(zero.state["s"]) - np.asarray(one.state["s"])).max()
    assert far[0.3] < 1e-6
    assert far[0.3] < far[0.9] < 0.1


def test_lengths_and_several_series_in_fit() -> None:
    x, y = numbers(3, 40, 2), numbers(3, 40, 1, seed=1)
    lengths = [40, 25, 30]
    padded = np.where((np.arange(40) < np.array(lengths)[:, None])[..., None], x, np.nan)
    model = network(2, 10, 1, washout=5).fit(padded, y, lengths=lengths)
    X = np.concatenate([np.asarray(model.states(x[i, :n]), np.float64)[5:] for i, n in enumerate(lengths)])
    Y = np.concatenate([y[i, 5:n] for i, n in enumerate(lengths)]).astype(np.float64)
    design = np.c_[X, np.ones(len(X))]
    wanted = np.linalg.solve(design.T @ design + 1e-6 * np.diag([1.0] * 10 + [0.0]), design.T @ Y)
    np.testing.assert_allclose(model.readout.weight, wanted[:-1], rtol=1e-2, atol=1e-3)


def test_narma_follows_its_formula() -> None:
    u, y = series.make_narma(100, order=10, seed=3, dtype=np.float64)
    for t in range(10, 99):
        wanted = 0.3 * y[t] + 0.05 * y[t] * y[t - 9 : t + 1].sum() + 1.5 * u[t - 9] * u[t] + 0.1
        assert y[t + 1] == pytest.approx(wanted)
    assert 0 <= u.min() < u.max() < 0.5
    np.testing.assert_array_equal(series.make_narma(100, seed=3)[1], y.astype(np.float32))
    with pytest.raises(InputError, match="order=30"):
        series.make_narma(100, order=30)


def test_bad_input() -> None:
    for what in ({"sparsity": 1.5}, {"leak": 0.0}, {"spectral_radius": -1.0}, {"washout": -1}):
        with pytest.raises(InputError, match=next(iter(what))):
            network(1, 10, **what)
    with pytest.raises(InputError, match="all eigenvalues of a reservoir of 4 units are 0"):
        network(1, 4, sparsity=1.0)
    model = network(2, 10, 1)
    with pytest.raises(InputError, match="50 steps, of which 100 are washed out"):
        model.fit(numbers(50, 2), numbers(50, 1))
    with pytest.raises(ShapeError, match=r"targets of shape \(40, 1\)"):
        model.fit(numbers(50, 2), numbers(40, 1))
    with pytest.raises(InputError, match="1 results for 2 inputs"):
        model.forecast(numbers(50, 2), 3)
    with pytest.raises(InputError, match="lengths without y"):
        network(1, 10).fit(numbers(2, 50, 1), lengths=[3, 4])
    with pytest.raises(ShapeError, match="one step or more"):
        network(1, 10).forecast(wl.zeros((0, 1)))
