"""Integration with a fixed number of steps between two times."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..transforms.control.loops import fori_loop, scan
from .tableaus import Leaves, Slopes, Tableau, moved, stages


def integrate(table: Tableau, f: Slopes, x: Leaves, times: Tensor, steps: int) -> tuple[Leaves, Leaves]:
    """The state at the last of the times, and the states at all but the first, one after another along a new axis.

    Between two times there are `steps` equal steps.
    """

    def one(x: Leaves, t: Tensor, h: Tensor) -> Leaves:
        return moved(x, h, table.b, stages(table, f, x, t, h))

    def interval(x: Leaves, ends: tuple[Tensor, Tensor]) -> tuple[Leaves, Leaves]:
        start, end = ends
        h = (end - start) / steps
        if steps == 1:
            x = one(x, start, h)
        else:

            def step(i: Tensor | int, x: Leaves) -> Leaves:
                return one(x, start + i * h, h)  # a product, so that rounding does not add up

            x = fori_loop(0, steps, step, x)
        return x, x

    return scan(interval, x, (times[:-1], times[1:]))
