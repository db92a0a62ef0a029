"""The step between long transforms of real numbers and of half as many complex ones, see halves.py."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import values
from ..direct.step import Direct, Share, spread_index
from ..labels import Work
from ..processor import Processor
from ..text.builder import computed
from ..text.routine import Routine
from ..text.turning import apart, shuffled, together
from ..values import Value, View
from . import roots
from .ends import Across, Item, views
from .halves import both, mixed
from .numbers import Arithmetic, Number
from .transform import constant, lanes_of


class Mixing(Direct):
    """From parts (*outer, n) to parts (*outer, n + 1) (forward), or back; or with an axis of lanes behind (across)."""

    def __init__(
        self,
        cpu: Processor,
        source: Sequence[Value],
        target: Sequence[View],
        n: int,
        forward: bool,
        scale: float,
        across: bool,
    ) -> None:
        factors = roots.of_halves(n, -1 if forward else 1, scale)
        shape, dtype = target[0].shape, target[0].dtype
        self.factors = constant(np.stack([factors.real, factors.imag]).astype(dtype))
        self.source, self.target = _end(source, across), _end(target, across)
        super().__init__([*self.source.parts, self.factors], views(self.target))
        self.n, self.forward, self.scale, self.across = n, forward, scale, across
        self.lines = source  # without an axis of lanes
        self.outer = shape[: -2 if across else -1]
        self.lanes = shape[-1] if across else n // 2  # across: of the tensor; else frequencies from 1 on
        self.w = lanes_of(cpu, dtype, self.lanes)
        self.groups = -(-self.lanes // self.w)
        items = math.prod(self.outer) * self.groups
        self.share = Share(items, math.prod(shape) / 500)

    @property
    def work(self) -> Work:
        shape = self.targets[0].shape
        return f"halves of a real transform {shape}", 4 * math.prod(shape)

    def settings(self) -> object:
        return self.n, self.forward, self.scale, self.across, self.w

    def emit(self, r: Routine) -> None:
        self.scalar = computed(self.targets[0].dtype)
        low, high = self.share.range(r)

        def item(number: str) -> None:
            *outer, group = spread_index(r, number, (*self.outer, self.groups))
            lane = r.linear((self.w,), (group,))
            if self.lanes % self.w:  # the last group overlaps the one before it
                lane = r.b.intrinsic("smin", "i64", lane, str(self.lanes - self.w))
            if self.across:
                self._all(r, Item(outer, lane), self.w, self.n // 2)
            else:
                first = r.b.emit(f"icmp eq i64 {group}, 0") if self.groups > 1 else "true"
                r.b.when(first, lambda: self._all(r, Item(outer, "0"), 1, 0))
                self._some(r, outer, r.linear((1,), (lane,), 1))

        r.b.loop(high, 1, item, low)

    def _all(self, r: Routine, item: Item, w: int, count: int) -> None:
        """Frequency 0, and `count` others with their opposites, for lanes that lie side by side."""
        a = Arithmetic(r.b, self.scalar, w, 1)
        source, target = (end.port(r, item, self.scalar, w) for end in (self.source, self.target))

        def g(k: str) -> Number:
            even = View(self.factors.buffer, (*self.factors.shape, w), (*self.factors.strides, 0))
            return r.load(even, ["0", k, "0"], w), r.load(even, ["1", k, "0"], w)

        both(r, a, self.n, self._h(a), g, source, target, self.forward, count)

    def _h(self, a: Arithmetic) -> str:
        return a.constant(self.scale * (0.5 if self.forward else 1.0))

    def _some(self, r: Routine, outer: list[str], k: str) -> None:
        """A vector of frequencies k, k + 1, .. and of their opposites n - k, n - k - 1, .."""
        a, w, b = Arithmetic(r.b, self.scalar, self.w, 1), self.w, r.b
        align, wide = 4 if self.scalar == "float" else 8, f"<{2 * w} x {self.scalar}>"
        back = [i for pair in range(w - 1, -1, -1) for i in (2 * pair, 2 * pair + 1)]

        def at(end: Across, place: str) -> str:
            view = views(end)[0]
            return r.at(r.pointer(view), self.scalar, (*view.strides[:-2], 2), (*outer, place))

        def read(place: str, turned: bool) -> Number:
            if not self.source.in_turn:
                memo = dict[int, str]()
                real, imag = (r.value(part, [*outer, place], w, memo=memo) for part in self.lines)
                lanes = range(w - 1, -1, -1) if turned else range(w)
                return shuffled(b, self.scalar, w, real, real, lanes), shuffled(b, self.scalar, w, imag, imag, lanes)
            found = b.emit(f"load {wide}, ptr {at(self.source, place)}, align {align}")
            found = shuffled(b, self.scalar, 2 * w, found, found, back) if turned else found
            return apart(b, self.scalar, w, found)

        opposite = r.linear((-1,), (k,), self.n - w + 1)
        g = r.load(self.factors, ["0", k], w), r.load(self.factors, ["1", k], w)
        one, two = read(k, False), read(opposite, True)
        for place, z, turned in zip((k, opposite), mixed(a, self._h(a), g, one, two), (False, True), strict=True):
            made = together(b, self.scalar, w, *z)
            made = shuffled(b, self.scalar, 2 * w, made, made, back) if turned else made
            b.do(f"store {wide} {made}, ptr {at(self.target, place)}, align {align}")


def _end(parts: Sequence[Value], across: bool) -> Across:
    """The parts of complex numbers; those that lie in a line have one lane each."""
    if across:
        return Across(*parts)
    lanes = []
    for x in parts:
        one = View(x.buffer, (*x.shape, 1), (*x.strides, 2), x.offset) if isinstance(x, View) else None
        lanes.append(one or values.reshaped(x, (*x.shape, 1)))
    real, imag = lanes
    assert real is not None
    return Across(real, imag)
