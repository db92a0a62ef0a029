"""The transpose of a convolution in its input where that has few channels: a product, and sums that overlap.

    columns[b, p, t, c] = sum over o of  ct[b, p, o] w[t, c, o]
    out[b, j, c] = sum over the places p and taps t with stride p + dilation t - low = j of  columns[b, p, t, c]

Few channels would leave most lanes of a vector empty; here taps and channels fill them together. Of the last axis, the
taps of one place lie next to each other, and so do those places of the result to which they are added. So the sums
stay in registers: those that are complete leave at the front, and the others move up by the stride.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from ....core import dtypes
from ....ir.sizes import varying
from ..labels import Work
from ..processor import Processor
from ..products.epilogue import Epilogue, Stores, WithEpilogue
from ..products.steps import product_steps
from ..steps import Native
from ..text.builder import computed, typed
from ..text.routine import Routine
from ..tuning import COLUMNS, GRAIN, MOST_CHUNKS, ROW_BYTES, TOUCH
from ..values import Buffer, Hole, Shape, Value, View, accesses, regrouped, reshaped, transposed, whole
from .patches import digits, lanes_of, part_of

VECTORS = 8  # that hold the taps of the last axis


def overlapping_steps(
    cpu: Processor,
    ct: Value,
    w: View,
    hole: Hole,
    stores: Stores,
    *,
    stride: Shape,
    lows: Shape,
    dilation: Shape,
) -> Sequence[Native] | None:
    """The steps from ct (batch, *places, out) and w (*kernel, in, out); None where channels fill vectors, or what is
    to be added does not lie next to each other."""
    *kernel, inner, out = w.shape
    lanes, columns = lanes_of(cpu, ct.dtype), math.prod(kernel) * inner
    if 2 * inner > lanes or max(kernel[-1], stride[-1]) * inner > VECTORS * lanes or dilation[-1] != 1:
        return None
    if varying((*ct.shape, *hole.shape)) or dtypes.is_half(ct.dtype):
        return None
    count = math.prod(ct.shape[:-1])
    row = (ct.shape[-2] * stride[-1] + hole.shape[-2] + abs(lows[-1])) * inner
    if count * columns * ct.dtype.itemsize > COLUMNS or row * ct.dtype.itemsize > ROW_BYTES:
        return None
    x, y = reshaped(ct, (count, out)), reshaped(w, (columns, out))
    if not isinstance(x, View) or not isinstance(y, View):
        return None
    made = Buffer("arena", count * columns, ct.dtype)
    target, product = whole(made, (count, columns)), Hole((count, columns), ct.dtype)
    steps = product_steps(cpu, x, cast(View, transposed(y, (1, 0))), product, [(target, product)])
    apart = whole(made, (*ct.shape[:-1], columns))
    return [*steps, Overlap(cpu, apart, hole, stores, (*kernel, inner), stride, lows, dilation)]


def _by_rows(hole: Hole, stores: Stores) -> Epilogue | None:
    """The epilogue with the last axis of places and the channels as one, if everything steps evenly through them."""
    rank, inner = len(hole.shape), hole.shape[-1]
    steps = [s for _, value in stores for s in accesses(value)] + [target.strides for target, _ in stores]
    if any(s[-2] != s[-1] * inner for s in steps):
        return None
    groups, done = [*([axis] for axis in range(rank - 2)), [rank - 2, rank - 1]], dict[int, Value]()
    merged = [(cast(View, regrouped(t, groups, done)), regrouped(v, groups, done)) for t, v in stores]
    return Epilogue(cast(Hole, regrouped(hole, groups, done)), merged)


class Overlap(WithEpilogue):
    """Adds columns (batch, *places, taps and channels) to rows of the result; stores expressions of it, the hole."""

    def __init__(
        self,
        cpu: Processor,
        columns: View,
        hole: Hole,
        stores: Stores,
        kernel: Shape,
        stride: Shape,
        lows: Shape,
        dilation: Shape,
    ) -> None:
        merged = _by_rows(hole, stores)
        super().__init__([columns], merged or Epilogue(hole, stores))
        self.merged, self.shape = merged is not None, hole.shape
        self.columns, self.kernel = columns, kernel
        self.stride, self.lows, self.dilation = stride, lows, dilation
        self.scalar, self.lanes = computed(columns.dtype), lanes_of(cpu, columns.dtype)
        self.run = kernel[-2] * kernel[-1]  # what lies next to each other
        self.width = self.lanes
        while self.width < max(kernel[-2], stride[-1]) * kernel[-1]:
            self.width *= 2
        self.rows = math.prod(self.shape[:-2])
        work = math.prod(columns.shape) * (1 + TOUCH)
        self.each = math.ceil(self.rows / max(1, min(MOST_CHUNKS, self.rows, work // GRAIN)))
        self.chunks = math.ceil(self.rows / self.each)

    @property
    def work(self) -> Work:
        return self.followed(f"sum of what overlaps in {self.shape}", math.prod(self.columns.shape))

    def describe(self) -> str:
        return f"{(self.shape, self.kernel, self.stride, self.lows, self.dilation)}\n{super().describe()}"

    def emit(self, r: Routine) -> None:
        inner, low, places = self.kernel[-1], self.lows[-1], self.columns.shape[-2]
        first = max(0, -low) * inner  # of the sums in a line; zeros are in front
        length = max(first + places * self.stride[-1] * inner + self.width, first + (self.shape[-2] + low) * inner)
        length = math.ceil(length / self.lanes) * self.lanes
        self.line = r.stack(length, self.scalar)
        r.vectors(length, self.lanes, lambda i, w, n: self._put(r, "zeroinitializer", r.linear([1], [i]), w, n))
        self.sources = r.stack(math.prod(self.kernel[:-2]), "ptr")
        start, stop = part_of(r, r.chunk, self.each, self.rows)

        def row(number: str) -> None:
            at = digits(r, number, list(self.shape[:-2]))
            self._sum(r, self._sources(r, at), first)

            def store(index: list[str], steps: list[int], w: int, n: int) -> None:
                place = r.at(self.line, self.scalar, steps, index, first + low * inner)
                made = r.load_vector(place, self.scalar, self.columns.dtype.itemsize, w, n)
                self.epilogue.emit(r, [*at, *index], made, w, n)

            if self.merged:
                r.vectors(self.shape[-2] * inner, self.lanes, lambda i, w, n: store([i], [1], w, n))
            else:
                w = 1 << (inner - 1).bit_length()
                r.each(self.shape[-2], lambda i: store([i, "0"], [inner, 1], w, inner))

        r.b.loop(stop, 1, row, start)

    def _sources(self, r: Routine, at: list[str]) -> str:
        """Note where the columns are that are added to a row of the result; how many there are."""
        b, count = r.b, r.cell("i64", "0")
        b.do(f"store i64 0, ptr {count}")
        image, *rows = at

        def along(axis: int, places: list[str], tap: str) -> None:
            if axis == len(rows):
                found = r.at(r.pointer(self.columns), self.scalar, self.columns.strides, [image, *places, "0", "0"])
                found = r.at(found, self.scalar, [self.run], [tap])
                n = b.emit(f"load i64, ptr {count}")
                b.do(f"store ptr {found}, ptr {r.at(self.sources, 'ptr', [1], [n])}")
                b.do(f"store i64 {b.emit(f'add nsw i64 {n}, 1')}, ptr {count}")
                return

            def one(t: str) -> None:
                # the place of which this tap is added here, if there is one
                moved = r.linear([1, -self.dilation[axis]], [rows[axis], t], self.lows[axis])
                place = b.emit(f"sdiv i64 {moved}, {self.stride[axis]}")
                exact = b.emit(f"icmp eq i64 {r.linear([self.stride[axis]], [place])}, {moved}")
                # a negative one is a large number without a sign
                inside = b.emit(f"icmp ult i64 {place}, {self.columns.shape[1 + axis]}")
                there = b.emit(f"and i1 {exact}, {inside}")
                b.when(there, lambda: along(axis + 1, [*places, place], r.linear([self.kernel[axis], 1], [tap, t])))

            r.each(self.kernel[axis], one)

        along(0, [], "0")
        return b.emit(f"load i64, ptr {count}")

    def _sum(self, r: Routine, count: str, first: int) -> None:
        """Add up a row of the result in the line."""
        b, kind, w, item = r.b, typed(self.scalar, self.width), self.width, self.columns.dtype.itemsize
        step = self.stride[-1] * self.kernel[-1]  # how far the taps of a place are from those of the one before
        moved = ", ".join(f"i32 {min(lane + step, w)}" for lane in range(w))

        def place(p: str, sums: list[str]) -> list[str]:
            def add(k: str, sums: list[str]) -> list[str]:
                source = b.emit(f"load ptr, ptr {r.at(self.sources, 'ptr', [1], [k])}")
                taps = r.load_vector(
                    r.at(source, self.scalar, [self.columns.strides[-2]], [p]), self.scalar, item, w, self.run
                )
                return [b.emit(f"fadd {kind} {sums[0]}, {taps}")]

            (total,) = b.loop_with([(kind, sums[0])], count, 1, add)
            self._put(r, total, r.linear([step], [p], first), w, w)  # the next places overwrite what is not complete
            return [b.emit(f"shufflevector {kind} {total}, {kind} zeroinitializer, <{w} x i32> <{moved}>")]

        places = self.columns.shape[-2]
        (rest,) = b.loop_with([(kind, "zeroinitializer")], places, 1, place)
        self._put(r, rest, str(places * step + first), w, w)

    def _put(self, r: Routine, value: str, place: str, w: int, n: int) -> None:
        there = r.at(self.line, self.scalar, [1], [place])
        r.store_vector(value, there, self.scalar, self.columns.dtype.itemsize, w, n)
