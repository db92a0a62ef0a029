"""What both directions of attention need: a tile of scores for w queries at a time, and which of them count.

With w the number of elements of a vector, queries come in groups of w and keys in vectors, so that only the last vector
of a group can hold keys that a query does not see: behind the diagonal, or behind the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import dtypes
from .builder import STORED, Builder, computed, widen
from .describe import Description
from .functions.vector import Vector, where
from .machine import machine
from .routine import Routine, slots_of
from .tiles import Tile, Tiles
from .values import Buffer, View

LARGEST = 1024  # features of keys and values together; tiles of more leave too little of the caches
NEAR = 1 << 15  # bytes of keys and values that are worked on together

Visit = Callable[[Vector, str, list[Vector], Vector | None], list[Vector]]
# scores, their column, the state so far, which lanes count (None: all) -> the state


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
        self, reads: list[View], writes: list[View], qkv: tuple[View, View, View], mask: View | None, causal: bool, scale: float
    ) -> None:
        self.q, self.k, self.v = qkv
        self.mask, self.causal, self.scale = mask, causal, scale
        self.views = [*reads, *([] if mask is None else [mask]), *writes]
        self.reads: list[Buffer] = [v.buffer for v in self.views[: len(self.views) - len(writes)]]
        self.writes: list[Buffer] = [v.buffer for v in writes]
        self.lead = self.q.shape[:-2]
        (self.t, self.d), (self.s, self.e) = self.q.shape[-2:], self.v.shape[-2:]
        size = 8 if computed(self.q.dtype) == "double" else 4
        self.w = machine().vector_bytes // size
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
        return Group(lead, query, key, end, seen, self.halved(self.r.linear((1,), (seen,), self.w - 1)))

    def halved(self, keys: str) -> str:
        """How many whole vectors of so many keys."""
        if keys.isdigit():
            return str(int(keys) // self.w)
        return self.b.emit(f"lshr i64 {keys}, {self.w.bit_length() - 1}")

    def multiply(self, left: Tile, terms: int, right: Tile, vectors: str, into: Tile) -> None:
        """into = left right, for one group of queries: a vector of keys at a time, one register for each query."""
        m, r = self.m, self.r

        def body(names: list[str]) -> None:
            first, second, target, vectors = names

            def panel(c: str) -> None:
                column = r.linear((self.w,), (c,))
                y, z = (r.at(x, m.scalar, (1,), (column,)) for x in (second, target))
                for i, value in enumerate(m.product(first, (left.step, 1), y, right.step, self.w, 1, str(terms))):
                    m.store(value, r.at(z, m.scalar, (), (), i * into.step))

            self.b.loop(vectors, 1, panel)

        args = [("ptr", tile.pointer) for tile in (left, right, into)] + [("i64", vectors)]
        r.part(("scores", terms, left.step, right.step, into.step), args, body)

    def along(self, group: Group, i: str, row: str, state: list[Vector], visit: Visit) -> list[Vector]:
        """The state after all vectors of scores of the group's query i, which lie at `row`."""
        b, r, m = self.b, self.r, self.m
        query = r.linear((1, 1), (group.query, i))
        seen = self.seen(query, 1, group.key, group.end)
        place = query if self.mask is None else self.less(query, str(self.t - 1))

        def part(c: str, names: list[str], lanes: Vector | None) -> list[str]:
            column = r.linear((self.w,), (c,))
            scores = m.load(r.at(row, m.scalar, (1,), (column,)))
            if self.mask is not None:
                scores = self._masked(scores, [*group.lead, place, r.linear((1, 1), (group.key, column))], lanes)
            return [s.name for s in visit(scores, column, [m.vector(n) for n in names], lanes)]

        def cut(c: str, names: list[str]) -> list[str]:
            left = b.emit(f"trunc i64 {self.minus(seen, r.linear((self.w,), (c,)))} to i32")
            lanes = Vector(b, "<" + ", ".join(f"i32 {t}" for t in range(self.w)) + ">", "i32", self.w)
            return part(c, names, lanes.compare("slt", lanes.like(b.spread(left, "i32", self.w))))

        full = self.halved(seen)
        names = b.loop_with([(m.kind, s.name) for s in state], full, 1, lambda c, names: part(c, names, None))
        if full != group.vectors:
            names = b.loop_with([(m.kind, n) for n in names], group.vectors, 1, cut, full)
        return [m.vector(n) for n in names]

    def _masked(self, scores: Vector, index: list[str], lanes: Vector | None) -> Vector:
        """Scores plus a floating mask, or -inf where a bool one is false; nothing is read in lanes that do not count."""
        r, mask = self.r, self.mask
        assert mask is not None
        if lanes is None or mask.strides[-1] == 0:
            found = r.load(mask, index, self.w)
        else:
            stored = STORED[mask.dtype]
            pointer = r.at(r.pointer(mask), stored, mask.strides, index)
            found = widen(
                r.b, r.load_lanes(pointer, stored, mask.dtype.itemsize, self.w, lanes.name), mask.dtype, self.w
            )
        if mask.dtype == dtypes.bool_:
            return where(scores.like(found, "i1"), scores, -math.inf)
        return scores + scores.like(found)
