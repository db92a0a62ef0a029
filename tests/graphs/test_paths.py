"""Searches, components and distances, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csgraph

import wonderland as wl
from tests.graphs.test_graph import any_graph, dense, worked
from wonderland.errors import InputError
from wonderland.graphs import Graph


@given(any_graph(least=1))
@settings(max_examples=40, deadline=None)
def test_shortest_paths_are_those_of_scipy(graph):
    M = dense(graph)
    steps = csgraph.shortest_path(M, unweighted=True)
    np.testing.assert_array_equal(wl.graphs.shortest_paths(graph), steps)
    np.testing.assert_array_equal(wl.graphs.shortest_paths(graph, [graph.n - 1, 0]), steps[[graph.n - 1, 0]])
    once = graph.coalesce()
    np.testing.assert_allclose(wl.graphs.shortest_paths(once, weighted=True), csgraph.shortest_path(dense(once)))
    assert wl.graphs.diameter(graph) == steps.max()
    order, distance, parent = wl.graphs.bfs(graph, 0)
    np.testing.assert_array_equal(np.where(distance < 0, np.inf, distance), steps[0])
    assert sorted(order) == np.flatnonzero(distance >= 0).tolist()
    assert (np.diff(distance[order]) >= 0).all()
    for node in order[1:]:
        assert distance[parent[node]] == distance[node] - 1
        assert node in graph.neighbors(parent[node])


@given(any_graph(least=1))
@settings(max_examples=40, deadline=None)
def test_components_are_those_of_scipy(graph):
    count, labels = csgraph.connected_components(dense(graph), directed=True, connection="weak")
    found, ours = wl.graphs.connected_components(graph)
    assert found == count
    assert len(set(zip(labels, ours, strict=True))) == count
    assert (np.unique(ours, return_index=True)[1][1:] > np.unique(ours, return_index=True)[1][:-1]).all()
    assert wl.graphs.is_connected(graph) == (count == 1)


def test_many_sources_and_long_paths():
    graph = wl.graphs.grid_graph(30, 40)  # more sources than one search takes
    expected = csgraph.shortest_path(wl.graphs.grid_graph(30, 40).to_dense().numpy(), unweighted=True)
    np.testing.assert_array_equal(wl.graphs.shortest_paths(graph), expected)
    order = np.random.default_rng(0).permutation(3000)
    assert wl.graphs.connected_components(wl.graphs.path_graph(3000).permute(order))[0] == 1


@pytest.mark.book("12.44", name=("wl.graphs.diameter", "wl.graphs.shortest_paths"))
def test_diameters():
    assert wl.graphs.diameter(worked()) == 2
    assert [wl.graphs.diameter(wl.graphs.path_graph(n)) for n in (1, 2, 7)] == [0, 1, 6]
    assert wl.graphs.diameter(wl.graphs.complete_graph(5)) == 1
    assert wl.graphs.diameter(Graph(3, [(0, 1)], directed=False)) == np.inf
    # so many layers until every node depends on every other one
    for graph in (worked(), wl.graphs.grid_graph(3, 4)):
        reach = graph.add_self_loops().to_dense().numpy()
        powers = [np.linalg.matrix_power(reach, k).all() for k in range(1, 8)]
        assert powers.index(True) + 1 == wl.graphs.diameter(graph)


@pytest.mark.book("12.78", name="wl.graphs.anchor_distances")
def test_distances_to_anchors():
    graph = wl.graphs.path_graph(6)
    assert wl.graphs.anchor_distances(graph, [0])[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert wl.graphs.anchor_distances(graph, [0, 5], cap=3).tolist()[4] == [3, 1]
    apart = Graph(3, [(0, 1)], directed=False)
    assert wl.graphs.anchor_distances(apart, [0])[:, 0].tolist() == [0, 1, 3]
    assert wl.graphs.anchor_distances(Graph(2, [(1, 0)]), [0])[:, 0].tolist() == [0, 1]  # from 1, along its edge


@pytest.mark.book("12.63", name="wl.graphs.edge_homophily")
def test_homophily():
    sides = [0, 0, 1, 1, 1]
    assert wl.graphs.edge_homophily(wl.graphs.bipartite_graph(2, 3), sides) == 0
    blocks = wl.graphs.stochastic_block_model([20, 20], 0.3, 0.0)
    assert wl.graphs.edge_homophily(blocks) == wl.graphs.node_homophily(blocks) == 1
    some = wl.graphs.stochastic_block_model([40, 40], 0.3, 0.1)
    assert 0.6 < wl.graphs.edge_homophily(some) < 0.9
    assert np.isnan(wl.graphs.edge_homophily(Graph(2), [0, 1]))
    assert wl.graphs.edge_homophily(some.add_self_loops()) == wl.graphs.edge_homophily(some)
    with pytest.raises(InputError, match="no labels"):
        wl.graphs.edge_homophily(Graph(2))


def test_negative_lengths_are_refused():
    with pytest.raises(InputError, match="1 weights are negative: row 0: -1"):
        wl.graphs.shortest_paths(Graph(2, [(0, 1)], [-1.0]), weighted=True)
