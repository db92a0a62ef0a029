"""Maximum inner product search: exact, by clusters and by signs."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, ShapeError
from wonderland.models import MIPSIndex
from wonderland.models.classical.inner_product_search import augmented

RNG = np.random.default_rng(0)
GROUPS = RNG.normal(size=(25, 12)).repeat(24, axis=0)
W = (GROUPS + 0.3 * RNG.normal(size=(600, 12))) * RNG.uniform(0.5, 2.0, size=(600, 1))
Z = RNG.normal(size=(4, 10, 12))
BIAS = RNG.normal(size=600)


@pytest.mark.book("A4-30", "A4-31", name="wl.models.MIPSIndex")
@pytest.mark.parametrize("bias", [None, BIAS])
def test_the_exact_index_sorts(bias):
    scores = Z @ W.T + (0 if bias is None else bias)
    expected = np.argsort(-scores, axis=-1)[..., :5]
    index = MIPSIndex(W, bias)
    found = index.query(Z, 5)
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_allclose(found.values, np.take_along_axis(scores, expected, -1))
    assert index.recall(Z, 5) == 1.0
    np.testing.assert_array_equal(wl.jit(lambda z: index.query(z, 5).indices)(wl.asarray(Z)), expected)
    # the most likely class needs no probabilities
    softmax = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_array_equal(index.query(Z).indices[..., 0], (softmax / softmax.sum(-1, keepdims=True)).argmax(-1))


@pytest.mark.book("A4-30", name="wl.models.MIPSIndex")
def test_augmented_vectors_turn_inner_products_into_distances():
    V = augmented(W)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1.0)
    z = Z[0, 0]
    query = np.append(z / np.linalg.norm(z), 0.0)
    np.testing.assert_array_equal(np.argsort(((V - query) ** 2).sum(1)), np.argsort(-(W @ z)))


@pytest.mark.book("A4-30", name="wl.models.MIPSIndex")
@pytest.mark.parametrize(
    "method, few, many", [("ivf", {"n_probe": 1}, {"n_probe": 8}), ("lsh", {"n_candidates": 40}, {"n_candidates": 200})]
)
@pytest.mark.parametrize("bias", [None, BIAS])
def test_approximate_indices_find_most_for_a_part_of_the_work(method, few, many, bias):
    low, high = (MIPSIndex(W, bias, method, key=wl.random.key(0), **s) for s in (few, many))
    assert high.recall(Z, 5) > 0.8
    assert high.recall(Z, 5) >= low.recall(Z, 5) > 0.1
    assert low.scored < high.scored < 0.6
    found = high.query(Z, 5)
    assert found.values.shape == found.indices.shape == (4, 10, 5)
    scores = Z @ W.T + (0 if bias is None else bias)
    np.testing.assert_allclose(found.values, np.take_along_axis(scores, found.indices.numpy(), -1))
    assert (np.diff(found.values.numpy()) <= 0).all()


def test_with_everything_probed_nothing_is_lost():
    index = MIPSIndex(W, method="ivf", n_lists=10, n_probe=10, key=wl.random.key(0))
    assert (index.recall(Z, 7), index.scored) == (1.0, 1.0)
    small = MIPSIndex(W, method="ivf", n_lists=300, n_probe=1, key=wl.random.key(0))
    assert small.query(Z, 50).indices.shape == (4, 10, 50)  # more lists than asked for, until there are 50


def test_bad_input():
    with pytest.raises(InputError, match="method='hnsw'"):
        MIPSIndex(W, method="hnsw")
    with pytest.raises(InputError, match="k=601"):
        MIPSIndex(W).query(Z, 601)
    with pytest.raises(ShapeError, match=r"codes of shape \(3,\)"):
        MIPSIndex(W).query(np.zeros(3))
    with pytest.raises(ShapeError, match="a bias of shape"):
        MIPSIndex(W, np.zeros(3))
    with pytest.raises(InputError, match="cannot be traced"):
        wl.jit(MIPSIndex(W, method="lsh").query)(wl.asarray(Z))
