"""Regression with a predicted variance, against SciPy and least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

import wonderland as wl
from wonderland import models
from wonderland.errors import ModuleError, ShapeError

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(200, 1))
Y = 2 * X[:, 0] - 1 + np.exp(0.8 * X[:, 0] - 0.5) * rng.normal(size=200)


@pytest.mark.book("4.27", name="wl.models.HeteroscedasticRegression")
def test_both_heads_have_the_greatest_likelihood():
    model = models.HeteroscedasticRegression().fit(X, Y)

    def loss(v):
        return -stats.norm.logpdf(Y, v[0] * X[:, 0] + v[1], np.exp(0.5 * (v[2] * X[:, 0] + v[3]))).mean()

    best = optimize.minimize(loss, np.zeros(4), tol=1e-10)
    found = [model.mean.weight, model.mean.bias, model.log_variance.weight, model.log_variance.bias]
    np.testing.assert_allclose(np.concatenate([np.atleast_1d(v.numpy()) for v in found]), best.x, atol=1e-4)
    assert model.nll(X, Y).item() == pytest.approx(best.fun, abs=1e-8)
    plain = models.LinearRegression().fit(X, Y)
    constant = -stats.norm.logpdf(Y, plain.predict(X).numpy(), np.sqrt(plain.sigma2.item())).mean()
    assert model.nll(X, Y).item() < constant - 0.05
    scale = model.predict_scale(np.array([[-1.0], [1.0]])).numpy()
    np.testing.assert_allclose(np.log(scale), [-1.3, 0.3], atol=0.3)
    assert 0 < model.score(X, Y) < 1
    assert model.predict(X).shape == (200,)


def test_the_gradient_weighs_errors_by_their_variance():
    model = models.HeteroscedasticRegression().fit(X, Y)
    mean, variance = model(X)
    slope = wl.grad(lambda m: m.nll(X, Y))(model)
    expected = (-(Y - mean.detach().numpy()) / variance.detach().numpy()).mean()
    np.testing.assert_allclose(slope["mean.bias"], expected, atol=1e-10)
    assert abs(expected) < 1e-6, "it was fitted"


def test_bad_data():
    model = models.HeteroscedasticRegression()
    with pytest.raises(ModuleError, match="not been fitted"):
        model.predict(X)
    with pytest.raises(ShapeError, match="one target"):
        model.fit(X, Y[:, None])
