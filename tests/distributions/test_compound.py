"""Mixtures, and batches as vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import wonderland as wl
from wonderland import distributions as d
from wonderland.errors import InputError, ShapeError

W, LOC, SCALE = np.array([0.2, 0.5, 0.3]), np.array([-2.0, 0.0, 3.0]), np.array([0.5, 1.0, 0.3])
MIXTURE = d.Mixture(W, d.Normal(wl.asarray(LOC), wl.asarray(SCALE)))


def test_mixture_of_numbers():
    x = np.linspace(-4, 5, 11)
    parts = stats.norm(LOC, SCALE)
    np.testing.assert_allclose(MIXTURE.prob(x), parts.pdf(x[:, None]) @ W, rtol=1e-10)
    np.testing.assert_allclose(MIXTURE.cdf(x), parts.cdf(x[:, None]) @ W, rtol=1e-10)
    assert MIXTURE.batch_shape == ()
    draws = MIXTURE.sample((4000,), key=wl.random.key(0)).numpy()
    assert stats.kstest(draws, lambda v: parts.cdf(v[:, None]) @ W).pvalue > 1e-3
    np.testing.assert_allclose(MIXTURE.mean, W @ LOC, rtol=1e-12)
    second = d.expectation(MIXTURE, lambda x: x**2)
    np.testing.assert_allclose(MIXTURE.variance, second - (W @ LOC) ** 2, rtol=1e-8)
    wl.check_grads(
        lambda w, m: d.Mixture(d.Categorical(logits=w), d.Normal(m, 1.0)).log_prob(x), (wl.asarray(W), wl.asarray(LOC))
    )
    compiled = wl.jit(lambda m, x: m.log_prob(x))(MIXTURE, x)
    np.testing.assert_allclose(compiled, MIXTURE.log_prob(x), rtol=1e-10)
    assert d.MixtureSameFamily is d.Mixture
    far = MIXTURE.log_prob(1e4)
    assert np.isfinite(far.item())


def test_mixture_of_vectors_and_batches():
    components = d.MultivariateNormal(np.stack([np.zeros(2), np.ones(2)]), scale_diag=0.1)
    m = d.Mixture([0.5, 0.5], components)
    assert m.event_shape == (2,)
    assert m.sample((7,)).shape == (7, 2)
    np.testing.assert_allclose(m.mean, [0.5, 0.5], rtol=1e-6)
    np.testing.assert_allclose(m.variance, [0.26, 0.26], rtol=1e-6)
    x = np.array([[0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(m.log_prob(x), np.log(0.5) + stats.multivariate_normal([0, 0], 0.01).logpdf([0, 0]))
    many = d.Mixture(wl.full((4, 3), 1 / 3), d.Normal(wl.asarray(LOC), 1.0))
    assert many.batch_shape == (4,)
    assert many.sample((5,)).shape == (5, 4)
    assert many.log_prob(np.zeros(4)).shape == (4,)
    with pytest.raises(ShapeError, match="2 weights"):
        d.Mixture([0.5, 0.5], d.Normal(wl.asarray(LOC), 1.0))
    with pytest.raises(InputError, match="one batched distribution"):
        d.Mixture([0.5, 0.5], [d.Normal(), d.Normal()])


@pytest.mark.book("3.26", name="wl.distributions.Mixture")
def test_targets_with_two_modes_need_a_mixture():
    """y is -1 or 1: the best number is 0, the best normal has variance 1, and only a mixture finds both."""
    y = np.where(np.arange(200) % 2, 1.0, -1.0)
    F = wl.nn.functional
    assert wl.grad(lambda c: F.mse_loss(wl.full((200,), 1.0, dtype=wl.float64) * c, y))(0.0).item() == pytest.approx(
        0.0
    )
    normal = d.fit_mle(d.Normal, y)
    assert normal.mean.item() == pytest.approx(0.0)
    assert normal.variance.item() == pytest.approx(1.0)
    build = lambda t: d.Mixture([0.5, 0.5], d.Normal(wl.stack([t[0], t[1]]), 0.1))
    fitted = d.fit_mle(build, y, start=[-0.6, 0.7])
    np.testing.assert_allclose(fitted.components.loc, [-1.0, 1.0], atol=1e-6)
    assert F.nll(fitted, y, "none").mean().item() < F.nll(normal, y, "none").mean().item()


def test_independent():
    base = d.Normal(wl.asarray(np.arange(6.0).reshape(2, 3)), 1.0)
    x = np.ones((2, 3))
    for n, batch, event in ((0, (2, 3), ()), (1, (2,), (3,)), (2, (), (2, 3))):
        dist = d.Independent(base, n)
        assert (dist.batch_shape, dist.event_shape) == (batch, event)
        expected = base.log_prob(x).numpy().sum(tuple(range(2 - n, 2)))
        np.testing.assert_allclose(dist.log_prob(x), expected, rtol=1e-12)
        assert dist.sample((4,)).shape == (4, 2, 3)
        assert dist.entropy().shape == batch
        other = d.Independent(d.Normal(0.0, wl.full((2, 3), 2.0)), n)
        np.testing.assert_allclose(
            d.kl(dist, other), d.kl(base, other.base).numpy().sum(tuple(range(2 - n, 2))), rtol=1e-6
        )
    with pytest.raises(ShapeError):
        d.Independent(base, 3)
