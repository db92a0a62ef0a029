"""Fits by maximum likelihood, in closed form and by derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import wonderland as wl
from wonderland import distributions as d
from wonderland.errors import InputError, ShapeError

rng = np.random.default_rng(0)


@pytest.mark.book("A.21", name="wl.distributions.fit_mle")
def test_coins():
    tosses = np.array([1.0] * 7 + [0.0] * 3)
    for method in ("closed", "gradient"):
        assert d.fit_mle(d.Bernoulli, tosses, method).probs.item() == pytest.approx(0.7, rel=1e-9)
    sure = d.fit_mle(d.Bernoulli, np.ones(5))
    assert sure.probs.item() == 1.0
    assert sure.log_prob(1).item() == 0.0  # no ln 0
    with pytest.raises(InputError, match="an outcome"):
        d.fit_mle(d.Bernoulli, np.array([0.0, 0.5]))


@pytest.mark.book("A.22", "A.23", "A.24", name=("wl.distributions.fit_mle", "wl.var"))
def test_normal_data():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    fitted = d.fit_mle(d.Normal, x)
    assert [fitted.mean.item(), fitted.variance.item()] == [pytest.approx(2.5), pytest.approx(1.25)]
    assert wl.var(wl.asarray(x)).item() == pytest.approx(1.25)  # as in NumPy the default divides by n
    assert wl.var(wl.asarray(x), correction=1).item() == pytest.approx(1.666667, abs=5e-7)
    ratio = wl.var(wl.asarray(x), correction=1) / wl.var(wl.asarray(x))
    assert ratio.item() == pytest.approx(4 / 3)
    mu, s2 = 1.7, 0.8
    total = wl.sum(d.Normal.from_variance(mu, s2).log_prob(x)).item()
    assert total == pytest.approx(-2 * np.log(2 * np.pi * s2) - np.sum((x - mu) ** 2) / (2 * s2), rel=1e-5)
    with pytest.raises(InputError, match="variance of the data"):
        d.fit_mle(d.Normal, np.ones(3))


@pytest.mark.book("A.20", name="wl.distributions.fit_mle")
def test_derivatives_find_the_closed_form():
    x = rng.gamma(2.0, 1.5, size=80)
    for family in (d.Normal, d.LogNormal, d.Exponential):
        closed, descended = (d.fit_mle(family, x, method) for method in ("closed", "gradient"))
        for name in family.parameters:
            np.testing.assert_allclose(getattr(descended, name), getattr(closed, name), rtol=1e-7)
    counts = rng.poisson(3.0, 50)
    np.testing.assert_allclose(d.fit_mle(d.Poisson, counts, "gradient").rate, counts.mean(), rtol=1e-8)
    classes = rng.integers(0, 3, 60)
    expected = np.bincount(classes) / 60
    for method in ("closed", "gradient"):
        np.testing.assert_allclose(d.fit_mle(d.Categorical, classes, method).probs, expected, rtol=1e-6)
    np.testing.assert_allclose(d.fit_mle(d.Categorical, np.eye(3)[classes]).probs, expected, rtol=1e-6)


def test_against_scipy():
    x = rng.gamma(2.0, 1.5, size=100)
    shape, _, scale = stats.gamma.fit(x, floc=0)
    fitted = d.fit_mle(d.Gamma, x)
    np.testing.assert_allclose([fitted.concentration.item(), 1 / fitted.rate.item()], [shape, scale], rtol=1e-4)
    u = rng.beta(2.0, 5.0, size=100)
    a, b, _, _ = stats.beta.fit(u, floc=0, fscale=1)
    fitted = d.fit_mle(d.Beta, u)
    np.testing.assert_allclose([fitted.concentration1.item(), fitted.concentration0.item()], [a, b], rtol=1e-4)
    y = stats.t(4).rvs(200, random_state=0)
    ours, theirs = d.fit_mle(d.StudentT, y), stats.t(*stats.t.fit(y))
    assert wl.sum(ours.log_prob(y)).item() >= theirs.logpdf(y).sum() - 1e-4
    z = stats.cauchy(2.0, 0.5).rvs(200, random_state=0)
    ours, theirs = d.fit_mle(d.Cauchy, z), stats.cauchy(*stats.cauchy.fit(z))
    assert wl.sum(ours.log_prob(z)).item() >= theirs.logpdf(z).sum() - 1e-4
    v = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3))
    fitted = d.fit_mle(d.MultivariateNormal, v)
    np.testing.assert_allclose(fitted.mean, v.mean(0), rtol=1e-10)
    np.testing.assert_allclose(fitted.covariance_matrix, np.cov(v.T, bias=True), rtol=1e-8)
    laplace = d.fit_mle(d.Laplace, x)
    np.testing.assert_allclose([laplace.loc.item(), laplace.scale.item()], stats.laplace.fit(x), rtol=1e-10)
    uniform = d.fit_mle(d.Uniform, x)
    assert np.isfinite(uniform.log_prob(x).numpy()).all()
    np.testing.assert_allclose([uniform.low.item(), uniform.high.item()], [x.min(), x.max()], rtol=1e-10)
    assert d.fit_mle(d.Delta, np.full(3, 2.0)).value.item() == 2.0


def test_a_family_of_ones_own():
    x = rng.normal(3.0, 0.5, 40)
    fitted = d.fit_mle(lambda w: d.Normal(w[0], 0.5), x, start=[0.0])
    np.testing.assert_allclose(fitted.loc, x.mean(), rtol=1e-9)


def test_data_that_do_not_fit():
    with pytest.raises(ShapeError, match="no examples"):
        d.fit_mle(d.Normal, np.zeros(0))
    with pytest.raises(InputError, match="finite"):
        d.fit_mle(d.Normal, np.array([1.0, np.nan]))
    with pytest.raises(InputError, match="method='exact'"):
        d.fit_mle(d.Normal, np.ones(3), "exact")
    with pytest.raises(InputError, match="no formula for Gamma"):
        d.fit_mle(d.Gamma, np.ones(3), "closed")
    with pytest.raises(InputError, match="no free parameters"):
        d.fit_mle(d.Dirichlet, np.ones((3, 2)) / 2)
    with pytest.raises(InputError, match="no likelihood"):
        d.fit_mle(lambda w: d.Exponential(wl.exp(w[0])), np.array([-1.0, 2.0]), start=[0.0])
    for family, bad in ((d.Gamma, -1.0), (d.Beta, 1.0), (d.LogNormal, 0.0)):
        with pytest.raises(InputError, match="a value for"):
            d.fit_mle(family, np.array([0.5, bad]), "gradient")
    with pytest.raises(InputError, match="has no inverse"):
        d.fit_mle(d.MultivariateNormal, np.ones((2, 3)))
