r"""Graph attention networks: scores from both ends of an edge, with heads. Book, sections 12.3.1 and 12.3.2.

GATConv     LeakyReLU(a' [W x_i ; W x_j])      which neighbour comes first does not depend on i: "static"
GATv2Conv   a' LeakyReLU(V [x_i ; x_j])        it does: "dynamic"
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from ... import arrays, sparse
from ...core.arguments import as_int, as_number
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..functional.noise import check_probability
from ..init.schemes import xavier_uniform
from ..layers.linear import Linear
from ..module.parameter import Held, Parameter
from .layer import GraphLayer, edge_features
from .loops import looped
from .shift import GraphLike, Shift

__all__ = ["Attended", "GATConv", "GATv2Conv"]


class Attended(NamedTuple):
    """What a layer with attention computed, and how: edges (m, 2) of receivers and senders, weights (m, heads)."""

    output: Tensor
    edges: Tensor
    weights: Tensor


class _Heads(GraphLayer):
    """Attention with heads: what the two layers share. They differ in `scores`."""

    bias: Held[Parameter | None]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
    ) -> None:
        name = type(self).__name__
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.out_features = as_int(name, "out_features", out_features, 1)
        self.heads = as_int(name, "heads", heads, 1)
        self.edge_dim = None if edge_dim is None else as_int(name, "edge_dim", edge_dim, 1)
        self.concat, self.add_self_loops = bool(concat), bool(add_self_loops)
        self.negative_slope = float(as_number(name, "negative_slope", negative_slope))
        self.dropout = check_probability(name, dropout)

    def _bias(self, bias: bool, like: Tensor) -> Parameter | None:
        width = self.heads * self.out_features if self.concat else self.out_features
        return Parameter(arrays.zeros((width,), dtype=like.dtype)) if bias else None

    def channels(self) -> int:
        return self.in_features

    def by_heads(self, x: Tensor) -> Tensor:
        """(m, heads c) as (m, heads, c)."""
        return arrays.reshape(x, (x.shape[0], self.heads, self.out_features))

    def attended(self, x: ArrayLike, graph: GraphLike, edge_attr: ArrayLike | None = None) -> Attended:
        """The output with the weights, also those of self-loops that the layer added behind the edges."""
        x, shift, batch = self.arranged(x, graph, edge_attr)
        h, shift, weights = self._attend(x, shift)
        edges = arrays.stack([shift.pattern.rows.owner, shift.pattern.cols.owner], axis=1)
        return Attended(h if batch is None else arrays.reshape(h, (*batch, *h.shape[1:])), edges, weights)

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        return self._attend(x, shift)[0]

    def _attend(self, x: Tensor, shift: Shift) -> tuple[Tensor, Shift, Tensor]:
        shift, hidden = self._looped(shift)
        scores, values = self.scores(x, shift)
        if hidden is not None:
            scores = arrays.where(hidden[:, None], arrays.full_like(scores, -arrays.inf), scores)
        weights = sparse.segment_softmax(scores, shift.pattern.rows)
        kept = F.dropout(weights, self.dropout, self.training) if self.dropout else weights
        h = sparse.matmul(kept, shift.pattern, values)  # (n, heads, c)
        h = arrays.reshape(h, (shift.n, self.heads * self.out_features)) if self.concat else arrays.mean(h, axis=1)
        return (h if self.bias is None else h + self.bias), shift, weights

    def edge_attr(self, shift: Shift) -> Tensor:
        """The features of edges, of which there are `edge_dim`."""
        assert self.edge_dim is not None
        return edge_features(self._describe(), shift, self.edge_dim)

    def scores(self, x: Tensor, shift: Shift) -> tuple[Tensor, Tensor]:
        """What edges score, (m, heads), and what is averaged, (n, heads, c)."""
        raise NotImplementedError

    def _looped(self, shift: Shift) -> tuple[Shift, Tensor | None]:
        """The graph with self-loops, whose features are the means of those of a node's other edges."""
        if self.edge_dim is not None:
            self.edge_attr(shift)
        if not self.add_self_loops or shift.loops:
            return shift, None
        found = looped(shift.pattern, replace=True)
        attr = shift.edge_attr if self.edge_dim is not None else None
        if attr is not None:
            rows, cols = shift.pattern.rows, shift.pattern.cols
            others = arrays.astype(rows.owner != cols.owner, attr.dtype)
            count = arrays.maximum(sparse.segment_sum(others, rows), 1.0)
            attr = found.with_ends(attr, sparse.segment_sum(attr * others[:, None], rows) / count[:, None])
        return dataclasses.replace(shift, pattern=found.pattern, weight=None, edge_attr=attr, loops=True), found.hidden

    def extra_repr(self) -> str:
        usual = {"heads": 1, "concat": True, "negative_slope": 0.2, "dropout": 0.0, "add_self_loops": True}
        return ", ".join([f"{self.in_features}, {self.out_features}", *self._changed(**usual, edge_dim=None)])


