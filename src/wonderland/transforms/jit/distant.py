"""How a traced function runs on an engine that keeps values on devices (`Distant`): what is not there is brought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ...core.cell import Cell
from ...core.handover import Delivery
from ...core.tensor import Distant, Far, Tensor
from ...engines.choosing import device_name, engine_name, program_of
from ...engines.engine import Distantly, WithDevices, far_engine

if TYPE_CHECKING:
    from .traced import Traced


def _far(x: Tensor) -> Far:
    return cast(Far, cast(Distant, x).far)


class Stay:
    """One call. When it is made, state that is elsewhere is brought, and its cells hold it there from now on."""

    def __init__(self, traced: Traced, operands: list[Tensor], cells: Sequence[Cell]) -> None:
        self._traced = traced
        self._engine = cast(WithDevices, far_engine(engine_name()))
        self._where = where = self._engine.placement(operands, device_name())
        first = traced.graph.constants
        for place, cell in enumerate(cells, first):
            before = operands[place]
            if type(before) is Distant and before.far is not None and where.has(before.far):
                continue
            there = self._engine.brought(before, where.like(before, operands))
            operands[place] = there
            if cell._outside is before:
                cell.put(there)

    def run(self, operands: list[Tensor], owned: Sequence[int], deliver: Delivery | None) -> Sequence[Tensor] | None:
        """The outputs; None if the engine cannot run the graph, and another has to."""
        traced, where, brought = self._traced, self._where, self._engine.brought
        made = program_of(engine_name(), traced.graph)
        if not hasattr(made, "stay"):
            return None
        program = cast(Distantly, made)
        first, count = traced.graph.constants, traced.graph.cells
        arrays = [*self._constants(), *[_far(x) for x in operands[first : first + count]]]
        if program.overwrites:
            for place in set(traced.states) - set(owned):  # who else holds it goes on holding it
                arrays[place] = _far(brought(operands[place], arrays[place].sharding))
        for x in operands[first + count :]:
            there = type(x) is Distant and x.far is not None and where.has(x.far)
            arrays.append(_far(x if there else brought(x, where.split(x))))
        return program.stay(arrays, deliver, where)

    def _constants(self) -> list[Far]:
        """What the trace has for constants, brought once."""
        known = self._traced.brought
        if known is None or known[0] is not self._where:
            arrays = [_far(self._engine.brought(x, self._where.whole)) for x in self._traced.captured]
            known = self._traced.brought = (self._where, arrays)
        return known[1]
