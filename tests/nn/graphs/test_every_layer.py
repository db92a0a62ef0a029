"""What every layer on graphs promises: any order of nodes and edges, any form of the graph, any batch, any size."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.nn.graphs.cases import GLOBAL, HOPS, LAYERS, WITH_EDGES, C, double, features, random_graph
from wonderland import nn

every = pytest.mark.parametrize("name", LAYERS)
with_edges = pytest.mark.parametrize("name", WITH_EDGES)


def close(left, right, tolerance=1e-9):
    left, right = np.asarray(left), np.asarray(right)
    assert left.shape == right.shape
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


@every
@pytest.mark.book("12.32", name="nn.GraphLayer")
def test_shapes_and_the_graph_stays_as_it_is(name):
    layer, graph, x = double(LAYERS[name]()), random_graph(weights=True), features()
    before = [np.array(leaf) for leaf in wl.tree.leaves(graph)]
    h = layer(x, graph)
    assert h.shape[0] == graph.n
    assert h.dtype == wl.float64
    for left, right in zip(wl.tree.leaves(graph), before, strict=True):
        np.testing.assert_array_equal(left, right)


@every
@pytest.mark.book("12.33", "A7-41", name="nn.check_graph_equivariance")
def test_permuted_nodes_are_permuted_afterwards(name):
    layer = double(LAYERS[name]())
    assert nn.check_graph_equivariance(layer, features(), random_graph(weights=True)) < 1e-9


def test_what_depends_on_indices_is_not_equivariant():
    def indexed(x, graph):
        return wl.concat([x, wl.arange(graph.n, dtype=wl.float64)[:, None]], axis=1)

    assert nn.check_graph_equivariance(indexed, features(), random_graph()) > 0.5


@every
def test_the_order_of_edges_does_not_matter(name):
    layer, graph, x = double(LAYERS[name]()), random_graph(weights=True), features()
    order = np.random.default_rng(3).permutation(graph.num_edges)
    shuffled = wl.graphs.Graph(graph.n, np.asarray(graph.edges)[order], np.asarray(graph.weight)[order])
    close(layer(x, shuffled), layer(x, graph))


@with_edges
@pytest.mark.book("12.70", name="nn.GATv2Conv")
def test_edges_are_shuffled_with_their_features(name):
    layer, graph, x = double(WITH_EDGES[name]()), random_graph(attr=True), features()
    order = np.random.default_rng(3).permutation(graph.num_edges)
    shuffled = wl.graphs.Graph(graph.n, np.asarray(graph.edges)[order], edge_attr=np.asarray(graph.edge_attr)[order])
    close(layer(x, shuffled), layer(x, graph))
    alone = wl.graphs.Graph(graph.n, np.asarray(graph.edges)[order], edge_attr=graph.edge_attr)
    assert np.abs(np.asarray(layer(x, alone)) - np.asarray(layer(x, graph))).max() > 1e-3
    if name == "GATv2Conv":  # e = 0 gives the layer without features of edges
        plain = double(nn.GATv2Conv(C, 2, heads=2))
        state = {path: value for path, value in layer.state_dict().items() if not path.startswith("lin_edge")}
        plain.load_state_dict(state)
        nothing = wl.zeros(graph.edge_attr.shape, dtype=wl.float64)
        close(layer(x, graph, nothing), plain(x, graph))


@every
@pytest.mark.book("12.56", name="nn.as_shift")
def test_every_form_of_a_graph(name):
    layer, graph, x = double(LAYERS[name]()), random_graph(weights=True), features()
    expected = layer(x, graph)
    close(layer(x, graph.to_dense(wl.float64)), expected)
    close(layer(x, graph.adjacency()), expected)
    close(layer(x, nn.as_shift(graph)), expected)
    plain = random_graph()
    close(layer(x, plain.edge_index), layer(x, plain))


@every
def test_compiled_it_computes_the_same(name):
    layer, graph, x = double(LAYERS[name]()), random_graph(weights=True), features()
    expected = layer(x, graph)
    close(wl.jit(lambda layer, x, graph: layer(x, graph))(layer, x, graph), expected)
    close(wl.jit(lambda layer, x: layer(x, graph))(layer, x), expected)


@every
def test_gradients(name):
    layer, graph, x = double(LAYERS[name]()), random_graph(weights=True), features()
    v = wl.asarray(np.random.default_rng(5).normal(size=np.shape(layer(x, graph))))

    def loss(layer, x, weight):
        return (layer(x, graph.with_(weight=weight)) * v).sum()

    grads = wl.grad(loss, argnums=(0, 1, 2))(layer, x, graph.weight)
    step, rng = 1e-6, np.random.default_rng(7)
    for k, (value, grad) in enumerate([(x, grads[1]), (graph.weight, grads[2])]):
        way = wl.asarray(rng.normal(size=value.shape))
        at = [[x, graph.weight], [x, graph.weight]]
        at[0][k], at[1][k] = value + step * way, value - step * way
        numeric = (loss(layer, *at[0]) - loss(layer, *at[1])).item() / (2 * step)
        assert abs(float((grad * way).sum()) - numeric) < 1e-6 * max(1.0, abs(numeric))
    state = {path: np.array(p) for path, p in layer.named_parameters()}
    ways = {path: rng.normal(size=value.shape) for path, value in state.items()}
    ends = []
    for sign in (1, -1):
        for path, p in layer.named_parameters():
            p.assign(wl.asarray(state[path] + sign * step * ways[path]))
        ends.append(loss(layer, x, graph.weight).item())
    numeric = (ends[0] - ends[1]) / (2 * step)
    exact = sum(float((np.asarray(grads[0][path]) * ways[path]).sum()) for path in state)
    assert abs(exact - numeric) < 1e-6 * max(1.0, abs(numeric))


@every
def test_a_batch_is_the_graphs_one_by_one(name):
    layer = double(LAYERS[name]())
    parts = [
        (features(n, seed=n), random_graph(n, m, seed=n, weights=True)) for n, m in ((9, 14), (4, 3), (1, 0), (6, 9))
    ]
    assert nn.check_batched_graphs(layer, parts) < 1e-9


@every
def test_a_padded_batch_of_dense_graphs(name):
    if name in ("GraphNorm", "PairNorm", "GraphTransformerLayer-all"):
        pytest.skip("what sees all nodes sees the padding")
    layer = double(LAYERS[name]())
    sizes = (5, 3)
    x, a = np.zeros((2, 5, C)), np.zeros((2, 5, 5))
    alone = []
    for k, n in enumerate(sizes):
        graph = random_graph(n, 4 if n == 5 else 2, seed=n, weights=True)
        part = features(n, seed=n)
        alone.append(np.asarray(layer(part, graph)))
        x[k, :n], a[k, :n, :n] = part, graph.to_dense(wl.float64)
    together = layer(wl.asarray(x), wl.asarray(a))
    for k, n in enumerate(sizes):
        close(together[k, :n], alone[k])


@every
@pytest.mark.book("12.69", name="wl.sparse.segment_softmax")
def test_isolated_nodes_and_empty_graphs(name):
    layer = double(LAYERS[name]())
    graph, x = random_graph(), features()
    h = np.asarray(layer(x, graph))
    assert np.isfinite(h).all()
    grads = wl.grad(lambda layer, x: (layer(x, graph) ** 2).sum(), argnums=(0, 1))(layer, x)
    assert all(np.isfinite(leaf).all() for leaf in wl.tree.leaves(grads))
    if name not in GLOBAL:  # an isolated node is what it is in a graph of its own
        close(h[-1:], layer(x[-1:], wl.graphs.Graph(1)))
    for empty in (wl.graphs.Graph(4), wl.graphs.Graph(0)):
        y = layer(features(empty.n), empty)
        assert y.shape[0] == empty.n
        assert np.isfinite(y).all()
        compiled = wl.jit(lambda layer, x, graph: layer(x, graph))(layer, features(empty.n), empty)
        close(compiled, y)


@every
@pytest.mark.book("12.56", name="nn.MessagePassing")
def test_duplicate_edges_add_up(name):
    """An edge that is there twice with half the weight is as good as one, for layers that use weights."""
    if name.split("-")[0] not in (
        "GraphConv",
        "GraphConvSelf",
        "GCNConv",
        "PolyGraphConv",
        "ChebConv",
        "GatedGraphConv",
    ):
        pytest.skip("weights are not used, or messages are not linear in them")
    layer, graph, x = double(LAYERS[name]()), random_graph(weights=True), features()
    pairs, half = np.asarray(graph.edges), np.asarray(graph.weight) / 2
    twice = wl.graphs.Graph(graph.n, np.concatenate([pairs, pairs]), np.concatenate([half, half]))
    close(layer(x, twice), layer(x, graph))


@pytest.mark.parametrize("name", ["GINConv", "SAGEConv-sum", "MessagePassing"])
def test_duplicate_edges_are_two_messages(name):
    layer, graph, x = double(LAYERS[name]()), random_graph(), features()
    pairs = np.asarray(graph.edges)
    twice = wl.graphs.Graph(graph.n, np.concatenate([pairs, pairs]))
    dense = 2 * np.asarray(graph.to_dense(wl.float64))
    told = {"GINConv": lambda: layer.nn(x * (1 + layer.eps) + dense @ x), "MessagePassing": None, "SAGEConv-sum": None}[
        name
    ]
    if told is not None:
        close(layer(x, twice), told())
    else:
        assert np.abs(np.asarray(layer(x, twice)) - np.asarray(layer(x, graph))).max() > 1e-3


@pytest.mark.parametrize("name", HOPS)
@pytest.mark.book("12.43", "A7-31b", name="nn.graph_receptive_field")
def test_the_receptive_field_by_the_jacobian(name):
    layer, graph, x = double(LAYERS[name]()), random_graph(weights=True), features()
    if name == "ChebConv":  # divides by the degrees of senders, which may be 0 in a directed graph
        graph = graph.to_undirected()
    for i in range(graph.n):
        found = nn.graph_receptive_field(layer, x, graph, i)
        expected = np.union1d(graph.k_hop(i, HOPS[name]), [i])
        if name in ("MessagePassing-mean", "EdgeConv") and not len(graph.neighbors(i)):
            expected = np.zeros(0, int)  # no message, and nothing else
        np.testing.assert_array_equal(found, expected)


@pytest.mark.book("12.43", name="nn.graph_receptive_field")
def test_layers_add_hops_and_what_normalises_over_all_nodes_sees_all():
    graph, x = wl.graphs.path_graph(9), features()
    layers = [double(nn.GCNConv(C, C)) for _ in range(3)]

    def model(x, graph):
        for layer in layers:
            x = wl.tanh(layer(x, graph))
        return x

    for i in (0, 4, 8):
        np.testing.assert_array_equal(nn.graph_receptive_field(model, x, graph, i), graph.k_hop(i, 3))
    assert len(nn.graph_receptive_field(double(nn.GraphNorm(C)), x, graph, 0)) == 9
    assert len(nn.graph_receptive_field(double(nn.GraphTransformerLayer(C, attend="all")), x, graph, 0)) == 9
    assert len(nn.graph_receptive_field(double(nn.GRN(C, 4)), x, graph, 0)) == 9


@pytest.mark.parametrize("name", [name for name in HOPS if name not in ("GCNConv", "GCNConv-improved", "ChebConv")])
@pytest.mark.book("12.35", name="nn.is_graph_local")
def test_locality(name):
    """A neighbourhood alone gives the same, if weights were normalised before; not so if the layer does it."""
    layer = double(LAYERS[name]())
    graph = wl.graphs.Graph(9, [(i, (i + d) % 8) for i in range(8) for d in (1, 7)])
    shift = graph.add_self_loops().normalize("sym", wl.float64)
    hops = HOPS[name]
    raw = getattr(layer, "norm", None) in (None, "row")  # the degree of the node itself is right, anyway
    near = hops if raw else hops + 1  # the degrees of those at the border are right with one hop more
    assert nn.is_graph_local(layer, features(), shift, near)
    if not raw:
        assert not nn.is_graph_local(layer, features(), shift, hops)


@every
def test_single_precision_stays_single(name):
    layer, graph = LAYERS[name]().eval(), random_graph(weights=True)
    x = wl.asarray(np.asarray(features()), dtype=wl.float32)
    h = layer(x, graph)
    assert h.dtype == wl.float32
    close(h, double(layer)(features(), graph), 2e-4)
