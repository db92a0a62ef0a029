"""Products of half precision: what a chunk needs of both factors is brought together in its own memory and widened.

So nothing of the size of a factor is written, and a factor is read in whichever direction it lies. Where the processor
has an instruction for it (AVX512-BF16), two terms of bfloat16 stay together as one number of 32 bits, a *pair*, and are
multiplied and added in one go; elsewhere they become float32.
"""

from __future__ import annotations

import functools
import math

from ....core import dtypes
from ..labels import Work
from ..processor import Processor
from ..text.builder import typed
from ..text.routine import Routine
from ..tuning import CYCLES, INLINE, LONGEST, NEAR_BYTES
from ..values import View
from .blocks import Blocks, Place, difference, shifted, stepped
from .elements import Elements, Span, listed, running, turned
from .epilogue import Epilogue, WithEpilogue, finish
from .model import block

HELD = 1 << 15  # elements of x that a chunk keeps: as many bytes as a second-level cache holds beside the rest
FEWEST = 4  # rows: fewer do not pay for bringing y together


def suits(cpu: Processor, x: View, y: View) -> bool:
    """Whether a product is one for `Narrow`: of half precision, and not of a few rows or columns."""
    (m, k), n = x.shape[-2:], y.shape[-1]
    return dtypes.is_half(x.dtype) and min(m, n) >= FEWEST and max(m, n) >= cpu.lanes(4) and k > 1


