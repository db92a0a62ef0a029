"""What layers on graphs share: how they are called, and one way to pass batches of dense graphs on. Book, 12.2.1."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..module.module import Module
from .shift import DenseShift, GraphLike, Shift, shift_of

__all__ = ["GraphLayer"]


class GraphLayer(Module):
    r"""A layer \(H = f(X, A)\), (n, c) to (n, c'), of the nodes of any graph. Book, section 12.2.1.

    >>> import wonderland as wl
    >>> class Mean(wl.nn.GraphLayer):
    ...     def compute(self, x, shift):
    ...         return shift.normalized("row").apply(x)
    >>> Mean()(wl.tensor([[1.0], [3.0]]), wl.tensor([[1.0, 1.0], [0.0, 1.0]])).tolist()
    [[2.0], [3.0]]

    A subclass defines `compute(x, shift)`, with x (n, ...) and a `Shift` that has the pattern, the weights and the edge
    features, and `channels`, the size of the last axis of x, if it has to be. Graphs may be given in all ways that
    `as_shift` knows; their connections are the same afterwards. `edge_weight` and `edge_attr` take the places of the
    graph's own. A batch of dense graphs (b, n, n) comes with features (b, n, c).
    """

    takes_dense: ClassVar[bool] = False  # whether `compute` is content with a `DenseShift`

    def channels(self) -> int | None:
        """The size of the last axis of the features; None if any will do."""
        return None

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        """The features after the layer; defined by subclasses."""
        raise NotImplementedError

    def forward(
        self,
        x: ArrayLike,
        graph: GraphLike,
        edge_attr: ArrayLike | None = None,
        edge_weight: ArrayLike | None = None,
    ) -> Tensor:
        x, shift, batch = self.arranged(x, graph, edge_attr, edge_weight)
        h = self.compute(x, shift)
        return h if batch is None else arrays.reshape(h, (*batch, *h.shape[1:]))

    def arranged(
        self,
        x: ArrayLike,
        graph: GraphLike,
        edge_attr: ArrayLike | None = None,
        edge_weight: ArrayLike | None = None,
    ) -> tuple[Tensor, Shift, tuple[int, ...] | None]:
        """The features and the shift as `compute` takes them, and the axes (b, n) that a batch had."""
        x = as_real(type(self).__name__, x)
        if not dtypes.is_floating(x.dtype):
            x = arrays.astype(x, dtypes.default_float)
        shift = shift_of(self._describe(), graph, None if _is_batch(graph) else x.shape[0] if x.ndim else 0)
        lead = shift.matrix.shape[:-1] if isinstance(shift, DenseShift) else (shift.n,)
        c = self.channels()
        if x.ndim <= len(lead) or x.shape[: len(lead)] != lead or (c is not None and x.shape[-1] != c):
            raise ShapeError(
                f"{self._describe()}: features of shape {x.shape} for a graph of shape {lead}.",
                f"features ({', '.join(map(str, lead))}, {'channels' if c is None else c})",
            )
        batch = None
        given = edge_attr is not None or edge_weight is not None
        if isinstance(shift, DenseShift) and (given or not self.takes_dense):
            shift = shift.sparse()
            if len(lead) == 2:
                batch, x = lead, arrays.reshape(x, (shift.n, *x.shape[2:]))
        if isinstance(shift, Shift):
            shift = with_edges(self._describe(), shift, edge_attr, edge_weight)
        return x, shift, batch  # type: ignore[return-value]  # dense ones only for layers that take them


def _is_batch(graph: GraphLike) -> bool:
    return isinstance(graph, DenseShift) or getattr(graph, "ndim", 0) == 3


def with_edges(name: str, shift: Shift, edge_attr: ArrayLike | None, edge_weight: ArrayLike | None) -> Shift:
    """A shift with other features or weights of its edges."""
    m = shift.pattern.nnz
    if edge_attr is not None:
        attr = as_real(name, edge_attr)
        if attr.ndim < 1 or attr.shape[0] != m:
            raise ShapeError(f"{name}: edge_attr of shape {attr.shape} for {m} edges.", f"({m}, features)")
        shift = dataclasses.replace(shift, edge_attr=attr[:, None] if attr.ndim == 1 else attr)
    if edge_weight is not None:
        weight = as_real(name, edge_weight)
        if weight.shape != (m,):
            raise ShapeError(f"{name}: edge_weight of shape {weight.shape} for {m} edges.", f"({m},)")
        shift = dataclasses.replace(shift, weight=weight, norm=None)
    return shift


def edge_features(name: str, shift: Shift, size: int) -> Tensor:
    """The features (m, size) of edges, which a layer asks for."""
    attr = shift.edge_attr
    if attr is None or attr.ndim != 2 or attr.shape[1] != size:
        found = "none" if attr is None else f"features of shape {attr.shape}"
        raise ShapeError(
            f"{name}: {found} for {shift.pattern.nnz} edges.",
            f"edge_attr ({shift.pattern.nnz}, {size}), with the graph or as layer(x, graph, edge_attr)",
        )
    return attr
