"""Graphs of regular shape."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import toeplitz

import wonderland as wl
from wonderland.graphs import Graph


def is_toeplitz(M: np.ndarray) -> bool:
    return bool((toeplitz(M[:, 0], M[0]) == M).all())


@pytest.mark.book("12.02", name=("Graph.set", "Graph.complete", "Graph.path", "Graph.grid"))
def test_sets_sequences_and_images_are_graphs():
    np.testing.assert_array_equal(Graph.set(4).to_dense(), np.eye(4))
    np.testing.assert_array_equal(Graph.complete(4, self_loops=True).to_dense(), np.ones((4, 4)))
    np.testing.assert_array_equal(Graph.complete(4).to_dense(), 1 - np.eye(4))
    path, grid = Graph.path(5).to_dense().numpy(), Graph.grid(8, 8).to_dense().numpy()
    assert is_toeplitz(path)
    assert not is_toeplitz(grid)  # against the text
    blocks = grid.reshape(8, 8, 8, 8).transpose(0, 2, 1, 3)  # (row of blocks, column of blocks, ...)
    for i in range(8):
        for j in range(8):
            assert is_toeplitz(blocks[i, j])
            np.testing.assert_array_equal(blocks[i, j], blocks[max(i - j, 0), max(j - i, 0)])


@pytest.mark.book("12.84", name="wl.graphs.patch_graph")
def test_patches_that_share_a_border():
    graph = wl.graphs.patch_graph(8, 8)
    assert (graph.num_undirected_edges, graph.num_edges) == (112, 224)
    degrees = graph.degree().numpy().reshape(8, 8)
    assert degrees[0, 0] == degrees[0, 7] == degrees[7, 0] == degrees[7, 7] == 2
    assert (degrees[0, 1:7] == 3).all()
    assert (degrees[1:7, 1:7] == 4).all()
    assert 9 not in graph.neighbors(0)  # no corners
    for i, j in graph.edges.tolist():
        assert abs(i // 8 - j // 8) + abs(i % 8 - j % 8) == 1
    batch = wl.graphs.Batch.from_graphs([graph] * 3)
    assert (batch.n, batch.num_undirected_edges) == (192, 336)
    assert wl.graphs.grid_graph(8, 8, diagonals=True).num_undirected_edges == 112 + 2 * 49


def test_rings_stars_and_small_ones():
    assert wl.graphs.ring_graph(5).degree().tolist() == [2.0] * 5
    assert wl.graphs.star_graph(1).num_edges == wl.graphs.path_graph(1).num_edges == 0
    assert wl.graphs.path_graph(0).n == wl.graphs.complete_graph(0).n == 0
    assert wl.graphs.grid_graph(1, 4).coo() == wl.graphs.path_graph(4).coo()
