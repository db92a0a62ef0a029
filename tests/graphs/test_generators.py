"""Random graphs and graphs of points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import wonderland as wl
from tests.graphs.test_graph import dense
from wonderland.errors import InputError


@pytest.mark.book("12.18", name="wl.graphs.erdos_renyi")
def test_erdos_renyi_degrees_are_binomial():
    n, p = 4000, 0.01
    graph = wl.graphs.erdos_renyi(n, p)
    degrees = graph.degree().numpy()
    assert abs(degrees.mean() - (n - 1) * p) < 0.5
    assert abs(degrees.var() / ((n - 1) * p * (1 - p)) - 1) < 0.1
    assert graph.is_undirected
    rows, cols = graph.ends()
    assert (rows != cols).all()
    assert len(np.unique(rows * n + cols)) == len(rows)
    assert wl.graphs.erdos_renyi(n, p).coo() == graph.coo()
    assert wl.graphs.erdos_renyi(n, p, seed=1).coo() != graph.coo()
    assert wl.graphs.erdos_renyi(5, 1.0).num_undirected_edges == 10
    assert wl.graphs.erdos_renyi(5, 0.0).num_edges == wl.graphs.erdos_renyi(0, 0.5).num_edges == 0
    assert wl.graphs.erdos_renyi(100, edges=50).num_undirected_edges == 50


@given(st.integers(2, 9), st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_every_pair_can_be_drawn(n, seed):
    counts = np.zeros((n, n))
    for k in range(20):
        counts += wl.graphs.erdos_renyi(n, 0.9, seed=100 * seed + k).to_dense().numpy()
    assert (counts[~np.eye(n, dtype=bool)] > 0).all()
    assert (counts.diagonal() == 0).all()


@pytest.mark.book("12.19", name="wl.graphs.barabasi_albert")
def test_preferential_attachment_has_hubs():
    graph = wl.graphs.barabasi_albert(2000, 3)
    assert graph.num_undirected_edges == 3 * (2000 - 4) + 6
    rows, cols = graph.ends()
    assert len(np.unique(rows * 2000 + cols)) == len(rows)
    assert (rows != cols).all()
    degrees = graph.degree().numpy()
    assert degrees.min() == 3
    same_mean = wl.graphs.erdos_renyi(2000, degrees.mean() / 1999).degree().numpy()
    assert degrees.max() > 3 * same_mean.max()
    assert wl.graphs.is_connected(graph)
    assert wl.graphs.barabasi_albert(4, 3).coo() == wl.graphs.complete_graph(4).coo()
    with pytest.raises(InputError, match="too small"):
        wl.graphs.barabasi_albert(3, 3)


def test_stochastic_blocks():
    p = np.array([[0.5, 0.1, 0.0], [0.1, 0.3, 0.2], [0.0, 0.2, 0.6]])
    graph = wl.graphs.stochastic_block_model([100, 80, 60], p)
    M, y = dense(graph), graph.y.numpy()
    for a in range(3):
        for b in range(3):
            block = M[np.ix_(y == a, y == b)]
            share = block.sum() / (block.size - (len(block) if a == b else 0))
            assert abs(share - p[a, b]) < 0.03
    assert (M == M.T).all()
    assert M.max() == 1
    with pytest.raises(InputError, match="symmetric matrix"):
        wl.graphs.stochastic_block_model([2, 2], [[0.1, 0.2], [0.3, 0.1]])


@pytest.mark.book("A7-15", name="wl.graphs.knn_graph")
@pytest.mark.parametrize("d", [2, 20])
def test_nearest_neighbours(d):
    X = np.random.default_rng(0).normal(size=(60, d))
    distances = cdist(X, X)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :5]
    expected = np.zeros((60, 60), bool)
    expected[np.arange(60)[:, None], near] = True
    np.testing.assert_array_equal(dense(wl.graphs.knn_graph(X, 5, symmetrize=None)) > 0, expected)
    both = wl.graphs.knn_graph(X, 5, weight="distance")
    np.testing.assert_array_equal(dense(both) > 0, expected | expected.T)
    np.testing.assert_allclose(dense(both)[dense(both) > 0], distances[expected | expected.T])
    mutual = wl.graphs.knn_graph(X, 5, symmetrize="mutual", weight="gaussian")
    np.testing.assert_array_equal(dense(mutual) > 0, expected & expected.T)
    assert both.is_undirected
    assert both._copy(_undirected=None).is_undirected  # and not only by its flag
    with pytest.raises(InputError, match="k up to 59"):
        wl.graphs.knn_graph(X, 60)


def test_eigenvectors_of_a_neighbourhood_graph_are_smooth():
    X, _ = wl.data.make_moons(200, noise=0.05)
    graph = wl.graphs.knn_graph(X, 10, weight="gaussian")
    vectors = wl.graphs.laplacian_spectrum(graph, k=4).vectors.numpy()
    rows, cols = graph.ends()
    rng = np.random.default_rng(0)
    for q in vectors.T[1:]:
        assert np.abs(q[rows] - q[cols]).mean() < 0.2 * np.abs(q[rows] - rng.permutation(q)[cols]).mean()


@pytest.mark.book("12.28", "A7-03", name="wl.graphs.similarity_graph")
@pytest.mark.parametrize("d", [1, 3, 20])
def test_similarity_graphs(d):
    X = np.random.default_rng(0).normal(size=(40, d)) / np.sqrt(d)
    squares = cdist(X, X, "sqeuclidean")
    graph = wl.graphs.similarity_graph(X, tau=0.8)
    np.testing.assert_allclose(dense(graph), np.where(squares < 0.8, np.exp(-squares), 0), atol=1e-12)
    np.testing.assert_array_equal(dense(graph), dense(graph).T)
    assert (dense(graph).diagonal() == 1).all()
    only = wl.graphs.similarity_graph(X, tau=1e-12)
    np.testing.assert_array_equal(dense(only), np.eye(40))
    plain = wl.graphs.similarity_graph(X, tau=0.8, self_loops=False)
    L = [g.laplacian().todense().numpy() for g in (graph, plain)]
    np.testing.assert_allclose(*L, atol=1e-12)  # the diagonal is harmless
    two = wl.graphs.similarity_graph([[0.0], [0.5]], tau=1.0)
    np.testing.assert_allclose(dense(two)[0, 1], 0.778801, atol=1e-6)


def test_large_graphs():
    graph = wl.graphs.erdos_renyi(100_000, edges=500_000)
    assert (graph.n, graph.num_edges) == (100_000, 1_000_000)
    assert graph.pattern.nnz == 1_000_000
    assert abs(float(graph.degree().mean()) - 10) < 1e-3
