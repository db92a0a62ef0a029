"""Small matrices in a routine's own memory: bringing them there, multiplying them, reducing their rows.

A tile is kept in the dtype of sums, its rows padded to whole vectors. Where the rows of a view end within a tile, the
last one is repeated, and columns are filled with zeros, so that no loop needs a variant for the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from ..products.packing import shuffle, transpose
from ..text.builder import STORED, Builder, computed, literal, narrow, splat, typed, widen
from ..text.functions.vector import Vector, where
from ..text.routine import Routine
from ..tuning import BLOCK_VECTORS
from ..values import View

Combine = Callable[[Vector, Vector], Vector]
Block = Callable[[str, str, int, int], None]  # the first row, the first vector, and how many of each


class Tile(NamedTuple):
    """A matrix whose rows are `step` elements apart."""

    pointer: str
    step: int


class Tiles:
    """Operations on tiles and on vectors of w elements of one dtype."""

    def __init__(self, r: Routine, view: View) -> None:
        self.r = r
        self.scalar = computed(view.dtype)
        self.size = 8 if self.scalar == "double" else 4
        self.w = r.cpu.lanes(self.size)
        self.kind = typed(self.scalar, self.w)

    @property
    def b(self) -> Builder:
        return self.r.b

    # --- memory

    def tile(self, rows: int, columns: int) -> Tile:
        step = -(-columns // self.w) * self.w
        return Tile(self.r.stack(rows * step, self.scalar), step)

    def at(self, tile: Tile, row: str = "0", column: str = "0") -> str:
        return self.r.at(tile.pointer, self.scalar, (tile.step, 1), (row, column))

    def vector(self, name: str) -> Vector:
        return Vector(self.b, name, self.scalar, self.w)

    def number(self, value: float) -> Vector:
        return self.vector(splat(literal(value, self.scalar), self.scalar, self.w))

    def load(self, pointer: str) -> Vector:
        return self.vector(self.r.load_vector(pointer, self.scalar, self.size, self.w, self.w))

    def store(self, value: Vector, pointer: str) -> None:
        self.r.store_vector(value.name, pointer, self.scalar, self.size, self.w, self.w)

    def spread(self, pointer: str, offset: int = 0) -> Vector:
        """One number of memory in all lanes."""
        place = self.r.at(pointer, self.scalar, (), (), offset)
        one = self.b.emit(f"load {self.scalar}, ptr {place}, align {self.size}")
        return self.vector(self.b.spread(one, self.scalar, self.w))

    def first(self, count: str, code: str = "slt") -> Vector:
        """Which lanes are the first so many, or, by another comparison, the others."""
        lanes = Vector(self.b, "<" + ", ".join(f"i32 {t}" for t in range(self.w)) + ">", "i32", self.w)
        left = count if count.isdigit() else self.b.emit(f"trunc i64 {count} to i32")
        return lanes.compare(code, lanes.like(self.b.spread(left, "i32", self.w)))

    def fill(self, tile: Tile, rows: int, value: float = 0.0) -> None:
        self.b.loop(rows * tile.step, self.w, lambda i: self.store(self.number(value), self.at(tile, "0", i)))

    def unfinite(self, tile: Tile, rows: str, vectors: int) -> str:
        """Whether an element of the first rows, of so many vectors, is infinite or not a number."""
        some = next(n for n in (4, 3, 2, 1) if vectors % n == 0)  # sums that do not wait for each other

        def row(i: str, found: list[str]) -> list[str]:
            def part(j: str, found: list[str]) -> list[str]:
                values = [
                    self.load(self.r.at(tile.pointer, self.scalar, (tile.step, 1), (i, j), c * self.w))
                    for c in range(some)
                ]
                return [self.nought(value, self.vector(sum_)).name for value, sum_ in zip(values, found, strict=True)]

            if vectors == some:
                return part("0", found)
            return self.b.loop_with([(self.kind, name) for name in found], vectors * self.w, some * self.w, part)

        found = self.b.loop_with([(self.kind, "zeroinitializer")] * some, rows, 1, row)
        return self.spoiled([self.vector(name) for name in found])

    def nought(self, value: Vector, sum_: Vector) -> Vector:
        """The sum plus 0 times the value, which is NaN unless the value is finite."""
        return self.vector(self.b.intrinsic("fmuladd", self.kind, value.name, self.number(0.0).name, sum_.name))

    def spoiled(self, sums: list[Vector]) -> str:
        """Whether such sums have met what is not finite, which is rare."""
        nan = functools.reduce(total, sums).isnan()
        bits = self.b.emit(f"bitcast {nan.kind} {nan.name} to i{self.w}")
        self.b.declarations.add("declare i1 @llvm.expect.i1(i1, i1)")
        some = self.b.emit(f"icmp ne i{self.w} {bits}, 0")
        return self.b.emit(f"call i1 @llvm.expect.i1(i1 {some}, i1 false)")

    # --- between views and tiles

    def rows(self, view: View, lead: list[str], first: str, count: str, tile: Tile, scale: float = 1.0) -> None:
        """tile[i] = scale view[..., first + i, :], for `count` rows."""

        def body(names: list[str]) -> None:
            source, count, last, scale, target = names
            factor = self.vector(self.b.spread(scale, self.scalar, self.w))

            def row(i: str) -> None:
                place = self._line(view, source, i, last)

                def part(j: str, w: int, n: int) -> None:
                    value = self.vector(self.piece(view, place, j, n)) * factor
                    self.store(value, self.r.at(target, self.scalar, (tile.step, 1), (i, j)))

                self._vectors(view.shape[-1], part)

            self.b.loop(count, 1, row)

        args = [
            *self._lines(view, lead, first, count),
            (self.scalar, literal(scale, self.scalar)),
            ("ptr", tile.pointer),
        ]
        self.r.part(("rows", *self._kind(view), tile.step), args, body)

    def columns(self, view: View, lead: list[str], first: str, count: str, tile: Tile, scale: float = 1.0) -> None:
        """tile[:, i] = scale view[..., first + i, :], for `count` rows of the view."""

        # squares of few elements, beside each other: register t holds pieces of rows t, t + c, t + 2c, ...
        c = min(4, self.w)

        def body(names: list[str]) -> None:
            source, count, last, scale, target = names
            factor = self.vector(self.b.spread(scale, self.scalar, self.w))

            def square(i: str) -> None:
                places = [self._line(view, source, self.r.linear((1,), (i,), t), last) for t in range(self.w)]

                def part(j: str, w: int, n: int) -> None:
                    pieces = [self.piece(view, place, j, n, c) for place in places]
                    lines = transpose(self.r, [self._joined(pieces[t::c], c) for t in range(c)], self.scalar, self.w)
                    for t, line in enumerate(lines[:n]):
                        place = self.r.at(target, self.scalar, (tile.step, 1), (j, i), t * tile.step)
                        self.store(self.vector(line) * factor, place)

                self.r.vectors(view.shape[-1], c, part)

            self.b.loop(count, self.w, square)

        args = [
            *self._lines(view, lead, first, count),
            (self.scalar, literal(scale, self.scalar)),
            ("ptr", tile.pointer),
        ]
        self.r.part(("columns", *self._kind(view), tile.step), args, body)

    def out(self, tile: Tile, view: View, index: list[str], count: str, scales: str = "", add: bool = False) -> None:
        """view[index + i] = scales[i] tile[i], plus what is there if asked for, for `count` rows."""

        def body(names: list[str]) -> None:
            count, source, target, *scales = names

            def row(i: str) -> None:
                place = self.r.at(target, STORED[view.dtype], view.strides[-2:-1], (i,))
                factor = self.spread(self.r.at(scales[0], self.scalar, (1,), (i,))) if scales else None

                def part(j: str, w: int, n: int) -> None:
                    value = self.load(self.r.at(source, self.scalar, (tile.step, 1), (i, j)))
                    value = value if factor is None else value * factor
                    if add:
                        value = value + self.vector(self.piece(view, place, j, n))
                    stored = STORED[view.dtype]
                    made = narrow(self.b, value.name, view.dtype, w)
                    self.r.store_vector(made, self.r.at(place, stored, (1,), (j,)), stored, view.dtype.itemsize, w, n)

                self._vectors(view.shape[-1], part)

            self.b.loop(count, 1, row)

        start = self.r.at(self.r.pointer(view), STORED[view.dtype], view.strides[:-1], index)
        args = [("i64", count), ("ptr", tile.pointer), ("ptr", start), *([("ptr", scales)] if scales else [])]
        self.r.part(("out", *self._kind(view), tile.step, bool(scales), add), args, body)

    def _kind(self, view: View) -> tuple[object, ...]:
        return view.dtype, view.strides[-2:], view.shape[-1]

    def _lines(self, view: View, lead: list[str], first: str, count: str) -> list[tuple[str, str]]:
        """Where the rows of a view begin, how many to read, and which is the last."""
        start = self.r.at(self.r.pointer(view), STORED[view.dtype], view.strides[:-1], [*lead, first])
        last = self.r.linear((-1,), (first,), view.shape[-2] - 1)
        return [("ptr", start), ("i64", count), ("i64", last)]

    def _line(self, view: View, start: str, i: str, last: str) -> str:
        """The address of row i, or of the last."""
        row = self.b.intrinsic("smin", "i64", i, last)
        return self.r.at(start, STORED[view.dtype], view.strides[-2:-1], (row,))

    def line(self, view: View, lead: list[str], row: str) -> str:
        """The address of a row of a view, or of the last."""
        row = self.b.intrinsic("smin", "i64", row, str(view.shape[-2] - 1))
        return self.r.at(self.r.pointer(view), STORED[view.dtype], view.strides[:-1], [*lead, row])

    def piece(self, view: View, line: str, j: str, n: int, w: int = 0) -> str:
        """Elements of a row from j on."""
        stored, w = STORED[view.dtype], w or self.w
        found = self.r.load_vector(self.r.at(line, stored, (1,), (j,)), stored, view.dtype.itemsize, w, n)
        return widen(self.b, found, view.dtype, w)

    def _joined(self, pieces: list[str], width: int) -> str:
        """Vectors one behind the other as one vector."""
        while len(pieces) > 1:
            pairs, kind = zip(pieces[::2], pieces[1::2], strict=True), typed(self.scalar, width)
            width *= 2
            lanes = ", ".join(f"i32 {t}" for t in range(width))
            pieces = [self.b.emit(f"shufflevector {kind} {x}, {kind} {y}, <{width} x i32> <{lanes}>") for x, y in pairs]
        return pieces[0]

    def _vectors(self, size: int, body: Callable[[str, int, int], None]) -> None:
        """Along a row: written out if it is short."""
        if size > 4 * self.w:
            self.r.vectors(size, self.w, body)
            return
        for j in range(0, size, self.w):
            body(str(j), self.w, min(self.w, size - j))

    # --- products

    def multiply(
        self, left: Tile, right: Tile, into: Tile, rows: str, vectors: str, terms: str, lag: str = "",
        turned: bool = False, add: bool = False, shrink: str = "", marks: Tile | None = None, last: str = "",
    ) -> None:  # fmt: skip
        """into = left right for so many rows, vectors of columns, and terms of the sums; or left^T right if turned.

        With a lag, left[i, k] is 0 unless k <= i + lag. What is there is added if asked for, times a number for
        each row if `shrink` points to them. With marks, which lie in memory as left does, terms are left out where
        these are -0. With a last row of left, which may lie where nothing is behind it, that one is repeated.
        """
        r = self.r
        apart = (1, left.step) if turned else (left.step, 1)
        sizes = [n if n.isdigit() else "" for n in (rows, vectors, terms)]  # those that are known

        def body(names: list[str]) -> None:
            first, second, target, *more = names
            final = more.pop() if last else ""
            marked = more.pop() if marks else ""
            rows, vectors, terms = (n or more.pop(0) for n in sizes)
            lagging = more.pop(0) if lag else ""

            def block(i: str, c: str, height: int, width: int) -> None:
                start, end = "0", terms
                if lag and turned:
                    start = self.b.intrinsic("smax", "i64", "0", r.linear((1, -1), (i, lagging)))
                elif lag:
                    end = self.b.intrinsic("smin", "i64", terms, r.linear((1, 1), (i, lagging), height))
                column = r.linear((self.w,), (c,))
                lines = [r.linear((1,), (i,), a) for a in range(height)] if last else []
                lines = [self.b.intrinsic("smin", "i64", line, final) for line in lines]
                x = [r.at(first, self.scalar, apart, (line, start)) for line in lines or [i]]
                y = r.at(second, self.scalar, (right.step, 1), (start, column))
                z = r.at(target, self.scalar, (into.step, 1), (i, column))
                offsets = [a * into.step + t * self.w for a in range(height) for t in range(width)]
                cells = [r.at(z, self.scalar, (), (), offset) for offset in offsets]
                sums = [self.load(cell) for cell in cells] if add or shrink else None
                if sums and shrink:
                    factors = [self.spread(r.at(more[0], self.scalar, (1,), (i,)), a) for a in range(height)]
                    sums = [s * factors[t // width] for t, s in enumerate(sums)]
                count = r.linear((1, -1), (end, start))
                mark = r.at(marked, self.scalar, apart, (i, start)) if marks else ""
                made = self._product(x, apart, y, right.step, height, width, count, sums, mark)
                for cell, sum_ in zip(cells, made, strict=True):
                    self.store(sum_, cell)

            self._blocks(vectors, rows, block)

        args = [("ptr", tile.pointer) for tile in (left, right, into)]
        args += [("i64", n) for n in (rows, vectors, terms) if not n.isdigit()]
        args += [("i64", lag)] * bool(lag) + [("ptr", shrink)] * bool(shrink)
        args += [("ptr", marks.pointer)] if marks else []
        args += [("i64", last)] * bool(last)
        steps = left.step, right.step, into.step
        given = [bool(x) for x in (lag, shrink, marks, last)]
        self.r.part(("multiply", *steps, *sizes, turned, add, *given), args, body)

    def _blocks(self, vectors: str, rows: str, body: Block) -> None:
        """body(row, vector, rows, vectors) for blocks that fit into registers; the last may have rows too many."""

        def panel(c: str, width: int) -> None:
            height = self._height(width)
            if rows == str(height):
                body("0", c, height, width)
            else:
                self.b.loop(rows, height, lambda i: body(i, c, height, width))

        start = "0"
        for width, end in zip((BLOCK_VECTORS, 2, 1), self._ends(vectors), strict=True):
            if start.isdigit() and end.isdigit() and int(end) - int(start) <= width:
                if start != end:
                    panel(start, width)
            else:
                self.b.loop(end, width, functools.partial(panel, width=width), start)
            start = end

    def _ends(self, vectors: str) -> tuple[str, str, str]:
        """Where the panels of most vectors end, those of two, and that of one.

        One vector needs as many factors as several, so four become two and two.
        """
        b, r, most = self.b, self.r, BLOCK_VECTORS
        if vectors.isdigit():
            count = int(vectors)
            wide = count // most - (count % most == 1)
            wide = max(0, wide) * most
            return str(wide), str(count - (count - wide) % 2), vectors
        whole = b.emit(f"udiv i64 {vectors}, {most}")
        single = b.emit(f"icmp eq i64 {r.linear((1, -most), (vectors, whole))}, 1")
        found = r.linear((1, -1), (whole, b.emit(f"zext i1 {single} to i64")))
        wide_ = r.linear((most,), (b.intrinsic("smax", "i64", found, "0"),))
        left = b.emit(f"and i64 {r.linear((1, -1), (vectors, wide_))}, -2")
        return wide_, r.linear((1, 1), (wide_, left)), vectors

    def _height(self, vectors: int) -> int:
        """How many rows of so many vectors, and one row of factors, fit into the registers."""
        rows = self.w
        while rows > 1 and rows * vectors + vectors + 1 > self.r.cpu.registers:
            rows //= 2
        return rows

    def _product(
        self, left: list[str], apart: tuple[int, int], right: str, step: int, rows: int, vectors: int, terms: str,
        sums: list[Vector] | None = None, marks: str = "",
    ) -> list[Vector]:  # fmt: skip
        """sums[i][c] + sum_k left[i, k] right[k][c] for one block, by rows; the rows and terms of left are `apart`.

        `left` has the address of each row, or that of the first.
        """
        started = ["zeroinitializer"] * (rows * vectors) if sums is None else [s.name for s in sums]

        def term(k: str, names: list[str]) -> list[str]:
            x = [self.r.at(pointer, self.scalar, apart[1:], (k,)) for pointer in left]
            y = self.r.at(right, self.scalar, (step,), (k,))
            line = [self.load(self.r.at(y, self.scalar, (), (), c * self.w)) for c in range(vectors)]
            made = []
            for i in range(rows):
                one = self.spread(x[i]) if len(x) > 1 else self.spread(x[0], i * apart[0])
                before = names[i * vectors : (i + 1) * vectors]
                after = [
                    self.b.intrinsic("fmuladd", self.kind, one.name, y.name, z)
                    for y, z in zip(line, before, strict=True)
                ]
                if marks:
                    out = self.marked(self.r.at(marks, self.scalar, apart[1:], (k,), i * apart[0]))
                    after = [
                        self.b.emit(f"select i1 {out}, {self.kind} {old}, {self.kind} {new}")
                        for old, new in zip(before, after, strict=True)
                    ]
                made += after
            return made

        found = self.b.loop_with([(self.kind, s) for s in started], terms, 1, term)
        return [self.vector(name) for name in found]

    def marked(self, place: str) -> str:
        """Whether a number of memory is -0."""
        bits = "i64" if self.scalar == "double" else "i32"
        mark = self.b.emit(f"load {bits}, ptr {place}, align {self.size}")
        return self.b.emit(f"icmp eq {bits} {mark}, {-(1 << (8 * self.size - 1))}")

    # --- reductions

    def across(self, vectors: list[Vector], combine: Combine) -> Vector:
        """The vector whose lane i is what all lanes of vector i come to: w vectors are halved at a time."""
        distance, lanes = 1, range(self.w)
        while len(vectors) > 1:
            made = []
            for a, b in zip(vectors[::2], vectors[1::2], strict=True):
                mine = [self.w + t if t & distance else t for t in lanes]
                others = [t ^ distance for t in mine]
                x, y = (shuffle(self.r, a.name, b.name, chosen, self.scalar) for chosen in (mine, others))
                made.append(combine(self.vector(x), self.vector(y)))
            vectors, distance = made, 2 * distance
        return vectors[0]


def larger(x: Vector, y: Vector) -> Vector:
    return where(x > y, x, y)


def total(x: Vector, y: Vector) -> Vector:
    return x + y
