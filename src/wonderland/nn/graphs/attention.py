r"""Attention between neighbours with any score. Book, section 12.3.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ... import arrays, sparse
from ...core.arguments import as_function, as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from .layer import GraphLayer
from .shift import GraphLike, Shift

__all__ = ["GraphAttention"]

Score: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]


class GraphAttention(GraphLayer):
    r"""\(h_i = \phi(\sum_{j \in N(i)} \mathrm{softmax}_j(\alpha(x_i, x_j))\,x_j W)\). Book, section 12.3.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.GraphAttention(4, 2, score=lambda x_i, x_j, e: wl.sum(x_i * x_j, axis=-1))
    >>> triangle = wl.graphs.Graph(3, [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)])
    >>> layer(wl.ones((3, 4)), triangle).shape, layer.attention(wl.ones((3, 4)), triangle).tolist()
    ((3, 2), [0.5, 0.5, 0.5, 0.5, 0.5, 0.5])

    `score(x_i, x_j, e_ij)` takes all edges at once, (m, c), (m, c) and their features (m, d) or weights (m, 1), and
    gives (m,), or (m, heads) for attention with several weights, whose results are averaged. It may be a module. The
    softmax runs over the neighbours of a node, not over all of them: one without neighbours gets 0. With all pairs as
    edges and scaled products as scores this is self-attention. `GATConv` and `GATv2Conv` have scores of their own.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        score: Score,
        activation: ActivationLike = None,
        bias: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.out_features = as_int(name, "out_features", out_features, 1)
        self.score = as_function(name, score)
        self.lin = Linear(self.in_features, self.out_features, bias, dtype, key, init="xavier_uniform")
        self.activation = as_activation(name, activation)

    def channels(self) -> int:
        return self.in_features

    def attention(self, x: ArrayLike, graph: GraphLike, edge_attr: ArrayLike | None = None) -> Tensor:
        """The weights (m,) or (m, heads) in the order of the edges; those of a node sum to 1."""
        x, shift, _ = self.arranged(x, graph, edge_attr)
        return self._weights(x, shift)

    def _weights(self, x: Tensor, shift: Shift) -> Tensor:
        rows, cols, m = shift.pattern.rows, shift.pattern.cols, shift.pattern.nnz
        e = shift.values(x.dtype)[:, None] if shift.edge_attr is None else shift.edge_attr
        scores = self.score(sparse.gather(x, rows), sparse.gather(x, cols), e)
        if scores.ndim not in (1, 2) or scores.shape[0] != m:
            raise ShapeError(
                f"{self._describe()}: scores of shape {scores.shape} for {m} edges.", f"({m},) or ({m}, heads)"
            )
        return sparse.segment_softmax(scores, rows)

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        weights = self._weights(x, shift)
        if weights.ndim == 2:
            weights = arrays.mean(weights, axis=1)
        return self.activation(sparse.matmul(weights, shift.pattern, self.lin(x)))

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}"
