"""Spectra of graphs: the numbers of the notes, and theorems as properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csgraph

import wonderland as wl
from tests.graphs.test_graph import any_graph, dense, worked
from wonderland.errors import InputError
from wonderland.graphs import Graph

PATH = wl.graphs.path_graph(3)
TWO_PARTS = Graph(5, [(0, 1), (1, 2), (3, 4)], directed=False)


def cliques(k: int) -> Graph:
    inside = [(i + o, j + o) for o in (0, k) for i in range(k) for j in range(i)]
    return Graph(2 * k, [*inside, (k - 1, k)], directed=False)


@pytest.mark.book("A7-12", "A7-12b", "12.26", name="wl.graphs.laplacian_spectrum")
@given(any_graph(least=1, symmetric=True))
@settings(max_examples=25, deadline=None)
def test_the_eigendecomposition(graph):
    values, Q = (t.numpy() for t in wl.graphs.laplacian_spectrum(graph))
    M = dense(graph)
    L = np.diag(M.sum(axis=1)) - M
    size = max(1.0, np.abs(L).max())
    assert (np.diff(values) >= 0).all()
    assert abs(values[0]) <= 1e-12 * size * graph.n
    np.testing.assert_allclose(Q.T @ Q, np.eye(graph.n), atol=1e-10)
    np.testing.assert_allclose(Q * values @ Q.T, L, atol=1e-10 * size)
    np.testing.assert_allclose(L @ Q, Q * values, atol=1e-10 * size)
    largest = np.abs(Q).max(axis=0)
    first = np.argmax(np.abs(Q) >= (1 - 1e-6) * largest, axis=0)
    assert (Q[first, np.arange(graph.n)] > 0).all()
    np.testing.assert_allclose(L @ np.ones(graph.n), 0, atol=1e-10 * size)
    some = wl.graphs.laplacian_spectrum(graph, k=2)
    np.testing.assert_allclose(some.values, values[:2])


@pytest.mark.book("A7-13", "A7-14", name="wl.graphs.fiedler")
def test_the_path_of_three():
    values, Q = (t.numpy() for t in wl.graphs.laplacian_spectrum(PATH))
    np.testing.assert_allclose(values, [0, 1, 3], atol=1e-12)
    expected = np.array([[1, 1, 1], [-1, 0, 1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
    np.testing.assert_allclose(np.abs(np.sum(Q.T * expected, axis=1)), 1)
    value, vector = wl.graphs.fiedler(PATH)
    np.testing.assert_allclose(float(value), 1)
    np.testing.assert_allclose(np.abs(vector), np.abs(expected[1]), atol=1e-12)
    with pytest.raises(InputError, match="two nodes or more"):
        wl.graphs.fiedler(Graph(1))


@pytest.mark.book("12.20", name="wl.graphs.laplacian_spectrum")
def test_the_matrix_of_six_nodes():
    rows = ["011111", "100010", "100011", "100001", "111000", "101100"]
    graph = Graph.from_dense([[int(c) for c in row] for row in rows])
    assert graph.degree().tolist() == [5, 2, 3, 2, 3, 3]
    assert (graph.num_undirected_edges, graph.num_edges) == (9, 18)  # half of 36: called very sparse
    assert wl.graphs.diameter(graph) == 2
    expected = [0, 1.381966, 2.381966, 3.618034, 4.618034, 6]
    np.testing.assert_allclose(wl.graphs.laplacian_spectrum(graph).values, expected, atol=1e-6)
    assert wl.graphs.draw(graph).count("<circle") == 6


@pytest.mark.book("A7-09", name="wl.graphs.laplacian_spectrum")
def test_normalised_laplacians_have_one_spectrum():
    for kind in ("sym", "rw"):
        np.testing.assert_allclose(wl.graphs.laplacian_spectrum(PATH, kind).values, [0, 1, 2], atol=1e-12)
    root = 1 / np.sqrt(2)
    sym = PATH.laplacian("sym").todense()
    np.testing.assert_allclose(sym, [[1, -root, 0], [-root, 1, -root], [0, -root, 1]], atol=1e-6)
    np.testing.assert_allclose(PATH.laplacian("rw").todense(), [[1, -1, 0], [-0.5, 1, -0.5], [0, -1, 1]], atol=1e-6)
    # eigenvectors of the second
    values, vectors = (t.numpy() for t in wl.graphs.laplacian_spectrum(worked(), "rw"))
    L = worked().laplacian("rw", dtype=wl.float64).todense().numpy()
    np.testing.assert_allclose(L @ vectors, vectors * values, atol=1e-12)
    lone = Graph(3, [(0, 1)], directed=False)
    for kind in ("sym", "rw"):
        assert np.isfinite(lone.laplacian(kind).todense()).all()
        np.testing.assert_array_equal(lone.laplacian(kind).todense()[2], 0)


@pytest.mark.book("A7-16", "A7-17", name=("wl.graphs.is_connected", "wl.graphs.connected_components"))
@given(any_graph(least=2, symmetric=True))
@settings(max_examples=25, deadline=None)
def test_zero_is_an_eigenvalue_for_each_component(graph):
    values = wl.graphs.laplacian_spectrum(graph).values.numpy()
    zeros = int((values < 1e-9 * max(1, values[-1])).sum())
    assert zeros == wl.graphs.connected_components(graph)[0]
    assert wl.graphs.is_connected(graph) == (values[1] > 1e-9 * max(1, values[-1]))
    np.testing.assert_allclose(wl.graphs.laplacian_spectrum(TWO_PARTS).values, [0, 0, 1, 2, 3], atol=1e-12)
    L = TWO_PARTS.laplacian().todense().numpy()
    assert not L[:3, 3:].any()
    assert not L[3:, :3].any()


@pytest.mark.book("A7-19", name="wl.graphs.laplacian_spectrum")
def test_the_kernel_is_spanned_by_the_indicators_of_components():
    kernel = wl.graphs.laplacian_spectrum(TWO_PARTS, k=2).vectors.numpy()
    _, labels = wl.graphs.connected_components(TWO_PARTS)
    indicators = np.eye(2)[labels]
    for f in indicators.T:
        assert float(wl.graphs.laplacian_quadratic(TWO_PARTS, f)) == 0
    unit = indicators / np.linalg.norm(indicators, axis=0)
    np.testing.assert_allclose(kernel @ kernel.T, unit @ unit.T, atol=1e-12)  # projectors, not vectors


@pytest.mark.book("A7-18", name="wl.graphs.rayleigh")
def test_eigenvectors_are_critical_points_of_the_rayleigh_quotient():
    graph = cliques(4)
    values, Q = (t.numpy() for t in wl.graphs.laplacian_spectrum(graph))
    for k in range(graph.n):
        np.testing.assert_allclose(float(wl.graphs.rayleigh(graph, Q[:, k])), values[k], atol=1e-12)
        gradient = wl.grad(lambda f: wl.graphs.rayleigh(graph, f))(wl.asarray(Q[:, k]))
        np.testing.assert_allclose(gradient, 0, atol=1e-10)
    # steps against the gradient, without the constant part, find the second
    f = wl.tensor(np.random.default_rng(0).normal(size=graph.n))
    for _ in range(400):
        f = f - 0.1 * wl.grad(lambda f: wl.graphs.rayleigh(graph, f))(f)
        f = f - f.mean()
        f = f / (f * f).sum() ** 0.5
    np.testing.assert_allclose(float(wl.graphs.rayleigh(graph, f)), values[1], rtol=1e-6)
    np.testing.assert_allclose(abs(float(f @ wl.asarray(Q[:, 1]))), 1, rtol=1e-6)


@pytest.mark.book("A7-21", "A7-22", name="wl.graphs.laplacian_spectrum")
@given(any_graph(least=1, symmetric=True))
@settings(max_examples=25, deadline=None)
def test_the_trace_is_twice_the_weight_of_all_edges(graph):
    plain = graph.remove_self_loops()
    total = wl.graphs.laplacian_spectrum(plain).values.numpy().sum()
    np.testing.assert_allclose(total, dense(plain).sum(), atol=1e-9)  # both directions: each edge twice
    assert round(float(wl.graphs.laplacian_spectrum(PATH).values.sum()), 9) == 4 == 2 * PATH.num_undirected_edges


@pytest.mark.book("A7-20", name="wl.graphs.spectral_bisection")
@pytest.mark.parametrize("kind", ["un", "sym"])
def test_two_cliques_and_a_bridge_are_split_at_the_bridge(kind):
    graph = cliques(5)
    assert wl.graphs.spectral_bisection(graph, kind).tolist() == [0] * 5 + [1] * 5
    order = np.random.default_rng(0).permutation(10)
    mixed = wl.graphs.spectral_bisection(graph.permute(order), kind)
    assert len(set(zip((order >= 5).tolist(), mixed.tolist(), strict=True))) == 2
    labels = wl.models.spectral_clustering(graph.permute(order), 2, key=wl.random.key(0))
    assert len(set(zip((order >= 5).tolist(), labels.tolist(), strict=True))) == 2


@pytest.mark.book("A7-23", name="wl.graphs.spectral_embedding")
def test_embeddings_separate_clusters():
    graph = wl.graphs.stochastic_block_model([15, 15, 15], 0.6, 0.02)
    assert wl.graphs.is_connected(graph)
    whole = wl.graphs.spectral_embedding(graph, 3, drop_first=False).numpy()
    np.testing.assert_allclose(whole[:, 0], whole[0, 0])  # says nothing
    points = wl.graphs.spectral_embedding(graph, 2)
    np.testing.assert_array_equal(points, whole[:, 1:])
    found = wl.models.KMeans(3, key=wl.random.key(0)).fit(points.astype(wl.float32)).labels_.numpy()
    assert len(set(zip(graph.y.tolist(), found.tolist(), strict=True))) == 3
    assert wl.graphs.spectral_embedding(Graph(2), 5).shape == (2, 5)


@pytest.mark.book("12.81", name="wl.graphs.laplacian_pe")
def test_positional_encodings_are_eigenvectors():
    graph = wl.graphs.grid_graph(3, 4)
    u = wl.graphs.laplacian_pe(graph, 4).numpy()
    L = graph.laplacian("sym").todense().numpy()
    values = wl.graphs.laplacian_spectrum(graph, "sym").values.numpy()[1:5]
    for flip in ([1, 1, 1, 1], [-1, 1, -1, 1]):  # either sign solves L u = lambda u
        np.testing.assert_allclose(L @ (u * flip), u * flip * values, atol=1e-6)
    assert (wl.graphs.laplacian_pe(wl.graphs.path_graph(3), 5)[:, 2:] == 0).all()


@given(any_graph(least=1, symmetric=True))
@settings(max_examples=25, deadline=None)
def test_the_laplacian_is_that_of_scipy(graph):
    plain = graph.remove_self_loops()
    M = dense(plain)
    np.testing.assert_allclose(plain.laplacian().todense(), csgraph.laplacian(M), atol=1e-9)
    np.testing.assert_allclose(graph.laplacian().todense(), csgraph.laplacian(M), atol=1e-9)  # self-loops cancel
    if (M.sum(axis=1) > 0).all():
        np.testing.assert_allclose(plain.laplacian("sym").todense(), csgraph.laplacian(M, normed=True), atol=1e-9)


def test_directed_graphs_have_no_spectrum_here():
    with pytest.raises(InputError, match="laplacian_spectrum: the graph is directed: 2 entries"):
        wl.graphs.laplacian_spectrum(Graph(2, [(0, 1)]))


def test_eigenvalues_are_differentiable_in_the_weights():
    graph = worked()

    def f(w):
        both = wl.concat([w, w])
        return wl.graphs.laplacian_spectrum(graph.with_(weight=both)).values[1:].sum()

    gradient = wl.grad(f)(wl.ones(4, dtype=wl.float64))
    np.testing.assert_allclose(gradient, 2 * np.ones(4))  # the trace counts each edge twice
