"""Sums and extremes over rows that are made on the side: some rows are gone through together, column by column.

Row by row, a sum would be read and written again for each of its terms. The terms are added in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir.sizes import varying
from ..tuning import SUMMED_ROWS, WAITING
from ..values import may_refuse, parts
from .items import Accumulate, Reduce

if TYPE_CHECKING:
    from .kernel import Kernel
    from .text import Emitter


def suits(k: Kernel) -> bool:
    """Whether there is a sum over the last outer axis, all work is light, and no part of a sum ends among the rows."""
    axis, last = k.rows - 1, len(k.groups) - 1
    if axis < 0 or axis + 1 != last or varying(tuple(k.sizes)) or k.sizes[axis] < 2 * SUMMED_ROWS:
        return False
    if k.operations > WAITING or not 1 < k.width <= k.cpu.lanes(4) or (axis == 0 and k.shared and k.step % SUMMED_ROWS):
        return False
    values = [item.value for item in k.items]
    if any(value.shape != k.space for value in values) or any(may_refuse(part) for part in parts(*values)):
        return False
    if any(isinstance(item, Reduce) for item in k.items):
        return False
    sums = [item for item in k.items if isinstance(item, Accumulate)]
    if any(item.steps[axis] % SUMMED_ROWS for item in sums):
        return False
    steps = [[item.target.strides[group[-1]] for group in k.groups] for item in sums]
    return all(step[last] == 1 for step in steps) and any(step[axis] == 0 for step in steps)


class Several:
    """The loops of such a kernel."""

    def __init__(self, emitter: Emitter) -> None:
        self.e, self.k, self.r, self.b = emitter, emitter.k, emitter.r, emitter.r.b
        self.axis = emitter.k.rows - 1

    def emit(self) -> None:
        k, r, b, e = self.k, self.r, self.b, self.e
        shared = self.axis == 0 and k.shared
        start, end = (e.low, e.high) if shared else ("0", str(k.sizes[self.axis]))
        count = SUMMED_ROWS
        whole = r.whole(start, end, count) if shared else str(k.sizes[self.axis] // count * count)

        def outer(axis: int, index: list[str]) -> None:
            if axis < self.axis:
                if axis == 0 and k.shared:
                    b.loop(e.high, 1, lambda i: outer(1, [i]), start=e.low)
                else:
                    r.each(k.sizes[axis], lambda i: outer(axis + 1, [*index, i]))
                return
            b.loop(whole, count, lambda i: self._rows(index, i), start=start)
            if whole != end:
                b.loop(end, 1, lambda i: e.row([*index, i]), start=whole)

        outer(0, [])

    def _rows(self, index: list[str], first: str) -> None:
        e, values = self.e, [value for _, (value, _) in self.e.items]
        places = [[*index, self.r.linear([1], [first], q)] for q in range(SUMMED_ROWS)]
        even = []
        for place in places:
            e.start_row()
            even.append(e.even_parts(values, place))

        def column(j: str, w: int, n: int) -> None:
            terms: list[list[str]] = [[] for _ in values]
            for place, known in zip(places, even, strict=True):
                memo = dict(known)
                made = [self.r.value(value, [*place, j], w, n, memo) for value in values]
                for (item, (_, target)), value, waiting in zip(e.items, made, terms, strict=True):
                    if not isinstance(item, Accumulate):
                        self.r.store(target, value, [*place, j], w, n)
                    elif target.strides[self.axis]:
                        e.accumulate(item, target, [value], [*place, j], w, n)
                    else:
                        waiting.append(value)
            for (item, (_, target)), waiting in zip(e.items, terms, strict=True):
                if waiting:
                    assert isinstance(item, Accumulate)
                    e.accumulate(item, target, waiting, [*places[0], j], w, n)

        self.r.vectors(self.k.sizes[-1], self.k.width, column)
