"""Nearest neighbours and the look-up table, against scikit-learn and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import neighbors as sk

import wonderland as wl
from wonderland import models
from wonderland.errors import InputError, ModuleError, ShapeError

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(40, 3)), rng.normal(size=(15, 3))
Y = rng.integers(0, 3, size=40)
T = rng.normal(size=(40, 2))


@pytest.mark.book("4.76", name=("wl.models.KNeighborsClassifier", "wl.models.KNeighborsRegressor"))
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 4])
def test_against_scikit_learn(weights, k):
    theirs = sk.KNeighborsClassifier(k, weights=weights).fit(X, Y)
    ours = models.KNeighborsClassifier(k, weights).fit(X, Y)
    for inputs in (NEW, X):
        np.testing.assert_allclose(ours.predict_proba(inputs), theirs.predict_proba(inputs), atol=1e-6)
        assert ours.score(inputs, theirs.predict(inputs)) == 1.0
    for target in (T, T[:, 0]):
        regressor = sk.KNeighborsRegressor(k, weights=weights).fit(X, target)
        mine = models.KNeighborsRegressor(k, weights).fit(X, target)
        np.testing.assert_allclose(mine.predict(NEW), regressor.predict(NEW), atol=1e-6)
        assert mine.score(NEW, rng.normal(size=(15, *target.shape[1:]))) < 1
    np.testing.assert_array_equal(ours.kneighbors(NEW)[1], theirs.kneighbors(NEW)[1])


@pytest.mark.book("3.05", "B3-03", name="wl.models.retrieve")
def test_retrieval_is_brute_force_and_finds_the_query_itself():
    for metric in ("euclidean", "cosine"):
        _, found = models.retrieve(wl.asarray(X), wl.asarray(X), 5, metric)
        np.testing.assert_array_equal(found[:, 0], np.arange(40))
    _, found = models.retrieve(wl.asarray(NEW), wl.asarray(X), 4, "euclidean")
    brute = np.argsort(((NEW[:, None] - X) ** 2).sum(-1), axis=1)[:, :4]
    np.testing.assert_array_equal(found, brute)


@pytest.mark.book("B3-04", name="wl.models.KNeighborsClassifier")
def test_points_of_one_cluster_are_nearer_than_those_of_two():
    a, b = rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 8
    within = wl.pairwise_sq_distances(wl.asarray(a), wl.asarray(a)).numpy().mean()
    between = wl.pairwise_sq_distances(wl.asarray(a), wl.asarray(b)).numpy().mean()
    assert within < between
    model = models.KNeighborsClassifier(3).fit(np.r_[a, b], [0] * 20 + [1] * 20)
    assert model.score(np.r_[a, b], [0] * 20 + [1] * 20) == 1.0


def test_batches_names_and_jit():
    model = models.KNeighborsClassifier(3, metric="cosine").fit(X, np.array(["a", "b", "c"])[Y])
    assert model.predict(NEW.reshape(5, 3, 3)).shape == (5, 3)
    compiled = wl.jit(lambda m, x: m.predict_proba(x))(model, wl.asarray(NEW))
    np.testing.assert_allclose(compiled, model.predict_proba(NEW), atol=1e-12)
    again = models.KNeighborsClassifier(3, metric="cosine").fit(-X, Y)
    again.load_state_dict(model.state_dict())
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.book("3.21", name="wl.models.LookupModel")
def test_a_memory_has_no_risk_where_it_looked_and_that_of_a_constant_elsewhere():
    target = T[:, 0]
    model = models.LookupModel().fit(X, target)
    np.testing.assert_array_equal(model.predict(X), target)
    truth = rng.normal(size=15)
    risk = np.mean((model.predict(NEW).numpy() - truth) ** 2)
    assert risk == pytest.approx(np.mean((target.mean() - truth) ** 2))
    baseline = models.MeanRegressor().fit(X, target)
    np.testing.assert_allclose(model.predict(NEW), baseline.predict(NEW), rtol=1e-12)
    classes = models.LookupModel().fit(X, Y)
    np.testing.assert_array_equal(classes.predict(X), Y)
    assert set(classes.predict(NEW).tolist()) == {np.bincount(Y).argmax()}
    names = models.LookupModel(default="?").fit([[1.0], [1.0], [1.0]], ["a", "b", "b"])
    assert names.predict([[1.0], [2.0]]).tolist() == ["b", "?"]
    assert models.LookupModel().fit([[0.0], [-0.0]], [1.0, 3.0]).predict([[0.0]]).tolist() == [2.0]


def test_bad_data():
    with pytest.raises(ModuleError, match="not been fitted"):
        models.KNeighborsClassifier().predict(NEW)
    with pytest.raises(InputError, match="n_neighbors=41 of 40"):
        models.KNeighborsClassifier(41).fit(X, Y)
    with pytest.raises(InputError, match="n_neighbors"):
        models.KNeighborsRegressor(0)
    for bad in ({"weights": "x"}, {"metric": "x"}, {"weights": "distance", "metric": "cosine"}):
        with pytest.raises(InputError):
            models.KNeighborsClassifier(3, **bad)
    with pytest.raises(ShapeError):
        models.KNeighborsRegressor(2).fit(X, T[1:])
    with pytest.raises(InputError, match="not been fitted"):
        models.LookupModel().predict(X)
    with pytest.raises(ShapeError):
        models.KNeighborsClassifier(3).fit(X, Y).predict(NEW[:, :2])
