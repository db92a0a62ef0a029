"""Diffusion on a graph, run until nothing changes: a layer whose nodes see the whole graph. Book, section 13.2.1."""

from __future__ import annotations

from ... import arrays, linalg
from ...arrays.conversion import as_real
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.linear import Linear
from ..module.module import Module
from .fixed_point import Settings, find
from .solvers import FixedPointSolution

__all__ = ["ImplicitGraphLayer", "normalized_adjacency"]

ACTIVATIONS = {"tanh": arrays.tanh, "relu": arrays.relu, "identity": lambda s: s}  # slopes from 0 to 1


def normalized_adjacency(adjacency: ArrayLike) -> Tensor:
    r"""\(P_{ij} = A_{ij} / \sqrt{r_i c_j}\) with the sums r of rows and c of columns; 0 for a node without neighbours.

    >>> import wonderland as wl
    >>> wl.nn.normalized_adjacency(wl.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))[0]
    tensor([0.        , 0.70710677, 0.70710677])

    For weights of 0 or more its spectral norm is at most 1, whatever the graph; for undirected ones it is
    \(D^{-1/2} A D^{-1/2}\).
    """
    a = as_real("normalized_adjacency", adjacency)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"normalized_adjacency: a matrix of shape {a.shape}.", "(..., nodes, nodes)")
    rows, columns = arrays.sum(a, axis=-1, keepdims=True), arrays.sum(a, axis=-2, keepdims=True)
    product = rows * columns
    return arrays.where(product > 0, a / arrays.sqrt(arrays.where(product > 0, product, 1.0)), arrays.zeros_like(a))


class Diffusion(Module):
    """One step of the diffusion."""

    def __init__(self, inputs: Linear, weight: Linear, limit: float | None, activation: str) -> None:
        self.inputs, self.weight = inputs, weight
        self.limit, self.activation = limit, activation

    def forward(self, s: Tensor, x: Tensor, adjacency: Tensor) -> Tensor:
        return ACTIVATIONS[self.activation](arrays.matmul(adjacency, arrays.matmul(s, self.matrix())) + self.inputs(x))

    def matrix(self) -> Tensor:
        """W, made shorter if its spectral norm is above the limit."""
        w = self.weight.weight + 0
        if self.limit is None:
            return w
        return w * arrays.minimum(self.limit / arrays.maximum(linalg.matrix_norm(w, ord=2), 1e-12), 1.0)


class ImplicitGraphLayer(Module):
    r"""\(S = \phi(P S W + X U + b)\): messages between neighbours until the states are stable. Book, section 13.2.1.

    >>> import wonderland as wl
    >>> ring = wl.roll(wl.eye(6), 1, axis=0) + wl.roll(wl.eye(6), -1, axis=0)
    >>> layer = wl.nn.ImplicitGraphLayer(3, 8)
    >>> layer(wl.ones((6, 3)), ring).shape
    (6, 8)

    The graph is a dense matrix (nodes, nodes), row i with the weights of the neighbours of node i, made into
    \(P = \) `normalized_adjacency` of it unless `normalize=False`. W is scaled to a spectral norm of `limit` at most,
    so \(\|P\|\,\|W\| < 1\), the step is a contraction (the slopes of \(\phi\) are at most 1) and there is one solution
    for every graph; with `limit=None` there may be none, which `on_failure` is about. A node sees all nodes that it is
    connected with, at any distance, with parameters of one layer: (in_features + features + 1) features of them.
    `solver`, `tol` and `max_iter` are those of `fixed_point`; all nodes are one system.
    """

    def __init__(
        self,
        in_features: int,
        features: int,
        activation: str = "tanh",
        limit: float | None = 0.95,
        solver: str = "iteration",
        tol: float | None = None,
        max_iter: int = 500,
        normalize: bool = True,
        on_failure: str = "warn",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "ImplicitGraphLayer"
        if activation not in ACTIVATIONS:
            raise InputError(f"{name}: activation={activation!r}.", f"one of {', '.join(ACTIVATIONS)}")
        if limit is not None and not 0 <= as_number(name, "limit", limit) < 1:
            raise InputError(f"{name}: limit={limit}.", "a number from 0 to below 1, or None")
        self.features = as_int(name, "features", features, 1)
        keys = split(take_key(name, key), 2)
        inputs = Linear(in_features, self.features, dtype=dtype, key=keys[0])
        weight = Linear(self.features, self.features, bias=False, dtype=dtype, key=keys[1])
        self.diffusion = Diffusion(inputs, weight, limit, activation)
        self.normalize = bool(normalize)
        self.settings = Settings(solver, "auto", tol, max_iter, 5, False, on_failure).checked()

    def forward(self, x: ArrayLike, adjacency: ArrayLike) -> Tensor:
        return self.solve(x, adjacency).value

    def solve(self, x: ArrayLike, adjacency: ArrayLike) -> FixedPointSolution:
        """The states (nodes, features), with the residual and the number of evaluations."""
        x, graph = as_real("ImplicitGraphLayer", x), as_real("ImplicitGraphLayer", adjacency)
        nodes = x.shape[0] if x.ndim == 2 else -1
        if graph.shape != (nodes, nodes):
            raise ShapeError(
                f"{self._describe()}: nodes of shape {x.shape} and a graph of shape {graph.shape}.",
                "(nodes, in_features) and (nodes, nodes)",
            )
        p = normalized_adjacency(graph) if self.normalize else graph
        start = arrays.zeros((nodes, self.features), dtype=arrays.result_type(x, self.diffusion.weight.weight))
        return find(self.diffusion, start, (x, arrays.astype(p, x.dtype)), self.settings)

    def extra_repr(self) -> str:
        return f"solver={self.settings.solver!r}, normalize={self.normalize}"
