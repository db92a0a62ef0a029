"""What the steps of convolutions share: the axes they run over, blocks of channels, and patches of their operands.

A patch is the part of an operand that one piece of the work reads: some rows of one image, with the zeros around it. It
is computed into memory that is used again for the next piece, so it stays in the cache, and elementwise operations on
the operand cost no pass over memory. An operand that lies in memory as the kernels want it is read in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ....core import dtypes
from ....core.dtypes import DType
from ....ir.sizes import Extent
from ..processor import Processor
from ..text.builder import STORED, computed
from ..text.routine import Routine
from ..tuning import STACK
from ..values import Buffer, Value, View, reshaped, whole


class Phase(NamedTuple):
    """Some of the places of an axis that are computed in the same way, every so many of them."""

    taps: int  # how many taps they see,
    first: int  # the first of these in the filter
    low: int  # by how much the first window lies before the input's begin
    start: int  # the first of the places


@dataclass(frozen=True)
class Axis:
    """One spatial axis: the sum at place start + step p takes input[stride p + dilation t - low] for each tap t, which
    is the filter's tap first + every t; for each of the phases."""

    size: int  # of the input; there are zeros outside of it
    count: int  # how many places p there are in each phase
    phases: tuple[Phase, ...] = (Phase(1, 0, 0, 0),)
    stride: int = 1
    dilation: int = 1
    step: int = 1
    every: int = 1

    @property
    def taps(self) -> int:
        return max(phase.taps for phase in self.phases)

    def reach(self, count: int) -> int:
        """How many input places `count` neighbouring sums see, from the first to the last."""
        return self.stride * (count - 1) + self.dilation * max(self.taps - 1, 0) + 1

    def chosen(self, r: Routine, number: str) -> list[str]:
        """Taps, first, low and start of the phase with a number."""
        return [_selected(r, [phase[i] for phase in self.phases], number) for i in range(4)]


def _selected(r: Routine, values: list[int], number: str) -> str:
    found = str(values[0])
    for i, value in enumerate(values):
        if value != values[0]:
            hit = r.b.emit(f"icmp eq i64 {number}, {i}")
            found = r.b.emit(f"select i1 {hit}, i64 {value}, i64 {found}")
    return found


def arithmetic(dtype: DType) -> DType:
    """The type that products and sums are computed in."""
    return dtypes.float32 if dtypes.is_half(dtype) else dtype


def lanes_of(cpu: Processor, dtype: DType) -> int:
    return cpu.lanes(arithmetic(dtype).itemsize)


def block(count: int, limit: int) -> int:
    """A block size up to `limit` for `count` things: one that leaves no rest if it is not small, else an even split."""
    exact = max(n for n in range(1, limit + 1) if count % n == 0)
    return exact if 2 * exact >= min(limit, count) else math.ceil(count / math.ceil(count / limit))


