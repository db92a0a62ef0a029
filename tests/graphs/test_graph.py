"""What a graph is: its forms, what it refuses, and that it is a value and a tree."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError, TraceError
from wonderland.graphs import Graph

# figure 12.2 of the book, with nodes from 0
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3)]
A = np.array([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 0]], np.float32)
B = np.array([[1, 1, 0, 0], [1, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1]], np.float32)


def worked() -> Graph:
    return Graph(4, EDGES, directed=False)


@st.composite
def any_graph(draw, least=0, symmetric=False):
    n = draw(st.integers(least, 8))
    pairs = draw(st.lists(st.tuples(st.integers(0, max(n - 1, 0)), st.integers(0, max(n - 1, 0))), max_size=20))
    pairs = pairs if n else []
    weights = draw(st.lists(st.integers(1, 9), min_size=len(pairs), max_size=len(pairs)))
    graph = Graph(n, pairs, np.array(weights, np.float64), x=np.arange(3.0 * n).reshape(n, 3))
    return graph.to_undirected() if symmetric else graph


def dense(graph) -> np.ndarray:
    found = np.zeros((graph.n, graph.n))
    rows, cols = graph.ends()
    weights = np.ones(len(rows)) if graph.weight is None else np.asarray(graph.weight)
    for i, j, w in zip(rows, cols, weights, strict=True):
        found[i, j] += w
    return found


@pytest.mark.book("12.01", "12.03", "12.07", "A7-04", name="wl.graphs.Graph")
def test_the_worked_graph_in_three_forms():
    graph = worked()
    np.testing.assert_array_equal(graph.to_dense(), A)
    np.testing.assert_array_equal(graph.incidence(), B)
    assert graph.coo() == [[i, j] for i in range(4) for j in range(4) if A[i, j]]
    assert graph.degree().tolist() == [2, 3, 2, 1]
    assert graph.neighbors(0).tolist() == [1, 2]
    np.testing.assert_allclose(wl.graphs.laplacian_spectrum(graph).values, [0, 1, 3, 4], atol=1e-12)
    again = Graph.from_dense(A)
    np.testing.assert_array_equal(again.to_dense(), A)
    assert again.coo() == graph.coo()
    assert (graph.num_edges, graph.num_undirected_edges, graph.n, graph.num_nodes) == (8, 4, 4, 4)


@pytest.mark.book("12.05", name="wl.graphs.incidence")
def test_columns_of_the_incidence_matrix_sum_to_two():
    incidence = worked().incidence().numpy()
    np.testing.assert_array_equal(incidence.sum(axis=0), [2, 2, 2, 2])
    np.testing.assert_array_equal(incidence.sum(axis=1), A.sum(axis=1))
    np.testing.assert_array_equal(incidence @ incidence.T, np.diag(A.sum(axis=1)) + A)
    assert not (incidence @ np.ones(4) == 2).all()  # the text has 1 on the other side


@pytest.mark.book("A7-11", name="wl.graphs.incidence")
@given(any_graph(symmetric=True))
@settings(max_examples=25, deadline=None)
def test_the_laplacian_is_a_product_of_oriented_incidence(graph):
    P = graph.incidence(oriented=True).numpy()
    turned = P * np.where(np.arange(P.shape[1]) % 2, -1, 1)  # other orientations of the edges
    adjacency = dense(graph)
    L = np.diag(adjacency.sum(axis=1)) - adjacency
    np.testing.assert_allclose(P @ P.T, L, atol=1e-9)
    np.testing.assert_allclose(turned @ turned.T, L, atol=1e-9)
    assert graph.n == 0 or np.linalg.eigvalsh(L).min() > -1e-9


@pytest.mark.book("12.04", name=("Graph.to_undirected", "Graph.is_undirected"))
def test_undirected_graphs_store_both_directions():
    graph = Graph(3, [(0, 1), (1, 2)])
    assert not graph.is_undirected
    both = graph.to_undirected()
    assert both.is_undirected
    assert (both.num_edges, both.num_undirected_edges) == (4, 2)
    np.testing.assert_array_equal(both.to_dense(), both.to_dense().T)
    with pytest.raises(InputError, match=r"graph is directed: 4 entries of A .* \(0, 1\), \(1, 0\), \(1, 2\), \.\.\."):
        _ = graph.num_undirected_edges
    looped = Graph(2, [(0, 0), (0, 1)], directed=False)
    assert (looped.num_edges, looped.num_undirected_edges) == (3, 2)


@pytest.mark.parametrize("how", ["max", "mean", "sum"])
@given(graph=any_graph())
@settings(max_examples=25, deadline=None)
def test_to_undirected_is_a_formula(how, graph):
    M = dense(graph)
    expected = {"max": np.maximum(M, M.T), "mean": (M + M.T) / 2, "sum": M + M.T}[how]
    if how == "sum":  # a self-loop is one edge
        np.fill_diagonal(expected, M.diagonal())
    found = graph.to_undirected(how)
    np.testing.assert_allclose(dense(found), expected)
    assert found.is_undirected


@pytest.mark.book("12.54", name="wl.graphs.coo")
def test_the_coordinate_list_of_the_book():
    graph = Graph.from_dense([[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    assert graph.coo() == [[0, 2], [2, 0]]
    assert graph.n == 3  # the list alone does not know of node 1
    assert graph.neighbors(1).tolist() == []
    # pairs and an edge_index are told apart by a directed edge
    directed = Graph(3, [(0, 2)])
    assert directed.edges.tolist() == [[0, 2]]
    assert directed.edge_index.tolist() == [[2], [0]]  # node 0 reads from node 2
    np.testing.assert_array_equal(wl.graphs.diffuse(directed, wl.tensor([1.0, 10.0, 100.0])), [100, 0, 0])
    np.testing.assert_array_equal(Graph.from_edge_index(directed.edge_index, 3).to_dense(), directed.to_dense())


@pytest.mark.book("12.06", name="wl.graphs.add_self_loops")
@given(any_graph())
@settings(max_examples=25, deadline=None)
def test_self_loops_are_added_once(graph):
    once = graph.add_self_loops()
    twice = once.add_self_loops()
    np.testing.assert_array_equal(dense(once), dense(twice))
    expected = dense(graph)
    expected[np.diag_indices(graph.n)] = np.where(expected.diagonal() == 0, 1, expected.diagonal())
    np.testing.assert_array_equal(dense(once), expected)
    assert dense(once.remove_self_loops()).diagonal().sum() == 0
    plain = worked().add_self_loops()
    np.testing.assert_array_equal(plain.add_self_loops().to_dense(), A + np.eye(4))


@pytest.mark.book("12.09", "A7-06", name="wl.graphs.Graph")
def test_features_of_nodes_edges_and_the_graph():
    graph = Graph(
        3,
        [(0, 1), (1, 2)],
        x=np.zeros((3, 5)),
        edge_attr=np.zeros((2, 4)),
        u=[1.0, 2.0],
        y=[0, 1, 0],
        edge_y=[1, 0],
        props={"name": "a molecule"},
    )
    assert (graph.x.shape, graph.edge_attr.shape, graph.u.shape, graph.y_of) == ((3, 5), (2, 4), (1, 2), "nodes")
    assert graph.props["name"] == "a molecule"
    with pytest.raises(ShapeError, match=r"x has shape \(2, 5\), and there are 3 nodes"):
        Graph(3, x=np.zeros((2, 5)))
    with pytest.raises(ShapeError, match=r"edge_attr has shape \(3, 4\), and there are 2 edges"):
        Graph(3, [(0, 1), (1, 2)], edge_attr=np.zeros((3, 4)))
    with pytest.raises(ShapeError, match=r"labels y of shape \(2,\), and there are 3 nodes"):
        Graph(3, y=[0, 1])
    assert Graph(3, y=2).y_of == "graph"


def test_what_is_refused_is_counted_and_shown():
    with pytest.raises(IndexOutOfRange, match=r"2 of 3 edges are outside a graph with 3 nodes: row 1: \(7, 0\), row 2"):
        Graph(3, [(0, 1), (7, 0), (1, -1)])
    with pytest.raises(IndexOutOfRange, match="1 of 1 edges"):
        Graph(0, [(0, 0)])
    with pytest.raises(ShapeError, match=r"weights of shape \(1,\) for 2 edges"):
        Graph(3, [(0, 1), (1, 2)], [1.0])
    with pytest.raises(InputError, match=r"2 of 3 weights are not finite: row 0: nan, row 2: inf"):
        Graph(3, [(0, 1), (1, 2), (2, 0)], [np.nan, 1.0, np.inf])
    with pytest.raises(ShapeError, match="from_edge_index"):
        Graph(3, np.zeros((2, 5), int))
    with pytest.raises(DTypeError, match="nodes are float64"):
        Graph(3, np.array([[0.5, 1.0]]))
    with pytest.raises(InputError, match=r"directed=False\): the graph is directed: 2 entries"):
        Graph(2, [(0, 1), (1, 0)], [1.0, 2.0], directed=False)
    with pytest.raises(ShapeError, match="mask 'train'"):
        Graph(2, masks={"train": [True]})
    with pytest.raises(InputError, match="no mask 'val'; masks: 'train'"):
        Graph(2, masks={"train": [True, False]}).mask("val")
    with pytest.raises(InputError, match=r"graph\.with_\(x=\.\.\.\)"):
        worked().x = wl.ones((4, 1))
    with pytest.raises(InputError, match="no permutation"):
        worked().permute([0, 0, 1, 2])
    with pytest.raises(InputError, match="node 1 is asked for more than once"):
        worked().subgraph([1, 1])


@given(any_graph())
@settings(max_examples=25, deadline=None)
def test_duplicates_are_kept_and_summed(graph):
    once = graph.coalesce()
    np.testing.assert_array_equal(dense(once), dense(graph))
    np.testing.assert_array_equal(graph.to_dense(), dense(graph))
    assert len(set(map(tuple, once.edges.tolist()))) == once.num_edges
    assert once.coo() == once.edges.tolist()
    doubled = Graph(2, [(0, 1), (0, 1)], edge_attr=[[1.0], [2.0]])
    assert doubled.num_edges == 2
    assert doubled.degree().tolist() == [2.0, 0.0]
    assert doubled.coalesce().weight.tolist() == [2.0]
    assert doubled.coalesce().edge_attr.tolist() == [[3.0]]


@pytest.mark.book("12.10", name="wl.graphs.permute")
@given(any_graph(symmetric=True), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_a_permuted_graph_is_the_same_graph(graph, random):
    perm = list(range(graph.n))
    random.shuffle(perm)
    moved = graph.permute(perm)
    np.testing.assert_array_equal(dense(moved), dense(graph)[np.ix_(perm, perm)])
    np.testing.assert_array_equal(moved.x, graph.x.numpy()[perm])
    np.testing.assert_array_equal(np.sort(moved.degree()), np.sort(graph.degree()))
    spectra = [wl.graphs.laplacian_spectrum(g).values.numpy() for g in (graph, moved)]
    np.testing.assert_allclose(*spectra, atol=1e-9)
    back = moved.permute(np.argsort(perm))
    np.testing.assert_array_equal(dense(back), dense(graph))


@pytest.mark.book("12.34", name="wl.graphs.subgraph")
@given(any_graph(least=1), st.data())
@settings(max_examples=25, deadline=None)
def test_induced_subgraphs(graph, data):
    nodes = data.draw(st.lists(st.integers(0, graph.n - 1), unique=True))
    graph = graph.with_(edge_attr=np.arange(graph.num_edges), y=np.arange(graph.n))
    part = graph.subgraph(nodes)
    np.testing.assert_array_equal(dense(part), dense(graph)[np.ix_(nodes, nodes)])
    assert part.y.tolist() == nodes
    rows, cols = graph.ends()
    for (i, j), e in zip(part.edges.tolist(), part.edge_attr.tolist(), strict=True):
        assert (nodes[i], nodes[j]) == (rows[e], cols[e])
    mask = np.isin(np.arange(graph.n), nodes)
    np.testing.assert_array_equal(dense(graph.subgraph(mask)), dense(graph)[np.ix_(mask, mask)])


@pytest.mark.book("12.36", name="wl.graphs.k_hop")
@given(any_graph(least=1), st.integers(0, 4))
@settings(max_examples=25, deadline=None)
def test_k_hop_neighbourhoods_are_powers(graph, k):
    reach = np.linalg.matrix_power(dense(graph) + np.eye(graph.n), k)
    for i in range(graph.n):
        assert graph.k_hop(i, k).tolist() == np.flatnonzero(reach[i]).tolist()
    assert worked().k_hop(3, 1).tolist() == [1, 3]
    assert worked().k_hop(3, 2).tolist() == [0, 1, 2, 3]


def test_empty_graphs_and_isolated_nodes():
    for graph in (Graph(0), Graph(3)):
        n = graph.n
        assert graph.num_edges == 0
        assert graph.is_undirected
        assert graph.edges.shape == (0, 2)
        assert graph.degree().tolist() == [0.0] * n
        assert graph.normalize("sym").weight.shape == (0,)
        assert graph.add_self_loops().num_edges == n
        assert graph.coo() == []
        assert graph.incidence().shape == (n, 0)
        assert graph.coalesce().num_edges == graph.to_undirected().num_edges == 0
        assert wl.graphs.connected_components(graph)[0] == n
        assert wl.graphs.laplacian_spectrum(graph).values.tolist() == [0.0] * n


def test_a_graph_is_a_tree_and_an_argument_of_jit():
    graph = worked().with_(x=np.eye(4, dtype=np.float32), masks={"train": [True, False, True, False]}, props={"k": 1})
    doubled = wl.tree.map(lambda leaf: leaf, graph)
    np.testing.assert_array_equal(doubled.to_dense(), A)

    @wl.jit
    def f(graph, w):
        assert graph.n == 4
        weight = graph.normalize("sym").weight
        return wl.sparse.matmul(weight, graph.pattern, graph.x) * w, graph

    out, same = f(graph, 2.0)
    expected = A / np.sqrt(np.outer(A.sum(1), A.sum(1)))
    np.testing.assert_allclose(out, 2 * expected, rtol=1e-6)
    assert same.props == {"k": 1}
    assert same.is_undirected
    f(graph.with_(x=2 * np.eye(4, dtype=np.float32)), 3.0)
    f(graph.permute([3, 2, 1, 0]).permute([3, 2, 1, 0]), 3.0)
    assert f.traces == 1
    f(graph.with_(props={"k": 2}), 1.0)
    assert f.traces == 2
    with pytest.raises(TraceError, match="before wl"):
        wl.jit(lambda g: g.add_self_loops().degree())(graph)
    assert pickle.loads(pickle.dumps(graph)).coo() == graph.coo()
    assert repr(graph) == "Graph(4 nodes, 4 undirected edges, x (4, 4), train 2, props k)"


def test_weights_are_differentiated_through_changes_of_structure():
    graph = Graph(3, [(0, 1), (1, 2), (0, 1)])

    def f(w):
        g = graph.with_(weight=w).coalesce().to_undirected("sum").add_self_loops().normalize("sym")
        return (g.to_dense() ** 2 * wl.arange(9.0).reshape((3, 3))).sum()

    wl.check_grads(f, (wl.tensor([1.0, 2.0, 3.0], dtype=wl.float64),))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_are_kept(dtype):
    graph = Graph(2, [(0, 1)], np.ones(1, dtype))
    for value in (graph.degree(), graph.to_dense(), graph.normalize("row").weight, graph.add_self_loops().weight):
        assert value.dtype == dtype
