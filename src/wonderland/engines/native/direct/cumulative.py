"""Along one axis, step by step: running sums, products and extremes, and where the largest or smallest element stands.

Where there are axes behind it, a vector runs across them. Along the last axis a running sum is made one element after
the other, for several rows at once so that the additions do not wait for each other; long ones in parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ....ir.graph import Equation
from ..processor import Processor
from ..text.builder import computed, is_float, literal, splat, typed
from ..text.operations import TABLE
from ..text.routine import Routine, lane_mask
from ..text.sums import LONGEST, PART
from ..tuning import HEAVY, RUNNING_ROWS
from ..values import Const, Op, Value, View
from .step import Direct, Share, flat_view, grouped, lanes_for, on_groups, spread_index, takes_rows, vectors_between

if TYPE_CHECKING:
    from ..schedule import Schedule

COMBINE = {
    "cumsum": "add",
    "cumprod": "multiply",
    "cummax": "maximum",
    "cummin": "minimum",
    "logcumsumexp": "logaddexp",
}


def running(s: Schedule, e: Equation) -> bool:
    (out,), axis = e.outputs, e.params["axis"]
    value = s.value(e.inputs[0])
    if not out.aval.size:
        return False
    if out.shape[axis] == 1:
        s.bind(out, value)
        return True
    value = _source(s, value, axis)
    target = s.new(out.shape, out.dtype)
    s.emit(Running(s.cpu, value, target, axis, e.params["reverse"], e.primitive.name))
    s.bind(out, target)
    return True


def where_extreme(s: Schedule, e: Equation) -> bool:
    (out,), axis = e.outputs, e.params["axis"]
    value = s.value(e.inputs[0])
    if not math.prod(value.shape):
        return False
    if value.shape[axis] == 1:
        s.bind(out, Const(0, out.dtype, out.shape))
        return True
    value = _source(s, value, axis)
    target = s.new(out.shape, out.dtype)
    s.emit(Where(s.cpu, value, target, axis, e.primitive.name))
    s.bind(out, target)
    return True


def _source(s: Schedule, value: Value, axis: int) -> Value:
    """The argument as it is read: computed on the way, if that can be done in vectors."""
    scalar = math.prod(value.shape[axis + 1 :]) == 1
    if not takes_rows(value) or (scalar and isinstance(value, Op) and value.weight > HEAVY):
        return s.in_memory(value)
    return s.ready(value)


class _Along(Direct):
    """A value and a target on groups of axes: outer ones, the axis, and those behind it."""

    def __init__(self, cpu: Processor, value: Value, target: View, axis: int) -> None:
        shape = value.shape
        kinds = [(a > axis) - (a < axis) for a in range(len(shape))]
        groups = grouped(shape, kinds, [value, target])
        self.at = next(i for i, group in enumerate(groups) if group[0] == axis)
        self.value, self.target = on_groups(value, groups), flat_view(target, groups)
        self.shape = self.value.shape
        super().__init__([self.value], [self.target])
        self.length = self.shape[self.at]
        self.last = self.at == len(self.shape) - 1
        # what is looped over: all but the axis itself and, where vectors run across the last axis, that one
        self.free = [i for i in range(len(self.shape)) if i != self.at and (self.last or i < len(self.shape) - 1)]
        self.rows = math.prod(self.shape[i] for i in self.free)
        self.w = 1 if self.last else lanes_for(cpu, [self.value, self.target], self.shape[-1])

    def _cut(self, rows: int, time: float) -> None:
        """Rows are shared out, or where there are few the places of a row."""
        self.across = not self.last and rows < 8 <= self.shape[-1] // self.w
        self.share = Share(self.shape[-1], time, self.w) if self.across else Share(rows, time)

    def settings(self) -> object:
        return self.at, self.w, self.across, self.shape

    def index(self, r: Routine, row: str, behind: list[str]) -> Callable[[str], list[str]]:
        """The index of a place along the axis."""
        found = dict(zip(self.free, spread_index(r, row, [self.shape[i] for i in self.free]), strict=True))
        if behind:
            found[len(self.shape) - 1] = behind[0]
        return lambda i: [i if k == self.at else found[k] for k in range(len(self.shape))]

    def each_vector(self, r: Routine, body: Callable[[Callable[[str], list[str]], int, int], None]) -> None:
        """body(index, w, n) for all that runs along the axis, in vectors across the axis behind it."""
        low, high = self.share.range(r)
        ends, rows = (
            (("0", str(self.shape[-1])), (low, high)) if not self.across else ((low, high), ("0", str(self.rows)))
        )

        def row(number: str) -> None:
            vectors_between(r, *ends, self.shape[-1], self.w, lambda i, w, n: body(self.index(r, number, [i]), w, n))

        if self.rows == 1:
            row("0")
        else:
            r.b.loop(rows[1], 1, row, rows[0])


class Running(_Along):
    """target[.., i, ..] = value[.., 0, ..] + .. + value[.., i, ..], or the products; or from the other end."""

    def __init__(self, cpu: Processor, value: Value, target: View, axis: int, reverse: bool, name: str) -> None:
        super().__init__(cpu, value, target, axis)
        self.reverse, self.name = reverse, name
        self.together = min(RUNNING_ROWS, self.rows) if self.last else 1
        time = math.prod(self.shape) * (1.5 / self.together if self.last else 0.5) / 1000
        self._cut(-(-self.rows // self.together), time)

    def settings(self) -> object:
        return self.name, self.reverse, self.together, super().settings()

    def emit(self, r: Routine) -> None:
        if not self.last:
            self.each_vector(r, lambda index, w, n: self._run(r, [index], w, n))
            return
        low, high = self.share.range(r)

        def rows(number: str, count: int) -> None:
            first = r.linear((self.together,), (number,))
            self._run(r, [self.index(r, r.linear((1,), (first,), k), []) for k in range(count)], 1, 1)

        left = self.rows % self.together
        if not left:
            r.b.loop(high, 1, lambda i: rows(i, self.together), low)
            return
        whole = self.rows // self.together
        end = r.b.intrinsic("smin", "i64", high, str(whole))
        r.b.loop(end, 1, lambda i: rows(i, self.together), low)
        r.b.when(r.b.emit(f"icmp sgt i64 {high}, {whole}"), lambda: rows(str(whole), left))

    def _run(self, r: Routine, indices: list[Callable[[str], list[str]]], w: int, n: int) -> None:
        dtype = self.target.dtype
        kind = typed(computed(dtype), w)
        combine = TABLE[COMBINE[self.name]]

        def place(i: str) -> str:
            return r.linear((-1,), (i,), self.length - 1) if self.reverse else i

        def step(i: str, sums: list[str]) -> list[str]:
            new = [r.value(self.value, index(place(i)), w, n) for index in indices]
            made = [combine(r.b, [x, y], [dtype, dtype], dtype, w) for x, y in zip(sums, new, strict=True)]
            for index, value in zip(indices, made, strict=True):
                r.store(self.target, value, index(place(i)), w, n)
            return made

        if self.name == "cumsum" and is_float(dtype) and self.length > LONGEST:
            self._in_parts(r, indices, place, w, n)
            return
        first = [r.value(self.value, index(place("0")), w, n) for index in indices]
        for index, value in zip(indices, first, strict=True):
            r.store(self.target, value, index(place("0")), w, n)
        r.b.loop_with([(kind, x) for x in first], self.length, 1, step, 1)

    def _in_parts(
        self,
        r: Routine,
        indices: list[Callable[[str], list[str]]],
        place: Callable[[str], str],
        w: int,
        n: int,
    ) -> None:
        """A long running sum: what came before a part is added to the part's own running sum."""
        scalar = computed(self.target.dtype)
        kind = typed(scalar, w)
        zeros = [(kind, splat(literal(-0.0, scalar), scalar, w))] * len(indices)
        span = max(PART, math.isqrt(self.length))

        def added(x: list[str], y: list[str]) -> list[str]:
            return [r.b.emit(f"fadd {kind} {a}, {b}") for a, b in zip(x, y, strict=True)]

        def part(start: str, before: list[str]) -> list[str]:
            def step(i: str, sums: list[str]) -> list[str]:
                sums = added(sums, [r.value(self.value, index(place(i)), w, n) for index in indices])
                for index, value in zip(indices, added(before, sums), strict=True):
                    r.store(self.target, value, index(place(i)), w, n)
                return sums

            end = r.b.intrinsic("smin", "i64", r.linear((1,), (start,), span), str(self.length))
            return added(before, r.b.loop_with(zeros, end, 1, step, start))

        r.b.loop_with(zeros, self.length, span, part)


