"""Graph convolutions as the book and the notes have them: formulas, counts, pitfalls."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import wonderland as wl
from tests.nn.graphs.cases import C, double, features, random_graph
from wonderland import nn
from wonderland.errors import InputError, ShapeError

PAIRS = [(0, 1), (0, 2), (1, 2), (1, 3)]  # figure F.12.2, counted from 0


def figure():
    return wl.graphs.Graph(4, PAIRS, directed=False)


def close(left, right, tolerance=1e-10):
    np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=tolerance, atol=tolerance)


def dense(graph):
    return np.asarray(graph.to_dense(wl.float64))


@pytest.mark.book("12.38", name="nn.GraphConv")
def test_without_a_graph_it_is_a_fully_connected_layer():
    layer = double(nn.GraphConv(C, 5, "tanh", norm=None))
    plain = double(nn.FullyConnected(C, 5, "tanh"))
    plain.linear.weight, plain.linear.bias = layer.weight + 0, layer.bias + 0.3
    layer.bias = layer.bias + 0.3
    x = features()
    close(layer(x, wl.eye(9, dtype=wl.float64)), plain(x))
    order = np.random.default_rng(0).permutation(9)
    close(plain(x[order]), np.asarray(plain(x))[order])


@pytest.mark.parametrize("sizes", [(3, 5), (5, 3)])
@pytest.mark.book("12.39", "12.40", name="nn.GraphConv")
def test_the_formula_with_the_bias_inside(sizes):
    c, d = sizes
    rng = np.random.default_rng(0)
    graph, x = random_graph(weights=True), features(c=c)
    layer = double(nn.GraphConv(c, d, "tanh", norm=None))
    layer.bias = rng.normal(size=d)
    a, w, b = dense(graph), np.asarray(layer.weight), np.asarray(layer.bias)
    close(layer(x, graph), np.tanh(a @ (x.numpy() @ w + b)))
    by_nodes = np.zeros((9, d))
    for i, j in graph.edges.tolist():  # the sum over neighbours, message by message
        by_nodes[i] += a[i, j] * (x.numpy()[j] @ w + b)
    close(layer(x, graph), np.tanh(by_nodes))
    close(a @ (x.numpy() @ w), (a @ x.numpy()) @ w)


@pytest.mark.book("12.39", name="nn.GraphConv")
def test_a_bias_outside_is_the_same_only_if_rows_sum_to_one():
    graph, x = figure().add_self_loops(), features(4)
    inside, outside = (double(nn.GraphConv(C, 2, norm=None, bias_inside=flag)) for flag in (True, False))
    outside.weight = inside.weight + 0
    inside.bias = outside.bias = np.array([1.0, -0.5])
    rows = graph.normalize("row", wl.float64)
    close(inside(x, rows), outside(x, rows), 1e-14)
    difference = np.abs(inside(x, graph).numpy() - outside(x, graph).numpy()).max(axis=1)
    close(difference, np.asarray(graph.degree()) - 1)  # (sum of the row - 1) times the bias, 1 at most


@pytest.mark.book("12.41", name="nn.GraphConv")
def test_with_raw_weights_activations_grow_with_degrees():
    star = wl.graphs.star_graph(64).add_self_loops()
    x = features(64)
    sizes = {}
    for norm in (None, "sym", "row"):
        h, layer = x, double(nn.GraphConv(C, C, norm=norm, bias=False))
        layer.weight = np.eye(C)
        spread = []
        for _ in range(8):
            h = layer(h, star)
            spread.append(float(np.abs(h.numpy()).max()))
        sizes[norm] = spread
    assert sizes[None][-1] > 1e5  # the largest eigenvalue is about 9 each time
    assert max(sizes["sym"]) < 10
    assert max(sizes["row"]) < 10
    constant = double(nn.GraphConv(1, 1, norm=None, bias=False))
    constant.weight = np.ones((1, 1))
    close(constant(wl.ones((64, 1), dtype=wl.float64), star)[:, 0], star.degree())
    assert nn.GraphConv(3, 2).norm == "sym"


@pytest.mark.parametrize("sizes", [(3, 5), (5, 3)])
@pytest.mark.book("12.45", name="nn.PolyGraphConv")
def test_polynomials(sizes):
    c, d = sizes
    graph, x = random_graph().to_undirected(), features(c=c)
    layer = double(nn.PolyGraphConv(c, d, order=3, norm=None, activation="tanh"))
    layer.bias = np.random.default_rng(0).normal(size=d)
    a, w = dense(graph), [np.asarray(lin.weight) for lin in layer.lins]
    expected = sum(np.linalg.matrix_power(a, k) @ x.numpy() @ w[k] for k in range(4))
    close(layer(x, graph), np.tanh(expected + np.asarray(layer.bias)))
    close(layer(x, graph.add_self_loops()), layer(x, graph))  # self-loops are taken out
    close(np.diag(a @ a), graph.degree())  # so W_2 sees the node itself, too
    assert layer.num_parameters() == 4 * c * d + d


@pytest.mark.book("A7-39", "A7-40", name="nn.SpectralConv")
def test_spectral_convolution():
    graph, x = figure(), features(4)
    layer = double(nn.SpectralConv(graph, C, 2))
    a = dense(graph)
    values, q = np.linalg.eigh(np.diag(a.sum(1)) - a)
    close(layer.eigenvalues, values, 1e-6)
    theta = np.asarray(layer.weight)
    expected = np.zeros((4, 2))
    for out in range(2):
        for h in range(C):  # one filter for each pair of channels
            expected[:, out] += q @ (theta[:, h, out] * (q.T @ x.numpy()[:, h]))
    close(layer(x, graph), expected, 1e-6)
    close(layer(x), layer(x, graph))
    assert layer.num_parameters() == 4 * C * 2
    assert nn.SpectralConv(graph, C, 2, k_eigs=3).num_parameters() == 3 * C * 2
    same = wl.graphs.Graph(4, graph.edges.numpy()[::-1])  # in another order
    close(layer(x, same), layer(x, graph))
    for other in (wl.graphs.path_graph(4), wl.graphs.path_graph(5), graph.with_(weight=[2.0] * 8)):
        with pytest.raises(InputError, match="another graph"):
            layer(features(other.n), other)
    with pytest.raises(InputError, match=r"not symmetric: A\[0, 1\] = 1"):
        nn.SpectralConv(wl.graphs.Graph(2, [(0, 1)]), 1, 1)
    with pytest.raises(InputError, match="k_eigs=5 for a graph of 4 nodes"):
        nn.SpectralConv(graph, 1, 1, k_eigs=5)


def test_chebyshev_polynomials_are_spectral_filters_for_any_graph():
    graph, x = random_graph(10, 20).to_undirected(), features(10)
    layer = double(nn.ChebConv(C, 2, K=4, bias=False))
    a = dense(graph)
    degrees = a.sum(1)
    scale = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    values, q = np.linalg.eigh(np.eye(10) - scale[:, None] * a * scale)
    polynomials = np.cos(np.arange(4)[:, None] * np.arccos(np.clip(values - 1, -1, 1)))  # (K, n)
    expected = sum(
        q @ (polynomials[k][:, None] * (q.T @ x.numpy())) @ np.asarray(layer.lins[k].weight) for k in range(4)
    )
    close(layer(x, graph), expected, 1e-7)


@pytest.mark.book("12.64", name="nn.TrainableShift")
def test_trained_weights_keep_their_places():
    graph, x = random_graph(weights=True), features()
    shift, layer = nn.TrainableShift(graph).astype(wl.float64), double(nn.GraphConv(C, 2, norm=None))
    assert shift.num_parameters() == graph.num_edges
    close(layer(x, shift()), layer(x, graph))

    def loss(shift):
        return (layer(x, shift()) ** 2).sum()

    before, places = loss(shift).item(), dense(graph) != 0
    optimizer = wl.optim.SGD(shift, lr=0.02)
    for _ in range(20):
        optimizer.step(wl.grad(loss)(shift))
    after = np.asarray(shift().todense())
    assert loss(shift).item() < before
    assert np.abs(after - dense(graph)).max() > 0.01
    assert (after[~places] == 0).all()
    step = 1e-6
    gradient = wl.grad(loss)(shift)["values"]
    way = np.random.default_rng(0).normal(size=graph.num_edges)
    values = np.array(shift.values)
    ends = []
    for sign in (1, -1):
        shift.values = values + sign * step * way
        ends.append(loss(shift).item())
    assert abs((ends[0] - ends[1]) / (2 * step) - float((gradient.numpy() * way).sum())) < 1e-5


@pytest.mark.book("12.72", name="nn.GraphConvSelf")
def test_the_central_node_has_weights_of_its_own():
    graph, x = random_graph(), features()
    layer, plain = double(nn.GraphConvSelf(C, 4, "tanh")), double(nn.GraphConv(C, 4, "tanh"))
    plain.weight = layer.weight + 0
    layer.weight_self = np.zeros((C, 4))
    close(layer(x, graph), plain(x, graph))
    twins = wl.graphs.Graph(3, [(0, 2), (1, 2)])  # 0 and 1 both see 2 alone
    y = features(3)
    with_self = double(nn.GraphConvSelf(C, 4))
    close(plain(y, twins)[0], plain(y, twins)[1])
    assert np.abs(with_self(y, twins)[0] - with_self(y, twins)[1]).max() > 1e-3


@pytest.mark.book("12.73", name="nn.SpatioTemporalConv")
def test_series_at_nodes():
    graph = random_graph(weights=True)
    x = wl.asarray(np.random.default_rng(0).normal(size=(9, 12, C)))
    layer = double(nn.SpatioTemporalConv(C, 4, 3, norm=None, bias=False))
    a = dense(graph)
    conv = np.stack([np.asarray(layer.conv(x[i])) for i in range(9)])
    expected = np.zeros((9, 12, 4))
    for i, j in graph.edges.tolist():
        expected[i] += a[i, j] * conv[j]
    close(layer(x, graph), expected)
    printed = a.sum(1)[:, None, None] * conv  # the node's own series, scaled by its degree
    assert np.abs(printed - expected).max() > 0.1
    diffused = wl.asarray(np.einsum("ij,jtc->itc", a, x.numpy()))
    close(np.stack([np.asarray(layer.conv(diffused[i])) for i in range(9)]), expected)
    close(layer(x, wl.asarray(a)), expected)
    causal = double(nn.SpatioTemporalConv(C, 2, 3, causal=True))
    later = x.at[:, 6:].add(1.0)
    close(causal(later, graph)[:, :6], causal(x, graph)[:, :6])
    assert np.abs(causal(later, graph)[:, 6:] - causal(x, graph)[:, 6:]).max() > 1e-3
    series = wl.graphs.Batch.from_graphs([random_graph(4, 5), random_graph(5, 6)])
    close(causal(x, series)[:4], causal(x[:4], random_graph(4, 5)))


def test_errors_name_the_layer_the_shapes_and_a_remedy():
    layer = nn.GCNConv(3, 2)
    cases = [
        (lambda: layer(wl.ones((4, 3)), wl.graphs.path_graph(5)), "GCNConv.*features of 4 nodes for a graph of 5"),
        (lambda: layer(wl.ones((5, 4)), wl.graphs.path_graph(5)), r"features of shape \(5, 4\)"),
        (lambda: layer(wl.ones((5, 3)), wl.ones((5, 4))), r"a matrix of shape \(5, 4\)"),
        (lambda: layer(wl.ones((5, 3)), wl.asarray(np.ones((3, 4), int))), r"integers of shape \(3, 4\)"),
        (lambda: nn.GATConv(3, 2, edge_dim=2)(wl.ones((5, 3)), wl.graphs.path_graph(5)), "none for 8 edges"),
        (
            lambda: nn.GATConv(3, 2, edge_dim=2)(wl.ones((5, 3)), wl.graphs.path_graph(5), wl.ones((7, 2))),
            "for 8 edges",
        ),
        (lambda: layer(wl.ones((5, 3)), wl.graphs.path_graph(5), None, wl.ones(7)), r"edge_weight of shape \(7,\)"),
        (lambda: nn.GatedGraphConv(2, 1)(wl.ones((5, 3)), wl.graphs.path_graph(5)), "3 features for a state of 2"),
    ]
    for call, message in cases:
        with pytest.raises(ShapeError, match=message):
            call()
    with pytest.raises(InputError, match="1 of 2 edges leave the nodes 0 to 4: 1 -> 7"):
        layer(wl.ones((5, 3)), wl.asarray([[0, 1], [1, 7]]))
    with pytest.raises(InputError, match="norm='symm'"):
        nn.GraphConv(3, 2, norm="symm")
    with pytest.raises(InputError, match=r"Graph\.from_dense"):
        wl.jit(lambda x, a: nn.GATConv(3, 2)(x, a))(wl.ones((5, 3)), wl.ones((5, 5)))


def test_a_prepared_shift_is_taken_as_it_is_and_may_be_an_argument():
    graph, x, layer = random_graph(weights=True), features(), double(nn.GCNConv(C, 4))
    shift = nn.as_shift(graph, "sym", self_loops=True, dtype=wl.float64)
    assert shift.norm == "sym"
    assert shift.loops
    a = dense(graph) + np.eye(9)
    d = 1 / np.sqrt(a.sum(1))
    close(shift.todense(), d[:, None] * a * d)
    close(layer(x, shift), layer(x, graph))
    close(wl.jit(lambda layer, x, shift: layer(x, shift))(layer, x, shift), layer(x, graph))
    for norm, axis in (("row", 1), ("col", 0)):
        sums = np.asarray(nn.as_shift(graph, norm, dtype=wl.float64).todense()).sum(axis)
        close(sums[dense(graph).sum(axis) > 0], 1.0)


def test_weights_that_are_assigned_to_are_normalised_again():
    weight = wl.tensor([1.0, 1.0, 2.0, 2.0])
    pattern = wl.graphs.path_graph(3).pattern
    first = nn.as_shift(nn.Shift(pattern, weight), "sym").todense().numpy().copy()
    weight[0] = 5.0
    second = nn.as_shift(nn.Shift(pattern, weight), "sym").todense().numpy()
    assert np.abs(first - second).max() > 0.1


@pytest.mark.parametrize("layer", [nn.GCNConv(C, 2), nn.SAGEConv(C, 2), nn.GATConv(C, 2)], ids=["gcn", "sage", "gat"])
def test_what_was_computed_once_goes_with_its_graph(layer):
    graph = random_graph()
    alive = weakref.ref(graph.pattern)
    layer(wl.ones((9, C)), graph)
    del graph
    gc.collect()
    assert alive() is None


def test_what_narrows_comes_before_the_sum():
    graph, x = random_graph(), features(c=6)
    seen = []
    plain = [nn.Linear(6, 2), nn.Sequential(nn.Linear(6, 2), nn.Tanh(), nn.Linear(2, 5))]
    for network in plain:
        layer = double(nn.GINConv(network, eps=0.25))
        close(layer(x, graph), layer.nn(wl.asarray(1.25 * x.numpy() + dense(graph) @ x.numpy())))
        first = layer.nn if isinstance(layer.nn, nn.Linear) else layer.nn[0]
        first.register_forward_hook(lambda *given: seen.append(given))
        expected = layer(x, graph)  # a layer that somebody listens to is called
        assert seen
        seen.clear()
        close(expected, layer.nn(wl.asarray(1.25 * x.numpy() + dense(graph) @ x.numpy())))


def test_a_network_that_somebody_listens_to_is_called_as_a_whole():
    graph, x, seen = random_graph(), features(c=6), []
    layer = double(nn.GINConv(nn.Sequential(nn.Linear(6, 2), nn.Tanh())))
    expected = layer(x, graph)
    layer.nn.register_forward_hook(lambda *given: seen.append(given))
    close(layer(x, graph), expected)
    assert len(seen) == 1

    class Doubled(nn.Sequential):
        def forward(self, *args):
            return 2 * super().forward(*args)

    twice = double(nn.GINConv(Doubled(*layer.nn)))
    close(twice(x, graph), 2 * np.asarray(expected))