class GATConv(_Heads):
    r"""\(h_i = \sum_j \alpha_{ij}\,W x_j\), \(\alpha_{ij} \propto \exp(\mathrm{LeakyReLU}(a^\top[W x_i ; W x_j]))\).

    >>> import wonderland as wl
    >>> layer = wl.nn.GATConv(4, 8, heads=3)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    (3, 24)

    Results of heads stand side by side, or are averaged without `concat`. `dropout` leaves out weights of attention
    while training. `add_self_loops` makes every node a neighbour of itself, once. Weights of edges are not read. With
    `edge_dim` the features of edges add \(a_e^\top W_e e_{ij}\) to the score; those of added self-loops are the mean of
    the node's own. `attended` gives the weights. PyTorch Geometric's layer with its numbers: `lin.weight` and
    `lin_edge.weight` are transposed, `att_src`, `att_dst`, `att_edge` (1, heads, c) are the same. W and V of the book's
    score are one matrix here. Book, 12.3.1.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        super().__init__(in_features, out_features, heads, concat, negative_slope, dropout, add_self_loops, edge_dim)
        keys = split(take_key("GATConv", key), 5)
        width, shape = self.heads * self.out_features, (1, self.heads, self.out_features)
        self.lin = Linear(self.in_features, width, False, dtype, keys[0], init="xavier_uniform")
        kind = self.lin.dtype
        self.att_src, self.att_dst = (Parameter(xavier_uniform()(shape, key=k, dtype=kind)) for k in keys[1:3])
        self.lin_edge = self.att_edge = None
        if self.edge_dim is not None:
            self.lin_edge = Linear(self.edge_dim, width, False, dtype, keys[3], init="xavier_uniform")
            self.att_edge = Parameter(xavier_uniform()(shape, key=keys[4], dtype=kind))
        self.bias = self._bias(bias, self.lin.weight)

    def scores(self, x: Tensor, shift: Shift) -> tuple[Tensor, Tensor]:
        values = self.by_heads(self.lin(x))
        ends = [arrays.sum(values * a, axis=-1) for a in (self.att_dst, self.att_src)]  # (n, heads) each
        found = sparse.gather(ends[0], shift.pattern.rows) + sparse.gather(ends[1], shift.pattern.cols)
        if self.lin_edge is not None and self.att_edge is not None:
            # a' (E W) = E (W a), which has as many columns as heads
            weight = arrays.reshape(self.lin_edge.weight, (-1, self.heads, self.out_features))
            found = found + arrays.matmul(self.edge_attr(shift), arrays.sum(weight * self.att_edge, axis=-1))
        return F.leaky_relu(found, self.negative_slope), values


class GATv2Conv(_Heads):
    r"""\(h_i = \sum_j \alpha_{ij} V_l x_j\), \(\alpha_{ij} \propto \exp(a^\top \mathrm{LReLU}(V [x_i; x_j; e_{ij}]))\).

    >>> import wonderland as wl
    >>> layer = wl.nn.GATv2Conv(4, 8, heads=3, edge_dim=2)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), wl.ones((4, 2))).shape
    (3, 24)

    The slope comes before the vector a, so that each node may prefer another neighbour, which in `GATConv` none can.
    \(V_r x_i + V_l x_j + V_e e_{ij}\) is a matrix V times \([x_i ; x_j ; e_{ij}]\); `share_weights` makes \(V_r =
    V_l\). Settings are those of `GATConv`; `lin_l.weight`, `lin_r.weight` and `lin_edge.weight` are those of PyTorch
    Geometric transposed, `att` is the same. Book, sections 12.3.1 and 12.3.2.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        bias: bool = True,
        share_weights: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        super().__init__(in_features, out_features, heads, concat, negative_slope, dropout, add_self_loops, edge_dim)
        keys = split(take_key("GATv2Conv", key), 4)
        self.share_weights = bool(share_weights)
        width, shape = self.heads * self.out_features, (1, self.heads, self.out_features)

        def linear(size: int, bias: bool, key: Tensor) -> Linear:
            return Linear(size, width, bias, dtype, key, init="xavier_uniform", bias_init="zeros")

        self.lin_l = linear(self.in_features, bias, keys[0])
        self.lin_r = self.lin_l if self.share_weights else linear(self.in_features, bias, keys[1])
        self.lin_edge = None if self.edge_dim is None else linear(self.edge_dim, False, keys[2])
        self.att = Parameter(xavier_uniform()(shape, key=keys[3], dtype=self.lin_l.dtype))
        self.bias = self._bias(bias, self.lin_l.weight)

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.share_weights:
            left = self.lin_l(x)
            return left, left
        both = arrays.matmul(x, arrays.concat([self.lin_l.weight, self.lin_r.weight], axis=1))  # x is read once
        left, right = both[:, : self.lin_l.out_features], both[:, self.lin_l.out_features :]
        if self.lin_l.bias is None or self.lin_r.bias is None:
            return left, right
        return left + self.lin_l.bias, right + self.lin_r.bias

    def scores(self, x: Tensor, shift: Shift) -> tuple[Tensor, Tensor]:
        left, right = self._projected(x)
        both = sparse.gather(right, shift.pattern.rows) + sparse.gather(left, shift.pattern.cols)
        if self.lin_edge is not None:
            both = both + self.lin_edge(self.edge_attr(shift))
        found = arrays.sum(self.by_heads(F.leaky_relu(both, self.negative_slope)) * self.att, axis=-1)
        return found, self.by_heads(left)
