r"""Graph convolutions: the features of a node become a weighted sum over its neighbours. Book, section 12.2.2.

GraphConv       \(\phi(A (X W + b))\)                                 the bias is diffused, too
GraphConvSelf   \(\phi(X V + A (X W + b))\)                           the node itself has weights of its own
GCNConv         \(\hat A X W + b\), \(\hat A = D^{-1/2}(A + I)D^{-1/2}\)   as in the literature
"""

from __future__ import annotations

from ... import arrays
from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..init.naming import InitializerLike, as_initializer
from ..init.schemes import xavier_uniform
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from ..layers.weighted import as_weight_dtype
from ..module.parameter import Held, Parameter
from .layer import GraphLayer
from .shift import DenseShift, Shift, as_norm

__all__ = ["GCNConv", "GraphConv", "GraphConvSelf"]


class GraphConv(GraphLayer):
    r"""\(f(X, A) = \phi(A (X W + b))\): (n, in_features) to (n, out_features). Book, D.12.2.

    >>> import wonderland as wl
    >>> triangle = wl.graphs.Graph(3, [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)])
    >>> layer = wl.nn.GraphConv(4, 2, "relu")
    >>> layer(wl.ones((3, 4)), triangle).shape, layer.num_parameters()
    ((3, 2), 10)

    The bias is *inside*: what a node receives of it is the sum of its row of A. Libraries add it afterwards
    (`bias_inside=False`), which is the same only if rows of A sum to 1. `norm` is how A is normalised ("sym", "row",
    "col" or None, see `as_shift`): with raw A activations grow with degrees. `self_loops` adds those that are missing.
    A(XW) and (AX)W are the same, and the cheaper one is computed.
    """

    takes_dense = True
    bias: Held[Parameter | None]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        activation: ActivationLike = None,
        norm: str | None = "sym",
        self_loops: bool = False,
        bias: bool = True,
        bias_inside: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
    ) -> None:
        name = type(self).__name__
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.out_features = as_int(name, "out_features", out_features, 1)
        self.norm, self.self_loops, self.bias_inside = as_norm(name, norm), bool(self_loops), bool(bias_inside)
        kind = as_weight_dtype(name, dtype)
        start = xavier_uniform() if init is None else as_initializer(name, init)
        self.weight = Parameter(start((self.in_features, self.out_features), key=take_key(name, key), dtype=kind))
        self.bias = Parameter(arrays.zeros((self.out_features,), dtype=kind)) if bias else None
        self.activation = as_activation(name, activation)

    def channels(self) -> int:
        return self.in_features

    def compute(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        return self.activation(self.diffused(x, shift))

    def diffused(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        """A (X W + b)."""
        shift = shift.normalized(self.norm, self.self_loops, dtype=x.dtype)
        inside = self.bias if self.bias_inside else None
        if self.in_features < self.out_features:
            h = arrays.matmul(shift.apply(x), self.weight)
            if inside is not None:
                h = h + shift.apply(arrays.ones((*x.shape[:-1], 1), dtype=h.dtype)) * inside
        else:
            h = arrays.matmul(x, self.weight)
            h = shift.apply(h if inside is None else h + inside)
        return h if self.bias_inside or self.bias is None else h + self.bias

    def extra_repr(self) -> str:
        usual = {"norm": "sym", "self_loops": False, "bias_inside": True}
        return ", ".join([f"{self.in_features}, {self.out_features}", *self._changed(**usual)])


class GraphConvSelf(GraphConv):
    r"""\(\phi(X V + A (X W + b))\): a node's own features have a matrix V, `weight_self`. Book, section 12.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.GraphConvSelf(4, 2)
    >>> layer(wl.ones((3, 4)), wl.eye(3)).shape, layer.weight_self.shape
    ((3, 2), (4, 2))

    Two nodes with the same neighbours and different features are told apart, as `GraphConv` does not. PyTorch
    Geometric calls it `GraphConv`: that is `GraphConvSelf(c, d, norm=None, bias_inside=False)`, where `weight` and
    `bias` are those of `lin_rel` and `weight_self` that of `lin_root`, each transposed.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        activation: ActivationLike = None,
        norm: str | None = "sym",
        self_loops: bool = False,
        bias: bool = True,
        bias_inside: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
    ) -> None:
        keys = split(take_key(type(self).__name__, key), 2)
        super().__init__(
            in_features, out_features, activation, norm, self_loops, bias, bias_inside, dtype, keys[0], init=init
        )
        start = xavier_uniform() if init is None else as_initializer(type(self).__name__, init)
        self.weight_self = Parameter(start(self.weight.shape, key=keys[1], dtype=self.weight.dtype))

    def compute(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        return self.activation(arrays.matmul(x, self.weight_self) + self.diffused(x, shift))


class GCNConv(GraphLayer):
    r"""\(D^{-1/2}(A + I)D^{-1/2} X W + b\), the layer of Kipf and Welling. Book, section 12.2.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.GCNConv(4, 2)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    (3, 2)

    PyTorch Geometric's layer of this name, with its numbers: `lin.weight` is transposed. The bias comes after the
    diffusion. `improved` gives self-loops the weight 2; without `add_self_loops` or `normalize` A stays as it is in
    this respect. Prepare the graph once for many calls: `as_shift(graph, "sym", self_loops=True)`.
    """

    takes_dense = True
    bias: Held[Parameter | None]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        improved: bool = False,
        add_self_loops: bool = True,
        normalize: bool = True,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike = "xavier_uniform",
    ) -> None:
        name = type(self).__name__
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.out_features = as_int(name, "out_features", out_features, 1)
        self.improved, self.add_self_loops, self.normalize = bool(improved), bool(add_self_loops), bool(normalize)
        self.lin = Linear(self.in_features, self.out_features, False, dtype, key, init=init)
        self.bias = Parameter(arrays.zeros((self.out_features,), dtype=self.lin.dtype)) if bias else None

    def channels(self) -> int:
        return self.in_features

    def prepared(self, shift: Shift | DenseShift, dtype: DTypeLike | None = None) -> Shift | DenseShift:
        """What is diffused with: `compute` takes it as it is."""
        if not self.normalize:
            return shift
        return shift.normalized("sym", self.add_self_loops, 2.0 if self.improved else 1.0, dtype)

    def compute(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        shift = self.prepared(shift, x.dtype)
        first = self.in_features < self.out_features
        h = self.lin(shift.apply(x)) if first else shift.apply(self.lin(x))
        return h if self.bias is None else h + self.bias

    def extra_repr(self) -> str:
        usual = {"improved": False, "add_self_loops": True, "normalize": True}
        return ", ".join([f"{self.in_features}, {self.out_features}", *self._changed(**usual)])
