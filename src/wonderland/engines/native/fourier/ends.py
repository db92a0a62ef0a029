"""Where the numbers of a transform come from and go to. Lanes are different signals, so no pass ever mixes lanes.

Between passes numbers are in `Local` memory, (size, part, lane). Where lanes lie next to each other in memory
(`Across`: another axis is behind that of the transform) passes read and write them at once. Where signals lie one
behind the other (`Along`) blocks are turned on the way to and from local memory, of so many signals that their lines
are in the first cache together, even if they are a power of two apart.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..text.routine import Routine
from ..text.turning import apart, together, turned
from ..tuning import BAND, TURNED_ROWS
from ..values import Value, View
from .numbers import Number


class Item(NamedTuple):
    """One group of lanes: where it stands among the other axes, and its first lane."""

    outer: Sequence[str]
    lane: str


class Port(NamedTuple):
    """Numbers at places base + offset, where base is a register and offset is known."""

    read: Callable[[str, int], Number]
    write: Callable[[str, int, Number], None]


class Local:
    """Memory on the stack for `size` numbers in each lane."""

    def __init__(self, r: Routine, scalar: str, w: int, size: int) -> None:
        self.r, self.scalar, self.w = r, scalar, w
        self.itemsize = {"float": 4, "double": 8}[scalar]
        self.pointer = r.stack(2 * w * size, scalar)

    def part(self, base: str, offset: int, lane: int) -> str:
        """The address of a lane of a vector, where real and imaginary parts are counted in turn."""
        at = self.r.at(self.pointer, self.scalar, (self.w,), (base,))
        return self.r.at(at, self.scalar, (1,), (str(offset * self.w + lane),))

    def _number(self, base: str, offset: int) -> tuple[str, str]:
        at = self.r.at(self.pointer, self.scalar, (2 * self.w,), (base,))
        first = self.r.at(at, self.scalar, (2 * self.w,), (str(offset),))
        return first, self.r.at(at, self.scalar, (self.w,), (str(2 * offset + 1),))

    def read(self, base: str, offset: int) -> Number:
        real, imag = (self.load(p) for p in self._number(base, offset))
        return real, imag

    def write(self, base: str, offset: int, number: Number) -> None:
        for value, pointer in zip(number, self._number(base, offset), strict=True):
            self.store(value, pointer)

    def load(self, pointer: str, lanes: int = 0) -> str:
        lanes = lanes or self.w
        return self.r.load_vector(pointer, self.scalar, self.itemsize * lanes, lanes, lanes)

    def store(self, value: str, pointer: str, lanes: int = 0) -> None:
        lanes = lanes or self.w
        self.r.store_vector(value, pointer, self.scalar, self.itemsize * lanes, lanes, lanes)

    @property
    def port(self) -> Port:
        return Port(self.read, self.write)


class Across:
    """Parts of shape (*outer, size, lanes). Where there is no imaginary part it is read as 0 and not written."""

    def __init__(self, real: Value, imag: Value | None) -> None:
        self.real, self.imag = real, imag
        self.parts = [real] if imag is None else [real, imag]
        self.outer, self.lanes = real.shape[:-2], real.shape[-1]

    def settings(self) -> object:
        return "across", len(self.parts), self.in_turn

    @property
    def in_turn(self) -> bool:
        """Whether real and imaginary parts come in turn in memory."""
        x, y = self.real, self.imag
        if not isinstance(x, View) or not isinstance(y, View) or x.buffer is not y.buffer:
            return False
        return x.strides == y.strides and x.strides[-1] == 2 and y.offset == x.offset + 1

    def port(self, r: Routine, item: Item, scalar: str, w: int) -> Port:
        def index(base: str, offset: int) -> list[str]:
            return [*item.outer, r.linear((1,), (base,), offset), item.lane]

        def pointer(base: str, offset: int) -> str:
            view = self.real
            assert isinstance(view, View)
            fixed = r.at(r.pointer(view), scalar, (*view.strides[:-2], 2), (*item.outer, item.lane))
            return r.at(fixed, scalar, (view.strides[-2],), (base,), offset * view.strides[-2])

        def read(base: str, offset: int) -> Number:
            if self.in_turn:
                size = 4 if scalar == "float" else 8
                both = r.b.emit(f"load <{2 * w} x {scalar}>, ptr {pointer(base, offset)}, align {size}")
                return apart(r.b, scalar, w, both)
            place, memo = index(base, offset), dict[int, str]()
            real, *imag = (r.value(part, place, w, memo=memo) for part in self.parts)
            return real, imag[0] if imag else zero(w)

        def write(base: str, offset: int, number: Number) -> None:
            if self.in_turn:
                size = 4 if scalar == "float" else 8
                both = together(r.b, scalar, w, *number)
                r.b.do(f"store <{2 * w} x {scalar}> {both}, ptr {pointer(base, offset)}, align {size}")
                return
            for part, value in zip(self.parts, number, strict=False):
                assert isinstance(part, View)
                r.store(part, value, index(base, offset), w)

        return Port(read, write)


class Along:
    """Rows of real numbers, (*outer, lanes, size): parts of complex numbers in turn (`both`), or real parts alone.

    What is read may also be rows of real parts and rows of imaginary parts.
    """

    def __init__(self, rows: Value, both: bool, imag: Value | None = None) -> None:
        self.rows, self.both, self.imag = rows, both, imag
        self.parts = [rows] if imag is None else [rows, imag]
        self.outer, self.lanes, self.size = rows.shape[:-2], rows.shape[-2], rows.shape[-1]

    def settings(self) -> object:
        return "along", self.both, len(self.parts)

    def fetch(self, r: Routine, item: Item, local: Local) -> None:
        rows = min(local.w, TURNED_ROWS)

        def block(first: int, width: int, column: str) -> None:
            memos = [dict[int, str]() for _ in range(rows)]
            found = []
            for part in self.parts:
                places = [self._index(r, item, first + i, column) for i in range(rows)]
                lines = [r.value(part, at, width, memo=memo) for at, memo in zip(places, memos, strict=True)]
                found.append(turned(r.b, local.scalar, lines, width))
            if not self.both and self.imag is None:
                found.append([zero(rows)] * width)
            start, step = self._start(r, column)
            for k, vectors in enumerate(found):
                for i, vector in enumerate(vectors):
                    local.store(vector, local.part(start, step * i + k, first), rows)

        self._blocks(r, local.w, rows, block)

    def put(self, r: Routine, item: Item, local: Local) -> None:
        rows, view = min(local.w, TURNED_ROWS), self.rows
        assert isinstance(view, View)

        def block(first: int, width: int, column: str) -> None:
            start, step = self._start(r, column)
            vectors = [local.load(local.part(start, step * i, first), rows) for i in range(width)]
            for i, row in enumerate(turned(r.b, local.scalar, vectors, rows)):
                r.store(view, row, self._index(r, item, first + i, column), width)

        self._blocks(r, local.w, rows, block)

    def _index(self, r: Routine, item: Item, row: int, column: str) -> list[str]:
        return [*item.outer, r.linear((1,), (item.lane,), row), column]

    def _start(self, r: Routine, column: str) -> tuple[str, int]:
        """Where local memory has a column, in parts of numbers, and how far the next one is."""
        return (column, 1) if self.both else (r.linear((2,), (column,)), 2)

    def _blocks(self, r: Routine, w: int, rows: int, block: Callable[[int, int, str], None]) -> None:
        """Squares as far as they go, in bands: for so many rows at a time, some columns; the last one overlaps."""
        width = min(rows, 1 << (self.size.bit_length() - 1))
        full = self.size - self.size % width
        of_rows = [functools.partial(block, first, width) for first in range(0, w, rows)]

        def band(start: str) -> None:
            end = r.b.intrinsic("smin", "i64", r.b.emit(f"add nsw i64 {start}, {BAND}"), str(full))
            for squares in of_rows:
                r.b.loop(end, width, squares, start)

        r.b.loop(full, BAND, band)
        if full < self.size:
            for squares in of_rows:
                squares(str(self.size - width))


End = Across | Along


def views(end: End) -> list[View]:
    """What is written."""
    return [part for part in end.parts if isinstance(part, View)]


def zero(w: int) -> str:
    return "0.0" if w == 1 else "zeroinitializer"
