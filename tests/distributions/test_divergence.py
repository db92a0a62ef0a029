"""Divergences: closed forms against means over draws, and what every divergence satisfies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import wonderland as wl
from wonderland import distributions as d
from wonderland.errors import ShapeError

t = lambda *v: wl.asarray(np.array(v))
S = np.array([[2.0, 0.5], [0.5, 1.0]])
PAIRS = [
    (d.Normal(t(0.0), t(1.0)), d.Normal(t(1.0), t(2.0))),
    (d.LogNormal(t(0.0), t(1.0)), d.LogNormal(t(0.3), t(0.8))),
    (d.Laplace(t(0.0), t(1.0)), d.Laplace(t(1.0), t(2.0))),
    (d.Exponential(t(1.0)), d.Exponential(t(2.5))),
    (d.Gamma(t(2.0), t(1.0)), d.Gamma(t(3.0), t(2.0))),
    (d.Beta(t(2.0), t(3.0)), d.Beta(t(1.0), t(1.5))),
    (d.Dirichlet(np.array([1.0, 2.0, 3.0])), d.Dirichlet(np.array([2.0, 2.0, 0.5]))),
    (d.Poisson(t(3.0)), d.Poisson(t(5.0))),
    (d.Bernoulli(t(0.3)), d.Bernoulli(t(0.6))),
    (d.Binomial(5, t(0.3)), d.Binomial(5, t(0.6))),
    (d.Categorical([0.6, 0.3, 0.1]), d.Categorical(logits=t(0.0, 1.0, 0.5))),
    (d.Uniform(t(0.0), t(1.0)), d.Uniform(t(-1.0), t(2.0))),
    (d.MultivariateNormal(np.zeros(2), S), d.MultivariateNormal(np.ones(2), np.eye(2) * 1.5)),
    (d.MultivariateNormal(np.zeros(2), scale_diag=np.array([1.0, 2.0])), d.MultivariateNormal(np.ones(2), S)),
    (
        d.MultivariateNormal(np.zeros(2), scale_diag=0.8),
        d.MultivariateNormal(np.ones(2), scale_diag=np.array([1.0, 2.0])),
    ),
]


@pytest.mark.book("A.19", name=("wl.distributions.kl", "wl.distributions.kl_monte_carlo"))
@pytest.mark.parametrize("p, q", PAIRS, ids=lambda v: type(v).__name__)
def test_closed_forms(p, q):
    exact = d.kl(p, q)
    found = d.kl_monte_carlo(p, q, 20_000, wl.random.key(3))
    assert np.all(np.abs(exact - found.value) < 5 * np.asarray(found.standard_error) + 1e-7)
    assert np.all(np.asarray(exact) > 0)
    np.testing.assert_allclose(d.kl(p, p), 0.0, atol=2e-7)
    np.testing.assert_allclose(wl.jit(d.kl)(p, q), exact, rtol=1e-6)
    if exact.shape == (1,) and not p.event_shape and not isinstance(p, (d.Uniform, d.Laplace)):
        by_sum = d.expectation(p, lambda x: p.log_prob(x) - q.log_prob(x))
        np.testing.assert_allclose(exact, by_sum, rtol=1e-6)


@pytest.mark.book("A.19", name="wl.distributions.kl")
def test_numbers_of_the_book():
    p, q = d.Categorical([0.6, 0.3, 0.1]), d.Categorical([1 / 3] * 3)
    assert d.kl(p, q).item() == pytest.approx(0.200667, abs=5e-7)
    assert d.kl(q, p).item() == pytest.approx(0.240516, abs=5e-7)
    some, none = d.Categorical([0.5, 0.5, 0.0]), d.Categorical([1.0, 0.0, 0.0])
    assert d.kl(some, none).item() == np.inf
    assert d.kl(none, some).item() == pytest.approx(np.log(2))  # 0 ln 0 = 0
    assert d.kl(d.Bernoulli(0.0), d.Bernoulli(0.5)).item() == pytest.approx(np.log(2))
    assert d.kl(d.Bernoulli(0.5), d.Bernoulli(0.0)).item() == np.inf
    assert d.kl(d.Uniform(0.0, 2.0), d.Uniform(0.0, 1.0)).item() == np.inf
    assert d.kl_divergence is d.kl
    with pytest.raises(ShapeError):
        d.kl(p, d.Categorical([0.5, 0.5]))


def test_divergences_without_a_formula():
    found = d.kl(d.Normal(t(0.0), t(1.0)), d.Laplace(t(0.0), t(1.0)), n=20_000, key=wl.random.key(0))
    exact = -0.5 * np.log(2 * np.pi) - 0.5 + np.log(2) + np.sqrt(2 / np.pi)
    np.testing.assert_allclose(found, exact, atol=0.02)
    assert d.kl(d.Delta(0.0), d.Normal(0.0, 1.0)).item() == pytest.approx(0.918939, abs=1e-5)


@pytest.mark.book("4.49", name="wl.distributions.kl")
def test_divergence_from_one_hot_is_cross_entropy():
    logits = np.array([0.3, -1.0, 2.0])
    q = d.Categorical(logits=wl.asarray(logits))
    for i in range(3):
        hot = d.Categorical(np.eye(3)[i])
        loss = wl.nn.functional.cross_entropy(wl.asarray(logits), wl.tensor(i))
        np.testing.assert_allclose(d.kl(hot, q), loss, rtol=1e-10)
        np.testing.assert_allclose(loss, -special.log_softmax(logits)[i], rtol=1e-12)
