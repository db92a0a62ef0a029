"""Order: sorting permutations, and places in sorted rows.

An element becomes an unsigned integer that orders as it does, NaN last, and its place becomes the lower bits of it. So
all keys differ, sorting is stable, and what is sorted is a row of plain integers: short runs by a network of
comparisons, and then runs of equal length are merged from both ends at once, which needs no test for their ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....core import dtypes
from ....core.dtypes import DType
from ....ir.graph import Equation
from .. import values
from ..products.blocks import stepped
from ..text.builder import computed, is_float
from ..text.routine import Routine
from ..tuning import HEAVY, NETWORK, SEARCHED
from ..values import Buffer, Const, Op, Value, View, whole
from .step import Direct, Share, flat_view, grouped, on_groups, spread_index

if TYPE_CHECKING:
    from ..schedule import Schedule


def argsort(s: Schedule, e: Equation) -> bool:
    (out,), axis = e.outputs, e.params["axis"]
    value = s.value(e.inputs[0])
    if value.shape[axis] == 1:
        s.bind(out, Const(0, out.dtype, out.shape))
        return True
    value = s.in_memory(value) if isinstance(value, Op) and value.weight > HEAVY else s.ready(value)
    target = s.new(out.shape, out.dtype)
    order = (*[a for a in range(len(out.shape)) if a != axis], axis)
    to = values.transposed(target, order)
    assert isinstance(to, View)
    s.emit(Sort(values.transposed(value, order), to, e.params["descending"]))
    s.bind(out, target)
    return True


def searchsorted(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    row, sought = e.inputs
    if row.dtype != sought.dtype:
        return False
    if not row.shape[-1]:
        s.bind(out, Const(0, out.dtype, out.shape))
        return True
    view = s.in_memory(s.value(row))
    value = s.value(sought)
    value = s.in_memory(value) if isinstance(value, Op) and value.weight > HEAVY else s.ready(value)
    target = s.new(out.shape, out.dtype)
    s.emit(Search(view, value, target, e.params["side"]))
    s.bind(out, target)
    return True


def key_of(r: Routine, value: str, dtype: DType) -> str:
    """An element as an unsigned integer of 32 or 64 bits that orders as it does; NaN is above all numbers."""
    b, wide = r.b, f"i{key_bits(dtype)}"
    top = str(-(1 << (key_bits(dtype) - 1)))
    if is_float(dtype):
        kind = computed(dtype)
        number = b.emit(f"fadd {kind} {value}, 0.0")  # there is one 0 only
        bits = b.emit(f"bitcast {kind} {number} to {wide}")
        flips = b.emit(f"or {wide} {b.emit(f'ashr {wide} {bits}, {key_bits(dtype) - 1}')}, {top}")
        key = b.emit(f"xor {wide} {bits}, {flips}")
        nan = b.emit(f"fcmp uno {kind} {value}, {value}")
        return b.emit(f"select i1 {nan}, {wide} -1, {wide} {key}")
    if computed(dtype) != wide:
        value = b.emit(f"{'sext' if dtype.kind == 'i' else 'zext'} {computed(dtype)} {value} to {wide}")
    return b.emit(f"xor {wide} {value}, {top}") if dtype.kind == "i" else value


def key_bits(dtype: DType) -> int:
    return 64 if dtype.itemsize == 8 else 32


def network(n: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort: pairs of places to be put in order, one after the other."""
    p = 1
    while p < n:
        k = p
        while k:
            for start in range(k % p, n - k, 2 * k):
                for i in range(start, start + min(k, n - start - k)):
                    if i // (2 * p) == (i + k) // (2 * p):
                        yield i, i + k
            k //= 2
        p *= 2


