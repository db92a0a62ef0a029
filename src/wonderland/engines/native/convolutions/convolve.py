"""The step that computes a convolution, and the one that prepares its filter.

    out[p, o] = sum over taps t and channels c of  in[stride p + dilation t - low, c] w[t, c, o]

A block of neighbouring places times a few vectors of output channels is held in registers while the sum runs: each term
is one element of the input, spread over the lanes, times a row of the filter, which was packed so that rows follow each
other. The taps of the last axis and the channels lie next to each other in a patch, so they are one loop. Where each
channel has a filter of its own (depthwise), vectors of the input take the place of spread elements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from ....ir.sizes import Extent, pieces
from ..labels import Work
from ..processor import Processor
from ..products.epilogue import Epilogue, Stores, WithEpilogue
from ..text.builder import computed, typed
from ..text.describe import Description
from ..text.routine import Routine, slots_of
from ..text.sums import PART, levels, sum_with
from ..tuning import CONVOLVED, PATCH
from ..values import Buffer, Hole, Value, View, leaves, reshape_strides, whole
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

SMALL_BATCH = 16  # images that are shared out evenly, where their number varies


class PackFilter:
    """Copies a filter (*taps, groups, in, out) to rows of `channels` for each group, block, tap and input channel.

    A filter that lies like this already is `ready`: it is its own copy.
    """

    def __init__(self, source: View, channels: Channels) -> None:
        *self.taps, self.groups, self.inner, _ = source.shape
        self.source, self.channels = source, channels
        dtype = arithmetic(source.dtype)
        size = math.prod(self.taps) * self.inner * channels.padded
        self.ready = channels.full == channels.blocks == self.groups == 1 and dtype == source.dtype
        self.ready = self.ready and reshape_strides(source.shape, source.strides, (size,)) == (1,)
        if self.ready:
            self.target = View(source.buffer, (1, size), (size, 1), source.offset)
        else:
            self.target = whole(Buffer("arena", self.groups * size, dtype), (self.groups, size))
        self.views = [source, self.target]
        self.reads, self.writes = [source.buffer], [self.target.buffer]
        self.sizes = [self.groups, *self.taps]
        self.chunks = math.prod(self.sizes) if self.target.buffer.size > 1 << 14 else 1

    @property
    def work(self) -> Work:
        return f"pack filter {(*self.taps, self.groups * self.inner, self.channels.count)}", 0

    def describe(self) -> str:
        return f"PackFilter {Description(slots_of(self.views)).view(self.source)}"

    def emit(self, r: Routine) -> None:
        if self.chunks > 1:
            self._rows(r, digits(r, r.chunk, self.sizes))
        else:
            nest(r, self.sizes, lambda index: self._rows(r, index))

    def _rows(self, r: Routine, index: list[str]) -> None:
        group, *taps = index
        r.each(self.inner, lambda c: self._row(r, group, [*taps, c]))

    def _row(self, r: Routine, group: str, index: list[str]) -> None:
        sizes = [*self.taps, self.inner]
        steps = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
        row, depth = r.linear(steps, index), math.prod(sizes)
        scalar, lanes, item = computed(self.source.dtype), self.channels.lanes, self.target.dtype.itemsize
        for first, count, valid in self.channels.parts:

            def copy(i: str, first: int = first, valid: list[int] = valid) -> None:
                number = r.linear([1], [i], first)
                for j, n in enumerate(valid):
                    channel = r.linear([self.channels.step], [number], j * lanes)
                    loaded = r.load(self.source, [*index[:-1], group, index[-1], channel], lanes, n)
                    at = r.at(
                        r.pointer(self.target),
                        scalar,
                        [self.target.strides[0], depth * self.channels.step, len(valid) * lanes],
                        [group, number, row],
                        j * lanes,
                    )
                    r.store_vector(loaded, at, scalar, item, lanes, lanes)

            r.each(count, copy)


class Convolve(WithEpilogue):
    """A convolution of one operand with a packed filter; stores expressions of its result, the hole."""

    any_size = True  # see general.py

    def __init__(
        self,
        cpu: Processor,
        x: Value,
        filter: PackFilter,
        hole: Hole,
        stores: Stores,
        axes: list[Axis],
        depthwise: bool,
    ) -> None:
        self.x, self.filter, self.axes = x, filter, axes
        self.channels, self.groups, self.inner = filter.channels, filter.groups, filter.inner
        self.depthwise = depthwise
        self.batch = x.shape[0]
        self.plain = all(isinstance(value, Hole) for _, value in stores)
        self.empty = any(a.taps == 0 for a in axes)
        self.dtype = arithmetic(x.dtype)
        self.scalar, self.lanes = computed(x.dtype), lanes_of(cpu, x.dtype)
        width = self.channels.count if depthwise else self.inner
        pitch = self.channels.padded if depthwise else width
        self._blocks()
        self._pieces(pitch)
        self.patch = Patch(cpu, x, self.tiles, width, pitch, self.chunks)
        scratch = [self.patch.scratch] if self.patch.scratch else []
        super().__init__([*leaves(x), filter.target, *scratch], Epilogue(hole, stores))
        self.writes += [view.buffer for view in scratch]

    def _blocks(self) -> None:
        """How many rows and columns of places the registers hold."""
        limit, last, before = self.channels.rows, self.axes[-1].count, self.axes[-2].count
        self.columns = block(last, limit)
        self.rows = block(before, limit // last) if 2 * last <= limit else 1

    def _pieces(self, pitch: int) -> None:
        """How the work divides: images and rows of a chunk, and parts of the blocks of channels."""
        counts = [a.count for a in self.axes]
        units = [1] * (len(counts) - 2) + [self.rows, self.columns]
        depth = math.prod([a.taps for a in self.axes]) * self.inner
        work = 2 * max(depth, 16) * self.channels.padded  # of a place

        def fits(sizes: list[int]) -> bool:
            patch = math.prod(Tiles(self.axes, sizes).extents()) * pitch * self.dtype.itemsize
            return patch <= PATCH and work * math.prod(sizes) <= CONVOLVED

        self.tiles = Tiles(self.axes, tile_sizes(self.axes, units, 4, fits))
        whole = self.tiles.sizes == counts
        batch = min(int(self.batch), SMALL_BATCH) if isinstance(self.batch, Extent) else self.batch
        self.images = max(1, min(CONVOLVED // (work * math.prod(counts)), math.ceil(batch / 8))) if whole else 1
        tiles = [*self.tiles.counts, *[len(a.phases) for a in self.axes]]
        images = pieces(self.batch, self.images)
        found = int(images) * self.groups * math.prod(tiles)
        parts = 1
        if found < 8 and work * math.prod(self.tiles.sizes) > CONVOLVED // 8:
            parts = min(self.channels.blocks, math.ceil(8 / found))
        self.part = math.ceil(self.channels.blocks / parts)
        self.parts = math.ceil(self.channels.blocks / self.part)
        self.sizes = [images, self.groups, self.parts, *tiles]
        self.chunks = math.prod(self.sizes)

    @property
    def work(self) -> Work:
        filter = (*self.filter.taps, self.inner, self.groups * self.channels.count)
        terms = math.prod(a.count * sum(phase.taps for phase in a.phases) for a in self.axes)
        label = f"convolution {self.x.shape} * {filter}"
        return self.followed(label, self.batch * terms * self.inner * self.groups * self.channels.count)

    def describe(self) -> str:
        description = Description(slots_of(self.views))
        filter = (self.filter.taps, self.groups, self.inner, self.channels.count, self.depthwise)
        lines = [f"Convolve {self.x.shape} {self.axes} {filter} {self.epilogue.hole.dtype} {description.value(self.x)}"]
        lines += [f"{description.view(t)} = {description.value(v)}" for t, v in self.epilogue.stores]
        return "\n".join([*lines, *description.lines])

    # --- text

    def emit(self, r: Routine) -> None:
        images, group, part, *rest = digits(r, r.chunk, self.sizes)
        firsts, counts = self.tiles.of(r, rest[: len(self.axes)])
        phases = rest[len(self.axes) :]
        chosen = [axis.chosen(r, number) for axis, number in zip(self.axes, phases, strict=True)]
        self.taps, self.first, self.low, self.start = map(list, zip(*chosen, strict=True))
        if not self.empty:
            self.patch.allocate(r)
        if not self.plain:
            self.spilled = r.stack(self.rows * self.columns * self.channels.step, self.scalar)
        begin, end = part_of(r, part, self.part, self.channels.blocks)
        channel = r.linear([0 if self.depthwise else self.inner], [group])

        def image(n: str) -> None:
            pointer = "" if self.empty else self.patch.fill(r, [n], firsts, channel, self.low)
            for start, blocks, valid in self.channels.parts:

                def one(number: str, valid: list[int] = valid) -> None:
                    self._walk(r, n, group, firsts, counts, pointer, number, valid)

                if self.parts == 1 and blocks == 1:
                    one(str(start))
                else:
                    r.b.loop(smallest(r, end, start + blocks), 1, one, largest(r, begin, start))

        if self.images == 1:
            image(images)
        else:
            start, stop = part_of(r, images, self.images, self.batch)
            r.b.loop(stop, 1, image, start)

    def _walk(
        self,
        r: Routine,
        n: str,
        group: str,
        firsts: list[str],
        counts: list[str],
        pointer: str,
        number: str,
        valid: list[int],
    ) -> None:
        """All blocks of places of a tile, for one block of channels."""
        depth = math.prod(self.filter.taps) * self.inner
        filter_at = [self.filter.target.strides[0], depth * self.channels.step]
        weights = r.at(r.pointer(self.filter.target), self.scalar, filter_at, [group, number])
        channel = r.linear([self.channels.count, self.channels.step], [group, number])
        lane = r.linear([self.channels.step if self.depthwise else 0], [number])

        def places(index: list[str], rows: int, columns: int) -> None:
            steps = [a.stride * step for a, step in zip(self.axes, self.patch.steps, strict=True)] if pointer else []
            x = r.at(pointer, self.scalar, [*steps, 1], [*index, lane]) if pointer else ""
            sums = self._sums(r, x, weights, rows, columns, len(valid))
            at = [r.linear([1, 1], [*i]) for i in zip(firsts, index, strict=True)]
            self._store(r, sums, n, at, channel, rows, columns, valid)

        def columns(index: list[str], rows: int) -> None:
            self._blocked(r, counts[-1], -1, self.columns, lambda i, n: places([*index, i], rows, n))

        def rows(index: list[str]) -> None:
            self._blocked(r, counts[-2], -2, self.rows, lambda i, n: columns([*index, i], n))

        def outer(index: list[str]) -> None:
            if len(index) == len(counts) - 2:
                rows(index)
            else:
                _ranges(r, "0", counts[len(index)], 1, lambda i: outer([*index, i]))

        outer([])

    def _blocked(self, r: Routine, count: str, axis: int, size: int, body: Callable[[str, int], None]) -> None:
        """body(start, size) along an axis of a tile, and body(start, rest) where the axis ends within a block."""
        rest = self.axes[axis].count % size
        if not count.startswith("%"):
            whole = str(int(count) // size * size)
        else:
            whole = r.linear([1, -1], [count, r.b.emit(f"urem i64 {count}, {size}")]) if rest else count
        _ranges(r, "0", whole, size, lambda i: body(i, size))
        if rest and whole != count:
            _ranges(r, whole, count, rest, lambda i: body(i, rest))

    def _sums(self, r: Routine, x: str, weights: str, rows: int, columns: int, wide: int) -> list[str]:
        """The accumulators of a block, row by row, after all terms."""
        kind, lanes = typed(self.scalar, self.lanes), self.lanes
        zero = ["zeroinitializer"] * (rows * columns * wide)
        if self.empty:
            return zero
        b, axes, steps, item = r.b, self.axes, self.patch.steps, self.dtype.itemsize
        last = axes[-1]
        sizes = [*self.filter.taps, self.inner]
        between = [math.prod(sizes[i + 1 :]) * wide * lanes for i in range(len(axes))]  # between taps of the filter
        weights = r.at(weights, self.scalar, between, self.first)
        # the taps of the last axis together, if there are registers for their rows: they share elements of the input
        held = 1 if len(last.phases) > 1 else last.taps
        if (rows * columns + held) * wide + 2 > r.cpu.registers:
            held = 1
        taps = [*self.taps[:-1], "1"] if self.taps[-1] == str(held) else self.taps
        uses: dict[int, list[tuple[int, int]]] = {}  # by place in the patch, the sums that take it and their taps
        for i, (row, column, tap) in enumerate(itertools.product(range(rows), range(columns), range(held))):
            place = row * axes[-2].stride * steps[-2] + (column * last.stride + tap * last.dilation) * steps[-1]
            uses.setdefault(place, []).append((i // held, tap))

        def load(pointer: str, offset: int) -> str:
            return b.emit(f"load {kind}, ptr {r.at(pointer, self.scalar, [], [], offset)}, align {item}")

        def term(x: str, row: str, sums: list[str]) -> list[str]:
            sums = [*sums]
            vectors = [[load(row, t * last.every * between[-1] + j * lanes) for j in range(wide)] for t in range(held)]
            for place, users in sorted(uses.items()):
                if self.depthwise:
                    seen = [load(x, place + j * lanes) for j in range(wide)]
                else:
                    at = r.at(x, self.scalar, [], [], place)
                    seen = [b.spread(b.emit(f"load {self.scalar}, ptr {at}, align {item}"), self.scalar, lanes)] * wide
                for (i, tap), j in itertools.product(users, range(wide)):
                    at_sum = i * wide + j
                    sums[at_sum] = b.intrinsic("fmuladd", kind, seen[j], vectors[tap][j], sums[at_sum])
            return sums

        run, once = self.inner, sum(map(len, uses.values())) * wide
        unroll = max(n for n in range(1, 5) if run % n == 0 and (n == 1 or n * once <= 72))

        def terms(index: list[str], sums: list[str]) -> list[str]:
            at = r.at(x, self.scalar, [s * a.dilation for s, a in zip(steps, axes, strict=True)], index)
            row = r.at(weights, self.scalar, [s * a.every for s, a in zip(between, axes, strict=True)], index)

            def inner(k: str, sums: list[str]) -> list[str]:
                here = r.at(at, self.scalar, [1], [k])
                below = r.at(row, self.scalar, [wide * lanes], [k])
                for u in range(unroll):
                    if u and run == unroll and held == 1:  # few channels: all of the loop over them is written out
                        b.keep_order()
                    next_row = r.at(below, self.scalar, [], [], u * wide * lanes)
                    sums = term(r.at(here, self.scalar, [], [], u), next_row, sums)
                return sums

            if run == unroll:
                return inner("0", sums)
            return sum_with(b, kind, sums, run, unroll, inner, turns=run // unroll, terms=unroll * held)

        def nest(index: list[str], sums: list[str]) -> list[str]:
            if len(index) == len(taps):
                return terms(index, sums)
            if taps[len(index)] == "1":
                return nest([*index, "0"], sums)
            turns, *below = self.filter.taps[len(index) :]
            added = run * math.prod(below)
            added = -(-added // PART ** levels(added))  # longer sums come in parts
            count = taps[len(index)]
            return sum_with(b, kind, sums, count, 1, lambda t, s: nest([*index, t], s), turns=turns, terms=added)

        return nest([], zero)

    def _store(
        self,
        r: Routine,
        sums: list[str],
        n: str,
        index: list[str],
        channel: str,
        rows: int,
        columns: int,
        valid: list[int],
    ) -> None:
        wide, lanes, item = len(valid), self.lanes, self.dtype.itemsize
        kind = typed(self.scalar, lanes)

        def stored(i: int, column: str, made: list[str]) -> None:
            place = [*index[:-2], r.linear([1], [index[-2]], i), column]
            place = [
                r.linear([a.step, 1], [at, start]) for a, at, start in zip(self.axes, place, self.start, strict=True)
            ]
            if self.patch.flat:
                place = place[1:]
            for j, count in enumerate(valid):
                at = [n, *place, r.linear([1], [channel], j * lanes)]
                self.epilogue.emit(r, at, made[j], lanes, count)

        if self.plain:
            for i in range(rows):
                for k in range(columns):
                    at = (i * columns + k) * wide
                    stored(i, r.linear([1], [index[-1]], k), sums[at : at + wide])
            return
        # an expression is written once: the sums go through memory, and a loop runs over them
        for i, s in enumerate(sums):
            r.b.do(f"store {kind} {s}, ptr {r.at(self.spilled, self.scalar, [], [], i * lanes)}, align {item}")
        for i in range(rows):

            def column(k: str, i: int = i) -> None:
                at = r.at(self.spilled, self.scalar, [wide * lanes], [k], i * columns * wide * lanes)
                made = [
                    r.b.emit(f"load {kind}, ptr {r.at(at, self.scalar, [], [], j * lanes)}, align {item}")
                    for j in range(wide)
                ]
                stored(i, r.linear([1, 1], [index[-1], k]), made)

            r.each(columns, column)


def nest(r: Routine, sizes: Sequence[int], body: Callable[[list[str]], None], index: Sequence[str] = ()) -> None:
    if len(index) == len(sizes):
        body(list(index))
    else:
        r.each(sizes[len(index)], lambda i: nest(r, sizes, body, [*index, i]))


def _ranges(r: Routine, start: str, stop: str, step: int, body: Callable[[str], None]) -> None:
    if not start.startswith("%") and not stop.startswith("%"):
        if int(stop) <= int(start):
            return
        if int(stop) - int(start) <= step:
            body(start)
            return
    r.b.loop(stop, step, body, start)
