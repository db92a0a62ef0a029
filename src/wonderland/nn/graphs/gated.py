r"""Gated graph networks: a fixed number of steps of a recurrent unit that reads its neighbours. Notes, section 7.7."""

from __future__ import annotations

import math

from ... import arrays, sparse
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..init.schemes import uniform
from ..layers.linear import Linear
from ..module.parameter import Parameter
from ..recurrent.cells import GRUCell
from .layer import GraphLayer
from .message_passing import AGGREGATIONS, Aggregation, as_aggregation
from .shift import DenseShift, Shift

__all__ = ["GatedGNN", "GatedGraphConv"]


class GatedGraphConv(GraphLayer):
    r"""\(h \leftarrow \mathrm{GRU}(\sum_j A_{ij}\,h_j W_t,\ h_i)\) for t = 1, ..., T, as by Li et al. Notes, 7.7.

    >>> import wonderland as wl
    >>> layer = wl.nn.GatedGraphConv(6, num_layers=3)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    (3, 6)

    The state begins as the features with zeros behind them, up to `out_features`. Every step has a matrix of its own,
    `weight` (num_layers, c, c), and all share the unit `rnn`. A node sees those at most `num_layers` hops away. PyTorch
    Geometric's layer with its numbers: `weight` is the same, the weights of `rnn` are transposed.
    """

    takes_dense = True

    def __init__(
        self,
        out_features: int,
        num_layers: int,
        aggregate: Aggregation = "sum",
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.out_features = as_int(name, "out_features", out_features, 1)
        self.num_layers = as_int(name, "num_layers", num_layers, 1)
        self.aggregate = aggregate
        as_aggregation(name, aggregate)
        keys = split(take_key(name, key), 2)
        c, bound = self.out_features, 1 / math.sqrt(self.out_features)
        self.rnn = GRUCell(c, c, bias, dtype, keys[0])
        shape = (self.num_layers, c, c)
        self.weight = Parameter(uniform(-bound, bound)(shape, key=keys[1], dtype=self.rnn.dtype))

    def compute(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        c = self.out_features
        if x.shape[-1] > c:
            raise ShapeError(
                f"{self._describe()}: {x.shape[-1]} features for a state of {c}.", "as many features or fewer"
            )
        if x.shape[-1] < c:
            x = arrays.concat([x, arrays.zeros((*x.shape[:-1], c - x.shape[-1]), dtype=x.dtype)], axis=-1)
        for t in range(self.num_layers):
            x = self.rnn(heard(shift, arrays.matmul(x, self.weight[t]), self.aggregate), x)
        return x

    def extra_repr(self) -> str:
        return ", ".join([f"{self.out_features}, num_layers={self.num_layers}", *self._changed(aggregate="sum")])


def heard(shift: Shift | DenseShift, x: Tensor, how: Aggregation) -> Tensor:
    """What nodes hear from their neighbours; sums and means are products with the graph."""
    if how in ("sum", "add"):
        return shift.apply(x)
    if how == "mean" and shift.norm is None:
        return shift.normalized("row", dtype=x.dtype).apply(x)
    sparse_shift = shift.sparse() if isinstance(shift, DenseShift) else shift
    flat = arrays.reshape(x, (sparse_shift.n, *x.shape[x.ndim - 1 :]))
    told = sparse.gather(flat, sparse_shift.pattern.cols)
    if sparse_shift.weight is not None:
        told = told * arrays.astype(sparse_shift.weight, x.dtype)[:, None]
    reduce = AGGREGATIONS[how] if isinstance(how, str) else how
    return arrays.reshape(reduce(told, sparse_shift.pattern.rows), x.shape)


class GatedGNN(GraphLayer):
    r"""The recurrent graph network with a GRU and a fixed number T of steps. Notes, section 7.7.

    >>> import wonderland as wl
    >>> layer = wl.nn.GatedGNN(4, 6, T=2)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape, layer.num_parameters()
    ((3, 6), 324)

    \(h_i(0) = x_i U\), \(h_i(t) = \mathrm{GRU}(\sum_{j \in N(i)} A_{ij}\,h_j(t-1) W,\ h_i(t-1))\), with the same
    weights in every step: as `GRN`, but with an end, so that nothing needs to be a contraction. The receptive field is
    T hops.
    """

    takes_dense = True

    def __init__(
        self,
        in_features: int,
        features: int,
        T: int,
        aggregate: Aggregation = "sum",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.features, self.T = as_int(name, "features", features, 1), as_int(name, "T", T, 0)
        self.aggregate = aggregate
        as_aggregation(name, aggregate)
        keys = split(take_key(name, key), 3)
        self.inputs = Linear(self.in_features, self.features, True, dtype, keys[0])
        self.told = Linear(self.features, self.features, True, dtype, keys[1])
        self.rnn = GRUCell(self.features, self.features, True, dtype, keys[2])

    def channels(self) -> int:
        return self.in_features

    def compute(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        h = self.inputs(x)
        for _ in range(self.T):
            h = self.rnn(heard(shift, self.told(h), self.aggregate), h)
        return h

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.features}, T={self.T}"
