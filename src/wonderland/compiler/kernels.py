"""Loop kernels: what they compute, and their LLVM text.

A kernel runs over an iteration space. It stores expressions elementwise, or reduces one expression over some axes. Axes
that step evenly through all memory involved are merged; the last one is vectorised, with a scalar loop for what is left
over.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from .builder import STORED, Builder, computed, is_float, literal, narrow, splat, typed, widen
from .machine import machine
from .operations import TABLE, rounded
from .values import Buffer, Const, Counter, Op, Shape, Value, View, leaves


class Kernel:
    """Stores of expressions over one iteration space; with `reduce`, one store of a reduction over `axes`."""

    def __init__(
        self, shape: Shape, stores: list[tuple[View, Value]], reduce: str | None = None, axes: tuple[int, ...] = ()
    ) -> None:
        self.shape = shape
        self.stores = stores
        self.reduce = reduce
        self.axes = axes

    @property
    def reads(self) -> list[Buffer]:
        return list(dict.fromkeys(leaf.buffer for _, value in self.stores for leaf in leaves(value)))

    @property
    def writes(self) -> list[Buffer]:
        return list(dict.fromkeys(view.buffer for view, _ in self.stores))

    @property
    def buffers(self) -> list[Buffer]:
        return list(dict.fromkeys([*self.reads, *self.writes]))


def merged_axes(shape: Shape, accesses: list[Shape], kinds: list[int]) -> list[list[int]]:
    """Groups of adjacent axes that can be walked as one."""
    groups: list[list[int]] = []
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if groups and kinds[groups[-1][-1]] == kinds[axis]:
            last = groups[-1][-1]
            if all(strides[last] == strides[axis] * n for strides in accesses):
                groups[-1].append(axis)
                continue
        groups.append([axis])
    return groups


def _accesses(value: Value) -> list[Shape]:
    if isinstance(value, View):
        return [value.strides]
    if isinstance(value, Counter):
        return [value.scales]
    if isinstance(value, Op):
        return [s for a in value.args for s in _accesses(a)]
    return []


class Emitter:
    """The text of one kernel's function."""

    def __init__(self, kernel: Kernel, name: str, declarations: set[str]) -> None:
        self.kernel = kernel
        self.b = Builder(declarations)
        self.name = name
        self.pointers = {buffer: f"%p{i}" for i, buffer in enumerate(kernel.buffers)}
        reduced = [i in kernel.axes for i in range(len(kernel.shape))]
        self.accesses = [s for _, value in kernel.stores for s in _accesses(value)]
        targets = [self._spread(view.strides) for view, _ in kernel.stores]
        self.groups = merged_axes(kernel.shape, self.accesses + targets, [int(r) for r in reduced])
        self.sizes = [math.prod(kernel.shape[a] for a in group) for group in self.groups]
        self.reduced = [reduced[group[0]] for group in self.groups]
        widest = max(np.dtype(v.dtype).itemsize for _, value in kernel.stores for v in _parts(value))
        self.width = max(1, machine().vector_bytes // max(widest, 4))

    def _spread(self, strides: Shape) -> Shape:
        """The strides of a reduction's target, with 0 for the reduced axes."""
        if not self.kernel.axes:
            return strides
        rest = iter(strides)
        return tuple(0 if i in self.kernel.axes else next(rest) for i in range(len(self.kernel.shape)))

    def _steps(self, strides: Shape) -> list[int]:
        return [strides[group[-1]] for group in self.groups]

    def text(self) -> str:
        params = ", ".join(f"ptr noalias %p{i}" for i in range(len(self.pointers)))
        self.b.start("entry")
        if self.kernel.reduce is None:
            self._elementwise()
        else:
            self._reduction()
        self.b.do("ret void")
        body = "\n".join(self.b.lines)
        return f"define void @{self.name}({params}) {{\n{body}\n}}\n"

    # --- elementwise

    def _elementwise(self) -> None:
        if not self.groups:
            self._store_all([], 1)
            return
        last = len(self.groups) - 1
        width = self.width if self.sizes[last] >= self.width else 1

        def outer(axis: int, index: list[str]) -> None:
            if axis == last:
                self._split(self.sizes[last], width, lambda i, w: self._store_all([*index, i], w))
            else:
                self.b.loop(self.sizes[axis], 1, lambda i: outer(axis + 1, [*index, i]))

        outer(0, [])

    def _split(self, size: int, width: int, body: Any) -> None:
        """A vector loop over the largest multiple of the width, and a scalar loop over the rest."""
        whole = size - size % width
        if whole:
            self.b.loop(whole, width, lambda i: body(i, width))
        if whole < size:
            self.b.loop(size, 1, lambda i: body(i, 1), start=whole)

    def _store_all(self, index: list[str], w: int) -> None:
        memo: dict[int, str] = {}
        values = [(view, self.value(value, index, w, memo)) for view, value in self.kernel.stores]
        for view, value in values:
            self._store(view, value, self._steps(view.strides), index, w)

    # --- reductions

    def _reduction(self) -> None:
        ((target, value),) = self.kernel.stores
        kept = [i for i, r in enumerate(self.reduced) if not r]
        gone = [i for i, r in enumerate(self.reduced) if r]
        steps = self._steps(self._spread(target.strides))
        last = len(self.groups) - 1
        vector_kept = bool(self.groups) and not self.reduced[last]
        scalar = computed(target.dtype)
        b = self.b

        def finish(index: dict[int, str], w: int) -> None:
            """Reduce over all reduced axes for one place (or w places) of the result, and store it."""
            start = _neutral(self.kernel.reduce, target.dtype)
            kind = typed(scalar, w)
            total = self._fold(gone, index, w, [(kind, splat(start, scalar, w))], value, vector_kept)
            full = [index.get(i, "0") for i in range(len(self.groups))]
            self._store(target, total, steps, full, w)

        def outer(position: int, index: dict[int, str]) -> None:
            if position == len(kept):
                finish(index, 1)
            elif vector_kept and kept[position] == last:
                width = self.width if self.sizes[last] >= self.width else 1
                self._split(self.sizes[last], width, lambda i, w: finish({**index, last: i}, w))
            else:
                axis = kept[position]
                b.loop(self.sizes[axis], 1, lambda i: outer(position + 1, {**index, axis: i}))

        outer(0, {})

    def _fold(
        self,
        axes: list[int],
        index: dict[int, str],
        w: int,
        carried: list[tuple[str, str]],
        value: Value,
        vector_kept: bool,
    ) -> str:
        """The nested loops over the reduced axes; the innermost is vectorised if no kept axis is."""
        b = self.b
        kind, initial = carried[0]
        if not axes:
            full = [index.get(i, "0") for i in range(len(self.groups))]
            return self._combine(initial, self.value(value, full, w, {}), w)
        axis, rest = axes[0], axes[1:]
        size = self.sizes[axis]
        if rest or vector_kept or size < self.width:
            return b.loop_with(
                [(kind, initial)],
                size,
                1,
                lambda i, names: [self._fold(rest, {**index, axis: i}, w, [(kind, names[0])], value, vector_kept)],
            )[0]
        # the last reduced axis is contiguous: several vectors at once hide the latency of the additions
        width = self.width
        scalar = computed(value.dtype if self.kernel.reduce not in ("any", "all") else dtypes.bool_)
        wide = typed(scalar, width)
        neutral = splat(_neutral(self.kernel.reduce, self.kernel.stores[0][0].dtype), scalar, width)
        lanes = 4 if size >= 4 * width else 1
        whole = size - size % (width * lanes)

        def step(i: str, names: list[str]) -> list[str]:
            results = []
            for k in range(lanes):
                place = i if k == 0 else b.emit(f"add nsw i64 {i}, {k * width}")
                full = [{**index, axis: place}.get(j, "0") for j in range(len(self.groups))]
                results.append(self._combine(names[k], self.value(value, full, width, {}), width))
            return results

        sums = b.loop_with([(wide, neutral)] * lanes, whole, width * lanes, step)
        while len(sums) > 1:
            sums = [self._combine(x, y, width) for x, y in zip(sums[::2], sums[1::2], strict=True)]
        total = self._combine(initial, self._across(sums[0], scalar, width), 1)

        def left(i: str, names: list[str]) -> list[str]:
            full = [{**index, axis: i}.get(j, "0") for j in range(len(self.groups))]
            return [self._combine(names[0], self.value(value, full, 1, {}), 1)]

        return b.loop_with([(scalar, total)], size, 1, left, start=whole)[0] if whole < size else total

    def _combine(self, x: str, y: str, w: int) -> str:
        dtype = self.kernel.stores[0][0].dtype
        kind = typed(computed(dtype), w)
        name = self.kernel.reduce
        if name in ("max", "min"):
            return TABLE["maximum" if name == "max" else "minimum"](self.b, [x, y], [dtype, dtype], dtype, w)
        if name in ("any", "all"):
            return self.b.emit(f"{'or' if name == 'any' else 'and'} {kind} {x}, {y}")
        op = {"sum": ("fadd", "add"), "prod": ("fmul", "mul")}[name or ""][0 if is_float(dtype) else 1]
        return self.b.emit(f"{op} {kind} {x}, {y}")

    def _across(self, vector: str, scalar: str, width: int) -> str:
        """Combine the lanes of a vector, halving it: the order is fixed."""
        kind, w = typed(scalar, width), width
        while w > 1:
            mask = ", ".join(f"i32 {i + w // 2 if i < w // 2 else i}" for i in range(width))
            moved = self.b.emit(f"shufflevector {kind} {vector}, {kind} poison, <{width} x i32> <{mask}>")
            vector = self._combine(vector, moved, width)
            w //= 2
        return self.b.emit(f"extractelement {kind} {vector}, i64 0")

    # --- values and memory

    def value(self, value: Value, index: list[str], w: int, memo: dict[int, str]) -> str:
        found = memo.get(id(value))
        if found is None:
            found = memo[id(value)] = self._value(value, index, w, memo)
        return found

    def _value(self, value: Value, index: list[str], w: int, memo: dict[int, str]) -> str:
        scalar = computed(value.dtype)
        if isinstance(value, Const):
            return splat(literal(value.value, scalar), scalar, w)
        if isinstance(value, View):
            return self._load(value, index, w)
        if isinstance(value, Counter):
            return self._count(value, index, w)
        args = [self.value(a, index, w, memo) for a in value.args]
        made = TABLE[value.name](self.b, args, [a.dtype for a in value.args], value.dtype, w)
        if value.dtype in (dtypes.float16, dtypes.bfloat16) and value.name not in ("where", "astype", "negative"):
            made = rounded(self.b, made, value.dtype, w)
        return made

    def _address(self, steps: list[int], index: list[str], offset: int) -> str:
        """offset + sum(step * index) as an i64."""
        total = str(offset)
        for step, i in zip(steps, index, strict=True):
            if step == 0 or i == "0":
                continue
            term = i if step == 1 else self.b.emit(f"mul nsw i64 {i}, {step}")
            total = term if total == "0" else self.b.emit(f"add nsw i64 {total}, {term}")
        return total

    def _load(self, view: View, index: list[str], w: int) -> str:
        b = self.b
        stored, scalar = STORED[view.dtype], computed(view.dtype)
        steps = self._steps(view.strides)
        place = self._address(steps, index, view.offset)
        pointer = b.emit(f"getelementptr inbounds {stored}, ptr {self.pointers[view.buffer]}, i64 {place}")
        align = view.dtype.itemsize
        inner = steps[-1] if steps else 0
        if w == 1:
            return widen(b, b.emit(f"load {stored}, ptr {pointer}, align {align}"), view.dtype, 1)
        if inner == 0:
            return b.spread(widen(b, b.emit(f"load {stored}, ptr {pointer}, align {align}"), view.dtype, 1), scalar, w)
        kind = typed(stored, w)
        if inner == 1:
            return widen(b, b.emit(f"load {kind}, ptr {pointer}, align {align}"), view.dtype, w)
        out = "poison"
        for lane in range(w):
            at = b.emit(f"getelementptr inbounds {stored}, ptr {pointer}, i64 {lane * inner}")
            part = b.emit(f"load {stored}, ptr {at}, align {align}")
            out = b.emit(f"insertelement {kind} {out}, {stored} {part}, i64 {lane}")
        return widen(b, out, view.dtype, w)

    def _store(self, view: View, value: str, steps: list[int], index: list[str], w: int) -> None:
        b = self.b
        stored = STORED[view.dtype]
        value = narrow(b, value, view.dtype, w)
        place = self._address(steps, index, view.offset)
        pointer = b.emit(f"getelementptr inbounds {stored}, ptr {self.pointers[view.buffer]}, i64 {place}")
        align = view.dtype.itemsize
        inner = steps[-1] if steps else 1
        if w == 1 or inner == 1:
            b.do(f"store {typed(stored, w)} {value}, ptr {pointer}, align {align}")
            return
        for lane in range(w):
            part = b.emit(f"extractelement {typed(stored, w)} {value}, i64 {lane}")
            at = b.emit(f"getelementptr inbounds {stored}, ptr {pointer}, i64 {lane * inner}")
            b.do(f"store {stored} {part}, ptr {at}, align {align}")

    def _count(self, counter: Counter, index: list[str], w: int) -> str:
        b = self.b
        steps = self._steps(counter.scales)
        first = self._address(steps, index, counter.start)
        inner = steps[-1] if steps and w > 1 else 0
        value = first
        if w > 1:
            value = b.spread(first, "i64", w) if first.startswith("%") else splat(first, "i64", w)
            if inner:
                ramp = "<" + ", ".join(f"i64 {lane * inner}" for lane in range(w)) + ">"
                value = b.emit(f"add {typed('i64', w)} {value}, {ramp}")
        return TABLE["astype"](b, [value], [dtypes.int64], counter.dtype, w)


def _parts(value: Value) -> list[Value]:
    if isinstance(value, Op):
        return [value] + [p for a in value.args for p in _parts(a)]
    return [value]


def _neutral(name: str | None, dtype: Any) -> str:
    scalar = computed(dtype)
    if name == "sum":
        # minus zero is neutral also for minus zero
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
