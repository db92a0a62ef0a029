r"""Message passing: \(h_i = \psi(x_i, \mathrm{Aggr}\{M(x_i, x_j, e_{ij})\}_{j \in N(i)})\). Book, section 12.3.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ... import arrays, sparse
from ...core.arguments import as_function
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...sparse import Incidence
from .layer import GraphLayer
from .shift import Shift

__all__ = ["MessagePassing", "aggregate"]

Message: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
Aggregation: TypeAlias = str | Callable[[Tensor, Incidence], Tensor]
Update: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def _extreme(reduce: Callable[[Tensor, Incidence], Tensor]) -> Callable[[Tensor, Incidence], Tensor]:
    def reduced(messages: Tensor, line: Incidence) -> Tensor:
        found = reduce(messages, line)
        some = arrays.reshape(line.counts > 0, (line.lines,) + (1,) * (messages.ndim - 1))
        return arrays.where(some, found, arrays.zeros_like(found))

    return reduced


AGGREGATIONS: dict[str, Callable[[Tensor, Incidence], Tensor]] = {
    "sum": sparse.segment_sum,
    "add": sparse.segment_sum,
    "mean": sparse.segment_mean,
    "max": _extreme(sparse.segment_max),
    "min": _extreme(sparse.segment_min),
}


def as_aggregation(name: str, how: Aggregation) -> Callable[[Tensor, Incidence], Tensor]:
    """What an `aggregate` argument stands for."""
    if isinstance(how, str):
        if how not in AGGREGATIONS:
            raise InputError(f"{name}: aggregate={how!r}.", f"one of {', '.join(AGGREGATIONS)}, or a function")
        return AGGREGATIONS[how]
    return as_function(name, how)


def aggregate(messages: Tensor, line: Incidence, how: Aggregation = "sum") -> Tensor:
    """The messages (m, ...) to each line as one, (lines, ...): "sum", "mean", "max" or "min"; 0 where there is none.

    >>> import wonderland as wl
    >>> line = wl.sparse.Incidence.of([0, 0, 2], 3)
    >>> wl.nn.aggregate(wl.tensor([1.0, 5.0, -2.0]), line, "max")
    tensor([ 5.,  0., -2.])
    """
    return as_aggregation("aggregate", how)(messages, line)


class MessagePassing(GraphLayer):
    r"""\(h_i = \psi(x_i, \mathrm{Aggr}\{M(x_i, x_j, e_{ij})\}_{j \in N(i)})\). Book, E.12.11; notes, section 7.8.5.

    >>> import wonderland as wl
    >>> layer = wl.nn.MessagePassing(lambda x_i, x_j, e: wl.abs(x_i - x_j), "max", lambda x, m: x + m)
    >>> layer(wl.tensor([[1.0], [5.0], [6.0]]), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).tolist()
    [[5.0], [9.0], [7.0]]

    `message(x_i, x_j, e_ij)` takes all edges at once, (m, c), (m, c) and (m, d), and gives (m, c'). What it gets as
    \(e_{ij}\) are the features of edges; without these the weights \(A_{ij}\) as (m, 1). It is by default \(A_{ij}
    x_j\). `aggregate` is "sum", "mean", "max", "min" (each 0 for a node without neighbours) or a function of messages
    and `Incidence` that does not depend on their order. `update(x, m)` is by default m. All three may be modules, or
    methods of a subclass. Messages are in memory, m c' numbers; layers that need not keep them have classes of their
    own.
    """

    def __init__(
        self, message: Message | None = None, aggregate: Aggregation = "sum", update: Update | None = None
    ) -> None:
        name = type(self).__name__
        if message is not None:
            self.message = as_function(name, message)  # type: ignore[method-assign, assignment]
        self.aggregate = aggregate
        as_aggregation(name, aggregate)
        if update is not None:
            self.update = as_function(name, update)  # type: ignore[method-assign, assignment]

    def message(self, x_i: Tensor, x_j: Tensor, e_ij: Tensor) -> Tensor:
        """What node i hears from its neighbour j."""
        return arrays.reshape(e_ij, x_j.shape[:1] + (1,) * (x_j.ndim - 1)) * x_j if e_ij.shape[-1] == 1 else x_j

    def update(self, x: Tensor, m: Tensor) -> Tensor:
        """What becomes of a node that has heard m."""
        return m

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        rows, cols = shift.pattern.rows, shift.pattern.cols
        e = shift.values(x.dtype)[:, None] if shift.edge_attr is None else shift.edge_attr
        sent = self.message(sparse.gather(x, rows), sparse.gather(x, cols), e)
        if sent.shape[:1] != (shift.pattern.nnz,):
            raise ShapeError(
                f"{self._describe()}: messages of shape {sent.shape} for {shift.pattern.nnz} edges.",
                f"({shift.pattern.nnz}, ...), one for each",
            )
        return self.update(x, as_aggregation(type(self).__name__, self.aggregate)(sent, rows))

    def extra_repr(self) -> str:
        return f"aggregate={self.aggregate!r}" if isinstance(self.aggregate, str) else ""
