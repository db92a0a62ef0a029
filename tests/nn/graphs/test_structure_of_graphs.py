"""Readouts, pooling, encodings of nodes, and transformers on graphs."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.nn.graphs.cases import C, double, features, random_graph
from wonderland import nn
from wonderland.errors import InputError

FIGURE = wl.graphs.Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)  # F.12.2


def close(left, right, tolerance=1e-10):
    np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=tolerance, atol=tolerance)


def readouts():
    return {
        "mean": nn.Readout("mean"),
        "sum": nn.Readout("sum"),
        "max": nn.Readout("max"),
        "attention": nn.AttentionReadout(nn.Linear(C, 1), nn.Linear(C, 5)),
        "virtual node": lambda x, graph: VIRTUAL(x, graph)[1],
    }


VIRTUAL = double(nn.VirtualNode(C))


@pytest.mark.parametrize("name", readouts())
@pytest.mark.book("A7-42", name="nn.Readout")
def test_readouts_do_not_depend_on_the_order_of_nodes(name):
    layer = readouts()[name]
    layer = double(layer) if isinstance(layer, nn.Module) else layer
    graph, x = random_graph(), features()
    assert nn.check_graph_invariance(layer, x, graph) < 1e-12
    parts = [(features(n, seed=n), random_graph(n, m)) for n, m in ((5, 4), (3, 2), (7, 9))]
    batch = wl.graphs.Batch.from_graphs([graph for _, graph in parts])
    together = layer(wl.concat([x for x, _ in parts]), batch)
    for k, (x, graph) in enumerate(parts):
        close(np.asarray(layer(x, graph)).ravel(), together[k])


@pytest.mark.book("A7-42", name="nn.Readout")
def test_a_fully_connected_layer_on_all_nodes_is_no_readout_and_means_confuse_graphs():
    layer = double(nn.Linear(9 * C, 4))
    assert nn.check_graph_invariance(lambda x, g: layer(wl.reshape(x, (-1,))), features(), random_graph()) > 0.1
    x = features(2)
    once, twice = wl.graphs.Graph(2), wl.graphs.Graph(4)
    for how, same in (("mean", True), ("max", True), ("sum", False)):
        left, right = nn.Readout(how)(x, once), nn.Readout(how)(wl.concat([x, x]), twice)
        assert np.allclose(left, right) == same


def test_readouts_of_padded_graphs_leave_the_padding_out():
    x, real = np.random.default_rng(0).normal(size=(2, 4, C)), np.array([[1, 1, 1, 0], [1, 0, 0, 0]], bool)
    a = wl.zeros((2, 4, 4), dtype=wl.float64)
    for how, reduce in (("mean", np.mean), ("sum", np.sum), ("max", np.max)):
        found = nn.Readout(how)(wl.asarray(x), a, mask=real)
        for k in range(2):
            close(found[k], reduce(x[k][real[k]], axis=0))
    attention = double(nn.AttentionReadout(nn.Linear(C, 1)))
    found = attention(wl.asarray(x), a, mask=real)
    close(found[0], attention(wl.asarray(x[0, :3]), wl.graphs.Graph(3)))


def test_a_virtual_node_links_all():
    path, x = wl.graphs.path_graph(8), features(8)
    layer = double(nn.VirtualNode(C))
    assert len(nn.graph_receptive_field(lambda x, g: layer(x, g).nodes, x, path, 0)) == 8
    close(layer(x, path).nodes - x, np.tile(np.asarray(layer.outputs(layer(x, path).virtual)), (8, 1)))


@pytest.mark.book("A7-43", name="nn.ClusterPool")
def test_pooling_by_clusters_keeps_the_total_weight():
    graph, x = random_graph(8, 20, weights=True, isolated=False), features(8)
    clusters = np.array([0, 0, 1, 1, 1, 2, 2, 0])
    s = np.eye(3)[clusters]
    a = np.asarray(graph.to_dense(wl.float64))
    small = nn.ClusterPool()(x, graph, clusters)
    close(small.graph.todense(), s.T @ a @ s)
    assert abs(float(small.graph.values().sum()) - a.sum()) < 1e-10
    close(small.x, (s.T @ x.numpy()) / s.sum(0)[:, None])
    close(nn.ClusterPool("sum")(x, graph, clusters).x, s.T @ x.numpy())
    double(nn.GCNConv(C, 2))(small.x, small.graph)  # which goes on with it
    two = wl.graphs.Graph(
        8, [(i, j) for part in (range(4), range(4, 8)) for i in part for j in part if i < j] + [(0, 4)], directed=False
    )
    pool = nn.ClusterPool(method=lambda graph: wl.models.spectral_clustering(graph, 2))
    found = pool(x, two)
    assert len({tuple(found.nodes.numpy()[:4]), tuple(found.nodes.numpy()[4:])}) == 2
    assert sorted(np.asarray(found.graph.todense()).ravel().tolist()) == [1.0, 1.0, 12.0, 12.0]
    with pytest.raises(InputError, match="no clusters"):
        nn.ClusterPool()(x, two)
    grad = wl.grad(lambda w: nn.ClusterPool()(x, graph.with_(weight=w), clusters).graph.todense()[0, 1])(graph.weight)
    between = [clusters[i] == 0 and clusters[j] == 1 for i, j in graph.edges.tolist()]
    close(grad, np.array(between, float))


def test_the_nodes_that_stay_and_the_edges_between_them():
    parts = [random_graph(7, 12, seed=1, weights=True, attr=True), random_graph(4, 5, seed=2, weights=True, attr=True)]
    batch, x = wl.graphs.Batch.from_graphs(parts), features(11)
    layer = double(nn.TopKPooling(C, ratio=0.6))
    small = layer(x, batch)
    scores = np.tanh(x.numpy() @ np.asarray(layer.weight)[0] / np.linalg.norm(np.asarray(layer.weight)))
    best = [*np.argsort(-scores[:7])[:5], *(7 + np.argsort(-scores[7:])[:3])]  # ceil(0.6 n) of each
    assert small.nodes.tolist() == best
    close(small.x, x.numpy()[best] * scores[best][:, None])
    close(small.graph.todense(), np.asarray(batch.to_dense(wl.float64))[np.ix_(best, best)])
    assert small.graph.nodes.owner.tolist() == [0] * 5 + [1] * 3
    assert small.graph.edge_attr.shape[0] == small.graph.pattern.nnz
    with pytest.raises(InputError, match=r"pool\.select"):
        wl.jit(lambda layer, x: layer(x, batch).x)(layer, x)


# --- where nodes are


@pytest.mark.book("12.80", "12.79", name="nn.RandomWalkEmbedding")
def test_return_probabilities_of_the_figure():
    layer = nn.RandomWalkEmbedding(4, 6).astype(wl.float64)
    found = np.asarray(layer.positions(FIGURE))
    expected = {
        0: (0, 0.416667, 0.166667, 0.298611), 1: (0, 0.666667, 0.166667, 0.527778), 3: (0, 0.333333, 0, 0.222222),
    }  # fmt: skip
    for node, row in expected.items():
        np.testing.assert_allclose(found[node], row, atol=1e-6)
    close(found[0], found[2])  # nodes 1 and 3 of the figure are exchanged by a symmetry
    a = np.asarray(FIGURE.to_dense(wl.float64))
    r = a / a.sum(0)
    close(r.sum(0), 1.0)  # columns sum to 1, so R_ij leads from j to i
    for k in range(4):
        close(found[:, k], np.diag(np.linalg.matrix_power(r, k + 1)), 1e-6)
        close(found[:, k], np.diag(np.linalg.matrix_power(a / a.sum(1)[:, None], k + 1)), 1e-6)
    close(layer(FIGURE), found @ np.asarray(layer.lin.weight), 1e-6)
    assert layer.lin.weight.shape == (4, 6)
    star = wl.graphs.star_graph(6)
    close(layer(layer.positions(star)), layer(star))
    close(wl.jit(lambda layer, graph: layer(graph))(layer, FIGURE), layer(FIGURE), 1e-6)


@pytest.mark.book("12.78", name="nn.AnchorEncoding")
def test_degrees_and_distances_to_anchors():
    path = wl.graphs.path_graph(6)
    layer = nn.AnchorEncoding([0], 3, cap=4)
    assert layer.positions(path)[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 4.0]
    apart = wl.graphs.Graph(3, [(0, 1), (1, 0)])
    assert layer.positions(apart)[2].tolist() == [4.0]
    assert layer(path).shape == (6, 3)
    degrees = nn.DegreeEmbedding(2, 3)
    star = wl.graphs.star_graph(6)
    found = np.asarray(degrees(star))
    close(found[0], degrees.table.weight[2])  # more than 2 share a vector
    close(found[1], degrees.table.weight[1])
    order = np.array([5, 3, 0, 1, 2, 4])
    close(degrees(star.permute(order)), found[order])


@pytest.mark.book("12.81", name="nn.LaplacianEncoding")
def test_eigenvectors_with_random_signs():
    graph = random_graph(9, 16, isolated=False).to_undirected()
    layer = double(nn.LaplacianEncoding(3, 5))
    vectors = np.asarray(layer.positions(graph))
    a = np.asarray(graph.to_dense(wl.float64))
    scale = 1 / np.sqrt(a.sum(1))
    lap = np.eye(9) - scale[:, None] * a * scale
    values = np.einsum("nk,nm,mk->k", vectors, lap, vectors)
    close(lap @ vectors, vectors * values, 1e-6)
    assert (values > 1e-6).all()
    close(layer(graph), layer(graph))
    w = np.asarray(layer.lin.weight)
    signs = [np.array([s1, s2, s3]) for s1 in (1, -1) for s2 in (1, -1) for s3 in (1, -1)]
    layer.train()
    seen = set()
    for _ in range(60):
        drawn = np.asarray(layer(graph))
        match = [k for k, sign in enumerate(signs) if np.allclose(drawn, (vectors * sign) @ w, atol=1e-6)]
        assert len(match) == 1
        seen.add(match[0])
    assert len(seen) == 8
    parts = [wl.graphs.path_graph(5), wl.graphs.ring_graph(4)]
    batch = wl.graphs.Batch.from_graphs(parts)
    close(layer.positions(batch)[:5], layer.positions(parts[0]))
    with pytest.raises(InputError, match="traced"):
        wl.jit(lambda layer, graph: layer(graph))(layer, graph)


# --- transformers


@pytest.mark.book("A7-44", name="nn.GraphTransformerLayer")
def test_attention_at_the_edges_is_attention_with_the_graph_as_mask():
    graph, x = random_graph(), features(c=8)
    layer = double(nn.GraphTransformerLayer(8, 2))
    mask = (np.asarray(graph.to_dense()) + np.eye(9)) > 0
    close(layer(x, graph), layer.block(x[None], attn_mask=mask)[0])
    everyone = double(nn.GraphTransformerLayer(8, 2, attend="all"))
    close(everyone(x, graph), everyone.block(x[None])[0])
    assert nn.check_graph_equivariance(layer, x, graph) < 1e-10
    assert np.abs(np.asarray(layer(x, graph)) - np.asarray(layer(x, wl.graphs.path_graph(9)))).max() > 1e-3


@pytest.mark.book("12.77", name="models.GraphTransformer")
@pytest.mark.parametrize("structural", ["random_walk", "laplacian", "degree", None])
def test_graph_transformers(structural):
    graph = wl.graphs.Graph(7, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (2, 5), (5, 6), (1, 6)], directed=False)
    other = wl.graphs.path_graph(7)
    x = features(7)
    model = double(wl.models.GraphTransformer(C, 8, 4, num_heads=2, structural=structural, k=3))
    assert model(x, graph).shape == (7, 4)
    same = np.abs(np.asarray(model(x, graph)) - np.asarray(model(x, other))).max()
    assert same == 0 if structural is None else same > 1e-4
    order = np.random.default_rng(2).permutation(7)
    moved = graph.permute(order)
    if structural == "laplacian":  # eigenvectors have signs of their own, so both get the same ones
        positions = model.positions(graph)
        close(model(x[order], moved, positions[order]), np.asarray(model(x, graph, positions))[order])
        found = np.abs(np.asarray(model.positions(moved)))
        close(found, np.abs(np.asarray(positions))[order], 1e-5)
    else:
        assert nn.check_graph_equivariance(model, x, graph) < 1e-9
    parts = [(features(7), graph), (features(7, seed=5), other)]
    if structural != "laplacian":
        assert nn.check_batched_graphs(model, parts) < 1e-9


@pytest.mark.book("12.77", name="nn.tokenize_graph")
def test_nodes_and_edges_as_tokens():
    graph, x = random_graph(attr=True), features()
    model = double(wl.models.TokenGraphTransformer(C, 2, 8, 4, num_heads=2))

    def called(x, graph):
        return model(x, graph, graph.edge_attr)

    assert called(x, graph).shape == (9, 4)
    assert nn.check_graph_equivariance(called, x, graph) < 1e-9
    found = nn.tokenize_graph(x, wl.zeros((14, C), dtype=wl.float64), graph)
    assert found.tokens.shape == (23, C)
    np.testing.assert_array_equal(found.ends[9:], graph.edges)
    np.testing.assert_array_equal(found.tokens[:9], x)