class Channels:
    """Output channels in blocks of a few vectors: equal ones, and a narrower last one for the rest."""

    def __init__(self, cpu: Processor, count: int, lanes: int) -> None:
        self._registers = cpu.registers
        vectors = math.ceil(count / lanes)
        self.count, self.lanes = count, lanes
        self.wide = 3 if vectors == 3 and cpu.registers == 32 else min(vectors, 2)  # vectors of a block
        self.full = count // (self.wide * lanes)
        rest = count - self.full * self.wide * lanes
        self.blocks = self.full + (rest > 0)
        self.padded = vectors * lanes
        # each part: the first block, how many, and the lanes that count in each vector of them
        self.parts: list[tuple[int, int, list[int]]] = []
        if self.full:
            self.parts.append((0, self.full, [lanes] * self.wide))
        if rest:
            self.parts.append((self.full, 1, [min(lanes, rest - at) for at in range(0, rest, lanes)]))

    @property
    def step(self) -> int:
        """Channels of a block."""
        return self.wide * self.lanes

    @property
    def rows(self) -> int:
        """How many accumulators along the other axis the registers hold."""
        return min(24 // self.wide, (self._registers - self.wide - 2) // self.wide)


def digits(r: Routine, number: str, sizes: list[int]) -> list[str]:
    """A number written in mixed base, the last digit first to change."""
    found = []
    for size in sizes[:0:-1]:
        if size == 1:
            found.append("0")
            continue
        found.append(r.b.emit(f"urem i64 {number}, {r.size(size)}"))
        number = r.b.emit(f"udiv i64 {number}, {r.size(size)}")
    return [*([number] if sizes[0] != 1 else ["0"]), *found[::-1]]


def smallest(r: Routine, a: str, b: int) -> str:
    known = not a.startswith("%") and not isinstance(b, Extent)
    return str(min(int(a), b)) if known else r.b.intrinsic("smin", "i64", a, r.size(b))


def largest(r: Routine, a: str, b: int) -> str:
    return r.b.intrinsic("smax", "i64", a, str(b)) if a.startswith("%") else str(max(int(a), b))


def part_of(r: Routine, digit: str, size: int, total: int) -> tuple[str, str]:
    """From where to where the digit-th part of `size` out of `total` goes."""
    start = r.linear([size], [digit])
    return start, smallest(r, r.linear([1], [start], size), total)


class Patch:
    """A part of an operand (*images, *spatial, channels) as the kernels read it.

    What the windows of a tile see; `channels` of them, places `pitch` apart in memory, or further if the operand is
    read in place and need not be `dense`.
    """

    def __init__(
        self,
        cpu: Processor,
        value: Value,
        tiles: Tiles,
        channels: int,
        pitch: int,
        chunks: int,
        dense: bool = False,
    ) -> None:
        self.value, self.axes, self.channels = value, tiles.axes, channels
        self.dtype = arithmetic(value.dtype)
        self.scalar = computed(value.dtype)
        self.lanes = lanes_of(cpu, value.dtype)
        self.extents = tiles.extents()
        self.flat = len(value.shape) - 2 < len(tiles.axes)  # one spatial axis: the first of two is not there
        self.spatial = slice(-1 - len(tiles.axes) + self.flat, -1)
        self.direct = self._fits(pitch, dense)
        self.scratch: View | None = None
        self.part = 0
        if self.direct:
            assert isinstance(value, View)
            steps = value.strides[self.spatial]
            self.steps = [0, *steps] if self.flat else list(steps)
            return
        self.pitch = pitch
        steps_up = [pitch]
        for n in self.extents[:0:-1]:
            steps_up.append(steps_up[-1] * n)
        self.steps = steps_up[::-1]
        size = self.extents[0] * self.steps[0]
        self.part = math.ceil(size / self.lanes) * self.lanes
        if self.part * self.dtype.itemsize > STACK:
            self.scratch = whole(Buffer("arena", chunks * self.part, self.dtype), (chunks, self.part))

    def _fits(self, pitch: int, dense: bool) -> bool:
        value = self.value
        if not isinstance(value, View) or value.strides[-1] != 1 or STORED[value.dtype] != self.scalar:
            return False
        if pitch != self.channels or (dense and value.strides[-2] != pitch):
            return False
        return all(p.low <= 0 and a.reach(a.count) - p.low <= a.size for a in self.axes for p in a.phases)

    def allocate(self, r: Routine) -> None:
        if self.direct:
            return
        if self.scratch is None:
            self.memory = r.stack(self.part, self.scalar)
        else:
            self.memory = r.at(r.pointer(self.scratch), self.scalar, [self.part], [r.chunk])

    def fill(self, r: Routine, image: list[str], firsts: list[str], channel: str, lows: list[str]) -> str:
        """Compute the patch of the windows from `firsts` on; returns the address of its first element.

        `lows`: by how much the first window lies before the operand's begin, for each axis.
        """
        begins = [r.linear([a.stride, -1], [*at]) for a, *at in zip(self.axes, firsts, lows, strict=True)]
        if self.direct:
            assert isinstance(self.value, View)
            place = [*image, *self._spatial(begins), channel]
            return r.at(r.pointer(self.value), self.scalar, self.value.strides, place)
        self._fill(r, [], [], image, begins, channel)
        return self.memory

    def _spatial(self, index: list[str]) -> list[str]:
        return index[1:] if self.flat else index

    def _fill(
        self, r: Routine, inside: list[str], index: list[str], image: list[str], begins: list[str], channel: str
    ) -> None:
        depth = len(index)
        axis, extent = self.axes[depth], self.extents[depth]
        # the places from `begin` to `end` are in the operand, the others are zeros
        begin = smallest(r, largest(r, r.linear([-1], [begins[depth]]), 0), extent)
        end = smallest(r, r.linear([-1], [begins[depth]], axis.size), extent)
        end = r.b.intrinsic("smax", "i64", begin, end) if end.startswith("%") else largest(r, begin, int(end))

        def zeros(i: str) -> None:
            self._zeros(r, [*inside, i])

        def at(i: str) -> str:
            return r.linear([1, 1], [begins[depth], i])

        def row(i: str) -> None:
            self._fill(r, [*inside, i], [*index, at(i)], image, begins, channel)

        def column(i: str) -> None:
            place = [*image, *self._spatial([*index, at(i)])]
            self._copy(r, self.value, self.channels, place, channel, [*inside, i])

        _loop(r, "0", begin, zeros)
        if depth + 1 < len(self.axes):
            _loop(r, begin, end, row)
        elif (
            not (begin + end).count("%") and (merged := self._merged()) is not None
        ):  # a row without gaps: all its columns at once
            width = (int(end) - int(begin)) * self.channels
            start = str(int(at(begin)) * self.channels)
            self._copy(r, merged, width, [*image, *self._spatial(index)], start, [*inside, begin])
        else:
            _loop(r, begin, end, column)
        _loop(r, end, str(extent), zeros)

    def _merged(self) -> Value | None:
        shape = self.value.shape
        if self.pitch != shape[-1] or self.pitch % self.lanes == 0:
            return None
        return reshaped(self.value, (*shape[:-2], shape[-2] * shape[-1]))

    def _copy(self, r: Routine, value: Value, count: int, place: list[str], start: str, inside: list[str]) -> None:
        target = r.at(self.memory, self.scalar, self.steps[: len(inside)], inside)

        def vector(i: str, w: int, n: int) -> None:
            made = r.value(value, [*place, r.linear([1, 1], [start, i])], w, n)
            kept = w if padded else n  # lanes that do not count may hold anything, but what is there can be slow
            r.store_vector(made, r.at(target, self.scalar, [1], [i]), self.scalar, self.dtype.itemsize, w, kept)

        padded = self.pitch > self.channels
        r.vectors(count, self.lanes, vector)

    def _zeros(self, r: Routine, inside: list[str]) -> None:
        target = r.at(self.memory, self.scalar, self.steps[: len(inside)], inside)

        def vector(i: str, w: int, n: int) -> None:
            at = r.at(target, self.scalar, [1], [i])
            r.store_vector("zeroinitializer", at, self.scalar, self.dtype.itemsize, w, n)

        r.vectors(self.steps[len(inside) - 1], self.lanes, vector)


def _loop(r: Routine, start: str, stop: str, body: Callable[[str], None]) -> None:
    if start.startswith("%") or stop.startswith("%"):
        r.b.loop(stop, 1, body, start)
    elif int(stop) == int(start) + 1:
        body(start)
    elif int(stop) > int(start):
        r.b.loop(stop, 1, body, start)


class Tiles:
    """Boxes of places, `sizes` along each axis and less at the ends; a patch belongs to each."""

    def __init__(self, axes: list[Axis], sizes: list[int]) -> None:
        self.axes, self.sizes = axes, sizes
        self.counts = [math.ceil(a.count / n) for a, n in zip(axes, sizes, strict=True)]

    def extents(self) -> list[int]:
        """How many input places a tile sees."""
        return [a.reach(n) for a, n in zip(self.axes, self.sizes, strict=True)]

    def of(self, r: Routine, index: list[str]) -> tuple[list[str], list[str]]:
        """The first place of a tile along each axis, and how many there are."""
        firsts, counts = [], []
        for axis, size, i in zip(self.axes, self.sizes, index, strict=True):
            first = r.linear([size], [i])
            firsts.append(first)
            even = axis.count % size == 0
            counts.append(str(size) if even else smallest(r, r.linear([-1], [first], axis.count), size))
        return firsts, counts


def tile_sizes(axes: list[Axis], units: list[int], small: int, fits: Callable[[list[int]], bool]) -> list[int]:
    """The largest tiles that fit: whole along the last axes, and `small` along the first ones if there is no other way.

    Sizes are multiples of `units` or go to the end of the axis.
    """
    sizes = [a.count for a in axes]
    for i, (axis, unit) in enumerate(zip(axes, units, strict=True)):
        parts = 1
        while parts <= math.ceil(axis.count / unit):
            sizes[i] = min(axis.count, unit * math.ceil(axis.count / (parts * unit)))
            if fits(sizes):
                return sizes
            parts += 1 + parts // 8
        sizes[i] = min(axis.count, unit * math.ceil(small / unit))
    return sizes
