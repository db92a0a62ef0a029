"""Products of a few rows with a large matrix that is stored by rows, along which the sums run, as in decoding.

Such a product takes as long as reading the matrix. Memory is read fastest from several places at once, each of which
goes on where it was, since processors read ahead along each of them: so the rows of a chunk are cut into stretches, and
a turn takes one row of each. The sums of a row are the lanes of a vector; when a vector of rows of each stretch is
done, these are added up into one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

from ..labels import Work
from ..processor import Processor
from ..text.builder import STORED, computed, typed, widen
from ..text.routine import Routine
from ..text.sums import sum_with
from ..tuning import FAR_BYTES, STRETCHES
from ..values import View
from .blocks import Blocks, difference, shifted
from .dots import gathered
from .epilogue import Epilogue, WithEpilogue

LINE = 64  # bytes
CHAINS = 8  # of multiply-adds that wait for each other, so that all units have something to do


class ByRows(WithEpilogue):
    """out[..., i, j] = sum_k x[..., i, k] y[..., j, k], then an epilogue; both run along k, y of any type."""

    def __init__(self, cpu: Processor, x: View, y: View, epilogue: Epilogue, others: Sequence[View] = ()) -> None:
        super().__init__([x, y, *others], epilogue)
        self.x, self.y = x, y
        self.w = cpu.lanes(x.dtype.itemsize)
        *lead, self.m, self.k = x.shape
        self.n = y.shape[-2]
        moved = math.prod(lead) * self.n * y.strides[-2] * y.dtype.itemsize
        self.blocks = Blocks(tuple(lead), self.m, self.n, self.m, self.w, moved / FAR_BYTES)
        self.chunks = self.blocks.chunks
        self.stretches = max(1, min(STRETCHES, cpu.registers // 2 // self.m, self.blocks.columns // self.w))
        self.ways = max(1, CHAINS // (self.stretches * self.m))  # accumulators of a sum
        self.unit = max(2 * self.ways * self.w, LINE // y.dtype.itemsize)  # columns of a turn

    @property
    def work(self) -> Work:
        shape = (*self.y.shape[:-2], self.k, self.n)
        return self.followed(f"matmul {self.x.shape} @ {shape}", math.prod(self.x.shape) * self.n)

    def describe(self) -> str:
        return f"{super().describe()}\n{self.blocks.columns} {self.chunks} {self.stretches}"

    def emit(self, r: Routine) -> None:
        self.scalar, self.stored = computed(self.x.dtype), STORED[self.y.dtype]
        self.kind, self.size = typed(self.scalar, self.w), self.x.dtype.itemsize
        self.tile = r.stack(self.stretches * self.m * self.w * self.w, self.scalar)
        self.blocks.each(r, functools.partial(self._rectangle, r))

    def _rectangle(self, r: Routine, lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
        b, w = r.b, self.w
        x = r.at(r.pointer(self.x), self.scalar, self.x.strides[:-2], lead)
        self._prepare(r, x)
        rest = self.n % w
        whole = b.intrinsic("smin", "i64", column_end, str(self.n - rest))
        stretch = self._stretch(r, difference(r, column_end, column))

        def vector(j: str) -> None:
            first = r.linear((1, 1), (column, j))

            def one(t: str) -> None:
                places = [r.linear((1, 1, s), (first, t, stretch)) for s in range(self.stretches)]
                # a stretch may end earlier than the others
                places = [b.intrinsic("smin", "i64", place, str(self.n - 1)) for place in places]
                for at, total in enumerate(self._sums(r, x, lead, places)):
                    self._store(r, total, r.at(self.tile, self.scalar, (w,), [t], at * w * w))

            def finish(s: str) -> None:
                place = r.linear((1, 1), (first, b.emit(f"mul nsw i64 {s}, {stretch}")))
                totals = [self._total(r, s, i) for i in range(self.m)]

                def some(width: int) -> None:
                    for i, total in enumerate(totals):
                        scaled = self._scaled(r, total, place, width)
                        self.epilogue.emit(r, [*lead, str(i), place], scaled, w, width)

                b.when(b.emit(f"icmp slt i64 {place}, {whole}"), lambda: some(w))
                if rest:
                    last = b.emit(f"icmp eq i64 {place}, {self.n - rest}")
                    here = b.emit(f"icmp slt i64 {place}, {column_end}")
                    b.when(b.emit(f"and i1 {last}, {here}"), lambda: some(rest))

            b.loop(w, 1, one)
            b.loop(self.stretches, 1, finish)

        b.loop(stretch, w, vector)

    def _prepare(self, r: Routine, x: str) -> None:
        """What is done to rows of x before the matrix is read."""

    def _stretch(self, r: Routine, count: str) -> str:
        """How many rows of the matrix a stretch has, a multiple of the lanes."""
        size = self.stretches * self.w
        if count.isdigit():
            return str(-(-int(count) // size) * self.w)
        vectors = r.b.emit(f"udiv i64 {shifted(r, count, size - 1)}, {size}")
        return r.b.emit(f"mul nsw i64 {vectors}, {self.w}")

    def _total(self, r: Routine, s: str, i: int) -> str:
        """The sums of the rows of a stretch that were done, as one vector."""
        w = self.w
        tile = r.at(self.tile, self.scalar, (self.m * w * w,), [s], i * w * w)
        places = [r.at(tile, self.scalar, (), (), t * w) for t in range(w)]
        return gathered(r, [r.load_vector(place, self.scalar, self.size, w, w) for place in places], self.scalar)

    def _scaled(self, r: Routine, total: str, place: str, width: int) -> str:
        """What is done to sums at the end."""
        return total

    def _sums(self, r: Routine, x: str, lead: list[str], places: list[str]) -> list[str]:
        """Vectors of partial sums, of each of some rows of the matrix with each row of x."""
        return self._part(r, x, self._rows(r, lead, places), "0", self.k)

    def _rows(self, r: Routine, lead: list[str], places: list[str]) -> list[str]:
        *outer, step, _ = self.y.strides
        y = r.at(r.pointer(self.y), self.stored, outer, lead[len(lead) - len(outer) :])
        return [r.at(y, self.stored, (step,), [place]) for place in places]

    def _part(self, r: Routine, x: str, rows: list[str], start: str, length: int) -> list[str]:
        """The terms of so many columns from a start on, added up."""
        done, count = length - length % self.unit, len(rows) * self.m
        sums = ["zeroinitializer"] * (count * self.ways)

        def turn(k: str, sums: list[str]) -> list[str]:
            at = k if start == "0" else r.linear((1, 1), (start, k))
            return self._terms(r, x, rows, sums, at, self.unit)

        if done:
            terms = self.unit // self.w // self.ways
            sums = sum_with(r.b, self.kind, sums, done, self.unit, turn, turns=done // self.unit, terms=terms)
        if length > done:
            sums = self._terms(r, x, rows, sums, shifted(r, start, done), length - done)
        totals = sums[:count]
        for way in range(1, self.ways):
            more = sums[way * count : (way + 1) * count]
            totals = [r.b.emit(f"fadd {self.kind} {a}, {b}") for a, b in zip(totals, more, strict=True)]
        return totals

    def _terms(self, r: Routine, x: str, rows: list[str], sums: list[str], k: str, length: int) -> list[str]:
        """Add the terms of at most `unit` columns."""
        made, count = list(sums), len(rows) * self.m
        numbers = [self._numbers(r, row, k, length) for row in rows]
        for piece, first in enumerate(range(0, length, self.w)):
            lanes = min(self.w, length - first)
            found = [next(each) for each in numbers]
            for i in range(self.m):
                place = r.at(x, self.scalar, self.x.strides[-2:], [str(i), k], first)
                left = r.load_vector(place, self.scalar, self.size, self.w, lanes)
                for c, right in enumerate(found):
                    at = piece % self.ways * count + c * self.m + i
                    made[at] = r.b.intrinsic("fmuladd", self.kind, left, right, made[at])
        return made

    def _numbers(self, r: Routine, row: str, k: str, length: int) -> Iterator[str]:
        """The numbers of so many columns of a row from k on, as vectors."""
        for first in range(0, length, self.w):
            place = r.at(row, self.stored, (1,), [k], first)
            lanes = min(self.w, length - first)
            found = r.load_vector(place, self.stored, self.y.dtype.itemsize, self.w, lanes)
            yield self._number(r, found)

    def _number(self, r: Routine, found: str) -> str:
        return widen(r.b, found, self.y.dtype, self.w)

    def _store(self, r: Routine, value: str, place: str) -> None:
        r.store_vector(value, place, self.scalar, self.size, self.w, self.w)
