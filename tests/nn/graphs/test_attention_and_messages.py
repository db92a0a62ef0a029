"""Attention between neighbours, messages of any kind, features of edges and of whole graphs."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.nn.graphs.cases import C, double, features, mlp, random_graph
from wonderland import nn
from wonderland.errors import ShapeError


def close(left, right, tolerance=1e-10):
    np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=tolerance, atol=tolerance)


def leaky(x, slope=0.2):
    return np.where(x > 0, x, slope * x)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


@pytest.mark.book("12.65", name="nn.GraphAttention")
def test_weights_of_a_node_sum_to_one_and_belong_to_edges():
    graph, x = random_graph(), features()
    layer = double(nn.GraphAttention(C, 4, lambda x_i, x_j, e: wl.sum(x_i * wl.sin(x_j), axis=-1), "tanh"))
    weights = layer.attention(x, graph)
    assert weights.shape == (graph.num_edges,)
    sums = np.asarray(wl.sparse.segment_sum(weights, graph.pattern.rows))
    close(sums, (np.asarray(graph.degree()) > 0).astype(float))
    w, expected = np.asarray(layer.lin.weight), np.zeros((9, 4))
    for i in range(9):
        near = graph.neighbors(i)
        if len(near):
            scores = np.array([(x.numpy()[i] * np.sin(x.numpy()[j])).sum() for j in near])
            expected[i] = softmax(scores) @ (x.numpy()[near] @ w)
    close(layer(x, graph), np.tanh(expected))


@pytest.mark.book("12.65", name="nn.GraphAttention")
def test_all_pairs_and_products_are_self_attention():
    whole = wl.graphs.complete_graph(7, self_loops=True)
    x, own = features(7), double(nn.SelfAttention(C, key_size=5, value_size=4))

    def score(x_i, x_j, e):
        return wl.sum(own.query(x_i) * own.key(x_j), axis=-1) / np.sqrt(5)

    layer = double(nn.GraphAttention(C, 4, score))
    layer.lin.weight = own.value.weight + 0
    close(layer(x, whole), own(x))
    assert nn.check_graph_equivariance(layer, x, whole) < 1e-12


@pytest.mark.book("12.66", name="nn.GATConv")
def test_the_score_of_gat():
    graph, x = random_graph(), features()
    layer = double(nn.GATConv(C, 4, add_self_loops=False))
    assert layer.negative_slope == 0.2
    wx = x.numpy() @ np.asarray(layer.lin.weight)
    a = np.concatenate([np.asarray(layer.att_dst)[0, 0], np.asarray(layer.att_src)[0, 0]])  # of [W x_i ; W x_j]
    found = layer.attended(x, graph)
    expected = np.zeros(graph.num_edges)
    for i in range(9):
        at = np.flatnonzero(graph.edges.numpy()[:, 0] == i)
        if len(at):
            scores = [leaky(np.concatenate([wx[i], wx[j]]) @ a) for j in graph.edges.numpy()[at, 1]]
            expected[at] = softmax(np.array(scores))
    close(found.weights[:, 0], expected)
    np.testing.assert_array_equal(found.edges, graph.edges)


@pytest.mark.book("12.67", "12.68", name="nn.GATv2Conv")
def test_gat_is_static_and_gatv2_is_not():
    whole, d = wl.graphs.complete_graph(8, self_loops=True), 5
    x = 3 * features(8, seed=4)
    static = double(nn.GATConv(C, d, add_self_loops=False, key=wl.random.key(0)))
    dynamic = double(nn.GATv2Conv(C, d, add_self_loops=False, bias=False, key=wl.random.key(0)))
    # V on the concatenation has 2 c columns of d, and the vector a has d
    assert dynamic.num_parameters() == 2 * C * d + d
    tables = []
    for layer in (static, dynamic):
        weights = np.zeros((8, 8))
        found = layer.attended(x, whole)
        weights[tuple(found.edges.numpy().T)] = np.asarray(found.weights)[:, 0]
        close(weights.sum(1), 1.0)
        tables.append(weights)
    assert len(set(tables[0].argmax(axis=1))) == 1
    order = np.argsort(tables[0], axis=1)
    assert (order == order[0]).all()
    assert len(set(tables[1].argmax(axis=1))) > 1
    v = np.concatenate([np.asarray(dynamic.lin_r.weight), np.asarray(dynamic.lin_l.weight)])
    scores = np.zeros((8, 8))
    for i in range(8):
        for j in range(8):
            both = np.concatenate([x.numpy()[i], x.numpy()[j]])
            scores[i, j] = leaky(both @ v) @ np.asarray(dynamic.att)[0, 0]
    close(tables[1], np.stack([softmax(row) for row in scores]))


def test_dropout_of_attention_leaves_out_weights_while_training():
    graph, x = wl.graphs.complete_graph(6), features(6)
    layer = double(nn.GATConv(C, 4, dropout=0.5))
    still = layer(x, graph)
    close(layer(x, graph), still)
    layer.train()
    drawn = [np.asarray(layer(x, graph)) for _ in range(2000)]
    assert np.abs(drawn[0] - drawn[1]).max() > 1e-3
    close(np.mean(drawn, axis=0), still, 0.12)


@pytest.mark.book("12.71", "A7-41", name="nn.MessagePassing")
def test_other_layers_as_message_passing():
    graph, x = random_graph(weights=True), features()
    conv = double(nn.GraphConv(C, 4, "tanh", norm=None))
    conv.bias = np.arange(4.0)
    passing = nn.MessagePassing(lambda x_i, x_j, a: a * (x_j @ conv.weight + conv.bias), "sum", lambda x, m: wl.tanh(m))
    close(passing(x, graph), conv(x, graph))

    sage = double(nn.SAGEConv(C, 4))
    passing = nn.MessagePassing(lambda x_i, x_j, a: x_j, "mean", lambda x, m: sage.lin_l(m) + sage.lin_r(x))
    close(passing(x, graph), sage(x, graph))

    gin = double(nn.GINConv(mlp(C, 5, 4), eps=0.3))
    passing = nn.MessagePassing(lambda x_i, x_j, a: x_j, "sum", lambda x, m: gin.nn(1.3 * x + m))
    close(passing(x, graph), gin(x, graph), 1e-7)

    edge = double(nn.EdgeConv(mlp(2 * C, 5, 4)))
    passing = nn.MessagePassing(lambda x_i, x_j, a: edge.nn(wl.concat([x_i, x_j - x_i], axis=-1)), "max")
    close(passing(x, graph), edge(x, graph))

    def attention(messages, line):  # the first number of a message is its score
        weights = wl.sparse.segment_softmax(messages[:, 0], line)
        return wl.sparse.segment_sum(weights[:, None] * messages[:, 1:], line)

    gat = double(nn.GATConv(C, 4, add_self_loops=False, bias=False))

    def gat_message(x_i, x_j, a):
        h_i, h_j = gat.lin(x_i), gat.lin(x_j)
        score = nn.functional.leaky_relu(h_i @ gat.att_dst[0, 0] + h_j @ gat.att_src[0, 0], 0.2)
        return wl.concat([score[:, None], h_j], axis=-1)

    close(nn.MessagePassing(gat_message, attention)(x, graph), gat(x, graph))
    gat2 = double(nn.GATv2Conv(C, 4, add_self_loops=False, bias=False))

    def gat2_message(x_i, x_j, a):
        h_j = gat2.lin_l(x_j)
        score = nn.functional.leaky_relu(gat2.lin_r(x_i) + h_j, 0.2) @ gat2.att[0, 0]
        return wl.concat([score[:, None], h_j], axis=-1)

    close(nn.MessagePassing(gat2_message, attention)(x, graph), gat2(x, graph))


@pytest.mark.book("A7-41", name="nn.MessagePassing")
@pytest.mark.parametrize("how", ["sum", "mean", "max", "min"])
def test_aggregations(how):
    graph, x = random_graph(), features()
    found = nn.MessagePassing(lambda x_i, x_j, e: x_i * x_j, how)(x, graph)
    for i in range(9):
        near = graph.neighbors(i)
        messages = x.numpy()[i] * x.numpy()[near]
        expected = getattr(np, how)(messages, axis=0) if len(near) else np.zeros(C)
        close(found[i], expected)


def test_message_passing_by_a_subclass():
    class Difference(nn.MessagePassing):
        def message(self, x_i, x_j, e_ij):
            return x_i - x_j

    path, x = wl.graphs.path_graph(5), features(5)
    lap = np.diag(np.asarray(path.degree())) - np.asarray(path.to_dense())
    close(Difference()(x, path), lap @ x.numpy())  # the Laplacian
    with pytest.raises(ShapeError, match=r"messages of shape \(3,\) for 8 edges"):
        nn.MessagePassing(lambda x_i, x_j, e: wl.sum(x_j, axis=0))(x, path)


@pytest.mark.book("12.74", name="nn.EdgeUpdate")
def test_edges_change_with_their_ends():
    graph = wl.graphs.Graph(5, [(0, 1), (1, 2), (1, 3), (3, 4)], directed=False)
    x, rng = features(5), np.random.default_rng(0)
    once = rng.normal(size=(5, 5, 2))
    both = once + once.swapaxes(0, 1)
    i, j = graph.edges.numpy().T
    e = wl.asarray(both[i, j])
    plain, symmetric = (double(nn.EdgeUpdate(mlp(2 + 2 * C, 6, 3), symmetric=flag)) for flag in (False, True))
    found = plain(x, graph, e)
    for k in range(graph.num_edges):
        given = np.concatenate([both[i[k], j[k]], x.numpy()[i[k]], x.numpy()[j[k]]])
        close(found[k], plain.nn(wl.asarray(given)))

    def apart(values):
        table = np.zeros((5, 5, 3))
        table[i, j] = values
        return np.abs(table - table.swapaxes(0, 1)).max()

    assert apart(found) > 1e-3
    assert apart(symmetric(x, graph, e)) < 1e-14
    assert double(nn.EdgeUpdate(mlp(2 * C, 3)))(x, graph).shape == (8, 3)


def network(e, v, u, parts="evu", how="sum"):
    """A graph network with some of its parts; sizes of edges, nodes and globals."""
    sizes = {"e": e, "v": v, "u": u}
    edge = mlp(e + 2 * v + u, 5, 4) if "e" in parts else None
    after = {**sizes, **({"e": 4} if edge else {})}
    node = mlp(after["e"] + v + u, 5, 6) if "v" in parts else None
    after = {**after, **({"v": 6} if node else {})}
    whole = mlp(after["e"] + after["v"] + u, 5, 3) if "u" in parts else None
    return double(nn.GraphNetwork(edge, node, whole, how, how, how))


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
@pytest.mark.book("S-16", name="nn.GraphNetwork")
def test_graph_networks(how):
    graph, x, rng = random_graph(), features(), np.random.default_rng(0)
    e, u = wl.asarray(rng.normal(size=(graph.num_edges, 2))), wl.asarray(rng.normal(size=5))
    block = network(2, C, 5, how=how)
    after = block(x, graph, e, u)
    i, j = graph.edges.numpy().T
    of_edges = np.concatenate([e, x.numpy()[i], x.numpy()[j], np.tile(u, (len(i), 1))], axis=1)
    edges = np.asarray(block.edge(wl.asarray(of_edges)))
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[how]
    heard = np.stack([reduce(edges[i == k], axis=0) if (i == k).any() else np.zeros(4) for k in range(9)])
    nodes = np.asarray(block.node(wl.asarray(np.concatenate([heard, x, np.tile(u, (9, 1))], axis=1))))
    of_all = np.concatenate([reduce(edges, axis=0), reduce(nodes, axis=0), u])
    close(after.edges, edges)
    close(after.nodes, nodes)
    close(after.globals, block.globals(wl.asarray(of_all)))
    order = np.random.default_rng(1).permutation(9)
    shuffled = graph.with_(edge_attr=e).permute(order)
    permuted = block(x[order], shuffled, u=u)
    close(permuted.nodes, after.nodes.numpy()[order])
    close(permuted.globals, after.globals)
    compiled = wl.jit(lambda block, x, graph, e, u: tuple(block(x, graph, e, u)))(block, x, graph, e, u)
    for left, right in zip(compiled, after, strict=True):
        close(left, right)


@pytest.mark.parametrize("parts", ["", "e", "v", "u", "ev", "eu", "vu"])
@pytest.mark.book("S-16", name="nn.GraphNetwork")
def test_any_part_of_a_graph_network_can_be_left_out(parts):
    graph, x, rng = random_graph(), features(), np.random.default_rng(0)
    e, u = wl.asarray(rng.normal(size=(graph.num_edges, 2))), wl.asarray(rng.normal(size=5))
    after = network(2, C, 5, parts)(x, graph, e, u)
    assert after.edges.shape == (graph.num_edges, 4 if "e" in parts else 2)
    assert after.nodes.shape == (9, 6 if "v" in parts else C)
    assert after.globals.shape == (3 if "u" in parts else 5,)
    for letter, before, now in (("e", e, after.edges), ("v", x, after.nodes), ("u", u, after.globals)):
        if letter not in parts:
            np.testing.assert_array_equal(now, before)
    bare = network(0, C, 0, parts)(x, graph) if parts else nn.GraphNetwork()(x, graph)  # nothing but nodes
    assert bare.nodes.shape == (9, 6 if "v" in parts else C)


def test_a_batch_in_a_graph_network_has_globals_of_its_own():
    graphs = [random_graph(5, 6, seed=1), random_graph(4, 3, seed=2), wl.graphs.Graph(2)]
    batch, rng = wl.graphs.Batch.from_graphs(graphs), np.random.default_rng(0)
    x, e, u = features(11), rng.normal(size=(batch.num_edges, 2)), rng.normal(size=(3, 5))
    for how in ("sum", "mean", "max"):
        block = network(2, C, 5, how=how)
        after = block(x, batch, wl.asarray(e), wl.asarray(u))
        at = edge = 0
        for k, graph in enumerate(graphs):
            n, m = graph.n, graph.num_edges
            alone = block(x[at : at + n], graph, wl.asarray(e[edge : edge + m]), wl.asarray(u[k]))
            close(after.nodes[at : at + n], alone.nodes)
            close(after.globals[k], alone.globals)
            at, edge = at + n, edge + m
