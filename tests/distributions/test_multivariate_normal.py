"""The normal distribution of vectors, in full, diagonal and isotropic form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import wonderland as wl
from wonderland.distributions import Independent, MultivariateNormal, Normal, integrate, kl
from wonderland.errors import InputError, LinearAlgebraError, ShapeError

rng = np.random.default_rng(0)
L = np.tril(rng.normal(size=(3, 3))) + 2 * np.eye(3)
S = L @ L.T
MU = rng.normal(size=3)
X = rng.normal(size=(7, 3))


@pytest.mark.book("A.14", name="wl.distributions.MultivariateNormal")
def test_density():
    oracle = stats.multivariate_normal(MU, S)
    for d in (
        MultivariateNormal(MU, S),
        MultivariateNormal(MU, precision_matrix=np.linalg.inv(S)),
        MultivariateNormal(MU, scale_tril=L),
    ):
        np.testing.assert_allclose(d.log_prob(X), oracle.logpdf(X), rtol=1e-10)
        np.testing.assert_allclose(d.entropy(), oracle.entropy(), rtol=1e-10)
        np.testing.assert_allclose(d.covariance_matrix, S, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(d.variance, S.diagonal(), rtol=1e-9)
        np.testing.assert_allclose(d.mean, MU)
        again = MultivariateNormal(**d.params)
        np.testing.assert_allclose(again.log_prob(X), d.log_prob(X), rtol=1e-12)
    # the book's formula lacks the half in the exponent: 1.084438 at 1 for one dimension
    one = MultivariateNormal(np.zeros(1), np.eye(1))
    assert one.prob(np.ones(1)).item() == pytest.approx(0.241971, abs=5e-7)
    np.testing.assert_allclose(one.log_prob(np.ones((1, 1))), Normal(0.0, 1.0).log_prob(np.ones(1)), rtol=1e-12)
    wl.check_grads(lambda mu, s: MultivariateNormal(mu, s @ s.mT).log_prob(X), (wl.asarray(MU), wl.asarray(L)))


@pytest.mark.book("A.15", name="wl.distributions.MultivariateNormal")
def test_diagonal_and_isotropic():
    spread = np.array([0.5, 1.0, 2.0])
    diagonal = MultivariateNormal(MU, scale_diag=spread)
    full = MultivariateNormal(MU, np.diag(spread**2))
    product = Independent(Normal(MU, spread))
    for d in (full, product):
        np.testing.assert_allclose(diagonal.log_prob(X), d.log_prob(X), rtol=1e-12)
        np.testing.assert_allclose(diagonal.entropy(), d.entropy(), rtol=1e-12)
    round_ = MultivariateNormal(MU, scale_diag=0.7)
    full = MultivariateNormal(MU, 0.49 * np.eye(3))
    np.testing.assert_allclose(round_.log_prob(X), full.log_prob(X), rtol=1e-12)
    np.testing.assert_allclose(round_.entropy(), full.entropy(), rtol=1e-12)
    np.testing.assert_allclose(round_.covariance_matrix, 0.49 * np.eye(3), rtol=1e-12)
    np.testing.assert_allclose(kl(diagonal, round_), kl(MultivariateNormal(MU, np.diag(spread**2)), full), rtol=1e-10)
    # nothing of size k x k is made
    graph = wl.jit(lambda mu, s, x: MultivariateNormal(mu, scale_diag=s).log_prob(x)).graph(
        wl.zeros(500), wl.ones(500), wl.zeros(500)
    )
    assert max(int(np.prod(v.aval.shape)) for e in graph.equations for v in e.outputs) == 500


def test_draws_and_batches():
    d = MultivariateNormal(wl.asarray(np.stack([MU, -MU])), S)
    assert d.batch_shape == (2,)
    assert d.event_shape == (3,)
    draws = d.sample((5000,), key=wl.random.key(0)).numpy()
    assert draws.shape == (5000, 2, 3)
    np.testing.assert_allclose(draws.mean(0), [MU, -MU], atol=0.25)
    np.testing.assert_allclose(np.cov(draws[:, 1].T), S, rtol=0.15, atol=0.4)
    assert d.log_prob(draws).shape == (5000, 2)
    slope = wl.grad(lambda m: MultivariateNormal(m, S).rsample((4,), wl.random.key(0)).sum())(wl.asarray(MU))
    assert slope.tolist() == [4.0, 4.0, 4.0]
    np.testing.assert_allclose(wl.jit(lambda d, x: d.log_prob(x))(d, draws[:3]), d.log_prob(draws[:3]), rtol=1e-10)


@pytest.mark.book("A.10", name="wl.distributions.integrate")
def test_marginals_and_products_of_densities():
    """Integrating one variable out leaves a normal density, and densities obey the product rule."""
    cov = np.array([[2.0, 0.8], [0.8, 1.0]])
    both = MultivariateNormal(np.zeros(2), cov)
    for x in (-1.0, 0.3, 2.0):
        marginal = integrate(lambda y, x=x: both.prob(wl.stack([wl.full_like(y, x), y], axis=-1)))
        np.testing.assert_allclose(marginal, stats.norm.pdf(x, 0, np.sqrt(2.0)), rtol=1e-9)
        given = Normal(0.4 * x, np.sqrt(1 - 0.32))  # y given x
        joint = Normal(0.0, np.sqrt(2.0)).prob(x) * given.prob(0.5)
        np.testing.assert_allclose(joint, both.prob(np.array([x, 0.5])), rtol=1e-6)


def test_bad_parameters():
    with pytest.raises(InputError, match="2 of covariance"):
        MultivariateNormal(MU, S, scale_diag=1.0)
    with pytest.raises(InputError, match="0 of covariance"):
        MultivariateNormal(MU)
    with pytest.raises(ShapeError, match="for 3 numbers"):
        MultivariateNormal(MU, np.eye(2))
    with pytest.raises(ShapeError, match="2 deviations for 3"):
        MultivariateNormal(MU, scale_diag=np.ones(2))
    with pytest.raises(InputError, match="not symmetric"):
        MultivariateNormal(MU, L)
    with pytest.raises(LinearAlgebraError):
        MultivariateNormal(MU, -np.eye(3))
    with pytest.raises(InputError, match="the diagonal of scale_tril"):
        MultivariateNormal(MU, scale_tril=-np.eye(3))
    with pytest.raises(InputError, match="scale_diag is"):
        MultivariateNormal(MU, scale_diag=0.0)
    with pytest.raises(ShapeError, match="no vectors of 3"):
        MultivariateNormal(MU, S).log_prob(np.ones(2))
    with pytest.raises(ShapeError, match="is no vector"):
        MultivariateNormal(1.0, scale_diag=1.0)
