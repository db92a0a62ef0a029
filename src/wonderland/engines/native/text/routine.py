"""One native routine, `void routine(ptr table, ptr slots, i64 chunk)`, and how values are read and written in it.

`table` holds the addresses of all buffers of a program. `slots` tells which of them the routine works on: a pair (place
in the table, byte offset) for every distinct (buffer, offset) among its views, in the order in which the step lists
them. So one routine serves every step that differs only in its buffers. `chunk` is the number of the piece of the work
to do; how many pieces there are depends on the problem alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....core import dtypes
from ....ir.sizes import Extent, varying
from .. import checked
from ..processor import Processor
from ..values import SIZE, Buffer, Const, Counter, Hole, Op, Take, Value, View, accesses, inside, parts
from .builder import STORED, Builder, computed, literal, narrow, splat, typed, widen
from .operations import TABLE, rounded

Slot = tuple[Buffer, int]  # a buffer and an offset in bytes
Memo = dict[int, str]  # registers of values that are known already, by id


def slots_of(views: Sequence[View]) -> list[Slot]:
    """The distinct places where views begin; then that of the size of the batch, if views have it."""
    found = dict.fromkeys((v.buffer, v.offset * v.dtype.itemsize) for v in views)
    if any(varying(v.shape) for v in views):
        found[(SIZE, 0)] = None
    return list(found)


class Routine:
    """The text of a routine under construction."""

    def __init__(self, slots: Sequence[Slot], cpu: Processor) -> None:
        self.cpu = cpu
        self.declarations: set[str] = set()
        self.b = Builder(self.declarations, self.cpu)
        self.slots = {slot: i for i, slot in enumerate(slots)}
        self.chunk = "%chunk"
        self._head = Builder(
            self.declarations, self.cpu
        )  # what stands before the body: pointers and memory on the stack
        self._head.prefix = "h"
        self._pointers: dict[Slot, str] = {}
        self.registers: dict[Buffer, str] = {}  # numbers that the routine has computed and need not read
        self.places: dict[int, str] = {}  # and places of gathers, by id
        self._parts: dict[object, tuple[str, list[str]]] = {}
        self._sizes: dict[str, str] = {}  # registers of sizes that vary
        self.b.start("body")

    def text(self, name: str) -> str:
        head = "\n".join(self._head.lines)
        body = "\n".join(self.b.lines)
        signature = f"define void @{name}(ptr noalias %table, ptr noalias %slots, i64 %chunk)"
        declared = "".join(f"{line}\n" for line in sorted(self.declarations))
        parts = "".join(f"{line}\n" for _, lines in self._parts.values() for line in lines)
        text = f"{parts}{signature} {{\nentry:\n{head}\n  br label %body\n{body}\n  ret void\n}}\n"
        return declared + text.replace("@part", f"@{name}.part")

    def part(self, key: object, args: Sequence[tuple[str, str]], body: Callable[[list[str]], None]) -> None:
        """body(args) as a function of its own, written once for each key; args are (type, register) pairs.

        The body uses no other registers and no memory on the stack. Less text, and loops that are not inside others,
        take the compiler less time.
        """
        if key not in self._parts:
            name, names = f"@part{len(self._parts)}", [f"%a{i}" for i in range(len(args))]
            outer, self.b = self.b, Builder(self.declarations, self.cpu)
            listed = ", ".join(f"{kind} {a}" for (kind, _), a in zip(args, names, strict=True))
            self.b.lines.append(f"define internal void {name}({listed}) noinline {{")
            self.b.start("entry")
            body(names)
            self._parts[key] = name, [*self.b.lines, "  ret void", "}"]
            self.b = outer
        self.b.do(f"call void {self._parts[key][0]}({', '.join(f'{kind} {a}' for kind, a in args)})")

    # --- memory

    def pointer(self, view: View) -> str:
        """The address of a view's first element."""
        slot = (view.buffer, view.offset * view.dtype.itemsize)
        if slot not in self._pointers:
            h, i = self._head, self.slots[slot]
            place = h.emit(f"load i64, ptr {h.emit(f'getelementptr i64, ptr %slots, i64 {2 * i}')}, align 8")
            offset = h.emit(f"load i64, ptr {h.emit(f'getelementptr i64, ptr %slots, i64 {2 * i + 1}')}, align 8")
            base = h.emit(f"load ptr, ptr {h.emit(f'getelementptr ptr, ptr %table, i64 {place}')}, align 8")
            self._pointers[slot] = h.emit(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self._pointers[slot]

    def size(self, size: int) -> str:
        """A size: a number, or a register if it is known at run time alone."""
        if not isinstance(size, Extent):
            return str(size)
        if repr(size) not in self._sizes:
            pointer, h = self.pointer(View(SIZE, (), ())), self._head
            n = h.emit(f"load i64, ptr {pointer}, align 8")
            n = n if size.inner == 1 else h.emit(f"mul nsw i64 {n}, {size.inner}")
            if size.per > 1:
                n = h.emit(f"udiv i64 {h.emit(f'add nsw i64 {n}, {size.per - 1}')}, {size.per}")
            self._sizes[repr(size)] = n if size.outer == 1 else h.emit(f"mul nsw i64 {n}, {size.outer}")
        return self._sizes[repr(size)]

    def stack(self, count: int, scalar: str) -> str:
        """Memory of the routine's own for `count` elements."""
        return self._head.emit(f"alloca [{count} x {scalar}], align 64")

    def cell(self, kind: str, start: str) -> str:
        """A variable with a first value; the optimizer keeps it in a register."""
        cell = self._head.emit(f"alloca {kind}, align 64")
        self.b.do(f"store {kind} {start}, ptr {cell}")
        return cell

    def at(self, pointer: str, scalar: str, steps: Sequence[int], index: Sequence[str], offset: int = 0) -> str:
        """The address of pointer[offset + sum(step * index)]."""
        place = self.linear(steps, index, offset)
        if place == "0":
            return pointer
        return self.b.emit(f"getelementptr inbounds {scalar}, ptr {pointer}, i64 {place}")

    def linear(self, steps: Sequence[int], index: Sequence[str], start: int = 0) -> str:
        """start + sum(step * index) as an i64; index entries are registers or numbers."""
        total, terms = start, []
        for step, i in zip(steps, index, strict=True):
            if step == 0:
                continue
            if not i.startswith("%"):
                total += step * int(i)
            else:
                terms.append(i if step == 1 else self.b.emit(f"mul nsw i64 {i}, {step}"))
        place = terms.pop(0) if terms else str(total)
        for term in terms:
            place = self.b.emit(f"add nsw i64 {place}, {term}")
        if total and place.startswith("%"):
            place = self.b.emit(f"add nsw i64 {place}, {total}")
        return place

    def prefetch(self, pointer: str, cache: int = 1) -> None:
        """Ask for the line at a place, which need not be inside of anything, for the first or the second cache."""
        self.b.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.b.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {4 - cache}, i32 1)")

    # --- vectors of w lanes, of which the first n count

    def load_vector(self, pointer: str, stored: str, align: int, w: int, n: int) -> str:
        """w elements that follow each other in memory; lanes from n on are 0 and their memory is not touched."""
        if n == w:
            return self.b.emit(f"load {typed(stored, w)}, ptr {pointer}, align {align}")
        return self.load_lanes(pointer, stored, align, w, lane_mask(w, n))

    def load_lanes(self, pointer: str, stored: str, align: int, w: int, lanes: str) -> str:
        """The elements whose lanes are set; the others are 0 and their memory is not touched."""
        kind, name = typed(stored, w), f"@llvm.masked.load.v{w}{SUFFIX[stored]}.p0"
        self.declarations.add(f"declare {kind} {name}(ptr, i32, <{w} x i1>, {kind})")
        return self.b.emit(
            f"call {kind} {name}(ptr {pointer}, i32 {align}, <{w} x i1> {lanes}, {kind} zeroinitializer)"
        )

    def store_vector(self, value: str, pointer: str, stored: str, align: int, w: int, n: int) -> None:
        b, kind = self.b, typed(stored, w)
        if n == w:
            b.do(f"store {kind} {value}, ptr {pointer}, align {align}")
            return
        if n == 1:  # a mask of one lane makes LLVM's x86 backend store 32 bits of a narrowed integer
            first = b.emit(f"extractelement {kind} {value}, i64 0")
            b.do(f"store {stored} {first}, ptr {pointer}, align {align}")
            return
        self.store_lanes(value, pointer, stored, align, w, lane_mask(w, n))

    def store_lanes(self, value: str, pointer: str, stored: str, align: int, w: int, lanes: str) -> None:
        """Store the lanes that are set; the memory of the others is not touched."""
        kind, name = typed(stored, w), f"@llvm.masked.store.v{w}{SUFFIX[stored]}.p0"
        self.declarations.add(f"declare void {name}({kind}, ptr, i32, <{w} x i1>)")
        self.b.do(f"call void {name}({kind} {value}, ptr {pointer}, i32 {align}, <{w} x i1> {lanes})")

    def load(self, view: View, index: Sequence[str], w: int = 1, n: int | None = None) -> str:
        """Elements of a view at an index, one entry per axis; the last axis runs through the lanes."""
        b, n = self.b, w if n is None else n
        stored, scalar, align = STORED[view.dtype], computed(view.dtype), view.dtype.itemsize
        pointer = self.at(self.pointer(view), stored, view.strides, index)
        inner = view.strides[-1] if view.strides else 0
        if w == 1 or inner == 0:
            single = widen(b, b.emit(f"load {stored}, ptr {pointer}, align {align}"), view.dtype, 1)
            return b.spread(single, scalar, w)
        if inner == 1:
            return widen(b, self.load_vector(pointer, stored, align, w, n), view.dtype, w)
        return widen(b, self._strided(pointer, stored, align, inner, w, n), view.dtype, w)

    def _strided(self, pointer: str, stored: str, align: int, step: int, w: int, n: int) -> str:
        """w elements that are `step` apart in memory; lanes from n on are 0."""
        if step == 2 and n > 1:
            return self._every_other(pointer, stored, align, w, n)
        b, out = self.b, "zeroinitializer" if n < w else "poison"
        for lane in range(n):
            at = b.emit(f"getelementptr inbounds {stored}, ptr {pointer}, i64 {lane * step}")
            part = b.emit(f"load {stored}, ptr {at}, align {align}")
            out = b.emit(f"insertelement {typed(stored, w)} {out}, {stored} {part}, i64 {lane}")
        return out

    def _every_other(self, pointer: str, stored: str, align: int, w: int, n: int) -> str:
        """The elements 0, 2, 4, ... (parts of complex numbers) out of two vectors; nothing behind the last is read."""
        kind, last = typed(stored, w), 2 * n - 1
        skip = w - 1 if n == w else w  # a second vector that is whole overlaps the first
        low, high = self.load_vector(pointer, stored, align, w, min(w, last)), "zeroinitializer"
        if last > w:
            at = self.b.emit(f"getelementptr inbounds {stored}, ptr {pointer}, i64 {skip}")
            high = self.load_vector(at, stored, align, w, last - skip)
        lanes = ", ".join(f"i32 {i if i < w else w + i - skip}" for i in range(0, 2 * w, 2))
        return self.b.emit(f"shufflevector {kind} {low}, {kind} {high}, <{w} x i32> <{lanes}>")

    def _store_every_other(self, value: str, pointer: str, stored: str, align: int, w: int, n: int) -> None:
        """Store lanes at the places 0, 2, 4, ... and leave those in between as they are."""
        b, kind = self.b, typed(stored, w)
        for start in range(0, min(2 * n, 2 * w), w):
            lanes = ", ".join(f"i32 {(start + i) // 2}" for i in range(w))
            spread = b.emit(f"shufflevector {kind} {value}, {kind} poison, <{w} x i32> <{lanes}>")
            mask = ", ".join(f"i1 {'true' if i % 2 == 0 and start + i < 2 * n else 'false'}" for i in range(w))
            at = b.emit(f"getelementptr inbounds {stored}, ptr {pointer}, i64 {start}") if start else pointer
            self.store_lanes(spread, at, stored, align, w, f"<{mask}>")

    def store(self, view: View, value: str, index: Sequence[str], w: int = 1, n: int | None = None) -> None:
        b, n = self.b, w if n is None else n
        stored, align = STORED[view.dtype], view.dtype.itemsize
        value = narrow(b, value, view.dtype, w)
        pointer = self.at(self.pointer(view), stored, view.strides, index)
        inner = view.strides[-1] if view.strides else 1
        if w == 1:
            b.do(f"store {stored} {value}, ptr {pointer}, align {align}")
        elif inner == 1:
            self.store_vector(value, pointer, stored, align, w, n)
        elif inner == 2 and stored in ("float", "double"):
            self._store_every_other(value, pointer, stored, align, w, n)
        else:
            for lane in range(n):
                part = b.emit(f"extractelement {typed(stored, w)} {value}, i64 {lane}")
                at = b.emit(f"getelementptr inbounds {stored}, ptr {pointer}, i64 {lane * inner}")
                b.do(f"store {stored} {part}, ptr {at}, align {align}")

    # --- values

    def value(
        self, value: Value, index: Sequence[str], w: int = 1, n: int | None = None, memo: Memo | None = None
    ) -> str:
        """The register that holds a value at an index (one entry per axis of the value), w lanes along the last axis.

        `memo` holds what is known already, by id: at least the holes of the value.
        """
        memo = {} if memo is None else memo
        for part in parts(value, known=memo, within=_operands):
            memo[id(part)] = self._value(part, index, w, w if n is None else n, memo)
        return memo[id(value)]

    def _value(self, value: Value, index: Sequence[str], w: int, n: int, memo: Memo) -> str:
        """The register of a value whose operands are known."""
        scalar = computed(value.dtype)
        if isinstance(value, Const):
            return splat(literal(value.value, scalar), scalar, w)
        if isinstance(value, View):
            if value.buffer in self.registers:
                return self.b.spread(self.registers[value.buffer], scalar, w)
            return self.load(value, index, w, n)
        if isinstance(value, Counter):
            return self._count(value, index, w)
        if isinstance(value, Hole):
            return memo[id(value.source)]
        if isinstance(value, Take):
            return self._take(value, index, w, n, memo)
        if value.name in checked.TABLE:
            return self._checked(value, w, n, memo)
        args = [memo[id(a)] for a in value.args]
        operation = TABLE[value.name]
        made = operation(self.b, args, [a.dtype for a in value.args], value.dtype, w)
        if dtypes.is_half(value.dtype) and not operation.exact:
            made = rounded(self.b, made, value.dtype, w)
        elif value.dtype == dtypes.bfloat16:
            operands = [arg for arg, a in zip(args, value.args, strict=True) if a.dtype != dtypes.bool_]
            if all(arg in self.b.short for arg in operands):
                self.b.short.add(made)
        return made

    def _checked(self, op: Op, w: int, n: int, memo: Memo) -> str:
        """An operation that may refuse its arguments, which is noted in the view that is its last one."""
        *inner, label = op.args
        assert isinstance(label, View)
        args = [memo[id(a)] for a in inner]
        made, bad, word = checked.TABLE[op.name](self.b, args, [a.dtype for a in inner], op.dtype, w)
        if n < w:
            bad = self.b.emit(f"and <{w} x i1> {bad}, {lane_mask(w, n)}")
        self.note(bad, word, label, w)
        return made

    def _count(self, counter: Counter, index: Sequence[str], w: int) -> str:
        b = self.b
        value = self.linear(counter.scales, index, counter.start)
        if w > 1:
            value = b.spread(value, "i64", w)
            inner = counter.scales[-1] if counter.scales else 0
            if inner:
                ramp = "<" + ", ".join(f"i64 {lane * inner}" for lane in range(w)) + ">"
                value = b.emit(f"add {typed('i64', w)} {value}, {ramp}")
        return TABLE["astype"](b, [value], [dtypes.int64], counter.dtype, w)

    def _take(self, take: Take, index: Sequence[str], w: int, n: int, memo: Memo) -> str:
        """Elements at computed places. An index out of range is noted, and place 0 is read instead."""
        b, view = self.b, take.view
        stored, scalar, align = STORED[view.dtype], computed(view.dtype), view.dtype.itemsize
        even = w == 1 or all(is_even(i) for i in take.indices)
        lanes = 1 if even else w
        place = self.b.spread(self.linear(take.rest, index), "i64", lanes)
        inner = take.rest[-1] if take.rest else 0
        if not even and inner:
            ramp = "<" + ", ".join(f"i64 {lane * inner}" for lane in range(w)) + ">"
            place = b.emit(f"add <{w} x i64> {place}, {ramp}")
        kind = typed("i64", lanes)
        selected = self.places.get(id(take))
        if selected is None:
            selected = self.selected(take, index, lanes, min(n, lanes), {} if even and w > 1 else memo)
        place = b.emit(f"add {kind} {place}, {selected}")
        pointer = self.pointer(view)
        if even:
            at = b.emit(f"getelementptr inbounds {stored}, ptr {pointer}, i64 {place}")
            if w > 1 and inner == 1:
                return widen(b, self.load_vector(at, stored, align, w, n), view.dtype, w)
            if w > 1 and inner:
                return widen(b, self._strided(at, stored, align, inner, w, n), view.dtype, w)
            return b.spread(widen(b, b.emit(f"load {stored}, ptr {at}, align {align}"), view.dtype, 1), scalar, w)
        out = "zeroinitializer" if n < w else "poison"
        for lane in range(n):
            one = b.emit(f"extractelement {kind} {place}, i64 {lane}")
            at = b.emit(f"getelementptr inbounds {stored}, ptr {pointer}, i64 {one}")
            part = b.emit(f"load {stored}, ptr {at}, align {align}")
            out = b.emit(f"insertelement {typed(stored, w)} {out}, {stored} {part}, i64 {lane}")
        return widen(b, out, view.dtype, w)

    def selected(self, take: Take, index: Sequence[str], w: int, n: int, memo: Memo) -> str:
        """How far from the begin the indices of a gather lead."""
        b, kind, place = self.b, typed("i64", w), ""
        for value, step, size in zip(take.indices, take.steps, take.sizes, strict=True):
            counted, bad = self.counted(value, size, take.label, index, w, n, memo)
            safe = b.emit(f"select {typed('i1', w)} {bad}, {kind} {splat('0', 'i64', w)}, {kind} {counted}")
            scaled = b.emit(f"mul {kind} {safe}, {splat(str(step), 'i64', w)}")
            place = b.emit(f"add {kind} {place}, {scaled}") if place else scaled
        return place

    def counted(
        self, value: Value, size: int, label: View | None, index: Sequence[str], w: int, n: int, memo: Memo
    ) -> tuple[str, str]:
        """An index into an axis, counted from its begin, and whether it is out of range, which is noted if asked."""
        b, kind, whole = self.b, typed("i64", w), self.b.spread(self.size(size), "i64", w)
        at = TABLE["astype"](b, [self.value(value, index, w, n, memo)], [value.dtype], dtypes.int64, w)
        negative = b.emit(f"icmp slt {kind} {at}, {splat('0', 'i64', w)}")
        around = b.emit(f"add {kind} {at}, {whole}")
        counted = b.emit(f"select {typed('i1', w)} {negative}, {kind} {around}, {kind} {at}")
        bad = b.emit(f"icmp uge {kind} {counted}, {whole}")
        if n < w:
            bad = b.emit(f"and <{w} x i1> {bad}, {lane_mask(w, n)}")
        if label is not None:
            self.note(bad, at, label, w, mark=int(size))
        return counted, bad

    def note(self, bad: str, at: str, label: View, lanes: int, mark: int = 1) -> None:
        """Where something is bad, leave a mark and the first such lane of `at` where Python will look for them."""
        b = self.b
        any_bad = bad
        if lanes > 1:
            bits = b.emit(f"bitcast <{lanes} x i1> {bad} to i{lanes}")
            any_bad = b.emit(f"icmp ne i{lanes} {bits}, 0")

        def leave() -> None:
            value = at
            if lanes > 1:
                self.declarations.add(f"declare i{lanes} @llvm.cttz.i{lanes}(i{lanes}, i1)")
                first = b.emit(f"call i{lanes} @llvm.cttz.i{lanes}(i{lanes} {bits}, i1 true)")
                lane = b.emit(f"zext i{lanes} {first} to i64") if lanes < 64 else first
                value = b.emit(f"extractelement {typed('i64', lanes)} {at}, i64 {lane}")
            pointer = self.pointer(label)

            def write() -> None:
                b.do(f"store i64 {mark}, ptr {pointer}, align 8")
                b.do(f"store i64 {value}, ptr {b.emit(f'getelementptr i64, ptr {pointer}, i64 1')}, align 8")

            # what is found first is told
            b.when(b.emit(f"icmp eq i64 {b.emit(f'load i64, ptr {pointer}, align 8')}, 0"), write)

        b.when(any_bad, leave)

    # --- loops

    def each(self, size: int, body: Callable[[str], None]) -> None:
        """body(i) for i in range(size), without a loop when there is one."""
        if size == 1:
            body("0")
        else:
            self.b.loop(self.size(size), 1, body)

    def whole(self, start: str, end: str, w: int) -> str:
        """Where the last full vector of [start, end) ends. What is left is gone through lane by lane."""
        if w == 1:
            return end
        length = end if start == "0" else self.b.emit(f"sub nsw i64 {end}, {start}")
        return self.b.emit(f"sub nsw i64 {end}, {self.b.emit(f'urem i64 {length}, {w}')}")

    def vectors(self, size: int, w: int, body: Callable[[str, int, int], None]) -> None:
        """body(start, w, n) along an axis: a loop over full vectors, then one over what is left (n < w lanes)."""
        if w == 1:
            self.each(size, lambda i: body(i, 1, 1))
            return
        if isinstance(size, Extent):
            end = self.size(size)
            vectors = self.whole("0", end, w)
            self.b.loop(vectors, w, lambda i: body(i, w, w))
            self.b.loop(end, 1, lambda i: body(i, w, 1), start=vectors)
            return
        whole = size - size % w
        if whole == w:
            body("0", w, w)
        elif whole:
            self.b.loop(whole, w, lambda i: body(i, w, w))
        if whole < size:
            body(str(whole), w, size - whole)


SUFFIX = {"i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "float": "f32", "double": "f64"}


def _operands(value: Value) -> Sequence[Value]:
    """What must be in registers before a value is computed. A gather sees to its places by itself."""
    if isinstance(value, Take):
        return ()
    return value.args[:-1] if isinstance(value, Op) and value.name in checked.TABLE else inside(value)


def is_even(value: Value) -> bool:
    """Whether a value is the same in all lanes."""
    return all(not strides or strides[-1] == 0 for strides in accesses(value))


def lane_mask(w: int, n: int) -> str:
    return "<" + ", ".join(f"i1 {'true' if i < n else 'false'}" for i in range(w)) + ">"
