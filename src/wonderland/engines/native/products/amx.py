"""Products by registers that hold tiles, of 16 rows of 64 bytes (Intel's AMX): of bfloat16, and of int8.

One instruction multiplies 16 rows of elements (elements.py: pairs of bfloat16, or four int8) by 16 columns of 16
elements and adds to 16 x 16 sums of 32 bits. There are eight tiles: a block of the result is two by two of them, and
for every 16 elements two tiles with rows of x and two with columns of y are read, one element of 16 columns in a row.
What a chunk needs of both factors is brought together in that order, and up to whole tiles. Sums come out of tiles
through memory alone, where the epilogue finds them.

The tiles of a thread are in use from where a routine says what they look like to where it releases them, at its end:
so threads have no more to save than others when they rest, or when somebody else's code uses tiles.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from ....core import dtypes
from ....core.dtypes import DType
from ....primitives.rounded import MOST_TERMS
from ..labels import Work
from ..processor import Processor
from ..text.builder import typed
from ..text.routine import Routine
from ..tuning import CYCLES, LONGEST, NEAR_BYTES, PANEL
from ..values import View
from .blocks import Blocks, Place, difference, shifted, stepped
from .elements import Elements, Span, listed, turned
from .epilogue import Epilogue, WithEpilogue, finish

SIDE = 16  # rows of a tile, and elements of a row
BYTES = 4 * SIDE  # of a row
BLOCK = 2 * SIDE  # rows and columns of a block
SUMS, ROWS, COLUMNS = (0, 2), 4, 6  # tiles of a block: two rows of sums, rows of x, columns of y
MULTIPLIED = 16  # cycles that a product of two tiles takes
HELD = 1 << 16  # elements of x that a chunk keeps, in the second cache
INSTRUCTIONS = {dtypes.bfloat16: "tdpbf16ps", dtypes.int8: "tdpbssd"}
# terms: of bfloat16, each addition to a sum adds what became of 32, see text/sums.py; of int8, what 32 bits hold
MOST = {dtypes.bfloat16: 32 * LONGEST, dtypes.int8: MOST_TERMS}


def suits(cpu: Processor, dtype: DType, m: int, k: int, n: int) -> bool:
    """Whether a product is one of tiles: of a type that they know, enough to fill them, and not too long a sum."""
    return cpu.tiles and min(m, n, k * dtype.itemsize // 4) >= SIDE and k <= MOST.get(dtype, 0)


class Tiles(WithEpilogue):
    """out[..., i, j] = sum_k x[..., i, k] y[..., k, j], in float32 or int32, then an epilogue; both of one type."""

    any_size = True  # see general.py

    def __init__(self, cpu: Processor, x: View, y: View, epilogue: Epilogue) -> None:
        super().__init__([x, y], epilogue)
        self.x, self.y, self.instruction = x, y, INSTRUCTIONS[x.dtype]
        (self.m, self.k), self.n = x.shape[-2:], y.shape[-1]
        self.sums = "i32" if x.dtype == dtypes.int8 else "float"
        terms = 4 // x.dtype.itemsize
        self.rows = Elements(x, x.strides[-1] == 1, terms, SIDE)
        self.columns = Elements(turned(y), y.strides[-1] != 1, terms, SIDE)
        count, self.once = int(math.prod(x.shape[:-2])), SIDE * terms  # terms that a tile holds of a row
        tiles = math.prod(-(-size // part) for size, part in ((self.m, SIDE), (self.n, SIDE), (self.k, self.once)))
        moved = count * (self.m + self.n) * self.k * x.dtype.itemsize / NEAR_BYTES
        time = max(count * tiles * MULTIPLIED / CYCLES, moved)
        self.blocks = Blocks(x.shape[:-2], self.m, self.n, BLOCK, BLOCK, time)
        self.chunks = self.blocks.chunks
        longest = max(BLOCK, min(int(PANEL * cpu.first_cache) // (4 * BLOCK), HELD // self.blocks.rows))
        whole = -(-self.k // self.once)
        self.cut = self.once * min(whole, longest // SIDE)  # terms of the sum done in one go
        self.waits = self.cut < self.k  # sums, for the next terms
        self.length = self.cut // terms  # the same in elements
        self.line = self.length + SIDE  # from row to row of x: those of a tile do not compete for places of the cache
        self.across = -(-self.blocks.columns // BLOCK) * BLOCK if self.waits else BLOCK

    @property
    def work(self) -> Work:
        kind = "int8 " if self.sums == "i32" else ""
        label = f"matmul {kind}{self.x.shape} @ {kind}{self.y.shape}"
        return self.followed(label, math.prod(self.x.shape) * self.n)

    def emit(self, r: Routine) -> None:
        height = -(-self.blocks.rows // BLOCK) * BLOCK
        self.left = r.stack(height * self.line, "i32")
        self.panel = r.stack(self.length * BLOCK, "i32")
        self.waiting = r.stack((height if self.waits else BLOCK) * self.across, self.sums)
        _configure(r)
        self.blocks.each(r, functools.partial(self._rectangle, r))
        _call(r, "tilerelease")

    def _rectangle(self, r: Routine, lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
        place = Place(lead, row, row_end, column, column_end)
        if not self.waits:
            self._part(r, place, Span("0", str(self.k), self.k))
            return

        def part(k: str) -> None:
            end = r.b.intrinsic("smin", "i64", shifted(r, k, self.cut), str(self.k))
            self._part(r, place, Span(k, end, self.k))

        r.b.loop(self.k, self.cut, part)
        self._finish(r, place)

    def _part(self, r: Routine, place: Place, k: Span) -> None:
        """All of a rectangle, for some terms of the sum."""
        self.rows.by_lines(r, self.left, self.line, place.lead, Span(place.row, place.row_end, self.m), k)
        count = self.rows.count(r, difference(r, k.end, k.start))

        def panel(j: str, columns: int) -> None:
            self.columns.by_terms(r, self.panel, BLOCK, place.lead, listed(r, j, columns, SIDE), k)
            self._fill(r, count)

            def block(i: str, rows: int) -> None:
                mine = Place(place.lead, i, shifted(r, i, rows), j, shifted(r, j, columns))
                left = r.at(self.left, "i32", [self.line], [difference(r, i, place.row)])
                sums = self._cell(r, place if self.waits else mine, i, j)
                self._block(r, left, sums, -(-rows // SIDE), -(-columns // SIDE), k.start, count)
                if not self.waits:
                    self._finish(r, mine)

            stepped(r, place.row, place.row_end, BLOCK, self.m, block)

        stepped(r, place.column, place.column_end, BLOCK, self.n, panel)

    def _fill(self, r: Routine, count: str) -> None:
        """Zeros behind the last elements of columns, which are written as they come, up to a whole tile."""
        if self.columns.along or self.k % self.once == 0:
            return  # they were written by whole vectors
        after = shifted(r, count, SIDE - 1)
        end = str(int(after) & -SIDE) if after.isdigit() else r.b.emit(f"and i64 {after}, {-SIDE}")

        def line(t: str) -> None:
            at = r.at(self.panel, "i32", [BLOCK], [t])
            r.store_vector("zeroinitializer", at, "i32", 4, BLOCK, BLOCK)

        r.b.loop(end, 1, line, count)

    def _block(self, r: Routine, left: str, sums: str, down: int, across: int, start: str, count: str) -> None:
        """The products of some elements for so many tiles of sums, added to those of the parts before."""
        b, cells = r.b, list(_cells(down, across))

        def move(name: str) -> None:
            for a, c in cells:
                self._move(r, name, SUMS[a] + c, r.at(sums, "i32", (), (), SIDE * (a * self.across + c)), self.across)

        def zero() -> None:
            for a, c in cells:
                _call(r, "tilezero", f"i8 {SUMS[a] + c}")

        def term(t: str) -> None:
            for a in range(down):
                self._move(r, "tileloadd64", ROWS + a, r.at(left, "i32", (1,), [t], a * SIDE * self.line), self.line)
            for c in range(across):
                self._move(r, "tileloadd64", COLUMNS + c, r.at(self.panel, "i32", [BLOCK], [t], c * SIDE), BLOCK)
            for a, c in cells:
                _call(r, self.instruction, f"i8 {SUMS[a] + c}", f"i8 {ROWS + a}", f"i8 {COLUMNS + c}")

        if self.waits:
            b.when(b.emit(f"icmp eq i64 {start}, 0"), zero, lambda: move("tileloadd64"))
        else:
            zero()
        b.loop(count, SIDE, term)
        move("tilestored64")

    def _move(self, r: Routine, name: str, tile: int, place: str, step: int) -> None:
        """Between a tile and memory, whose rows are so many elements apart."""
        _call(r, name, f"i8 {tile}", f"ptr {place}", f"i64 {4 * step}")

    def _cell(self, r: Routine, place: Place, i: str, j: str) -> str:
        """Where the sums of a row and of columns from j on are, if those of `place` are in memory."""
        index = [difference(r, i, place.row), difference(r, j, place.column)]
        return r.at(self.waiting, self.sums, (self.across, 1), index)

    def _finish(self, r: Routine, place: Place) -> None:
        """The epilogue of sums in memory."""

        def load(i: str, j: str) -> str:
            return r.load_vector(self._cell(r, place, i, j), self.sums, 4, SIDE, SIDE)

        finish(r, self.epilogue, place, self.n, SIDE, load)


def _cells(down: int, across: int) -> Iterator[tuple[int, int]]:
    return ((a, c) for a in range(down) for c in range(across))


def _configure(r: Routine) -> None:
    """All tiles are whole. Byte 0 is the kind of configuration; from 16 on bytes of a row, in two; from 48 on rows."""
    sizes = [1, *[0] * 15, *[BYTES, 0] * 8, *[0] * 16, *[SIDE] * 8, *[0] * 8]
    place = r.stack(len(sizes), "i8")
    numbers = ", ".join(f"i8 {n}" for n in sizes)
    r.b.do(f"store {typed('i8', len(sizes))} <{numbers}>, ptr {place}, align 64")
    _call(r, "ldtilecfg", f"ptr {place}")


def _call(r: Routine, name: str, *args: str) -> None:
    r.declarations.add(f"declare void @llvm.x86.{name}({', '.join(arg.split()[0] for arg in args)})")
    r.b.do(f"call void @llvm.x86.{name}({', '.join(args)})")
