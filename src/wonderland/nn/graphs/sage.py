"""GraphSAGE: a node's own features beside what its neighbours say together. Book, section 12.3.2."""

from __future__ import annotations

import dataclasses

from ... import arrays, linalg, sparse
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.linear import Linear
from .layer import GraphLayer
from .message_passing import AGGREGATIONS
from .shift import Shift

__all__ = ["SAGEConv"]


class SAGEConv(GraphLayer):
    r"""\(x_i W_r + \mathrm{mean}_{j \in N(i)}(x_j)\,W_l + b\), the layer of Hamilton et al. Book, section 12.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.SAGEConv(4, 2)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    (3, 2)

    `aggregate` is "mean", "sum" or "max", over neighbours, whatever their weights are. `normalize` divides results by
    their length, `project` puts a linear layer with ReLU before the messages, `root_weight=False` leaves out the first
    term. PyTorch Geometric's layer with its numbers: the weights of `lin_l` (with the bias), `lin_r` and `lin` are
    transposed. Means and sums are products with the graph, before or after \(W_l\), whichever is less work.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        aggregate: str = "mean",
        normalize: bool = False,
        root_weight: bool = True,
        project: bool = False,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.out_features = as_int(name, "out_features", out_features, 1)
        if aggregate not in AGGREGATIONS:
            raise InputError(f"{name}: aggregate={aggregate!r}.", f"one of {', '.join(AGGREGATIONS)}")
        self.aggregate, self.normalize = aggregate, bool(normalize)
        keys = split(take_key(name, key), 3)
        c, d = self.in_features, self.out_features
        self.lin_l = Linear(c, d, bias, dtype, keys[0])
        self.lin_r = Linear(c, d, False, dtype, keys[1]) if root_weight else None
        self.lin = Linear(c, c, True, dtype, keys[2]) if project else None

    def channels(self) -> int:
        return self.in_features

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        told = x if self.lin is None else arrays.relu(self.lin(x))
        if self.aggregate in ("max", "min"):
            messages = sparse.gather(told, shift.pattern.cols)
            h = self.lin_l(AGGREGATIONS[self.aggregate](messages, shift.pattern.rows))
        else:
            shift = shift.as_mean(x.dtype) if self.aggregate == "mean" else dataclasses.replace(shift, weight=None)
            if self.in_features <= self.out_features:
                h = self.lin_l(shift.apply(told))
            elif self.lin is None and self.lin_r is not None:
                return self._normed(self._at_once(x, shift))
            else:
                h = shift.apply(arrays.matmul(told, self.lin_l.weight))
                h = h if self.lin_l.bias is None else h + self.lin_l.bias
        return self._normed(h if self.lin_r is None else h + self.lin_r(x))

    def _at_once(self, x: Tensor, shift: Shift) -> Tensor:
        """Both terms from one product, which reads many features once instead of twice."""
        assert self.lin_r is not None
        both = arrays.matmul(x, arrays.concat([self.lin_l.weight, self.lin_r.weight], axis=1))
        h = shift.apply(both[:, : self.out_features]) + both[:, self.out_features :]
        return h if self.lin_l.bias is None else h + self.lin_l.bias

    def _normed(self, h: Tensor) -> Tensor:
        if self.normalize:
            return h / arrays.maximum(linalg.vector_norm(h, axis=-1, keepdims=True), 1e-12)
        return h

    def extra_repr(self) -> str:
        usual = {"aggregate": "mean", "normalize": False}
        return ", ".join([f"{self.in_features}, {self.out_features}", *self._changed(**usual)])
