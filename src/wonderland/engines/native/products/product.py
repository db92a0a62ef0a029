"""Matrix products: a small block of the result stays in registers while the sum runs.

A block of r rows and c vectors takes r * c accumulators; one step of the sum loads c vectors of y and r numbers of x,
each spread over a vector, and does r * c multiply-adds. With enough of them the loads hide behind the arithmetic.
The blocks of one panel of columns follow each other, so that the panel of y stays in the first-level cache; where its
rows lie badly in memory for that, the first block leaves them side by side, as it reads them, for the others. Long sums
are cut so that what a panel needs fits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from ....ir.sizes import Extent, VaryingError
from ..labels import Work
from ..processor import Processor
from ..text.builder import STORED, computed, typed
from ..text.routine import Routine
from ..tuning import (
    COPIED_ROWS,
    CYCLES,
    FAR_ROWS,
    FETCHED_ROWS,
    GATHERED,
    INLINE,
    LONGEST,
    NEAR_BYTES,
    PANEL,
)
from ..values import Shape, View
from .ahead import LINE, Ahead
from .blocks import Blocks, Place, difference, shifted, stepped
from .epilogue import Epilogue, WithEpilogue, finish
from .model import SETS, block, lanes, places_of
from .packing import Panels, transpose

PAGE = 4096  # bytes
OPEN = 256  # terms of a sum over a batch that are added in one go
EVEN = 240  # rows, a multiple of those of most blocks
WAITING = 8  # multiply-adds that go on at a time: fewer accumulators wait for their own results

Terms = Callable[[str, "list[str] | None"], list[str]]  # accumulators with one more term
Vectors = Callable[[str], list[str]]  # row k of a panel of y
Rows = Callable[..., None]  # a block of so many rows from a row on, of which some may be behind the last one


class Product(WithEpilogue):
    """out[..., i, j] = sum_k x[..., i, k] y[..., k, j], then an epilogue; y steps through memory along j.

    When it is turned, the epilogue is that of the transposed result: the sums are transposed on the way to it. `panels`
    tells that y lies in panels (packing.py).
    """

    any_size = True  # see general.py

    def __init__(
        self,
        cpu: Processor,
        x: View,
        y: View,
        epilogue: Epilogue,
        turned: bool = False,
        panels: Panels | None = None,
    ) -> None:
        super().__init__([x, y], epilogue)
        self.x, self.y, self.turned, self.panels = x, y, turned, panels
        self.w, self.size = lanes(cpu, x), x.dtype.itemsize
        (m, k), n = x.shape[-2:], y.shape[-1]
        self.m, self.n, self.k = m, n, k
        self.open = isinstance(k, Extent)  # whether the number of terms is known at run time alone
        if isinstance(n, Extent) or (turned and isinstance(m, Extent)):
            raise VaryingError("a product has the batch in its columns")
        # x is gathered from memory where a column of it is a row there, and far from the next; a batch may have few
        tall, terms = int(m), int(k)  # where sizes vary, those that choices are made for
        turns = abs(x.strides[-1]) * self.size >= (PAGE if self.open else 256) and x.strides[-2] == 1
        beside = cpu.registers // 4  # rows of x that are gathered beside each other
        self.gathered = turns and m >= beside and n >= 4 * self.w and k >= 64 and not isinstance(m, Extent)
        even = -(-tall // EVEN) * EVEN if isinstance(m, Extent) else tall  # blocks of a batch are those of a large one
        cycles, self.rows, self.vectors = block(
            cpu.registers,
            even,
            -(-n // self.w),
            terms,
            beside if self.gathered else 4 if turned and m >= self.w else 1,
            panels.width // self.w if panels else 0,
            # more is hardly faster, and longer to compile
            2 * WAITING if isinstance(m, Extent) else cpu.registers,
        )
        cycles *= tall / even
        self.gathered = self.gathered and self.rows == beside
        self.width = self.vectors * self.w
        count = int(math.prod(x.shape[:-2]))
        moved = count * (tall * terms + terms * n + tall * n * len(epilogue.targets)) * self.size / NEAR_BYTES
        step = math.lcm(self.rows, self.w) if turned else self.rows
        self.blocks = Blocks(x.shape[:-2], m, n, step, self.width, max(count * cycles / CYCLES, moved))
        self.chunks = self.blocks.chunks
        height = self.blocks.rows
        panel = terms * self.width * self.size
        near = int(PANEL * cpu.first_cache)
        if x.strides[-1] != 1 and not self.gathered:
            near //= 2  # columns of x take more of the cache
        cuts = -(-panel // near) if panel > 2 * near and height > 2 * self.rows else 1
        far = abs(y.strides[-2]) * self.size
        spread = far >= FAR_ROWS and far * terms >= cpu.second_cache and self.blocks.columns > self.width
        if spread and height < COPIED_ROWS and not panels:
            cuts = max(cuts, -(-terms // FETCHED_ROWS))
        cuts = max(cuts, -(-terms // max(LONGEST, math.isqrt(terms))))
        self.cut = terms if cuts == 1 else -(-terms // (8 * cuts)) * 8  # terms of the sum done in one go
        if self.open:
            self.cut = min(self.cut, OPEN) if cuts > 1 else OPEN
        self.apart = self.cut + self.w // self.rows  # of the rows of gathered x, a little more than they need
        self.gathered = self.gathered and height * self.apart * self.size <= GATHERED
        self.ways = cpu.first_cache // (SETS * LINE)  # lines in a set
        self.copied = self._is_copied(int(height))  # panels of y, to memory of the chunk's own
        self.tiled = turned or self.cut < k or self.open or epilogue.weight * self.rows * self.vectors > INLINE
        # blocks come too quickly after each other for the processor to find out by itself that x is read along its rows
        long = x.strides[-1] == 1 and not self.gathered and height >= 2 * self.rows
        long = long and not isinstance(m, Extent)  # there, blocks are small, and it is no faster
        near_rows = 2 * self.rows <= self.ways * places_of(abs(x.strides[-2]) * self.size)
        below = x.strides[-2:] if long and near_rows else None
        after = [] if self.tiled else [view for view in epilogue.sources if view.shape == epilogue.hole.shape]
        self.ahead = Ahead(y, panels, self.blocks, self.cut, LINE // self.size, below, after)

    def _is_copied(self, height: int) -> bool:
        """Whether chunks of so many rows bring each panel of y together."""
        return height >= COPIED_ROWS and not self.panels and self._crowded()

    def _crowded(self) -> bool:
        """Whether the rows of a panel of y need more pages than the processor remembers, or fall on too few places of
        the first-level cache."""
        step, cut = abs(self.y.strides[-2]) * self.size, min(self.cut, int(self.k))
        if step * cut > 48 * 4096:
            return True
        if step % LINE:
            return False
        places = places_of(step)
        return cut / places > self.ways // min(self.vectors, SETS // places)

    @property
    def work(self) -> Work:
        return self.followed(f"matmul {self.x.shape} @ {self.y.shape}", math.prod(self.x.shape) * self.n)

    def describe(self) -> str:
        return f"{super().describe()}\n{self.turned} {self.panels}"

    def emit(self, r: Routine) -> None:
        self.scalar, self.stored = computed(self.x.dtype), STORED[self.y.dtype]
        self.kind = typed(self.scalar, self.w)
        self.across = -(-self.blocks.columns // self.width) * self.width  # columns of the tile
        if self.tiled:
            self.tile = r.stack((self.blocks.rows + max(self.rows, self.w)) * self.across, self.scalar)
        if self.copied:
            self.near = r.stack(self.cut * self.width, self.scalar)
        if self.gathered:
            self.left = r.stack(-(-self.blocks.rows // self.rows) * self.rows * self.apart, self.scalar)
        self.blocks.each(r, functools.partial(self._rectangle, r))

    def _rectangle(self, r: Routine, lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
        x = r.at(r.pointer(self.x), self.scalar, self.x.strides[:-1], [*lead, row])
        y = r.at(r.pointer(self.y), self.stored, self.y.strides[:-2], lead)
        place = Place(lead, row, row_end, column, column_end)
        if self.cut == self.k and not self.open:
            self._part(r, place, x, y, "0")
        else:
            if not self.open:
                self._clear(r, place)
            r.b.loop(r.size(self.k), self.cut, lambda k: self._part(r, place, x, y, k))
        if self.turned:
            self._finish_turned(r, place)
        elif self.tiled:
            self._finish(r, place)

    def _part(self, r: Routine, place: Place, x: str, y: str, k: str) -> None:
        """All of a rectangle, for the terms of the sum from k on."""
        length = r.size(self.k)
        if self.cut < self.k or self.open:
            left = r.b.emit(f"sub nsw i64 {length}, {k}")
            length = (
                str(self.cut)
                if not self.open and self.k % self.cut == 0
                else r.b.intrinsic("smin", "i64", left, str(self.cut))
            )
        x = r.at(x, self.scalar, self.x.strides[-1:], [k])
        y = r.at(y, self.stored, self.y.strides[-2:-1], [k])
        x_steps = self.x.strides[-2:]
        line_at = functools.partial(r.linear, x_steps[:1])
        if self.gathered:
            line_at = functools.partial(self._apart, r, length)
            self._gather(r, place, x, length, line_at)
            x, x_steps = self.left, (1, self.rows)

        def panel(j: str, columns: int) -> None:
            right = self._column(r, y, j)
            following = self.ahead.of_panel(r, place, y, j, k)

            def rows(vectors: Vectors, i: str, height: int, last: bool = False) -> None:
                lines = self._lines(r, place, i, height) if last else [i]
                starts = [line_at([difference(r, line, place.row)]) for line in lines]
                left = [r.at(x, self.scalar, (1,), [start]) for start in starts]
                terms = functools.partial(self._terms, r, left, x_steps, height, vectors)
                below = r.at(x, self.scalar, (1,), [line_at([difference(r, shifted(r, i, height), place.row)])])
                fetch = self.ahead.of_block(r, place, i, j, below, following)
                cells = [self._cell(r, place, i, j, a, c) for a in range(height) for c in range(0, columns, self.w)]
                sums = self._sums(r, cells, k, length, terms, fetch)
                for t, (cell, register) in enumerate(zip(cells, sums, strict=True)):
                    if self.tiled:
                        r.store_vector(register, cell, self.scalar, self.size, self.w, self.w)
                    else:
                        a, c = divmod(t, -(-columns // self.w))
                        line = shifted(r, i, a)
                        index = [*place.lead, line, shifted(r, j, c * self.w)]
                        count = min(self.w, columns - c * self.w)
                        store = functools.partial(self.epilogue.emit, r, index, register, self.w, count)
                        if last and a:
                            r.b.when(r.b.emit(f"icmp slt i64 {line}, {place.row_end}"), store)
                        else:
                            store()

            read = functools.partial(self._vectors, r, right, columns)
            first = functools.partial(self._brought, r, right, columns, k, j)
            again = functools.partial(self._kept, r, columns)
            if self.copied:
                self._down(r, place, functools.partial(rows, again), functools.partial(rows, first))
            else:
                self._down(r, place, functools.partial(rows, read))

        stepped(r, place.column, place.column_end, self.width, self.n, panel)

    def _down(self, r: Routine, place: Place, rows: Rows, first: Rows | None = None) -> None:
        """Through the rows of a rectangle, of which there may be another way to do the first ones."""
        start, varies = place.row, isinstance(self.m, Extent)
        few = min(self.rows, -(-WAITING // self.vectors))  # where it is known at run time alone how many are left
        if first and varies:
            first(start, few, True)
            start = r.b.intrinsic("smin", "i64", shifted(r, start, few), place.row_end)
        elif first:  # each rectangle begins with a whole block, see blocks.py
            first(start, self.rows)
            start = shifted(r, start, self.rows)
        if not varies:
            stepped(r, start, place.row_end, self.rows, self.m, rows)
            return
        rest = r.b.emit(f"urem i64 {difference(r, place.row_end, start)}, {self.rows}")
        whole = difference(r, place.row_end, rest)
        r.b.loop(whole, self.rows, lambda i: rows(i, self.rows), start)
        if self.rows > 1:
            r.b.loop(place.row_end, few, lambda i: rows(i, few, True), whole)

    def _lines(self, r: Routine, place: Place, i: str, height: int) -> list[str]:
        """The rows of a block that may reach beyond the last one, which is read again then."""
        last = shifted(r, place.row_end, -1)
        return [i, *[r.b.intrinsic("smin", "i64", shifted(r, i, a), last) for a in range(1, height)]]

    def _cell(self, r: Routine, place: Place, i: str, j: str, a: int, c: int) -> str:
        """Where the sums of row i + a and columns from j + c on wait."""
        if not self.tiled:
            return ""
        index = [difference(r, i, place.row), difference(r, j, place.column)]
        return r.at(self.tile, self.scalar, (self.across, 1), index, a * self.across + c)

    def _sums(
        self, r: Routine, cells: list[str], first: str, length: str, terms: Terms, fetch: Callable[[str], None] | None
    ) -> list[str]:
        """The accumulators of a block after a part of the sum, whose first term has a number.

        `fetch(k)` asks for what the next block needs of the terms from k on, a line of the cache for each row.
        """
        b, count = r.b, len(cells)
        if self.k == 1:
            return terms("0", None)
        # small blocks need several accumulators for each place, or they wait for their own results; blocks at the edges
        # have as many as the others, so that a row's sums do not depend on where it stands
        ways = min(WAITING, max(1, WAITING // (self.rows * self.vectors)), WAITING if self.open else self.k)
        carried = [(self.kind, "zeroinitializer")] * (ways * count)

        def step(k: str, names: list[str]) -> list[str]:
            made: list[str] = []
            for way in range(ways):
                made += terms(shifted(r, k, way), names[way * count : (way + 1) * count])
            return made

        def line(k: str, names: list[str]) -> list[str]:
            assert fetch is not None
            fetch(k)
            return b.loop_with([(self.kind, name) for name in names], shifted(r, k, terms_of_line), ways, step, k)

        whole = difference(r, length, _remainder(r, length, ways))
        terms_of_line = LINE // self.size
        lines = difference(r, whole, _remainder(r, whole, terms_of_line)) if fetch else "0"
        if fetch:
            carried = [(self.kind, name) for name in b.loop_with(carried, lines, terms_of_line, line)]
        names = b.loop_with(carried, whole, ways, step, lines)
        sums = names[:count]
        for way in range(1, ways):
            sums = self._added(r, sums, names[way * count : (way + 1) * count])
        if length.isdigit():
            for k in range(int(whole), int(length)):
                sums = terms(str(k), sums)
        elif ways > 1:
            sums = b.loop_with([(self.kind, s) for s in sums], length, 1, terms, whole)
        if self.open:  # before the first part, nothing is there
            some = b.spread(b.emit(f"icmp ne i64 {first}, 0"), "i1", self.w)
            before = [r.load_lanes(cell, self.scalar, self.size, self.w, some) for cell in cells]
            sums = self._added(r, before, sums)
        elif self.cut < self.k:
            before = [r.load_vector(cell, self.scalar, self.size, self.w, self.w) for cell in cells]
            sums = self._added(r, before, sums)
        return sums

    def _added(self, r: Routine, left: list[str], right: list[str]) -> list[str]:
        return [r.b.emit(f"fadd {self.kind} {s}, {t}") for s, t in zip(left, right, strict=True)]

    def _terms(
        self,
        r: Routine,
        x: list[str],
        steps: Shape,
        height: int,
        vectors: Vectors,
        k: str,
        sums: list[str] | None,
    ) -> list[str]:
        """One term for every element of a block. `x`: where its rows are, or the first of them."""
        b, row, made = r.b, vectors(k), []
        x = [r.at(one, self.scalar, steps[1:], [k]) for one in x]
        for a in range(height):
            place = x[a] if len(x) > 1 else r.at(x[0], self.scalar, [], [], a * steps[0])
            one = b.spread(b.emit(f"load {self.scalar}, ptr {place}, align {self.size}"), self.scalar, self.w)
            if sums is None:
                made += [b.emit(f"fmul {self.kind} {one}, {v}") for v in row]
            else:
                mine = sums[a * len(row) : (a + 1) * len(row)]
                made += [b.intrinsic("fmuladd", self.kind, one, v, s) for v, s in zip(row, mine, strict=True)]
        return made

    # --- memory of the chunk's own

    def _apart(self, r: Routine, length: str, index: Sequence[str]) -> str:
        """Where a row of gathered x begins. A sum over a batch may be much shorter than what there is room for."""
        if not self.open:
            return r.linear([self.apart], index)
        return r.b.emit(f"mul nsw i64 {index[0]}, {shifted(r, length, self.apart - self.cut)}")

    def _gather(self, r: Routine, place: Place, x: str, length: str, line_at: Callable[[Sequence[str]], str]) -> None:
        """Bring the columns of x that the rectangle needs together."""

        def column(k: str) -> None:
            source = r.at(x, self.scalar, self.x.strides[-1:], [k])
            target = r.at(self.left, self.scalar, [self.rows], [k])

            def move(i: str, height: int) -> None:
                inside = difference(r, i, place.row)
                origin = r.at(source, self.scalar, (1,), [inside])
                got = r.load_vector(origin, self.scalar, self.size, self.rows, height)
                at = r.at(target, self.scalar, (1,), [line_at([inside])])
                r.store_vector(got, at, self.scalar, self.size, self.rows, self.rows)

            stepped(r, place.row, place.row_end, self.rows, self.m, move)

        r.b.loop(length, 1, column)

    def _column(self, r: Routine, y: str, j: str) -> str:
        """Where a column begins that a panel begins with."""
        return r.at(y, self.stored, (self.panels.rows if self.panels else 1,), [j])

    def _numbers(self, r: Routine, y: str, c: int, columns: int) -> str:
        """The vector of y that is c columns behind a place from which on there are so many, as it is computed with."""
        here = self.w if self.panels else min(self.w, columns - c)
        return r.load_vector(r.at(y, self.stored, [], [], c), self.stored, self.y.dtype.itemsize, self.w, here)

    def _scaled(self, r: Routine, number: str, k: str, j: str, n: int) -> str:
        """What becomes of n numbers of row k, from column j on, before they are multiplied."""
        return number

    def _vectors(self, r: Routine, y: str, columns: int, k: str) -> list[str]:
        """Row k of a panel that begins at y."""
        y = r.at(y, self.stored, self.y.strides[-2:-1], [k])
        return [self._numbers(r, y, c, columns) for c in range(0, columns, self.w)]

    def _brought(self, r: Routine, y: str, columns: int, start: str, j: str, k: str) -> list[str]:
        """The same for the panel of column j and the terms from a first one on; it is left near for other blocks."""
        term, found = r.linear((1, 1), (start, k)), []
        for c, vector in zip(range(0, columns, self.w), self._vectors(r, y, columns, k), strict=True):
            found.append(self._scaled(r, vector, term, shifted(r, j, c), min(self.w, columns - c)))
            r.store_vector(found[-1], self._place(r, k, c), self.scalar, self.size, self.w, self.w)
        return found

    def _kept(self, r: Routine, columns: int, k: str) -> list[str]:
        places = [self._place(r, k, c) for c in range(0, columns, self.w)]
        return [r.load_vector(place, self.scalar, self.size, self.w, self.w) for place in places]

    def _place(self, r: Routine, k: str, c: int) -> str:
        return r.at(self.near, self.scalar, [self.width], [k], c)

    def _clear(self, r: Routine, place: Place) -> None:
        def line(i: str) -> None:
            start = self._cell(r, place, i, place.column, 0, 0)

            def one(j: str) -> None:
                at = r.at(start, self.scalar, (1,), [j])
                r.store_vector("zeroinitializer", at, self.scalar, self.size, self.w, self.w)

            r.b.loop(self.across, self.w, one)

        r.b.loop(place.row_end, 1, line, place.row)

    def _finish(self, r: Routine, place: Place) -> None:
        """The epilogue of a rectangle whose sums wait in the tile."""

        def load(i: str, j: str) -> str:
            return r.load_vector(self._cell(r, place, i, j, 0, 0), self.scalar, self.size, self.w, self.w)

        finish(r, self.epilogue, place, self.n, self.w, load)

    def _finish_turned(self, r: Routine, place: Place) -> None:
        """The same for the transposed result: squares of the tile are transposed in registers."""
        square = r.stack(self.w * self.w, self.scalar)

        def rows(i: str, height: int) -> None:
            def columns(j: str) -> None:
                lines = [
                    r.load_vector(self._cell(r, place, i, j, a, 0), self.scalar, self.size, self.w, self.w)
                    for a in range(self.w)
                ]
                for c, line in enumerate(transpose(r, lines, self.scalar)):
                    r.store_vector(line, r.at(square, self.scalar, [], [], c * self.w), self.scalar, 64, self.w, self.w)
                count = r.b.intrinsic("smin", "i64", difference(r, place.column_end, j), str(self.w))

                def one(c: str) -> None:
                    sums = r.load_vector(r.at(square, self.scalar, [self.w], [c]), self.scalar, 64, self.w, self.w)
                    self.epilogue.emit(r, [*place.lead, r.linear((1, 1), (j, c)), i], sums, self.w, height)

                r.b.loop(count, 1, one)

            r.b.loop(place.column_end, self.w, columns, place.column)

        stepped(r, place.row, place.row_end, self.w, self.m, rows)


def _remainder(r: Routine, length: str, divisor: int) -> str:
    """length modulo a power of two."""
    if length.isdigit() or divisor == 1:
        return str(int(length) % divisor) if divisor > 1 else "0"
    return r.b.emit(f"and i64 {length}, {divisor - 1}")
