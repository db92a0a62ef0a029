"""Attention of a few queries, as in decoding: keys and values are read once, where they lie.

For more queries tiles of keys are turned, so that vectors run along keys; for a few that would take longer than the
products. Here vectors run along the features: w keys give w sums of products, which are added up into one vector of
scores. Weights times values are sums of rows.

A cache has the heads of a place side by side, and memory is read fastest from one end to the other, with requests some
pages ahead. So a chunk takes an equal share of the keys that are seen, one key for all heads after the other, and
`Joined` puts together what chunks found, by the log-sum-exp of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ....primitives.sight import Extras, Options
from ..direct.step import Share, spread_index
from ..labels import Work
from ..processor import Processor
from ..products.blocks import Blocks
from ..products.dots import gathered
from ..products.packing import shuffle
from ..text import functions
from ..text.builder import STORED
from ..text.describe import Description
from ..text.functions.vector import Vector, where
from ..text.routine import Routine, slots_of
from ..tuning import ASKED, FAR_BYTES, FEW_KEYS, FEW_STATES, LONG_READ, MOST_CHUNKS, VALUE_VECTORS
from ..values import Buffer, View
from .scores import Group, Scores
from .tiles import Combine, Tile, Tiles, larger, total

LINE = 64  # bytes


class Sharing(NamedTuple):
    """How the work on a few queries is shared out."""

    parts: int = 1  # chunks that share the keys of a matrix
    heads: int = 1  # matrices that a chunk works on together


def sharing(q: View, k: View, v: View, offsets: View | None) -> Sharing:
    """By the shapes alone: what takes long to read is cut into parts, which hold all heads if these lie together."""
    *lead, t, d = q.shape
    s, e, count = k.shape[-2], v.shape[-1], math.prod(lead)
    microseconds = count * s * (d + e) * k.dtype.itemsize / FAR_BYTES
    if microseconds < LONG_READ:
        return Sharing()
    inside = bool(lead) and lead[-1] > 1 and all(x.strides[len(lead) - 1] < x.strides[-2] for x in (k, v))
    inside = inside and lead[-1] * t * (d + e) * q.dtype.itemsize <= FEW_STATES
    inside = inside and (offsets is None or offsets.strides[-1] == 0)  # all heads see the same keys
    heads = lead[-1] if inside else 1
    wanted = min(max(4, round(microseconds / LONG_READ)), MOST_CHUNKS)
    return Sharing(max(1, min(-(-wanted * heads // count), s // FEW_KEYS)), heads)


class FewQueries(Scores):
    """out = P v and the log-sum-exp of the rows of scores; those of parts of the keys, (..., parts, t), if shared."""

    def __init__(
        self,
        cpu: Processor,
        q: View,
        k: View,
        v: View,
        extras: Extras[View],
        out: View,
        lse: View,
        options: Options,
        shared: Sharing,
    ) -> None:
        super().__init__(cpu, [q, k, v], [out, lse], (q, k, v), extras, options)
        self.out, self.lse, self.shared = out, lse, shared
        self.keys = min(FEW_KEYS, -(-self.s // self.w) * self.w)
        # keys that are worked on together: several queries read each again, from the first cache
        self.beside = 1 if self.t == 1 else 2 if self.t < 4 or self.w < 4 else 4
        read = math.prod(self.lead) * self.s * (self.d + self.e) * k.dtype.itemsize
        outer = self.lead if shared.heads == 1 else self.lead[:-1]
        self.blocks = Blocks((*outer, shared.parts), 1, 1, 1, 1, read / FAR_BYTES)

    @property
    def chunks(self) -> int:
        return self.blocks.chunks

    @property
    def work(self) -> Work:
        return self.label, self.pairs * (self.d + self.e)

    def describe(self) -> tuple[object, ...]:
        return *super().describe(), *self.shared, self.keys

    def emit(self, r: Routine) -> None:
        self.r, self.m = r, Tiles(r, self.q)
        m, rows = self.m, self.shared.heads * self.t
        # of all heads: queries, weights, sums of values, and a vector each for the largest score and the sum of weights
        self.all = [m.tile(rows, columns) for columns in (self.d, self.w**2, self.keys, self.e, self.w, self.w)]
        self.scales = m.tile(1, self.t)

        def matrix(place: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
            *outer, part = place
            for tile, value in zip(self.all[3:], (0.0, -math.inf, 0.0), strict=True):
                m.fill(tile, rows, value)
            self._heads(outer, lambda lead: m.rows(self.q, lead, "0", str(self.t), self.query, self.scale))
            self.enter(outer if self.shared.heads == 1 else [*outer, "0"])
            start, stop = "0", str(min(self.s, self.t) if self.diagonal else self.s)
            if self.placed:
                start, stop = self.tiles_for("0", str(self.t))
                start = "0" if self.keys >= self.s else start
            if self.shared.parts > 1:
                start, stop = self._share(start, stop, part)
            r.b.loop(stop, self.keys, lambda key: self._turn(outer, key, stop), start)
            self._heads(outer, lambda lead: self._results(lead, part))

        self.blocks.each(r, matrix)

    def _share(self, start: str, stop: str, part: str) -> tuple[str, str]:
        """The keys of a chunk, of those from start to stop: whole vectors that follow each other."""
        b, r, size = self.b, self.r, self.w * self.shared.parts
        vectors = b.emit(f"sdiv i64 {self.more(r.linear((1, -1), (stop, start), size - 1), '0')}, {size}")
        first = r.linear((1, self.w), (start, b.emit(f"mul nsw i64 {vectors}, {part}")))
        return first, self.less(stop, r.linear((1, self.w), (first, vectors)))

    def _heads(self, outer: list[str], body: Callable[[list[str]], None]) -> None:
        """body(lead) for every head that the chunk has, with what is kept for it."""

        def one(lead: list[str], first: str) -> None:
            tiles = (Tile(self.m.at(t, first), t.step) for t in self.all)
            self.query, self.parts, self.weights, self.sums, self.tops, self.totals = tiles
            body(lead)

        if self.shared.heads == 1:
            one(outer, "0")
        else:
            self.r.b.loop(self.shared.heads, 1, lambda h: one([*outer, h], self.r.linear((self.t,), (h,))))

    def _results(self, lead: list[str], part: str) -> None:
        place = lead if self.shared.parts == 1 else [*lead, part]
        self.r.each(self.t, lambda i: self._finish(place, i))
        self.m.out(self.sums, self.out, [*place, "0"], str(self.t), self.m.at(self.scales))

    def _turn(self, outer: list[str], key: str, stop: str) -> None:
        """Some keys, for all queries of all heads."""
        r, b = self.r, self.b
        end = seen = self.less(str(self.keys), self.minus(stop, key))
        vectors = self.whole_vectors(r.linear((1,), (seen,), self.w - 1))
        columns = r.linear((self.w,), (vectors,))

        def heads(body: Callable[[Group, str], None], view: View | None = None, first: str = "0") -> None:
            def one(lead: list[str]) -> None:
                if view is not None:
                    self._ask(view, lead, r.linear((1, 1), (key, first)))
                r.each(self.t, lambda i: body(Group(lead, "0", key, end, seen, vectors, str(self.t)), i))

            self._heads(outer, one)

        def scores(column: str) -> None:
            def products(t: str) -> None:
                heads(lambda g, i: self._products(g, i, column, t), self.k, r.linear((1, 1), (column, t)))

            b.loop(self.w, self.beside, products)
            heads(lambda g, i: self._scores(g, i, column))

        b.loop(columns, self.w, scores)
        heads(lambda g, i: self._weigh(g, i, columns))
        if self.shared.heads == 1:
            heads(lambda g, i: self._values(g, i, "0", self.keys))
        else:
            b.loop(seen, self.beside, lambda j: heads(lambda g, i: self._values(g, i, j, self.beside), self.v, j))

    def _products(self, g: Group, i: str, column: str, t: str) -> None:
        """What adds up to the scores of a query and some keys."""
        b, m, w, whole = self.b, self.m, self.w, VALUE_VECTORS * self.w
        lines = [m.line(self.k, g.lead, self.r.linear((1, 1, 1), (g.key, column, t), n)) for n in range(self.beside)]

        def terms(j: str, sums: list[str], n: int) -> list[str]:
            for c in range(0, n, w):
                at = self.r.linear((1,), (j,), c)
                query = m.load(m.at(self.query, i, at))
                pieces = [m.piece(self.k, line, at, min(w, n - c)) for line in lines]
                sums = [b.intrinsic("fmuladd", m.kind, query.name, p, s) for p, s in zip(pieces, sums, strict=True)]
            return sums

        done = self.d - self.d % whole
        sums = ["zeroinitializer"] * self.beside
        if done:
            begun = [(m.kind, s) for s in sums]
            sums = b.loop_with(begun, done, whole, lambda j, sums: terms(j, sums, whole))
        if done < self.d:
            sums = terms(str(done), sums, self.d - done)
        for n, found in enumerate(sums):
            m.store(m.vector(found), self._parts(i, self.r.linear((1,), (t,), n)))

    def _parts(self, i: str, t: str) -> str:
        """Where the lanes of the score of a query and key t are."""
        return self.r.at(self.m.at(self.parts, i), self.m.scalar, (self.w,), (t,))

    def _scores(self, g: Group, i: str, column: str) -> None:
        """The scores of a query and w keys, from their parts."""
        m, r, w = self.m, self.r, self.w
        found = m.vector(gathered(r, [m.load(self._parts(i, str(t))).name for t in range(w)], m.scalar))
        if self.partly or self.slopes is not None or self.s % w:
            found = self._limited(g, i, column, found)
        m.store(found, m.at(self.weights, i, column))

    def _ask(self, view: View, lead: list[str], row: str) -> None:
        """For rows that come later, which go on behind what the other heads read until then."""
        if self.shared.heads == 1:
            return
        step, item = view.strides[-2], view.dtype.itemsize
        line = self.m.line(view, lead, row)
        for n in range(self.beside):
            for c in range(0, view.shape[-1], LINE // item):
                ahead = (-(-ASKED // (step * item)) + n) * step + c
                self.r.prefetch(self.r.at(line, STORED[view.dtype], (), (), ahead), cache=2)

    def _weigh(self, g: Group, i: str, columns: str) -> None:
        """The weights of a query, relative to its largest score so far, as its sums of values are then."""
        b, m = self.b, self.m

        def largest(column: str, tops: list[str]) -> list[str]:
            return [larger(m.vector(tops[0]), m.load(m.at(self.weights, i, column))).name]

        tops, totals = m.at(self.tops, i), m.at(self.totals, i)
        old = m.load(tops)
        top = self._folded(m.vector(b.loop_with([(m.kind, old.name)], columns, self.w, largest)[0]), larger)
        base = where(top.equals(-math.inf), 0.0, top)  # exp(-inf - 0) is 0
        shrink = m.vector(functions.exp_flushed(b, [(old - base).name], m.scalar, self.w))

        def weigh(column: str, sums: list[str]) -> list[str]:
            place = m.at(self.weights, i, column)
            weight = m.vector(functions.exp_flushed(b, [(m.load(place) - base).name], m.scalar, self.w))
            found = m.vector(sums[0]) + weight
            if self.mask is not None:
                nothing = self._limited(g, i, column, m.number(0.0)).equals(-math.inf)
                weight = where(nothing, -0.0, weight)
            m.store(weight, place)
            return [found.name]

        sums = b.loop_with([(m.kind, (m.load(totals) * shrink).name)], columns, self.w, weigh)
        m.store(m.vector(sums[0]), totals)
        m.store(top, tops)
        for c in range(0, self.e, self.w):
            cell = m.at(self.sums, i, str(c))
            m.store(m.load(cell) * shrink, cell)

    def _values(self, g: Group, i: str, first: str, count: int) -> None:
        """Add weights times values to the sums; of so many keys those that the query sees, and no others."""
        r, vectors = self.r, -(-self.e // self.w)
        start, stop = self.unseen(i, g.key, g.end) if self.placed else "0", self.seen(i, 1, g.key, g.end)
        start, stop = self.more(start, first), self.less(stop, r.linear((1,), (first,), count))
        for c in range(0, vectors, VALUE_VECTORS):
            self._panel(g, i, start, stop, range(c, min(c + VALUE_VECTORS, vectors)))

    def _panel(self, g: Group, i: str, start: str, stop: str, vectors: range) -> None:
        """The same for some vectors of the sums."""
        b, m, r, w = self.b, self.m, self.r, self.w
        cells = [m.at(self.sums, i, str(c * w)) for c in vectors]
        marks = Tile(m.at(self.weights, i), 0) if self.mask is not None else None

        def one(j: str, sums: list[str]) -> list[str]:
            weight = m.spread(m.at(self.weights, i, j))
            line = m.line(self.v, g.lead, r.linear((1, 1), (g.key, j)))
            pieces = [m.piece(self.v, line, str(c * w), min(w, self.e - c * w)) for c in vectors]
            made = [b.intrinsic("fmuladd", m.kind, weight.name, p, s) for p, s in zip(pieces, sums, strict=True)]
            if marks is None:
                return made
            out = m.marked(r.at(marks.pointer, m.scalar, (1,), (j,)))
            return [
                b.emit(f"select i1 {out}, {m.kind} {before}, {m.kind} {after}")
                for before, after in zip(sums, made, strict=True)
            ]

        begun = [(m.kind, m.load(cell).name) for cell in cells]
        for cell, name in zip(cells, b.loop_with(begun, stop, 1, one, start), strict=True):
            m.store(m.vector(name), cell)

    def _finish(self, lead: list[str], i: str) -> None:
        """What the sums of a query are divided by, and its log-sum-exp."""
        b, m, r = self.b, self.m, self.r
        found = self._folded(m.load(m.at(self.totals, i)), total)
        nothing = found.equals(0.0)
        found = where(nothing, 1.0, found)
        log = m.vector(functions.log(b, [found.name], m.scalar, self.w)) + m.load(m.at(self.tops, i))

        def first(x: Vector) -> str:
            return b.emit(f"extractelement {m.kind} {x.name}, i64 0")

        b.do(f"store {m.scalar} {first(1.0 / found)}, ptr {m.at(self.scales, '0', i)}, align {m.size}")
        if self.shared.parts == 1:  # else a part without keys has no weight
            log = where(nothing, 0.0, log)
        r.store(self.lse, first(log), [*lead, i])

    def _folded(self, x: Vector, combine: Combine) -> Vector:
        """What all lanes come to, in each of them."""
        distance = 1
        while distance < self.w:
            other = shuffle(self.r, x.name, x.name, [t ^ distance for t in range(self.w)], self.m.scalar)
            x, distance = combine(x, self.m.vector(other)), 2 * distance
        return x


class Joined:
    """out and log-sum-exp of all keys, from those of parts: (..., parts, t, e) and (..., parts, t)."""

    def __init__(self, sums: View, logs: View, out: View, lse: View) -> None:
        self.sums, self.logs, self.out, self.lse = sums, logs, out, lse
        self.views = [sums, logs, out, lse]
        self.reads: list[Buffer] = [sums.buffer, logs.buffer]
        self.writes: list[Buffer] = [out.buffer, lse.buffer]
        *self.lead, self.parts, self.t, self.e = sums.shape
        rows = math.prod(self.lead) * self.t
        self.share = Share(rows, rows * self.parts * self.e / 2000)

    @property
    def chunks(self) -> int:
        return self.share.chunks

    @property
    def work(self) -> Work:
        return f"join {self.parts} parts of {self.out.shape}", math.prod(self.sums.shape)

    def describe(self) -> tuple[object, ...]:
        views = [Description(slots_of(self.views)).view(v) for v in self.views]
        return type(self).__name__, *views, *self.sums.shape, self.share.step

    def emit(self, r: Routine) -> None:
        m = Tiles(r, self.sums)
        weights = m.tile(self.parts, m.w)
        low, high = self.share.range(r)
        r.b.loop(high, 1, lambda row: self._row(r, m, weights, spread_index(r, row, [*self.lead, self.t])), low)

    def _row(self, r: Routine, m: Tiles, weights: Tile, index: list[str]) -> None:
        b, (*lead, i) = r.b, index

        def log(part: str) -> Vector:
            return m.vector(b.spread(r.load(self.logs, [*lead, part, i]), m.scalar, m.w))

        def largest(part: str, tops: list[str]) -> list[str]:
            return [larger(m.vector(tops[0]), log(part)).name]

        top = m.vector(b.loop_with([(m.kind, m.number(-math.inf).name)], self.parts, 1, largest)[0])
        base = where(top.equals(-math.inf), 0.0, top)

        def weigh(part: str, sums: list[str]) -> list[str]:
            weight = m.vector(functions.exp_flushed(b, [(log(part) - base).name], m.scalar, m.w))
            m.store(weight, m.at(weights, part))
            return [(m.vector(sums[0]) + weight).name]

        found = m.vector(b.loop_with([(m.kind, "zeroinitializer")], self.parts, 1, weigh)[0])
        nothing = found.equals(0.0)
        found = where(nothing, 1.0, found)
        for column in range(0, self.e, m.w):
            n = min(m.w, self.e - column)

            def add(part: str, sums: list[str], column: int = column, n: int = n) -> list[str]:
                piece = r.load(self.sums, [*lead, part, i, str(column)], m.w, n)
                return [b.intrinsic("fmuladd", m.kind, m.load(m.at(weights, part)).name, piece, sums[0])]

            total_ = m.vector(b.loop_with([(m.kind, "zeroinitializer")], self.parts, 1, add)[0])
            r.store(self.out, (total_ / found).name, [*index, str(column)], m.w, n)
        whole = where(nothing, 0.0, m.vector(functions.log(b, [found.name], m.scalar, m.w)) + base)
        r.store(self.lse, b.emit(f"extractelement {m.kind} {whole.name}, i64 0"), index)
