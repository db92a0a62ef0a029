"""The step that transforms: groups of lanes, each in stages between two pieces of local memory.

Most stages are passes. One of radix r (Stockham's, which leaves results in order) reads the numbers at q + s (p + m k),
k = 0 .. r-1, transforms them in registers, multiplies by roots of unity that depend on p and k, and writes to
q + s (r p + k); s is the product of the radices before, m the size divided by s r. The first stage reads where the
numbers come from and the last one writes where they go, if lanes lie next to each other there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from ....core.dtypes import DType
from ....core.typing import Array
from ..direct.step import Direct, Share, spread_index
from ..labels import Work
from ..processor import Processor
from ..text.builder import computed
from ..text.routine import Routine
from ..tuning import CYCLES
from ..values import Buffer, View, whole
from . import roots
from .ends import Across, Along, End, Item, Local, Port, views
from .halves import both
from .numbers import Arithmetic, Number

Stage = Callable[[Port, Port], None]


class Kind(NamedTuple):
    """What a step computes: transforms of n complex numbers, times a scale."""

    n: int
    sign: int  # of the exponent
    scale: float
    # "spectrum" of 2 n real numbers, "signal": the way back; "part": n // 2 + 1 of the results,
    # "mirrored": n // 2 + 1 of n numbers are given, the others are their conjugates
    form: Literal["complex", "spectrum", "signal", "part", "mirrored"] = "complex"


class Transform(Direct):
    """target = the transform of source along an axis, for all others; times factors, if there are some."""

    def __init__(
        self, cpu: Processor, kind: Kind, source: End, target: End, name: str, factors: Across | None = None
    ) -> None:
        self.kind, self.source, self.target, self.name, self.factors = kind, source, target, name, factors
        dtype = target.parts[0].dtype
        self.roots = constant(roots.table(*kind, dtype))
        beside = [] if factors is None else factors.parts
        super().__init__([*source.parts, self.roots, *beside], views(target))
        self.outer, self.lanes = target.outer, target.lanes
        self.w = lanes_of(cpu, dtype, self.lanes)
        self.groups = -(-self.lanes // self.w)
        items = math.prod(self.outer) * self.groups
        self.share = Share(items, items * kind.n * (4 + math.log2(kind.n)) * 2 / CYCLES)

    @property
    def work(self) -> Work:
        count = math.prod(self.outer) * self.lanes
        size = self.kind.n * (1 + (self.kind.form in ("spectrum", "signal")))
        return f"{self.name} {count} x {size}", round(2.5 * count * self.kind.n * math.log2(max(2, self.kind.n)))

    def settings(self) -> object:
        ends = [end.settings() for end in (self.source, self.target, self.factors) if end is not None]
        return self.kind, ends, self.w, self.outer, self.lanes

    def emit(self, r: Routine) -> None:
        self.scalar = computed(self.target.parts[0].dtype)
        self.a = Arithmetic(r.b, self.scalar, self.w, self.kind.sign)
        memory = [Local(r, self.scalar, self.w, self.kind.n + 1) for _ in range(2)]
        low, high = self.share.range(r)

        def item(number: str) -> None:
            *outer, group = spread_index(r, number, (*self.outer, self.groups))
            lane = r.linear((self.w,), (group,))
            if self.lanes % self.w:  # the last group overlaps the one before it
                lane = r.b.intrinsic("smin", "i64", lane, str(self.lanes - self.w))
            self._item(r, Item(outer, lane), memory)

        r.b.loop(high, 1, item, low)

    def _item(self, r: Routine, item: Item, memory: list[Local]) -> None:
        stages = self._stages(r, item)
        here, there = memory
        if isinstance(self.source, Along):
            self.source.fetch(r, item, here)
            source = here.port
        else:
            source = self.source.port(r, item, self.scalar, self.w)
        for i, stage in enumerate(stages):
            here, there = there, here
            target = here.port
            if i == len(stages) - 1 and isinstance(self.target, Across):
                target = self.target.port(r, item, self.scalar, self.w)
            stage(source, target)
            source = target
        if isinstance(self.target, Along):
            self.target.put(r, item, here)

    def _stages(self, r: Routine, item: Item) -> list[Stage]:
        kind, stages = self.kind, list[Stage]()
        n, form = kind.n, kind.form
        if form == "signal":
            stages.append(functools.partial(self._halves, r))
        if form == "mirrored":
            stages.append(functools.partial(self._mirror, r))
        s, start = 1, 0
        for radix in roots.radices(n):
            m = n // (s * radix)
            stages.append(functools.partial(self._pass, r, item, radix, s, m, start))
            s, start = s * radix, start + 2 * m * (radix - 1)
        if form == "spectrum":
            stages.append(functools.partial(self._halves, r))
        if (form == "part" and isinstance(self.target, Across)) or not stages:
            count = n // 2 + 1 if form == "part" else n
            stages.append(functools.partial(self._copy, r, item, count))
        return stages

    def _pass(self, r: Routine, item: Item, radix: int, s: int, m: int, start: int, x: Port, y: Port) -> None:
        a = self.a

        def rows(p: str) -> None:
            def butterfly(q: str) -> None:
                base = r.linear((s, 1), (p, q))
                made = a.transform([x.read(base, s * m * k) for k in range(radix)])
                if m > 1:
                    at = r.linear((2 * (radix - 1),), (p,), start)
                    made[1:] = [a.multiply(z, self._root(r, at, k)) for k, z in enumerate(made[1:])]
                base = r.linear((s * radix, 1), (p, q))
                for k, z in enumerate(made):
                    y.write(base, s * k, self._finished(r, item, base, s * k, z) if m == 1 else z)

            r.each(s, butterfly)

        r.each(m, rows)

    def _finished(self, r: Routine, item: Item, base: str, offset: int, z: Number) -> Number:
        """A result with its scale and factor."""
        if self.kind.scale != 1 and self.kind.form not in ("spectrum", "signal"):
            z = self.a.scaled(z, self.a.constant(self.kind.scale))
        if self.factors is not None:
            z = self.a.multiply(z, self.factors.port(r, item, self.scalar, self.w).read(base, offset))
        return z

    def _root(self, r: Routine, at: str, k: int) -> Number:
        """The number k behind a place of the table, in all lanes."""
        pointer, align = r.at(r.pointer(self.roots), self.scalar, (1,), (at,)), 4 if self.scalar == "float" else 8
        found = []
        for part in range(2):
            place = r.at(pointer, self.scalar, (1,), (str(2 * k + part),))
            single = r.b.emit(f"load {self.scalar}, ptr {place}, align {align}")
            found.append(r.b.spread(single, self.scalar, self.w))
        return found[0], found[1]

    def _halves(self, r: Routine, x: Port, y: Port) -> None:
        kind, forward = self.kind, self.kind.form == "spectrum"
        start = self.roots.shape[0] - 2 * (kind.n // 2 + 1)
        h = self.a.constant(kind.scale * (0.5 if forward else 1.0))
        both(r, self.a, kind.n, h, lambda k: self._root(r, r.linear((2,), (k,), start), 0), x, y, forward, kind.n // 2)

    def _mirror(self, r: Routine, x: Port, y: Port) -> None:
        """All numbers of a signal whose spectrum is real, from the first half."""
        n = self.kind.n
        first = x.read("0", 0)[0]
        y.write("0", 0, (first, self.a.constant(0.0)))

        def turn(k: str) -> None:
            z = x.read(k, 0)
            y.write(k, 0, z)
            y.write(r.linear((-1,), (k,), n), 0, self.a.conj(z))

        r.b.loop(n // 2 + 1, 1, turn, 1)

    def _copy(self, r: Routine, item: Item, count: int, x: Port, y: Port) -> None:
        def number(k: str) -> None:
            z = x.read(k, 0)
            y.write(k, 0, self._finished(r, item, k, 0, z) if self.kind.n == 1 else z)

        r.each(count, number)


def lanes_of(cpu: Processor, dtype: DType, lanes: int) -> int:
    """The lanes of a vector: a power of 2 that is not more than there are."""
    return min(cpu.lanes(dtype.itemsize), 1 << (lanes.bit_length() - 1))


def constant(data: Array) -> View:
    return whole(Buffer("constant", data.size, data.dtype, data=data), data.shape)
