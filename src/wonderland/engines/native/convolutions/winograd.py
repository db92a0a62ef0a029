"""Convolutions in fewer products: Winograd's method, forward and, with taps turned around, backward to the input.

    out tile = A [ (G w G') * sum over channels of (B d B') ] A'

w are r x r taps, d is a tile of (m + r - 1) x (m + r - 1) places of the input, which gives m x m places of the output.
So (m + r - 1)^2 products stand for r^2 m^2 (36 for 144 with r = 3, m = 4), and the sums over channels are that many
products of matrices, tiles x channels times channels x channels. Tiles do not see each other, but what is not finite
spreads through its tile, and rounding counts some times more than in the plain sum (tests/engines/test_winograd.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ....ir.sizes import pieces
from ..labels import Work
from ..processor import Processor
from ..products.epilogue import Epilogue, Stores, WithEpilogue
from ..steps import Native
from ..text.builder import computed, typed
from ..text.describe import Description
from ..text.routine import Routine, slots_of
from ..text.sums import sum_with
from ..tuning import LEAST_TILES, NEAR_FILTER, TILED
from ..values import Buffer, Hole, Value, View, leaves, whole
from .patches import Channels, arithmetic, digits, lanes_of, part_of, smallest
from .points import Lanes, Method
from .winograd_tiles import Boxes, Seen, TransformTiles, apart_of, pitch_of


class TransformFilter:
    """A filter (taps, taps, in, out) at all points, in the order in which products read it: for each block of output
    channels and each point, rows of the block for all input channels."""

    def __init__(self, method: Method, source: View, channels: Channels) -> None:
        self.method, self.source, self.channels = method, source, channels
        self.inner = source.shape[-2]
        dtype = arithmetic(source.dtype)
        self.apart = apart_of(self.inner * channels.step, dtype)
        size = channels.blocks * method.places * self.apart
        self.target = whole(Buffer("arena", size, dtype), (size,))
        self.views = [source, self.target]
        self.reads, self.writes = [source.buffer], [self.target.buffer]
        self.chunks = self.inner

    @property
    def work(self) -> Work:
        return f"transform filter {self.source.shape}", 0

    def describe(self) -> str:
        return f"TransformFilter {self.method.sizes} {Description(slots_of(self.views)).view(self.source)}"

    def emit(self, r: Routine) -> None:
        scalar, lanes, item = computed(self.source.dtype), self.channels.lanes, self.target.dtype.itemsize
        for first, count, valid in self.channels.parts:
            width = len(valid) * lanes

            def block(i: str, first: int = first, valid: list[int] = valid, width: int = width) -> None:
                number = r.linear([1], [i], first)
                for j, n in enumerate(valid):
                    channel = r.linear([self.channels.step], [number], j * lanes)
                    rows, columns = map(range, self.method.taps)
                    taps = [
                        [r.load(self.source, [str(y), str(x), r.chunk, channel], lanes, n) for x in columns]
                        for y in rows
                    ]
                    steps = [self.method.places * self.apart, width]
                    at = r.at(r.pointer(self.target), scalar, steps, [number, r.chunk], j * lanes)
                    made = self.method.of_filter(Lanes(r.b, scalar, lanes), taps)
                    for p, vector in enumerate(made):
                        place = r.at(at, scalar, [], [], p * self.apart)
                        r.store_vector(vector, place, scalar, item, lanes, lanes)

            r.each(count, block)


class Group(NamedTuple):
    size: int  # how many tiles are multiplied together
    rows: int  # and how many of these registers hold, without a rest


def grouped(channels: Channels, tiles: int) -> Group:
    """A group of so many tiles, or a few more."""
    most = channels.rows
    rows = min(range(most, 2 * most // 3 - 1, -1), key=lambda n: -(-tiles // n) * n)
    return Group(-(-tiles // rows) * rows, rows)


class PointProducts(WithEpilogue):
    """The products of tiles at their points with a filter at its points, the way back, and an epilogue.

    Tiles are multiplied in groups, of which registers hold some rows at a time.
    """

    any_size = True  # see general.py
    tile: int  # how far apart in memory tiles are; their points are apart by channels

    def __init__(
        self, boxes: Boxes, read: list[View], filter: TransformFilter, group: Group, hole: Hole, stores: Stores
    ) -> None:
        super().__init__([*read, filter.target], Epilogue(hole, stores))
        self.boxes, self.filter, self.channels, self.method = boxes, filter, filter.channels, boxes.method
        self.scalar, self.lanes, self.item = boxes.scalar, boxes.lanes, boxes.dtype.itemsize
        self.group, self.rows = group

    @property
    def work(self) -> Work:
        count = self.method.places * self.boxes.count * self.filter.inner * self.channels.count
        tile = "Winograd {} x {}".format(*self.method.sizes)
        return self.followed(f"convolution {self.boxes.x.shape} * {self.filter.source.shape}, {tile}", count)

    def allocate(self, r: Routine) -> None:
        self.sums = r.stack(self.group * self.method.places * self.channels.step, self.scalar)
        self.spilled = r.stack(math.prod(self.method.sizes) * self.channels.step, self.scalar)

    def products(self, r: Routine, x: str, count: str, number: str, wide: int) -> None:
        """The sums over channels of the tiles from x on, for a block of channels of the output."""
        width, apart = wide * self.lanes, self.filter.apart

        def place(p: str) -> None:
            points = r.at(x, self.scalar, [self.boxes.pitch], [p])
            w = r.at(r.pointer(self.filter.target), self.scalar, [self.method.places * apart, apart], [number, p])

            def rows(t: str) -> None:
                sums = self._sums(r, r.at(points, self.scalar, [self.tile], [t]), w, wide)
                target = r.at(self.sums, self.scalar, [self.method.places * width, width], [t, p])
                for i, vector in enumerate(sums):
                    row, j = divmod(i, wide)
                    at = r.at(target, self.scalar, [], [], row * self.method.places * width + j * self.lanes)
                    r.store_vector(vector, at, self.scalar, self.item, self.lanes, self.lanes)

            r.b.loop(count, self.rows, rows)  # there is room for the rest of the last block

        r.b.loop(self.method.places, 1, place)

    def _sums(self, r: Routine, x: str, w: str, wide: int) -> list[str]:
        b, kind, inner = r.b, typed(self.scalar, self.lanes), self.filter.inner
        unroll = 4 if inner % 4 == 0 else 1

        def terms(c: str, sums: list[str]) -> list[str]:
            sums, here, row = [*sums], r.at(x, self.scalar, [1], [c]), r.at(w, self.scalar, [wide * self.lanes], [c])
            for u in range(unroll):
                at = [r.at(row, self.scalar, [], [], (u * wide + j) * self.lanes) for j in range(wide)]
                vectors = [b.emit(f"load {kind}, ptr {p}, align {self.item}") for p in at]
                for i in range(self.rows):
                    place = r.at(here, self.scalar, [], [], i * self.tile + u)
                    seen = b.emit(f"load {self.scalar}, ptr {place}, align {self.item}")
                    seen = b.spread(seen, self.scalar, self.lanes)
                    for j in range(wide):
                        sums[i * wide + j] = b.intrinsic("fmuladd", kind, seen, vectors[j], sums[i * wide + j])
            return sums

        zero = ["zeroinitializer"] * (self.rows * wide)
        return sum_with(b, kind, zero, inner, unroll, terms, turns=inner // unroll, terms=unroll)

    def back(self, r: Routine, t: str, image: list[str], tile: list[str], number: str, valid: list[int]) -> None:
        """The places of the output of tile t of a group, which stands somewhere in an image."""
        method = self.method
        kind, width = typed(self.scalar, self.lanes), len(valid) * self.lanes
        source = r.at(self.sums, self.scalar, [method.places * width], [t])
        rows, columns = method.sides
        for j in range(len(valid)):

            def summed(i: int, k: int, j: int = j) -> str:
                at = r.at(source, self.scalar, [], [], (i * columns + k) * width + j * self.lanes)
                return r.b.emit(f"load {kind}, ptr {at}, align {self.item}")

            sums = [[summed(i, k) for k in range(columns)] for i in range(rows)]
            for p, vector in enumerate(method.of_output(Lanes(r.b, self.scalar, self.lanes), sums)):
                at = r.at(self.spilled, self.scalar, [], [], p * width + j * self.lanes)
                r.store_vector(vector, at, self.scalar, self.item, self.lanes, self.lanes)
        begins = [r.linear([n], [at]) for n, at in zip(method.sizes, tile, strict=True)]
        places = self.epilogue.hole.shape[-3:-1]
        ends = [
            smallest(r, r.linear([-1], [at], count), n)
            for at, count, n in zip(begins, places, method.sizes, strict=True)
        ]

        def place(i: str, k: str) -> None:
            at = r.at(self.spilled, self.scalar, [method.across.size * width, width], [i, k])
            index = [*image, r.linear([1, 1], [begins[0], i]), r.linear([1, 1], [begins[1], k])]
            for j, n in enumerate(valid):
                made = r.b.emit(f"load {kind}, ptr {r.at(at, self.scalar, [], [], j * self.lanes)}, align {self.item}")
                channel = r.linear([self.channels.step], [number], j * self.lanes)
                self.epilogue.emit(r, [*index, channel], made, self.lanes, n)

        r.b.loop(ends[0], 1, lambda i: r.b.loop(ends[1], 1, lambda k: place(i, k)))


class Winograd(PointProducts):
    """For all tiles in memory: a chunk has a group of them and a block of channels."""

    def __init__(self, x: TransformTiles, filter: TransformFilter, group: Group, hole: Hole, stores: Stores) -> None:
        super().__init__(x.boxes, [x.target], filter, group, hole, stores)
        self.x, self.tile = x, x.tile
        self.sizes = [pieces(self.boxes.count, self.group), self.channels.blocks]
        self.chunks = math.prod(self.sizes)

    def describe(self) -> str:
        shapes = (self.method.sizes, self.boxes.x.shape, self.boxes.across, self.tile, self.filter.source.shape)
        return f"{super().describe()}\n{shapes}"

    def emit(self, r: Routine) -> None:
        group, block = digits(r, r.chunk, self.sizes)
        first, last = part_of(r, group, self.group, self.boxes.count)
        count = r.linear([1, -1], [last, first])
        x = r.at(r.pointer(self.x.target), self.scalar, [self.tile], [first])
        self.allocate(r)
        for start, blocks, valid in self.channels.parts:

            def one(number: str, valid: list[int] = valid) -> None:
                self.products(r, x, count, number, len(valid))
                r.b.loop(count, 1, lambda t: tile(t, number, valid))

            def tile(t: str, number: str, valid: list[int]) -> None:
                *image, down, across = digits(r, r.linear([1, 1], [first, t]), [*self.boxes.images, *self.boxes.across])
                self.back(r, t, image, [down, across], number, valid)

            if self.channels.blocks == 1:
                one("0")
            else:
                begin = r.b.intrinsic("smax", "i64", block, str(start))
                end = r.b.intrinsic("smin", "i64", r.linear([1], [block], 1), str(start + blocks))
                r.b.loop(end, 1, one, begin)


class WinogradNear(PointProducts):
    """For filters that stay in the caches: a chunk brings a box of tiles to points and takes all blocks of channels."""

    def __init__(self, boxes: Boxes, filter: TransformFilter, hole: Hole, stores: Stores) -> None:
        group = grouped(filter.channels, math.prod(boxes.tiles.sizes))
        super().__init__(boxes, [*leaves(boxes.x), *boxes.scratch], filter, group, hole, stores)
        self.writes += [view.buffer for view in boxes.scratch]
        self.tile = apart_of(self.method.places * boxes.pitch, boxes.dtype)
        self.chunks = boxes.chunks

    def describe(self) -> str:
        description = Description(slots_of(self.views))
        lines = [f"WinogradNear {self.filter.source.shape} {self.boxes.describe(description)}"]
        lines += [f"{description.view(t)} = {description.value(v)}" for t, v in self.epilogue.stores]
        return "\n".join([*lines, f"{self.epilogue.hole.dtype}", *description.lines])

    def emit(self, r: Routine) -> None:
        image, firsts, counts = self.boxes.of(r)
        x = r.stack(self.group * self.tile, self.scalar)
        self.allocate(r)

        def number_of(i: str, k: str) -> str:
            return r.b.emit(f"add nsw i64 {r.b.emit(f'mul nsw i64 {i}, {counts[1]}')}, {k}")

        self.boxes.transform(
            r,
            image,
            firsts,
            counts,
            lambda i, k: r.at(x, self.scalar, [self.tile], [number_of(i, k)]),
            self.boxes.pitch,
        )
        count = number_of(counts[0], "0")
        for start, blocks, valid in self.channels.parts:

            def one(number: str, valid: list[int] = valid) -> None:
                self.products(r, x, count, number, len(valid))

                def tile(i: str, k: str) -> None:
                    at = [r.linear([1, 1], [*pair]) for pair in zip(firsts, (i, k), strict=True)]
                    self.back(r, number_of(i, k), image, at, number, valid)

                r.b.loop(counts[0], 1, lambda i: r.b.loop(counts[1], 1, lambda k: tile(i, k)))

            if blocks == 1:
                one(str(start))
            else:
                r.b.loop(str(start + blocks), 1, one, str(start))


def winograd_steps(
    cpu: Processor, method: Method, x: Value, w: View, hole: Hole, stores: Stores, low: Sequence[int]
) -> Sequence[Native]:
    """The steps of a convolution with `low` zeros before x; the first one prepares w."""
    channels = Channels(cpu, w.shape[-1], lanes_of(cpu, x.dtype))
    filter = TransformFilter(method, w, channels)
    seen, places = Seen(method.sizes, method.sides, method.of_input), hole.shape[-3:-1]
    tile = method.places * max(pitch_of(cpu, x), channels.step) * arithmetic(x.dtype).itemsize
    most = max(LEAST_TILES, TILED // tile)
    boxes = Boxes(cpu, method, x, places, low, seen, most)
    if math.prod(boxes.tiles.sizes) >= LEAST_TILES and filter.target.buffer.nbytes <= NEAR_FILTER:
        return [filter, WinogradNear(boxes, filter, hole, stores)]
    count = int(boxes.count)
    group = grouped(channels, -(-count // -(-count // most)))
    tiles = TransformTiles(cpu, method, x, places, low, seen, group.size)
    return [filter, tiles, Winograd(tiles, filter, group, hole, stores)]
