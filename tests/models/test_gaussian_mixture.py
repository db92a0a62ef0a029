"""Gaussian mixtures: against scikit-learn, and both ways of fitting."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture as Reference

import wonderland as wl
from wonderland.errors import InputError, LinearAlgebraError, ModuleError
from wonderland.models import GaussianMixture


def two_groups(n=120, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, 2)) @ np.array([[1.0, 0.6], [0.0, 0.5]]) + [-2.0, 0.0]
    b = rng.normal(size=(2 * n, 2)) * [0.5, 1.0] + [2.0, 1.0]
    return np.concatenate([a, b])


@pytest.mark.book("3.07", name="wl.models.GaussianMixture")
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_it_ends_where_scikit_learn_ends(kind):
    X = two_groups()
    model = GaussianMixture(2, kind, tol=1e-10, max_iter=500, key=wl.random.key(0)).fit(X)
    reference = Reference(2, covariance_type=kind, tol=1e-10, max_iter=500, random_state=0).fit(X)
    order = np.argsort(model.means_.numpy()[:, 0])
    other = np.argsort(reference.means_[:, 0])
    np.testing.assert_allclose(model.weights_.numpy()[order], reference.weights_[other], rtol=1e-4)
    np.testing.assert_allclose(model.means_.numpy()[order], reference.means_[other], rtol=1e-3)
    np.testing.assert_allclose(model.covariances_.numpy()[order], reference.covariances_[other], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.score_samples(X), reference.score_samples(X), atol=1e-3)
    np.testing.assert_allclose(
        model.predict_proba(X).numpy()[:, order], reference.predict_proba(X)[:, other], atol=1e-3
    )
    np.testing.assert_allclose(model.bic(X), reference.bic(X), rtol=1e-6)
    np.testing.assert_allclose(model.aic(X), reference.aic(X), rtol=1e-6)
    assert model.converged_
    np.testing.assert_allclose(wl.jit(model)(wl.asarray(X)), model.score_samples(X), rtol=1e-10)


@pytest.mark.book("3.07", name="wl.models.GaussianMixture")
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_the_log_likelihood_never_falls(kind):
    X = np.random.default_rng(3).normal(size=(100, 2))  # nothing to find: a long way
    model = GaussianMixture(4, kind, tol=0.0, reg_covar=0.0, max_iter=40, key=wl.random.key(0)).fit(X)
    history = model.history_.numpy()
    assert len(history) > 5
    assert np.diff(history).min() > -1e-12
    np.testing.assert_allclose(history[-1], model.score(X), rtol=1e-9)


@pytest.mark.book("3.07", name="wl.models.GaussianMixture")
@pytest.mark.parametrize("method", ["em", "gradient"])
def test_two_means_on_a_line(method):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-3.0, 1.0, 300), rng.normal(2.0, 0.5, 100)])[:, None]
    model = GaussianMixture(2, key=wl.random.key(0)).fit(X, method=method)
    order = np.argsort(model.means_.numpy()[:, 0])
    np.testing.assert_allclose(model.means_.numpy()[order, 0], [-3.0, 2.0], atol=0.15)
    np.testing.assert_allclose(model.weights_.numpy()[order], [0.75, 0.25], atol=0.02)
    np.testing.assert_allclose(model.covariances_.numpy()[order, 0, 0], [1.0, 0.25], atol=0.15)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_the_gradient_reaches_the_likelihood_of_em(kind):
    X = two_groups(60)
    em = GaussianMixture(2, kind, tol=1e-9, max_iter=300, key=wl.random.key(0)).fit(X).score(X)
    gradient = GaussianMixture(2, kind, tol=1e-6, key=wl.random.key(0)).fit(X, method="gradient").score(X)
    np.testing.assert_allclose(gradient, em, atol=2e-3)


def test_bic_prefers_the_true_number_and_samples_come_from_the_mixture():
    X = two_groups(80)
    models = [GaussianMixture(k, n_init=2, key=wl.random.key(0)).fit(X) for k in (1, 2, 4)]
    assert np.argmin([m.bic(X) for m in models]) == 1
    assert models[1].num_free_parameters() == 1 + 4 + 6
    points, labels = models[1].sample(4000, key=wl.random.key(2))
    for k in range(2):
        chosen = points.numpy()[labels.numpy() == k]
        np.testing.assert_allclose(len(chosen) / 4000, models[1].weights_.numpy()[k], atol=0.03)
        np.testing.assert_allclose(chosen.mean(0), models[1].means_.numpy()[k], atol=0.1)
        np.testing.assert_allclose(np.cov(chosen.T), models[1].covariances_.numpy()[k], atol=0.12)


def test_bad_input():
    with pytest.raises(ModuleError, match="not been fitted"):
        GaussianMixture(2).predict(np.zeros((3, 2)))
    with pytest.raises(InputError, match="covariance_type='tied'"):
        GaussianMixture(2, "tied")
    with pytest.raises(InputError, match="method='newton'"):
        GaussianMixture(2).fit(np.zeros((3, 2)), method="newton")
    with pytest.raises(InputError, match="reg_covar"):
        GaussianMixture(2, reg_covar=-1.0)
    flat = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    with pytest.raises(LinearAlgebraError, match="larger reg_covar"):
        GaussianMixture(1, reg_covar=0.0).fit(flat)
    assert np.isfinite(GaussianMixture(1).fit(flat).score(flat))
