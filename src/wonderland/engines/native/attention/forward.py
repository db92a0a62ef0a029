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
from ..products.ahead import LINE
from ..products.blocks import Blocks
from ..products.model import SETS, places_of
from ..text import functions
from ..text.functions.vector import Vector, where
from ..text.routine import Routine
from ..tuning import FEATURES, KEYS, QUERY_SUMS, SPREAD
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
        self.blocks = Blocks(self.lead, self.t, 1, self.w, 1, self.microseconds(1))
        self.once = self.keys >= self.s  # all keys are in one tile
        self.keys = self.keys if self.once else self.keys_in(KEYS)
        # values are read where they lie, unless their rows compete for a few places of the cache
        size = v.dtype.itemsize
        places = places_of(abs(v.strides[-2]) * size) * max(1, self.e * size // LINE)
        self.near = not dtypes.is_half(v.dtype) and self.e % self.w == 0 and places >= SPREAD * SETS
        groups = min(QUERY_SUMS // (max(self.d, self.e) * 4 * self.w), 256 // self.w, -(-self.blocks.rows // self.w))
        self.queries = self.w * max(1, groups)

    @property
    def chunks(self) -> int:
        return self.blocks.chunks

    @property
    def work(self) -> Work:
        return self.label, self.pairs * (self.d + self.e)

    def emit(self, r: Routine) -> None:
        self.start(r)
        m = self.m
        if not self.near:
            self.values = m.tile(self.keys, self.e)
        if dtypes.is_half(self.q.dtype):  # others are read where they lie
            self.query = m.tile(self.queries, self.d)
        self.weights = m.tile(self.w, self.keys)
        self.parts = m.tile(self.w, self.w)  # of the reductions of rows, one vector for each
        self.row = m.tile(2, self.w)  # a number for each query: its base, and how its sums shrink
        waiting = self.w if self.once else self.queries
        self.sums = m.tile(waiting, self.e)
        self.tops, self.totals = m.tile(1, waiting), m.tile(1, waiting)

        def rectangle(lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
            self.enter(lead)
            unfinite = self._keys(lead, row_end, "0") if self.once else ""
            r.b.loop(row_end, self.queries, lambda i: self._queries(lead, i, row_end, unfinite), row)

        self.blocks.each(r, rectangle)

    def _queries(self, lead: list[str], first: str, row_end: str, unfinite: str) -> None:
        """All tiles of keys for some queries."""
        b, r, m = self.b, self.r, self.m
        last = self.less(row_end, r.linear((1,), (first,), self.queries))
        if dtypes.is_half(self.q.dtype):
            count = r.linear((1, -1), (last, first), self.w - 1)  # whole groups
            m.rows(self.q, lead, first, b.emit(f"and i64 {count}, {-self.w}"), self.query)
        if self.once:
            self._groups(lead, first, last, "0", unfinite)
            return
        m.fill(self.sums, self.queries)
        m.fill(self.totals, 1)
        m.fill(self.tops, 1, -math.inf)
        start, keys = "0", self.less(str(self.s), last) if self.diagonal else str(self.s)
        if self.placed:
            start, keys = self.tiles_for(first, last)

        def tile(key: str) -> None:
            self._groups(lead, first, last, key, self._keys(lead, last, key))

        b.loop(keys, self.keys, tile, start)
        b.loop(last, self.w, lambda i: self._finish(lead, i, self.minus(i, first)), first)

    def _keys(self, lead: list[str], last: str, key: str) -> str:
        """Bring keys and values to a tile: those that queries before the last see. Whether some are not finite."""
        m, r = self.m, self.r
        needed = self.seen(last, self.w, key, self.end(key))
        m.columns(self.k, lead, key, needed, self.keys_turned, self.scale)
        if self.near:
            self.values = Tile(r.at(r.pointer(self.v), m.scalar, self.v.strides[:-1], [*lead, key]), self.v.strides[-2])
        else:
            m.rows(self.v, lead, key, needed, self.values)
        return self.unfinite(self.values, needed, self.e_vectors)

    def _groups(self, lead: list[str], first: str, last: str, key: str, unfinite: str) -> None:
        """The queries that see some keys of a tile."""
        b, end = self.b, self.end(key)
        start, stop = b.intrinsic("smax", "i64", first, key) if self.diagonal and not self.once else first, last
        if self.placed and not self.once:
            start, stop = self.queries_for(first, last, key, end, self.w)

        def group(i: str) -> None:
            self._group(self.group(lead, i, key, end), self.minus(i, first), unfinite)
            if self.once:
                self._finish(lead, i, "0")

        b.loop(stop, self.w, group, start)

    def _group(self, g: Group, place: str, unfinite: str) -> None:
        """w queries, whose sums are at a place. `unfinite`: whether some of the values are not finite."""
        b, m, r = self.b, self.m, self.r
        if dtypes.is_half(self.q.dtype):
            self.scores(g, Tile(m.at(self.query, place), self.query.step), self.weights)
        else:
            start = r.at(r.pointer(self.q), m.scalar, self.q.strides[:-1], [*g.lead, g.query])
            last = self.minus(str(self.t - 1), g.query) if self.t % self.w else ""
            self.scores(g, Tile(start, self.q.strides[-2]), self.weights, last)
        place = "0" if self.once else place
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
        sizes = g.rows, self.e_vectors, g.seen if self.placed else g.end, lag
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
        m = self.m

        def body(names: list[str]) -> None:
            weights, bases, vectors, sums = names
            parts = Tile(sums, self.parts.step)
            m.fill(parts, self.w)

            def part(i: str, column: str, place: str) -> None:
                base = m.spread(m.at(Tile(bases, self.row.step), "0", i))
                value = m.vector(functions.exp_flushed(self.b, [(m.load(place) - base).name], m.scalar, self.w))
                m.store(value, place)
                m.store(m.load(m.at(parts, i)) + value, m.at(parts, i))

            self.each(Tile(weights, self.weights.step), vectors, part)

        pointers = [("ptr", tile.pointer) for tile in (self.weights, self.row, self.parts)]
        self.r.part("exponentials", [*pointers[:2], ("i64", g.vectors), pointers[2]], body)
        return m.across([m.load(m.at(self.parts, str(i))) for i in range(self.w)], total)

    def _finish(self, lead: list[str], query: str, place: str) -> None:
        """Divide the sums of w queries by the totals; store them and the log-sum-exps."""
        b, m, r = self.b, self.m, self.r
        found = m.load(m.at(self.totals, "0", place))
        nothing = found.equals(0.0)
        found = where(nothing, 1.0, found)
        log = m.vector(functions.log(b, [found.name], m.scalar, self.w)) + m.load(m.at(self.tops, "0", place))
        m.store(1.0 / found, m.at(self.row, "1"))
        log = where(nothing, 0.0, log)
        into = r.at(r.pointer(self.lse), m.scalar, self.lse.strides, [*lead, query])
        count = self.rows(query)
        r.store_lanes(log.name, into, m.scalar, m.size, self.w, m.first(count).name)
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
    """A view whose rows step through memory by one; of what is half precision there, as kept keys, that itself."""
    value = s.value(atom)
    view = s.in_memory(s.narrowest(value) if value.dtype == dtypes.float32 else value)
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
