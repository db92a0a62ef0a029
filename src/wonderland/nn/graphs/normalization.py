"""Normalisation over the nodes of each graph."""

from __future__ import annotations

import numpy as np

from ... import arrays, sparse
from ...core.arguments import as_int, as_number
from ...core.tensor import Tensor
from ...core.typing import DTypeLike
from ...sparse import Incidence
from ..module.parameter import Parameter
from .layer import GraphLayer
from .shift import Shift

__all__ = ["GraphNorm", "PairNorm"]


def graphs_of(shift: Shift) -> Incidence:
    """Which nodes are of which graph, also where there is one graph."""
    return shift.nodes or Incidence.of(np.zeros(shift.n, np.int32), 1)


class GraphNorm(GraphLayer):
    r"""\(\frac{x - \alpha\,\mu}{\sqrt{\sigma^2 + \varepsilon}}\,\gamma + \beta\), moments over the nodes of a graph.

    >>> import wonderland as wl
    >>> layer = wl.nn.GraphNorm(1, eps=0.0)
    >>> layer(wl.tensor([[1.0], [3.0]]), wl.eye(2)).tolist()
    [[-1.0], [1.0]]

    How much of the mean is taken away is learned (`mean_scale`), since means of regular graphs say something. Graphs
    of a batch have moments of their own. The numbers and names are those of PyTorch Geometric.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, dtype: DTypeLike | None = None) -> None:
        self.num_features = as_int("GraphNorm", "num_features", num_features, 1)
        self.eps = float(as_number("GraphNorm", "eps", eps))
        self.weight, self.mean_scale = (Parameter(arrays.ones((self.num_features,), dtype=dtype)) for _ in range(2))
        self.bias = Parameter(arrays.zeros((self.num_features,), dtype=dtype))

    def channels(self) -> int:
        return self.num_features

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        whose = graphs_of(shift)
        x = x - sparse.gather(sparse.segment_mean(x, whose), whose) * self.mean_scale
        variance = sparse.segment_mean(arrays.square(x), whose)
        return self.weight * x / sparse.gather(arrays.sqrt(variance + self.eps), whose) + self.bias

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}"


class PairNorm(GraphLayer):
    r"""\(s\,\tilde x_i / \sqrt{\varepsilon + \frac{1}{n}\sum_i \|\tilde x_i\|^2}\), \(\tilde x = x - \bar x\).

    >>> import wonderland as wl
    >>> wl.nn.PairNorm(eps=0.0)(wl.tensor([[1.0], [3.0]]), wl.eye(2)).tolist()
    [[-1.0], [1.0]]

    It keeps the mean distance of nodes, which diffusion after diffusion makes smaller (oversmoothing). With
    `scale_individually` every node is divided by its own length instead.
    """

    def __init__(self, scale: float = 1.0, scale_individually: bool = False, eps: float = 1e-5) -> None:
        self.scale, self.eps = float(as_number("PairNorm", "scale", scale)), float(as_number("PairNorm", "eps", eps))
        self.scale_individually = bool(scale_individually)

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        whose = graphs_of(shift)
        x = x - sparse.gather(sparse.segment_mean(x, whose), whose)
        lengths = arrays.sum(arrays.square(x), axis=-1, keepdims=True)
        if self.scale_individually:
            return self.scale * x / (self.eps + arrays.sqrt(lengths))
        return self.scale * x / sparse.gather(arrays.sqrt(self.eps + sparse.segment_mean(lengths, whose)), whose)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, scale_individually={self.scale_individually}, eps={self.eps}"
