"""What both directions of attention need: a tile of scores for w queries at a time, and which of them count.

With w the number of elements of a vector, queries come in groups of w and keys in vectors, so that only the last vector
of a group can hold keys that a query does not see: behind the diagonal, or behind the end. Where queries have places of
their own (an offset, groups that share one, a window, see primitives/sight.py), that is looked up for each group, and
tiles are gone through from the first to the last that some of its queries see.

What does not count has the weight 0, but times NaN or infinity that would be NaN. So a factor is looked through when
it is brought to its tile. Only if it is not finite, the weights of what does not count become -0, and products leave
out the terms that are marked so.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ....core import dtypes
from ....primitives.sight import Extras, Options
from ..processor import Processor
from ..text.builder import STORED, Builder, computed, literal, widen
from ..text.describe import Description
from ..text.functions.vector import Vector, absolute, where
from ..text.routine import Routine, slots_of
from ..tuning import CYCLES, FAR_KEYS, SCORE_ROWS, STACK
from ..values import Buffer, View
from .tiles import Tile, Tiles, total

FAR = 1 << 40  # places; an offset that is farther away is as good as this
Part = Callable[[str, str, str, Vector | None], Vector | None]


class Group(NamedTuple):
    """w queries, and the keys of a tile that they see."""

    lead: list[str]
    query: str
    key: str  # the first of the tile
    end: str  # how many keys the tile has
    seen: str  # and how many of them the last query sees
    vectors: str  # that hold them
    rows: str  # how many of the queries there are


class Scores:
    """A step over groups of queries and tiles of keys; scale q k^T, plus the mask or -inf where it is false."""

    def __init__(
        self,
        cpu: Processor,
        reads: list[View],
        writes: list[View],
        qkv: tuple[View, View, View],
        extras: Extras[View],
        options: Options,
    ) -> None:
        self.q, self.k, self.v = qkv
        self.mask, self.offsets, self.slopes = extras
        self.options, self.scale = options, options.scale
        self.diagonal = options.causal and options.simple  # query i sees the keys j <= i
        self.placed = options.ahead is not None and not options.simple  # what it sees is computed from its place
        self.partly = self.mask is not None or options.ahead is not None  # whether some places may not count
        self.views = [*reads, *[view for view in extras if view is not None], *writes]
        self.reads: list[Buffer] = [v.buffer for v in self.views[: len(self.views) - len(writes)]]
        self.writes: list[Buffer] = [v.buffer for v in writes]
        self.lead = self.q.shape[:-2]
        (self.t, self.d), (self.s, self.e) = self.q.shape[-2:], self.v.shape[-2:]
        self.w = cpu.lanes(8 if computed(self.q.dtype) == "double" else 4)
        self.d_vectors, self.e_vectors = str(-(-self.d // self.w)), str(-(-self.e // self.w))
        self.keys = self.keys_in(min(int(FAR_KEYS * cpu.second_cache), STACK // 2))  # in a tile

    def keys_in(self, size: int) -> int:
        """How many keys a tile has that takes no more bytes than that, with values; all tiles have about as many."""
        most, each = 32, (self.d + self.e) * (8 if computed(self.q.dtype) == "double" else 4)
        while most < 256 and 2 * most * each <= size:
            most *= 2
        return -(-self.s // (-(-self.s // most) * self.w)) * self.w

    def describe(self) -> tuple[object, ...]:
        views = [Description(slots_of(self.views)).view(v) for v in self.views]
        given = [view is not None for view in (self.mask, self.offsets, self.slopes)]
        options = self.options._replace(given=None, scale=float(self.scale))
        return (type(self).__name__, *views, *given, *options)

    @property
    def pairs(self) -> int:
        """How many queries and keys meet."""
        return int(math.prod(self.lead)) * self.options.pairs(self.t, self.s)

    @property
    def label(self) -> str:
        told = [", causal"] * self.options.causal
        told += [] if self.options.window is None else [f", window {self.options.window}"]
        return f"attention of {self.q.shape}, {self.k.shape}{''.join(told)}"

    def microseconds(self, products: float) -> float:
        """About how long the step takes: products over the features of keys and of values, so many of each."""
        return self.pairs * products * (self.d + self.e) / (2 * self.w * CYCLES)  # two vectors in a cycle

    # --- in the routine

    @property
    def b(self) -> Builder:
        return self.r.b

    def start(self, r: Routine) -> None:
        self.r, self.m = r, Tiles(r, self.q)
        self.keys_turned = self.m.tile(self.d, self.keys)

    def enter(self, lead: list[str]) -> None:
        """Begin with a matrix."""
        self.offset = "0"
        if self.offsets is not None:
            found = self.b.intrinsic("smin", "i64", self.r.load(self.offsets, lead), str(FAR))
            self.offset = self.b.intrinsic("smax", "i64", found, str(-FAR))

    def less(self, x: str, y: str) -> str:
        return y if x == y else self.b.intrinsic("smin", "i64", x, y)

    def more(self, x: str, y: str) -> str:
        return y if x == y else self.b.intrinsic("smax", "i64", x, y)

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
        if self.diagonal:
            return self.less(end, self.r.linear((1, -1), (query, first_key), count))
        if not self.placed:
            return end
        ahead, last = self.options.ahead, self.r.linear((1,), (query,), count - 1)
        assert ahead is not None
        found = self.r.linear((1, -1), (self.place(last), first_key), ahead)
        return self.more(self.less(found, end), "0")

    def unseen(self, query: str, first_key: str, end: str) -> str:
        """How many keys of the tile, the first ones, lie before the window of a query."""
        if self.options.window is None:
            return "0"
        found = self.r.linear((1, -1), (self.place(query), first_key), 1 - self.options.window)
        return self.more(self.less(found, end), "0")

    def place(self, query: str) -> str:
        """Where a query sits."""
        share = self.options.group
        if share > 1:
            query = str(int(query) // share) if query.isdigit() else self.b.emit(f"udiv i64 {query}, {share}")
        return self.r.linear((1, 1), (query, self.offset))

    def tiles_for(self, first: str, last: str) -> tuple[str, str]:
        """The first tile of keys, and the key after the last, that queries see."""
        low = self.unseen(first, "0", str(self.s))
        start = low if low == "0" else self.minus(low, self.b.emit(f"urem i64 {low}, {self.keys}"))
        return start, self.seen(last, 0, "0", str(self.s))

    def queries_for(self, first: str, last: str, key: str, end: str, step: int) -> tuple[str, str]:
        """Those of the queries, whole steps of them, that see some keys of a tile."""
        ahead, window, share = self.options.ahead, self.options.window, self.options.group
        assert ahead is not None
        start = self.r.linear((share, -share), (key, self.offset), share * (1 - ahead))
        start = self.more(first, self.b.emit(f"and i64 {start}, {-step}"))
        if window is None:
            return start, last
        behind = self.r.linear((share, share, -share), (key, end, self.offset), share * (window - 1))
        return start, self.less(last, behind)

    def group(self, lead: list[str], query: str, key: str, end: str, seen: str = "") -> Group:
        """`seen`: of how many keys there are to be scores, unless it is those that the last query sees."""
        seen = seen or self.seen(query, self.w, key, end)
        vectors = self.whole_vectors(self.r.linear((1,), (seen,), self.w - 1))
        return Group(lead, query, key, end, seen, vectors, self.rows(query))

    def rows(self, query: str) -> str:
        """How many of w queries there are."""
        return str(self.w) if self.t % self.w == 0 else self.less(self.minus(str(self.t), query), str(self.w))

    def whole_vectors(self, keys: str) -> str:
        """How many whole vectors of so many keys."""
        if keys.isdigit():
            return str(int(keys) // self.w)
        return self.b.emit(f"lshr i64 {keys}, {self.w.bit_length() - 1}")

    def scores(self, group: Group, query: Tile, into: Tile, last: str = "") -> None:
        """The scores of a group, -inf where they do not count.

        `query` holds the group's queries, of which there may be nothing behind the last; they or the keys are scaled.
        """
        self.m.multiply(query, self.keys_turned, into, group.rows, group.vectors, str(self.d), last=last)
        if not self.partly and self.slopes is None and self.s % self.w == 0:
            return

        def limit(i: str, column: str, place: str) -> None:
            self.m.store(self._limited(group, i, column, self.m.load(place)), place)

        self.each(into, group.vectors, limit, self._first_limited(group))

    def _first_limited(self, group: Group) -> str:
        """Without a mask only the last vector holds keys that are not seen, or those from the first query on."""
        if self.mask is not None or self.slopes is not None:
            return "0"
        if not self.placed:
            return self.r.linear((1,), (group.vectors,), -1)
        first = self.whole_vectors(self.seen(group.query, 1, group.key, group.end))
        before = self.unseen(self.r.linear((1,), (group.query,), self.w - 1), group.key, group.end)
        if before == "0":
            return first
        return self.b.emit(f"select i1 {self.b.emit(f'icmp sgt i64 {before}, 0')}, i64 0, i64 {first}")

    def _limited(self, group: Group, i: str, column: str, scores: Vector) -> Vector:
        """A vector of scores of query i of a group with the mask, and with -inf where they do not count."""
        b, r, w = self.b, self.r, self.w
        query = r.linear((1, 1), (group.query, i))
        seen = self.m.first(self.minus(self.seen(query, 1, group.key, group.end), column))
        before = self.unseen(query, group.key, group.end)
        if before != "0":
            seen = seen & self.m.first(self.minus(before, column), "sge")
        if self.slopes is not None:
            slope = r.load(self.slopes, [*group.lead, self.less(query, str(self.t - 1))])
            scores = scores + self.distance(group, i, column) * scores.like(b.spread(slope, self.m.scalar, w))
        if self.mask is not None:
            index = [*group.lead, self.less(query, str(self.t - 1)), r.linear((1, 1), (group.key, column))]
            scores = self._masked(scores, index, seen)
        return where(seen, scores, -math.inf)

    def distance(self, group: Group, i: str, column: str) -> Vector:
        """-|place - j| for a vector of keys j."""
        m, query = self.m, self.r.linear((1, 1), (group.query, i))
        first = self.r.linear((1, 1, -1), (group.key, column, self.place(query)))
        start = self.b.emit(f"sitofp i64 {first} to {m.scalar}")
        steps = "<" + ", ".join(f"{m.scalar} {literal(float(t), m.scalar)}" for t in range(self.w)) + ">"
        return -absolute(m.vector(self.b.spread(start, m.scalar, self.w)) + m.vector(steps))

    def mark(self, group: Group, *tiles: Tile) -> None:
        """-0 for what does not count, in tiles that lie as the group's scores do."""
        m = self.m

        def cut(i: str, column: str, place: str) -> None:
            nothing = self._limited(group, i, column, m.number(0.0)).equals(-math.inf)
            for pointer in [place, *[m.at(tile, i, column) for tile in tiles[1:]]]:
                m.store(where(nothing, -0.0, m.load(pointer)), pointer)

        self.each(tiles[0], group.vectors, cut, self._first_limited(group))

    def unfinite(self, tile: Tile, rows: str, vectors: str) -> str:
        """Whether the first rows of a factor hold what is not finite; "" if that does not matter."""
        return self.m.unfinite(tile, rows, int(vectors)) if self.partly else ""

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

    def each(self, tile: Tile, vectors: str, body: Callable[[str, str, str], object], first: str = "0") -> None:
        """body(row, column, place) for vectors of a group's scores, by columns: one loop, whose end is foreseen."""

        def part(i: str, column: str, place: str, _: Vector | None) -> None:
            body(i, column, place)

        self._each(tile, vectors, part, first, [])

    def each_finite(self, tile: Tile, vectors: str, body: Callable[[str, str, str], Vector]) -> Vector:
        """The same, and a sum that is NaN where one of the vectors that the body gives is not finite."""

        def part(i: str, column: str, place: str, found: Vector | None) -> Vector:
            assert found is not None
            return self.m.nought(body(i, column, place), found)

        return functools.reduce(total, self._each(tile, vectors, part, "0", [self.m.number(0.0)] * SCORE_ROWS))

    def _each(self, tile: Tile, vectors: str, body: Part, first: str, sums: list[Vector]) -> list[Vector]:
        """With sums that the body goes on with, one for each of the rows that are worked on together, or none."""
        b, r, w, m = self.b, self.r, self.w, self.m
        shift = w.bit_length() - 1

        def some(at: str, names: list[str]) -> list[str]:
            i, column = b.emit(f"and i64 {at}, {w - 1}"), b.emit(f"and i64 {at}, {-w}")
            made = []
            for a in range(SCORE_ROWS):
                place = r.at(tile.pointer, m.scalar, (tile.step, 1), (i, column), a * tile.step)
                sum_ = body(r.linear((1,), (i,), a), column, place, m.vector(names[a]) if names else None)
                made += [sum_.name] if sum_ is not None else []
            return made

        ends = [str(int(x) << shift) if x.isdigit() else b.emit(f"shl i64 {x}, {shift}") for x in (vectors, first)]
        found = b.loop_with([(m.kind, s.name) for s in sums], ends[0], SCORE_ROWS, some, ends[1])
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
