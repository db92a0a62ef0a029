"""The step that brings tiles of an operand to points, for convolutions by Winograd's method and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....core.dtypes import DType
from ....ir.sizes import Extent, pieces
from ..labels import Work
from ..processor import Processor
from ..text.builder import computed, typed
from ..text.describe import Description
from ..text.routine import Routine, slots_of
from ..tuning import LEAST_TILES, PATCH, TILED, TRANSFORMED
from ..values import Buffer, Shape, Value, View, leaves, whole
from .patches import Axis, Channels, Patch, Phase, Tiles, arithmetic, digits, lanes_of, tile_sizes
from .points import Lanes, Method


class Seen(NamedTuple):
    """How tiles lie, along both axes, and what becomes of one."""

    steps: tuple[int, int]  # from one tile to the next
    sides: tuple[int, int]  # places of a tile
    made: Callable[[Lanes, list[list[str]]], list[str]]


def apart_of(count: int, dtype: DType) -> int:
    """How far apart in memory the numbers of points are, `count` each: a cache line more, or those of one place for all
    points might fall on the same places of the cache."""
    return count + 64 // dtype.itemsize


class TransformTiles:
    """Tiles of an operand (*images, height, width, channels) at all points.

    They belong to the places of the output, whose size is `places`; zeros `low` are before the operand. For products in
    groups of tiles, each of `rows`, all points of a tile lie together, and there is room for the rest of a group.
    """

    any_size = True  # see general.py

    def __init__(
        self,
        cpu: Processor,
        method: Method,
        x: Value,
        places: Shape,
        low: Sequence[int],
        seen: Seen,
        channels: Channels | None = None,
    ) -> None:
        """`channels` of the output, if tiles are multiplied in groups."""
        self.method, self.x, self.seen, self.lanes = method, x, seen, lanes_of(cpu, x.dtype)
        self.scalar, self.dtype = computed(x.dtype), arithmetic(x.dtype)
        *self.images, down, across, inner = x.shape
        self.pitch = -(-inner // self.lanes) * self.lanes
        self.axes = [
            Axis(size, -(-count // step), (Phase(side, 0, before, 0),), step)
            for size, count, before, step, side in zip((down, across), places, low, seen.steps, seen.sides, strict=True)
        ]
        self.across = [a.count for a in self.axes]
        self.count = math.prod(self.images) * math.prod(self.across)
        self.group, self.rows = self._groups(channels) if channels else (1, 1)

        def fits(sizes: list[int]) -> bool:
            patch = math.prod(Tiles(self.axes, sizes).extents()) * self.pitch * self.dtype.itemsize
            return patch <= PATCH and math.prod(sizes) * self.pitch <= TRANSFORMED

        self.tiles = Tiles(self.axes, tile_sizes(self.axes, [1, 1], 1, fits))
        self.sizes = [*self.images, *self.tiles.counts]
        self.chunks = math.prod(self.sizes)
        room = pieces(self.count, self.group) * self.group
        if channels or isinstance(self.count, Extent):  # points, then tiles: the number of tiles is in no stride
            self.point, self.tile = self.pitch, apart_of(method.places * self.pitch, self.dtype)
            size = room * self.tile
        else:  # products of whole matrices read faster what lies together
            self.point, self.tile = apart_of(room * self.pitch, self.dtype), self.pitch
            size = method.places * self.point
        self.target = whole(Buffer("arena", size, self.dtype), (size,))
        self.patch = Patch(cpu, x, self.tiles, inner, self.pitch, self.chunks)
        scratch = [self.patch.scratch] if self.patch.scratch else []
        self.views = [*leaves(x), self.target, *scratch]
        self.reads = [v.buffer for v in leaves(x)]
        self.writes = [v.buffer for v in [self.target, *scratch]]

    def _groups(self, channels: Channels) -> tuple[int, int]:
        """How many tiles are multiplied together, and how many of these registers hold."""
        tile = self.method.places * max(self.pitch, channels.step) * self.dtype.itemsize
        count = int(self.count)
        groups = -(-count // max(LEAST_TILES, TILED // tile))
        group, most = -(-count // groups), channels.rows
        rows = min(range(most, 2 * most // 3 - 1, -1), key=lambda n: -(-group // n) * n)
        return -(-group // rows) * rows, rows

    @property
    def matrices(self) -> View:
        """(points, tiles, channels)"""
        shape = (self.method.places, self.count, self.x.shape[-1])
        return View(self.target.buffer, shape, (self.point, self.tile, 1))

    @property
    def work(self) -> Work:
        return f"transform {self.x.shape}", 0

    def describe(self) -> str:
        description = Description(slots_of(self.views))
        value = description.value(self.x)
        own = (self.seen.made.__name__, self.method.sizes, self.x.shape, self.axes, self.point, self.tile)
        lines = [f"TransformTiles {own} {value}"]
        return "\n".join([*lines, *description.lines])

    def emit(self, r: Routine) -> None:
        *image, first, second = digits(r, r.chunk, self.sizes)
        firsts, counts = self.tiles.of(r, [first, second])
        self.patch.allocate(r)
        pointer = self.patch.fill(r, image, firsts, "0", [str(a.phases[0].low) for a in self.axes])
        down, across = self.across
        between = [n * step for n, step in zip(self.seen.steps, self.patch.steps, strict=True)]
        steps = [down * across * math.prod(self.images[i + 1 :]) for i in range(len(self.images))]

        def row(i: str) -> None:
            r.b.loop(counts[1], 1, lambda k: tile(i, k))

        def tile(i: str, k: str) -> None:
            number = r.linear([*steps, across, across, 1, 1], [*image, firsts[0], i, firsts[1], k])
            target = r.at(r.pointer(self.target), self.scalar, [self.tile], [number])
            source = r.at(pointer, self.scalar, between, [i, k])
            r.vectors(self.pitch, self.lanes, lambda c, *_: self._tile(r, source, target, c))

        r.b.loop(counts[0], 1, row)

    def _tile(self, r: Routine, source: str, target: str, channel: str) -> None:
        kind, item, (rows, columns) = typed(self.scalar, self.lanes), self.dtype.itemsize, self.seen.sides
        source, target = (r.at(at, self.scalar, [1], [channel]) for at in (source, target))
        down, across = self.patch.steps

        def seen(i: int, j: int) -> str:
            return r.b.emit(
                f"load {kind}, ptr {r.at(source, self.scalar, [], [], i * down + j * across)}, align {item}"
            )

        tile = [[seen(i, j) for j in range(columns)] for i in range(rows)]
        for p, vector in enumerate(self.seen.made(Lanes(r.b, self.scalar, self.lanes), tile)):
            place = r.at(target, self.scalar, [], [], p * self.point)
            r.store_vector(vector, place, self.scalar, item, self.lanes, self.lanes)
