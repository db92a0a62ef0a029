"""Products of half precision: what a chunk needs of both factors is brought together in its own memory and widened.

So nothing of the size of a factor is written, and a factor is read in whichever direction it lies. Where the processor
has an instruction for it (AVX512-BF16), two terms of bfloat16 stay together as one number of 32 bits, a *pair*, and are
multiplied and added in one go; elsewhere they become float32.
"""

from __future__ import annotations

import functools
import math
from typing import cast

from ....core import dtypes
from ..labels import Work
from ..processor import Processor
from ..text.builder import STORED, splat, typed
from ..text.routine import Routine
from ..tuning import CYCLES, INLINE, LONGEST, NEAR_BYTES
from ..values import View, transposed
from .blocks import Blocks, difference, shifted, stepped
from .epilogue import Epilogue, WithEpilogue
from .packing import transpose
from .product import Place, block

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
        self.scalar = "i32" if self.paired else "float"
        self.x_along, self.y_along = x.strides[-1] == 1, y.strides[-2] == 1 and y.strides[-1] != 1
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
        self._gather(r, place, k, k_end)
        terms = difference(r, k_end, k)
        count = terms
        if self.paired:
            count = str(-(-int(terms) // 2)) if terms.isdigit() else r.b.emit(f"lshr i64 {shifted(r, terms, 1)}, 1")

        def panel(j: str, columns: int) -> None:
            self._copy(r, place.lead, k, k_end, j, columns)
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

    # --- memory of the chunk's own

    def _steps(self) -> tuple[int, int]:
        """From row to row and from element to element in what was brought together of x."""
        return (self.length, 1) if self.x_along else (1, self.height)

    def _gather(self, r: Routine, place: Place, k: str, k_end: str) -> None:
        """Bring the rows of x that the rectangle needs together."""
        w, steps = self.w, self._steps()

        def row(i: str) -> None:
            line = r.at(self.left, self.scalar, steps[:1], [difference(r, i, place.row)])

            def some(t: str, n: int) -> None:
                at = r.at(line, self.scalar, (1,), [self._elements(r, difference(r, t, k))])
                r.store_vector(self._along(r, self.x, [*place.lead, i, t], n), at, self.scalar, 4, w, w)

            stepped(r, k, k_end, w * self.terms, self.k, some)

        def term(t: str, n: int) -> None:
            line = r.at(self.left, self.scalar, steps[1:], [self._elements(r, difference(r, t, k))])

            def some(i: str, count: int) -> None:
                got = self._beside(r, _turned(self.x), place.lead, t, n, i, count)
                at = r.at(line, self.scalar, (1,), [difference(r, i, place.row)])
                r.store_vector(got, at, self.scalar, 4, w, w)

            stepped(r, place.row, place.row_end, w, self.m, some)

        if self.x_along:
            r.b.loop(place.row_end, 1, row, place.row)
        else:
            stepped(r, k, k_end, self.terms, self.k, term)

    def _copy(self, r: Routine, lead: list[str], k: str, k_end: str, j: str, columns: int) -> None:
        """Bring a panel of y together: rows of the width of a block."""
        w = self.w

        def row(t: str, n: int) -> None:
            line = r.at(self.panel, self.scalar, [self.width], [self._elements(r, difference(r, t, k))])
            for c in range(0, columns, w):
                got = self._beside(r, self.y, lead, t, n, shifted(r, j, c), min(w, columns - c))
                r.store_vector(got, r.at(line, self.scalar, [], [], c), self.scalar, 4, w, w)

        def square(t: str, n: int) -> None:
            line = r.at(self.panel, self.scalar, [self.width], [self._elements(r, difference(r, t, k))])
            for c in range(0, columns, w):
                lines = [
                    self._along(r, _turned(self.y), [*lead, shifted(r, j, c + a), t], n)
                    if c + a < columns
                    else "zeroinitializer"
                    for a in range(w)
                ]
                for a, got in enumerate(transpose(r, lines, self.scalar)):
                    at = r.at(line, self.scalar, [], [], a * self.width + c)
                    r.store_vector(got, at, self.scalar, 4, w, w)

        if self.y_along:
            stepped(r, k, k_end, w * self.terms, self.k, square)
        else:
            stepped(r, k, k_end, self.terms, self.k, row)

    def _elements(self, r: Routine, terms: str) -> str:
        """Of so many terms, an even number."""
        if not self.paired:
            return terms
        return str(int(terms) // 2) if terms.isdigit() else r.b.emit(f"lshr i64 {terms}, 1")

    def _along(self, r: Routine, view: View, index: list[str], n: int) -> str:
        """A vector of elements whose n terms follow each other along the last axis; what is not there is 0."""
        if not self.paired:
            return r.load(view, index, self.w, n)
        place = r.at(r.pointer(view), "i16", view.strides, index)
        halves = r.load_vector(place, "i16", 2, 2 * self.w, n)
        return r.b.emit(f"bitcast <{2 * self.w} x i16> {halves} to {typed('i32', self.w)}")

    def _beside(self, r: Routine, view: View, lead: list[str], t: str, n: int, j: str, count: int) -> str:
        """A vector of elements whose n terms are in the rows t and t + 1 of a view, for some columns from j on."""
        if not self.paired:
            return r.load(view, [*lead, t, j], self.w, count)
        b, kind = r.b, typed("i32", self.w)
        found = []
        for a in range(n):
            place = r.at(r.pointer(view), STORED[view.dtype], view.strides, [*lead, shifted(r, t, a), j])
            halves = r.load_vector(place, "i16", 2, self.w, count)
            found.append(b.emit(f"zext {typed('i16', self.w)} {halves} to {kind}"))
        if n == 1:
            return found[0]
        upper = b.emit(f"shl {kind} {found[1]}, {splat('16', 'i32', self.w)}")
        return b.emit(f"or {kind} {found[0]}, {upper}")

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

        def line(i: str) -> None:
            def one(j: str, n: int) -> None:
                sums = r.load_vector(self._cell(r, place, i, j), "float", 4, self.w, self.w)
                self.epilogue.emit(r, [*place.lead, i, j], sums, self.w, n)

            stepped(r, place.column, place.column_end, self.w, self.n, one)

        r.b.loop(place.row_end, 1, line, place.row)


def _turned(view: View) -> View:
    rank = len(view.shape)
    return cast(View, transposed(view, (*range(rank - 2), rank - 1, rank - 2)))


def dot(r: Routine, total: str, x: str, y: str, w: int) -> str:
    """total + the products of the lower and of the upper halves of pairs."""
    b, kind, pairs, halves = r.b, typed("float", w), typed("i32", w), f"<{2 * w} x bfloat>"
    name = f"@llvm.x86.avx512bf16.dpbf16ps.{32 * w}"
    b.declarations.add(f"declare {kind} {name}({kind}, {halves}, {halves})")
    x, y = (b.emit(f"bitcast {pairs} {v} to {halves}") for v in (x, y))
    return b.emit(f"call {kind} {name}({kind} {total}, {halves} {x}, {halves} {y})")
