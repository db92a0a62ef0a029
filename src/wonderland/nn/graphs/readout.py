"""Readouts: the nodes of a graph as one vector, whatever their number and order. Book, 12.2.3; notes, section 7.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import arrays, sparse
from ...core.arguments import as_function, as_int
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.linear import Linear
from .layer import GraphLayer
from .message_passing import Aggregation, as_aggregation
from .normalization import graphs_of
from .shift import GraphLike, Shift

__all__ = ["AttentionReadout", "Readout", "VirtualNode", "VirtualNodeState"]


class Readout(GraphLayer):
    r"""The mean, sum or maximum over the nodes of a graph: (n, c) to (c,). Book, section 12.2.3; notes, section 7.9.

    >>> import wonderland as wl
    >>> x = wl.tensor([[1.0], [3.0]])
    >>> [wl.nn.Readout(how)(x, wl.eye(2)).item() for how in ("mean", "sum", "max")]
    [2.0, 4.0, 3.0]

    `how` is "mean", "sum", "max", "min", or a function of features and `Incidence`. A batch of graphs gives (graphs,
    c); so do dense graphs (b, n, n), whose padding a mask (b, n) leaves out: `readout(x, graph, mask=real)`. A graph
    without nodes gives 0. Means and maxima do not tell apart graphs with copies of the same nodes, sums do.
    """

    def __init__(self, how: Aggregation = "mean") -> None:
        as_aggregation("Readout", how)
        self.how = how

    def forward(  # type: ignore[override]  # edges do not matter
        self, x: ArrayLike, graph: GraphLike, mask: ArrayLike | None = None
    ) -> Tensor:
        x, shift, _ = self.arranged(x, graph)
        whose = graphs_of(shift)
        if mask is not None:
            keep = arrays.reshape(arrays.asarray(mask), (-1, 1)) != 0
            x = arrays.where(keep, x, arrays.zeros_like(x))
            if self.how == "mean":
                total = sparse.segment_sum(x, whose)
                count = sparse.segment_sum(arrays.astype(keep, x.dtype), whose)
                found = total / arrays.maximum(count, 1.0)
                return found if shift.nodes is not None else found[0]
            if self.how in ("max", "min"):
                low = -arrays.inf if self.how == "max" else arrays.inf
                x = arrays.where(keep, x, arrays.full_like(x, low))
                found = as_aggregation("Readout", self.how)(x, whose)
                found = arrays.where(arrays.isfinite(found), found, arrays.zeros_like(found))
                return found if shift.nodes is not None else found[0]
        found = self.reduced(x, shift)
        return found if shift.nodes is not None else found[0]

    def reduced(self, x: Tensor, shift: Shift) -> Tensor:
        """The features (graphs, c)."""
        return as_aggregation("Readout", self.how)(x, graphs_of(shift))

    def extra_repr(self) -> str:
        return repr(self.how) if isinstance(self.how, str) else ""


class AttentionReadout(Readout):
    r"""\(\sum_i \mathrm{softmax}_i(g(x_i))\,f(x_i)\): nodes count by what they are. Notes, section 7.9.

    >>> import wonderland as wl
    >>> layer = wl.nn.AttentionReadout(wl.nn.Linear(4, 1))
    >>> layer(wl.ones((3, 4)), wl.eye(3)).shape
    (4,)

    `gate` gives one score for each node, or one for each channel of what is averaged; `nn` is f, by default the
    identity. The softmax runs over the nodes of each graph.
    """

    def __init__(self, gate: Callable[[Tensor], Tensor], nn: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__("sum")
        self.gate = as_function("AttentionReadout", gate)
        self.nn = None if nn is None else as_function("AttentionReadout", nn)

    def forward(  # type: ignore[override]  # edges do not matter
        self, x: ArrayLike, graph: GraphLike, mask: ArrayLike | None = None
    ) -> Tensor:
        x, shift, _ = self.arranged(x, graph)
        scores = self.gate(x)
        if mask is not None:
            keep = arrays.reshape(arrays.asarray(mask), (-1, 1)) != 0
            scores = arrays.where(keep, scores, arrays.full_like(scores, -arrays.inf))
            x = arrays.where(keep, x, arrays.zeros_like(x))
        weights = sparse.segment_softmax(scores, graphs_of(shift))
        found = sparse.segment_sum(weights * (x if self.nn is None else self.nn(x)), graphs_of(shift))
        return found if shift.nodes is not None else found[0]

    def extra_repr(self) -> str:
        return ""


class VirtualNodeState(NamedTuple):
    """The features of nodes, and those of the virtual node of each graph."""

    nodes: Tensor
    virtual: Tensor


class VirtualNode(GraphLayer):
    r"""One more vertex for each graph, linked to all: \(u' = u + f([u ; \bar x])\), \(x_i' = x_i + u' W\). Notes, 7.9.

    >>> import wonderland as wl
    >>> layer = wl.nn.VirtualNode(4)
    >>> x, u = layer(wl.ones((3, 4)), wl.eye(3))
    >>> x, u = layer(x, wl.eye(3), u)
    >>> x.shape, u.shape
    ((3, 4), (1, 4))

    All nodes are two hops from each other then, and u (graphs, c) is a readout that has been part of the messages. It
    begins with zeros. `how` aggregates the nodes, f and W are linear layers with tanh between them.
    """

    def __init__(
        self,
        features: int,
        how: Aggregation = "mean",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.features = as_int("VirtualNode", "features", features, 1)
        as_aggregation("VirtualNode", how)
        self.how = how
        keys = split(take_key("VirtualNode", key), 2)
        self.inputs = Linear(2 * self.features, self.features, True, dtype, keys[0])
        self.outputs = Linear(self.features, self.features, False, dtype, keys[1])

    def channels(self) -> int:
        return self.features

    def forward(  # type: ignore[override]  # the virtual node is the third argument
        self, x: ArrayLike, graph: GraphLike, u: ArrayLike | None = None
    ) -> VirtualNodeState:
        x, shift, batch = self.arranged(x, graph)
        whose = graphs_of(shift)
        state = arrays.zeros((whose.lines, self.features), dtype=x.dtype) if u is None else arrays.asarray(u)
        seen = as_aggregation("VirtualNode", self.how)(x, whose)
        state = state + arrays.tanh(self.inputs(arrays.concat([state, seen], axis=-1)))
        h = x + sparse.gather(self.outputs(state), whose)
        return VirtualNodeState(h if batch is None else arrays.reshape(h, (*batch, self.features)), state)

    def extra_repr(self) -> str:
        return str(self.features)
