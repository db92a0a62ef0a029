"""The adjoints of attention's arguments, from the log-sum-exps that were kept. Formulas in primitives/attention.py.

For a tile of keys and a few groups of queries, the weights P and A = P * (g v^T + h) are in memory: A k goes to the
adjoint of these queries, A^T q and P^T g are added to those of the keys and values of the tile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ....core import dtypes
from ....primitives.sight import Extras, Options
from ..labels import Work
from ..processor import Processor
from ..products.blocks import Blocks
from ..text import functions
from ..text.builder import literal
from ..text.functions.vector import Vector
from ..text.routine import Routine
from ..tuning import FEW_MATRICES, QUERY_GROUPS, SHORT
from ..values import Buffer, View, whole
from .scores import Group, Scores
from .tiles import Tile, total


class Sources(NamedTuple):
    """What gradients are computed from."""

    g: View
    q: View
    k: View
    v: View
    h: View
    lse: View


def gradient_steps(
    cpu: Processor, sources: Sequence[View], extras: Extras[View], into: Sequence[View], options: Options
) -> list[AttentionGradients]:
    """Steps that compute dq, dk, dv, and the adjoints of slopes if there are some."""
    dq, dk, dv, *tilts = into

    def step(dq: View | None, dkv: tuple[View, View] | None) -> AttentionGradients:
        mine = tilts[0] if tilts and dq is not None else None
        return AttentionGradients(cpu, Sources(*sources), extras, dq, dkv, mine, options)

    together = step(dq, (dk, dv))
    if math.prod(together.lead) >= FEW_MATRICES or together.microseconds(2.5) < SHORT:
        return [together]
    return [step(dq, None), step(None, (dk, dv))]


class AttentionGradients(Scores):
    """dq = scale A k, dk = scale A^T q and dv = P^T g, or the first or the last two of them.

    With dq also the adjoints of slopes, the sums of the rows of A times distances.
    """

    any_size = True  # see general.py

    def __init__(
        self,
        cpu: Processor,
        sources: Sources,
        extras: Extras[View],
        dq: View | None,
        dkv: tuple[View, View] | None,
        tilts: View | None,
        options: Options,
    ) -> None:
        targets = [target for target in (dq, *(dkv or ()), tilts) if target is not None]
        super().__init__(cpu, list(sources), targets, sources[1:4], extras, options)
        self.g, self.h, self.lse, self.dq, self.dkv = sources.g, sources.h, sources.lse, dq, dkv
        self.tilts = tilts
        self.height = self.w * min(QUERY_GROUPS, -(-self.t // self.w))
        self.once = self.keys >= self.s
        if dq is not None and not self.once and dtypes.is_half(dq.dtype):
            # what tiles of keys contribute is summed in float32
            self.sums = whole(Buffer("arena", math.prod(dq.shape), dtypes.float32), dq.shape)
            self.views.append(self.sums)
            self.reads.append(self.sums.buffer)
            self.writes.append(self.sums.buffer)
        elif dq is not None:
            self.sums = dq
        # chunks are groups of whole matrices, or groups of queries, or of keys
        rows, step = (1, 1) if dq and dkv else (self.t, self.height) if dq else (self.s, self.keys)
        self.blocks = Blocks(self.lead, rows, 1, step, 1, self.microseconds(2.5))

    @property
    def chunks(self) -> int:
        return self.blocks.chunks

    @property
    def work(self) -> Work:
        products = self.d + self.e  # the scores and their adjoints
        products += self.d if self.dq is not None else 0
        products += self.d + self.e if self.dkv is not None else 0
        wanted = ", ".join(name for name, target in (("q", self.dq), ("k, v", self.dkv)) if target is not None)
        return f"gradients in {wanted} of {self.label}", self.pairs * products

    def describe(self) -> tuple[object, ...]:
        return (*super().describe(), self.dq is not None, self.dkv is not None, self.tilts is not None)

    def emit(self, r: Routine) -> None:
        self.start(r)
        m = self.m
        self.values_turned = m.tile(self.e, self.keys)
        self.query, self.adjoint = m.tile(self.height, self.d), m.tile(self.height, self.e)
        self.weights, self.changes = m.tile(self.height, self.keys), m.tile(self.height, self.keys)
        self.row = m.tile(2, self.height)  # for each query: its log-sum-exp, and h
        self.found = m.tile(1, self.w)  # what is not finite
        if self.tilts is not None:
            self.parts, self.tilt = m.tile(self.w, self.w), m.tile(1, self.height)
        if self.dq is not None:
            self.key_rows, self.into_queries = m.tile(self.keys, self.d), m.tile(self.height, self.d)
        if self.dkv is not None:
            self.into_keys, self.into_values = m.tile(self.keys, self.d), m.tile(self.keys, self.e)

        def rectangle(lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
            self.enter(lead)
            queries, keys = ("0", str(self.t)), ("0", str(self.s))
            if self.dq is None:
                keys = row, row_end
            elif self.dkv is None:
                queries = row, row_end
                keys = ("0", self.less(keys[1], row_end)) if self.diagonal else keys
                keys = self.tiles_for(row, row_end) if self.placed and not self.once else keys
            self._clear(lead, queries)
            if self.once:
                self._tile(lead, queries, "0")
            else:
                r.b.loop(keys[1], self.keys, lambda key: self._tile(lead, queries, key), keys[0])
            if self.dq is not None and self.sums is not self.dq:
                self._rounded(lead, queries)

        self.blocks.each(r, rectangle)

    def _clear(self, lead: list[str], queries: tuple[str, str]) -> None:
        """Zeros where tiles are added: a query may see none of them, and the first that it sees is not known."""
        m, r = self.m, self.r

        def one(i: str) -> None:
            if self.tilts is not None:
                r.store(self.tilts, literal(0.0, m.scalar), [*lead, i])
            if self.dq is not None and self.placed:

                def part(j: str, w: int, n: int) -> None:
                    r.store(self.sums, m.number(0.0).name, [*lead, i, j], w, n)

                r.vectors(self.d, self.w, part)

        if self.tilts is not None or (self.dq is not None and self.placed):
            r.b.loop(queries[1], 1, one, queries[0])

    def _tile(self, lead: list[str], queries: tuple[str, str], key: str) -> None:
        """One tile of keys, for the queries that see some of it."""
        b, m = self.b, self.m
        end = self.end(key)
        self.keys_unfinite = ""
        m.columns(self.k, lead, key, end, self.keys_turned)
        m.columns(self.v, lead, key, end, self.values_turned)
        if self.dq is not None:
            m.rows(self.k, lead, key, end, self.key_rows, self.scale)
            self.keys_unfinite = self.unfinite(self.key_rows, end, self.d_vectors)
        if self.dkv is not None:
            m.fill(self.into_keys, self.keys)
            m.fill(self.into_values, self.keys)
        first, last = queries
        start, stop = b.intrinsic("smax", "i64", first, key) if self.diagonal and not self.once else first, last
        if self.placed:
            start, stop = self.queries_for(first, last, key, end, self.height)
        b.loop(stop, self.height, lambda i: self._queries(lead, i, last, key, end), start)
        if self.dkv is not None:
            for tile, view in zip((self.into_keys, self.into_values), self.dkv, strict=True):
                m.out(tile, view, [*lead, key], end)

    def _queries(self, lead: list[str], query: str, last: str, key: str, end: str) -> None:
        """Some groups of queries."""
        b, m, r = self.b, self.m, self.r
        count = str(self.height)
        if self.t % self.height or self.keys % self.height:
            count = self.less(self.minus(last, query), count)
        m.rows(self.q, lead, query, str(self.height), self.query, self.scale)
        m.rows(self.g, lead, query, str(self.height), self.adjoint)

        def numbers(i: str) -> None:
            place = self.less(r.linear((1, 1), (query, i)), str(self.t - 1))  # the last one is repeated
            for row, view in enumerate((self.lse, self.h)):
                found = r.load(view, [*lead, place])
                b.do(f"store {m.scalar} {found}, ptr {m.at(self.row, str(row), i)}, align {m.size}")

        b.loop(str(self.height), 1, numbers)
        unfinite = [
            "" if self.dkv is None else self.unfinite(self.query, str(self.height), self.d_vectors),
            self.keys_unfinite,
        ]

        seen = self.seen(query, self.height, key, end)
        needed = seen if self.placed else ""  # all groups have as many scores

        def group(i: str, spoiled: list[str]) -> list[str]:
            found = self._group(self.group(lead, r.linear((1, 1), (query, i)), key, end, needed), i, unfinite)
            return [b.emit(f"or i1 {spoiled[0]}, {found}")] if found else []

        carried = [("i1", "false")] if self.partly else []
        spoiled = b.loop_with(carried, count, self.w, group) or [""]
        lag = self.minus(query, key) if self.diagonal else ""
        if self.tilts is not None:
            self._store_tilts(self.tilts, lead, query, count)
        if self.dq is not None:
            sizes = count, self.d_vectors, needed or end, lag
            self.product(self.keys_unfinite, self.changes, self.key_rows, self.into_queries, sizes, marks=self.weights)
            self._store_queries([*lead, query], count, key)
        if self.dkv is not None:
            for flag, left, right, into, vectors in (
                (unfinite[0], self.changes, self.query, self.into_keys, self.d_vectors),
                (spoiled[0], self.weights, self.adjoint, self.into_values, self.e_vectors),
            ):
                sizes = seen, vectors, count, lag
                self.product(flag, left, right, into, sizes, marks=self.weights, turned=True, add=True)

    def _store_queries(self, index: list[str], count: str, key: str) -> None:
        """The first tile of keys begins the sums, the others add to them."""

        def store(add: bool) -> None:
            self.m.out(self.into_queries, self.sums, index, count, add=add)

        if self.placed:
            store(True)
        elif self.once:
            store(False)
        else:
            self.b.when(self.b.emit(f"icmp eq i64 {key}, 0"), lambda: store(False))
            self.b.when(self.b.emit(f"icmp ne i64 {key}, 0"), lambda: store(True))

    def _group(self, group: Group, i: str, unfinite: list[str]) -> str:
        """P and A for the group of queries from i on. `unfinite`: whether queries and keys are not finite.

        Returns whether some of A is not finite, as it is where adjoints are not.
        """
        b, m = self.b, self.m

        def part(tile: Tile) -> Tile:
            return Tile(m.at(tile, i), tile.step)

        weights, changes = part(self.weights), part(self.changes)
        self.scores(group, part(self.query), weights)
        m.multiply(part(self.adjoint), self.values_turned, changes, group.rows, group.vectors, str(self.e))

        self._exponentials(group, i, weights, changes)
        spoiled = ""
        if self.partly:
            spoiled = needed = m.spoiled([m.load(m.at(self.found))])
            for flag in filter(None, unfinite):
                needed = b.emit(f"or i1 {needed}, {flag}")
            b.when(needed, lambda: self.mark(group, weights, changes))
        if self.tilts is not None:
            m.store(self._tilted(group, changes), m.at(self.tilt, "0", i))
        return spoiled

    def _exponentials(self, group: Group, i: str, weights: Tile, changes: Tile) -> None:
        """Scores become P, and adjoints of P become A; with what tells whether some of A is not finite."""
        m = self.m

        def body(names: list[str]) -> None:
            places, others, numbers, vectors, *found = names

            def one(a: str, column: str, place: str) -> Vector:
                lse, h = (m.spread(m.at(Tile(numbers, self.row.step), which, a)) for which in "01")
                weight = m.vector(functions.exp_flushed(self.b, [(m.load(place) - lse).name], m.scalar, self.w))
                m.store(weight, place)
                other = m.at(Tile(others, changes.step), a, column)
                change = (m.load(other) + h) * weight
                m.store(change, other)
                return change

            tile = Tile(places, weights.step)
            if found:
                m.store(self.each_finite(tile, vectors, one), found[0])
            else:
                self.each(tile, vectors, one)

        args = [("ptr", weights.pointer), ("ptr", changes.pointer), ("ptr", m.at(self.row, "0", i))]
        args += [("i64", group.vectors), *([("ptr", self.found.pointer)] if self.partly else [])]
        self.r.part("exponentials", args, body)

    def _tilted(self, group: Group, changes: Tile) -> Vector:
        """The sums of changes times distances, for each query of a group."""
        m = self.m
        m.fill(self.parts, self.w)

        def part(i: str, column: str, place: str) -> None:
            sums = m.at(self.parts, i)
            m.store(m.load(sums) + m.load(place) * self.distance(group, i, column), sums)

        self.each(changes, group.vectors, part)
        return m.across([m.load(m.at(self.parts, str(i))) for i in range(self.w)], total)

    def _store_tilts(self, tilts: View, lead: list[str], query: str, count: str) -> None:
        b, m, r = self.b, self.m, self.r

        def one(i: str) -> None:
            index = [*lead, r.linear((1, 1), (query, i))]
            mine = b.emit(f"load {m.scalar}, ptr {m.at(self.tilt, '0', i)}, align {m.size}")
            r.store(tilts, b.emit(f"fadd {m.scalar} {r.load(tilts, index)}, {mine}"), index)

        b.loop(count, 1, one)

    def _rounded(self, lead: list[str], queries: tuple[str, str]) -> None:
        """Sums in float32 as half types."""
        r, dq = self.r, self.dq
        assert dq is not None

        def one(i: str) -> None:
            def part(j: str, w: int, n: int) -> None:
                r.store(dq, r.load(self.sums, [*lead, i, j], w, n), [*lead, i, j], w, n)

            r.vectors(self.d, self.w, part)

        r.b.loop(queries[1], 1, one, queries[0])
