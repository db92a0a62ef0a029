"""Layers about edges: messages from differences, and edges that change with the nodes at their ends. Book, 12.3.2."""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays, sparse
from ...core.arguments import as_function
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..module.module import Module
from .layer import GraphLayer, with_edges
from .message_passing import Aggregation, as_aggregation
from .shift import GraphLike, Shift

__all__ = ["EdgeConv", "EdgeUpdate"]


class EdgeConv(GraphLayer):
    r"""\(h_i = \max_{j \in N(i)} f([x_i ; x_j - x_i])\) with a network f, as by Wang et al. Book, section 12.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.EdgeConv(wl.models.MLP([8, 16, 2]))
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    (3, 2)

    f takes twice the features of a node. `aggregate` is "max", "mean" or "sum". The numbers are those of PyTorch
    Geometric's layer. A node without neighbours gets 0.
    """

    def __init__(self, nn: Callable[[Tensor], Tensor], aggregate: Aggregation = "max") -> None:
        self.nn = as_function(type(self).__name__, nn)
        self.aggregate = aggregate
        as_aggregation(type(self).__name__, aggregate)

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        x_i, x_j = sparse.gather(x, shift.pattern.rows), sparse.gather(x, shift.pattern.cols)
        told = self.nn(arrays.concat([x_i, x_j - x_i], axis=-1))
        return as_aggregation(type(self).__name__, self.aggregate)(told, shift.pattern.rows)

    def extra_repr(self) -> str:
        return f"aggregate={self.aggregate!r}" if isinstance(self.aggregate, str) else ""


class EdgeUpdate(Module):
    r"""\(e_{ij} \leftarrow f([e_{ij} ; h_i ; h_j])\): features of edges (m, d) to (m, d'). Book, section 12.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.EdgeUpdate(wl.models.MLP([1 + 2 * 4, 16, 2]), symmetric=True)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), wl.ones((4, 1))).shape
    (4, 2)

    The result stays in the order of the edges. Without features the network sees both ends alone. With `symmetric` it
    is the mean over both orders of the ends, so \(e_{ij} = e_{ji}\) stays true on an undirected graph.
    """

    def __init__(self, nn: Callable[[Tensor], Tensor], symmetric: bool = False) -> None:
        self.nn = as_function(type(self).__name__, nn)
        self.symmetric = bool(symmetric)

    def forward(self, h: ArrayLike, graph: GraphLike, edge_attr: ArrayLike | None = None) -> Tensor:
        x, shift, _ = _EDGES.arranged(h, graph)
        shift = with_edges(self._describe(), shift, edge_attr, None)
        ends = [sparse.gather(x, shift.pattern.rows), sparse.gather(x, shift.pattern.cols)]
        own = [] if shift.edge_attr is None else [arrays.astype(shift.edge_attr, x.dtype)]
        found = self.nn(arrays.concat([*own, *ends], axis=-1))
        if self.symmetric:
            found = 0.5 * (found + self.nn(arrays.concat([*own, *ends[::-1]], axis=-1)))
        return found

    def extra_repr(self) -> str:
        return ", ".join(self._changed(symmetric=False))


class _Edges(GraphLayer):
    """What arranges features and graphs for layers that are no `GraphLayer`."""


_EDGES = _Edges()
