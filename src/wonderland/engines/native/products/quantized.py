"""Products of a few rows with a matrix of few bits, which becomes numbers in registers, as it is read.

The matrix is stored by rows, along which the sums run; see primitives/quantized.py for its forms. The sums of some rows
and columns at a time are vectors of partial sums. With one scale for a row, sums are multiplied by it at the end; with
groups, the partial sums of each are.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from ....core import dtypes
from ....core.typing import Array
from ....ir.graph import Equation
from ....primitives.quantized import BLOCK, HALF, MIDDLE, wide
from .. import values
from ..contractions import Contraction
from ..labels import Work
from ..processor import Processor
from ..text.builder import STORED, computed, splat, typed, widen
from ..text.routine import Routine
from ..text.sums import sum_with
from ..tuning import FAR_BYTES, FEW_QUANTIZED
from ..values import Buffer, Const, Hole, Op, Value, View, strides_of
from .blocks import Blocks, shifted, stepped
from .dots import gathered
from .epilogue import Epilogue, Stores, WithEpilogue
from .steps import product_steps

if TYPE_CHECKING:
    from ..schedule import Schedule

LINE = 64  # bytes


class Quantized(WithEpilogue):
    """out[..., i, j] = sum_k x[..., i, k] W[j, k], then an epilogue."""

    def __init__(self, cpu: Processor, x: View, matrix: list[View], group: int, epilogue: Epilogue) -> None:
        super().__init__([x, *matrix], epilogue)
        self.x, self.values, self.scales = x, matrix[0], matrix[1] if len(matrix) > 1 else None
        self.w = cpu.lanes(x.dtype.itemsize)
        *lead, self.m, self.k = x.shape
        self.n, self.group = self.values.shape[0], group
        self.four = self.values.dtype == np.uint8
        # columns of a turn: a line of the cache, or a block
        self.unit = BLOCK if self.four else max(self.w, LINE // self.values.dtype.itemsize)
        # rows of the matrix whose sums are in registers, half of which are for other things
        self.together = max(1, min(self.w, cpu.registers // 2 // self.m))
        moved = math.prod(lead) * self.values.buffer.nbytes
        self.blocks = Blocks(tuple(lead), self.m, self.n, self.m, self.w, moved / FAR_BYTES)
        self.chunks = self.blocks.chunks

    @property
    def work(self) -> Work:
        kind = "int4" if self.four else str(self.values.dtype)
        return self.followed(f"matmul {self.x.shape} @ {kind} {(self.k, self.n)}", math.prod(self.x.shape) * self.n)

    def describe(self) -> str:
        return f"{super().describe()}\n{self.group} {self.blocks.columns} {self.blocks.chunks}"

    def emit(self, r: Routine) -> None:
        self.scalar = computed(self.x.dtype)
        self.kind = typed(self.scalar, self.w)
        self.stored, self.item = STORED[self.values.dtype], self.values.dtype.itemsize
        self.blocks.each(r, functools.partial(self._rectangle, r))

    def _rectangle(self, r: Routine, lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
        x = r.at(r.pointer(self.x), self.scalar, self.x.strides[:-2], lead)

        def columns(j: str, width: int) -> None:
            found: list[list[str | None]] = [[] for _ in range(self.m)]
            for first in range(0, width, self.together):
                count = min(self.together, width - first)
                sums = self._sums(r, x, shifted(r, j, first), count)
                for i in range(self.m):
                    found[i] += sums[i :: self.m]
            for i, vectors in enumerate(found):
                total = gathered(r, [*vectors, *[None] * (self.w - width)], self.scalar)
                if self.scales is not None and self.group >= self.k:
                    total = r.b.emit(f"fmul {self.kind} {total}, {self._scales(r, j, width)}")
                self.epilogue.emit(r, [*lead, str(i), j], total, self.w, width)

        stepped(r, column, column_end, self.w, self.n, columns)

    def _scales(self, r: Routine, j: str, width: int) -> str:
        """The scales of rows of the matrix that have one each."""
        assert self.scales is not None
        place = r.at(r.pointer(self.scales), self.scalar, (1,), [j])
        return r.load_vector(place, self.scalar, self.scales.dtype.itemsize, self.w, width)

    def _sums(self, r: Routine, x: str, j: str, count: int) -> list[str]:
        """Vectors of partial sums, of each of `count` rows of the matrix with each row of x."""
        rows = [
            r.at(r.pointer(self.values), self.stored, self.values.strides[:1], [shifted(r, j, c)]) for c in range(count)
        ]
        zeros = ["zeroinitializer"] * (count * self.m)
        if self.scales is None or self.group >= self.k:
            return self._part(r, x, rows, zeros, "0", self.k)
        scales = [
            r.at(r.pointer(self.scales), self.scalar, self.scales.strides[:1], [shifted(r, j, c)]) for c in range(count)
        ]

        def add(k: str, length: int, totals: list[str]) -> list[str]:
            made = self._part(r, x, rows, zeros, k, length)
            place = r.b.emit(f"udiv i64 {k}, {self.group}")
            factors = []
            for scale in scales:
                at = r.at(scale, self.scalar, (1,), [place])
                one = r.b.emit(f"load {self.scalar}, ptr {at}, align {self.x.dtype.itemsize}")
                factors.append(r.b.spread(one, self.scalar, self.w))
            return [
                r.b.intrinsic("fmuladd", self.kind, factors[at // self.m], part, total)
                for at, (part, total) in enumerate(zip(made, totals, strict=True))
            ]

        rest = self.k % self.group
        totals = sum_with(
            r.b, self.kind, zeros, self.k - rest, self.group, lambda k, sums: add(k, self.group, sums),
            turns=self.k // self.group,
        )  # fmt: skip
        return add(str(self.k - rest), rest, totals) if rest else totals

    def _part(self, r: Routine, x: str, rows: list[str], sums: list[str], start: str, length: int) -> list[str]:
        """Add the terms of so many columns from a start on."""
        done = length - length % self.unit

        def turn(k: str, sums: list[str]) -> list[str]:
            return self._terms(
                r, x, rows, sums, shifted(r, k, 0) if start == "0" else r.linear((1, 1), (start, k)), self.unit
            )

        if done:
            terms = self.unit // self.w
            sums = sum_with(r.b, self.kind, sums, done, self.unit, turn, turns=done // self.unit, terms=terms)
        if length > done:
            sums = self._terms(r, x, rows, sums, shifted(r, start, done), length - done)
        return sums

    def _terms(self, r: Routine, x: str, rows: list[str], sums: list[str], k: str, length: int) -> list[str]:
        """Add the terms of at most `unit` columns."""
        made = list(sums)
        decoded = [self._decoded(r, row, k, length) for row in rows]
        if length == self.unit:
            self._ask(r, rows, k)
        for piece in range(-(-length // self.w)):
            lanes = min(self.w, length - piece * self.w)
            for i in range(self.m):
                place = r.at(x, self.scalar, self.x.strides[-2:], [str(i), k], piece * self.w)
                left = r.load_vector(place, self.scalar, self.x.dtype.itemsize, self.w, lanes)
                for c, vectors in enumerate(decoded):
                    at = c * self.m + i
                    made[at] = r.b.intrinsic("fmuladd", self.kind, left, vectors[piece], made[at])
        return made

    def _ask(self, r: Routine, rows: list[str], k: str) -> None:
        """For the same columns of the rows that come next."""
        ahead = self.together * self.values.strides[0]
        r.b.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for row in rows:
            place = r.at(row, self.stored, (1,), [self._place(r, k)], ahead)
            r.b.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")

    def _place(self, r: Routine, k: str) -> str:
        """Where a column is stored in its row."""
        if not self.four:
            return k
        return str(int(k) // 2) if k.isdigit() else r.b.emit(f"lshr i64 {k}, 1")

    def _decoded(self, r: Routine, row: str, k: str, length: int) -> list[str]:
        """The numbers of so many columns from k on, as vectors."""
        b, w = r.b, self.w
        if not self.four:
            places = [(r.at(row, self.stored, (1,), [k], c), min(w, length - c)) for c in range(0, length, w)]
            return [self._number(r, r.load_vector(at, self.stored, self.item, w, lanes)) for at, lanes in places]
        place = r.at(row, "i8", (1,), [self._place(r, k)])
        both, kind = r.load_vector(place, "i8", 1, HALF, HALF), typed("i8", HALF)
        low = b.emit(f"and {kind} {both}, {splat('15', 'i8', HALF)}")
        high = b.emit(f"lshr {kind} {both}, {splat('4', 'i8', HALF)}")
        made = []
        for half in (low, high):
            signed = b.emit(f"sub {kind} {half}, {splat(str(MIDDLE), 'i8', HALF)}")
            for first in range(0, HALF, w):
                lanes = ", ".join(f"i32 {first + t}" for t in range(w))
                part = signed
                if w < HALF:
                    part = b.emit(f"shufflevector {kind} {signed}, {kind} poison, <{w} x i32> <{lanes}>")
                made.append(self._number(r, part))
        return made

    def _number(self, r: Routine, found: str) -> str:
        b, w = r.b, self.w
        if self.values.dtype == dtypes.bfloat16:
            single = widen(b, found, self.values.dtype, w)
            return single if self.scalar == "float" else b.emit(f"fpext {typed('float', w)} {single} to {self.kind}")
        wide = b.emit(f"sext {typed('i8', w)} {found} to {typed('i32', w)}")
        return b.emit(f"sitofp {typed('i32', w)} {wide} to {self.kind}")


# --- from equations to steps


def quantized_matmul(s: Schedule, e: Equation) -> bool:
    """A few rows read the matrix as it is; for many it is written out once, which costs little beside the product."""
    (out,) = e.outputs
    group, features = e.params["group"], e.params["features"]
    if not out.aval.size or not features:
        return False
    kind = wide(out.dtype)
    x, (matrix, *scales) = s.value(e.inputs[0]), [s.contiguous(s.value(a)) for a in e.inputs[1:]]
    x = s.in_memory(_as(x, kind))
    if len(x.shape) == 1:
        x = View(x.buffer, (1, *x.shape), (0, *x.strides), x.offset)
    if x.strides[-1] != 1 and features > 1:
        x = s.contiguous(Op("copy", [x], x.shape, x.dtype))
    scales = [s.in_memory(_as(scale, kind)) for scale in scales]
    shape, cpu = (*x.shape[:-1], matrix.shape[0]), s.cpu
    target = s.new(shape, kind) if kind != out.dtype or shape != out.shape else s.target(out)
    regular = group >= features or group % BLOCK == 0
    if math.prod(x.shape[:-1]) <= FEW_QUANTIZED and regular:
        operands = [x, matrix, *scales]
        s.wait(Contraction(target, operands, lambda hole, stores: _steps(cpu, operands, group, hole, stores)))
    else:
        weight = _written(s, [matrix, *scales], features, group, kind)
        turned = View(
            weight.buffer, (*shape[:-2], features, shape[-1]), (*[0] * (len(shape) - 2), 1, weight.strides[0])
        )
        fixed = s.fixed
        s.wait(
            Contraction(target, [x, turned], lambda hole, stores: product_steps(cpu, x, turned, hole, stores, fixed))
        )
    found: Value = target
    if shape != out.shape:
        found = s.in_memory(target)
        found = View(target.buffer, out.shape, strides_of(out.shape))
    s.bind(out, _as(found, out.dtype))
    return True


def _steps(cpu: Processor, operands: list[View], group: int, hole: Hole, stores: Stores) -> list[Quantized]:
    x, *matrix = operands
    epilogue = Epilogue(hole, stores)
    if len(x.shape) > 2:
        flat = values.reshape_strides(x.shape, x.strides, (math.prod(x.shape[:-1]), x.shape[-1]))
        merged = epilogue.merged()
        if flat is not None and merged is not None:
            x, epilogue = View(x.buffer, (math.prod(x.shape[:-1]), x.shape[-1]), flat, x.offset), merged
    return [Quantized(cpu, x, matrix, group, epilogue)]


def dequantize(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if not out.aval.size:
        return False
    matrix, *scales = [s.contiguous(s.value(a)) for a in e.inputs]
    rows = math.prod(out.shape[:-1])
    flat = [View(v.buffer, (rows, v.shape[-1]), (v.shape[-1], 1), v.offset) for v in (matrix, *scales)]
    found = _written(s, flat, e.params["features"], e.params["group"], out.dtype)
    s.bind(out, View(found.buffer, out.shape, (*[n * found.strides[0] for n in _row_steps(out.shape)], 1)))
    return True


def _row_steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    return strides_of(shape[:-1])


def _written(s: Schedule, matrix: list[View], features: int, group: int, dtype: dtypes.DType) -> View:
    """The numbers of a matrix in memory, (rows, features)."""
    stored, rows = matrix[0], matrix[0].shape[0]
    if len(matrix) == 1:
        return s.in_memory(_as(stored, dtype))
    four = stored.dtype == np.uint8
    columns = stored.shape[-1] * 2 if four else features
    target = s.new((rows, columns), dtype)
    group = columns if group >= features else group
    cuts = [0, columns - columns % group, columns]  # whole groups, and one that is shorter
    for first, last in itertools.pairwise(dict.fromkeys(cuts)):
        part = _piece(matrix, first, last, group, wide(dtype))
        place = View(target.buffer, part.shape, _spread(columns, part.shape), first)
        s.store(place, _as(part, dtype))
    s.available(target)
    s.close_writers(target.buffer)
    return View(target.buffer, (rows, features), (columns, 1))


def _spread(columns: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (columns, *strides_of(shape[1:]))


def _piece(matrix: list[View], first: int, last: int, group: int, dtype: dtypes.DType) -> Value:
    """Columns from the first to the last, whole groups, as (rows, groups, ...), computed in a type."""
    stored, scales = matrix
    rows = stored.shape[0]
    start, group = first // group, min(group, last - first)
    groups = (last - first) // group
    if stored.dtype != np.uint8:
        shape: tuple[int, ...] = (rows, groups, group)
        number: Value = View(stored.buffer, shape, (stored.shape[-1], group, 1), stored.offset + first)
        number = _as(number, dtype)
    else:
        shape = (rows, groups, group // BLOCK, 2, HALF)
        strides = (stored.shape[-1], group // 2, HALF, 0, 1)
        both = Op("astype", [View(stored.buffer, shape, strides, stored.offset + first // 2)], shape, dtypes.int32)
        mask, factor = (_halves(pair, shape) for pair in (np.array([15, 240], np.int32), np.array([1, 1 / 16], dtype)))
        bits = Op("bitwise_and", [both, mask], shape, dtypes.int32)
        number = Op("multiply", [_as(bits, dtype), factor], shape, dtype)  # the upper four without a shift
        number = Op("subtract", [number, Const(MIDDLE, dtype, shape)], shape, dtype)
    steps = (scales.shape[-1], 1, *[0] * (len(shape) - 2))
    scale = View(scales.buffer, shape, steps, scales.offset + start)
    return Op("multiply", [number, _as(scale, dtype)], shape, dtype)


def _halves(pair: Array, shape: tuple[int, ...]) -> View:
    """A number for columns that are below, and one for those above."""
    return View(Buffer("constant", 2, pair.dtype, data=pair), shape, (0, 0, 0, 1, 0))


def _as(value: Value, dtype: dtypes.DType) -> Value:
    return value if value.dtype == dtype else Op("astype", [value], value.shape, dtype)
