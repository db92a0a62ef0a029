"""Generalised linear models against scikit-learn, SciPy and their special cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn import linear_model as sk

import wonderland as wl
from wonderland import models
from wonderland.errors import InputError
from wonderland.models.classical.glm import LINKS

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
S = X @ [0.8, -0.5] + 0.3


@pytest.mark.book("A2-01", name="wl.models.GLM")
def test_special_cases():
    y = S + 0.2 * rng.normal(size=80)
    identity = models.GLM("identity").fit(X, y)
    regression = models.LinearRegression().fit(X, y)
    np.testing.assert_allclose(identity.weight, regression.weight, atol=1e-9)
    np.testing.assert_allclose(identity(X), regression(X), atol=1e-9)
    b = (rng.random(80) < special.expit(S)).astype(int)
    logit, logistic = models.GLM("logit").fit(X, b), models.BinaryLogisticRegression().fit(X, b)
    np.testing.assert_allclose(logit.weight, logistic.weight, atol=1e-7)
    np.testing.assert_allclose(logit.predict(X), logistic.predict_proba(X)[:, 1], atol=1e-7)
    np.testing.assert_allclose(logit.decision_function(X), wl.logit(logit.predict(X)), atol=1e-9)
    assert logit.predict(X).shape == (80,)


@pytest.mark.book("A2-01", name="wl.models.GLM")
def test_poisson_and_probit_regression():
    counts = rng.poisson(np.exp(S))
    theirs = sk.PoissonRegressor(alpha=0.01, tol=1e-12, max_iter=1000).fit(X, counts)
    ours = models.GLM("log", l2=0.01).fit(X, counts)
    np.testing.assert_allclose(ours.weight, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4)
    b = (S + rng.normal(size=80) > 0).astype(float)

    def loss(v):
        s = X @ v[:2] + v[2]
        return -(b * stats.norm.logcdf(s) + (1 - b) * stats.norm.logcdf(-s)).mean()

    best = optimize.minimize(loss, np.zeros(3), tol=1e-12).x
    probit = models.GLM("probit").fit(X, b)
    np.testing.assert_allclose(np.r_[probit.weight.numpy(), probit.bias.numpy()], best, atol=1e-5)


@pytest.mark.book("4.57", name=("wl.models.GLM", "wl.models.probit"))
@pytest.mark.parametrize("name", LINKS)
def test_links_undo_means(name):
    s = wl.asarray(np.linspace(-4, 4, 33))
    np.testing.assert_allclose(LINKS[name].link(LINKS[name].mean(s)), s, atol=1e-9)
    # the mean is what makes the loss least, on average: its derivative vanishes where y is the mean
    y = LINKS[name].mean(s)
    np.testing.assert_allclose(wl.grad(lambda s: LINKS[name].loss(s, y).sum())(s), 0, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_normal_distribution_function(dtype):
    s = np.r_[np.linspace(-60, 8, 200), -25.0, -10.0].astype(dtype)
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    exact = special.log_ndtr(s.astype(np.float64))
    t = wl.asarray(s)
    np.testing.assert_allclose(models.log_normal_cdf(t), exact, rtol=tolerance)
    np.testing.assert_allclose(models.normal_cdf(t)[150:], special.ndtr(s[150:]), rtol=1e-4)
    if dtype == np.float64:
        slope = wl.grad(lambda s: models.log_normal_cdf(s).sum())(t)
        np.testing.assert_allclose(slope, np.exp(stats.norm.logpdf(s) - exact), rtol=1e-9)
        np.testing.assert_allclose(wl.jit(models.log_normal_cdf)(t), exact, rtol=1e-11)


def test_other_functions_and_losses():
    y = np.tanh(S)
    model = models.GLM(wl.tanh).fit(X, y)
    np.testing.assert_allclose(model.weight, [0.8, -0.5], atol=1e-5)
    absolute = models.GLM("identity", loss=lambda p, y: wl.nn.functional.huber_loss(p, y, reduction="none"))
    outlier = np.where(np.arange(80) == 0, 1e3, S)
    np.testing.assert_allclose(absolute.fit(X, outlier).weight, [0.8, -0.5], atol=0.05)
    descended = models.GLM("logit").fit(X, special.expit(S), "gradient", lr=2.0, max_iter=5000)
    np.testing.assert_allclose(descended.weight, [0.8, -0.5], atol=1e-5)


def test_bad_arguments():
    with pytest.raises(InputError, match="phi='cloglog'"):
        models.GLM("cloglog")
    with pytest.raises(InputError, match="phi is a int"):
        models.GLM(3)
    with pytest.raises(InputError, match="l2"):
        models.GLM(l2=-1)
    with pytest.raises(InputError, match="from 0 to 1"):
        models.GLM("logit").fit(X, S)
    with pytest.raises(InputError, match="from 0 to inf"):
        models.GLM("log").fit(X, -np.ones(80))
    with pytest.raises(InputError, match="method"):
        models.GLM().fit(X, S, "magic")
