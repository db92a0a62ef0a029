"""Sums and extremes over the entries of lines, and what is gathered for entries: sparse products and segments.

A step takes an expression over (entries, features ..) and reduces the entries of every line, which follow each other.
Products with sparse matrices are such expressions: the values times rows that are gathered. So are messages along edges
with everything elementwise in them, and nothing of the size of entries times features goes through memory.

A chunk has lines with about as many entries as another's, found by bisection of `ptr`. All of a line is one chunk's, so
the bits do not depend on how they are shared out.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from ....core import dtypes
from ....core.dtypes import DType
from ....core.errors import IndexOutOfRange
from ....ir.graph import Atom, Equation
from ....primitives.indexing import out_of_range
from ....primitives.segments import of_nothing, wrong_line
from ..processor import Processor
from ..text.builder import computed, is_float, literal, splat, typed
from ..text.operations import TABLE
from ..text.routine import Routine, is_even
from ..text.sums import LONGEST, sum_with
from ..tuning import AHEAD, HEAVY, SEGMENT_VECTORS, SEGMENTS_UNROLLED
from ..values import Const, Counter, Op, Shape, Take, Value, View, broadcast, parts, replaced, reshaped
from .dots import dots
from .fetching import LINE, fetch, is_far
from .step import Direct, Share, flat_view, grouped, lanes_for, on_groups, takes_rows

if TYPE_CHECKING:
    from ..schedule import Schedule

COMBINE = {"segment_sum": "add", "segment_max": "maximum", "segment_min": "minimum"}


# --- from equations to steps; where there is nothing to read or to write, NumPy looks at the indices


def take_lines(s: Schedule, e: Equation) -> bool:
    (out,), (x, _, owner, _) = e.outputs, e.inputs
    if not out.aval.size:
        return False
    s.bind(out, Op("copy", [_rows(s, e, x, owner, out.shape)], out.shape, out.dtype))
    return True


def segments(s: Schedule, e: Equation) -> bool:
    (out,), (x, ptr, _, order) = e.outputs, e.inputs
    if not out.aval.size or not x.aval.size:
        return False
    value = s.value(x)
    scalar = math.prod(x.shape[1:]) == 1
    heavy = scalar and isinstance(value, Op) and value.weight > HEAVY
    if not takes_rows(value) or heavy or (not e.params["in_order"] and _is_costly_to_move(value)):
        value = s.in_memory(value)
    value = s.ready(value)
    if not e.params["in_order"]:
        value = _through(s, e, value, order)
    _reduce(s, e, e.primitive.name, value, ptr)
    return True


def sparse_matmul(s: Schedule, e: Equation) -> bool:
    (out,), (values, x, ptr, _, order, other) = e.outputs, e.inputs[:6]
    if not out.aval.size or not values.aval.size or not x.aval.size:
        return False
    space, wide = (values.shape[0], *x.shape[1:]), _sum_type(out.dtype)
    terms = _as(_rows(s, e, x, other, space), wide)
    factor = s.value(values)
    if not (isinstance(factor, Const) and factor.value == 1):
        factor = s.in_memory(factor)
        if not e.params["in_order"][0]:
            factor = _through(s, e, factor, order)
        terms = Op("multiply", [_as(_spread(factor, space), wide), terms], space, wide)
    _reduce(s, e, "segment_sum", s.ready(terms), ptr)
    return True


def sampled_matmul(s: Schedule, e: Equation) -> bool:
    (out,), (x, y), heads = e.outputs, e.inputs[:2], e.params["heads"]
    if not out.aval.size or not x.aval.size or not y.aval.size:
        return False
    space, wide = (*out.shape, *x.shape[1 + heads :]), _sum_type(out.dtype)
    left, right = (_as(_rows(s, e, a, i, space), wide) for a, i in ((x, e.inputs[3]), (y, e.inputs[7])))
    target = s.target(out)
    terms = s.ready(Op("multiply", [left, right], space, wide))
    step = dots(s.cpu, terms, heads, target) if is_float(wide) else None
    if step is not None:
        s.emit(step)
    else:
        s.reduce("any" if wide == dtypes.bool_ else "sum", terms, tuple(range(1 + heads, len(space))), target)
    s.bind(out, target)
    return True


def _reduce(s: Schedule, e: Equation, name: str, value: Value, ptr: Atom) -> None:
    (out,) = e.outputs
    target, starts = s.target(out), s.in_memory(s.value(ptr))
    s.emit(Segments(s.cpu, name, value, _lengths(s, e, starts, value.shape[0]), starts, target))
    s.bind(out, target)


def _lengths(s: Schedule, e: Equation, ptr: View, entries: int) -> Op:
    """How many entries each line has; 0, and a note, where they are no range."""
    shape, (step,) = (ptr.shape[0] - 1,), ptr.strides
    label = s.check(e, lambda line, _: wrong_line(e.primitive.name, line, entries))
    first, last = View(ptr.buffer, shape, (step,), ptr.offset), View(ptr.buffer, shape, (step,), ptr.offset + step)
    note = View(label.buffer, shape, (0,), label.offset)
    line = Counter(shape, (1,), 0, dtypes.int64)
    return Op("checked range", [first, last, line, Const(entries, dtypes.int64, shape), note], shape, dtypes.int64)


def _rows(s: Schedule, e: Equation, x: Atom, index: Atom, space: Shape) -> Take:
    """The rows of x that an index selects."""
    view = s.in_memory(s.value(x))
    spread = _spread(s.in_memory(s.value(index)), space)
    label = s.check(e, functools.partial(_wrong_row, e.primitive.name, x.shape))
    return Take(view, [spread], view.strides[:1], x.shape[:1], (0, *view.strides[1:]), space, label)


def _wrong_row(name: str, shape: Shape, bad: int, size: int) -> IndexOutOfRange:
    return out_of_range(name, shape, 0, bad)


def _through(s: Schedule, e: Equation, value: Value, order: Atom) -> Value:
    """value[order]: what the expression reads is read through the index, so that nothing need be stored before."""
    index = s.in_memory(s.value(order))
    label = s.check(e, functools.partial(_wrong_row, e.primitive.name, value.shape))
    place = _spread(index, value.shape)

    def moved(part: Value) -> Value | None:
        if isinstance(part, View) and part.shape == value.shape and part.strides[0]:
            size, rest = part.shape[:1], (0, *part.strides[1:])
            return Take(part, [place], part.strides[:1], size, rest, part.shape, label)
        if isinstance(part, Counter) and part.scales[0]:
            scale = Const(part.scales[0], dtypes.int64, part.shape)
            left = Counter(part.shape, (0, *part.scales[1:]), part.start, dtypes.int64)
            times = Op("multiply", [Op("astype", [place], part.shape, dtypes.int64), scale], part.shape, dtypes.int64)
            return _as(Op("add", [times, left], part.shape, dtypes.int64), part.dtype)
        if isinstance(part, Take) and part.rest[0]:
            raise NotImplementedError  # see `_movable`
        return None

    if not _movable(value):
        value = s.in_memory(value)
    return replaced(value, moved)


def _is_costly_to_move(value: Value) -> bool:
    """Whether one result is read sooner in another order than all that it is computed from: rows of a line of the cache
    or less, which are brought there whole, each for itself."""
    row = math.prod(value.shape[1:]) * value.dtype.itemsize
    sources = [p for p in parts(value) if isinstance(p, Take) or (isinstance(p, View) and p.strides[0])]
    return isinstance(value, Op) and row <= LINE and len(sources) > 1


def _movable(value: Value) -> bool:
    """Whether gathers inside depend on the entry through their indices alone."""
    return all(not part.rest[0] for part in parts(value) if isinstance(part, Take))


def _spread(value: Value, space: Shape) -> Value:
    """A value of the first axes, repeated along the others."""
    grown = reshaped(value, value.shape + (1,) * (len(space) - len(value.shape)))
    assert grown is not None  # axes of size 1 need no copy
    return broadcast(grown, space)


def _sum_type(dtype: DType) -> DType:
    return dtypes.float32 if dtypes.is_half(dtype) else dtype


def _as(value: Value, dtype: DType) -> Value:
    return value if value.dtype == dtype else Op("astype", [value], value.shape, dtype)


# --- the step


class Segments(Direct):
    """target[i, ..] = the combination of value[k, ..] for k from ptr[i] to ptr[i] + lengths[i] - 1."""

    def __init__(self, cpu: Processor, name: str, value: Value, lengths: Op, ptr: View, target: View) -> None:
        self.name, space = name, value.shape
        spread = View(target.buffer, space, (0, *target.strides[1:]), target.offset)
        groups = grouped(space, [int(a > 0) for a in range(len(space))], [value, spread])
        groups = groups if groups and groups[0] == [0] else [[0], *groups]
        groups = groups if len(groups) > 1 else [*groups, [len(space) - 1]] if len(space) > 1 else groups
        self.value, place = on_groups(value, groups), flat_view(spread, groups)
        self.line = target.strides[0]
        self.target = View(place.buffer, place.shape, (self.line, *place.strides[1:]), place.offset)
        self.lengths, self.ptr = lengths, ptr
        super().__init__([self.value, lengths, ptr], [self.target])
        self.entries, self.rest = self.value.shape[0], self.value.shape[1:]
        row = self.rest[-1] if self.rest else 1
        self.w = lanes_for(cpu, [self.value, self.target], row) if self.rest else 1
        self.lines = lengths.shape[0]
        cells = math.prod(self.rest[:-1]) * -(-row // self.w)
        weight = self.value.weight if isinstance(self.value, (Op, Take)) else 1
        time = (self.lines * 4 + self.entries * (2 + cells * (1 + weight / 4))) / 1000
        self.share = Share(self.entries + self.lines, time)
        # gathers of whole rows, whose places are computed once for an entry
        self.rows = [p for p in parts(self.value) if isinstance(p, Take) and all(map(is_even, p.indices))]
        self.far = [take for take in self.rows if is_far(take)]
        self.ahead = AHEAD
        acc = _sum_type(target.dtype) if name == "segment_sum" else target.dtype
        self.dtype = acc

    def settings(self) -> object:
        return self.name, self.w, self.entries, self.lines, self.rest, self.ahead

    def emit(self, r: Routine) -> None:
        low, high = self._range(r)
        r.b.loop(high, 1, lambda line: self._line(r, line), low)

    # --- which lines

    def _range(self, r: Routine) -> tuple[str, str]:
        if self.share.chunks == 1:
            return "0", str(self.lines)
        b, chunk, step = r.b, r.chunk, self.share.step
        first = b.emit(f"mul nsw i64 {chunk}, {step}")
        low = self._bisected(r, first)
        high = self._bisected(r, b.emit(f"add nsw i64 {first}, {step}"))
        begins = b.emit(f"icmp eq i64 {chunk}, 0")
        ends = b.emit(f"icmp eq i64 {chunk}, {self.share.chunks - 1}")
        # whatever ptr says, the first chunk begins with line 0 and the last one ends with the last: none is left out
        return (
            b.emit(f"select i1 {begins}, i64 0, i64 {low}"),
            b.emit(f"select i1 {ends}, i64 {self.lines}, i64 {high}"),
        )

    def _bisected(self, r: Routine, wanted: str) -> str:
        """The first line before which there are so many entries and lines."""
        b = r.b

        def turn(_: str, ends: list[str]) -> list[str]:
            low, high = ends
            middle = b.emit(f"lshr i64 {b.emit(f'add nsw i64 {low}, {high}')}, 1")
            there = b.emit(f"add i64 {self._start(r, middle)}, {middle}")
            left = b.emit(f"icmp slt i64 {low}, {high}")
            below = b.emit(f"and i1 {left}, {b.emit(f'icmp slt i64 {there}, {wanted}')}")
            after = b.emit(f"add nsw i64 {middle}, 1")
            return [
                b.emit(f"select i1 {below}, i64 {after}, i64 {low}"),
                b.emit(f"select i1 {below}, i64 {high}, i64 {middle}"),
            ]

        return b.loop_with([("i64", "0"), ("i64", str(self.lines))], self.lines.bit_length() + 1, 1, turn)[0]

    def _start(self, r: Routine, line: str) -> str:
        return TABLE["astype"](r.b, [r.load(self.ptr, [line])], [self.ptr.dtype], dtypes.int64, 1)

    # --- a line

    def _line(self, r: Routine, line: str) -> None:
        b = r.b
        length = r.value(self.lengths, [line])
        start = self._start(r, line)
        stop = b.emit(f"add i64 {start}, {length}")
        if not self.rest:
            self._block(r, line, start, stop, length, [([], 1)])
            return
        *outer, row = self.rest
        whole, left = row // self.w, row % self.w
        vectors = [(str(i * self.w), self.w) for i in range(whole)] + ([(str(whole * self.w), left)] if left else [])
        total = math.prod(outer) * len(vectors)
        if total <= SEGMENTS_UNROLLED:
            cells = [([*index, at], n) for index in _every(tuple(outer)) for at, n in vectors]
            for i in range(0, len(cells), SEGMENT_VECTORS):
                self._block(r, line, start, stop, length, cells[i : i + SEGMENT_VECTORS])
            return
        span, full = SEGMENT_VECTORS * self.w, whole // SEGMENT_VECTORS * SEGMENT_VECTORS

        def along(axis: int, index: list[str]) -> None:
            if axis < len(outer):
                r.each(outer[axis], lambda i: along(axis + 1, [*index, i]))
                return

            def block(at: str) -> None:
                cells = [([*index, r.linear((1,), (at,), k * self.w)], self.w) for k in range(SEGMENT_VECTORS)]
                self._block(r, line, start, stop, length, cells)

            if full:
                b.loop(full * self.w, span, block)
            if full < len(vectors):
                self._block(r, line, start, stop, length, [([*index, at], n) for at, n in vectors[full:]])

        along(0, [])

    def _block(
        self, r: Routine, line: str, start: str, stop: str, length: str, cells: list[tuple[list[str], int]]
    ) -> None:
        """The entries of a line, for some vectors of features at a time."""
        b, scalar, combine = r.b, computed(self.dtype), TABLE[COMBINE[self.name]]
        kind = typed(scalar, self.w)
        nothing = splat(literal(of_nothing(self.name, self.dtype), scalar), scalar, self.w)

        def turn(k: str, sums: list[str]) -> list[str]:
            for take in self.far:
                fetch(r, take, k, self.entries, self.ahead, [index for index, _ in cells], self.w)
            for take in self.rows:
                r.places[id(take)] = r.selected(take, [k, *cells[0][0]], 1, 1, {})
            terms = [r.value(self.value, [k, *index], self.w, n, {}) for index, n in cells]
            for take in self.rows:
                del r.places[id(take)]
            return [
                combine(b, [s, t], [self.dtype, self.dtype], self.dtype, self.w)
                for s, t in zip(sums, terms, strict=True)
            ]

        def store(sums: list[str]) -> None:
            for made, (index, n) in zip(sums, cells, strict=True):
                r.store(self.target, made, [line, *index], self.w, n)

        def short() -> None:
            store(b.loop_with([(kind, nothing)] * len(cells), stop, 1, turn, start))

        def long() -> None:
            store(sum_with(b, kind, [nothing] * len(cells), stop, 1, turn, start, turns=self.entries))

        if self.name == "segment_sum" and is_float(self.dtype) and self.entries > LONGEST:
            b.when(b.emit(f"icmp sle i64 {length}, {LONGEST}"), short, long)
        else:
            short()


def _every(sizes: Shape) -> list[list[str]]:
    """All indices, in the order of memory."""
    found: list[list[str]] = [[]]
    for size in sizes:
        found = [[*index, str(i)] for index in found for i in range(size)]
    return found
