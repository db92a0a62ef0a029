"""Bringing a matrix into the layout in which a product reads it at full speed: rows that step through memory by one,
or, where the copy is used many times, panels of columns that are read from end to end."""

from __future__ import annotations

import math
from typing import NamedTuple

from ....core import dtypes
from ....core.dtypes import DType
from ..labels import Work
from ..processor import Processor
from ..text.builder import STORED, computed, typed, widen
from ..text.describe import Description
from ..text.routine import Routine, slots_of
from ..tuning import COPIED_BYTES
from ..values import Buffer, Shape, View
from .blocks import Blocks, shifted, stepped


class Panels(NamedTuple):
    """A matrix as panels of some columns, one behind the other; each has all rows, of its own columns alone.

    Its view tells where the first panel is, with the steps from row to row: column j of a panel's width lies
    `rows` * j further on.
    """

    width: int
    rows: int


def in_panels(cpu: Processor, view: View, width: int, dtype: DType) -> tuple[Pack, View, Panels]:
    """A step that copies a matrix (..., k, n) to panels of so many columns, and the copy, widened or as it is stored.

    The last panel may have idle columns.
    """
    *_, k, n = view.shape
    down, across = view.strides[-2:]
    lead, strides, size = _once(view, k * -(-n // width) * width)
    buffer, shape = Buffer("arena", size, dtype), (*lead, -(-n // width), k, width)
    source = View(view.buffer, shape, (*view.strides[:-2], width * across, down, across), view.offset)
    target = View(buffer, shape, (*strides, width * k, width, 1))
    return Pack(cpu, source, target, n % width), View(buffer, view.shape, (*strides, width, 1)), Panels(width, k)


def widened(view: View) -> DType:
    return dtypes.float64 if computed(view.dtype) == "double" else dtypes.float32


def _once(view: View, size: int) -> tuple[list[int], list[int], int]:
    """Leading axes of a copy: their sizes and steps, without what the view repeats, and the elements of all."""
    shape, strides = list(view.shape[:-2]), [0] * (len(view.shape) - 2)
    for axis in reversed(range(len(shape))):
        if view.strides[axis] == 0:
            shape[axis] = 1
        else:
            strides[axis], size = size, size * shape[axis]
    return shape, strides, size


def packed(cpu: Processor, view: View) -> tuple[Pack, View]:
    """A step that copies a view to memory of its own, and the copy: row-major, narrow floats widened.

    Axes along which the view repeats itself are not repeated in the copy. The rows of a large matrix are a few
    elements apart, so that those of a column do not all compete for the same places of the cache.
    """
    *_, m, n = view.shape
    dtype = widened(view)
    line = 64 // dtype.itemsize
    step = n if m * n <= 1024 or n < line else -(-n // (2 * line)) * 2 * line + line
    lead, strides, size = _once(view, m * step)
    copy = View(Buffer("arena", size, dtype), view.shape, (*strides, step, 1))
    shape = (*lead, m, n)
    return Pack(cpu, _narrowed(view, shape), _narrowed(copy, shape)), copy


def _narrowed(view: View, shape: Shape) -> View:
    return View(view.buffer, shape, view.strides, view.offset)


class Pack:
    """copy[..., i, j] = view[..., i, j], where the copy steps through memory along j.

    Of the last of the matrices there may be but a `rest` of columns.
    """

    any_size = True  # see general.py

    def __init__(self, cpu: Processor, view: View, copy: View, rest: int = 0) -> None:
        self.view, self.copy, self.rest = view, copy, rest
        self.views, self.reads, self.writes = [view, copy], [view.buffer], [copy.buffer]
        *lead, m, n = view.shape
        self.w = cpu.lanes(max(4, copy.dtype.itemsize))
        self.turned = view.strides[-2] == 1 and view.strides[-1] != 1 and min(m, n) >= self.w
        moved = 2 * int(math.prod(view.shape)) * copy.dtype.itemsize / COPIED_BYTES
        self.blocks = Blocks(tuple(lead), m, n, self.w if self.turned else 1, n if rest else self.w, moved)
        self.chunks = self.blocks.chunks

    @property
    def work(self) -> Work:
        return f"pack {self.view.shape}", 0

    def describe(self) -> str:
        description = Description(slots_of(self.views))
        return f"Pack {description.view(self.view)} {description.view(self.copy)} {self.rest}"

    def emit(self, r: Routine) -> None:
        *_, last, m, n = (1, *self.view.shape)
        w = self.w

        def line(lead: list[str], i: str, j: str, columns: int) -> None:
            index = [*lead, i, j]
            r.store(self.copy, r.load(self.view, index, w, columns), index, w, columns)

        def rectangle(lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
            if not self.rest:
                move(lead, row, row_end, column, column_end, n)
                return
            r.b.when(
                r.b.emit(f"icmp eq i64 {lead[-1]}, {last - 1}"),
                lambda: move(lead, row, row_end, "0", str(self.rest), self.rest),
                lambda: move(lead, row, row_end, "0", str(n), n),
            )

        def move(lead: list[str], row: str, row_end: str, column: str, column_end: str, n: int) -> None:
            def rows(i: str, height: int) -> None:
                def tile(j: str, columns: int) -> None:
                    if height == columns == w:
                        self._turn(r, [*lead, i, j])
                    else:
                        r.b.loop(shifted(r, i, height), 1, lambda t: line(lead, t, j, columns), i)

                stepped(r, column, column_end, w, n, tile)

            def row_by_row(i: str) -> None:
                stepped(r, column, column_end, w, n, lambda j, columns: line(lead, i, j, columns))

            if self.turned:
                stepped(r, row, row_end, w, m, rows)
            else:
                r.b.loop(row_end, 1, row_by_row, row)

        self.blocks.each(r, rectangle)

    def _turn(self, r: Routine, index: list[str]) -> None:
        """Transpose a square of w x w elements."""
        w, stored, alike = self.w, STORED[self.view.dtype], self.view.dtype == self.copy.dtype
        source = r.at(r.pointer(self.view), stored, self.view.strides, index)
        target = r.at(r.pointer(self.copy), STORED[self.copy.dtype], self.copy.strides, index)
        size, kept = self.view.dtype.itemsize, self.copy.dtype.itemsize
        columns = []
        for j in range(w):
            got = r.load_vector(r.at(source, stored, [], [], j * self.view.strides[-1]), stored, size, w, w)
            columns.append(got if alike else widen(r.b, got, self.view.dtype, w))
        scalar = STORED[self.copy.dtype]
        for i, row in enumerate(transpose(r, columns, scalar)):
            r.store_vector(row, r.at(target, scalar, [], [], i * self.copy.strides[-2]), scalar, kept, w, w)


def transpose(r: Routine, vectors: list[str], scalar: str, w: int = 0) -> list[str]:
    """The columns of a square of registers as rows: exchange ever larger squares beside the diagonal.

    Registers of more lanes than there are registers, w, hold several squares side by side.
    """
    w = w or len(vectors)
    kind = typed(scalar, w)
    distance = 1
    while distance < len(vectors):
        made = list(vectors)
        for i in range(len(vectors)):
            if not i & distance:
                a, b = vectors[i], vectors[i | distance]
                if a == b == "zeroinitializer":
                    continue
                lanes = range(w)
                made[i] = shuffle(r, a, b, [w + (t ^ distance) if t & distance else t for t in lanes], scalar)
                made[i | distance] = shuffle(r, a, b, [w + t if t & distance else t | distance for t in lanes], scalar)
        vectors = made
        distance *= 2
        if distance * distance == len(vectors) > 8:  # LLVM looks through all shuffles behind each other for better ones
            vectors = [v if v == "zeroinitializer" else r.b.opaque(v, kind) for v in vectors]
    return vectors


def shuffle(r: Routine, a: str, b: str, lanes: list[int], scalar: str) -> str:
    kind = typed(scalar, len(lanes))
    mask = "<" + ", ".join(f"i32 {t}" for t in lanes) + ">"
    return r.b.emit(f"shufflevector {kind} {a}, {kind} {b}, <{len(lanes)} x i32> {mask}")
