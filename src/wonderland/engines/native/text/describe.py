"""A text that says what a routine depends on and nothing else: equal descriptions mean equal code."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..values import Buffer, Const, Counter, Hole, Op, Take, Value, View, parts
from .routine import Slot

_name = functools.cache(str)  # of a dtype: NumPy makes it anew every time


class Description:
    """Numbers buffers by their slots, and the parts of expressions by the order in which they are met."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.lines: list[str] = []
        self._slots = {slot: i for i, slot in enumerate(slots)}
        self._own: dict[Buffer, int] = {}
        self._known: dict[int, str] = {}
        self._alive: list[Value] = []  # so that no id is used twice

    def own(self, buffer: Buffer) -> str:
        """The name of a value that the routine keeps in a register."""
        return f"own{self._own.setdefault(buffer, len(self._own))}"

    def view(self, view: View) -> str:
        if view.buffer in self._own:
            return self.own(view.buffer)
        slot = self._slots[(view.buffer, view.offset * view.dtype.itemsize)]
        return f"[{slot} {_name(view.dtype)} {view.shape} {view.strides}]"

    def value(self, value: Value) -> str:
        for part in parts(value, known=self._known):
            self._known[id(part)] = f"#{len(self._known)}"
            self._alive.append(part)
            self.lines.append(f"{self._known[id(part)]} = {self._part(part)}")
        return self._known[id(value)]

    def _part(self, part: Value) -> str:
        if isinstance(part, View):
            return self.view(part)
        if isinstance(part, Const):
            return f"{_name(part.dtype)} {part.value!r}"
        if isinstance(part, Counter):
            return f"count {_name(part.dtype)} {part.scales} {part.start}"
        if isinstance(part, Hole):
            return f"hole {_name(part.dtype)} {part.shape}"
        if isinstance(part, Op):
            return f"{part.name} {_name(part.dtype)} {' '.join(self._known[id(a)] for a in part.args)}"
        assert isinstance(part, Take)
        indices = " ".join(self._known[id(i)] for i in part.indices)
        where = f"{self.view(part.view)} {self.view(part.label)}"
        return f"take {where} {indices} {part.steps} {part.sizes} {part.rest}"
