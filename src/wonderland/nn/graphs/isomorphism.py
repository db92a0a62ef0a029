"""Graph isomorphism networks: sums over neighbours, which tell apart what means and maxima do not. Book, 12.3.2."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ... import arrays, sparse
from ...core.arguments import as_function, as_int, as_number
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ..layers.identity import Identity
from ..layers.linear import Linear
from ..module.containers import Sequential
from ..module.lazy import Lazy
from ..module.parameter import Buffer, Parameter
from .layer import GraphLayer, edge_features
from .shift import DenseShift, Shift

__all__ = ["GINConv", "GINEConv"]


class GINConv(GraphLayer):
    r"""\(f((1 + \varepsilon)\,x_i + \sum_{j \in N(i)} x_j)\) with a network f, as by Xu et al. Book, section 12.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.GINConv(wl.models.MLP([4, 8, 2]))
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    (3, 2)

    \(\varepsilon\) is `eps`, a parameter with `train_eps` and else fixed. Weights of edges are not used. The numbers
    are those of PyTorch Geometric's layer, whose network is called `nn` as here. A network that begins with a linear
    layer to fewer features has it computed before the sums, which are the same then and less work.
    """

    takes_dense = True

    def __init__(self, nn: Callable[[Tensor], Tensor], eps: float = 0.0, train_eps: bool = False) -> None:
        name = type(self).__name__
        self.nn = as_function(name, nn)
        start = arrays.asarray([float(as_number(name, "eps", eps))])
        self.eps = Parameter(start) if train_eps else Buffer(start)

    def compute(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        if isinstance(shift, DenseShift):
            shift = DenseShift(arrays.astype(shift.matrix != 0, x.dtype))
        else:
            shift = dataclasses.replace(shift, weight=None)
        own = 1.0 + arrays.astype(self.eps, x.dtype)
        first, rest = _narrowing(self.nn)
        if first is None or x.shape[-1:] != (first.in_features,):
            return self.nn(own * x + shift.apply(x))
        h = arrays.matmul(x, first.weight)
        h = own * h + shift.apply(h)
        return rest(h if first.bias is None else h + first.bias)


def _narrowing(nn: Callable[[Tensor], Tensor]) -> tuple[Linear | None, Callable[[Tensor], Tensor]]:
    """A linear layer at the beginning of f with fewer outputs than inputs, which comes before the sum, and the rest."""
    first, rest = (nn[0], nn[1:]) if type(nn) is Sequential and not nn._hooks and len(nn) > 1 else (nn, Identity())
    if type(first) is not Linear or first._hooks or first.in_features is None or isinstance(first.weight, Lazy):
        return None, rest
    return (first if first.out_features < first.in_features else None), rest


class GINEConv(GINConv):
    r"""\(f((1 + \varepsilon)\,x_i + \sum_{j \in N(i)} \mathrm{ReLU}(x_j + e_{ij}))\): `GINConv` with features of edges.

    >>> import wonderland as wl
    >>> layer = wl.nn.GINEConv(wl.nn.Linear(4, 2), edge_dim=3, in_features=4)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), wl.ones((4, 3))).shape
    (3, 2)

    Features of edges are as many as those of nodes; with `edge_dim` other ones, which a linear layer `lin` takes to
    `in_features`.
    """

    takes_dense = False

    def __init__(
        self,
        nn: Callable[[Tensor], Tensor],
        eps: float = 0.0,
        train_eps: bool = False,
        edge_dim: int | None = None,
        in_features: int | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        super().__init__(nn, eps, train_eps)
        name = type(self).__name__
        self.lin = None
        if edge_dim is not None:
            found = in_features if in_features is not None else getattr(nn, "in_features", None)
            size = as_int(name, "edge_dim", edge_dim, 1)
            self.lin = Linear(size, as_int(name, "in_features", found, 1), True, dtype, key)

    def compute(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        assert isinstance(shift, Shift)
        size = x.shape[-1] if self.lin is None else self.lin.in_features
        assert size is not None
        e = edge_features(self._describe(), shift, size)
        e = e if self.lin is None else self.lin(e)
        if e.shape[-1] != x.shape[-1]:
            raise ShapeError(
                f"{self._describe()}: features of edges {e.shape} for features of nodes {x.shape}.", "the same number"
            )
        told = arrays.relu(sparse.gather(x, shift.pattern.cols) + e)
        return self.nn((1.0 + arrays.astype(self.eps, x.dtype)) * x + sparse.segment_sum(told, shift.pattern.rows))
