"""Graphs of other packages, by what they look like; those packages themselves where they are installed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings

import wonderland as wl
from tests.graphs.test_graph import any_graph, dense, worked
from wonderland.errors import InputError
from wonderland.graphs import Graph


class LikeNetworkx:
    """A graph with the interface of networkx, as dicts of attributes."""

    def __init__(self, nodes, edges, directed):
        self._nodes, self._edges, self._directed = nodes, edges, directed

    def is_directed(self):
        return self._directed

    def nodes(self, data=False):
        return list(self._nodes.items())

    def edges(self, data=False):
        return [(u, v, attributes) for (u, v), attributes in self._edges.items()]


def test_graphs_like_those_of_networkx():
    nodes = {"a": {"x": [1.0, 2.0], "y": 0}, "b": {"x": [3.0, 4.0], "y": 1}, "c": {"x": [5.0, 6.0], "y": 1}}
    edges = {("a", "b"): {"weight": 2.0}, ("b", "c"): {"weight": 3.0}, ("c", "c"): {"weight": 1.0}}
    both = wl.graphs.from_networkx(LikeNetworkx(nodes, edges, False))
    np.testing.assert_array_equal(dense(both), [[0, 2, 0], [2, 0, 3], [0, 3, 1]])
    assert both.props["names"] == ("a", "b", "c")
    assert both.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert both.y.tolist() == [0, 1, 1]
    one = wl.graphs.as_graph(LikeNetworkx(nodes, edges, True))
    np.testing.assert_array_equal(dense(one), [[0, 2, 0], [0, 0, 3], [0, 0, 1]])
    plain = wl.graphs.from_networkx(LikeNetworkx({0: {}, 1: {}}, {(0, 1): {}}, False))
    assert plain.props == {}
    assert plain.weight is None


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_itself(directed):
    networkx = pytest.importorskip("networkx")
    made = networkx.gnp_random_graph(12, 0.3, seed=0, directed=directed)
    graph = wl.graphs.from_networkx(made)
    np.testing.assert_array_equal(dense(graph), networkx.to_numpy_array(made))
    back = wl.graphs.to_networkx(graph)
    assert networkx.utils.graphs_equal(back, made)
    club = wl.graphs.from_networkx(networkx.karate_club_graph())
    np.testing.assert_array_equal(dense(club) > 0, dense(wl.graphs.karate_club()) > 0)


@given(any_graph())
@settings(max_examples=20, deadline=None)
def test_scipy_there_and_back(graph):
    matrix = wl.graphs.to_scipy(graph)
    np.testing.assert_allclose(matrix.toarray(), dense(graph))
    np.testing.assert_allclose(dense(wl.graphs.from_scipy(matrix)), dense(graph))
    np.testing.assert_allclose(dense(wl.graphs.as_graph(scipy.sparse.coo_matrix(dense(graph)))), dense(graph))
    np.testing.assert_allclose(dense(wl.graphs.as_graph(graph.adjacency())), dense(graph))
    np.testing.assert_allclose(dense(wl.graphs.as_graph(dense(graph))), dense(graph))
    with pytest.raises(InputError, match="square"):
        wl.graphs.from_scipy(scipy.sparse.coo_matrix(np.ones((2, 3))))


def test_data_like_that_of_pytorch_geometric():
    data = SimpleNamespace(
        x=np.ones((3, 2), np.float32),
        edge_index=np.array([[0, 1], [1, 2]]),
        edge_attr=np.array([[1.0], [2.0]], np.float32),
        y=np.array([0, 1, 0]),
        train_mask=np.array([True, False, True]),
        num_nodes=3,
    )
    graph = wl.graphs.from_pyg(data)
    assert graph.edges.tolist() == [[1, 0], [2, 1]]  # node 1 reads from 0, and 2 from 1
    assert graph.edge_index.tolist() == data.edge_index.tolist()
    assert graph.edge_attr.tolist() == [[1], [2]]
    assert graph.masks["train"].tolist() == [True, False, True]
    assert wl.graphs.as_graph(data).n == 3
    weighted = SimpleNamespace(edge_index=np.array([[0], [1]]), edge_attr=np.array([0.5]))
    np.testing.assert_array_equal(dense(wl.graphs.from_pyg(weighted)), [[0, 0], [0.5, 0]])


def test_pytorch_geometric_itself():
    pytest.importorskip("torch_geometric")
    data = wl.graphs.to_pyg(worked().with_(x=wl.ones((4, 2)), y=[0, 1, 0, 1]))
    back = wl.graphs.from_pyg(data)
    assert back.edge_index.tolist() == worked().edge_index.tolist()
    assert back.y.tolist() == [0, 1, 0, 1]


def test_what_is_no_graph():
    assert wl.graphs.as_graph(np.array([[0, 1], [1, 2]])).n == 3  # an edge_index, for integers
    graph = worked()
    assert wl.graphs.as_graph(graph) is graph
    for source in ("text", np.ones(3), 7):
        with pytest.raises(InputError, match="is no graph"):
            wl.graphs.as_graph(source)
    assert isinstance(wl.graphs.as_graph(np.eye(3)), Graph)
