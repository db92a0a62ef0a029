"""Calls that are recorded in the imperative style: one object each, which is written out when somebody looks.

Of most results that could be differentiated nobody wants a derivative. So the record of a call keeps what the call was
given, and a `Snapshot` of the state that it read, which calls share while state is at rest (core/cell.py); tensors are
made of these when `backward` comes. When the results are dropped, nobody holds the state any more.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter, is_
from types import MemberDescriptorType
from typing import TYPE_CHECKING

from ...core.cell import Run, Snapshot, rest
from ...core.context import current, next_order, place
from ...core.dtypes import is_inexact
from ...core.primitive import Primitive
from ...core.tape import Record, Recorded
from ...core.tensor import Tensor, wrap
from ...core.typing import Array
from ...ir.graph import Graph

if TYPE_CHECKING:
    from .traced import Traced

_node = attrgetter("_node")
_written: MemberDescriptorType = vars(Record)["args"]  # the slot


def _none() -> None:
    """Instead of a reference."""


class CallRecord(Record):
    """The record of a call: the state, which the graph takes first, and the arrays of the arguments with their records.

    One is made for every call, so it takes all as it is.
    """

    __slots__ = ("given", "nodes", "state")

    def __init__(
        self,
        primitive: Primitive,
        graph: Graph,
        state: Snapshot,
        given: Sequence[Array],
        nodes: Sequence[Recorded],
        outs: Sequence[Array] = (),
    ) -> None:
        _written.__set__(self, None)
        self.state: Snapshot | None = state
        self.given, self.nodes = given, nodes
        self.primitive, self.params = primitive, {"graph": graph}
        self.outs = outs
        self.order = next_order()
        self.place = None if current().plain else place()
        self.grad, self.hooks, self.retained = {}, {}, set()

    @classmethod
    def of(cls, primitive: Primitive, graph: Graph, arrays: list[Array], nodes: list[Recorded]) -> CallRecord:
        """The record of a call that begins, from all that the graph takes."""
        first = graph.constants + graph.cells
        snapshot = Snapshot(arrays[:first], nodes[:first])
        if graph.cells:
            rest.keep(snapshot)
        return cls(primitive, graph, snapshot, arrays[first:], nodes[first:])

    @property
    def arrays(self) -> list[Array]:
        """What the graph takes."""
        return [*(self.state.arrays if self.state is not None else ()), *self.given]

    @property
    def args(self) -> tuple[Tensor, ...] | None:  # a slot in Record, here filled when it is asked for
        given, nodes, state = self.given, self.nodes, self.state  # the state last: it is released first
        written: tuple[Tensor, ...] | None = _written.__get__(self)
        if written is None and state is not None:
            written = tuple(map(wrap, [*state.arrays, *given]))
            for tensor, node in zip(written, [*state.nodes, *nodes], strict=True):
                tensor._node = node
            _written.__set__(self, written)
        return written

    @args.setter
    def args(self, args: None) -> None:
        """The recording is released."""
        _written.__set__(self, args)
        self.state = None
        self.given = self.nodes = ()

    def results(self, count: int) -> list[Tensor]:
        """The first outputs, so many, as tensors that this record has made."""
        tensors = [wrap(out) for out in self.outs[:count]]
        for i, tensor in enumerate(tensors):
            if is_inexact(tensor.dtype):
                tensor._node = (self, i)
        return tensors


class Recorder:
    """Makes the records of calls of one trace that find their state at one rest."""

    def __init__(self, primitive: Primitive, traced: Traced, run: Run, snapshot: Snapshot | None) -> None:
        self._primitive, self._traced, self._run = primitive, traced, run
        self._nodes = tuple(map(_node, traced.captured))
        self._snapshot: Callable[[], Snapshot | None] = _none if snapshot is None else weakref.ref(snapshot)
        # whether every call is recorded, and not only those with an argument of which something is
        self.always = any(node is not None for node in (*self._nodes, *[c._leaf for c in run.touched()[0]]))

    def snapshot(self) -> Snapshot:
        """The state as it is. Who takes it looks afterwards whether the rest still goes on."""
        known = self._snapshot()
        if known is None:
            cells = self._run.touched()[0]  # a call goes on, which holds them
            arrays = [x._data for x in self._traced.captured] + [c._outside._data for c in cells]
            known = Snapshot(arrays, [*self._nodes, *[c._leaf for c in cells]])
            if cells:
                rest.keep(known)
            self._snapshot = weakref.ref(known)
        return known

    def fits(self) -> bool:
        """Whether what the trace has captured is recorded as it was."""
        return all(map(is_, map(_node, self._traced.captured), self._nodes))

    def record(
        self, given: Sequence[Array], nodes: Sequence[Recorded], outs: Sequence[Array], state: Snapshot | None = None
    ) -> CallRecord:
        """The record of a call."""
        return CallRecord(self._primitive, self._traced.graph, state or self.snapshot(), given, nodes, outs)
