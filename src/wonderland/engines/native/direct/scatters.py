"""Writing at computed places, one update after the other: the order of updates is that of memory, whatever the chunks.

Chunks share out what cannot meet: parts of the rows that an index selects, or updates that an index tells apart. Else
there is one: if each of several went through all indices to find its own, that would take longer.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from ....core import dtypes
from ....core.errors import IndexOutOfRange
from ....ir.graph import Equation
from ....ir.sizes import largest
from ....primitives.indexing import out_of_range
from ..processor import Processor
from ..text.operations import TABLE, rounded
from ..text.routine import Memo, Routine
from ..tuning import HEAVY, MANY_UPDATES, UNROLLED
from ..values import Counter, Op, Shape, Value, View
from .step import Direct, Share, flat_view, grouped, lanes_for, on_groups, takes_rows, vectors_between

if TYPE_CHECKING:
    from ..schedule import Schedule

COMBINE = {"add": "add", "multiply": "multiply", "min": "minimum", "max": "maximum"}


def wrong_index(e: Equation, bad: int, size: int) -> IndexOutOfRange:
    shape, axes = tuple(map(int, e.inputs[0].shape)), e.params["axes"]
    axis = next(a for a in axes if shape[a] == size)
    return out_of_range(e.primitive.name, shape, axis, bad, e.params.get("labels", ""))


def scatter(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    x, updates, *indices = e.inputs
    axes, mode, drop = e.params["axes"], e.params["mode"], e.params.get("drop", False)
    if not all(x.shape[a] for a in axes):
        return False
    if not updates.aval.size:
        s.bind(out, s.value(x))
        return not indices[0].aval.size  # else they are still to be checked
    kind = _accumulated(out.dtype, largest(indices[0].aval.size)) if mode == "add" else out.dtype
    target = s.target(out) if kind == out.dtype else s.new(out.shape, kind)
    old = s.value(x)
    if isinstance(old, View) and old.buffer.kind in ("input", "carry") and old.dtype == target.dtype:
        s.copy_alone(old, target)  # where this is new state in the place of the old, there is nothing to copy
    else:
        s.copy(_as(old, target.dtype), target)
    new = s.value(updates)
    rows = bool(set(range(len(out.shape))) - set(axes)) and len(out.shape) - 1 not in axes
    heavy = isinstance(new, Op) and new.weight > HEAVY and not rows
    new = s.in_memory(new) if heavy or not takes_rows(new) else new
    found = [s.value(i) for i in indices]
    found = [s.in_memory(i) if isinstance(i, Op) and i.weight > 1 else i for i in found]
    new, *found = [s.ready(v) for v in (_as(new, target.dtype), *found)]
    label = None if drop else s.check(e, functools.partial(wrong_index, e))
    s.emit(Scatter(s.cpu, target, new, found, axes, mode, label))
    s.bind(out, _as(target, out.dtype))
    return True


def _accumulated(dtype: dtypes.DType, updates: int) -> dtypes.DType:
    """The type in which updates of one place are added: all of them may meet there."""
    if dtypes.is_half(dtype):
        return dtypes.float32
    return dtypes.float64 if dtype == dtypes.float32 and updates > MANY_UPDATES else dtype


def _as(value: Value, dtype: dtypes.DType) -> Value:
    return value if value.dtype == dtype else Op("astype", [value], value.shape, dtype)


class Scatter(Direct):
    """target[.., i1[b], .., ik[b], ..] = combine(it, updates[b, ..]) for every place b of the block of indices.

    Without a label, where an index out of range is noted, nothing is written for it.
    """

    any_size = True  # see general.py

    def __init__(
        self,
        cpu: Processor,
        target: View,
        updates: Value,
        indices: list[Value],
        axes: Shape,
        mode: str,
        label: View | None,
    ) -> None:
        block = len(indices[0].shape)
        left = [a for a in range(len(target.shape)) if a not in axes]
        self.steps = tuple(target.strides[a] for a in axes)
        self.sizes = tuple(target.shape[a] for a in axes)
        self.mode, self.label = mode, label
        space = updates.shape
        spread = View(target.buffer, space, (0,) * block + tuple(target.strides[a] for a in left), target.offset)
        groups = grouped(space, [int(a >= block) for a in range(len(space))], [updates, *indices, spread])
        self.block = sum(group[-1] < block for group in groups)  # how many groups are of the block
        self.updates = on_groups(updates, groups)
        self.indices = [on_groups(i, groups[: self.block]) for i in indices]
        self.target = flat_view(spread, groups)
        self.space = self.updates.shape
        super().__init__([self.updates, *self.indices], [self.target], notes=[] if label is None else [label])
        self.reads.append(target.buffer)
        row = self.space[-1] if len(self.space) > self.block else 1
        # where what an index selects does not lie together in memory, all indices are gone through for each place
        self.inside = len(self.space) > self.block and self.target.strides[-1] != 1
        self.w = 1 if self.inside else lanes_for(cpu, [self.updates, self.target], row)
        self._cut(row)

    def _cut(self, row: int) -> None:
        places = int(math.prod(self.space)) / row
        weight = self.updates.weight if isinstance(self.updates, Op) else 1
        time = places * (1 + -(-row // self.w) * (1 + weight / 4)) / 1000
        self.along = "row"
        if len(self.space) > self.block and row >= 8 * self.w:
            self.share = Share(row, time, 4 * self.w)
        elif self.inside:
            self.share = Share(row, time)
        elif self.block and any(_distinct(i, n) for i, n in zip(self.indices, self.sizes, strict=True)):
            self.along, self.share = "block", Share(self.space[0], time)
        else:
            self.share = Share(row, 0)

    def settings(self) -> object:
        return self.mode, self.label is None, self.along, self.inside, self.steps, self.sizes, self.block, self.w

    def emit(self, r: Routine) -> None:
        low, high = self.share.range(r)
        if self.inside:
            rest = len(self.space) - self.block - 1

            def left(axis: int, index: list[str]) -> None:
                if axis == rest:
                    r.b.loop(high, 1, lambda i: self._block(r, [], [*index, i], low, high), low)
                else:
                    r.each(self.space[self.block + axis], lambda i: left(axis + 1, [*index, i]))

            left(0, [])
        else:
            self._block(r, [], None, low, high)

    def _block(self, r: Routine, index: list[str], rest: list[str] | None, low: str, high: str) -> None:
        """Go through the updates from a given index on; `rest` is the index of what they select, if it is fixed."""
        if len(index) == self.block:
            self._update(r, index, rest, low, high)
        elif not index and self.along == "block":
            r.b.loop(high, 1, lambda i: self._block(r, [i], rest, low, high), low)
        else:
            r.each(self.space[len(index)], lambda i: self._block(r, [*index, i], rest, low, high))

    def _update(self, r: Routine, index: list[str], rest: list[str] | None, low: str, high: str) -> None:
        b, place, good = r.b, "0", ""
        for value, step, size in zip(self.indices, self.steps, self.sizes, strict=True):
            counted, bad = r.counted(value, size, self.label, index, 1, 1, {})
            fine = b.emit(f"xor i1 {bad}, true")
            good = fine if not good else b.emit(f"and i1 {good}, {fine}")
            place = r.linear((1, step), (place, counted))

        def write() -> None:
            if rest is not None:
                self._combine(r, [*index, *rest], place, 1, 1)
            elif len(self.space) == self.block:
                self._combine(r, index, place, 1, 1)
            else:
                self._row(r, index, place, low, high)

        b.when(good, write)

    def _row(self, r: Routine, index: list[str], place: str, low: str, high: str) -> None:
        total = self.space[-1]

        def along(axis: int, inner: list[str]) -> None:
            if axis < len(self.space) - 1:
                r.each(self.space[axis], lambda i: along(axis + 1, [*inner, i]))
                return

            def body(i: str, w: int, n: int) -> None:
                self._combine(r, [*index, *inner, i], place, w, n)

            piece = self.share.step if self.along == "row" else total
            if total % piece == 0 and piece <= UNROLLED * self.w:
                for i in range(0, piece, self.w):
                    body(r.linear((1,), (low if self.along == "row" else "0",), i), self.w, min(self.w, piece - i))
            else:
                ends = (low, high) if self.along == "row" else ("0", str(total))
                vectors_between(r, *ends, total, self.w, body)

        along(self.block, [])

    def _combine(self, r: Routine, index: list[str], place: str, w: int, n: int) -> None:
        memo: Memo = {}
        new = r.value(self.updates, index, w, n, memo)
        view, dtype = self.target, self.target.dtype
        # the place is one more axis
        moved = View(view.buffer, (1, *view.shape), (1, *view.strides), view.offset)
        if self.mode != "set":
            name = COMBINE[self.mode]
            old = r.load(moved, [place, *index], w, n)
            new = TABLE[name](r.b, [old, new], [dtype, dtype], dtype, w)
            if dtypes.is_half(dtype) and not TABLE[name].exact:
                new = rounded(r.b, new, dtype, w)
        r.store(moved, new, [place, *index], w, n)


def _distinct(index: Value, size: int) -> bool:
    """Whether an index differs along the first axis of the block and does not depend on the others."""
    if not isinstance(index, Counter) or not index.scales[0] or any(index.scales[1:]):
        return False
    last = index.start + index.scales[0] * (index.shape[0] - 1)
    return 0 <= min(index.start, last) <= max(index.start, last) < size