class Sort(Direct):
    """target[.., k] = the place of the k-th element of the row value[..]."""

    def __init__(self, value: Value, target: View, descending: bool) -> None:
        *outer, self.n = value.shape
        groups = grouped(value.shape, [0] * len(outer) + [1], [value, target])
        self.value, self.target = on_groups(value, groups), flat_view(target, groups)
        self.outer = self.value.shape[:-1]
        self.descending = descending
        self.half = key_bits(value.dtype)  # bits of a key, and of a place
        self.passes = 0
        while -(-self.n // (1 << self.passes)) > NETWORK:
            self.passes += 1
        self.run = -(-self.n // (1 << self.passes))
        self.size = self.run << self.passes  # what is sorted: the largest keys fill it up
        rows = math.prod(outer)
        share = Share(rows, rows * self.n * (10 + 2 * self.passes) / 1000)
        words = self.half // 32 * self.size
        scratch = whole(Buffer("arena", share.chunks * 2 * words, dtypes.int64), (share.chunks, 2, words))
        super().__init__([self.value], [self.target], [scratch])
        self.share = share

    def settings(self) -> object:
        return self.descending, self.run, self.passes

    def emit(self, r: Routine) -> None:
        b, kind = r.b, f"i{2 * self.half}"
        low, high = self.share.range(r)
        (scratch,) = self.scratch
        both = [r.at(r.pointer(scratch), "i64", scratch.strides, [r.chunk, part, "0"]) for part in ("0", "1")]

        def row(number: str) -> None:
            index = spread_index(r, number, self.outer)
            self._fill(r, index, both[0], kind)
            self._runs(r, both[0], kind)
            found = self._merges(r, both, kind)

            def out(i: str) -> None:
                # the place is in the lower bits, which come first in memory
                key = b.emit(f"load {kind}, ptr {r.at(found, kind, (1,), [i])}, align 8")
                short = b.emit(f"trunc {kind} {key} to i{self.half}")
                place = short if self.half == 64 else b.emit(f"zext i32 {short} to i64")
                r.store(self.target, place, [*index, i])

            b.loop(self.n, 1, out)

        b.loop(high, 1, row, low)

    def _fill(self, r: Routine, index: list[str], to: str, kind: str) -> None:
        b = r.b

        def one(i: str) -> None:
            key = key_of(r, r.value(self.value, [*index, i]), self.value.dtype)
            if self.descending:
                key = b.emit(f"xor i{self.half} {key}, -1")
            upper = b.emit(f"shl {kind} {b.emit(f'zext i{self.half} {key} to {kind}')}, {self.half}")
            place = i if self.half == 64 else b.emit(f"trunc i64 {i} to i32")
            both = b.emit(f"or {kind} {upper}, {b.emit(f'zext i{self.half} {place} to {kind}')}")
            b.do(f"store {kind} {both}, ptr {r.at(to, kind, (1,), [i])}, align 8")

        def above_all(i: str) -> None:
            b.do(f"store {kind} -1, ptr {r.at(to, kind, (1,), [i])}, align 8")

        b.loop(self.n, 1, one)
        b.loop(self.size, 1, above_all, str(self.n))

    def _runs(self, r: Routine, at: str, kind: str) -> None:
        b = r.b

        def run(i: str) -> None:
            first = r.at(at, kind, (1,), [i])
            places = [r.at(first, kind, [], [], k) for k in range(self.run)]
            keys = [b.emit(f"load {kind}, ptr {p}, align 8") for p in places]
            for x, y in network(self.run):
                above = b.emit(f"icmp ugt {kind} {keys[x]}, {keys[y]}")
                keys[x], keys[y] = (
                    b.emit(f"select i1 {above}, {kind} {keys[one]}, {kind} {keys[other]}")
                    for one, other in ((y, x), (x, y))
                )
            for place, key in zip(places, keys, strict=True):
                b.do(f"store {kind} {key}, ptr {place}, align 8")

        b.loop(self.size, self.run, run)

    def _merges(self, r: Routine, both: list[str], kind: str) -> str:
        """Merge runs, from one half of the memory to the other and back; returns where the result is."""
        b = r.b
        if not self.passes:
            return both[0]

        def pass_(k: str, carried: list[str]) -> list[str]:
            source, to = carried
            length = b.emit(f"shl i64 {self.run}, {k}")
            pairs = b.emit(f"lshr i64 {1 << (self.passes - 1)}, {k}")

            def pair(p: str) -> None:
                start = b.emit(f"shl i64 {b.emit(f'mul i64 {p}, {length}')}, 1")
                self._merge(r, kind, source, to, start, length)

            b.loop(pairs, 1, pair)
            return [to, source]

        b.loop_with([("ptr", both[0]), ("ptr", both[1])], self.passes, 1, pass_)
        return both[self.passes % 2]

    def _merge(self, r: Routine, kind: str, source: str, to: str, start: str, length: str) -> None:
        """The `length` smallest elements of two runs from the front, the largest from the back."""
        b = r.b
        middle = b.emit(f"add i64 {start}, {length}")
        end = b.emit(f"add i64 {middle}, {length}")
        last = b.emit(f"sub i64 {middle}, 1")
        final = b.emit(f"sub i64 {end}, 1")

        def load(i: str) -> str:
            return b.emit(f"load {kind}, ptr {r.at(source, kind, (1,), [i])}, align 8")

        def step(k: str, carried: list[str]) -> list[str]:
            i, j, bi, bj = carried
            x, y, u, v = (load(p) for p in carried)
            right = b.emit(f"icmp ult {kind} {y}, {x}")
            least = b.emit(f"select i1 {right}, {kind} {y}, {kind} {x}")
            front = b.emit(f"add i64 {start}, {k}")
            b.do(f"store {kind} {least}, ptr {r.at(to, kind, (1,), [front])}, align 8")
            left = b.emit(f"icmp ult {kind} {v}, {u}")
            most = b.emit(f"select i1 {left}, {kind} {u}, {kind} {v}")
            back = b.emit(f"sub i64 {final}, {k}")
            b.do(f"store {kind} {most}, ptr {r.at(to, kind, (1,), [back])}, align 8")
            one, other = b.emit(f"zext i1 {right} to i64"), b.emit(f"zext i1 {left} to i64")
            return [
                b.emit(f"add i64 {b.emit(f'sub i64 {i}, {one}')}, 1"),
                b.emit(f"add i64 {j}, {one}"),
                b.emit(f"sub i64 {bi}, {other}"),
                b.emit(f"sub i64 {b.emit(f'add i64 {bj}, {other}')}, 1"),
            ]

        starts = [("i64", start), ("i64", middle), ("i64", last), ("i64", final)]
        b.loop_with(starts, length, 1, step)


class Search(Direct):
    """target = how many elements of a sorted row stand before a value, those equal to it included or not."""

    def __init__(self, row: View, value: Value, target: View, side: str) -> None:
        *lead, self.n = row.shape
        space = value.shape
        spread = View(row.buffer, space, row.strides[:-1] + (0,) * (len(space) - len(lead)), row.offset)
        groups = grouped(space, [int(a >= len(lead)) for a in range(len(space))], [value, target, spread])
        self.value, self.target, self.row = (
            on_groups(value, groups),
            flat_view(target, groups),
            flat_view(spread, groups),
        )
        self.step, self.side = row.strides[-1], side
        super().__init__([self.value, self.row], [self.target])
        total = math.prod(space)
        self.share = Share(total, total * (2 + 2 * self.n.bit_length()) / 1000, SEARCHED)

    def settings(self) -> object:
        return self.n, self.step, self.side

    def emit(self, r: Routine) -> None:
        b, dtype = r.b, self.value.dtype
        kind, bits = f"i{key_bits(dtype)}", self.n.bit_length()
        # the row is one more axis
        row = View(self.row.buffer, (*self.row.shape, self.n), (*self.row.strides, self.step), self.row.offset)
        low, high = self.share.range(r)

        def some(number: str, count: int) -> None:
            """Several values at once, so that their steps do not wait for each other."""
            numbers = [r.linear((1,), (number,), k) for k in range(count)]
            indices = [spread_index(r, k, self.value.shape) for k in numbers]
            keys = [key_of(r, r.value(self.value, index), dtype) for index in indices]

            def further(index: list[str], key: str, jump: str, found: str) -> str:
                after = b.emit(f"add i64 {found}, {jump}")
                inside = b.emit(f"icmp ule i64 {after}, {self.n}")
                before = b.emit(f"sub i64 {b.intrinsic('umin', 'i64', after, str(self.n))}, 1")
                other = key_of(r, r.load(row, [*index, before]), dtype)
                test = b.emit(f"icmp {'ult' if self.side == 'left' else 'ule'} {kind} {other}, {key}")
                return b.emit(f"select i1 {b.emit(f'and i1 {inside}, {test}')}, i64 {after}, i64 {found}")

            def step(i: str, found: list[str]) -> list[str]:
                jump = b.emit(f"lshr i64 {1 << (bits - 1)}, {i}")
                return [further(*pair, jump, f) for pair, f in zip(zip(indices, keys, strict=True), found, strict=True)]

            for index, place in zip(indices, b.loop_with([("i64", "0")] * count, bits, 1, step), strict=True):
                r.store(self.target, place, index)

        stepped(r, low, high, SEARCHED, self.share.total, some)
