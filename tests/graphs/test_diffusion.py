"""Signals on graphs: products along edges, heat, smoothness, coarser graphs, walks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import wonderland as wl
from tests.graphs.test_graph import A, any_graph, dense, worked
from wonderland.errors import InputError, ShapeError
from wonderland.graphs import Graph

X = wl.tensor([1.0, 2.0, 3.0, 4.0])
PATH = wl.graphs.path_graph(3)


@pytest.mark.book("12.22", name=("wl.graphs.diffuse", "Graph.neighbors"))
def test_diffusion_is_a_sum_over_neighbours():
    graph = worked().with_(weight=np.arange(1.0, 9.0))
    M, x = dense(graph), np.random.default_rng(0).normal(size=(4, 3))
    loop = np.stack([sum((M[i, j] * x[j] for j in graph.neighbors(i)), np.zeros(3)) for i in range(4)])
    np.testing.assert_allclose(wl.graphs.diffuse(graph, x), loop)
    np.testing.assert_allclose(wl.graphs.diffuse(M, x, 3), M @ M @ M @ x)
    constant = np.full(4, 7.0)
    np.testing.assert_allclose(wl.graphs.diffuse(graph.normalize("row"), constant, 5), constant)
    with pytest.raises(ShapeError, match="on 4 nodes"):
        wl.graphs.diffuse(graph, np.zeros(3))


@pytest.mark.book("12.23", "A7-08", name="wl.graphs.laplacian")
@given(any_graph(least=1))
@settings(max_examples=25, deadline=None)
def test_laplacians(graph):
    M = dense(graph)
    L = graph.laplacian().todense().numpy()
    np.testing.assert_allclose(L, np.diag(M.sum(axis=1)) - M, atol=1e-12)
    np.testing.assert_allclose(L @ np.ones(graph.n), 0, atol=1e-9)
    with_loops = graph.remove_self_loops().add_self_loops().laplacian().todense()
    np.testing.assert_allclose(with_loops, L, atol=1e-12)  # L(A + I) = L(A)
    normal = graph.normalize("sym").laplacian().todense()  # of a normalised A, its own degrees
    np.testing.assert_allclose(normal @ np.ones(graph.n), 0, atol=1e-9)
    both = graph.to_undirected()
    values = np.linalg.eigvalsh(both.laplacian().todense().numpy())
    assert values.min() > -1e-9 * max(1, values.max())
    assert (values < 1e-9 * max(1, values.max())).sum() == wl.graphs.connected_components(graph)[0]
    np.testing.assert_array_equal(PATH.laplacian().todense(), [[1, -1, 0], [-1, 2, -1], [0, -1, 1]])


@pytest.mark.book("12.24", name="wl.graphs.laplacian_product")
def test_the_laplacian_is_a_gradient_on_the_graph():
    np.testing.assert_array_equal(wl.graphs.laplacian_product(worked(), X), [-3, -2, 3, 2])
    np.testing.assert_array_equal(worked().laplacian() @ X, [-3, -2, 3, 2])
    loop = [sum(A[i, j] * (X[i] - X[j]) for j in range(4)) for i in range(4)]
    np.testing.assert_array_equal([float(v) for v in loop], [-3, -2, 3, 2])


@pytest.mark.book("12.17", name="wl.graphs.shift")
@pytest.mark.parametrize("kind", ["adjacency", "row", "col", "sym", "laplacian", "laplacian_sym", "laplacian_rw"])
def test_shifts_have_the_pattern_of_the_graph(kind):
    graph = worked().with_(weight=np.arange(1.0, 9.0))
    S = graph.shift(kind)
    full = S.todense().numpy()
    outside = (A == 0) & ~np.eye(4, dtype=bool)
    assert (full[outside] == 0).all()
    assert (full[A != 0] != 0).all()
    np.testing.assert_allclose(S @ X.astype(wl.float64), full @ X.numpy())
    with pytest.raises(InputError, match="one of adjacency"):
        graph.shift("nothing")


@pytest.mark.book("12.25", name="wl.graphs.heat")
def test_heat_goes_to_the_mean_of_a_component():
    x = wl.tensor([4.0, 0.0, 0.0, 0.0], dtype=wl.float64)
    found = wl.graphs.heat(worked(), x, eta=0.25, steps=30)
    np.testing.assert_allclose(found, [1.000119, 1, 1.000119, 0.999762], atol=1e-6)
    literal = wl.graphs.diffuse(worked().laplacian(dtype=wl.float64), x, 30)
    assert np.abs(literal).max() > 1e17  # what the text says diverges
    # stable if and only if eta < 2 / lambda_max = 0.5
    assert np.abs(wl.graphs.heat(worked(), x, eta=0.49, steps=200) - 1).max() < 0.1
    assert np.abs(wl.graphs.heat(worked(), x, eta=0.51, steps=200, check=False)).max() > 10
    with pytest.raises(InputError, match=r"eta=0\.51 the signal grows: the largest eigenvalue of L is 4"):
        wl.graphs.heat(worked(), x, eta=0.51)
    graph = wl.graphs.erdos_renyi(15, 0.25, seed=3)
    _, labels = wl.graphs.connected_components(graph)
    signal = np.random.default_rng(0).normal(size=15)
    means = np.array([signal[labels == label].mean() for label in labels])
    gaps = [np.abs(wl.graphs.heat(graph, signal, steps=steps) - means).max() for steps in (10, 20, 30, 3000)]
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[3] < 1e-6


def test_the_largest_eigenvalue_of_a_large_graph():
    graph = wl.graphs.erdos_renyi(1200, 0.01)
    exact = np.linalg.eigvalsh(graph.laplacian().todense().numpy())[-1]
    np.testing.assert_allclose(wl.graphs.largest_eigenvalue(graph), exact, rtol=0.02)


@pytest.mark.book("12.27", "A7-10", "A7-07", name="wl.graphs.laplacian_quadratic")
def test_the_quadratic_form_counts_each_edge_once():
    graph = worked()
    L = graph.laplacian()
    assert float(wl.graphs.laplacian_quadratic(graph, X)) == 10
    assert float(wl.graphs.laplacian_quadratic(L, X)) == 10
    every = sum(float(A[i, j] * (X[i] - X[j]) ** 2) for i in range(4) for j in range(4))
    assert every == 20  # the sum of E.12.4 over all i and j needs a half
    assert [float(wl.graphs.smoothness(PATH, f)) for f in ([1.0, 1, 1], [-1.0, 0, 1], [1.0, -2, 1])] == [0, 2, 18]
    assert float(wl.graphs.smoothness(PATH, [1.0, 0.0, 1.0])) == 2
    F = np.random.default_rng(0).normal(size=(4, 3))
    dense_L = L.todense().numpy().astype(np.float64)
    np.testing.assert_allclose(wl.graphs.laplacian_quadratic(graph, F), np.trace(F.T @ dense_L @ F))
    np.testing.assert_allclose(wl.grad(lambda f: wl.graphs.laplacian_quadratic(graph, f))(F), 2 * dense_L @ F)
    jitted = wl.jit(wl.graphs.laplacian_quadratic)(graph, X)
    assert float(jitted) == 10
    with pytest.raises(InputError, match="directed: 2 entries"):
        wl.graphs.laplacian_quadratic(Graph(2, [(0, 1)]), [0.0, 1.0])


@pytest.mark.book("12.79", name="wl.graphs.random_walk_matrix")
def test_the_random_walk_matrix_is_column_stochastic():
    R = wl.graphs.random_walk_matrix(worked(), dtype=wl.float64).todense().numpy()
    np.testing.assert_allclose(R, A / A.sum(axis=0))
    np.testing.assert_allclose(R.sum(axis=0), 1)
    assert not np.allclose(R.sum(axis=1), 1)
    np.testing.assert_allclose(R[1, 3], 1)  # from node 3 there is one way, to node 1
    other = A / A.sum(axis=1, keepdims=True)  # as the text reads
    assert not np.allclose(R, other)
    returns = wl.graphs.return_probabilities(worked(), 4, dtype=wl.float64).numpy()
    for t in range(1, 5):
        power = np.linalg.matrix_power(R, t)
        np.testing.assert_allclose(np.diag(power), np.diag(np.linalg.matrix_power(other, t)), atol=1e-12)
        np.testing.assert_allclose(returns[:, t - 1], np.diag(power), atol=1e-12)
    np.testing.assert_allclose(returns[0], [0, 0.416667, 0.166667, 0.298611], atol=1e-6)
    np.testing.assert_allclose(returns[1], [0, 0.666667, 0.166667, 0.527778], atol=1e-6)
    np.testing.assert_allclose(returns[3], [0, 0.333333, 0, 0.222222], atol=1e-6)


@pytest.mark.book("12.16", name="wl.graphs.random_walk")
@pytest.mark.parametrize("weights", [None, np.arange(1.0, 9.0)])
def test_walks_step_as_the_rows_of_the_normalised_matrix_say(weights):
    graph = worked().with_(weight=weights)
    walks = wl.graphs.random_walk(graph, 6, np.repeat(np.arange(4), 1000), key=wl.random.key(1)).numpy()
    assert walks.shape == (4000, 7)
    steps = np.zeros((4, 4))
    np.add.at(steps, (walks[:, :-1].reshape(-1), walks[:, 1:].reshape(-1)), 1)
    P = dense(graph.normalize("row"))
    np.testing.assert_allclose(steps / steps.sum(axis=1, keepdims=True), P, atol=0.03)
    assert (steps[P == 0] == 0).all()
    again = wl.graphs.random_walk(graph, 6, np.repeat(np.arange(4), 1000), key=wl.random.key(1))
    np.testing.assert_array_equal(walks, again)
    assert not np.array_equal(
        walks, wl.graphs.random_walk(graph, 6, np.repeat(np.arange(4), 1000), key=wl.random.key(2))
    )


def test_walks_stay_where_there_is_no_way():
    graph = Graph(3, [(0, 1)])
    assert wl.graphs.random_walk(graph, 2, key=wl.random.key(0)).tolist() == [[0, 1, 1], [1, 1, 1], [2, 2, 2]]
    assert wl.graphs.random_walk(Graph(2), 1).tolist() == [[0, 0], [1, 1]]
    assert wl.graphs.random_walk(graph.with_(weight=[0.0]), 1, [0]).tolist() == [[0, 0]]


@pytest.mark.book("A7-26", name=("wl.graphs.coarsen", "wl.graphs.cluster_graph"))
@given(any_graph(least=1))
@settings(max_examples=25, deadline=None)
def test_coarser_graphs_keep_the_total_weight(graph):
    labels = np.arange(graph.n) % 3
    S = np.eye(3)[labels]
    M = dense(graph)
    np.testing.assert_allclose(wl.graphs.coarsen(graph, S), S.T @ M @ S)
    np.testing.assert_allclose(wl.graphs.coarsen(M, S).sum(), M.sum())
    small = wl.graphs.cluster_graph(graph, labels)
    np.testing.assert_allclose(dense(small), (S.T @ M @ S)[: small.n, : small.n])
    means = [graph.x.numpy()[labels == k].mean(axis=0) for k in range(small.n)]
    np.testing.assert_allclose(small.x, means)
    soft = np.random.default_rng(0).dirichlet(np.ones(2), graph.n)
    np.testing.assert_allclose(float(wl.graphs.coarsen(graph, soft).sum()), M.sum())
