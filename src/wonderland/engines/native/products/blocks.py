"""Cutting the work on a batch of matrices into chunks: by leading index, by rows, by columns."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from ....ir.sizes import Extent, pieces
from ..text.routine import Routine
from ..tuning import RECTANGLE, SHORT
from ..values import Shape

Body = Callable[[list[str], str, str, str, str], None]  # leading index, first row, row after the last, columns likewise


class Place(NamedTuple):
    """A rectangle of one of the matrices."""

    lead: list[str]
    row: str
    row_end: str
    column: str
    column_end: str


class Blocks:
    """The chunks of matrices lead + (m, n): groups of whole matrices, or rectangles of one of them.

    Every rectangle begins at multiples of `rows` and `columns`, with a whole block of so many rows if the matrix has as
    many, and they are as alike as that allows. How many there are follows from the time the whole takes alone, so that
    results do not depend on how many threads share the work.
    """

    def __init__(self, lead: Shape, m: int, n: int, rows: int, columns: int, microseconds: float) -> None:
        self.lead, self.m, self.n = lead, m, n
        self.steps, self.microseconds = (rows, columns), microseconds
        self.count = math.prod(lead)
        count, tall, wide = int(self.count), int(m), int(n)  # where sizes vary, those that choices are made for
        wanted = next((n for n, most in ((1, SHORT), (4, 300), (8, 1000), (16, 2000)) if microseconds < most), 32)
        self.group = max(1, count // wanted)  # whole matrices in a chunk
        pieces = max(-(-wanted // count), -(-tall * wide // RECTANGLE))  # of a matrix
        down, across = _cuts(tall, wide, pieces, max(rows, 64), max(columns, 32))
        if count * down * across < 4 <= wanted:
            down, across = _cuts(tall, wide, pieces, rows, columns)
        self.rows = evenly(m, down, rows)
        self.columns = evenly(n, across, columns)

    @property
    def counts(self) -> tuple[int, int, int]:
        return pieces(self.count, self.group), pieces(self.m, self.rows), pieces(self.n, self.columns)

    @property
    def chunks(self) -> int:
        return math.prod(self.counts)

    @property
    def traffic(self) -> int:
        """Elements that are read for every term of the sums of a product."""
        _, down, across = self.counts
        return self.count * (self.m * across + self.n * down)

    def each(self, r: Routine, body: Body) -> None:
        """Emit body(lead, row, row_end, column, column_end) for the rectangles of this chunk."""
        b = r.b
        groups, down, across = self.counts
        number, place = r.chunk, []
        for size in (across, down):
            cut = size > 1 or isinstance(size, Extent)
            place.append(b.emit(f"urem i64 {number}, {r.size(size)}") if cut else "0")
            number = b.emit(f"udiv i64 {number}, {r.size(size)}") if cut else number
        column, column_end = self._range(r, place[0], self.columns, self.n, self.steps[1])
        row, row_end = self._range(r, place[1], self.rows, self.m, self.steps[0])
        several = groups > 1 or isinstance(groups, Extent)
        first, last = self._range(r, number if several else "0", self.group, self.count, 1)

        def one(matrix: str) -> None:
            body(self._lead(r, matrix), row, row_end, column, column_end)

        if groups == self.count and self.group == 1:
            one(first)
        else:
            b.loop(last, 1, one, first)

    def _range(self, r: Routine, part: str, size: int, total: int, step: int) -> tuple[str, str]:
        """Where a part of an axis begins and ends: parts are at most `size` long."""
        if part == "0":
            return "0", str(total)
        if not isinstance(total, Extent) and -(-total // step) % -(-total // size):
            steps, parts = -(-total // step), -(-total // size)
            ends = [part, shifted(r, part, 1)]
            ends = [r.b.emit(f"udiv i64 {r.b.emit(f'mul nsw i64 {end}, {steps}')}, {parts}") for end in ends]
            start, end = (r.b.emit(f"mul nsw i64 {end}, {step}") for end in ends)
            return start, end if total % step == 0 else r.b.intrinsic("smin", "i64", end, str(total))
        start = r.b.emit(f"mul nsw i64 {part}, {size}")
        end = r.b.emit(f"add nsw i64 {start}, {size}")
        fits = not isinstance(total, Extent) and total % size == 0
        return start, end if fits else r.b.intrinsic("smin", "i64", end, r.size(total))

    def _lead(self, r: Routine, matrix: str) -> list[str]:
        index: list[str] = []
        for position, size in reversed(list(enumerate(self.lead))):
            if size == 1 or matrix == "0":
                index.append("0")
                continue
            outermost = math.prod(self.lead[:position]) == 1
            index.append(matrix if outermost else r.b.emit(f"urem i64 {matrix}, {r.size(size)}"))
            matrix = "0" if outermost else r.b.emit(f"udiv i64 {matrix}, {r.size(size)}")
        return index[::-1]


def _cuts(m: int, n: int, pieces: int, rows: int, columns: int) -> tuple[int, int]:
    """Into how many parts to cut rows and columns, such that little is read again, and two threads have as much."""
    choices = []
    for down in range(1, min(pieces, max(1, m // rows)) + 1):
        across = min(-(-pieces // down), max(1, n // columns))
        parts = down * across
        time = m * n * -(-parts // 2) * 2 / parts if parts > 1 else m * n
        choices.append((max(pieces - parts, 0), time + m * across + n * down, down, across))
    return min(choices)[2:]


def evenly(total: int, parts: int, step: int) -> int:
    """The size of a part, a multiple of `step`, that cuts `total` in about `parts`."""
    size = -(-int(total) // (parts * step)) * step
    return size if isinstance(total, Extent) else min(size, total)


def stepped(r: Routine, start: str, end: str, size: int, total: int, body: Callable[[str, int], None]) -> None:
    """body(place, size) through [start, end) and body(place, rest) at the end of the axis where less than size is left.

    `start` is a multiple of size and `end` too, unless it is the end of the axis. What is left of an axis whose size
    varies is gone through in ever smaller steps.
    """
    if isinstance(total, Extent):
        for step in heights(size):
            left = difference(r, end, start)
            whole = end if step == 1 else difference(r, end, r.b.emit(f"urem i64 {left}, {step}"))
            r.b.loop(whole, step, functools.partial(_with, body, step), start)
            start = whole
        return
    b, rest = r.b, total % size
    if start == "0" and end == str(total):
        if total // size == 1:
            body("0", size)
        elif total >= size:
            b.loop(total - rest, size, lambda i: body(i, size))
        if rest:
            body(str(total - rest), rest)
        return
    if not rest:
        b.loop(end, size, lambda i: body(i, size), start)
        return
    whole = b.intrinsic("smin", "i64", end, str(total - rest))
    b.loop(whole, size, lambda i: body(i, size), start)
    b.loop(end, rest, lambda i: body(i, rest), whole)


def _with(body: Callable[[str, int], None], size: int, place: str) -> None:
    body(place, size)


def heights(rows: int) -> list[int]:
    """Steps that go through any number of rows."""
    return [rows, 1] if rows > 1 else [1]


def shifted(r: Routine, place: str, by: int) -> str:
    """place + by."""
    return r.linear((1,), (place,), by)


def difference(r: Routine, a: str, b: str) -> str:
    """a - b."""
    if b == "0":
        return a
    if a == b:
        return "0"
    return str(int(a) - int(b)) if a.isdigit() and b.isdigit() else r.b.emit(f"sub nsw i64 {a}, {b}")
