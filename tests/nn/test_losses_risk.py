"""Losses over data: empirical and expected risk."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, ShapeError

F = wl.nn.functional
rng = np.random.default_rng(4)
X, Y = rng.normal(size=(10, 2)), rng.normal(size=10)


def model(x):
    return x @ wl.asarray(np.array([1.0, -2.0]))


@pytest.mark.book("3.15", "A3-01", "A3-02", name="wl.nn.functional.risk")
def test_risk_over_uneven_batches_is_the_mean_over_all():
    batches = [(wl.asarray(X[i:j]), wl.asarray(Y[i:j])) for i, j in ((0, 4), (4, 8), (8, 10))]
    whole = np.mean((X @ [1.0, -2.0] - Y) ** 2)
    assert F.risk(model, F.mse_loss, batches) == pytest.approx(whole, rel=1e-12)
    assert F.risk(model, wl.nn.MSELoss(reduction="none"), batches) == pytest.approx(whole, rel=1e-12)
    equal = [F.risk(model, F.mse_loss, batches[i : i + 1]) for i in (0, 1)]
    assert F.risk(model, F.mse_loss, batches[:2]) == pytest.approx(np.mean(equal), rel=1e-12)
    cost = F.risk(model, F.mse_loss, batches, regularizer=lambda model: 0.1 * 5.0)
    assert cost == pytest.approx(whole + 0.5, rel=1e-12)
    with pytest.raises(ShapeError, match="no axes"):
        F.risk(model, F.mse_loss, [(wl.asarray(X[0]), wl.asarray(Y[0]))])
    with pytest.raises(InputError, match="no examples"):
        F.risk(model, F.mse_loss, [])


@pytest.mark.book("3.22", name="wl.nn.functional.expected_risk_mc")
def test_expected_risk_of_the_true_model_is_the_noise():
    def sampler(n, key):
        first, second = wl.random.split(key)
        x = wl.random.normal((n,), key=first, dtype=wl.float64)
        return x, 3 * x + 0.5 * wl.random.normal((n,), key=second, dtype=wl.float64)

    loss = wl.nn.MSELoss(reduction="none")
    errors = []
    for n in (400, 40000):
        found = F.expected_risk_mc(sampler, lambda x: 3 * x, loss, n, wl.random.key(0))
        assert abs(found.value.item() - 0.25) < 4 * found.standard_error.item()
        errors.append(found.standard_error.item())
    assert errors[0] / errors[1] == pytest.approx(10.0, rel=0.2)  # the root of 100
    with pytest.raises(ShapeError, match="reduction"):
        F.expected_risk_mc(sampler, lambda x: 3 * x, F.mse_loss, 10, wl.random.key(0))


@pytest.mark.book("3.23", "B3-12", name="wl.nn.functional.generalization_gap")
def test_learning_by_heart_generalises_badly():
    train_x, test_x = rng.normal(size=(2, 30))
    train_y, test_y = (2 * x + rng.normal(size=30) for x in (train_x, test_x))
    slope = (train_x @ train_y) / (train_x @ train_x)
    known = dict(zip(train_x, train_y, strict=True))

    def memoriser(x):
        return wl.asarray(np.array([known.get(v, 0.0) for v in x.numpy()]))

    train, test = [(wl.asarray(train_x), wl.asarray(train_y))], [(wl.asarray(test_x), wl.asarray(test_y))]
    assert F.risk(memoriser, F.mse_loss, train) == 0.0
    gaps = [F.generalization_gap(f, F.mse_loss, train, test) for f in (memoriser, lambda x: slope * x)]
    assert gaps[0] > 2 * abs(gaps[1])
