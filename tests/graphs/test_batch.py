"""Batches: one by one and all at once are the same; padding changes nothing; few sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.graphs.test_graph import any_graph, dense, worked
from wonderland.errors import InputError, ShapeError
from wonderland.graphs import Batch, Graph


def layer(graph, w):
    """phi(A (X W)), summed over the nodes of each graph."""
    h = wl.tanh(wl.sparse.matmul(graph.weight, graph.pattern, graph.x @ w))
    return h, wl.sparse.segment_sum(h, graph.nodes)


W = np.random.default_rng(0).normal(size=(3, 2))
several = st.lists(any_graph(), min_size=1, max_size=5)


@pytest.mark.book("12.58", name=("Batch.from_graphs", "Batch.to_graphs"))
@given(several)
@settings(max_examples=25, deadline=None)
def test_a_batch_is_its_graphs_side_by_side(graphs):
    graphs = [g.with_(edge_attr=np.arange(g.num_edges), u=[float(k)]) for k, g in enumerate(graphs)]
    batch = Batch.from_graphs(graphs)
    sizes = np.cumsum([0, *(g.n for g in graphs)])
    expected = np.zeros((batch.n, batch.n))
    for a, b, g in zip(sizes[:-1], sizes[1:], graphs, strict=True):
        expected[a:b, a:b] = dense(g)
    np.testing.assert_array_equal(dense(batch), expected)
    h, sums = layer(batch, W)
    singles = [layer(g, W) for g in graphs]
    np.testing.assert_allclose(h, np.concatenate([s[0] for s in singles]), atol=1e-12)
    np.testing.assert_allclose(sums, np.concatenate([s[1] for s in singles]), atol=1e-12)
    for there, back in zip(graphs, batch.to_graphs(), strict=True):
        assert back.edges.tolist() == there.edges.tolist()
        for name in ("weight", "x", "edge_attr", "u"):
            np.testing.assert_array_equal(getattr(back, name), getattr(there, name))
    # no message passes between graphs
    first = graphs[0].n
    gradient = wl.grad(lambda x: layer(batch.with_(x=x), W)[0][:first].sum())(batch.x)
    assert not gradient.numpy()[first:].any()


def test_the_density_falls_with_the_number_of_graphs():
    graph = worked()
    share = [b.num_edges / b.n**2 for b in (Batch.from_graphs([graph] * k) for k in (1, 4))]
    assert share[1] == share[0] / 4


@pytest.mark.book("12.59", name="Batch.graph_index")
def test_the_batch_vector_of_the_figure():
    batch = Batch.from_graphs([worked(), wl.graphs.path_graph(3)])
    assert batch.graph_index.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert worked().graph_index.tolist() == [0, 0, 0, 0]
    assert (worked().num_graphs, batch.num_graphs) == (1, 2)
    H = wl.arange(14.0).reshape((7, 2))
    np.testing.assert_array_equal(wl.sparse.segment_sum(H, batch.nodes), [[12, 16], [30, 33]])
    np.testing.assert_array_equal(batch.per_node([[1.0], [2.0]])[:, 0], [1, 1, 1, 1, 2, 2, 2])


@given(several)
@settings(max_examples=25, deadline=None)
def test_padding_reaches_nothing(graphs):
    graphs = [g.with_(y=k, u=[float(k), 1.0]) for k, g in enumerate(graphs)]
    batch = Batch.from_graphs(graphs)
    padded = batch.padded()
    assert padded.num_graphs == batch.num_graphs + 1
    assert padded.real_graphs == batch.num_graphs
    assert padded.n == wl.graphs.bucket(batch.n + 1)
    assert padded.num_edges == wl.graphs.bucket(batch.num_edges)
    assert padded.pattern.rows.sorted
    nodes, real = np.asarray(padded.node_mask), np.asarray(padded.edge_mask)
    assert (nodes.sum(), real.sum(), np.asarray(padded.graph_mask).sum()) == (batch.n, batch.num_edges, len(graphs))
    h, sums = layer(batch, W)
    ph, psums = layer(padded, W)
    np.testing.assert_allclose(np.asarray(ph)[nodes], h, atol=1e-12)
    np.testing.assert_allclose(psums[: len(graphs)], sums, atol=1e-12)
    noise = padded.with_(x=np.where(nodes[:, None], padded.x, 1e6))
    np.testing.assert_allclose(np.asarray(layer(noise, W)[0])[nodes], h, atol=1e-12)
    assert padded.y.tolist() == [*range(len(graphs)), 0]
    for there, back in zip(graphs, padded.to_graphs(), strict=True):
        np.testing.assert_array_equal(dense(back), dense(there))
        np.testing.assert_array_equal(back.x, there.x)
        assert int(back.y) == int(there.y)
    looped = padded.add_self_loops()
    assert looped.edge_mask.shape == (looped.num_edges,)
    with pytest.raises(InputError, match="padded already"):
        padded.padded()


def test_many_sizes_need_few_programs():
    rng = np.random.default_rng(0)

    @wl.jit
    def f(batch, w):
        return layer(batch, w)[1]

    for k in range(12):
        graphs = [wl.graphs.erdos_renyi(int(n), 0.3, seed=k) for n in rng.integers(5, 20, 32)]
        graphs = [g.with_(x=np.ones((g.n, 3)), weight=np.ones(g.num_edges)) for g in graphs]
        batch = Batch.from_graphs(graphs).padded()
        expected = [float(g.degree().numpy() @ np.ones(g.n)) for g in graphs]
        found = np.arctanh(np.minimum(0.0, 0.0)) + f(batch, np.full((3, 2), 1e-6))
        np.testing.assert_allclose(found[: batch.real_graphs, 0], np.array(expected) * 3e-6, rtol=1e-4)
    assert f.traces <= 6
    assert [wl.graphs.bucket(n) for n in (1, 8, 9, 16, 17, 63, 64, 65)] == [8, 8, 10, 16, 20, 64, 64, 80]
    sizes = {wl.graphs.bucket(n) for n in range(1000, 2000)}
    assert len(sizes) <= 5
    assert all(wl.graphs.bucket(n) >= n and wl.graphs.bucket(n) <= 1.25 * n + 8 for n in range(1, 3000))


@pytest.mark.book("12.57", name="wl.graphs.pad_graphs")
@given(several)
@settings(max_examples=25, deadline=None)
def test_dense_padding(graphs):
    x, A, mask = wl.graphs.pad_graphs(graphs, pad_to=8)
    assert (x.shape, A.shape, mask.shape) == ((len(graphs), 8, 3), (len(graphs), 8, 8), (len(graphs), 8))
    h = np.tanh(A.numpy() @ (x.numpy() @ W))
    means = h.sum(axis=1) / np.maximum(mask.numpy().sum(axis=1, keepdims=True), 1)
    for k, graph in enumerate(graphs):
        single = np.asarray(layer(graph, W)[0])
        np.testing.assert_allclose(h[k, : graph.n], single, atol=1e-12)
        assert not A.numpy()[k, graph.n :].any()  # no self-loops of padding, either
        if graph.n:
            np.testing.assert_allclose(means[k], single.mean(axis=0), atol=1e-12)  # by n_i, and not by n
    looped = wl.graphs.pad_graphs([g.add_self_loops() for g in graphs])
    assert not looped.A.numpy()[~looped.mask.numpy()].any()
    assert wl.graphs.pad_graphs([worked()], pad_to=wl.graphs.bucket).A.shape == (1, 8, 8)
    with pytest.raises(InputError, match="4 or more"):
        wl.graphs.pad_graphs([worked()], pad_to=3)


def test_labels_of_nodes_and_of_graphs():
    nodes = Batch.from_graphs([Graph(2, y=[0, 1]), Graph(1, y=[2])])
    assert (nodes.y.tolist(), nodes.y_of) == ([0, 1, 2], "nodes")
    graphs = Batch.from_graphs([Graph(2, y=5), Graph(1, y=[6])])
    assert (graphs.y.tolist(), graphs.y_of) == ([5, 6], "graph")
    assert [int(g.y) for g in graphs.to_graphs()] == [5, 6]
    several = Batch.from_graphs([Graph(3, y=[[1.0, 2.0]]), Graph(2, y=[[3.0, 4.0]])])
    assert several.y.tolist() == [[1, 2], [3, 4]]
    assert several.to_graphs()[1].y.tolist() == [[3, 4]]
    masks = {"train": [True, False]}
    assert Batch.from_graphs([Graph(2, masks=masks)] * 2).masks["train"].tolist() == [True, False] * 2


def test_what_does_not_fit_together():
    with pytest.raises(InputError, match="1 of 2 graphs have no x, as graph 1"):
        Batch.from_graphs([Graph(1, x=[[1.0]]), Graph(1)])
    with pytest.raises(ShapeError, match=r"x of graph 1 has shape \(1, 2\), that of graph 0 \(1, 1\)"):
        Batch.from_graphs([Graph(1, x=[[1.0]]), Graph(1, x=[[1.0, 2.0]])])
    with pytest.raises(InputError, match="belongs to its nodes"):
        Batch.from_graphs([Graph(2, y=[0, 1]), Graph(2, y=1)])
    with pytest.raises(InputError, match="single graphs"):
        Batch.from_graphs([])
    with pytest.raises(InputError, match="from_graphs"):
        Batch()
    with pytest.raises(InputError, match="do not fit into 4"):
        Batch.from_graphs([worked()]).padded(nodes=4)
    batch = Batch.from_graphs([worked(), Graph(2)])
    assert repr(batch.padded(8, 10)) == "Batch(2 graphs and 1 of padding, 8 nodes, 6 undirected edges)"
    assert batch.subgraph([5, 0]).graph_index.tolist() == [1, 0]
    assert batch.permute([5, 4, 3, 2, 1, 0]).to_graphs()[0].coo() == worked().permute([3, 2, 1, 0]).coo()