class Where(_Along):
    """target = the first place of the largest (smallest) element along the axis; a NaN is larger (smaller) than all."""

    any_size = True  # see general.py

    def __init__(self, cpu: Processor, value: Value, target: View, axis: int, name: str) -> None:
        spread = list(target.strides)
        spread.insert(axis, 0)
        super().__init__(cpu, value, View(target.buffer, value.shape, tuple(spread), target.offset), axis)
        self.name = name
        self.lanes = lanes_for(cpu, [self.value], self.length // 4) if self.last else self.w
        self._cut(self.rows, int(math.prod(self.shape)) * (0.3 if self.lanes > 1 else 1.5) / 1000)

    def settings(self) -> object:
        return self.name, self.lanes, super().settings()

    def emit(self, r: Routine) -> None:
        if not self.last:
            self.each_vector(r, lambda index, w, n: self._across(r, index, w, n))
            return
        low, high = self.share.range(r)
        body = self._row if self.lanes > 1 else (lambda r, index: self._across(r, index, 1, 1))
        r.b.loop(high, 1, lambda row: body(r, self.index(r, row, [])), low)

    def _better(self, r: Routine, new: str, old: str, w: int) -> str:
        """Whether a new element takes the place of an old one before it."""
        b, dtype, up = r.b, self.value.dtype, self.name == "argmax"
        kind = typed(computed(dtype), w)
        if is_float(dtype):
            beyond = b.emit(f"fcmp {'ugt' if up else 'ult'} {kind} {new}, {old}")
            number = b.emit(f"fcmp ord {kind} {old}, {old}")
            return b.emit(f"and {typed('i1', w)} {beyond}, {number}")
        code = ("u" if dtype.kind in "ub" else "s") + ("gt" if up else "lt")
        return b.emit(f"icmp {code} {kind} {new}, {old}")

    def _across(self, r: Routine, index: Callable[[str], list[str]], w: int, n: int) -> None:
        b, bits = r.b, typed("i1", w)
        kind, places = typed(computed(self.value.dtype), w), typed("i64", w)

        def step(i: str, best: list[str]) -> list[str]:
            new = r.value(self.value, index(i), w, n)
            better = self._better(r, new, best[0], w)
            here = b.spread(i, "i64", w)
            return [
                b.emit(f"select {bits} {better}, {kind} {new}, {kind} {best[0]}"),
                b.emit(f"select {bits} {better}, {places} {here}, {places} {best[1]}"),
            ]

        first = r.value(self.value, index("0"), w, n)
        start = [(kind, first), (places, splat("0", "i64", w))]
        _, found = b.loop_with(start, self.length, 1, step, 1)
        r.store(self.target, found, index("0"), w, n)

    def _row(self, r: Routine, index: Callable[[str], list[str]]) -> None:
        """Every lane finds its own, and at the end the best of them is chosen: of equal ones, the first."""
        b, w = r.b, self.lanes
        bits, scalar = typed("i1", w), computed(self.value.dtype)
        kind, places = typed(scalar, w), typed("i64", w)
        ramp = "<" + ", ".join(f"i64 {lane}" for lane in range(w)) + ">"

        def step(i: str, best: list[str], n: int = w) -> list[str]:
            new = r.value(self.value, index(i), w, n)
            better = self._better(r, new, best[0], w)
            if n < w:
                better = b.emit(f"and {bits} {better}, {lane_mask(w, n)}")
            here = b.emit(f"add {places} {b.spread(i, 'i64', w)}, {ramp}")
            return [
                b.emit(f"select {bits} {better}, {kind} {new}, {kind} {best[0]}"),
                b.emit(f"select {bits} {better}, {places} {here}, {places} {best[1]}"),
            ]

        full = self.length - self.length % w
        start = [(kind, r.value(self.value, index("0"), w, w)), (places, ramp)]
        best = b.loop_with(start, full, w, step, w)
        if full < self.length:
            best = step(str(full), best, self.length - full)
        value = b.emit(f"extractelement {kind} {best[0]}, i64 0")
        found = b.emit(f"extractelement {places} {best[1]}, i64 0")
        for lane in range(1, w):
            new = b.emit(f"extractelement {kind} {best[0]}, i64 {lane}")
            place = b.emit(f"extractelement {places} {best[1]}, i64 {lane}")
            worse = self._better(r, value, new, 1)  # neither is better: they are equal
            better = self._better(r, new, value, 1)
            before = b.emit(f"icmp slt i64 {place}, {found}")
            equal = b.emit(f"and i1 {b.emit(f'xor i1 {worse}, true')}, {before}")
            take = b.emit(f"or i1 {better}, {equal}")
            value = b.emit(f"select i1 {take}, {scalar} {new}, {scalar} {value}")
            found = b.emit(f"select i1 {take}, i64 {place}, i64 {found}")
        r.store(self.target, found, index("0"))
