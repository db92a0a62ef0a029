"""Where a node is in its graph, as a vector: structural encodings. Book, section 12.3.3."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.dtypes import DType
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, DTypeLike, KeyLike
from ...random.discrete import bernoulli
from ...random.keys import split
from ...random.streams import Source, take_key
from ..layers.dropout import own_stream
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from ..module.module import Module
from .loops import is_known, known
from .shift import DenseShift, GraphLike, Shift, shift_of

__all__ = [
    "AnchorEncoding", "DegreeEmbedding", "LaplacianEncoding", "RandomWalkEmbedding", "laplacian_eigenvectors",
    "return_probabilities",
]  # fmt: skip

BLOCK = 256  # columns of a power of the random walk that are in memory at once


def _sparse(name: str, graph: GraphLike) -> Shift:
    found = shift_of(name, graph)
    return found.sparse() if isinstance(found, DenseShift) else found


def _known(name: str, graph: GraphLike, remedy: str) -> Shift:
    shift = _sparse(name, graph)
    if not is_known(shift.pattern.rows.owner):
        raise InputError(f"{name}: the edges of a traced graph cannot be looked at.", remedy)
    return shift


class DegreeEmbedding(Module):
    """A trained vector for each degree: graph to (n, e). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.DegreeEmbedding(10, 4)
    >>> layer(wl.graphs.star_graph(5)).shape
    (5, 4)

    Neighbours are counted, whatever their weights are; degrees from `max_degree` on share a vector.
    """

    def __init__(self, max_degree: int, features: int, dtype: DTypeLike | None = None, key: KeyLike = None) -> None:
        self.max_degree = as_int("DegreeEmbedding", "max_degree", max_degree, 0)
        self.table = Embedding(self.max_degree + 1, features, dtype=dtype, key=key)

    def forward(self, graph: GraphLike) -> Tensor:
        counts = _sparse("DegreeEmbedding", graph).pattern.rows.counts
        return self.table(arrays.minimum(counts, self.max_degree))


class AnchorEncoding(Module):
    """The distances to some nodes, and a linear layer: graph to (n, e). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.AnchorEncoding([0, 3], 4)
    >>> layer.distances(wl.graphs.path_graph(4)).tolist()
    [[0.0, 3.0], [1.0, 2.0], [2.0, 1.0], [3.0, 0.0]]

    Distances are steps along edges, at most `cap`, which is also that of nodes that are not reached. They depend on the
    numbers of the anchors: the result is permuted with the nodes if the anchors are, `layer(graph, anchors)`.
    """

    def __init__(
        self,
        anchors: Sequence[int],
        features: int,
        cap: int = 16,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.anchors = tuple(as_int("AnchorEncoding", "an anchor", a, 0) for a in anchors)
        self.cap = as_int("AnchorEncoding", "cap", cap, 1)
        self.lin = Linear(len(self.anchors), features, True, dtype, key)

    def distances(self, graph: GraphLike, anchors: Sequence[int] | None = None) -> Tensor:
        """The distances (n, anchors)."""
        name = "AnchorEncoding"
        shift = _known(name, graph, "a graph that the function closes over")
        chosen = self.anchors if anchors is None else tuple(anchors)
        if len(chosen) != len(self.anchors) or any(not 0 <= a < shift.n for a in chosen):
            raise InputError(
                f"{name}: anchors {chosen} in a graph of {shift.n} nodes.", f"{len(self.anchors)} of its nodes"
            )
        rows, cols = known(shift.pattern.rows.owner), known(shift.pattern.cols.owner)
        found = np.stack([_steps(rows, cols, shift.n, a, self.cap) for a in chosen], axis=1)
        return arrays.asarray(found, dtype=self.lin.dtype)

    def forward(self, graph: GraphLike, anchors: Sequence[int] | None = None) -> Tensor:
        return self.lin(self.distances(graph, anchors) / self.cap)


def _steps(rows: Array, cols: Array, n: int, anchor: int, cap: int) -> Array:
    """How many steps node i needs to the anchor, by breadth-first search."""
    found = np.full(n, cap)
    found[anchor] = 0
    front = np.arange(n) == anchor
    for step in range(1, cap):
        reached = np.zeros(n, bool)
        reached[rows[front[cols]]] = True
        front = reached & (found == cap)
        if not front.any():
            break
        found[front] = step
    return found


def return_probabilities(graph: GraphLike, k: int, dtype: DTypeLike | None = None) -> Tensor:
    r"""\([\mathrm{diag}(R), \dots, \mathrm{diag}(R^k)]\) as (n, k): a walk is back after so many steps. Book, 12.3.3.

    >>> import wonderland as wl
    >>> wl.nn.return_probabilities(wl.graphs.path_graph(2), 4).tolist()[0]
    [0.0, 1.0, 0.0, 1.0]

    \(R = A D^{-1}\), whose entry (i, j) is the probability to go from j to i, since its columns sum to 1; the book says
    it the other way round, with the same diagonal. Powers are applied to a few columns at a time, none is formed whole.
    """
    count = as_int("return_probabilities", "k", k, 1)
    shift = _sparse("return_probabilities", graph)
    kind: DType = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
    walk = shift.normalized("col", dtype=kind)
    parts = []
    for start in range(0, shift.n, BLOCK):
        own = np.arange(start, min(start + BLOCK, shift.n))
        columns = arrays.asarray((np.arange(shift.n)[:, None] == own).astype(kind))
        powers = []
        for _ in range(count):
            columns = walk.apply(columns)
            powers.append(columns[own, np.arange(len(own))])
        parts.append(arrays.stack(powers, axis=1))
    return arrays.concat(parts) if parts else arrays.zeros((0, count), dtype=kind)


class RandomWalkEmbedding(Module):
    r"""Return probabilities of random walks up to k steps, times W (k, e): graph to (n, e). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.RandomWalkEmbedding(8, 4)
    >>> layer(wl.graphs.star_graph(5)).shape
    (5, 4)

    The book stacks probabilities as (k, n), which W cannot follow; they are transposed. Nodes that a symmetry of the
    graph exchanges get the same. What does not change is computed once: `layer(positions)` with the (n, k) of
    `return_probabilities(graph, k)`.
    """

    def __init__(self, k: int, features: int, bias: bool = False, dtype: DTypeLike | None = None, key: KeyLike = None):
        self.k = as_int("RandomWalkEmbedding", "k", k, 1)
        self.lin = Linear(self.k, features, bias, dtype, key)

    def positions(self, graph: GraphLike) -> Tensor:
        """The probabilities (n, k)."""
        return return_probabilities(graph, self.k, self.lin.dtype)

    def forward(self, graph: GraphLike) -> Tensor:
        given = _table(graph, self.k)
        return self.lin(self.positions(graph) if given is None else given)


def laplacian_eigenvectors(graph: GraphLike, k: int, dtype: DTypeLike | None = None) -> Tensor:
    r"""The k smoothest eigenvectors of \(I - D^{-1/2} A D^{-1/2}\) but the first, (n, k). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> wl.nn.laplacian_eigenvectors(wl.graphs.path_graph(4), 2).shape
    (4, 2)

    Graphs of a batch have eigenvectors of their own, each of length 1; where there are fewer, zeros. Their signs are
    arbitrary, and so is the basis for an eigenvalue that comes several times. A has to be symmetric.
    """
    count = as_int("laplacian_eigenvectors", "k", k, 1)
    shift = _known("laplacian_eigenvectors", graph, "eigenvectors that are computed before, layer(positions)")
    n, rows, cols = shift.n, known(shift.pattern.rows.owner), known(shift.pattern.cols.owner)
    weight = np.ones(len(rows)) if shift.weight is None else known(shift.weight).astype(np.float64)
    whose = np.zeros(n, int) if shift.nodes is None else known(shift.nodes.owner)
    found = np.zeros((n, count))
    for graph_id in np.unique(whose):
        nodes = np.flatnonzero(whose == graph_id)
        place = np.zeros(n, int)
        place[nodes] = np.arange(len(nodes))
        inside = whose[rows] == graph_id
        a = np.zeros((len(nodes), len(nodes)))
        np.add.at(a, (place[rows[inside]], place[cols[inside]]), weight[inside])
        if not np.allclose(a, a.T):
            raise InputError("laplacian_eigenvectors: A is not symmetric.", "graph.to_undirected()")
        degrees = a.sum(axis=1)
        scale = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
        vectors = np.linalg.eigh(np.eye(len(nodes)) - scale[:, None] * a * scale)[1][:, 1 : count + 1]
        found[nodes, : vectors.shape[1]] = vectors
    return arrays.asarray(found, dtype=dtypes.default_float if dtype is None else dtypes.as_dtype(dtype))


class LaplacianEncoding(Module):
    r"""The k smoothest eigenvectors of the Laplacian, times W (k, e): graph to (n, e). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.LaplacianEncoding(3, 4).eval()
    >>> layer(wl.graphs.path_graph(6)).shape
    (6, 4)

    An eigenvector may as well have the other sign, so signs are drawn anew in every call while training, from `key` or
    the global stream. Compute the vectors once: `layer(positions)` with `layer.positions(graph)`.
    """

    def __init__(
        self, k: int, features: int, bias: bool = False, dtype: DTypeLike | None = None, key: Source = None
    ) -> None:
        self.k = as_int("LaplacianEncoding", "k", k, 1)
        self.stream = own_stream(key)
        first = split(take_key("LaplacianEncoding", self.stream), 1)[0]
        self.lin = Linear(self.k, features, bias, dtype, first)

    def positions(self, graph: GraphLike) -> Tensor:
        """The eigenvectors (n, k)."""
        return laplacian_eigenvectors(graph, self.k, self.lin.dtype)

    def forward(self, graph: GraphLike) -> Tensor:
        given = _table(graph, self.k)
        vectors = self.positions(graph) if given is None else given
        if self.training:
            signs = 2.0 * arrays.astype(bernoulli((self.k,), 0.5, key=self.stream), vectors.dtype) - 1.0
            vectors = vectors * signs
        return self.lin(vectors)


def _table(graph: GraphLike, k: int) -> Tensor | None:
    """The positions (n, k), if that is what was given and no graph."""
    if not isinstance(graph, Tensor | np.ndarray) or dtypes.is_integer(graph.dtype):
        return None
    if graph.shape == (k, k):
        raise ShapeError(f"a table of shape {graph.shape} may be positions or a matrix.", "a Graph")
    return arrays.asarray(graph) if graph.ndim == 2 and graph.shape[1] == k else None
