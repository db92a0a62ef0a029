r"""Matrices with the pattern of a graph, by which signals move along its edges: A, its normalisations, Laplacians.

A graph-shift matrix is any matrix with \(A_{ij} = 0\) where (i, j) is no edge (the diagonal aside). All of them are
differentiable functions of the weights, and an isolated node gives zeros and no NaN. Book, sections 12.1.2 and 12.1.3.
"""

from __future__ import annotations

import numpy as np

from ..arrays import asarray, concat
from ..core.errors import InputError
from ..core.tensor import Tensor, Tracer
from ..core.typing import DTypeLike
from ..sparse import COO, CSR, gather
from .graph import Graph
from .normalization import degree, inverse, normalize
from .structure import edge_subset, weights_of

KINDS = ("adjacency", "row", "col", "sym", "laplacian", "laplacian_sym", "laplacian_rw")


def adjacency(graph: Graph, dtype: DTypeLike | None = None) -> CSR | COO:
    r"""A (n, n) as a sparse matrix: \(A_{ij}\) is the weight of (i, j), 1 without weights.

    >>> import wonderland as wl
    >>> wl.graphs.Graph(2, [(0, 1)]).adjacency() @ wl.tensor([5.0, 7.0])
    tensor([7., 0.])

    Rows are sorted, and duplicates summed. Inside of a compiled function, of which the graph is an argument, it is a
    `COO` with the edges in their own order.
    """
    found = COO(weights_of(graph, dtype), graph.pattern)
    return found if isinstance(graph.pattern.rows.owner, Tracer) else found.tocsr()


def laplacian(graph: Graph, kind: str = "un", dtype: DTypeLike | None = None) -> CSR:
    r"""\(L = D - A\) ("un"), \(D^{-1/2}LD^{-1/2}\) ("sym") or \(D^{-1}L\) ("rw"), with \(D_{ii} = \sum_j A_{ij}\).

    >>> import wonderland as wl
    >>> wl.graphs.path_graph(3).laplacian().todense()
    tensor([[ 1., -1.,  0.],
            [-1.,  2., -1.],
            [ 0., -1.,  1.]])

    \(L\mathbf{1} = 0\), and self-loops cancel: \(L(A + I) = L(A)\). \((Lx)_i = \sum_j A_{ij}(x_i - x_j)\) is the
    gradient of the smoothness, see `laplacian_quadratic`. An isolated node has a row of zeros in all of them. Book,
    section 12.1.3.
    """
    if kind not in ("un", "sym", "rw"):
        raise InputError(f"laplacian: kind={kind!r}.", '"un", "sym" or "rw"')
    rows, cols = graph.ends()
    plain = edge_subset(graph, rows != cols)
    total, among = degree(graph, 1, dtype), degree(plain, 1, dtype)  # with self-loops, and without
    off, i, j = -weights_of(plain, dtype), plain.pattern.rows, plain.pattern.cols
    if kind == "sym":
        scale = inverse(total, root=True)
        off, among = off * (gather(scale, i) * gather(scale, j)), among * scale * scale
    elif kind == "rw":
        scale = inverse(total)
        off, among = off * gather(scale, i), among * scale
    every, (rows, cols) = np.arange(graph.n), plain.ends()
    places = np.concatenate([rows, every]), np.concatenate([cols, every])
    return COO.of(*places, concat([off, among]), (graph.n, graph.n)).tocsr()


def shift(graph: Graph, kind: str = "adjacency", dtype: DTypeLike | None = None) -> CSR | COO:
    """A graph-shift matrix by name: "adjacency", "row", "col", "sym", "laplacian", "laplacian_sym", "laplacian_rw".

    >>> import wonderland as wl
    >>> wl.graphs.path_graph(2).shift("laplacian_sym").todense().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]

    Book, section 12.1.2.
    """
    if kind == "adjacency":
        return adjacency(graph, dtype)
    if kind in ("row", "col", "sym"):
        return adjacency(normalize(graph, kind, dtype), dtype)
    if kind in KINDS:
        return laplacian(graph, {"laplacian": "un"}.get(kind, kind.removeprefix("laplacian_")), dtype)
    raise InputError(f"shift: kind={kind!r}.", f"one of {', '.join(KINDS)}")


def random_walk_matrix(graph: Graph, dtype: DTypeLike | None = None) -> CSR | COO:
    r"""\(R = AD^{-1}\), whose columns are distributions: \(R_{ij}\) is the probability of a step from j to i.

    >>> import wonderland as wl
    >>> wl.graphs.random_walk_matrix(wl.graphs.path_graph(3)).todense().tolist()
    [[0.0, 0.5, 0.0], [1.0, 0.0, 1.0], [0.0, 0.5, 0.0]]

    \(R^t\) takes a distribution over the nodes t steps further. The book writes that \(R_{ij}\) leads from i to j, as
    in \(D^{-1}A\); the diagonals of their powers are equal. Book, section 12.3.3.
    """
    return adjacency(normalize(graph, "col", dtype), dtype)


def return_probabilities(graph: Graph, k: int, dtype: DTypeLike | None = None) -> Tensor:
    r"""\([\mathrm{diag}(R), \dots, \mathrm{diag}(R^k)]\), (n, k): how likely a walk is back after 1 to k steps.

    >>> import wonderland as wl
    >>> wl.graphs.return_probabilities(wl.graphs.path_graph(3), 2).tolist()
    [[0.0, 0.5], [0.0, 1.0], [0.0, 0.5]]

    It takes k products of a sparse matrix with one of (n, n) numbers, in blocks of columns. Book, section 12.3.3.
    """
    R = random_walk_matrix(graph, dtype)
    found = []
    for start in range(0, graph.n, 256):
        columns = np.arange(start, min(start + 256, graph.n))
        block = np.zeros((graph.n, len(columns)), R.data.dtype)
        block[columns, np.arange(len(columns))] = 1
        state, values = asarray(block), []
        for _ in range(k):
            state = R @ state
            values.append(state[columns, np.arange(len(columns))])
        found.append(values)
    if not found:
        return asarray(np.zeros((0, k), np.float32))
    return concat([concat([v.reshape((-1, 1)) for v in values], axis=1) for values in found], axis=0)
