"""The LLVM text of a loop kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core import dtypes
from ....ir.sizes import Extent, largest, pieces, varying
from ..text.builder import computed, is_float, literal, splat, typed
from ..text.operations import TABLE
from ..text.routine import Memo, Routine, lane_mask, rounded
from ..text.sums import levels
from ..tuning import LONGEST, PART, ROW_BYTES, WAITING
from ..values import (
    Buffer,
    Const,
    Op,
    Shape,
    Take,
    Together,
    Value,
    View,
    inside,
    leaves,
    parts,
    regrouped,
    steps_of,
    strides_of,
)
from . import several
from .items import Accumulate, Item, Reduce, Store
from .squares import Squares

if TYPE_CHECKING:
    from .kernel import Kernel


class Emitter:
    """The text of one kernel."""

    def __init__(self, kernel: Kernel, r: Routine) -> None:
        self.k, self.r, self.b = kernel, r, r.b
        groups, rows = kernel.groups, kernel.rows
        memo: dict[int, Value] = {}
        self.items = [(item, self._on_groups(item, groups, rows, memo)) for item in kernel.items]
        self.phases: list[int] = []
        ready: dict[Buffer, int] = {}
        for item, (value, _) in self.items:
            phase = max((ready[leaf.buffer] + 1 for leaf in leaves(value) if leaf.buffer in ready), default=0)
            if isinstance(item, Reduce):
                ready[item.target.buffer] = phase
            self.phases.append(phase)
        self.temporaries: dict[int, str] = {}
        self.remembered = self._remembered()
        self.full_rank = len(groups)

    def _on_groups(self, item: Item, groups: list[list[int]], rows: int, memo: dict[int, Value]) -> tuple[Value, View]:
        """The value and the target, with one axis for every group."""
        k = self.k
        if item.value.shape == k.space and not (isinstance(item, Store) and self._per_row(item)):
            value = regrouped(item.value, groups, memo)
        else:
            value = regrouped(item.value, groups[:rows], memo)
        target = item.target
        if isinstance(item, Reduce) or (isinstance(item, Store) and self._per_row(item)):
            outer = tuple(k.sizes[:rows])
            return value, View(target.buffer, outer, strides_of(outer), target.offset)
        return value, regrouped(target, groups, {})  # type: ignore[return-value]

    def _per_row(self, item: Store) -> bool:
        k = self.k
        return k.split is not None and item.value.shape == k.outer and k.outer != k.space

    def emit(self) -> None:
        k, r, b = self.k, self.r, self.b
        low, high = "0", ""
        if k.shared:
            low = b.emit(f"mul nsw i64 {r.chunk}, {k.step}")
            high = b.intrinsic("smin", "i64", b.emit(f"add nsw i64 {low}, {k.step}"), r.size(k.sizes[0]))
        self.low, self.high = low, high
        self._start_sums()

        def outer(axis: int, index: list[str]) -> None:
            if axis == k.rows:
                self.row(index)
            elif axis == 0 and k.shared:
                b.loop(high, 1, lambda i: outer(1, [i]), start=low)
            else:
                r.each(k.sizes[axis], lambda i: outer(axis + 1, [*index, i]))

        if k.across is not None:
            Squares(self, k.across).emit()
        elif several.suits(k):
            several.Several(self).emit()
        else:
            outer(0, [])

    # --- rows

    def start_row(self) -> None:
        self.r.registers.clear()
        self.numbers: Memo = {}  # what is one number for the whole row

    def row(self, index: list[str]) -> None:
        self.start_row()
        for phase in range(max(self.phases, default=0) + 1):
            chosen = [pair for pair, p in zip(self.items, self.phases, strict=True) if p == phase]
            over = [(item, *pair) for item, pair in chosen if not self._outer_level(item, pair[0])]
            if over:
                self._pass(phase, over, index)
            for item, (value, target) in chosen:
                if self._outer_level(item, value):
                    self.r.store(target, self.r.value(value, index, 1, 1), index)

    def _outer_level(self, item: Item, value: Value) -> bool:
        return isinstance(item, Store) and len(value.shape) == self.k.rows and self.full_rank != self.k.rows

    def _pass(self, phase: int, items: list[Any], index: list[str]) -> None:
        """One pass over the row: stores, and the reductions that become known with it."""
        k, w = self.k, self.k.width
        reduces = [(item, value, target) for item, value, target in items if isinstance(item, Reduce)]
        single = len(k.row) == 1
        vectors = k.row[-1] // w if k.row and not varying(k.row) else 0
        work = Together()
        for _, value, _ in items:
            work.add(value)
        # accumulators that take turns, where an addition would wait for the one before
        copies = 4 if reduces and single and vectors >= 4 and work.operations <= WAITING else 1
        self.cells = [self._cells(item, copies) for item, _, _ in reduces]
        self.lossy = [i for i, (item, _, _) in enumerate(reduces) if item.rounds]

        even = self.even_parts([value for _, value, _ in items], index) if k.row else {}

        def body(inner: list[str], n: int, copy: int) -> None:
            memo = dict(even)
            place = [*index, *inner]
            for key, pointer in self.temporaries.items():
                if self.remembered[key][0] < phase:
                    op = self.remembered[key][1]
                    memo[key] = self.r.load_vector(
                        self._temporary(pointer, op, inner), computed(op.dtype), op.dtype.itemsize, w, w
                    )
            ready = []
            for item, value, target in items:
                ready.append((item, self.r.value(value, place, w, n, memo), target))
            for key, (first, op) in self.remembered.items():
                if first == phase and key in memo:
                    pointer = self.temporaries.setdefault(key, self.r.stack(self._row_size(), computed(op.dtype)))
                    self.r.store_vector(
                        memo[key], self._temporary(pointer, op, inner), computed(op.dtype), op.dtype.itemsize, w, w
                    )
            position = 0
            for item, value, target in ready:
                if isinstance(item, Reduce):
                    self._into(self.cells[position][copy], item.name, value, target.dtype, w, n)
                    position += 1
                elif isinstance(item, Accumulate):
                    self.accumulate(item, target, [value], place, w, n)
                else:
                    self.r.store(target, value, place, w, n)

        self._along_row(body, copies, [item for item, _, _ in reduces])
        for (item, _, target), copies_of in zip(reduces, self.cells, strict=True):
            self._settle(item, target, copies_of, index)

    def even_parts(self, values: list[Value], index: list[str]) -> Memo:
        """Compute what is the same along the row once, in front of the loop over it: the largest such parts."""
        varies: dict[int, bool] = {}
        for part in parts(*values):
            steps = steps_of(part)
            along = steps is not None and any(steps[self.k.rows :])
            varies[id(part)] = along or any(varies[id(a)] for a in inside(part))
        even: Memo = {}
        place = [*index, *["0"] * len(self.k.row)]
        for part in parts(*values, within=lambda part: inside(part) if varies[id(part)] else ()):
            if not varies[id(part)] and not isinstance(part, Const):
                number = self.r.value(part, place, 1, 1, self.numbers)
                even[id(part)] = self.b.spread(number, computed(part.dtype), self.k.width)
        return even

    def _cells(self, item: Reduce, copies: int) -> list[str]:
        """Accumulators of a reduction of the row."""
        scalar, w = computed(item.target.dtype), self.k.width
        start = splat(_neutral(item.name, item.target.dtype), scalar, w)
        return [self.r.cell(typed(scalar, w), start) for _ in range(copies)]

    def _apart(self, reduces: list[Reduce], body: Callable[[], None]) -> None:
        """The body with accumulators of its own for what loses digits in long sums; they are added to those before."""
        before = [*self.cells]
        for i in self.lossy:
            self.cells[i] = self._cells(reduces[i], len(before[i]))
        body()
        for i in self.lossy:
            item, w = reduces[i], self.k.width
            kind = typed(computed(item.target.dtype), w)
            for mine, whole in zip(self.cells[i], before[i], strict=True):
                value = self.b.emit(f"load {kind}, ptr {mine}")
                self._into(whole, item.name, value, item.target.dtype, w, w)
        self.cells = before

    def _levels(self, steps: int) -> tuple[list[int], list[bool]]:
        """How sums along the row's axes are cut, `steps` being the additions along the last one.

        For every axis: how often its loop is cut into pieces of PART turns, one level around the other; and whether
        what is inside one turn of its loop is a sum by itself.
        """
        cuts, alone = [0] * len(self.k.row), [False] * len(self.k.row)
        if not self.lossy or not self.k.row:  # a row without axes is one term
            return cuts, alone
        terms = 1
        for axis, size in reversed(list(enumerate([*map(largest, self.k.row[:-1]), steps]))):
            if terms * size > LONGEST:
                alone[axis], terms = terms > 1, 1
            cuts[axis] = levels(terms * size)
            terms = -(-terms * size // PART ** cuts[axis])
        return cuts, alone

    def _along_row(self, body: Any, copies: int, reduces: list[Reduce]) -> None:
        k, b, w = self.k, self.b, self.k.width
        cuts, alone = self._levels((largest(k.row[-1]) // (copies * w)) if k.row else 0)

        def cut(level: int, start: str | int, stop: str | int, step: int, turn: Callable[[str], None]) -> None:
            """for i in range(start, stop, step), in pieces with accumulators of their own."""
            if level == 0:
                b.loop(stop, step, turn, start=start)
                return
            span = step * PART**level

            def piece(i: str) -> None:
                end = b.intrinsic("smin", "i64", b.emit(f"add nsw i64 {i}, {span}"), str(stop))
                self._apart(reduces, lambda: cut(level - 1, i, end, step, turn))

            b.loop(stop, span, piece, start=start)

        def along(axis: int, inner: list[str]) -> None:
            if axis < len(k.row) - 1:

                def turn(i: str) -> None:
                    if alone[axis]:
                        self._apart(reduces, lambda: along(axis + 1, [*inner, i]))
                    else:
                        along(axis + 1, [*inner, i])

                if cuts[axis]:
                    cut(cuts[axis], 0, self.r.size(k.row[axis]), 1, turn)
                else:
                    self.r.each(k.row[axis], turn)
                return
            if not k.row:
                body([], 1, 0)
                return
            size = k.row[-1]
            if isinstance(size, Extent):
                shared = not k.rows and k.shared
                low, high = (self.low, self.high) if shared else ("0", self.r.size(size))
                whole = self.r.whole(low, high, w)
                cut(cuts[-1], low, whole, w, lambda i: body([*inner, i], w, 0))
                if w > 1:
                    b.loop(high, 1, lambda i: body([*inner, i], 1, 0), start=whole)
                return
            full = size - size % w
            if not k.rows and k.shared:  # the row itself is cut
                end = b.intrinsic("smin", "i64", self.high, str(full))
                b.loop(end, w, lambda i: body([*inner, i], w, 0), start=self.low)
                if full < size:
                    last = b.emit(f"icmp eq i64 {self.r.chunk}, {k.chunks - 1}")
                    b.when(last, lambda: body([*inner, str(full)], size - full, 0))
                return
            start = 0
            if copies > 1:
                start = full - full % (copies * w)

                def several(i: str) -> None:
                    for copy in range(copies):
                        place = i if copy == 0 else b.emit(f"add nsw i64 {i}, {copy * w}")
                        body([*inner, place], w, copy)

                if start == copies * w:
                    several("0")
                else:
                    cut(cuts[-1], 0, start, copies * w, several)
            rest = (full - start) // w
            if rest == 1 or (0 < rest <= 4 and self._light()):
                for i in range(start, full, w):
                    body([*inner, str(i)], w, 0)
            elif rest:
                cut(cuts[-1] if copies == 1 else 0, start, full, w, lambda i: body([*inner, i], w, 0))
            if full < size:
                body([*inner, str(full)], size - full, 0)

        along(0, [])

    def _light(self) -> bool:
        """Whether a few vectors are written out rather than computed in a loop. Gathers are not: lane by lane, they
        make a long text, and a loop takes a small part of their time."""
        gathers = any(isinstance(part, Take) for part in parts(*[item.value for item in self.k.items]))
        return not gathers and self.k.operations <= 24

    def _row_size(self) -> int:
        return math.prod(self.k.row[:-1]) * (-(-self.k.row[-1] // self.k.width) * self.k.width)

    def _temporary(self, pointer: str, op: Op, inner: list[str]) -> str:
        sizes = (*self.k.row[:-1], -(-self.k.row[-1] // self.k.width) * self.k.width)
        return self.r.at(pointer, computed(op.dtype), strides_of(sizes), inner)

    def _remembered(self) -> dict[int, tuple[int, Op]]:
        """Expressions that several phases need and that are dear to compute: kept in a row of memory."""
        k = self.k
        if max(self.phases, default=0) == 0 or not k.row or varying(k.row):
            return {}
        first: dict[int, int] = {}
        found: dict[int, tuple[int, Op]] = {}

        def dear(part: Value) -> bool:
            return isinstance(part, Op) and part.weight >= 4 and part.dtype != dtypes.bool_

        for phase in range(max(self.phases) + 1):

            def again(part: Value, phase: int = phase) -> Sequence[Value]:
                """What a phase computes itself: not what it finds remembered, and not numbers of the row."""
                mine = isinstance(part, Op) and len(part.shape) == len(k.groups)
                return inside(part) if mine and not (first.get(id(part), phase) < phase and dear(part)) else ()

            values = [value for (_, (value, _)), p in zip(self.items, self.phases, strict=True) if p == phase]
            for part in parts(*values, within=again):
                if isinstance(part, Op) and len(part.shape) == len(k.groups):
                    before = first.setdefault(id(part), phase)
                    if before < phase and dear(part):
                        found[id(part)] = (before, part)
        room = ROW_BYTES
        kept = {}
        for key, (before, op) in found.items():
            room -= self._row_size() * 4
            if room >= 0:
                kept[key] = (before, op)
        return kept

    # --- reductions

    def _into(self, cell: str, name: str, value: str, dtype: dtypes.DType, w: int, n: int) -> None:
        scalar = computed(dtype)
        kind = typed(scalar, w)
        if n < w:
            neutral = splat(_neutral(name, dtype), scalar, w)
            value = self.b.emit(f"select <{w} x i1> {lane_mask(w, n)}, {kind} {value}, {kind} {neutral}")
        old = self.b.emit(f"load {kind}, ptr {cell}")
        self.b.do(f"store {kind} {self._combine(name, old, value, dtype, w)}, ptr {cell}")

    def _settle(self, item: Reduce, target: View, cells: list[str], index: list[str]) -> None:
        """The number that the row's reduction comes to."""
        b, w, dtype = self.b, self.k.width, target.dtype
        kind = typed(computed(dtype), w)
        found = [b.emit(f"load {kind}, ptr {cell}") for cell in cells]
        while len(found) > 1:
            found = [self._combine(item.name, x, y, dtype, w) for x, y in zip(found[::2], found[1::2], strict=True)]
        total = self._across(item.name, found[0], dtype, w)
        if dtypes.is_half(dtype):
            total = rounded(b, total, dtype, 1)
        self.r.registers[target.buffer] = total
        if target.buffer not in self.k.silent:
            self.r.store(target, total, index)

    def _combine(self, name: str, x: str, y: str, dtype: dtypes.DType, w: int) -> str:
        kind = typed(computed(dtype), w)
        if name in ("max", "min"):
            return TABLE["maximum" if name == "max" else "minimum"](self.b, [x, y], [dtype, dtype], dtype, w)
        if name in ("any", "all"):
            return self.b.emit(f"{'or' if name == 'any' else 'and'} {kind} {x}, {y}")
        op = {"sum": ("fadd", "add"), "prod": ("fmul", "mul")}[name][0 if is_float(dtype) else 1]
        return self.b.emit(f"{op} {kind} {x}, {y}")

    def _across(self, name: str, vector: str, dtype: dtypes.DType, width: int) -> str:
        """Combine the lanes of a vector, halving it: the order is fixed."""
        if width == 1:
            return vector
        kind, w = typed(computed(dtype), width), width
        while w > 1:
            mask = ", ".join(f"i32 {i + w // 2 if i < w // 2 else i}" for i in range(width))
            moved = self.b.emit(f"shufflevector {kind} {vector}, {kind} poison, <{width} x i32> <{mask}>")
            vector = self._combine(name, vector, moved, dtype, width)
            w //= 2
        return self.b.emit(f"extractelement {kind} {vector}, i64 0")

    # --- sums over outer axes

    def _sums(self) -> list[tuple[Accumulate, View]]:
        return [(item, target) for item, (_, target) in self.items if isinstance(item, Accumulate)]

    def _in_parts(self, item: Accumulate, target: View) -> View:
        """The memory of a sum that is made in parts: in front of its own axes, one for the parts of every group."""
        counts = self._counts(item)
        kept = math.prod(n for s, n in zip(target.strides, self.k.sizes, strict=True) if s)
        strides = tuple(s * kept for s in strides_of(counts))
        return View(target.buffer, (*counts, *target.shape), (*strides, *target.strides), target.offset)

    def _counts(self, item: Accumulate) -> Shape:
        """How many parts the sum over every group of axes is made in."""
        return tuple(pieces(n, step) if step else 1 for n, step in zip(self.k.sizes, item.steps, strict=True))

    def _start_sums(self) -> None:
        """Every sum begins with its neutral element."""
        for item, target in self._sums():
            start = _neutral(item.name, target.dtype)
            self._over_parts(item, functools.partial(self._clear_part, self._in_parts(item, target), target, start))

    def _clear_part(self, view: View, target: View, start: str, part: list[str]) -> None:
        self._over_kept(target, functools.partial(self._clear, view, start, part))

    def _clear(self, view: View, start: str, part: list[str], place: list[str], w: int, n: int) -> None:
        self.r.store(view, splat(start, computed(view.dtype), w), [*part, *place], w, n)

    def _over_parts(self, item: Accumulate, body: Any) -> None:
        """body(index) for the parts of a sum that this chunk makes."""
        counts = self._counts(item)

        def along(axis: int, index: list[str]) -> None:
            if axis == len(counts):
                body(index)
            elif axis == 0 and self.k.shared and item.steps[0]:
                low = self.b.emit(f"udiv i64 {self.low}, {item.steps[0]}")
                last = self.b.emit(f"add nsw i64 {self.high}, {item.steps[0] - 1}")
                high = self.b.emit(f"udiv i64 {last}, {item.steps[0]}")
                self.b.loop(high, 1, lambda i: along(1, [i]), start=low)
            else:
                self.r.each(counts[axis], lambda i: along(axis + 1, [*index, i]))

        along(0, [])

    def _over_kept(self, target: View, body: Any) -> None:
        k, b = self.k, self.b
        last = len(k.sizes) - 1

        def along(axis: int, place: list[str]) -> None:
            if axis > last:
                if not k.sizes or not target.strides[last]:
                    body(place, 1, 1)
                return
            if target.strides[axis] == 0:
                along(axis + 1, [*place, "0"])
            elif axis == 0 and k.shared:
                if axis == last:
                    b.loop(self.high, 1, lambda i: body([i], 1, 1), start=self.low)
                else:
                    b.loop(self.high, 1, lambda i: along(1, [i]), start=self.low)
            elif axis == last:
                self.r.vectors(k.sizes[axis], k.width, lambda i, w, n: body([*place, i], w, n))
            else:
                self.r.each(k.sizes[axis], lambda i: along(axis + 1, [*place, i]))

        along(0, [])

    def accumulate(self, item: Accumulate, target: View, terms: list[str], place: list[str], w: int, n: int) -> None:
        """Add terms, in this order, to a sum at a place."""
        view = self._in_parts(item, target)
        where = [*self._part_at(item, place), *place]
        total = self.r.load(view, where, w, n)
        for term in terms:
            total = self._combine(item.name, total, term, target.dtype, w)
        self.r.store(view, total, where, w, n)

    def _part_at(self, item: Accumulate, place: list[str]) -> list[str]:
        """The part of a sum that a place belongs to."""
        at = []
        for i, step, count in zip(place, item.steps, self._counts(item), strict=True):
            whole = count == 1 and not isinstance(count, Extent)
            at.append("0" if whole else i if step == 1 else self.b.emit(f"udiv i64 {i}, {step}"))
        return at


def _neutral(name: str, dtype: dtypes.DType) -> str:
    scalar = computed(dtype)
    if name == "sum":
        return literal(0.0, scalar) if is_float(dtype) else "0"
    if name == "prod":
        return literal(1, scalar)
    if name in ("any", "all"):
        return "false" if name == "any" else "true"
    if is_float(dtype):
        return literal(-math.inf if name == "max" else math.inf, scalar)
    if dtype == dtypes.bool_:
        return "false" if name == "max" else "true"
    info = np.iinfo(dtype)
    return str(int(info.min if name == "max" else info.max))
