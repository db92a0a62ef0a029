"""Attention of a few queries, as in decoding: keys and values are read once, where they lie.

For more queries tiles of keys are turned, so that vectors run along keys; for a few that would take longer than the
products. Here vectors run along the features: w keys at a time give w sums of products, which are added up into one
vector of scores. Weights times values are sums of rows, in registers.
"""

from __future__ import annotations

import math

from ....primitives.sight import Extras, Options
from ..labels import Work
from ..processor import Processor
from ..products.blocks import Blocks
from ..products.dots import gathered
from ..products.packing import shuffle
from ..text import functions
from ..text.functions.vector import Vector, where
from ..text.routine import Routine
from ..tuning import FEW_KEYS, VALUE_VECTORS
from ..values import View
from .scores import Group, Scores
from .tiles import Combine, Tile, Tiles, larger, total


class FewQueries(Scores):
    """out = P v and the log-sum-exp of the rows of scores."""

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
    ) -> None:
        super().__init__(cpu, [q, k, v], [out, lse], (q, k, v), extras, options)
        self.out, self.lse = out, lse
        self.keys = min(FEW_KEYS, -(-self.s // self.w) * self.w)
        read = math.prod(self.lead) * self.s * (self.d + self.e) * k.dtype.itemsize
        self.blocks = Blocks(self.lead, 1, 1, 1, 1, read / 10_000)

    @property
    def chunks(self) -> int:
        return self.blocks.chunks

    @property
    def work(self) -> Work:
        return self.label, self.pairs * (self.d + self.e)

    def emit(self, r: Routine) -> None:
        self.r, self.m = r, Tiles(r, self.q)
        m = self.m
        self.query, self.weights = m.tile(self.t, self.d), m.tile(self.t, self.keys)
        self.sums = m.tile(self.t, self.e)
        self.tops, self.totals = m.tile(self.t, self.w), m.tile(self.t, self.w)  # a vector for each query
        self.scales = m.tile(1, self.t)

        def matrix(lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
            self.enter(lead)
            m.rows(self.q, lead, "0", str(self.t), self.query, self.scale)
            m.fill(self.sums, self.t)
            m.fill(self.totals, self.t)
            m.fill(self.tops, self.t, -math.inf)
            start, stop = "0", str(min(self.s, self.t) if self.diagonal else self.s)
            if self.placed:
                start, stop = self.tiles_for("0", str(self.t))
                start = "0" if self.keys >= self.s else start
            r.b.loop(stop, self.keys, lambda key: self._keys(lead, key, stop), start)
            r.each(self.t, lambda i: self._finish(lead, i))
            m.out(self.sums, self.out, [*lead, "0"], str(self.t), m.at(self.scales))

        self.blocks.each(r, matrix)

    def _keys(self, lead: list[str], key: str, stop: str) -> None:
        """Some keys, for all queries."""
        r, end = self.r, self.end(key)
        seen = self.less(end, self.minus(stop, key))
        vectors = self.whole_vectors(r.linear((1,), (seen,), self.w - 1))
        g = Group(lead, "0", key, end, seen, vectors)
        columns = r.linear((self.w,), (vectors,))
        r.b.loop(columns, self.w, lambda column: self._scores(g, column))
        r.each(self.t, lambda i: self._values(g, i, columns))

    def _scores(self, g: Group, column: str) -> None:
        """The scores of w keys."""
        b, m, r, w = self.b, self.m, self.r, self.w
        first = r.linear((1, 1), (g.key, column))
        lines = [m.line(self.k, g.lead, r.linear((1,), (first,), t)) for t in range(w)]

        def one(i: str) -> None:
            def terms(j: str, sums: list[str], n: int) -> list[str]:
                query = m.load(m.at(self.query, i, j))
                pieces = [m.piece(self.k, line, j, n) for line in lines]
                return [b.intrinsic("fmuladd", m.kind, query.name, p, s) for p, s in zip(pieces, sums, strict=True)]

            whole = self.d - self.d % w
            sums = b.loop_with([(m.kind, "zeroinitializer")] * w, whole, w, lambda j, sums: terms(j, sums, w))
            if whole < self.d:
                sums = terms(str(whole), sums, self.d - whole)
            found = m.vector(gathered(r, list(sums), m.scalar))
            if self.partly or self.slopes is not None or self.s % w:
                found = self._limited(g, i, column, found)
            m.store(found, m.at(self.weights, i, column))

        r.each(self.t, one)

    def _values(self, g: Group, i: str, columns: str) -> None:
        """The weights of a query, relative to its largest score so far, and its sums of values."""
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
        vectors = -(-self.e // self.w)
        for c in range(0, vectors, VALUE_VECTORS):
            self._panel(g, i, shrink, range(c, min(c + VALUE_VECTORS, vectors)))

    def _panel(self, g: Group, i: str, shrink: Vector, vectors: range) -> None:
        """Add weights times values to some vectors of the sums; of the keys that the query sees, and no others."""
        b, m, r, w = self.b, self.m, self.r, self.w
        cells = [m.at(self.sums, i, str(c * w)) for c in vectors]
        start = self.unseen(i, g.key, g.end) if self.placed else "0"
        stop = self.seen(i, 1, g.key, g.end)
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

        begun = [(m.kind, (m.load(cell) * shrink).name) for cell in cells]
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
        r.store(self.lse, first(where(nothing, 0.0, log)), [*lead, i])

    def _folded(self, x: Vector, combine: Combine) -> Vector:
        """What all lanes come to, in each of them."""
        distance = 1
        while distance < self.w:
            other = shuffle(self.r, x.name, x.name, [t ^ distance for t in range(self.w)], self.m.scalar)
            x, distance = combine(x, self.m.vector(other)), 2 * distance
        return x
