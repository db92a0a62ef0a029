"""What both directions of attention need: a tile of scores for w queries at a time, and which of them count.

With w the number of elements of a vector, queries come in groups of w and keys in vectors, so that only the last vector
of a group can hold keys that a query does not see: behind the diagonal, or behind the end.

What does not count has the weight 0, but times NaN or infinity that would be NaN. So a factor is looked through when
it is brought to its tile. Only if it is not finite, the weights of what does not count become -0, and products leave
out the terms that are marked so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import dtypes
from ..machine import machine
from ..text.builder import STORED, Builder, computed, widen
from ..text.describe import Description
from ..text.functions.vector import Vector, where
from ..text.routine import Routine, slots_of
from ..values import Buffer, View
from .tiles import Tile, Tiles

LARGEST = 1024  # features of keys and values together; tiles of more leave too little of the caches
NEAR = 1 << 15  # bytes of keys and values that are worked on together
ROWS = 2  # of scores that are worked on together


Part = Callable[[str, str, str, Vector | None], Vector | None]


class Group(NamedTuple):
    """w queries, and the keys of a tile that they see."""

    lead: list[str]
    query: str
    key: str  # the first of the tile
    end: str  # how many keys the tile has
    seen: str  # and how many of them the last query sees
    vectors: str  # that hold them


class Scores:
    """A step over groups of queries and tiles of keys; scale q k^T, plus the mask or -inf where it is false."""

    def __init__(
        self,
        reads: list[View],
        writes: list[View],
        qkv: tuple[View, View, View],
        mask: View | None,
        causal: bool,
        scale: float,
    ) -> None:
        self.q, self.k, self.v = qkv
        self.mask, self.causal, self.scale = mask, causal, scale
        self.partly = mask is not None or causal  # whether some places may not count
        self.views = [*reads, *([] if mask is None else [mask]), *writes]
        self.reads: list[Buffer] = [v.buffer for v in self.views[: len(self.views) - len(writes)]]
        self.writes: list[Buffer] = [v.buffer for v in writes]
        self.lead = self.q.shape[:-2]
        (self.t, self.d), (self.s, self.e) = self.q.shape[-2:], self.v.shape[-2:]
        size = 8 if computed(self.q.dtype) == "double" else 4
        self.w = machine().vector_bytes // size
        self.d_vectors, self.e_vectors = str(-(-self.d // self.w)), str(-(-self.e // self.w))
        most = 32
        while most < 256 and 2 * most * (self.d + self.e) * size <= NEAR:
            most *= 2
        self.keys = min(most, -(-self.s // self.w) * self.w)  # in a tile

    def describe(self) -> tuple[Any, ...]:
        views = [Description(slots_of(self.views)).view(v) for v in self.views]
        return (type(self).__name__, *views, self.mask is not None, self.causal, float(self.scale))

    @property
    def pairs(self) -> int:
        """How many queries and keys meet."""
        both = min(self.t, self.s)
        pairs = both * (both + 1) // 2 + (self.t - both) * self.s if self.causal else self.t * self.s
        return math.prod(self.lead) * pairs

    @property
    def label(self) -> str:
        return f"attention of {self.q.shape}, {self.k.shape}{', causal' if self.causal else ''}"

    def microseconds(self, products: int) -> float:
        """About how long the step takes: products over the features of keys and of values, so many of each."""
        return self.pairs * products * (self.d + self.e) / (2200 * self.w)

    # --- in the routine

    @property
    def b(self) -> Builder:
        return self.r.b

    def start(self, r: Routine) -> None:
        self.r, self.m = r, Tiles(r, self.q)
        self.keys_turned = self.m.tile(self.d, self.keys)

    def less(self, x: str, y: str) -> str:
        return y if x == y else self.b.intrinsic("smin", "i64", x, y)

    def minus(self, x: str, y: str) -> str:
        return self.r.linear((1, -1), (x, y))

    def end(self, first_key: str) -> str:
        """How many keys there are in the tile that begins with a key."""
        if self.keys >= self.s:
            return str(self.s)
        if self.s % self.keys == 0:
            return str(self.keys)
        return self.less(self.minus(str(self.s), first_key), str(self.keys))

    def seen(self, query: str, count: int, first_key: str, end: str) -> str:
        """How many keys of the tile the last of `count` queries sees."""
        if not self.causal:
            return end
        return self.less(end, self.r.linear((1, -1), (query, first_key), count))

    def group(self, lead: list[str], query: str, key: str, end: str) -> Group:
        seen = self.seen(query, self.w, key, end)
        return Group(lead, query, key, end, seen, self.whole_vectors(self.r.linear((1,), (seen,), self.w - 1)))

    def whole_vectors(self, keys: str) -> str:
        """How many whole vectors of so many keys."""
        if keys.isdigit():
            return str(int(keys) // self.w)
        return self.b.emit(f"lshr i64 {keys}, {self.w.bit_length() - 1}")

    def scores(self, group: Group, query: Tile, into: Tile) -> None:
        """The scores of a group, -inf where they do not count. `query` holds the group's queries, scaled."""
        self.m.multiply(query, self.keys_turned, into, str(self.w), group.vectors, str(self.d))
        if self.mask is None and not self.causal and self.s % self.w == 0:
            return

        def limit(i: str, column: str, place: str) -> None:
            self.m.store(self._limited(group, i, column, self.m.load(place)), place)

        self.each(into, group.vectors, limit, self._first_limited(group))

    def _first_limited(self, group: Group) -> str:
        """Without a mask only the last vector holds keys that are not seen."""
        return "0" if self.mask is not None else self.r.linear((1,), (group.vectors,), -1)

    def _limited(self, group: Group, i: str, column: str, scores: Vector) -> Vector:
        """A vector of scores of query i of a group with the mask, and with -inf where they do not count."""
        b, r, w = self.b, self.r, self.w
        lanes = Vector(b, "<" + ", ".join(f"i32 {t}" for t in range(w)) + ">", "i32", w)
        query = r.linear((1, 1), (group.query, i))
        left = b.emit(f"trunc i64 {self.minus(self.seen(query, 1, group.key, group.end), column)} to i32")
        seen = lanes.compare("slt", lanes.like(b.spread(left, "i32", w)))
        if self.mask is not None:
            index = [*group.lead, self.less(query, str(self.t - 1)), r.linear((1, 1), (group.key, column))]
            scores = self._masked(scores, index, seen)
        return where(seen, scores, -math.inf)

    def mark(self, group: Group, *tiles: Tile) -> None:
        """-0 for what does not count, in tiles that lie as the group's scores do."""
        m = self.m

        def cut(i: str, column: str, place: str) -> None:
            nothing = self._limited(group, i, column, m.number(0.0)).equals(-math.inf)
            for pointer in [place, *[m.at(tile, i, column) for tile in tiles[1:]]]:
                m.store(where(nothing, -0.0, m.load(pointer)), pointer)

        self.each(tiles[0], group.vectors, cut, self._first_limited(group))

    def unfinite(self, tile: Tile, rows: str) -> str:
        """Whether the first rows of a factor hold what is not finite; "" if that does not matter."""
        return self.m.unfinite(tile, rows) if self.partly else ""

    def product(
        self, unfinite: str, left: Tile, right: Tile, into: Tile, sizes: tuple[str, str, str, str], marks: Tile,
        **options: Any,
    ) -> None:  # fmt: skip
        """`Tiles.multiply`, but if the right factor is not finite, terms that are marked do not count.

        `sizes`: rows, vectors, terms and lag.
        """

        def careful() -> None:
            self.m.multiply(left, right, into, *sizes, marks=marks, **options)

        def usual() -> None:
            self.m.multiply(left, right, into, *sizes, **options)

        if unfinite:
            self.b.when(unfinite, careful, usual)
        else:
            usual()

    def each(self, tile: Tile, vectors: str, body: Callable[[str, str, str], Any], first: str = "0") -> None:
        """body(row, column, place) for vectors of a group's scores, by columns: one loop, whose end is foreseen."""

        def part(i: str, column: str, place: str, _: Vector | None) -> None:
            body(i, column, place)

        self._each(tile, vectors, part, first, [])

    def each_finite(self, tile: Tile, vectors: str, body: Callable[[str, str, str], Vector]) -> str:
        """The same, and whether one of the vectors that the body gives is not finite."""

        def part(i: str, column: str, place: str, found: Vector | None) -> Vector:
            assert found is not None
            return self.m.nought(body(i, column, place), found)

        return self.m.spoiled(self._each(tile, vectors, part, "0", [self.m.number(0.0)] * ROWS))

    def _each(self, tile: Tile, vectors: str, body: Part, first: str, sums: list[Vector]) -> list[Vector]:
        """With sums that the body goes on with, one for each of the rows that are worked on together, or none."""
        b, r, w, m = self.b, self.r, self.w, self.m
        shift = w.bit_length() - 1

        def some(at: str, names: list[str]) -> list[str]:
            i, column = b.emit(f"and i64 {at}, {w - 1}"), b.emit(f"and i64 {at}, {-w}")
            made = []
            for a in range(ROWS):
                place = r.at(tile.pointer, m.scalar, (tile.step, 1), (i, column), a * tile.step)
                sum_ = body(r.linear((1,), (i,), a), column, place, m.vector(names[a]) if names else None)
                made += [sum_.name] if sum_ is not None else []
            return made

        ends = [str(int(x) << shift) if x.isdigit() else b.emit(f"shl i64 {x}, {shift}") for x in (vectors, first)]
        found = b.loop_with([(m.kind, s.name) for s in sums], ends[0], ROWS, some, ends[1])
        return [m.vector(name) for name in found]

    def _masked(self, scores: Vector, index: list[str], seen: Vector) -> Vector:
        """Scores plus a floating mask, or -inf where a bool one is false; where nothing is seen nothing is read."""
        r, mask = self.r, self.mask
        assert mask is not None
        if mask.strides[-1] == 0:
            found = r.load(mask, index, self.w)
        else:
            stored = STORED[mask.dtype]
            pointer = r.at(r.pointer(mask), stored, mask.strides, index)
            found = r.load_lanes(pointer, stored, mask.dtype.itemsize, self.w, seen.name)
            found = widen(r.b, found, mask.dtype, self.w)
        if mask.dtype == dtypes.bool_:
            return where(scores.like(found, "i1"), scores, -math.inf)
        added = scores.like(found)
        return where(added.equals(-math.inf), -math.inf, scores + added)
