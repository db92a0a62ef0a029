"""Weights of edges that are learned. Book, section 12.3.1."""

from __future__ import annotations

from ... import arrays
from ...core.errors import InputError
from ...core.typing import DTypeLike
from ...sparse import Pattern
from ..module.module import Module
from ..module.parameter import Parameter
from .shift import DenseShift, GraphLike, Shift, shift_of

__all__ = ["TrainableShift"]


class TrainableShift(Module):
    """The nonzeros of A as parameters, from their values: `layer(x, shift())`. Book, section 12.3.1.

    >>> import wonderland as wl
    >>> shift = wl.nn.TrainableShift(wl.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> shift.num_parameters(), shift().todense().tolist()
    (2, [[0.0, 2.0], [1.0, 0.0]])

    One parameter for each edge, so it belongs to one graph; where there is no edge none can be learned. Layers take
    what `shift()` gives with their own `norm`, which is None where the values are to be used as they are.
    """

    def __init__(self, graph: GraphLike, nodes: int | None = None, dtype: DTypeLike | None = None) -> None:
        found = shift_of(type(self).__name__, graph, nodes)
        if isinstance(found, DenseShift):
            if found.matrix.ndim == 3:
                raise InputError(f"TrainableShift: graphs of shape {found.matrix.shape}.", "one graph")
            found = found.sparse()
        self.values = Parameter(found.values() if dtype is None else arrays.astype(found.values(), dtype))
        self.pattern: Pattern = found.pattern
        self.loops = found.loops

    def forward(self) -> Shift:
        return Shift(self.pattern, self.values + 0, loops=self.loops)

    def extra_repr(self) -> str:
        return f"nodes={self.pattern.shape[0]}, edges={self.pattern.nnz}"
