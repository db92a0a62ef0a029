"""Views that lie across: their elements follow each other in memory along an outer axis, and not along the row.

Lane by lane, each of their elements would be read by itself. So a kernel goes through squares of as many rows and
columns as a vector has lanes: whole vectors are read along the outer axis and turned in registers, and wait in nearest
memory for their row. Squares follow each other in bands of a few columns, as lines of memory may be longer than a
vector, and lie where they like: the next square of the band finds the rest of them still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..text.builder import STORED, widen
from ..text.turning import turned
from ..tuning import BAND
from ..values import Shape, View, parts
from .items import Accumulate

if TYPE_CHECKING:
    from .text import Emitter


def lies_across(strides: Sequence[int], sizes: Shape, width: int) -> int | None:
    """The outer axis along which elements follow each other, if they do not along the row and it is long enough."""
    if not strides or strides[-1] in (0, 1):
        return None
    return next((a for a, (s, n) in enumerate(zip(strides[:-1], sizes, strict=False)) if s == 1 and n >= width), None)


class Squares:
    """The loops of a kernel that goes through squares, of an outer axis and the row."""

    def __init__(self, emitter: Emitter, axis: int) -> None:
        self.e, self.k, self.r, self.b = emitter, emitter.k, emitter.r, emitter.r.b
        self.axis, self.width = axis, emitter.k.width
        self.values = [value for _, (value, _) in emitter.items]
        self.across = [part for part in parts(*self.values) if isinstance(part, View) and self._fits(part)]
        self.memory = {_name(view): self.r.stack(self.width**2, STORED[view.dtype]) for view in self.across}

    def _fits(self, view: View) -> bool:
        room = self.width * view.dtype.itemsize <= self.k.cpu.vector_bytes
        return room and lies_across(view.strides, tuple(self.k.sizes), self.width) == self.axis

    def emit(self) -> None:
        """All rows of the chunk: squares, then the rows that are left, each by itself."""
        k, r, b, w, e = self.k, self.r, self.b, self.width, self.e
        shared = self.axis == 0 and k.shared
        start, end = (e.low, e.high) if shared else ("0", str(k.sizes[self.axis]))
        whole = r.whole(start, end, w) if shared else str(k.sizes[self.axis] // w * w)
        columns = k.sizes[-1]
        full = columns - columns % w

        def outer(axis: int, index: list[str]) -> None:
            if axis == k.rows:
                along_row(index)
            elif axis == self.axis:
                outer(axis + 1, [*index, ""])
            elif axis == 0 and k.shared:
                b.loop(e.high, 1, lambda i: outer(1, [i]), start=e.low)
            else:
                r.each(k.sizes[axis], lambda i: outer(axis + 1, [*index, i]))

        def along_row(index: list[str]) -> None:
            def at(i: str) -> list[str]:
                return [*index[: self.axis], i, *index[self.axis + 1 :]]

            def band(first: str) -> None:
                last = b.intrinsic("smin", "i64", b.emit(f"add nsw i64 {first}, {BAND}"), str(full))

                def squares(i: str) -> None:
                    b.loop(last, w, lambda j: self._square(at(i), j, w), start=first)

                b.loop(whole, w, squares, start=start)

            b.loop(full, BAND, band)
            if full < columns:
                b.loop(whole, w, lambda i: self._square(at(i), str(full), columns - full), start=start)
            if whole != end:
                b.loop(end, 1, lambda i: e.row(at(i)), start=whole)

        outer(0, [])

    def _square(self, index: list[str], column: str, n: int) -> None:
        """The rows from an index on, from a column on, of which n count."""
        for view in {_name(view): view for view in self.across}.values():
            self._turn(view, index, column, n)
        first = index[self.axis]

        def row(q: str) -> None:
            place = [*index]
            place[self.axis] = self.b.emit(f"add nsw i64 {first}, {q}")
            self.e.start_row()
            memo = self.e.even_parts(self.values, place)
            for view in self.across:
                stored = STORED[view.dtype]
                there = self.r.at(self.memory[_name(view)], stored, [self.width], [q])
                lanes = self.r.load_vector(there, stored, view.dtype.itemsize, self.width, self.width)
                memo[id(view)] = widen(self.b, lanes, view.dtype, self.width)
            place = [*place, column]
            values = [self.r.value(value, place, self.width, n, memo) for value in self.values]
            for (item, (_, target)), value in zip(self.e.items, values, strict=True):
                if isinstance(item, Accumulate):
                    self.e.accumulate(item, target, [value], place, self.width, n)
                else:
                    self.r.store(target, value, place, self.width, n)

        self.b.loop(self.width, 1, row)

    def _turn(self, view: View, index: list[str], column: str, n: int) -> None:
        """Bring a square of a view to its memory, with its rows along the lanes."""
        r, w, stored, align = self.r, self.width, STORED[view.dtype], view.dtype.itemsize
        start = r.at(r.pointer(view), stored, view.strides, [*index, column])
        places = [r.at(start, stored, [view.strides[-1]], [str(c)]) for c in range(n)]
        read = [r.load_vector(place, stored, align, w, w) for place in places]
        for q, lanes in enumerate(turned(self.b, stored, read + ["zeroinitializer"] * (w - n), w)):
            r.store_vector(lanes, r.at(self.memory[_name(view)], stored, [w], [str(q)]), stored, align, w, w)


def _name(view: View) -> tuple[object, ...]:
    """What is the same for equal views."""
    return view.buffer, view.offset, view.strides
