"""Matrix products and convolutions that are waiting for the elementwise work to be done on their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .steps import Native
from .tuning import HEAVIEST, MOST_ITEMS
from .values import Buffer, Hole, Together, Value, View, leaves, replaced, strides_of

Make = Callable[[Hole, list[tuple[View, Value]]], Sequence[Native]]


class Contraction:
    """`make(hole, stores)` gives the steps that compute it; `target` holds its plain result, if anybody reads that."""

    def __init__(self, target: View, operands: list[View], make: Make) -> None:
        self.target = target
        self.operands = operands  # the views that it reads
        self.make = make
        self.stores: list[tuple[View, Value]] = [(target, target)]
        self._values = Together()

    @property
    def writes(self) -> list[Buffer]:
        return [view.buffer for view, _ in self.stores]

    def accepts(self, value: Value) -> bool:
        """Whether a value can be computed while the result is in registers."""
        if value.shape != self.target.shape:
            return False
        written = set(self.writes)
        mine = [leaf for leaf in leaves(value) if leaf.buffer in written]
        whole = (v for v in mine if v.buffer is self.target.buffer and v.shape == value.shape and v.offset == 0)
        return sum(_plain(v) for v in whole) == len(mine)

    def add(self, target: View, value: Value) -> None:
        self.stores.append((target, value))
        self._values.add(value)

    @property
    def full(self) -> bool:
        """Whether more work on the result would be too much for the loop that makes it."""
        return len(self.stores) > MOST_ITEMS or self._values.operations > 3 * HEAVIEST

    def close(self) -> Sequence[Native]:
        hole = Hole(self.target.shape, self.target.dtype)

        def filled(part: Value) -> Value | None:
            return hole if isinstance(part, View) and part.buffer is self.target.buffer else None

        done: dict[int, Value] = {}
        stores = [(view, replaced(value, filled, done)) for view, value in self.stores]
        return self.make(hole, stores)


def _plain(view: View) -> bool:
    wanted = strides_of(view.shape)
    return all(n == 1 or s == c for n, s, c in zip(view.shape, view.strides, wanted, strict=True))
