"""States of nodes that are stable under messages: fixed points, their gradients, and a fixed number of gated steps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import wonderland as wl
from tests.nn.graphs.cases import C, double, features, random_graph
from wonderland import nn
from wonderland.errors import InputError


def close(left, right, tolerance=1e-8):
    np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=tolerance, atol=tolerance)


@pytest.mark.book("A7-27", "A7-28", name="nn.GRN")
def test_the_state_is_a_fixed_point_whatever_it_started_from():
    graph, x = random_graph(attr=True), features()
    layer = double(nn.GRN(C, 5, edge_dim=2, limit=0.8))
    found = layer.solve(x, graph)
    assert float(found.residual[0]) <= 1e-10
    h, w = np.asarray(found.value), np.asarray(layer.step.matrix())
    assert np.linalg.norm(w, 2) <= 0.8 + 1e-12
    u, b = np.asarray(layer.step.inputs.weight), np.asarray(layer.step.inputs.bias)
    degree, again = np.asarray(graph.degree()), np.zeros((9, 5))
    for k, (i, j) in enumerate(graph.edges.tolist()):
        given = np.concatenate([x.numpy()[i], graph.edge_attr.numpy()[k], x.numpy()[j]])
        again[i] += np.tanh(given @ u + b + h[j] @ w) / degree[i]
    close(again, h)
    other = layer.solve(x, graph, start=10 * np.random.default_rng(0).normal(size=(9, 5)))
    close(other.value, h)
    order = np.random.default_rng(1).permutation(9)
    close(layer(x[order], graph.permute(order)), h[order])


@pytest.mark.book("A7-27b", name="nn.GRN")
def test_states_travel_along_edges_only_if_they_are_the_neighbours():
    path, x = wl.graphs.path_graph(6), features(6)
    for state, seen in (("neighbour", range(6)), ("own", [0, 1])):
        layer = double(nn.GRN(C, 4, state=state))
        np.testing.assert_array_equal(nn.graph_receptive_field(layer, x, path, 0), list(seen))


@pytest.mark.book("A7-28", name="nn.GRN")
def test_what_does_not_converge_is_noticed():
    star, x = wl.graphs.star_graph(12), features(12)
    layer = double(nn.GRN(C, 3, limit=None, norm=None, max_iter=60, on_failure="raise"))
    layer.step.weight.weight = -3.0 * np.eye(3)
    with pytest.raises(InputError, match="no convergence after 60 evaluations"):
        layer(x, star)
    layer.settings = layer.settings._replace(on_failure="warn")
    with pytest.warns(nn.FixedPointWarning, match="no convergence"):
        layer(x, star)
    assert np.isnan(wl.jit(lambda layer, x: layer(x, star))(layer, x)).all()
    safe = double(nn.GRN(C, 3))  # the same matrix, scaled down
    safe.step.weight.weight = -3.0 * np.eye(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(safe(x, star)).all()


@pytest.mark.book("A7-29", name="nn.GRN")
def test_the_implicit_gradient_is_that_of_many_steps():
    graph, x = random_graph(), features()
    layer = double(nn.GRN(C, 4, limit=0.7))
    v = np.random.default_rng(0).normal(size=(9, 4))

    def implicit(layer, x):
        return (layer(x, graph) * v).sum()

    def unrolled(layer, x):
        return (layer.unrolled(x, graph, 120) * v).sum()

    left, right = (wl.grad(f, argnums=(0, 1))(layer, x) for f in (implicit, unrolled))
    for a, b in zip(wl.tree.leaves(left), wl.tree.leaves(right), strict=True):
        close(a, b, 1e-8)
    compiled = wl.jit(wl.grad(implicit, argnums=(0, 1)))(layer, x)
    for a, b in zip(wl.tree.leaves(compiled), wl.tree.leaves(left), strict=True):
        close(a, b, 1e-8)


@pytest.mark.book("A7-29", name="nn.GRN")
def test_the_implicit_gradient_keeps_nothing_of_the_iterations():
    graph, x = random_graph(), features()
    near, far = (double(nn.GRN(C, 4, limit=limit, key=wl.random.key(0))) for limit in (0.1, 0.99))
    for layer in (near, far):
        layer.step.weight.weight = 5.0 * np.eye(4)  # scaled to the limit
    counts = [int(layer.solve(x, graph).iterations) for layer in (near, far)]
    assert counts[1] > 2 * counts[0]
    implicit = [wl.saved(lambda x, layer=layer: layer(x, graph).sum(), x).bytes for layer in (near, far)]
    assert implicit[0] == implicit[1]
    steps = [wl.saved(lambda x, n=n: far.unrolled(x, graph, n).sum(), x).bytes for n in (20, 40)]
    assert steps[1] > 1.8 * steps[0]


@pytest.mark.book("A7-31", name="nn.GatedGNN")
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_gated_steps_see_as_many_hops(steps):
    path, x = wl.graphs.path_graph(9), features()
    layer = double(nn.GatedGNN(C, 5, T=steps))
    for i in (0, 4):
        seen = nn.graph_receptive_field(layer, x, path, i)
        np.testing.assert_array_equal(seen, np.union1d(path.k_hop(i, steps), [i]))
    assert layer.num_parameters() == nn.GatedGNN(C, 5, T=7).num_parameters()  # steps share their weights
    h, a = layer.inputs(x), np.asarray(path.to_dense(wl.float64))
    for _ in range(steps):
        h = layer.rnn(wl.asarray(a) @ layer.told(h), h)
    close(layer(x, path), h)


@pytest.mark.book("A7-32", name="models.GCN")
def test_a_gcn_has_weights_of_its_own_in_every_layer_and_a_grn_the_same():
    counts = [wl.models.GCN([C] + [4] * depth).num_parameters() for depth in (1, 2, 3)]
    assert np.diff(counts).tolist() == [4 * 4 + 4] * 2
    assert nn.GRN(4, 4, max_iter=3).num_parameters() == nn.GRN(4, 4, max_iter=300).num_parameters()
