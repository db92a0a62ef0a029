"""Layers on graphs one after another: what models share. Book, section 12.2.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int, as_list
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike
from ...nn.graphs.layer import GraphLayer
from ...nn.graphs.normalization import GraphNorm, PairNorm
from ...nn.graphs.shift import DenseShift, GraphLike, Shift, shift_of
from ...nn.layers.dropout import Dropout
from ...nn.layers.fully_connected import ActivationLike, as_activation
from ...nn.layers.normalization import BatchNorm1d, LayerNorm
from ...nn.module.module import Module

__all__ = ["GraphBackbone"]

NormLike: TypeAlias = str | Callable[[int], Module] | None
NORMS: dict[str, Callable[[int], Module]] = {
    "batch": BatchNorm1d,
    "layer": LayerNorm,
    "graph": GraphNorm,
    "pair": lambda width: PairNorm(),
}


def as_widths(name: str, widths: Sequence[int], least: int = 2) -> list[int]:
    """All sizes of a model, from the features of nodes to its results."""
    sizes = [as_int(name, "a width", w, 1) for w in as_list(name, "widths", widths)]
    if len(sizes) < least:
        raise InputError(f"{name}: the widths {sizes} make no layer.", f"{name}([c, hidden, classes])")
    return sizes


class GraphBackbone(Module):
    r"""\(H = f_l(\phi(N(f_{l-1}(\dots))), A)\): graph layers, with norm, activation and dropout between. Book, 12.2.3.

    >>> import wonderland as wl
    >>> layers = [wl.nn.GINConv(wl.nn.Linear(4, 8)), wl.nn.SAGEConv(8, 8), wl.nn.GCNConv(8, 3)]
    >>> model = wl.models.GraphBackbone(layers, [8, 8, 3], activation="tanh", norm="layer", residual=True)
    >>> model(wl.ones((5, 4)), wl.graphs.path_graph(5)).shape
    (5, 3)

    `widths` are the sizes of what layers give. After all layers but the last come `norm` ("batch", "layer", "graph",
    "pair", a function of the width, or None), `activation` and, with `residual`, the input of the layer where sizes
    agree; with `last=True` after the last one, too. `dropout` stands before every layer. With `jump` the result is all
    layers side by side. Everything treats nodes alike, so the model is equivariant. "batch" averages over all nodes,
    also those that are padding.

    `prepare(graph)` makes what the model diffuses with, once for many calls: `model(x, prepared)`.
    """

    def __init__(
        self,
        layers: Sequence[GraphLayer],
        widths: Sequence[int],
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        norm: NormLike = None,
        residual: bool = False,
        jump: bool = False,
        last: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        name = type(self).__name__
        self.layers, self.widths = list(layers), as_widths(name, widths, 1)
        if len(self.layers) != len(self.widths):
            raise InputError(f"{name}: {len(self.layers)} layers, {len(self.widths)} widths.", "one for each layer")
        self.residual, self.jump, self.last = bool(residual), bool(jump), bool(last or jump)
        between = len(self.layers) - (not self.last)
        self.norms = [] if norm is None else [_norm(name, norm, w, dtype) for w in self.widths[:between]]
        self.activations = [as_activation(name, activation) for _ in range(between)]
        self.dropout = Dropout(dropout) if dropout else None

    @property
    def out_features(self) -> int:
        """The size of what comes out."""
        return sum(self.widths) if self.jump else self.widths[-1]

    def prepare(self, graph: GraphLike, nodes: int | None = None, dtype: DTypeLike | None = None) -> Shift | DenseShift:
        """What the layers diffuse with: the graph, with the self-loops and weights that a model asks for."""
        return shift_of(type(self).__name__, graph, nodes)

    def forward(self, x: ArrayLike, graph: GraphLike) -> Tensor:
        h = as_real(type(self).__name__, x)
        if not dtypes.is_floating(h.dtype):
            h = arrays.astype(h, dtypes.default_float)
        padded = isinstance(graph, DenseShift) or getattr(graph, "ndim", 0) == 3  # (b, n, n), whose n is not h's first
        shift = self.prepare(graph, None if padded else h.shape[0], h.dtype)
        found = []
        for i, layer in enumerate(self.layers):
            before = h
            h = layer(h if self.dropout is None else self.dropout(h), shift)
            if i < len(self.activations):
                if self.norms:
                    norm = self.norms[i]
                    h = norm(h, shift) if isinstance(norm, GraphLayer) else norm(h)
                h = self.activations[i](h)
                if self.residual and before.shape == h.shape:
                    h = h + before
            found.append(h)
        return arrays.concat(found, axis=-1) if self.jump else h

    def extra_repr(self) -> str:
        return ", ".join([str(self.widths), *self._changed(residual=False, jump=False)])


def _norm(name: str, norm: str | Callable[[int], Module], width: int, dtype: DTypeLike | None) -> Module:
    if isinstance(norm, str) and norm in NORMS:
        made = NORMS[norm](width)
        return made if dtype is None else made.astype(dtype)
    if isinstance(norm, str) or not callable(norm):
        raise InputError(f"{name}: norm={norm!r}.", f"{', '.join(map(repr, NORMS))}, or a function of a width")
    return norm(width)
