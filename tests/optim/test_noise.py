"""Batches: their gradients are right on average, and scatter as the theory says. Book, section 5.3."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim
from wonderland.errors import InputError, ShapeError
from wonderland.optim import schedules

rng = np.random.default_rng(0)
N = 64
X, Y = rng.normal(size=(N, 3)), rng.normal(size=N)
W = rng.normal(size=3)


def loss_of(w, x, y):
    return ((x @ w - y) ** 2).mean()


EACH = 2 * X * (X @ W - Y)[:, None]  # the gradient of every example, by hand
FULL = EACH.mean(0)
SCATTER = ((EACH - FULL) ** 2).sum(1).mean()


def batch_gradients(size, count, replacement=True):
    """Gradients of `count` random batches."""
    if replacement:
        chosen = rng.integers(N, size=(count, size))
    else:
        chosen = np.argsort(rng.uniform(size=(count, N)), axis=1)[:, :size]
    return EACH[chosen].mean(1)


def data(part=slice(None)):
    return wl.asarray(W), wl.asarray(X[part]), wl.asarray(Y[part])


@pytest.mark.book("5.28", name="wl.count")
def test_the_full_gradient_costs_in_proportion_to_the_data():
    costs = [
        wl.count(wl.grad(loss_of), wl.ones(3), wl.ones((n, 3)), wl.ones(n)).multiply_adds for n in (100, 1000, 10000)
    ]
    np.testing.assert_allclose(np.divide(costs[1:], costs[:-1]), 10, rtol=0.02)


@pytest.mark.book("5.29", "A3-36", name="wl.grad")
@pytest.mark.parametrize("size", [1, 16, N])
def test_the_mean_over_equal_batches_is_the_full_gradient(size):
    parts = [slice(k, k + size) for k in range(0, N, size)]
    found = [wl.grad(loss_of)(*data(part)).numpy() for part in parts]
    np.testing.assert_allclose(np.mean(found, axis=0), FULL, rtol=1e-10)
    if size == N:
        np.testing.assert_allclose(found[0], FULL, rtol=1e-12)


@pytest.mark.book("A3-38", "5.30", name=("wl.optim.per_example_gradients", "wl.optim.gradient_variance"))
def test_batches_are_unbiased_and_their_variance_falls_like_one_over_the_size():
    found = optim.per_example_gradients(loss_of, *data())
    np.testing.assert_allclose(found, EACH, rtol=1e-10)
    variances = []
    for size in (4, 16):
        gradients = batch_gradients(size, 40000)
        error = np.linalg.norm(gradients.mean(0) - FULL)
        expected = optim.gradient_variance(loss_of, *data(), batch_size=size).item()
        np.testing.assert_allclose(expected, SCATTER / size, rtol=1e-10)
        assert error < 4 * np.sqrt(expected / 40000)
        variances.append(((gradients - FULL) ** 2).sum(1).mean())
        np.testing.assert_allclose(variances[-1], expected, rtol=0.05)
    np.testing.assert_allclose(variances[0] / variances[1], 4, rtol=0.05)
    slope = np.log(variances[1] / variances[0]) / np.log(16 / 4)
    np.testing.assert_allclose(slope, -1, atol=0.05)


@pytest.mark.book("A3-38", name="wl.optim.gradient_variance")
def test_without_replacement_the_variance_is_smaller():
    gradients = batch_gradients(16, 20000, replacement=False)
    expected = optim.gradient_variance(loss_of, *data(), batch_size=16, replacement=False).item()
    np.testing.assert_allclose(expected, SCATTER / 16 * (N - 16) / (N - 1), rtol=1e-10)
    np.testing.assert_allclose(((gradients - FULL) ** 2).sum(1).mean(), expected, rtol=0.05)
    assert optim.gradient_variance(loss_of, *data(), batch_size=N, replacement=False).item() == 0.0


@pytest.mark.book("A3-39", name="wl.optim.gradient_variance")
def test_small_batches_are_noisy():
    signal = float((FULL**2).sum())
    noise = [optim.gradient_variance(loss_of, *data(), batch_size=b).item() for b in (1, 8, 4096)]
    assert noise[0] > signal > noise[2]
    np.testing.assert_allclose(noise[0] / noise[1], 8)


@pytest.mark.book("A3-41", name=("wl.nn.functional.mse_loss", "wl.optim.gradient_variance"))
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_length_and_variance_of_steps(reduction):
    """The twelve cells of the table: the factors on the length of the mean step, and on the variance of a gradient."""
    table = {
        "mean": {(2, 1): (2, 1), (1, 2): (1, 0.5), (2, 0.5): (2, 2)},
        "sum": {(2, 1): (2, 1), (1, 2): (2, 2), (2, 0.5): (1, 0.5)},
    }[reduction]

    @wl.jit
    def gradients(w, x, y):
        def loss(w, x, y):
            return nn.functional.mse_loss(x @ w, y, reduction=reduction)

        return wl.vmap(wl.grad(loss), in_axes=(None, 0, 0))(w, x, y)

    def measure(rate, size):
        chosen = rng.integers(N, size=(8000, size))
        found = gradients(wl.asarray(W), wl.asarray(X[chosen]), wl.asarray(Y[chosen])).numpy()
        return np.linalg.norm(rate * found.mean(0)), found.var(0).sum()

    length, variance = measure(0.1, 8)
    for (rate, size), expected in table.items():
        found = measure(0.1 * rate, int(8 * size))
        np.testing.assert_allclose(np.divide(found, (length, variance)), expected, rtol=0.12)


@pytest.mark.book("A3-40", name="wl.optim.SGD")
def test_a_high_rate_amplifies_noise_and_a_low_one_averages_it():
    def spread(lr):
        w = nn.Parameter(np.zeros(4000))  # as many independent runs on x^2 / 2 with noise of variance 1
        optimizer = optim.SGD([w], lr=lr)
        for _ in range(int(6 / lr)):
            optimizer.step([w.value + wl.asarray(rng.normal(size=4000))])
        return w.numpy().var()

    for lr in (0.1, 0.5, 1.5):
        np.testing.assert_allclose(spread(lr), lr / (2 - lr), rtol=0.15)


@pytest.mark.book("5.32", name="wl.optim.SGD")
def test_sgd_is_descent_on_batches():
    whole = wl.asarray(X), wl.asarray(Y)
    w = nn.Parameter(np.zeros(3))
    optimizer = optim.SGD([w], lr=0.1)
    for _ in range(5):
        optimizer.step([wl.grad(loss_of)(w.value, *whole)])  # batches of everything
    path = optim.gradient_descent(lambda w: loss_of(w, *whole), np.zeros(3), lr=0.1, steps=5)
    np.testing.assert_allclose(w, path[-1], rtol=1e-12)
    solution = np.linalg.lstsq(X, Y, rcond=None)[0]
    noisy = X @ solution + 0.01 * Y
    target = np.linalg.lstsq(X, noisy, rcond=None)[0]
    rate = schedules.inverse_sqrt(0.1, 20)

    @wl.jit
    def step(w, optimizer, x, y):
        optimizer.lr = rate(optimizer.count)
        optimizer.step([wl.grad(loss_of)(wl.asarray(w), x, y)])

    v = nn.Parameter(np.zeros(3))
    optimizer = optim.SGD([v], lr=0.1)
    for _ in range(1500):
        part = rng.integers(N, size=8)
        step(v, optimizer, wl.asarray(X[part]), wl.asarray(noisy[part]))
    np.testing.assert_allclose(v, target, atol=0.01)


def test_bad_input():
    with pytest.raises(ShapeError, match="same first axis"):
        optim.per_example_gradients(loss_of, wl.asarray(W), wl.asarray(X), wl.asarray(Y[:3]))
    with pytest.raises(InputError, match="a batch of 65 from 64"):
        optim.gradient_variance(loss_of, *data(), batch_size=65, replacement=False)
    with pytest.raises(InputError, match="batch_size=0"):
        optim.gradient_variance(loss_of, *data(), batch_size=0)
    with pytest.raises(InputError, match="nothing to differentiate"):
        optim.gradient_variance(
            lambda m, x: m(x).mean(), nn.Linear(3, 1).freeze().astype(wl.float64), wl.asarray(X), batch_size=1
        )
