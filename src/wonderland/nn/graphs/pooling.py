"""Pooling: smaller graphs, of clusters of nodes or of those that score best. Notes, section 7.9."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ... import arrays, linalg, sparse
from ...core import dtypes
from ...core.arguments import as_function, as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, DTypeLike, KeyLike
from ...graphs import Graph
from ...random.streams import take_key
from ...sparse import Incidence, Pattern
from ..init.schemes import uniform
from ..module.parameter import Parameter
from .layer import GraphLayer
from .loops import is_known, known
from .message_passing import Aggregation, as_aggregation
from .normalization import graphs_of
from .shift import DenseShift, GraphLike, Shift, shift_of

__all__ = ["ClusterPool", "Pooled", "TopKPooling"]


class Pooled(NamedTuple):
    """A smaller graph: features (k, c), the shift, and which node (or cluster) each one was of the larger one."""

    x: Tensor
    graph: Shift
    nodes: Tensor


def clustered(graph: GraphLike, clusters: ArrayLike) -> Shift:
    r"""\(S^\top A S\) as a shift, for clusters (n,) with known numbers; see `wl.graphs.cluster_graph`."""
    shift = _sparse("ClusterPool", graph, None)
    labels = arrays.asarray(clusters)
    if labels.shape != (shift.n,) or not dtypes.is_integer(labels.dtype):
        raise ShapeError(
            f"ClusterPool: clusters {labels.dtype}{list(labels.shape)} for {shift.n} nodes.", "an integer each"
        )
    of = known(labels)
    k = int(of.max(initial=-1)) + 1
    if of.size and of.min() < 0:
        raise InputError(f"ClusterPool: a cluster {of.min()}.", "numbers from 0")
    rows, cols = of[known(shift.pattern.rows.owner)], of[known(shift.pattern.cols.owner)]
    places, which = np.unique(rows.astype(np.int64) * k + cols, return_inverse=True)
    weight = sparse.segment_sum(shift.values(), Incidence.of(which, len(places)))
    pattern = Pattern.of(places // max(k, 1), places % max(k, 1), (k, k))
    nodes = None
    if shift.nodes is not None:
        graphs = np.zeros(k, np.int64)
        graphs[of] = known(shift.nodes.owner)
        nodes = Incidence.of(graphs, shift.nodes.lines)
    return Shift(pattern, weight, nodes=nodes)


class ClusterPool(GraphLayer):
    r"""Nodes of a cluster become one: features aggregated, \(S^\top A S\) for the weights. Notes, section 7.9.

    >>> import wonderland as wl
    >>> pool = wl.nn.ClusterPool()
    >>> small = pool(wl.tensor([[1.0], [3.0], [5.0], [9.0]]), wl.graphs.path_graph(4), [0, 0, 1, 1])
    >>> small.x.tolist(), small.graph.n
    ([[2.0], [7.0]], 2)

    The clusters (n,) are given with the call, or found by `method(graph)`, a function such as
    `lambda graph: wl.models.spectral_clustering(graph, 3)`. `how` is "mean", "sum" or "max".
    Edges within a cluster become its self-loop, so that the total weight stays the same.
    """

    def __init__(self, how: Aggregation = "mean", method: Callable[[Graph], ArrayLike] | None = None) -> None:
        as_aggregation("ClusterPool", how)
        self.how = how
        self.method = None if method is None else as_function("ClusterPool", method)

    def forward(  # type: ignore[override]  # clusters are the third argument
        self, x: ArrayLike, graph: GraphLike, clusters: ArrayLike | None = None
    ) -> Pooled:
        if clusters is None:
            if self.method is None:
                raise InputError("ClusterPool: no clusters.", "pool(x, graph, clusters), or ClusterPool(method=...)")
            shift = _sparse("ClusterPool", graph, None)
            made = graph if isinstance(graph, Graph) else Graph.from_pattern(shift.pattern, shift.weight)
            clusters = self.method(made)
        x, shift, _ = self.arranged(x, graph)
        small = clustered(shift, clusters)
        labels = Incidence.of(known(arrays.asarray(clusters)), small.n)
        return Pooled(as_aggregation("ClusterPool", self.how)(x, labels), small, labels.owner)

    def extra_repr(self) -> str:
        return repr(self.how) if isinstance(self.how, str) else ""


class TopKPooling(GraphLayer):
    r"""The nodes with the largest \(s_i = \tanh(x_i p / \|p\|)\), their features times \(s_i\). Notes, section 7.9.

    >>> import wonderland as wl
    >>> pool = wl.nn.TopKPooling(4, ratio=0.5)
    >>> small = pool(wl.random.normal((6, 4)), wl.graphs.path_graph(6))
    >>> small.x.shape, small.graph.n
    ((3, 4), 3)

    Of every graph \(\lceil r\,n \rceil\) nodes stay, best first, with the edges between them; `ratio` is a share, or a
    number of nodes if it is an integer. `weight` is p (1, c), as in PyTorch Geometric, where it is `select.weight`.
    `multiplier` scales the features, `nonlinearity` takes the place of tanh. Which edges stay depends on numbers, so
    compiled functions can use `select` alone: features and places.
    """

    def __init__(
        self,
        in_features: int,
        ratio: float | int = 0.5,
        multiplier: float = 1.0,
        nonlinearity: Callable[[Tensor], Tensor] = arrays.tanh,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "TopKPooling"
        self.in_features = as_int(name, "in_features", in_features, 1)
        if not as_number(name, "ratio", ratio) > 0 or (isinstance(ratio, float) and ratio > 1):
            raise InputError(f"{name}: ratio={ratio}.", "a share up to 1.0, or a number of nodes")
        self.ratio, self.multiplier = ratio, float(as_number(name, "multiplier", multiplier))
        self.nonlinearity = as_function(name, nonlinearity)
        bound = 1 / math.sqrt(self.in_features)
        start = uniform(-bound, bound)
        self.weight = Parameter(
            start((1, self.in_features), key=take_key(name, key), dtype=dtype or dtypes.default_float)
        )

    def channels(self) -> int:
        return self.in_features

    def select(self, x: ArrayLike, graph: GraphLike) -> tuple[Tensor, Tensor]:
        """The features of the nodes that stay, (k, c), and their places (k,)."""
        x, shift, _ = self.arranged(x, graph)
        return self._select(x, shift)

    def _select(self, x: Tensor, shift: Shift) -> tuple[Tensor, Tensor]:
        scores = self.nonlinearity(arrays.sum(x * self.weight, axis=-1) / linalg.vector_norm(self.weight))
        whose = graphs_of(shift)
        if not is_known(whose.ptr):
            raise InputError(
                "TopKPooling: a traced batch does not tell how many nodes of each graph stay.",
                "one graph, or the call outside of the compiled function",
            )
        sizes = np.diff(known(whose.ptr))
        order = arrays.argsort(arrays.stop_gradient(scores), descending=True)
        order = arrays.take(order, arrays.argsort(arrays.take(whose.owner, order)))  # by graph, best first
        starts = np.cumsum(sizes) - sizes
        spots = [np.arange(start, start + self._kept(size)) for start, size in zip(starts, sizes, strict=True)]
        nodes = arrays.take(order, np.concatenate([*spots, np.zeros(0, np.int64)]).astype(np.int64))
        h = arrays.take(x, nodes, axis=0) * arrays.take(scores, nodes)[:, None]
        return (h if self.multiplier == 1.0 else h * self.multiplier), nodes

    def _kept(self, size: int) -> int:
        if isinstance(self.ratio, int):
            return min(self.ratio, int(size))
        return math.ceil(self.ratio * float(size))

    def forward(self, x: ArrayLike, graph: GraphLike) -> Pooled:  # type: ignore[override]  # the graph changes, too
        x, shift, _ = self.arranged(x, graph)
        h, nodes = self._select(x, shift)
        if not is_known(nodes):
            raise InputError(
                "TopKPooling: which edges stay depends on numbers that compiled code does not know beforehand.",
                "pool.select(x, graph) inside, or the call outside of the compiled function",
            )
        return Pooled(h, _induced(shift, known(nodes)), nodes)

    def extra_repr(self) -> str:
        return f"{self.in_features}, ratio={self.ratio}"


def _induced(shift: Shift, nodes: Array) -> Shift:
    """The edges between some nodes, with new numbers."""
    place = np.full(shift.n, -1)
    place[nodes] = np.arange(len(nodes))
    rows, cols = place[known(shift.pattern.rows.owner)], place[known(shift.pattern.cols.owner)]
    kept = np.flatnonzero((rows >= 0) & (cols >= 0))
    of_graphs = None
    if shift.nodes is not None:
        of_graphs = Incidence.of(known(shift.nodes.owner)[nodes], shift.nodes.lines)
    return Shift(
        Pattern.of(rows[kept], cols[kept], (len(nodes), len(nodes))),
        None if shift.weight is None else arrays.take(shift.weight, kept, axis=0),
        None if shift.edge_attr is None else arrays.take(shift.edge_attr, kept, axis=0),
        of_graphs,
    )


def _sparse(name: str, graph: GraphLike, nodes: int | None) -> Shift:
    found = shift_of(name, graph, nodes)
    return found.sparse() if isinstance(found, DenseShift) else found
