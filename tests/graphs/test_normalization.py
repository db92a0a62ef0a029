"""Degrees and normalisations: sums of rows and columns, eigenvalues, isolated nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import wonderland as wl
from tests.graphs.test_graph import A, any_graph, dense, worked
from wonderland.errors import InputError
from wonderland.graphs import Graph


@pytest.mark.book("12.11", "A7-05", name=("wl.graphs.degree", "wl.graphs.degree_histogram"))
def test_degrees_count_each_edge_twice():
    graph = worked()
    assert graph.degree().tolist() == [2, 3, 2, 1]
    assert float(graph.degree().sum()) == 2 * graph.num_undirected_edges
    assert graph.add_self_loops().degree().tolist() == [3, 4, 3, 2]  # a self-loop counts once
    assert wl.graphs.degree_histogram(graph).tolist() == [0, 1, 2, 1]
    weighted = Graph(2, [(0, 1), (0, 0)], [0.5, 2.0])
    assert weighted.degree().tolist() == [2.5, 0.0]
    assert weighted.degree(axis=0).tolist() == [2.0, 0.5]


@pytest.mark.book("12.12", "12.13", name="wl.graphs.normalize")
def test_rows_or_columns_sum_to_one():
    rows, cols = (worked().normalize(kind).to_dense().numpy() for kind in ("row", "col"))
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    np.testing.assert_allclose(rows.sum(axis=0), [0.8333, 2, 0.8333, 0.3333], atol=1e-4)  # the text has 1
    np.testing.assert_allclose(cols.sum(axis=0), 1)
    np.testing.assert_allclose(rows, A / A.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(cols, A / A.sum(axis=0))


@pytest.mark.book("12.14", name="wl.graphs.normalize")
def test_symmetric_normalisation():
    S = worked().add_self_loops().normalize("sym").to_dense().numpy()
    np.testing.assert_array_equal(S, S.T)
    np.testing.assert_allclose([S[0, 0], S[0, 1], S[1, 3], S[3, 3]], [1 / 3, 0.288675, 0.353553, 0.5], atol=1e-6)
    values = np.linalg.eigvalsh(S)
    assert values.min() >= -1
    assert values.max() <= 1 + 1e-6


@pytest.mark.book("12.15", name="wl.graphs.normalize")
@pytest.mark.parametrize("kind", ["row", "col", "sym"])
@given(graph=any_graph())
@settings(max_examples=20, deadline=None)
def test_isolated_nodes_give_zeros(kind, graph):
    M = dense(graph)
    found = dense(graph.normalize(kind))
    assert np.isfinite(found).all()
    d, c = M.sum(axis=1), M.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = {"row": M / d[:, None], "col": M / c, "sym": M / np.sqrt(np.outer(d, d))}[kind]
    expected[~np.isfinite(expected)] = 0
    np.testing.assert_allclose(found, expected)
    gradient = wl.grad(lambda w: (graph.with_(weight=w).normalize(kind).weight ** 2).sum())(graph.weight)
    assert np.isfinite(gradient).all()


def test_kinds_are_checked():
    assert worked().normalize(None).weight is None
    with pytest.raises(InputError, match='"row", "col", "sym" or None'):
        worked().normalize("both")
