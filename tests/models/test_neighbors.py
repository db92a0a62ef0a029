"""Nearest neighbours and retrieval."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

import wonderland as wl
from wonderland.errors import InputError, ShapeError
from wonderland.models import nearest_neighbors, retrieve

E = np.random.default_rng(0).normal(size=(20, 4))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_they_are_scikit_learns(metric):
    queries = np.random.default_rng(1).normal(size=(2, 3, 4))
    reference = NearestNeighbors(n_neighbors=6, metric=metric).fit(E)
    distances, expected = reference.kneighbors(queries.reshape(-1, 4))
    values, indices = nearest_neighbors(E, queries, k=6, metric=metric)
    np.testing.assert_array_equal(indices, expected.reshape(2, 3, 6))
    similarity = 1 - distances if metric == "cosine" else -distances
    np.testing.assert_allclose(values, similarity.reshape(2, 3, 6))
    compiled = wl.jit(lambda q: nearest_neighbors(wl.asarray(E), q, 6, metric)[1])
    np.testing.assert_array_equal(compiled(wl.asarray(queries)), indices)


@pytest.mark.book("A4-16", name="wl.cosine_similarity")
def test_of_vectors_of_one_norm_all_metrics_give_one_order():
    unit = E / np.linalg.norm(E, axis=1, keepdims=True)
    orders = [nearest_neighbors(unit, 3, k=10, metric=m)[1].tolist() for m in ("cosine", "dot", "euclidean")]
    assert orders[0] == orders[1] == orders[2]
    np.testing.assert_allclose(wl.cosine_similarity(wl.asarray(unit), wl.asarray(unit[3])), unit @ unit[3])
    stretched = E * np.arange(1, 21)[:, None]  # norms matter to the inner product, not to the cosine
    assert nearest_neighbors(stretched, 3, 10)[1].tolist() == orders[0]
    assert nearest_neighbors(stretched, 3, 10, "dot")[1].tolist() != orders[0]


@pytest.mark.book("B3-03", name="wl.models.retrieve")
def test_an_element_retrieves_itself_first():
    for metric in ("cosine", "euclidean"):
        _, indices = retrieve(E, E, k=3, metric=metric)
        np.testing.assert_array_equal(indices[:, 0], np.arange(20))
    assert 5 not in nearest_neighbors(E, 5, k=19)[1].tolist()
    assert nearest_neighbors(E, 5, k=1, exclude_self=False)[1].tolist() == [5]


def test_bad_input():
    with pytest.raises(InputError, match="metric='manhattan'"):
        nearest_neighbors(E, 0, metric="manhattan")
    with pytest.raises(InputError, match="k=20 of 19"):
        nearest_neighbors(E, 0, k=20)
    with pytest.raises(ShapeError, match=r"queries of shape \(3,\)"):
        nearest_neighbors(E, np.zeros(3))
    with pytest.raises(InputError, match="exclude_self"):
        nearest_neighbors(E, np.zeros(4), exclude_self=True)
