"""t-SNE: affinities, the gradient, maps, and the caption that warns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import wonderland as wl
from wonderland.errors import InputError, ShapeError
from wonderland.models import TSNE
from wonderland.models.classical.tsne import (
    CAUTION,
    conditional_affinities,
    joint_affinities,
    tsne_affinities,
    tsne_force,
    tsne_force_plot,
    tsne_gradient,
    tsne_loss,
)

X = np.concatenate(
    [0.1 * np.random.default_rng(0).normal(size=(20, 3)), 3 + np.random.default_rng(1).normal(size=(20, 3))]
)


@pytest.mark.book("A4-09", name="wl.models.TSNE")
def test_affinities_are_normalised_gaussians():
    P, sigma = conditional_affinities(X, 8.0)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert not np.diag(P.numpy()).any()
    D = ((X[:, None] - X) ** 2).sum(-1)
    expected = np.exp(-D / (2 * sigma.numpy()[:, None] ** 2))
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(P, expected / expected.sum(1, keepdims=True), rtol=1e-6, atol=1e-12)
    J = joint_affinities(X, 8.0).numpy()
    np.testing.assert_allclose(J, (P.numpy() + P.numpy().T) / 80)
    np.testing.assert_allclose(J.sum(), 1.0)


@pytest.mark.book("A4-10", name="wl.models.TSNE")
@pytest.mark.parametrize("perplexity", [2.0, 8.0, 30.0])
def test_every_point_has_the_perplexity_asked_for(perplexity):
    P, sigma = conditional_affinities(X, perplexity)
    p = P.numpy()
    entropy = -(p * np.log2(np.where(p > 0, p, 1.0))).sum(1)
    np.testing.assert_allclose(2**entropy, perplexity, atol=1e-4)
    if perplexity < 20:  # the first group is ten times as dense
        assert np.median(sigma.numpy()[:20]) < 0.3 * np.median(sigma.numpy()[20:])


@pytest.mark.book("A4-11", name="wl.models.TSNE")
def test_the_gradient_is_that_of_the_divergence():
    P = joint_affinities(X, 8.0)
    Y = wl.random.normal((40, 2), key=wl.random.key(0), dtype=wl.float64)
    np.testing.assert_allclose(tsne_gradient(P, Y), wl.grad(tsne_loss, 1)(P, Y), atol=1e-12)
    y, (Q, _) = Y.numpy(), tsne_affinities(Y)
    d = y[:, None] - y
    w = 1 / (1 + (d**2).sum(-1))
    np.fill_diagonal(w, 0.0)
    np.testing.assert_allclose(Q, w / w.sum(), rtol=1e-9)
    by_hand = 4 * (((P.numpy() - Q.numpy()) * w)[..., None] * d).sum(1)
    np.testing.assert_allclose(tsne_gradient(P, Y), by_hand, atol=1e-12)
    np.testing.assert_allclose(wl.jit(tsne_gradient)(P, Y), by_hand, atol=1e-12)


@pytest.mark.book("A4-14", name="wl.models.TSNE")
def test_pairs_attract_where_p_exceeds_q():
    high, low = np.meshgrid(np.linspace(0.0, 4.0, 9), np.linspace(0.1, 6.0, 9))
    force = tsne_force(high, low).numpy()
    np.testing.assert_array_equal(force > 0, np.exp(-(high**2) / 2) > 1 / (1 + low**2))
    assert force.max() > 0 > force.min()
    assert "distance 4 in the data" in tsne_force_plot()


@pytest.mark.book("A4-13", "A4-12", name="wl.models.TSNE")
def test_digits_stay_with_their_neighbours_and_the_picture_warns():
    data = load_digits()
    digits, labels = data.data[:300] / 16.0, data.target[:300]
    seen = []
    model = TSNE(perplexity=15, max_iter=300, callback=lambda *report: seen.append(report), key=wl.random.key(0))
    Y = model.fit_transform(digits).numpy()
    D = ((Y[:, None] - Y) ** 2).sum(-1)
    np.fill_diagonal(D, np.inf)
    assert (labels[D.argmin(1)] == labels).mean() > 0.9
    assert [step for step, _ in seen] == list(range(50, 301, 50))
    assert seen == model.history_
    assert seen[-1][1] == model.kl_divergence_ < seen[0][1]
    np.testing.assert_allclose(Y.mean(0), 0.0, atol=1e-3)
    picture = model.plot(labels, title="Digits")
    assert CAUTION in picture
    assert picture.count("<circle") >= 300


def test_starts():
    start = wl.random.normal((40, 1), key=wl.random.key(0))
    assert TSNE(1, perplexity=5, max_iter=2, init=start).fit_transform(X).shape == (40, 1)
    a, b = (TSNE(perplexity=5, max_iter=3, init="random", key=wl.random.key(4)).fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    same = np.zeros((10, 2))
    assert np.isfinite(TSNE(perplexity=3, max_iter=20).fit_transform(same).numpy()).all()


def test_bad_input():
    with pytest.raises(InputError, match="perplexity=39 for 40 points"):
        TSNE(perplexity=39).fit(X)
    with pytest.raises(InputError, match="init='umap'"):
        TSNE(init="umap")
    with pytest.raises(InputError, match="learning_rate"):
        TSNE(learning_rate=-1.0)
    with pytest.raises(InputError, match="early_exaggeration"):
        TSNE(early_exaggeration=0.5)
    with pytest.raises(ShapeError, match="init of shape"):
        TSNE(perplexity=5, init=np.zeros((3, 2))).fit(X)
    with pytest.raises(InputError, match="no map yet"):
        TSNE().plot()
