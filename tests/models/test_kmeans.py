"""K-means: against scikit-learn, and the properties of Lloyd's algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans as Reference
from sklearn.metrics import adjusted_rand_score

import wonderland as wl
from wonderland.errors import InputError, ModuleError, ShapeError
from wonderland.models import KMeans


def blobs(centers, n=40, scale=0.3, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(centers)), n)
    return np.asarray(centers, float)[labels] + scale * rng.normal(size=(len(labels), len(centers[0]))), labels


CENTERS = [[0.0, 0.0], [5.0, 5.0], [0.0, 6.0], [7.0, -1.0]]


@pytest.mark.book("3.04", "A2-21", name="wl.models.KMeans")
def test_blobs_are_recovered_and_the_inertia_never_rises():
    X, labels = blobs(CENTERS)
    model = KMeans(4, key=wl.random.key(0)).fit(X)
    assert adjusted_rand_score(labels, model.labels_.numpy()) == 1.0
    for k in range(4):  # every cluster is pure
        assert len(set(labels[model.labels_.numpy() == k])) == 1
    slow = KMeans(6, init="random", n_init=1, tol=0.0, key=wl.random.key(3)).fit(X)
    history = slow.history_.numpy()
    assert len(history) > 3
    assert (np.diff(history) <= 1e-9 * history[0]).all()


@pytest.mark.book("B3-04", name="wl.models.KMeans")
def test_points_of_a_cluster_are_nearer_than_points_of_two():
    X, _ = blobs(CENTERS)
    labels = KMeans(4, key=wl.random.key(0)).fit(X).labels_.numpy()
    distances = np.sqrt(wl.pairwise_sq_distances(wl.asarray(X), wl.asarray(X)).numpy())
    same = labels[:, None] == labels
    assert distances[same].mean() < distances[~same].mean()
    assert distances[same].max() < distances[~same].min()


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_it_agrees_with_scikit_learn_from_the_same_start(shift):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3)) + shift
    start = X[:5]
    model = KMeans(5, init=start, tol=0.0).fit(X)
    reference = Reference(5, init=start, n_init=1, tol=0.0).fit(X)
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    np.testing.assert_allclose(model.cluster_centers_, reference.cluster_centers_, rtol=1e-9)
    np.testing.assert_allclose(model.inertia_, reference.inertia_, rtol=1e-6)
    new = rng.normal(size=(11, 3)) + shift
    np.testing.assert_array_equal(model.predict(new), reference.predict(new))
    np.testing.assert_allclose(model.transform(new), reference.transform(new), rtol=1e-6)
    np.testing.assert_allclose(model.score(new), reference.score(new), rtol=1e-6)
    np.testing.assert_array_equal(wl.jit(model)(wl.asarray(new)), model.predict(new))


def test_a_good_start_is_as_good_as_scikit_learns():
    X = np.random.default_rng(2).normal(size=(150, 2))
    ours = KMeans(8, key=wl.random.key(0)).fit(X).inertia_
    theirs = Reference(8, n_init=10, random_state=0).fit(X).inertia_
    assert ours <= 1.03 * theirs


def test_empty_clusters_get_points():
    X = np.array([[0.0], [0.1], [0.2], [10.0]])
    model = KMeans(3, init=[[0.1], [500.0], [900.0]]).fit(X)
    assert sorted(set(model.labels_.tolist())) == [0, 1, 2]
    assert np.isfinite(model.cluster_centers_.numpy()).all()
    history = model.history_.numpy()
    assert (np.diff(history) <= 0).all()
    same = KMeans(3, key=wl.random.key(0)).fit(np.ones((5, 2)))  # fewer different points than clusters
    assert same.inertia_ == 0.0
    np.testing.assert_array_equal(same.cluster_centers_, np.ones((3, 2)))


def test_the_same_key_gives_the_same_clusters_and_float32_stays():
    X = np.random.default_rng(2).normal(size=(50, 2)).astype(np.float32)
    first, second = (KMeans(4, n_init=2, key=wl.random.key(7)).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)
    assert first.cluster_centers_.dtype == wl.float32
    assert list(first.state_dict()) == ["cluster_centers_"]
    np.testing.assert_array_equal(first.fit(X[:30]).labels_, first.fit_predict(X[:30]))  # another size


def test_bad_input():
    with pytest.raises(ModuleError, match="not been fitted"):
        KMeans(2).predict(np.zeros((3, 2)))
    with pytest.raises(InputError, match="2 points of 1 features"):
        KMeans(3).fit(np.zeros((2, 1)))
    with pytest.raises(ShapeError, match="the data has shape"):
        KMeans(3).fit(np.zeros(4))
    with pytest.raises(InputError, match="row 1 of the data is not finite"):
        KMeans(1).fit([[0.0], [np.nan]])
    with pytest.raises(InputError, match="n_clusters"):
        KMeans(0)
    with pytest.raises(InputError, match="init='best'"):
        KMeans(2, init="best")
    with pytest.raises(ShapeError, match="init of shape"):
        KMeans(2, init=[[1.0]]).fit(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="points of 3 features"):
        KMeans(1).fit(np.zeros((3, 2))).predict(np.zeros((3, 3)))
