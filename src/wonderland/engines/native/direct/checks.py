"""Looking for what a later step would refuse, before state is overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..kernels.kernel import Kernel
from ..products.epilogue import WithEpilogue
from ..steps import Step
from ..text.routine import Routine
from ..values import Buffer, Op, Take, Value, View, may_refuse, parts, without_repeats
from .scatters import Scatter
from .step import Direct


class Risk(NamedTuple):
    """Values that may be refused, and where that is noted."""

    values: Sequence[Value]
    sizes: Sequence[int]  # of the axes that the values are indices into; none: computing the value itself tells
    label: View


def risks(step: Step, status: Buffer) -> list[Risk] | None:
    """All that a step may note in the status of its program; None if some of that is not known."""
    expressions: Sequence[Value] = ()
    found: list[Risk] = []
    if isinstance(step, Kernel):
        expressions = [item.value for item in step.items]
    elif isinstance(step, WithEpilogue):
        expressions = [value for _, value in step.epilogue.stores]
    elif isinstance(step, Direct):
        expressions = step.values
    if isinstance(step, Scatter) and step.label is not None:
        found.append(Risk(step.indices, step.sizes, step.label))
    for part in parts(*expressions):
        if isinstance(part, Take):
            found.append(Risk(part.indices, part.sizes, part.label))
        elif isinstance(part, Op) and may_refuse(part):
            label = part.args[-1]
            assert isinstance(label, View)
            found.append(Risk([part], (), label))
    noted = {view.offset for view in getattr(step, "views", ()) if view.buffer is status}
    return found if noted == {risk.label.offset for risk in found} else None


class Check(Direct):
    """Goes through values for the sake of what is noted about them."""

    name = "check of"
    any_size = True  # see general.py

    def __init__(self, risk: Risk) -> None:
        found = [without_repeats(value, range(len(value.shape))) for value in risk.values]
        self.sizes, self.label = tuple(risk.sizes), risk.label
        super().__init__(found, [], notes=[risk.label])

    def settings(self) -> object:
        return self.sizes

    def emit(self, r: Routine) -> None:
        for place, value in enumerate(self.values):
            self._each(r, value, self.sizes[place] if self.sizes else 0, [])

    def _each(self, r: Routine, value: Value, size: int, index: list[str]) -> None:
        if len(index) < len(value.shape):
            r.each(value.shape[len(index)], lambda i: self._each(r, value, size, [*index, i]))
        elif size:
            r.counted(value, size, self.label, index, 1, 1, {})
        else:
            r.value(value, index)
