"""A graph in other forms: dense matrices, coordinate lists, incidence matrices. Book, sections 12.1.1 and 12.2.4."""

from __future__ import annotations

import numpy as np

from ..arrays import asarray, zeros
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike, DTypeLike
from .graph import Graph
from .structure import coalesce, weights_of


def to_dense(graph: Graph, dtype: DTypeLike | None = None) -> Tensor:
    r"""The adjacency matrix A (n, n): \(A_{ij}\) is the sum of the weights of (i, j).

    >>> import wonderland as wl
    >>> wl.graphs.Graph(3, [(0, 2), (2, 0)]).to_dense().tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]

    Book, section 12.1.1.
    """
    weight = weights_of(graph, dtype)
    flat = graph.pattern.rows.owner.astype(np.int64) * graph.n + graph.pattern.cols.owner
    return zeros((graph.n * graph.n,), dtype=weight.dtype).at[flat].add(weight).reshape((graph.n, graph.n))


def from_dense(A: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None) -> Graph:
    """The graph of a matrix (n, n): an edge where it is not zero, with weights if some are not 1.

    >>> import wonderland as wl
    >>> wl.graphs.from_dense([[0, 1], [1, 0]])
    Graph(2 nodes, 1 undirected edge)

    Weights are differentiable functions of a float matrix; the pattern is that of its numbers.
    """
    matrix = asarray(A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"from_dense: a matrix of shape {matrix.shape}.", "a square one, (n, n)")
    numbers = np.asarray(matrix)
    rows, cols = np.nonzero(numbers)
    kept = bool((numbers[rows, cols] != 1).any()) or matrix.requires_grad
    weights = matrix[rows, cols] if kept else None
    return Graph(len(numbers), np.stack([rows, cols], axis=1), weights, x=x, y=y)


def coo(graph: Graph) -> list[list[int]]:
    """The coordinate list of A: the pairs [i, j], in rising order. Book, section 12.2.4.

    >>> import wonderland as wl
    >>> wl.graphs.coo(wl.graphs.from_dense([[0, 0, 1], [0, 0, 0], [1, 0, 0]]))
    [[0, 2], [2, 0]]

    The number of nodes is not in it: node 1 here has no edges. `graph.edges` are the pairs as they were given.
    """
    rows, cols = graph.ends()
    order = np.lexsort((cols, rows))
    return np.stack([rows[order], cols[order]], axis=1).tolist()


def incidence(graph: Graph, oriented: bool = False) -> Tensor:
    r"""The incidence matrix B (n, m) of an undirected graph with m edges, each counted once.

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)
    >>> wl.graphs.incidence(graph).tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]

    \(B_{ij} = 1\) if node i is an end of edge j: its columns sum to 2, its rows to the degrees, and \(BB^T = D + A\).
    With `oriented=True` it is P, with \(+\sqrt{a}\) at one end and \(-\sqrt{a}\) at the other of an edge of weight
    \(a \ge 0\), and \(PP^T = L\). Self-loops, which have one end only, are left out. Edges are in the order of their
    first node, then of their second. Book, section 12.1.1.
    """
    graph.need_undirected("incidence")
    once = coalesce(graph)
    rows, cols = once.ends()
    upper = np.flatnonzero(rows < cols)
    found = np.zeros((graph.n, len(upper)), np.float32)
    if oriented:
        weight: Array = np.asarray(weights_of(once))[upper]
        found = found.astype(weight.dtype)
        root = np.sqrt(weight)
        found[rows[upper], np.arange(len(upper))] = root
        found[cols[upper], np.arange(len(upper))] = -root
    else:
        found[rows[upper], np.arange(len(upper))] = 1
        found[cols[upper], np.arange(len(upper))] = 1
    return asarray(found)
