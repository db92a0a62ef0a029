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

from ....ir.sizes import pieces
from ..labels import Work
from ..processor import Processor
from ..products.epilogue import Epilogue, Stores, WithEpilogue
from ..steps import Native
from ..text.builder import computed, typed
from ..text.describe import Description
from ..text.routine import Routine, slots_of
from ..text.sums import sum_with
from ..values import Buffer, Hole, Value, View, whole
from .patches import Channels, arithmetic, digits, lanes_of, part_of, smallest
from .points import Lanes, Method
from .winograd_tiles import Seen, TransformTiles, apart_of


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


class Winograd(WithEpilogue):
    """The products of transformed tiles with a transformed filter, back from the points, and an epilogue."""

    any_size = True  # see general.py

    def __init__(self, method: Method, x: TransformTiles, filter: TransformFilter, hole: Hole, stores: Stores) -> None:
        super().__init__([x.target, filter.target], Epilogue(hole, stores))
        self.method, self.x, self.filter, self.channels = method, x, filter, filter.channels
        self.scalar, self.lanes, self.item = x.scalar, x.lanes, x.dtype.itemsize
        self.group, self.rows = x.group, x.rows
        self.sizes = [pieces(x.count, self.group), self.channels.blocks]
        self.chunks = math.prod(self.sizes)

    @property
    def work(self) -> Work:
        count = self.method.places * self.x.count * self.filter.inner * self.channels.count
        return self.followed(f"convolution {self.x.x.shape} * {self.filter.source.shape}", count)

    def describe(self) -> str:
        shapes = (self.method.sizes, self.x.x.shape, self.x.across, self.x.tile, self.filter.source.shape)
        return f"{super().describe()}\n{shapes}"

    def emit(self, r: Routine) -> None:
        group, block = digits(r, r.chunk, self.sizes)
        first, last = part_of(r, group, self.group, self.x.count)
        count = r.linear([1, -1], [last, first])
        self.sums = r.stack(self.group * self.method.places * self.channels.step, self.scalar)
        self.spilled = r.stack(math.prod(self.method.sizes) * self.channels.step, self.scalar)
        for start, blocks, valid in self.channels.parts:

            def one(number: str, valid: list[int] = valid) -> None:
                self._products(r, first, count, number, len(valid))
                r.b.loop(count, 1, lambda t: self._back(r, first, t, number, valid))

            if self.channels.blocks == 1:
                one("0")
            else:
                begin = r.b.intrinsic("smax", "i64", block, str(start))
                end = r.b.intrinsic("smin", "i64", r.linear([1], [block], 1), str(start + blocks))
                r.b.loop(end, 1, one, begin)

    def _products(self, r: Routine, first: str, count: str, number: str, wide: int) -> None:
        """The sums over channels of a group of tiles, for a block of channels of the output."""
        width, apart = wide * self.lanes, self.filter.apart

        def place(p: str) -> None:
            x = r.at(r.pointer(self.x.target), self.scalar, [self.x.point, self.x.tile], [p, first])
            w = r.at(r.pointer(self.filter.target), self.scalar, [self.method.places * apart, apart], [number, p])

            def rows(t: str) -> None:
                sums = self._sums(r, r.at(x, self.scalar, [self.x.tile], [t]), w, wide)
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
                    place = r.at(here, self.scalar, [], [], i * self.x.tile + u)
                    seen = b.emit(f"load {self.scalar}, ptr {place}, align {self.item}")
                    seen = b.spread(seen, self.scalar, self.lanes)
                    for j in range(wide):
                        sums[i * wide + j] = b.intrinsic("fmuladd", kind, seen, vectors[j], sums[i * wide + j])
            return sums

        zero = ["zeroinitializer"] * (self.rows * wide)
        return sum_with(b, kind, zero, inner, unroll, terms, turns=inner // unroll, terms=unroll)

    def _back(self, r: Routine, first: str, t: str, number: str, valid: list[int]) -> None:
        """One tile of the output."""
        method, (down, across) = self.method, self.x.across
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
        *image, tile_down, tile_across = digits(r, r.linear([1, 1], [first, t]), [*self.x.images, down, across])
        begins = [r.linear([n], [at]) for n, at in zip(method.sizes, (tile_down, tile_across), strict=True)]
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


def winograd_steps(
    cpu: Processor, method: Method, x: Value, w: View, hole: Hole, stores: Stores, low: Sequence[int]
) -> Sequence[Native]:
    """The steps of a convolution with `low` zeros before x; the first one prepares w."""
    channels = Channels(cpu, w.shape[-1], lanes_of(cpu, x.dtype))
    filter = TransformFilter(method, w, channels)
    seen = Seen(method.sizes, method.sides, method.of_input)
    tiles = TransformTiles(cpu, method, x, hole.shape[-3:-1], low, seen, channels)
    return [filter, tiles, Winograd(method, tiles, filter, hole, stores)]
