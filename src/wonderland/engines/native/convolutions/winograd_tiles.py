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
from ..tuning import PATCH, TRANSFORMED
from ..values import Buffer, Shape, Value, View, leaves, whole
from .patches import Axis, Patch, Phase, Tiles, arithmetic, digits, lanes_of, tile_sizes
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


def pitch_of(cpu: Processor, x: Value) -> int:
    """Channels in whole vectors."""
    lanes = lanes_of(cpu, x.dtype)
    return -(-x.shape[-1] // lanes) * lanes


class Boxes:
    """Tiles of an operand (*images, height, width, channels), and how a box of them is brought to points.

    They belong to the places of the output, whose size is `places`; zeros `low` are before the operand. A box has at
    most so many tiles.
    """

    def __init__(
        self, cpu: Processor, method: Method, x: Value, places: Shape, low: Sequence[int], seen: Seen, most: int
    ) -> None:
        self.method, self.x, self.seen, self.lanes = method, x, seen, lanes_of(cpu, x.dtype)
        self.scalar, self.dtype = computed(x.dtype), arithmetic(x.dtype)
        *self.images, down, across, inner = x.shape
        self.pitch = pitch_of(cpu, x)
        self.axes = [
            Axis(size, -(-count // step), (Phase(side, 0, before, 0),), step)
            for size, count, before, step, side in zip((down, across), places, low, seen.steps, seen.sides, strict=True)
        ]
        self.across = [a.count for a in self.axes]
        self.count = math.prod(self.images) * math.prod(self.across)

        def fits(sizes: list[int]) -> bool:
            patch = math.prod(Tiles(self.axes, sizes).extents()) * self.pitch * self.dtype.itemsize
            return patch <= PATCH and math.prod(sizes) <= most

        self.tiles = Tiles(self.axes, tile_sizes(self.axes, [1, 1], 1, fits))
        self.sizes = [*self.images, *self.tiles.counts]
        self.chunks = math.prod(self.sizes)
        self.patch = Patch(cpu, x, self.tiles, inner, self.pitch, self.chunks)
        self.scratch = [self.patch.scratch] if self.patch.scratch else []

    def describe(self, description: Description) -> str:
        own = (self.seen.made.__name__, self.method.sizes, self.x.shape, self.axes, self.tiles.sizes)
        return f"{own} {description.value(self.x)}"

    def of(self, r: Routine) -> tuple[list[str], list[str], list[str]]:
        """The image of a chunk, the first tile of its box along both axes, and how many there are."""
        *image, first, second = digits(r, r.chunk, self.sizes)
        return image, *self.tiles.of(r, [first, second])

    def transform(
        self,
        r: Routine,
        image: list[str],
        firsts: list[str],
        counts: list[str],
        target: Callable[[str, str], str],
        apart: int,
    ) -> None:
        """Bring the tiles of a box to points, which are so far apart in memory; `target` tells where a tile begins."""
        self.patch.allocate(r)
        pointer = self.patch.fill(r, image, firsts, "0", [str(a.phases[0].low) for a in self.axes])
        between = [n * step for n, step in zip(self.seen.steps, self.patch.steps, strict=True)]

        def tile(i: str, k: str) -> None:
            source, there = r.at(pointer, self.scalar, between, [i, k]), target(i, k)
            r.vectors(self.pitch, self.lanes, lambda c, *_: self._tile(r, source, there, c, apart))

        r.b.loop(counts[0], 1, lambda i: r.b.loop(counts[1], 1, lambda k: tile(i, k)))

    def _tile(self, r: Routine, source: str, target: str, channel: str, apart: int) -> None:
        kind, item, (rows, columns) = typed(self.scalar, self.lanes), self.dtype.itemsize, self.seen.sides
        source, target = (r.at(at, self.scalar, [1], [channel]) for at in (source, target))
        down, across = self.patch.steps

        def seen(i: int, j: int) -> str:
            return r.b.emit(
                f"load {kind}, ptr {r.at(source, self.scalar, [], [], i * down + j * across)}, align {item}"
            )

        tile = [[seen(i, j) for j in range(columns)] for i in range(rows)]
        for p, vector in enumerate(self.seen.made(Lanes(r.b, self.scalar, self.lanes), tile)):
            place = r.at(target, self.scalar, [], [], p * apart)
            r.store_vector(vector, place, self.scalar, item, self.lanes, self.lanes)


class TransformTiles:
    """All tiles at all points. For products in groups of so many tiles, if there are groups, all points of a tile lie
    together, and there is room for the rest of a group."""

    any_size = True  # see general.py

    def __init__(
        self,
        cpu: Processor,
        method: Method,
        x: Value,
        places: Shape,
        low: Sequence[int],
        seen: Seen,
        group: int | None = None,
    ) -> None:
        self.boxes = boxes = Boxes(cpu, method, x, places, low, seen, max(1, TRANSFORMED // pitch_of(cpu, x)))
        self.chunks = boxes.chunks
        room = pieces(boxes.count, group or 1) * (group or 1)
        if group or isinstance(room, Extent):  # points, then tiles: the number of tiles is in no stride
            self.point, self.tile = boxes.pitch, apart_of(method.places * boxes.pitch, boxes.dtype)
            size = room * self.tile
        else:  # products of whole matrices read faster what lies together
            self.point, self.tile = apart_of(room * boxes.pitch, boxes.dtype), boxes.pitch
            size = method.places * self.point
        self.target = whole(Buffer("arena", size, boxes.dtype), (size,))
        self.views = [*leaves(x), self.target, *boxes.scratch]
        self.reads = [v.buffer for v in leaves(x)]
        self.writes = [v.buffer for v in [self.target, *boxes.scratch]]

    @property
    def matrices(self) -> View:
        """(points, tiles, channels)"""
        shape = (self.boxes.method.places, self.boxes.count, self.boxes.x.shape[-1])
        return View(self.target.buffer, shape, (self.point, self.tile, 1))

    @property
    def work(self) -> Work:
        return f"transform {self.boxes.x.shape}", 0

    def describe(self) -> str:
        description = Description(slots_of(self.views))
        line = f"TransformTiles {self.point} {self.tile} {self.boxes.describe(description)}"
        return "\n".join([line, *description.lines])

    def emit(self, r: Routine) -> None:
        boxes = self.boxes
        image, firsts, counts = boxes.of(r)
        down, across = boxes.across
        steps = [down * across * math.prod(boxes.images[i + 1 :]) for i in range(len(boxes.images))]

        def target(i: str, k: str) -> str:
            number = r.linear([*steps, across, across, 1, 1], [*image, firsts[0], i, firsts[1], k])
            return r.at(r.pointer(self.target), boxes.scalar, [self.tile], [number])

        boxes.transform(r, image, firsts, counts, target, self.point)
