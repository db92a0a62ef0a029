"""The steps that compute the transpose of a convolution in its filter.

    out[t, c, o] = sum over images b and places p of  x[b, stride p + dilation t - low, c] ct[b, p, o]

A block of neighbouring filter rows (t, c) times a few vectors of output channels is held in registers while the places
of some rows of an image go by. Each chunk adds up its images in a part of its own; a second step adds the parts.
"""

from __future__ import annotations

import itertools
import math

from ....ir.sizes import Extent
from ..labels import Work
from ..processor import Processor
from ..products.epilogue import Epilogue, Stores, WithEpilogue
from ..text.builder import computed, typed
from ..text.describe import Description
from ..text.routine import Routine, slots_of
from ..tuning import FILTER_PARTS, FILTER_PLACES, FILTER_ROWS, FILTERED
from ..values import Buffer, Hole, Value, leaves, whole
from .convolve import nest
from .patches import (
    Axis,
    Channels,
    Patch,
    Tiles,
    arithmetic,
    block,
    digits,
    lanes_of,
    largest,
    part_of,
    smallest,
    tile_sizes,
)


class FilterSums:
    """Sums over some images each, to be added: parts, groups, blocks of channels, taps, channels of x, lanes."""

    any_size = True  # see general.py

    def __init__(self, cpu: Processor, x: Value, ct: Value, axes: list[Axis], groups: int, depthwise: bool) -> None:
        self.x, self.ct, self.axes, self.groups, self.depthwise = x, ct, axes, groups, depthwise
        self.inner = 1 if depthwise else x.shape[-1] // groups
        self.dtype = arithmetic(x.dtype)
        self.scalar, self.lanes = computed(x.dtype), lanes_of(cpu, x.dtype)
        self.channels = Channels(cpu, ct.shape[-1] // groups, self.lanes)
        self.taps = [a.taps for a in axes]
        self.depth = math.prod(self.taps) * self.inner  # rows of the filter
        width = self.channels.count if depthwise else self.inner
        pitch = self.channels.padded if depthwise else width
        self._pieces(x.shape[0], pitch)
        self.patch = Patch(cpu, x, self.tiles, width, pitch, self.chunks)
        places = Tiles([Axis(a.count, a.count) for a in axes], self.tiles.sizes)
        self.others = [  # what one block of channels sees, for both kinds of blocks
            Patch(cpu, ct, places, sum(valid), len(valid) * self.lanes, self.chunks, dense=True)
            for _, _, valid in self.channels.parts
        ]
        size = self.depth * self.channels.padded
        self.target = whole(Buffer("arena", self.parts * groups * size, self.dtype), (self.parts, groups, size))
        scratch = [p.scratch for p in (self.patch, *self.others) if p.scratch is not None]
        self.views = [*leaves(x), *leaves(ct), *scratch, self.target]
        self.reads = list(dict.fromkeys(v.buffer for v in self.views))
        self.writes = list(dict.fromkeys(v.buffer for v in [*scratch, self.target]))

    def _pieces(self, batch: int, pitch: int) -> None:
        """How the work divides: rows that are read at a time, and who adds up what."""
        item = self.dtype.itemsize
        units = [1] * len(self.axes)

        def fits(sizes: list[int]) -> bool:
            places = math.prod(sizes)
            seen = math.prod(Tiles(self.axes, sizes).extents()) * pitch + places * self.channels.step
            return seen * item <= FILTER_ROWS or places <= FILTER_PLACES

        self.tiles = Tiles(self.axes, tile_sizes(self.axes, units, 2, fits))
        self.units = batch * math.prod(self.tiles.counts)
        size = self.groups * self.depth * self.channels.padded
        count = int(self.units)
        work = 2 * count * math.prod(self.tiles.sizes) * size
        work *= 8 if self.depthwise else 1  # memory is the limit there, not arithmetic
        wanted = 1 << min(4, (work // FILTERED).bit_length())
        parts = min(wanted, 1 << max(FILTER_PARTS // (size * item), 1).bit_length() - 1, count)
        self.each = math.ceil(count / parts)
        self.parts = math.ceil(count / self.each)
        shares = min(self.channels.blocks, math.ceil(wanted / (self.parts * self.groups)))
        self.share = math.ceil(self.channels.blocks / shares)
        self.shares = math.ceil(self.channels.blocks / self.share)
        self.sizes = [self.parts, self.groups, self.shares]
        self.chunks = math.prod(self.sizes)

    @property
    def work(self) -> Work:
        places = math.prod(self.ct.shape[:-1])
        label = f"filter gradient of {self.x.shape}, {self.ct.shape}"
        return label, int(places) * self.groups * self.depth * self.channels.count

    def describe(self) -> str:
        description = Description(slots_of(self.views))
        own = (self.x.shape, self.ct.shape, self.axes, self.groups, self.depthwise)
        line = f"FilterSums {own} {description.value(self.x)} {description.value(self.ct)}"
        return "\n".join([line, *description.lines])

    # --- text

    def emit(self, r: Routine) -> None:
        part, group, share = digits(r, r.chunk, self.sizes)
        self.patch.allocate(r)
        for other in self.others:
            other.allocate(r)
        size = self.depth * self.channels.padded
        target = r.at(r.pointer(self.target), self.scalar, [self.groups * size, size], [part, group])
        self._clear(r, target, share)
        begin, end = part_of(r, share, self.share, self.channels.blocks)
        channel = r.linear([0 if self.depthwise else self.inner], [group])

        def unit(u: str) -> None:
            image, *tile = digits(r, u, [self.x.shape[0], *self.tiles.counts])
            firsts, counts = self.tiles.of(r, tile)
            x = self.patch.fill(r, [image], firsts, channel, [str(a.phases[0].low) for a in self.axes])
            for other, (start, blocks, valid) in zip(self.others, self.channels.parts, strict=True):

                def one(number: str, other: Patch = other, wide: int = len(valid)) -> None:
                    first_channel = r.linear([self.channels.count, self.channels.step], [group, number])
                    ct = other.fill(r, [image], firsts, first_channel, ["0"] * len(self.axes))
                    self._taps(r, x, ct, other, target, counts, number, wide)

                if self.shares == 1 and blocks == 1:
                    one(str(start))
                else:
                    r.b.loop(smallest(r, end, start + blocks), 1, one, largest(r, begin, start))

        if isinstance(self.units, Extent):  # as many parts, of as many units as there are for each
            each = r.b.emit(f"add nsw i64 {r.size(self.units)}, {self.parts - 1}")
            each = r.b.emit(f"udiv i64 {each}, {self.parts}")
            start = r.b.emit(f"mul nsw i64 {part}, {each}")
            stop = smallest(r, r.b.emit(f"add nsw i64 {start}, {each}"), self.units)
        else:
            start, stop = part_of(r, part, self.each, self.units)
        r.b.loop(stop, 1, unit, start)

    def _clear(self, r: Routine, target: str, share: str) -> None:
        size, lanes, item = self.depth * self.channels.padded, self.lanes, self.dtype.itemsize
        start, stop = part_of(r, share, self.share * self.channels.step * self.depth, size)

        def clear(i: str) -> None:
            at = r.at(target, self.scalar, [1], [i])
            r.store_vector("zeroinitializer", at, self.scalar, item, lanes, lanes)

        r.b.loop(stop, lanes, clear, start)

    def _taps(
        self, r: Routine, x: str, ct: str, other: Patch, target: str, counts: list[str], number: str, wide: int
    ) -> None:
        """For one block of channels, add to all rows of the filter."""
        axes, steps, lanes = self.axes, self.patch.steps, self.lanes
        last, limit = axes[-1], self.channels.rows
        held = self._held(limit)  # taps of the last axis in a block: they share elements of x
        size = block(self.inner, limit // held)
        taps = [*self.taps[:-1], last.taps // held]
        x = r.at(x, self.scalar, [self.channels.step if self.depthwise else 0], [number])
        target = r.at(target, self.scalar, [self.depth * self.channels.step], [number])

        def tap(index: list[str]) -> None:
            index = [*index[:-1], r.linear([held], [index[-1]])]
            seen = r.at(x, self.scalar, [s * a.dilation for s, a in zip(steps, axes, strict=True)], index)
            sizes = [*self.taps, self.inner]
            strides = [math.prod(sizes[i + 1 :]) * wide * lanes for i in range(len(taps))]
            row = r.at(target, self.scalar, strides, index)

            def channels(c: str, count: int) -> None:
                rows = [  # where they are in x and in the sums
                    (t * last.dilation * steps[-1] + i, (t * self.inner + i) * wide * lanes)
                    for t in range(held)
                    for i in range(count)
                ]
                at = r.at(row, self.scalar, [wide * lanes], [c])
                self._add(r, r.at(seen, self.scalar, [1], [c]), ct, other, at, counts, rows, wide)

            whole = self.inner // size * size
            if whole == size:
                channels("0", size)
            else:
                r.b.loop(whole, size, lambda c: channels(c, size))
            if whole < self.inner:
                channels(str(whole), self.inner - whole)

        nest(r, taps, tap)

    def _held(self, limit: int) -> int:
        """All taps of the last axis, or, where channels would leave registers empty, as many as these hold."""
        taps = self.axes[-1].taps
        most = max(n for n in range(1, limit + 1) if taps % n == 0)
        return most if most == taps or 2 * self.inner <= most else 1

    def _add(
        self,
        r: Routine,
        x: str,
        ct: str,
        other: Patch,
        target: str,
        counts: list[str],
        rows: list[tuple[int, int]],
        wide: int,
    ) -> None:
        """Add the products of all places to some rows of the filter."""
        b, lanes, item, kind = r.b, self.lanes, self.dtype.itemsize, typed(self.scalar, self.lanes)
        last, steps = self.axes[-1], self.patch.steps
        even = counts[-1].isdecimal() and int(counts[-1]) % 2 == 0
        places = 2 if even and (len(rows) + 2) * wide < r.cpu.registers else 1  # of the last axis at a time
        uses: dict[int, list[tuple[int, int]]] = {}  # by position in x, the rows that take it and for which place
        for place, (i, (offset, _)) in itertools.product(range(places), enumerate(rows)):
            uses.setdefault(place * last.stride * steps[-1] + offset, []).append((i, place))

        def at(pointer: str, offset: int) -> str:
            return r.at(pointer, self.scalar, [], [], offset)

        def load(pointer: str, offset: int) -> str:
            return b.emit(f"load {kind}, ptr {at(pointer, offset)}, align {item}")

        def add(index: list[str], sums: list[str]) -> list[str]:
            here = r.at(x, self.scalar, [a.stride * s for a, s in zip(self.axes, steps, strict=True)], index)
            there = r.at(ct, self.scalar, other.steps, index)
            sums = [*sums]
            vectors = [[load(there, p * other.steps[-1] + j * lanes) for j in range(wide)] for p in range(places)]
            for offset, users in sorted(uses.items()):
                if self.depthwise:
                    seen = [load(here, offset + j * lanes) for j in range(wide)]
                else:
                    element = b.emit(f"load {self.scalar}, ptr {at(here, offset)}, align {item}")
                    seen = [b.spread(element, self.scalar, lanes)] * wide
                for (i, p), j in itertools.product(users, range(wide)):
                    k = i * wide + j
                    sums[k] = b.intrinsic("fmuladd", kind, seen[j], vectors[p][j], sums[k])
            return sums

        def walk(index: list[str], sums: list[str]) -> list[str]:
            if len(index) == len(counts):
                return add(index, sums)
            step = places if len(index) + 1 == len(counts) else 1
            if counts[len(index)] == str(step):
                return walk([*index, "0"], sums)
            return b.loop_with([(kind, s) for s in sums], counts[len(index)], step, lambda i, s: walk([*index, i], s))

        where = [offset + j * lanes for _, offset in rows for j in range(wide)]
        # a tile's places are a sum of their own: one running sum over all images would lose digits
        sums = walk([], ["zeroinitializer"] * len(where))
        for offset, s in zip(where, sums, strict=True):
            total = b.emit(f"fadd {kind} {load(target, offset)}, {s}")
            b.do(f"store {kind} {total}, ptr {at(target, offset)}, align {item}")


class AddParts(WithEpilogue):
    """Adds the parts in order, and stores expressions of the result (*kernel, in, out), the hole."""

    def __init__(self, sums: FilterSums, hole: Hole, stores: Stores) -> None:
        super().__init__([sums.target], Epilogue(hole, stores))
        self.sums = sums
        self.sizes = [sums.groups, *sums.taps]
        self.chunks = math.prod(self.sizes) if sums.target.buffer.size > 1 << 15 else 1

    @property
    def work(self) -> Work:
        label = f"sum of {self.sums.parts} parts {self.epilogue.hole.shape}"
        return self.followed(label, self.sums.parts * math.prod(self.epilogue.hole.shape))

    def describe(self) -> str:
        sums = self.sums
        own = (sums.parts, sums.groups, sums.taps, sums.inner, sums.channels.count, sums.patch.flat)
        return f"{own}\n{super().describe()}"

    def emit(self, r: Routine) -> None:
        if self.chunks > 1:
            self._rows(r, digits(r, r.chunk, self.sizes))
        else:
            nest(r, self.sizes, lambda index: self._rows(r, index))

    def _rows(self, r: Routine, index: list[str]) -> None:
        group, *taps = index
        sums = self.sums
        steps = [math.prod(sums.taps[i + 1 :]) * sums.inner for i in range(len(taps))]
        place = taps[1:] if sums.patch.flat else taps

        def row(c: str) -> None:
            number = r.linear([*steps, 1], [*taps, c])
            for first, count, valid in sums.channels.parts:

                def one(i: str, first: int = first, valid: list[int] = valid) -> None:
                    self._store(r, group, r.linear([1], [i], first), number, [*place, c], valid)

                r.each(count, one)

        r.each(sums.inner, row)

    def _store(self, r: Routine, group: str, block: str, row: str, place: list[str], valid: list[int]) -> None:
        sums, lanes = self.sums, self.sums.lanes
        kind, item = typed(sums.scalar, lanes), sums.dtype.itemsize
        steps = [sums.target.strides[1], sums.depth * sums.channels.step, len(valid) * lanes]
        for j, n in enumerate(valid):
            at = r.at(r.pointer(sums.target), sums.scalar, steps, [group, block, row], j * lanes)
            total = ""
            for part in range(sums.parts):
                here = r.at(at, sums.scalar, [], [], part * sums.target.strides[0])
                loaded = r.b.emit(f"load {kind}, ptr {here}, align {item}")
                total = r.b.emit(f"fadd {kind} {total}, {loaded}") if total else loaded
            channel = r.linear([sums.channels.count, sums.channels.step], [group, block], j * lanes)
            self.epilogue.emit(r, [*place, channel], total, lanes, n)
