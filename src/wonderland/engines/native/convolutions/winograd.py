"""Convolutions of 3 x 3 taps in fewer products: Winograd's method, for filters that are prepared once for many calls.

    out tile = A [ (G w G') * sum over channels of (B d B') ] A'

d is a tile of (m + 2) x (m + 2) places of the input, which gives m x m places of the output. So (m + 2)^2 products
stand for 9 m^2 (36 for 144 with m = 4), and the sums over channels are (m + 2)^2 products of matrices, tiles x channels
times channels x channels. Every matrix evaluates polynomials at points or goes back from there (Toom and Cook):
correlation is the transpose of a product of polynomials. Tiles do not see each other, but what is not finite spreads
through its tile, and rounding counts some times more than in the plain sum (tests/engines/test_winograd.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from ..labels import Work
from ..processor import Processor
from ..products.epilogue import Epilogue, Stores, WithEpilogue
from ..steps import Native
from ..text.builder import Builder, computed, literal, splat, typed
from ..text.describe import Description
from ..text.routine import Routine, slots_of
from ..text.sums import sum_with
from ..tuning import PATCH, TILED, TRANSFORMED
from ..values import Buffer, Hole, Shape, Value, View, leaves, whole
from .patches import Axis, Channels, Patch, Phase, Tiles, arithmetic, digits, lanes_of, part_of, smallest, tile_sizes

# where polynomials are evaluated, beside infinity, by m: points that are exact in binary and make the smallest errors
POINTS: dict[int, tuple[float, ...]] = {2: (0, 1, -1), 4: (0, 5 / 8, -5 / 8, 3 / 2, -3 / 2)}


class Method:
    """The three matrices for tiles of `size` places a side."""

    def __init__(self, size: int) -> None:
        points = [Fraction(p) for p in POINTS[size]]
        self.size, self.side = size, size + 2
        self.places = self.side**2
        others = [[q for q in points if q != p] for p in points]
        self.input = [_polynomial(rest, self.side) for rest in [*others, points]]
        scales = [math.prod([p - q for q in rest], start=Fraction(1)) for p, rest in zip(points, others, strict=True)]
        self.filter = [[p**k / s for k in range(3)] for p, s in zip(points, scales, strict=True)]
        self.filter.append([Fraction(k == 2) for k in range(3)])
        self.output = [[*(p**i for p in points), Fraction(i == size - 1)] for i in range(size)]
        # a point and its negative: what they have in common is computed once
        self.pairs = [j for j, p in enumerate(points[:-1]) if p and points[j + 1] == -p]

    def of_input(self, lanes: Lanes, line: Sequence[str]) -> list[str]:
        made: dict[int, str] = {}
        for j in self.pairs:  # even and odd powers
            even, odd = (lanes.sum([*zip(self.input[j], line, strict=True)][start::2]) for start in (0, 1))
            made[j], made[j + 1] = lanes.sum([(1, even), (1, odd)]), lanes.sum([(1, even), (-1, odd)])
        rows = enumerate(self.input)
        return [made.get(j) or lanes.sum([*zip(row, line, strict=True)]) for j, row in rows]

    def of_filter(self, lanes: Lanes, line: Sequence[str]) -> list[str]:
        return [lanes.sum([*zip(row, line, strict=True)]) for row in self.filter]

    def of_output(self, lanes: Lanes, line: Sequence[str]) -> list[str]:
        terms = [[(row[j], line[j]) for j in range(self.side)] for row in self.output]
        for j in self.pairs:
            both = [lanes.sum([(1, line[j]), (sign, line[j + 1])]) for sign in (1, -1)]
            for i, row in enumerate(terms):
                row[j : j + 2] = [(self.output[i][j], both[i % 2]), (Fraction(0), "")]
        return [lanes.sum(row) for row in terms]


def _polynomial(roots: Sequence[Fraction], count: int) -> list[Fraction]:
    """The coefficients of the product of x - root, from the lowest power on."""
    found = [Fraction(1)]
    for root in roots:
        found = [a - root * b for a, b in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return found + [Fraction(0)] * (count - len(found))


class Lanes(NamedTuple):
    """Vectors of channels."""

    b: Builder
    scalar: str
    width: int

    def sum(self, terms: Sequence[tuple[Fraction | int, str]]) -> str:
        """The sum of registers times numbers."""
        kind, total = typed(self.scalar, self.width), ""
        for factor, value in sorted(terms, key=lambda term: term[0] != 1):
            number = splat(literal(float(factor), self.scalar), self.scalar, self.width)
            if factor == 0:
                continue
            if factor == 1 or (factor == -1 and total):
                total = self.b.emit(f"{'fadd' if factor == 1 else 'fsub'} {kind} {total}, {value}") if total else value
            elif total:
                total = self.b.intrinsic("fmuladd", kind, value, number, total)
            else:
                total = self.b.emit(f"fmul {kind} {value}, {number}")
        return total


Line = Callable[[Lanes, Sequence[str]], list[str]]


def _square(of_line: Line, lanes: Lanes, square: list[list[str]]) -> list[str]:
    """A matrix from both sides: along the columns, then along the rows of the result, which follow each other."""
    columns = [of_line(lanes, column) for column in zip(*square, strict=True)]
    return [value for row in zip(*columns, strict=True) for value in of_line(lanes, row)]


class TransformFilter:
    """A filter (3, 3, in, out) at all points, in the order in which products read it: for each block of output channels
    and each place of a tile, rows of the block for all input channels."""

    def __init__(self, method: Method, source: View, channels: Channels) -> None:
        self.method, self.source, self.channels = method, source, channels
        self.inner = source.shape[-2]
        size = method.places * self.inner * channels.padded
        self.target = whole(Buffer("arena", size, arithmetic(source.dtype)), (size,))
        self.views = [source, self.target]
        self.reads, self.writes = [source.buffer], [self.target.buffer]
        self.chunks = self.inner

    @property
    def work(self) -> Work:
        return f"transform filter {self.source.shape}", 0

    def describe(self) -> str:
        return f"TransformFilter {self.method.size} {Description(slots_of(self.views)).view(self.source)}"

    def emit(self, r: Routine) -> None:
        scalar, lanes, item = computed(self.source.dtype), self.channels.lanes, self.target.dtype.itemsize
        for first, count, valid in self.channels.parts:
            width = len(valid) * lanes

            def block(i: str, first: int = first, valid: list[int] = valid, width: int = width) -> None:
                number = r.linear([1], [i], first)
                for j, n in enumerate(valid):
                    channel = r.linear([self.channels.step], [number], j * lanes)
                    taps = [
                        [r.load(self.source, [str(y), str(x), r.chunk, channel], lanes, n) for x in range(3)]
                        for y in range(3)
                    ]
                    steps = [self.method.places * self.inner * self.channels.step, width]
                    at = r.at(r.pointer(self.target), scalar, steps, [number, r.chunk], j * lanes)
                    made = _square(self.method.of_filter, Lanes(r.b, scalar, lanes), taps)
                    for p, vector in enumerate(made):
                        place = r.at(at, scalar, [], [], p * self.inner * width)
                        r.store_vector(vector, place, scalar, item, lanes, lanes)

            r.each(count, block)


class TransformTiles:
    """Tiles of an operand (batch, height, width, channels) at all points: (places of a tile, tiles, channels)."""

    def __init__(
        self, cpu: Processor, method: Method, x: Value, places: Shape, low: Sequence[int], channels: Channels
    ) -> None:
        """`places` and `channels` of the output, zeros `low` before the input."""
        self.method, self.x, self.lanes = method, x, lanes_of(cpu, x.dtype)
        self.scalar, self.dtype = computed(x.dtype), arithmetic(x.dtype)
        batch, *sizes, inner = x.shape
        self.pitch = -(-inner // self.lanes) * self.lanes
        self.axes = [
            Axis(size, -(-count // method.size), (Phase(method.side, 0, before, 0),), method.size)
            for size, count, before in zip(sizes, places, low, strict=True)
        ]
        self.across = [a.count for a in self.axes]
        self.count = batch * math.prod(self.across)
        self.group, self.rows = self._groups(channels)

        def fits(sizes: list[int]) -> bool:
            patch = math.prod(Tiles(self.axes, sizes).extents()) * self.pitch * self.dtype.itemsize
            return patch <= PATCH and math.prod(sizes) * self.pitch <= TRANSFORMED

        self.tiles = Tiles(self.axes, tile_sizes(self.axes, [1, 1], 1, fits))
        self.sizes = [batch, *self.tiles.counts]
        self.chunks = math.prod(self.sizes)
        # a cache line more than needed, or all places of a tile might fall on the same places of the cache
        self.apart = (self.count + self.rows) * self.pitch + 64 // self.dtype.itemsize
        size = method.places * self.apart
        self.target = whole(Buffer("arena", size, self.dtype), (size,))
        self.patch = Patch(cpu, x, self.tiles, inner, self.pitch, self.chunks)
        scratch = [self.patch.scratch] if self.patch.scratch else []
        self.views = [*leaves(x), self.target, *scratch]
        self.reads = [v.buffer for v in leaves(x)]
        self.writes = [v.buffer for v in [self.target, *scratch]]

    def _groups(self, channels: Channels) -> tuple[int, int]:
        """How many tiles are multiplied together, and how many of these registers hold."""
        tile = self.method.places * max(self.pitch, channels.step) * self.dtype.itemsize
        groups = -(-self.count // max(1, TILED // tile))
        group, most = -(-self.count // groups), channels.rows
        rows = min(range(most, 2 * most // 3 - 1, -1), key=lambda n: -(-group // n) * n)
        return -(-group // rows) * rows, rows

    @property
    def work(self) -> Work:
        return f"transform {self.x.shape}", 0

    def describe(self) -> str:
        description = Description(slots_of(self.views))
        value = description.value(self.x)
        lines = [f"TransformTiles {self.method.size} {self.x.shape} {self.axes} {self.apart} {value}"]
        return "\n".join([*lines, *description.lines])

    def emit(self, r: Routine) -> None:
        image, *numbers = digits(r, r.chunk, self.sizes)
        firsts, counts = self.tiles.of(r, numbers)
        self.patch.allocate(r)
        pointer = self.patch.fill(r, image, firsts, "0", [str(a.phases[0].low) for a in self.axes])
        down, across = self.across

        def row(i: str) -> None:
            r.b.loop(counts[1], 1, lambda k: tile(i, k))

        def tile(i: str, k: str) -> None:
            number = r.linear([down * across, across, across, 1, 1], [image, firsts[0], i, firsts[1], k])
            target = r.at(r.pointer(self.target), self.scalar, [self.pitch], [number])
            source = r.at(pointer, self.scalar, [self.method.size * s for s in self.patch.steps], [i, k])
            r.vectors(self.pitch, self.lanes, lambda c, *_: self._tile(r, source, target, c))

        r.b.loop(counts[0], 1, row)

    def _tile(self, r: Routine, source: str, target: str, channel: str) -> None:
        kind, item, side = typed(self.scalar, self.lanes), self.dtype.itemsize, range(self.method.side)
        source, target = (r.at(at, self.scalar, [1], [channel]) for at in (source, target))
        down, across = self.patch.steps

        def seen(i: int, j: int) -> str:
            return r.b.emit(
                f"load {kind}, ptr {r.at(source, self.scalar, [], [], i * down + j * across)}, align {item}"
            )

        lanes = Lanes(r.b, self.scalar, self.lanes)
        for p, vector in enumerate(_square(self.method.of_input, lanes, [[seen(i, j) for j in side] for i in side])):
            place = r.at(target, self.scalar, [], [], p * self.apart)
            r.store_vector(vector, place, self.scalar, item, self.lanes, self.lanes)


class Winograd(WithEpilogue):
    """The products of transformed tiles with a transformed filter, back from the points, and an epilogue."""

    def __init__(self, method: Method, x: TransformTiles, filter: TransformFilter, hole: Hole, stores: Stores) -> None:
        super().__init__([x.target, filter.target], Epilogue(hole, stores))
        self.method, self.x, self.filter, self.channels = method, x, filter, filter.channels
        self.scalar, self.lanes, self.item = x.scalar, x.lanes, x.dtype.itemsize
        self.group, self.rows = x.group, x.rows
        self.sizes = [-(-x.count // self.group), self.channels.blocks]
        self.chunks = math.prod(self.sizes)

    @property
    def work(self) -> Work:
        count = self.method.places * self.x.count * self.filter.inner * self.channels.count
        return self.followed(f"convolution {self.x.x.shape} * {self.filter.source.shape}", count)

    def describe(self) -> str:
        shapes = (self.method.size, self.x.x.shape, self.x.across, self.x.apart, self.filter.source.shape)
        return f"{super().describe()}\n{shapes}"

    def emit(self, r: Routine) -> None:
        group, block = digits(r, r.chunk, self.sizes)
        first, last = part_of(r, group, self.group, self.x.count)
        count = r.linear([1, -1], [last, first])
        self.sums = r.stack(self.group * self.method.places * self.channels.step, self.scalar)
        self.spilled = r.stack(self.method.size**2 * self.channels.step, self.scalar)
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
        inner, width = self.filter.inner, wide * self.lanes
        block = self.method.places * inner * self.channels.step

        def place(p: str) -> None:
            x = r.at(r.pointer(self.x.target), self.scalar, [self.x.apart, self.x.pitch], [p, first])
            w = r.at(r.pointer(self.filter.target), self.scalar, [block, inner * width], [number, p])

            def rows(t: str) -> None:
                sums = self._sums(r, r.at(x, self.scalar, [self.x.pitch], [t]), w, wide)
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
                    place = r.at(here, self.scalar, [], [], i * self.x.pitch + u)
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
        side = range(method.side)
        for j in range(len(valid)):

            def summed(i: int, k: int, j: int = j) -> str:
                at = r.at(source, self.scalar, [], [], (i * method.side + k) * width + j * self.lanes)
                return r.b.emit(f"load {kind}, ptr {at}, align {self.item}")

            square = [[summed(i, k) for k in side] for i in side]
            for p, vector in enumerate(_square(method.of_output, Lanes(r.b, self.scalar, self.lanes), square)):
                at = r.at(self.spilled, self.scalar, [], [], p * width + j * self.lanes)
                r.store_vector(vector, at, self.scalar, self.item, self.lanes, self.lanes)
        image, *tile = digits(r, r.linear([1, 1], [first, t]), [self.x.x.shape[0], down, across])
        begins = [r.linear([method.size], [at]) for at in tile]
        shape = self.epilogue.hole.shape[1:-1]
        ends = [smallest(r, r.linear([-1], [at], n), method.size) for at, n in zip(begins, shape, strict=True)]

        def place(i: str, k: str) -> None:
            at = r.at(self.spilled, self.scalar, [method.size * width, width], [i, k])
            index = [image, r.linear([1, 1], [begins[0], i]), r.linear([1, 1], [begins[1], k])]
            for j, n in enumerate(valid):
                made = r.b.emit(f"load {kind}, ptr {r.at(at, self.scalar, [], [], j * self.lanes)}, align {self.item}")
                channel = r.linear([self.channels.step], [number], j * self.lanes)
                self.epilogue.emit(r, [*index, channel], made, self.lanes, n)

        r.b.loop(ends[0], 1, lambda i: r.b.loop(ends[1], 1, lambda k: place(i, k)))


def size_for(batch: int, places: Shape, inner: int, out: int) -> int | None:
    """The best size of tiles, or None if plain sums are about as fast; by what there is to multiply and to read."""
    choices = {}
    for size in POINTS:
        points, tiles = (size + 2) ** 2, batch * math.prod(-(-n // size) for n in places)
        choices[size] = points * (tiles * (inner * out + 10 * (inner + out)) + 16 * inner * out)
    best = min(choices, key=choices.__getitem__)
    plain = 9 * (batch * math.prod(places) + 16) * inner * out
    return best if 5 * choices[best] < 4 * plain and min(inner, out) >= 16 else None


def winograd_steps(
    cpu: Processor, size: int, x: Value, w: View, hole: Hole, stores: Stores, low: Sequence[int]
) -> Sequence[Native]:
    """The steps of a convolution of 3 x 3 taps with `low` zeros before x, in tiles of a size; the first prepares w."""
    method, channels = Method(size), Channels(cpu, w.shape[-1], lanes_of(cpu, x.dtype))
    filter = TransformFilter(method, w, channels)
    tiles = TransformTiles(cpu, method, x, hole.shape[1:-1], low, channels)
    return [filter, tiles, Winograd(method, tiles, filter, hole, stores)]