class Narrow(WithEpilogue):
    """out[..., i, j] = sum_k x[..., i, k] y[..., k, j] in float32, then an epilogue; both factors of one half type."""

    any_size = True  # see general.py

    def __init__(self, cpu: Processor, x: View, y: View, epilogue: Epilogue) -> None:
        super().__init__([x, y], epilogue)
        self.x, self.y, self.w = x, y, cpu.lanes(4)
        (self.m, self.k), self.n = x.shape[-2:], y.shape[-1]
        straight = all(1 in v.strides[-2:] for v in (x, y))
        self.paired = cpu.pairs_of_bfloat16 and x.dtype == dtypes.bfloat16 and straight
        self.terms = 2 if self.paired else 1  # that an element of what was brought together holds
        self.x_along, y_along = x.strides[-1] == 1, y.strides[-2] == 1 and y.strides[-1] != 1
        self.lines = Elements(x, self.x_along, self.terms, self.w)
        self.columns = Elements(turned(y), y_along, self.terms, self.w)
        self.scalar = self.lines.scalar
        cycles, self.rows, self.vectors = block(cpu.registers, self.m, -(-self.n // self.w), self.k)
        self.width = self.vectors * self.w
        count = int(math.prod(x.shape[:-2]))
        moved = count * (self.m * self.k + self.k * self.n) * x.dtype.itemsize / NEAR_BYTES
        step = self.rows if self.x_along else math.lcm(self.rows, self.w)
        time = max(count * cycles / self.terms / CYCLES, moved)
        self.blocks = Blocks(x.shape[:-2], self.m, self.n, step, self.width, time)
        self.chunks = self.blocks.chunks
        once = self.w * self.terms
        longest = min(LONGEST, max(64, HELD // self.blocks.rows))
        self.cut = self.k if self.k <= longest else -(-longest // once) * once  # terms of the sum done in one go
        self.length = -(-self.cut // once) * self.w  # the same in elements, up to a whole vector
        self.height = -(-self.blocks.rows // step) * step + self.w
        self.tiled = self.cut < self.k or epilogue.weight * self.rows * self.vectors > INLINE
        self.across = -(-self.blocks.columns // self.width) * self.width

    @property
    def work(self) -> Work:
        return self.followed(f"matmul {self.x.shape} @ {self.y.shape}", math.prod(self.x.shape) * self.n)

    def describe(self) -> str:
        return f"{super().describe()}\n{self.paired}"

    def emit(self, r: Routine) -> None:
        self.kind = typed("float", self.w)
        self.left = r.stack(self.height * self.length, self.scalar)
        self.panel = r.stack(self.length * self.width, self.scalar)
        if self.tiled:
            self.tile = r.stack((self.blocks.rows + self.rows) * self.across, "float")
        self.blocks.each(r, functools.partial(self._rectangle, r))

    def _rectangle(self, r: Routine, lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
        place = Place(lead, row, row_end, column, column_end)
        if self.cut == self.k:
            self._part(r, place, "0", str(self.k))
        else:
            self._clear(r, place)
            r.b.loop(self.k, self.cut, lambda k: self._part(r, place, k, self._end(r, k)))
        if self.tiled:
            self._finish(r, place)

    def _end(self, r: Routine, k: str) -> str:
        """After the last term of the part of the sum that begins at k."""
        return r.b.intrinsic("smin", "i64", shifted(r, k, self.cut), str(self.k))

    def _part(self, r: Routine, place: Place, k: str, k_end: str) -> None:
        """All of a rectangle, for some terms of the sum."""
        span, lines = Span(k, k_end, self.k), Span(place.row, place.row_end, self.m)
        if self.x_along:
            self.lines.by_lines(r, self.left, self.length, place.lead, lines, span)
        else:
            self.lines.by_terms(r, self.left, self.height, place.lead, running(r, lines, self.w), span)
        count = self.lines.count(r, difference(r, k_end, k))

        def panel(j: str, columns: int) -> None:
            self.columns.by_terms(r, self.panel, self.width, place.lead, listed(r, j, columns, self.w), span)
            vectors = -(-columns // self.w)

            def rows(i: str, height: int) -> None:
                zero = [(self.kind, "zeroinitializer")] * (height * vectors)
                left = r.at(self.left, self.scalar, self._steps()[:1], [difference(r, i, place.row)])
                sums = r.b.loop_with(zero, count, 1, functools.partial(self._terms, r, left, height, vectors))
                for t, register in enumerate(sums):
                    a, c = divmod(t, vectors)
                    row, column = shifted(r, i, a), shifted(r, j, c * self.w)
                    if self.tiled:
                        self._wait(r, self._cell(r, place, row, column), register)
                    else:
                        n = min(self.w, columns - c * self.w)
                        self.epilogue.emit(r, [*place.lead, row, column], register, self.w, n)

            stepped(r, place.row, place.row_end, self.rows, self.m, rows)

        stepped(r, place.column, place.column_end, self.width, self.n, panel)

    def _terms(self, r: Routine, left: str, height: int, vectors: int, k: str, sums: list[str]) -> list[str]:
        """One more element of every sum of a block."""
        b, w, (down, along) = r.b, self.w, self._steps()
        left = r.at(left, self.scalar, [along], [k])
        places = [r.at(self.panel, self.scalar, [self.width], [k], c * w) for c in range(vectors)]
        right = [r.load_vector(place, self.scalar, 4, w, w) for place in places]
        made = []
        for a in range(height):
            place = r.at(left, self.scalar, [], [], a * down)
            one = b.spread(b.emit(f"load {self.scalar}, ptr {place}, align 4"), self.scalar, w)
            mine = zip(right, sums[a * vectors : (a + 1) * vectors], strict=True)
            if self.paired:
                made += [dot(r, total, one, v, w) for v, total in mine]
            else:
                made += [b.intrinsic("fmuladd", self.kind, one, v, total) for v, total in mine]
        return made

    def _steps(self) -> tuple[int, int]:
        """From row to row and from element to element in what was brought together of x."""
        return (self.length, 1) if self.x_along else (1, self.height)

    # --- sums in parts

    def _wait(self, r: Routine, cell: str, sums: str) -> None:
        """Put sums into the tile, where those of the parts before may be."""
        if self.cut < self.k:
            before = r.load_vector(cell, "float", 4, self.w, self.w)
            sums = r.b.emit(f"fadd {self.kind} {before}, {sums}")
        r.store_vector(sums, cell, "float", 4, self.w, self.w)

    def _cell(self, r: Routine, place: Place, i: str, j: str) -> str:
        """Where the sums of a row and of columns from j on wait."""
        index = [difference(r, i, place.row), difference(r, j, place.column)]
        return r.at(self.tile, "float", (self.across, 1), index)

    def _clear(self, r: Routine, place: Place) -> None:
        def line(i: str) -> None:
            start = self._cell(r, place, i, place.column)

            def one(j: str) -> None:
                r.store_vector("zeroinitializer", r.at(start, "float", (1,), [j]), "float", 4, self.w, self.w)

            r.b.loop(self.across, self.w, one)

        r.b.loop(place.row_end, 1, line, place.row)

    def _finish(self, r: Routine, place: Place) -> None:
        """The epilogue of a rectangle whose sums wait in the tile."""

        def load(i: str, j: str) -> str:
            return r.load_vector(self._cell(r, place, i, j), "float", 4, self.w, self.w)

        finish(r, self.epilogue, place, self.n, self.w, load)


def dot(r: Routine, total: str, x: str, y: str, w: int) -> str:
    """total + the products of the lower and of the upper halves of pairs."""
    b, kind, pairs, halves = r.b, typed("float", w), typed("i32", w), f"<{2 * w} x bfloat>"
    name = f"@llvm.x86.avx512bf16.dpbf16ps.{32 * w}"
    b.declarations.add(f"declare {kind} {name}({kind}, {halves}, {halves})")
    x, y = (b.emit(f"bitcast {pairs} {v} to {halves}") for v in (x, y))
    return b.emit(f"call {kind} {name}({kind} {total}, {halves} {x}, {halves} {y})")
