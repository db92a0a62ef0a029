"""The graphs of the benchmarks are what they are said to be; layers need memory for nodes and edges alone."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import graphs, made_graphs
from benchmarks.options import Options


@pytest.mark.parametrize("make, nodes, edges", [(made_graphs.citations, 300, 1200), (made_graphs.network, 500, 4000)])
def test_made_graphs_have_the_edges_asked_for_in_both_directions(make, nodes, edges):
    made = make(nodes, edges, features=5)
    pairs = set(zip(made.senders.tolist(), made.receivers.tolist(), strict=True))
    assert len(made.senders) == len(pairs) == edges
    assert {(j, i) for i, j in pairs} == pairs
    assert all(i != j for i, j in pairs)
    assert np.all(np.diff(made.receivers) >= 0)
    assert made.x.shape == (nodes, 5)
    degrees = np.bincount(made.receivers, minlength=nodes)
    assert degrees.max() > 3 * edges / nodes  # some have many neighbours
    again = make(nodes, edges, features=5)
    np.testing.assert_array_equal(again.senders, made.senders)


def test_cora_and_the_large_graph_have_their_sizes():
    made = made_graphs.citations()
    assert (made.nodes, len(made.senders), made.x.shape, made.classes) == (2708, 10556, (2708, 1433), 7)
    defaults = made_graphs.network.__defaults__
    assert defaults is not None
    assert defaults[:3] == (100_000, 1_000_000, 64)


def test_self_loops_are_added_once_and_in_order():
    made = made_graphs.citations(30, 60, 4)
    senders, receivers = made.with_loops()
    assert len(senders) == 90
    assert np.sum(senders == receivers) == 30
    assert np.all(np.diff(receivers) >= 0)


def test_small_graphs_are_connected_and_apart():
    made = made_graphs.molecules(graphs=20)
    assert made.graph_of is not None
    sizes = np.bincount(made.graph_of)
    assert len(sizes) == len(made.y) == 20
    assert sizes.min() >= 10
    assert sizes.max() <= 30
    np.testing.assert_array_equal(made.graph_of[made.senders], made.graph_of[made.receivers])
    batch = graphs.batch_of(made)
    assert batch.num_graphs == 20
    pairs = np.asarray(batch.edges)
    assert set(map(tuple, pairs)) == set(zip(made.receivers.tolist(), made.senders.tolist(), strict=True))
    whole = np.linalg.matrix_power(np.asarray(batch.to_graphs()[0].to_dense()) + np.eye(sizes[0]), 30)
    assert np.all(whole > 0)  # everybody is reached from everywhere


@pytest.mark.parametrize("name", graphs.layers(4))
def test_the_memory_of_a_layer_grows_with_nodes_and_edges(name):
    (small, steep), (large, steeper) = graphs.growth(name, [200, 800], width=4)
    assert large < 1.2 * small + 0.5  # for each node and edge; with n^2 numbers it would be fourfold
    assert steeper < 1.2 * steep + 0.5


def test_the_table_of_memory(capsys):
    graphs.memory(Options(), sizes=(50,))
    out = capsys.readouterr().out
    assert "50 nodes" in out
    assert all(name in out for name in graphs.layers(4))
