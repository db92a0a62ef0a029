"""Products of a few rows with a matrix of few bits, which becomes numbers in registers, as it is read.

See primitives/quantized.py for the forms of the matrix, by_rows.py for how it is read, and widened.py for many rows.
With one scale for a row, sums are multiplied by it at the end; with groups, the partial sums of each are.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from ....core import dtypes
from ....core.typing import Array
from ....ir.graph import Equation
from ....primitives.quantized import BLOCK, HALF, MIDDLE, wide
from .. import values
from ..contractions import Contraction
from ..labels import Work
from ..processor import Processor
from ..text.builder import literal, splat, typed
from ..text.routine import Routine
from ..text.sums import sum_with
from ..tuning import FEW_QUANTIZED
from ..values import Buffer, Const, Hole, Op, Value, View, strides_of
from .by_rows import ByRows
from .epilogue import Epilogue, Stores
from .steps import Steps, widened_steps
from .widened import as_number

if TYPE_CHECKING:
    from ..schedule import Schedule


NIBBLES, WORDS = 8, 4  # numbers of four bits in a word, words in a block
UPPER, FIRST_BITS = 28, -0x77777778  # where the last number of a word is; the first bits of all of them
ORDERED = 1 << 14  # bytes of rows of x that are brought into the order of words


class Quantized(ByRows):
    """out[..., i, j] = sum_k x[..., i, k] W[j, k], then an epilogue."""

    def __init__(self, cpu: Processor, x: View, matrix: list[View], group: int, epilogue: Epilogue) -> None:
        values, *scales = matrix
        super().__init__(cpu, x, values, epilogue, scales)
        self.scales, self.group = scales[0] if scales else None, group
        self.four = values.dtype == np.uint8
        if scales and group < self.k:
            self.ways = 1  # the sums of groups do not wait for each other
        if self.four:
            self.unit = self.ways * BLOCK

    @property
    def work(self) -> Work:
        kind = "int4" if self.four else str(self.y.dtype)
        return self.followed(f"matmul {self.x.shape} @ {kind} {(self.k, self.n)}", math.prod(self.x.shape) * self.n)

    def describe(self) -> str:
        return f"{super().describe()} {self.group}"

    def _scaled(self, r: Routine, total: str, place: str, width: int) -> str:
        """Sums times the scales of rows of the matrix that have one each."""
        if self.scales is None or self.group < self.k:
            return total
        at = r.at(r.pointer(self.scales), self.scalar, (1,), [place])
        scales = r.load_vector(at, self.scalar, self.size, self.w, width)
        return r.b.emit(f"fmul {self.kind} {total}, {scales}")

    def _sums(self, r: Routine, x: str, lead: list[str], places: list[str]) -> list[str]:
        if self.scales is None or self.group >= self.k:
            return super()._sums(r, x, lead, places)
        rows, scales = self._rows(r, lead, places), self._scale_rows(r, places)
        rest, zeros = self.k % self.group, ["zeroinitializer"] * (len(rows) * self.m)

        def add(k: str, length: int, totals: list[str]) -> list[str]:
            return self._weighed(r, self._part(r, x, rows, k, length), totals, self._factors(r, scales, k))

        totals = sum_with(
            r.b, self.kind, zeros, self.k - rest, self.group, lambda k, sums: add(k, self.group, sums),
            turns=self.k // self.group,
        )  # fmt: skip
        return add(str(self.k - rest), rest, totals) if rest else totals

    def _scale_rows(self, r: Routine, places: list[str]) -> list[str]:
        assert self.scales is not None
        first = r.pointer(self.scales)
        return [r.at(first, self.scalar, self.scales.strides[:1], [place]) for place in places]

    def _factors(self, r: Routine, scales: list[str], k: str) -> list[str]:
        """The scales of the group that begins at column k, or that it is in, in all lanes."""
        group = str(int(k) // self.group) if k.isdigit() else r.b.emit(f"udiv i64 {k}, {self.group}")
        places = [r.at(scale, self.scalar, (1,), [group]) for scale in scales]
        ones = [r.b.emit(f"load {self.scalar}, ptr {place}, align {self.size}") for place in places]
        return [r.b.spread(one, self.scalar, self.w) for one in ones]

    def _weighed(self, r: Routine, parts: list[str], totals: list[str], factors: list[str]) -> list[str]:
        """Totals with the sums of a part, times the scale of their row."""
        return [
            r.b.intrinsic("fmuladd", self.kind, factors[at // self.m], part, total)
            for at, (part, total) in enumerate(zip(parts, totals, strict=True))
        ]

    def _numbers(self, r: Routine, row: str, k: str, length: int) -> Iterator[str]:
        if not self.four:
            yield from super()._numbers(r, row, k, length)
            return
        b, w, kind = r.b, self.w, typed("i8", HALF)
        half = str(int(k) // 2) if k.isdigit() else b.emit(f"lshr i64 {k}, 1")
        for block in range(0, length, BLOCK):
            place = r.at(row, "i8", (1,), [half], block // 2)
            both = r.load_vector(place, "i8", 1, HALF, HALF)
            low = b.emit(f"and {kind} {both}, {splat('15', 'i8', HALF)}")
            high = b.emit(f"lshr {kind} {both}, {splat('4', 'i8', HALF)}")
            for bits in (low, high):
                signed = b.emit(f"sub {kind} {bits}, {splat(str(MIDDLE), 'i8', HALF)}")
                for first in range(0, HALF, w):
                    lanes = ", ".join(f"i32 {first + t}" for t in range(w))
                    part = signed
                    if w < HALF:
                        part = b.emit(f"shufflevector {kind} {signed}, {kind} poison, <{w} x i32> <{lanes}>")
                    yield self._number(r, part)

    def _number(self, r: Routine, found: str) -> str:
        return as_number(r, found, self.y.dtype, self.scalar, self.w)


class FourBits(Quantized):
    """Products with numbers of four bits, w words at a time: a word has one number of each of eight vectors.

    Shifted to the upper end of the word, and with their first bit turned, they are numbers from -8 to 7 times 2^28, by
    which x is divided before; it is brought into the order of the words once for a chunk.
    """

    def __init__(self, cpu: Processor, x: View, matrix: list[View], group: int, epilogue: Epilogue) -> None:
        super().__init__(cpu, x, matrix, group, epilogue)
        self.turn = NIBBLES * self.w  # columns of w words
        self.turns = self.k // self.turn

    def emit(self, r: Routine) -> None:
        self.ordered = r.stack(self.m * self.turns * self.turn, "float")
        super().emit(r)

    def _prepare(self, r: Routine, x: str) -> None:
        b, w = r.b, self.w

        def order(i: int, turn: str) -> None:
            place = self._place(r, i, turn)
            for v in range(NIBBLES):
                byte, half = divmod(v, 2)
                blocks = []
                for block in range(w // WORDS):
                    at = r.at(x, "float", (self.turn,), [turn], i * self.x.strides[-2] + block * BLOCK + half * HALF)
                    blocks.append(self._every_fourth(r, at, byte))
                power = splat(literal(2.0**-UPPER, "float"), "float", w)
                found = b.emit(f"fmul {self.kind} {_joined(r, blocks)}, {power}")
                self._store(r, found, r.at(place, "float", (), (), v * w))

        for i in range(self.m):
            b.loop(self.turns, 1, functools.partial(order, i))

    def _place(self, r: Routine, i: int, turn: str) -> str:
        """Where the numbers of a row of x are, in order."""
        return r.at(self.ordered, "float", (self.turn,), [turn], i * self.turns * self.turn)

    def _every_fourth(self, r: Routine, at: str, first: int) -> str:
        numbers = r.load_vector(at, "float", 4, HALF, HALF)
        lanes = ", ".join(f"i32 {first + 4 * t}" for t in range(WORDS))
        kind = typed("float", HALF)
        return r.b.emit(f"shufflevector {kind} {numbers}, {kind} poison, <{WORDS} x i32> <{lanes}>")

    def _sums(self, r: Routine, x: str, lead: list[str], places: list[str]) -> list[str]:
        rows = self._rows(r, lead, places)
        grouped = self.scales is not None and self.group < self.k
        scales = self._scale_rows(r, places) if grouped else []

        def turn(t: str, totals: list[str]) -> list[str]:
            parts = self._words(r, rows, t)
            if not grouped:
                return [
                    r.b.emit(f"fadd {self.kind} {total}, {part}") for total, part in zip(totals, parts, strict=True)
                ]
            return self._weighed(r, parts, totals, self._turn_factors(r, scales, t))

        zeros = ["zeroinitializer"] * (len(rows) * self.m)
        totals = sum_with(r.b, self.kind, zeros, self.turns, 1, turn, turns=self.turns)
        step = BLOCK if grouped and self.group == BLOCK else self.turn
        for k in range(self.turns * self.turn, self.k, step):
            parts = self._part(r, x, rows, str(k), min(step, self.k - k))
            factors = self._factors(r, scales, str(k)) if grouped else [splat("1.0", "float", self.w)] * len(rows)
            totals = self._weighed(r, parts, totals, factors)
        return totals

    def _turn_factors(self, r: Routine, scales: list[str], turn: str) -> list[str]:
        """The scales of the columns of w words: of one group, or of as many groups as there are blocks."""
        w = self.w
        if self.group != BLOCK:
            return self._factors(r, scales, r.b.emit(f"mul nsw i64 {turn}, {self.turn}"))
        count = w // WORDS
        places = [r.at(scale, "float", (count,), [turn]) for scale in scales]
        found = [r.load_vector(place, "float", 4, count, count) for place in places]
        if count == 1:
            return [r.b.spread(one, "float", w) for one in found]
        lanes, kind = ", ".join(f"i32 {t // WORDS}" for t in range(w)), typed("float", count)
        return [r.b.emit(f"shufflevector {kind} {one}, {kind} poison, <{w} x i32> <{lanes}>") for one in found]

    def _words(self, r: Routine, rows: list[str], turn: str) -> list[str]:
        """The sums of one turn, of each row of the matrix with each row of x."""
        b, w, kind = r.b, self.w, typed("i32", self.w)
        places = [self._place(r, i, turn) for i in range(self.m)]
        sums = ["zeroinitializer"] * (len(rows) * self.m)
        words = [r.load_vector(r.at(row, "i8", (4 * w,), [turn]), "i32", 1, w, w) for row in rows]
        words = [b.emit(f"xor {kind} {word}, {splat(str(FIRST_BITS), 'i32', w)}") for word in words]
        for v in range(NIBBLES):
            left = [r.load_vector(r.at(p, "float", (), (), v * w), "float", 4, w, w) for p in places]
            for c, word in enumerate(words):
                shifted = b.emit(f"shl {kind} {word}, {splat(str(UPPER - 4 * v), 'i32', w)}")
                alone = b.emit(f"and {kind} {shifted}, {splat(str(-1 << UPPER), 'i32', w)}")
                number = b.emit(f"sitofp {kind} {alone} to {self.kind}")
                for i in range(self.m):
                    at = c * self.m + i
                    sums[at] = b.intrinsic("fmuladd", self.kind, left[i], number, sums[at])
        return sums


def _joined(r: Routine, parts: list[str]) -> str:
    """Vectors one behind the other as one, two at a time."""
    size = WORDS
    while len(parts) > 1:
        lanes, kind = ", ".join(f"i32 {t}" for t in range(2 * size)), typed("float", size)
        parts = [
            r.b.emit(f"shufflevector {kind} {one}, {kind} {other}, <{2 * size} x i32> <{lanes}>")
            for one, other in zip(parts[::2], parts[1::2], strict=True)
        ]
        size *= 2
    return parts[0]


def _by_words(cpu: Processor, x: View, matrix: list[View], group: int) -> bool:
    """Whether four bits are read by words: rows of float32 that leave place in the first cache, and few scales."""
    w, k = cpu.lanes(4), x.shape[-1]
    turn = NIBBLES * w
    fits = x.shape[-2] * k * 4 <= ORDERED and k >= turn
    even = group >= k or group == BLOCK or group % turn == 0
    return matrix[0].dtype == np.uint8 and x.dtype == dtypes.float32 and fits and even


# --- from equations to steps


def quantized_matmul(s: Schedule, e: Equation) -> bool:
    """A few rows read the matrix as it is, many a copy in panels that has as few bits (of four, bytes)."""
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
        numbers = _unpacked(s, matrix, features) if matrix.dtype == np.uint8 else matrix
        operands = [x, numbers, *scales]
        s.wait(Contraction(target, operands, lambda hole, stores: _many(cpu, operands, group, hole, stores)))
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
    kind = FourBits if _by_words(cpu, x, matrix, group) else Quantized
    return [kind(cpu, x, matrix, group, epilogue)]


def _many(cpu: Processor, operands: list[View], group: int, hole: Hole, stores: Stores) -> Steps:
    x, numbers, *scales = operands
    (*lead, _, k), n = x.shape, numbers.shape[0]
    y = View(numbers.buffer, (*lead, k, n), (*[0] * len(lead), 1, numbers.strides[0]), numbers.offset)
    if not scales:
        return widened_steps(cpu, x, y, None, 0, hole, stores)
    if group < k:
        turned = cast(View, values.transposed(scales[0], (1, 0)))
        return widened_steps(cpu, x, y, turned, group, hole, stores)
    of_columns = values.broadcast(View(scales[0].buffer, (n,), (1,), scales[0].offset), hole.shape)
    made, done = Op("multiply", [hole, of_columns], hole.shape, hole.dtype), dict[int, Value]()
    scaled = [(t, values.replaced(v, lambda part: made if isinstance(part, Hole) else None, done)) for t, v in stores]
    return widened_steps(cpu, x, y, None, 0, hole, scaled)


def _unpacked(s: Schedule, matrix: View, features: int) -> View:
    """Numbers of four bits as int8, (rows, features)."""
    rows, row = matrix.shape
    shape = (rows, row // HALF, 2, HALF)
    both = View(matrix.buffer, shape, (row, HALF, 0, 1), matrix.offset)
    target = s.new((rows, 2 * row), dtypes.int8)
    s.store(View(target.buffer, shape, strides_of(shape)), _as(_four_bits(both, dtypes.float32), dtypes.int8))
    s.available(target)
    s.close_writers(target.buffer)
    return View(target.buffer, (rows, features), (2 * row, 1))


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
        number = _four_bits(View(stored.buffer, shape, strides, stored.offset + first // 2), dtype)
    steps = (scales.shape[-1], 1, *[0] * (len(shape) - 2))
    scale = View(scales.buffer, shape, steps, scales.offset + start)
    return Op("multiply", [number, _as(scale, dtype)], shape, dtype)


def _four_bits(both: View, dtype: dtypes.DType) -> Value:
    """The numbers in bytes (..., 2, HALF), each read twice: for columns that are below, and for those above."""
    shape = both.shape
    mask, factor = (_halves(pair, shape) for pair in (np.array([15, 240], np.int32), np.array([1, 1 / 16], dtype)))
    bits = Op("bitwise_and", [Op("astype", [both], shape, dtypes.int32), mask], shape, dtypes.int32)
    number = Op("multiply", [_as(bits, dtype), factor], shape, dtype)  # the upper four without a shift
    return Op("subtract", [number, Const(MIDDLE, dtype, shape)], shape, dtype)


def _halves(pair: Array, shape: tuple[int, ...]) -> View:
    return View(Buffer("constant", 2, pair.dtype, data=pair), shape, (*[0] * (len(shape) - 2), 1, 0))


def _as(value: Value, dtype: dtypes.DType) -> Value:
    return value if value.dtype == dtype else Op("astype", [value], value.shape, dtype)
