"""Products of a few rows with a large matrix, as in decoding: its rows are read one after the other, once.

Such a product takes as long as reading the matrix. So the sums of its columns wait in the first-level cache, and some
rows of the matrix at a time are added to them. These lie apart, and each is followed by the one behind it in memory, so
that the processor reads ahead along all of them.
"""

from __future__ import annotations

import functools
import math

from ..labels import Work
from ..processor import Processor
from ..text.builder import STORED, computed, typed, widen
from ..text.routine import Routine
from ..tuning import FAR_BYTES, FEW_ROWS, LARGE, LONGEST, STREAMED, STREAMED_CHUNK, STREAMS
from ..values import View
from .blocks import Blocks, difference, evenly, shifted, stepped
from .epilogue import Epilogue, WithEpilogue


def few_rows(cpu: Processor, x: View, y: View) -> bool:
    """Whether a product takes as long as reading y."""
    (m, k), n = x.shape[-2:], y.shape[-1]
    large = k * n * y.dtype.itemsize >= LARGE and n >= 16 * cpu.lanes(4) and k >= 4 * STREAMS
    return m <= FEW_ROWS and large


class Streamed(WithEpilogue):
    """out[..., i, j] = sum_k x[..., i, k] y[..., k, j], then an epilogue; y, of any float type, runs along j."""

    def __init__(self, cpu: Processor, x: View, y: View, epilogue: Epilogue) -> None:
        super().__init__([x, y], epilogue)
        self.x, self.y = x, y
        self.size = 8 if computed(x.dtype) == "double" else 4
        self.w = cpu.lanes(self.size)
        (self.m, self.k), self.n = x.shape[-2:], y.shape[-1]
        self.rows = max(2, STREAMS // self.m)  # of y that are added at a time
        self.width = 4 * self.w  # columns that are worked on together
        moved = math.prod(x.shape[:-2]) * self.k * self.n * y.dtype.itemsize
        self.blocks = Blocks(x.shape[:-2], 1, self.n, 1, self.width, moved / FAR_BYTES)
        # the processor reads ahead along a row: rows are cut only where the sums would not find place
        self.blocks.columns = evenly(self.n, -(-self.m * self.n * self.size // STREAMED), self.width)
        self.chunks = self.blocks.chunks
        self.pieces = min(moved // STREAMED_CHUNK, 16)  # how many chunks are worth it
        cuts = -(-self.k // LONGEST)
        # terms that an accumulator takes
        self.cut = self.k if cuts == 1 else -(-self.k // (cuts * self.rows)) * self.rows

    @property
    def work(self) -> Work:
        return self.followed(f"matmul {self.x.shape} @ {self.y.shape}", math.prod(self.x.shape) * self.n)

    def emit(self, r: Routine) -> None:
        self.scalar = computed(self.x.dtype)
        self.kind, self.stored = typed(self.scalar, self.w), STORED[self.y.dtype]
        self.across = -(-self.blocks.columns // self.width) * self.width
        # the sums, and those of a part if there are several
        self.tiles = [r.stack(self.m * self.across, self.scalar) for _ in range(1 + (self.cut < self.k))]
        self.blocks.each(r, functools.partial(self._stretch, r))

    def _stretch(self, r: Routine, lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
        x = r.at(r.pointer(self.x), STORED[self.x.dtype], self.x.strides[:-2], lead)
        y = r.at(r.pointer(self.y), self.stored, (*self.y.strides[:-2], 1), [*lead, column])
        count = difference(r, column_end, column)
        self._clear(r, self.tiles[0])
        if self.cut == self.k:
            self._part(r, self.tiles[0], x, y, "0", str(self.k), count)
        else:
            r.b.loop(self.k, self.cut, lambda k: self._later(r, x, y, k, count))

        def finish(j: str, n: int) -> None:
            for i in range(self.m):
                sums = self._load(r, self._at(r, self.tiles[0], i, difference(r, j, column)))
                self.epilogue.emit(r, [*lead, str(i), j], sums, self.w, n)

        stepped(r, column, column_end, self.w, self.n, finish)

    def _later(self, r: Routine, x: str, y: str, k: str, count: str) -> None:
        """A part of the sums, which is added to the others."""
        whole, part = self.tiles
        self._clear(r, part)
        self._part(r, part, x, y, k, r.b.intrinsic("smin", "i64", shifted(r, k, self.cut), str(self.k)), count)

        def add(j: str) -> None:
            here = self._at(r, whole, 0, j)
            both = self._load(r, here), self._load(r, self._at(r, part, 0, j))
            self._store(r, r.b.emit(f"fadd {self.kind} {both[0]}, {both[1]}"), here)

        r.b.loop(self.m * self.across, self.w, add)

    def _part(self, r: Routine, tile: str, x: str, y: str, first: str, last: str, count: str) -> None:
        """Add the terms from the first to the last: several rows of y at a time, then those that are left."""
        rest = self.k % self.rows
        whole = last
        if rest:
            whole = r.b.intrinsic("smin", "i64", last, str(self.k - rest))
        apart = self._apart(r, difference(r, whole, first))

        def together(k: str) -> None:
            places = [r.linear((1, 1, t), (first, k, apart)) for t in range(self.rows)]
            self._rows(r, tile, x, y, places, count)

        r.b.loop(apart, 1, together)
        if rest:
            r.b.loop(last, 1, lambda k: self._rows(r, tile, x, y, [k], count), whole)

    def _apart(self, r: Routine, terms: str) -> str:
        """How far apart the rows are that are added at a time."""
        return str(int(terms) // self.rows) if terms.isdigit() else r.b.emit(f"udiv i64 {terms}, {self.rows}")

    def _rows(self, r: Routine, tile: str, x: str, y: str, places: list[str], count: str) -> None:
        """Add rows of y times numbers of x to the sums of all columns."""
        b, item, rows = r.b, self.y.dtype.itemsize, len(places)
        numbers = []
        for i in range(self.m):
            for row in places:
                place = r.at(x, self.scalar, self.x.strides[-2:], [str(i), row])
                one = b.emit(f"load {self.scalar}, ptr {place}, align {self.size}")
                numbers.append(b.spread(one, self.scalar, self.w))
        lines = [r.at(y, self.stored, self.y.strides[-2:-1], [row]) for row in places]

        def columns(j: str, wide: int) -> None:
            for c in range(0, wide, self.w):
                n = min(self.w, wide - c)
                places = [self._at(r, tile, i, shifted(r, j, c)) for i in range(self.m)]
                sums = [self._load(r, place) for place in places]
                for t, line in enumerate(lines):
                    found = r.load_vector(r.at(line, self.stored, (1,), [j], c), self.stored, item, self.w, n)
                    piece = widen(b, found, self.y.dtype, self.w)
                    sums = [
                        b.intrinsic("fmuladd", self.kind, numbers[i * rows + t], piece, s) for i, s in enumerate(sums)
                    ]
                for place, sum_ in zip(places, sums, strict=True):
                    self._store(r, sum_, place)

        whole = r.b.emit(f"and i64 {count}, {-self.width}") if self.n % self.width else count
        b.loop(whole, self.width, lambda j: columns(j, self.width))
        if whole != count:  # at the end of the axis
            b.loop(count, self.n % self.width, lambda j: columns(j, self.n % self.width), whole)

    # --- the sums

    def _at(self, r: Routine, tile: str, row: int, column: str) -> str:
        return r.at(tile, self.scalar, (1,), [column], row * self.across)

    def _clear(self, r: Routine, tile: str) -> None:
        r.b.loop(self.m * self.across, self.w, lambda j: self._store(r, "zeroinitializer", self._at(r, tile, 0, j)))

    def _load(self, r: Routine, place: str) -> str:
        return r.load_vector(place, self.scalar, self.size, self.w, self.w)

    def _store(self, r: Routine, value: str, place: str) -> None:
        r.store_vector(value, place, self.scalar, self.size, self.w, self.w)
