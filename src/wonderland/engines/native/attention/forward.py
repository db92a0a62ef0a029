"""Attention in one pass over the keys, in memory linear in the sequences. The formulas are in primitives/attention.py.

For w queries at a time, the scores of at most one tile of keys are in memory. A row's exponentials are relative to
its largest score so far; when a later tile has a larger one, the sums so far shrink accordingly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core import dtypes
from ....ir.graph import Atom, Equation, Var
from ....primitives.sight import Extras, Options
from .. import values
from ..labels import Work
from ..processor import Processor
from ..products.blocks import Blocks
from ..text import functions
from ..text.functions.vector import Vector, where
from ..text.routine import Routine
from ..tuning import FEATURES, QUERY_SUMS
from ..values import Op, View
from .few import FewQueries, Joined, sharing
from .gradients import gradient_steps
from .scores import Group, Scores
from .tiles import Tile, larger, total

if TYPE_CHECKING:
    from ..schedule import Schedule


class Attention(Scores):
    """out = P v and the log-sum-exp of the rows of scores."""

    any_size = True  # see general.py

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
        self.blocks = Blocks(self.lead, self.t, 1, self.w, 1, self.microseconds(2))
        self.once = self.keys >= self.s  # all keys are in one tile
        self.queries = self.w
        if not self.once:
            most = QUERY_SUMS // (self.e * v.dtype.itemsize * self.w)
            self.queries *= max(1, min(most, 256 // self.w, -(-self.blocks.rows // self.w)))

    @property
    def chunks(self) -> int:
        return self.blocks.chunks

    @property
    def work(self) -> Work:
        return self.label, self.pairs * (self.d + self.e)

    def emit(self, r: Routine) -> None:
        self.start(r)
        m = self.m
        self.values = m.tile(self.keys, self.e)
        self.query = m.tile(self.w, self.d)
        self.weights = m.tile(self.w, self.keys)
        self.parts = m.tile(self.w, self.w)  # of the reductions of rows, one vector for each
        self.row = m.tile(3, self.w)  # a number for each query: its base, how its sums shrink, its log-sum-exp
        self.sums = m.tile(self.queries, self.e)
        self.tops, self.totals = m.tile(1, self.queries), m.tile(1, self.queries)

        def rectangle(lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
            self.enter(lead)
            if self.once:
                self._tile(lead, row, row_end, "0")
            else:
                r.b.loop(row_end, self.queries, lambda i: self._queries(lead, i, row_end), row)

        self.blocks.each(r, rectangle)

    def _queries(self, lead: list[str], first: str, row_end: str) -> None:
        """All tiles of keys for queries whose sums fit."""
        b, r, m = self.b, self.r, self.m
        last = self.less(row_end, r.linear((1,), (first,), self.queries))
        m.fill(self.sums, self.queries)
        m.fill(self.totals, 1)
        m.fill(self.tops, 1, -math.inf)
        start, keys = "0", self.less(str(self.s), last) if self.diagonal else str(self.s)
        if self.placed:
            start, keys = self.tiles_for(first, last)
        b.loop(keys, self.keys, lambda key: self._tile(lead, first, last, key), start)
        b.loop(last, self.w, lambda i: self._finish(lead, i, last, self.minus(i, first)), first)

    def _tile(self, lead: list[str], first: str, last: str, key: str) -> None:
        """One tile of keys for the queries that see some of it."""
        b, m = self.b, self.m
        end = self.end(key)
        needed = self.seen(last, self.w, key, end)
        m.columns(self.k, lead, key, needed, self.keys_turned)
        m.rows(self.v, lead, key, needed, self.values)
        unfinite = self.unfinite(self.values, needed)
        start, stop = b.intrinsic("smax", "i64", first, key) if self.diagonal and not self.once else first, last
        if self.placed and not self.once:
            start, stop = self.queries_for(first, last, key, end, self.w)

        def group(i: str) -> None:
            self._group(self.group(lead, i, key, end), self.minus(i, first), unfinite)
            if self.once:
                self._finish(lead, i, last, "0")

        b.loop(stop, self.w, group, start)

    def _group(self, g: Group, place: str, unfinite: str) -> None:
        """w queries, whose sums are at a place. `unfinite`: whether some of the values are not finite."""
        b, m = self.b, self.m
        place = "0" if self.once else place
        m.rows(self.q, g.lead, g.query, str(self.w), self.query, self.scale)
        self.scores(g, self.query, self.weights)
        tops, totals = m.at(self.tops, "0", place), m.at(self.totals, "0", place)
        old = m.number(-math.inf) if self.once else m.load(tops)
        top = larger(old, self._largest(g))
        base = where(top.equals(-math.inf), 0.0, top)  # exp(-inf - 0) is 0
        m.store(top, tops)
        m.store(base, m.at(self.row, "0"))
        found = self._exponentials(g)
        if not self.once:
            shrink = m.vector(functions.exp_flushed(b, [(old - base).name], m.scalar, self.w))
            found = found + m.load(totals) * shrink
            m.store(shrink, m.at(self.row, "1"))
        m.store(found, totals)
        sums = Tile(m.at(self.sums, place), self.sums.step)
        shrinking = "" if self.once else m.at(self.row, "1")
        lag = self.minus(g.query, g.key) if self.diagonal else ""
        if unfinite:
            b.when(unfinite, lambda: self.mark(g, self.weights))
        sizes = str(self.w), self.e_vectors, g.seen if self.placed else g.end, lag
        self.product(unfinite, self.weights, self.values, sums, sizes, marks=self.weights, shrink=shrinking)

    def _largest(self, g: Group) -> Vector:
        """The largest score of each query."""
        m, r = self.m, self.r

        def part(c: str, tops: list[str]) -> list[str]:
            places = [
                r.at(self.weights.pointer, m.scalar, (self.w,), (c,), i * self.weights.step) for i in range(self.w)
            ]
            return [larger(m.vector(top), m.load(place)).name for top, place in zip(tops, places, strict=True)]

        lowest = [(m.kind, m.number(-math.inf).name)] * self.w
        found = self.b.loop_with(lowest, g.vectors, 1, part)
        return m.across([m.vector(name) for name in found], larger)

    def _exponentials(self, g: Group) -> Vector:
        """Scores become exponentials; their sums."""
        b, m = self.b, self.m
        m.fill(self.parts, self.w)

        def part(i: str, column: str, place: str) -> None:
            base = m.spread(m.at(self.row, "0", i))
            value = m.vector(functions.exp_flushed(b, [(m.load(place) - base).name], m.scalar, self.w))
            m.store(value, place)
            sums = m.at(self.parts, i)
            m.store(m.load(sums) + value, sums)

        self.each(self.weights, g.vectors, part)
        return m.across([m.load(m.at(self.parts, str(i))) for i in range(self.w)], total)

    def _finish(self, lead: list[str], query: str, last: str, place: str) -> None:
        """Divide the sums of w queries by the totals; store them and the log-sum-exps."""
        b, m, r = self.b, self.m, self.r
        found = m.load(m.at(self.totals, "0", place))
        nothing = found.equals(0.0)
        found = where(nothing, 1.0, found)
        log = m.vector(functions.log(b, [found.name], m.scalar, self.w)) + m.load(m.at(self.tops, "0", place))
        m.store(1.0 / found, m.at(self.row, "1"))
        m.store(where(nothing, 0.0, log), m.at(self.row, "2"))
        count = str(self.w) if self.t % self.w == 0 else self.less(self.minus(last, query), str(self.w))

        def one(i: str) -> None:
            found = b.emit(f"load {m.scalar}, ptr {m.at(self.row, '2', i)}, align {m.size}")
            r.store(self.lse, found, [*lead, r.linear((1, 1), (query, i))])

        b.loop(count, 1, one)
        m.out(Tile(m.at(self.sums, place), self.sums.step), self.out, [*lead, query], count, m.at(self.row, "1"))


# --- how a schedule uses them


def attention(s: Schedule, e: Equation) -> bool:
    q, k, v, *operands = e.inputs
    options = Options(**e.params)
    if not _supported(q, k, v):
        return False
    qkv = _along_rows(s, q), _along_rows(s, k), _along_rows(s, v)
    out, lse = _placed_like(s, e.outputs[0], qkv[0]), s.new(e.outputs[1].shape, e.outputs[1].dtype)
    extras = _extras(s, q, k, operands, options)
    if 2 * q.shape[-2] <= s.cpu.lanes(4):
        s.emit(*_few(s, qkv, extras, out, lse, options))
    else:
        s.emit(Attention(s.cpu, *qkv, extras, out, lse, options))
    for var, view in zip(e.outputs, (out, lse), strict=True):
        s.bind(var, view)
    return True


def _few(
    s: Schedule, qkv: tuple[View, View, View], extras: Extras[View], out: View, lse: View, options: Options
) -> list[FewQueries | Joined]:
    shared = sharing(*qkv, extras.offsets)
    if shared.parts == 1:
        return [FewQueries(s.cpu, *qkv, extras, out, lse, options, shared)]
    *lead, t, e = out.shape
    sums, logs = s.new((*lead, shared.parts, t, e), lse.dtype), s.new((*lead, shared.parts, t), lse.dtype)
    return [FewQueries(s.cpu, *qkv, extras, sums, logs, options, shared), Joined(sums, logs, out, lse)]


def attention_backward(s: Schedule, e: Equation) -> bool:
    g, h, q, k, v, lse, *operands = e.inputs
    options = Options(**e.params)
    if not _supported(q, k, v):
        return False
    qkv = _along_rows(s, q), _along_rows(s, k), _along_rows(s, v)
    sources = _along_rows(s, g), *qkv, s.in_memory(s.value(h)), s.in_memory(s.value(lse))
    into = [_placed_like(s, out, view) for out, view in zip(e.outputs, qkv, strict=False)]
    into += [s.new(out.shape, out.dtype) for out in e.outputs[3:]]
    s.emit(*gradient_steps(s.cpu, sources, _extras(s, q, k, operands, options), into, options))
    for var, view in zip(e.outputs, into, strict=True):
        s.bind(var, view)
    return True


def _supported(q: Atom, k: Atom, v: Atom) -> bool:
    return q.shape[-1] + v.shape[-1] <= FEATURES and all(math.prod(x.shape) for x in (q, k, v))


def _along_rows(s: Schedule, atom: Atom) -> View:
    """A view whose rows step through memory by one."""
    view = s.in_memory(s.value(atom))
    return view if view.strides[-1] == 1 or view.shape[-1] == 1 else s.contiguous(view)


def _placed_like(s: Schedule, out: Var, view: View) -> View:
    """Memory for a result whose axes follow each other as those of a view do: what undoes a transpose needs no copy."""
    lead = range(len(out.shape) - 1)
    order = sorted((a for a in lead if out.shape[a] > 1), key=lambda a: -abs(view.strides[a]))
    if order == sorted(order):
        return s.new(out.shape, out.dtype)
    axes = [*(a for a in lead if out.shape[a] == 1), *order, len(lead)]
    placed = s.new(tuple(out.shape[a] for a in axes), out.dtype)
    back = values.transposed(placed, tuple(axes.index(a) for a in range(len(axes))))
    assert isinstance(back, View)
    return back


def _extras(s: Schedule, q: Atom, k: Atom, operands: Sequence[Atom], options: Options) -> Extras[View]:
    """Views of what comes behind the values, in which nothing is repeated in memory."""
    given = Extras.of(operands, options)
    mask = offsets = None
    if given.mask is not None:
        view = s.in_memory(s.value(given.mask))
        if view.shape and view.strides[-1] not in (0, 1):
            view = s.contiguous(view)
        mask = _broadcast(view, (*q.shape[:-1], k.shape[-2]))
    if given.offsets is not None:
        value = s.value(given.offsets)
        wide = value if value.dtype == dtypes.int64 else Op("astype", [value], value.shape, dtypes.int64)
        offsets = _broadcast(s.in_memory(wide), q.shape[:-2])
    return Extras(mask, offsets, None if given.slopes is None else s.in_memory(s.value(given.slopes)))


def _broadcast(view: View, shape: tuple[int, ...]) -> View:
    found = values.broadcast(view, shape)
    assert isinstance(found, View)
    return found
