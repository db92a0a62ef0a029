"""Products of rows that are rounded to int8 with matrices of int8, which both are read as they lie.

See primitives/rounded.py for the meaning. The lanes of a register hold parts of one sum; the registers of a vector of
columns wait in a tile and are added up into one, which becomes numbers. A few rows are multiplied by rows of the matrix
from several places at once, as in by_rows.py; of many, a block at a time meets those of a vector of columns, which stay
in the first cache.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from ....core import dtypes
from ....core.dtypes import DType
from ....ir.graph import Equation
from ....ir.sizes import varying
from ....primitives.quantized import wide
from ....primitives.rounded import MOST, MOST_TERMS
from .. import values
from ..contractions import Contraction
from ..labels import Work
from ..processor import Processor
from ..text.builder import computed, typed
from ..text.routine import Routine
from ..tuning import BYTE_COLUMNS, CYCLES, FAR_BYTES, STRETCHES
from ..values import Const, Hole, Op, Value, View, strides_of
from . import amx
from .amx import Tiles
from .blocks import Blocks, difference, shifted, stepped
from .by_rows import CHAINS
from .byte_products import RAISED, ByteProducts
from .dots import gathered
from .epilogue import Epilogue, WithEpilogue

if TYPE_CHECKING:
    from ..schedule import Schedule


class Integers(WithEpilogue):
    """out[..., i, j] = steps[..., i] scales[j] sum_k x[..., i, k] matrix[j, k], then an epilogue; integers are int8.

    `sums` are those of the rows of x, where the instruction needs them.
    """

    def __init__(
        self, cpu: Processor, x: View, steps: View, sums: View | None, matrix: View, scales: View, epilogue: Epilogue
    ) -> None:
        super().__init__([x, steps, matrix, scales, *([] if sums is None else [sums])], epilogue)
        self.x, self.steps, self.sums, self.matrix, self.scales = x, steps, sums, matrix, scales
        *lead, self.m, self.k = x.shape
        self.n, self.w = matrix.shape[0], cpu.lanes(4)
        self.how = ByteProducts(cpu, self.k)
        most = (cpu.registers - BYTE_COLUMNS - 2) // BYTE_COLUMNS
        self.rows = -(-self.m // -(-self.m // most))  # of a block; all blocks have about as many
        self.few = self.m <= self.rows
        count = math.prod(lead)
        turns = -(-self.k // self.how.columns)
        cycles = count * self.m * self.n * (turns / 2 + 4)  # two instructions in one, and adding up lanes
        moved = count * self.n * self.k if self.few else 0
        self.blocks = Blocks(tuple(lead), self.m, self.n, self.rows, self.w, max(cycles / CYCLES, moved / FAR_BYTES))
        self.chunks = self.blocks.chunks
        self.places = max(1, min(STRETCHES, self.blocks.columns // self.w)) if self.few else 1
        across = self.places if self.few else BYTE_COLUMNS
        self.ways = max(1, min(CHAINS // (self.rows * across), turns))  # registers of a sum
        self.parts = self.k > MOST_TERMS  # whether sums are made in parts, which are floats

    @property
    def work(self) -> Work:
        label = f"matmul int8 {self.x.shape} @ int8 {(self.k, self.n)}"
        return self.followed(label, math.prod(self.x.shape) * self.n)

    def describe(self) -> str:
        return f"{super().describe()}\n{self.blocks.columns} {self.chunks} {self.places} {self.how.name}"

    def emit(self, r: Routine) -> None:
        self.scalar = computed(self.steps.dtype)
        self.size, self.kind = self.steps.dtype.itemsize, typed(self.scalar, self.w)
        self.waiting = self.scalar if self.parts else "i32"
        self.tile = r.stack(self.places * self.rows * self.w * self.w, self.waiting)
        self.blocks.each(r, functools.partial(self._stretched if self.few else self._blocked, r))

    # --- the order of rows and columns

    def _stretched(self, r: Routine, lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
        """All rows with rows of the matrix from several places, of each of which a vector of columns is done."""
        b, w = r.b, self.w
        rest = self.n % w
        whole = b.intrinsic("smin", "i64", column_end, str(self.n - rest))
        size = self.places * w
        vectors = b.emit(f"udiv i64 {shifted(r, difference(r, column_end, column), size - 1)}, {size}")
        stretch = b.emit(f"mul nsw i64 {vectors}, {w}")

        def vector(j: str) -> None:
            first = r.linear((1, 1), (column, j))

            def one(t: str) -> None:
                columns = [r.linear((1, 1, s), (first, t, stretch)) for s in range(self.places)]
                for at, total in enumerate(self._sums(r, lead, row, self.m, columns)):
                    self._wait(r, total, at // self.m, at % self.m, t)

            def finish(s: str) -> None:
                place = r.linear((1, 1), (first, b.emit(f"mul nsw i64 {s}, {stretch}")))
                b.when(
                    b.emit(f"icmp slt i64 {place}, {whole}"), lambda: self._finish(r, lead, row, self.m, place, w, s)
                )
                if rest:
                    last = b.emit(f"icmp eq i64 {place}, {self.n - rest}")
                    here = b.emit(f"icmp slt i64 {place}, {column_end}")
                    inside = b.emit(f"and i1 {last}, {here}")
                    b.when(inside, lambda: self._finish(r, lead, row, self.m, place, rest, s))

            b.loop(w, 1, one)
            b.loop(self.places, 1, finish)

        b.loop(stretch, w, vector)

    def _blocked(self, r: Routine, lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
        """A vector of columns at a time, with one block of rows after the other."""

        def panel(j: str, count: int) -> None:
            def rows(i: str, height: int) -> None:
                def some(t: str) -> None:
                    columns = [r.linear((1, 1), (j, t), c) for c in range(BYTE_COLUMNS)]
                    for at, total in enumerate(self._sums(r, lead, i, height, columns)):
                        self._wait(r, total, 0, at % height, shifted(r, t, at // height))

                r.b.loop(self.w, BYTE_COLUMNS, some)
                self._finish(r, lead, i, height, j, count, "0")

            stepped(r, row, row_end, self.rows, self.m, rows)

        stepped(r, column, column_end, self.w, self.n, panel)

    # --- one block

    def _sums(self, r: Routine, lead: list[str], row: str, height: int, columns: list[str]) -> list[str]:
        """Vectors of partial sums, of each of some columns with each of some rows. Behind the last column it counts."""
        columns = [r.b.intrinsic("smin", "i64", column, str(self.n - 1)) for column in columns]
        right = [r.at(r.pointer(self.matrix), "i8", self.matrix.strides[:1], [column]) for column in columns]
        left = r.at(r.pointer(self.x), "i8", self.x.strides[:-1], [*lead, row])
        if not self.parts:
            return self._part(r, left, right, height, "0", self.k)
        rest = self.k % MOST_TERMS

        def add(k: str, totals: list[str], length: int = MOST_TERMS) -> list[str]:
            made = self._part(r, left, right, height, k, length)
            floats = [r.b.emit(f"sitofp {typed('i32', self.w)} {part} to {self.kind}") for part in made]
            return [r.b.emit(f"fadd {self.kind} {a}, {b}") for a, b in zip(totals, floats, strict=True)]

        zeros = [(self.kind, "zeroinitializer")] * (height * len(columns))
        totals = r.b.loop_with(zeros, self.k - rest, MOST_TERMS, add)
        return add(str(self.k - rest), totals, rest) if rest else totals

    def _part(self, r: Routine, left: str, right: list[str], height: int, start: str, length: int) -> list[str]:
        """The terms of so many columns of x from a start on, added up as int32."""
        kind, count, unit = typed("i32", self.w), height * len(right), self.how.columns * self.ways
        done = length - length % unit
        sums = ["zeroinitializer"] * (count * self.ways)

        def turn(k: str, sums: list[str], size: int = unit) -> list[str]:
            at = k if start == "0" else r.linear((1, 1), (start, k))
            made = list(sums)
            for way, first in enumerate(range(0, size, self.how.columns)):
                n = min(self.how.columns, size - first)
                matrix = [self.how.matrix(r, r.at(place, "i8", (1,), [at], first), n) for place in right]
                for i in range(height):
                    place = r.at(left, "i8", (1,), [at], i * self.x.strides[-2] + first)
                    number = self.how.row(r, place, n)
                    for c, found in enumerate(matrix):
                        where = way * count + c * height + i
                        made[where] = self.how.add(r, made[where], found, number)
            return made

        if done:
            sums = r.b.loop_with([(kind, total) for total in sums], done, unit, turn)
        if length > done:
            sums = turn(str(done), sums, length - done)
        totals = sums[:count]
        for way in range(1, self.ways):
            more = sums[way * count : (way + 1) * count]
            totals = [r.b.emit(f"add {kind} {a}, {b}") for a, b in zip(totals, more, strict=True)]
        return totals

    def _wait(self, r: Routine, total: str, place: int, row: int, column: str) -> None:
        """Put a vector of partial sums into the tile."""
        at = r.at(self.tile, self.waiting, (self.w,), [column], (place * self.rows + row) * self.w**2)
        r.store_vector(total, at, self.waiting, 4, self.w, self.w)

    def _finish(self, r: Routine, lead: list[str], row: str, height: int, column: str, count: int, place: str) -> None:
        """What becomes of the sums of some rows and a vector of columns, of which so many are there."""
        b, w, integers = r.b, self.w, typed("i32", self.w)
        size = 4 if self.waiting == "i32" else self.size
        scales = r.load_vector(
            r.at(r.pointer(self.scales), self.scalar, (1,), [column]), self.scalar, self.size, w, count
        )

        def one(i: str) -> None:
            line = r.linear((1, 1), (row, i))
            tile = r.at(self.tile, self.waiting, (self.rows * w * w, w * w), [place, i])
            vectors = [
                r.load_vector(r.at(tile, self.waiting, (), (), t * w), self.waiting, size, w, w) for t in range(w)
            ]
            total = gathered(r, vectors, self.waiting)
            if self.sums is not None:
                own = r.load(self.sums, [*lead, line], 1)
                over = b.spread(b.emit(f"mul i32 {own}, {RAISED}"), "i32", w)
                total = b.emit(f"sub {integers} {total}, {over}")
            if not self.parts:
                total = b.emit(f"sitofp {integers} {total} to {self.kind}")
            step = b.spread(r.load(self.steps, [*lead, line], 1), self.scalar, w)
            scaled = b.emit(f"fmul {self.kind} {total}, {scales}")
            self.epilogue.emit(r, [*lead, line, column], b.emit(f"fmul {self.kind} {scaled}, {step}"), w, count)

        b.loop(height, 1, one)


# --- from an equation to steps


def rounded_matmul(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if not out.aval.size or not e.params["features"]:
        return False
    kind, cpu = wide(out.dtype), s.cpu
    matrix, scales = (s.contiguous(s.value(a)) for a in e.inputs[1:])
    scales = s.in_memory(_as(scales, kind))
    x = s.in_memory(_as(s.value(e.inputs[0]), kind))
    if len(x.shape) == 1:
        x = View(x.buffer, (1, *x.shape), (0, *x.strides), x.offset)
    lead, shape = x.shape[:-1], (*x.shape[:-1], matrix.shape[0])
    rows = next((size for size in reversed(lead) if size != 1), 1)
    tiled = not varying(lead) and amx.suits(cpu, dtypes.int8, rows, x.shape[-1], matrix.shape[0])
    needs_sums = ByteProducts(cpu, x.shape[-1]).raises and not tiled
    operands = [*_rounded(s, x, kind, needs_sums), matrix, scales]
    target = s.new(shape, kind) if kind != out.dtype or shape != out.shape else s.target(out)

    def made(hole: Hole, stores: list[tuple[View, Value]]) -> list[Integers | Tiles]:
        epilogue = Epilogue(hole, stores)
        numbers, steps, *sums = operands[:-2]
        merged = epilogue.merged() if len(lead) > 1 else None
        if merged is not None:  # what is rounded has no gaps
            rows = math.prod(lead)
            numbers = View(numbers.buffer, (rows, x.shape[-1]), (x.shape[-1], 1))
            steps, *sums = (View(v.buffer, (rows,), (1,)) for v in (steps, *sums))
            epilogue = merged
        if tiled:
            return [_in_tiles(cpu, numbers, steps, matrix, scales, epilogue)]
        return [Integers(cpu, numbers, steps, sums[0] if sums else None, matrix, scales, epilogue)]

    s.wait(Contraction(target, operands, made))
    found: Value = target
    if shape != out.shape:
        found = s.in_memory(target)
        found = View(target.buffer, out.shape, strides_of(out.shape))
    s.bind(out, _as(found, out.dtype))
    return True


def _in_tiles(cpu: Processor, x: View, steps: View, matrix: View, scales: View, epilogue: Epilogue) -> Tiles:
    """The product by tiles: the epilogue begins with the scales."""
    shape, kind, sums = epilogue.hole.shape, steps.dtype, Hole(epilogue.hole.shape, dtypes.int32)
    made: Value = Op("astype", [sums], shape, kind)
    n, k = matrix.shape
    of_columns = View(scales.buffer, (n,), (1,), scales.offset)
    of_rows = View(steps.buffer, (*steps.shape, 1), (*steps.strides, 0), steps.offset)
    for factor in (of_columns, of_rows):
        made = Op("multiply", [made, values.broadcast(factor, shape)], shape, kind)
    done: dict[int, Value] = {}
    stores = [
        (target, values.replaced(value, lambda part: made if isinstance(part, Hole) else None, done))
        for target, value in epilogue.stores
    ]
    y = View(matrix.buffer, (*x.shape[:-2], k, n), (*[0] * (len(x.shape) - 2), 1, k), matrix.offset)
    return Tiles(cpu, x, y, Epilogue(sums, stores))


def _rounded(s: Schedule, x: View, kind: DType, with_sums: bool) -> list[View]:
    """Rows as integers, their steps, and their sums if these are wanted; a kernel of three turns through each row."""
    lead, axis = x.shape[:-1], len(x.shape) - 1
    largest = s.new(lead, kind)
    s.reduce("max", Op("abs", [x], x.shape, kind), (axis,), largest)
    step = Op("divide", [largest, Const(MOST, kind, lead)], lead, kind)
    finite = Op("isfinite", [step], lead, dtypes.bool_)
    positive = Op("greater", [step, Const(0, kind, lead)], lead, dtypes.bool_)
    both = Op("bitwise_and", [finite, positive], lead, dtypes.bool_)
    divisor = Op("where", [both, step, Const(1, kind, lead)], lead, kind)
    steps = s.keep(Op("where", [finite, step, Const(math.nan, kind, lead)], lead, kind))

    def along(value: Value) -> Value:
        grown = values.reshaped(value, (*lead, 1))
        assert grown is not None
        return s.broadcast(grown, x.shape)

    quotient = Op("divide", [x, along(divisor)], x.shape, kind)
    number: Value = Op("where", [along(finite), quotient, Const(0, kind, x.shape)], x.shape, kind)
    number = Op("round", [number], x.shape, kind)
    number = Op("minimum", [number, Const(MOST, kind, x.shape)], x.shape, kind)
    number = Op("maximum", [number, Const(-MOST, kind, x.shape)], x.shape, kind)
    integers = s.keep(Op("astype", [number], x.shape, dtypes.int8))
    found = [integers, steps]
    if with_sums:
        sums = s.new(lead, dtypes.int32)
        s.reduce("sum", Op("astype", [number], x.shape, dtypes.int32), (axis,), sums)
        found.append(sums)
    s.available(*found)
    return found


def _as(value: Value, dtype: DType) -> Value:
    return value if value.dtype == dtype else Op("astype", [value], value.shape, dtype)
