"""Teacher forcing, scheduled sampling, and everything between them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wonderland as wl
from wonderland import series
from wonderland.errors import InputError, ShapeError

X = np.random.default_rng(0).normal(size=(4, 7, 1))


def step(x, state):
    """A recurrent model by hand: the state is a mean of the past."""
    state = 0.5 * (wl.zeros_like(x) if state is None else state) + x
    return wl.tanh(state), state


def causal(x):
    """The same model for whole sequences."""
    t = x.shape[-2]
    weights = 0.5 ** np.maximum(0, np.arange(t)[:, None] - np.arange(t)) * np.tri(t)
    return wl.tanh(wl.einsum("ij,...jc->...ic", wl.asarray(weights), x))


@pytest.mark.book("8-66", "A5-35", name=("wl.series.unroll", "wl.series.shift_right"))
def test_teacher_forcing_feeds_the_truth():
    fed = []

    def spy(x, state):
        fed.append(np.asarray(x))
        return step(x, state)

    outputs, state = series.unroll(spy, X)
    np.testing.assert_array_equal(np.stack(fed, axis=1), X)
    np.testing.assert_allclose(np.asarray(outputs), np.asarray(causal(wl.asarray(X))), rtol=1e-12)
    assert state.shape == (4, 1)
    inputs = series.shift_right(X, start=-1.0)
    np.testing.assert_array_equal(np.asarray(inputs)[:, 1:], X[:, :-1])
    assert (np.asarray(inputs)[:, 0] == -1).all()
    # the loss does not depend on any draw
    np.testing.assert_array_equal(np.asarray(series.unroll(step, X, key=wl.random.key(1))[0]), np.asarray(outputs))


def test_shifted_tokens_and_vectors():
    tokens = np.arange(6).reshape(2, 3)
    assert series.shift_right(tokens, 9).tolist() == [[9, 0, 1], [9, 3, 4]]
    assert series.shift_right(tokens, np.array([7, 8])).tolist() == [[7, 0, 1], [8, 3, 4]]
    assert series.shift_right(np.zeros((2, 3, 2)), np.array([1.0, 2.0]))[:, 0].tolist() == [[1, 2], [1, 2]]
    with pytest.raises(ShapeError, match="a sequence"):
        series.shift_right(np.zeros(3))


@pytest.mark.book("8-67", name=("wl.series.unroll", "wl.series.scheduled_sampling"))
def test_from_teacher_forcing_to_running_freely():
    free = [step(wl.asarray(X[:, 0]), None)]
    for _ in range(6):
        free.append(step(*free[-1]))
    free = np.stack([np.asarray(y) for y, _ in free], axis=1)
    np.testing.assert_allclose(np.asarray(series.unroll(step, X, p=1.0)[0]), free, rtol=1e-12)
    x = wl.asarray(X)
    np.testing.assert_array_equal(np.asarray(series.scheduled_sampling(causal, x, 0.0)), X)
    mixed = series.scheduled_sampling(causal, x, 1.0, passes=6)
    np.testing.assert_allclose(np.asarray(causal(mixed)), free, rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(mixed)[:, 0], X[:, 0])
    once = series.scheduled_sampling(causal, x, 1.0)
    np.testing.assert_allclose(np.asarray(once)[:, 1:], np.asarray(causal(x))[:, :-1], rtol=1e-12)


def test_whole_sequences_and_single_steps_draw_the_same():
    x = wl.asarray(X)
    key = wl.random.key(5)
    stepwise = np.asarray(series.unroll(step, x, p=0.4, key=key)[0])
    mixed = series.scheduled_sampling(causal, x, 0.4, passes=6, key=key)
    np.testing.assert_allclose(np.asarray(causal(mixed)), stepwise, rtol=1e-10)
    compiled = wl.jit(lambda x, p, key: series.unroll(step, x, p=p, key=key)[0])
    np.testing.assert_allclose(np.asarray(compiled(x, 0.4, key)), stepwise, rtol=1e-10)
    mixed = series.scheduled_sampling(lambda x: wl.full_like(x, 50.0), np.zeros((2000, 5, 1)), 0.4, key=key)
    share = (np.asarray(mixed)[:, 1:] == 50).mean(axis=(0, 2))
    np.testing.assert_allclose(share, 0.4, atol=0.04)


def test_derivatives_with_and_without_what_was_fed():
    x = X[:2, :4]
    for detach in (False, True):
        gradient = wl.grad(lambda x, d=detach: series.unroll(step, x, p=1.0, detach=d)[0][:, -1].sum())(wl.asarray(x))
        reached = np.abs(np.asarray(gradient)).max(axis=(0, 2)) > 0
        assert reached.tolist() == [True, False, False, False]  # through the state, or also through the inputs
    wl.check_grads(lambda x: series.unroll(step, x, p=1.0, detach=False)[0], (x,))
    wl.check_grads(lambda x: series.scheduled_sampling(causal, x, 1.0, passes=2, detach=False), (x,))
    w = wl.tensor(0.5, dtype=wl.float64)
    model = lambda w: series.scheduled_sampling(lambda x: w * x, wl.asarray(x), 1.0).sum()
    assert float(wl.grad(model)(w)) == 0


def test_tokens_are_fed_by_a_function_of_logits():
    table = wl.asarray(np.eye(4)[[1, 2, 3, 0]])  # after token k comes k + 1
    step = lambda token, state: (table[token], state)
    tokens = np.array([[0, 0, 0, 0, 0], [2, 1, 1, 1, 1]])
    logits, _ = series.unroll(step, tokens, wl.zeros(()), p=1.0, feed=lambda y: y.argmax(-1))
    assert logits.argmax(-1).tolist() == [[1, 2, 3, 0, 1], [3, 0, 1, 2, 3]]
    mixed = series.scheduled_sampling(lambda t: table[t], tokens, 1.0, passes=4, feed=lambda y: y.argmax(-1))
    assert mixed.tolist() == [[0, 1, 2, 3, 0], [2, 3, 0, 1, 2]]
    with pytest.raises(ShapeError, match="feed=, a function"):
        series.unroll(step, tokens, wl.zeros(()))
    with pytest.raises(InputError, match="is fed to a model of int64"):
        series.unroll(lambda t, s: (1.0 * t, s), tokens, wl.zeros(()))
    with pytest.raises(InputError, match=r"p is 1\.5"):
        series.unroll(step, tokens, p=1.5)
    with pytest.raises(InputError, match="passes=0"):
        series.scheduled_sampling(causal, X, 0.5, passes=0)


@pytest.mark.book("8-67", name="wl.series.sampling_schedules")
def test_probabilities_grow_from_nothing():
    schedules = series.sampling_schedules
    for p in (schedules.linear(100), schedules.exponential(0.98), schedules.inverse_sigmoid(20.0)):
        values = [p(i) for i in range(0, 2000, 7)]
        assert values[0] == pytest.approx(0, abs=0.05)
        assert all(a <= b for a, b in itertools.pairwise(values))
        assert values[-1] == pytest.approx(1)
        assert float(wl.jit(p)(wl.tensor(50))) == pytest.approx(p(50), rel=1e-5)
    k = 20.0
    assert schedules.inverse_sigmoid(k)(30) == pytest.approx(1 - k / (k + np.exp(30 / k)))
    assert schedules.exponential(0.9)(3) == pytest.approx(1 - 0.9**3)
    assert schedules.linear(10, end=0.25)(99) == 0.25
    for make in (
        lambda: schedules.linear(10, 2.0),
        lambda: schedules.exponential(1.0),
        lambda: schedules.inverse_sigmoid(0),
    ):
        with pytest.raises(InputError):
            make()
