"""What the theory says of mini-batches: cost, mean and variance of their gradients, and where SGD ends."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import data, nn
from wonderland.data.generators import generator

RNG = np.random.default_rng(1)
N = 64
X = RNG.normal(size=(N, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=N)
W = np.array([0.3, 0.1, -0.2])


def loss(w, x, y):
    return ((x @ w - y) ** 2).mean()


def gradient(x, y, w=W):
    return wl.grad(loss)(wl.tensor(w), wl.tensor(x), wl.tensor(y)).numpy()


@pytest.mark.book("5.28", "B5-13", name=("wl.count", "wl.data.DataLoader"))
def test_the_cost_of_a_gradient_grows_with_the_batch_and_not_with_the_data():
    def cost(x, y):
        return wl.count(wl.grad(loss), wl.tensor(W), wl.asarray(x), wl.asarray(y)).multiply_adds

    full = [cost(np.tile(X, (copies, 1)), np.tile(Y, copies)) for copies in (1, 2, 3, 4)]
    assert set(np.diff(full)) == {full[1] - full[0]}  # a straight line in n
    assert full[1] / full[0] == pytest.approx(2, rel=0.01)
    costs = set()
    for copies in (1, 10):
        dataset = data.TensorDataset(np.tile(X, (copies, 1)), np.tile(Y, copies))
        costs.add(cost(*next(iter(data.DataLoader(dataset, 16, shuffle=True)))))
    assert len(costs) == 1
    assert costs.pop() / full[0] == pytest.approx(16 / N, rel=0.01)


@pytest.mark.book("5.29", "A3-36", name="wl.data.DataLoader")
@pytest.mark.parametrize("size", [1, 16, N])
def test_the_mean_of_equal_batches_is_the_full_gradient(size):
    dataset = data.TensorDataset(X, Y)
    parts = [gradient(x.numpy(), y.numpy()) for x, y in data.DataLoader(dataset, size, shuffle=True)]
    assert len(parts) == N // size
    np.testing.assert_allclose(np.mean(parts, axis=0), gradient(X, Y), rtol=1e-10)
    if size == N:  # a single batch is the exact gradient
        np.testing.assert_allclose(parts[0], gradient(X, Y), rtol=1e-10)


@pytest.mark.book("5.30", "A3-38", name=("wl.data.RandomSampler", "wl.vmap"))
def test_gradients_of_batches_are_unbiased_with_variance_one_over_r():
    one = wl.grad(lambda w, x, y: (x @ w - y) ** 2)
    each = wl.vmap(one, in_axes=(None, 0, 0))(wl.tensor(W), wl.tensor(X), wl.tensor(Y)).numpy()  # (n, 3)
    full, spread = each.mean(axis=0), each.var(axis=0).sum()
    np.testing.assert_allclose(full, gradient(X, Y), rtol=1e-10)
    rounds, variances = 20_000, {}
    for r in (1, 4, 16):
        drawn = data.RandomSampler(N, replacement=True, num_samples=rounds * r).order(generator(r)).reshape(rounds, r)
        means = each[drawn].mean(axis=1)
        variances[r] = means.var(axis=0).sum()
        error = np.sqrt(spread / r / rounds)
        assert np.abs(means.mean(axis=0) - full).max() < 4 * error
        np.testing.assert_allclose(variances[r], spread / r, rtol=0.05)
    assert variances[1] / variances[4] == pytest.approx(4, rel=0.05)
    assert variances[4] / variances[16] == pytest.approx(4, rel=0.05)
    slope = np.polyfit(np.log([1, 4, 16]), np.log([variances[r] for r in (1, 4, 16)]), 1)[0]
    assert slope == pytest.approx(-1, abs=0.03)
    # without replacement the variance is smaller by (n - r) / (n - 1)
    shuffled = np.array([data.ShuffleSampler(N).order(generator(0, epoch))[:16] for epoch in range(4000)])
    without = each[shuffled].mean(axis=1).var(axis=0).sum()
    assert without == pytest.approx(spread / 16 * (N - 16) / (N - 1), rel=0.05)


@pytest.mark.book("5.32", name=("wl.optim.SGD", "wl.data.DataLoader"))
def test_sgd_with_the_whole_batch_is_gradient_descent_and_a_falling_rate_converges():
    dataset = data.TensorDataset(X, Y)

    def run(size, epochs, rate):
        model = nn.Linear.from_matrix(W[:, None].copy())
        optimizer = wl.optim.SGD(model, lr=rate(0))
        loader = data.DataLoader(dataset, size, shuffle=True)
        step = wl.jit(lambda model, x, y: wl.grad(lambda m: ((m(x)[:, 0] - y) ** 2).mean())(model))
        count = 0
        for _ in range(epochs):
            for x, y in loader:
                optimizer.lr = rate(count)
                optimizer.step(step(model, x, y))
                count += 1
        return model.weight.numpy()[:, 0]

    w = W.copy()
    for _ in range(5):
        w -= 0.1 * gradient(X, Y, w)
    np.testing.assert_allclose(run(N, 5, lambda step: 0.1), w, rtol=1e-6)
    best = np.linalg.lstsq(X, Y, rcond=None)[0]
    constant = run(8, 30, lambda step: 0.1)
    falling = run(8, 30, lambda step: 0.1 / (1 + step / 20))
    assert np.linalg.norm(falling - best) < 0.02 < np.linalg.norm(constant - best)
