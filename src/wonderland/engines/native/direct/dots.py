"""Inner products of rows that are gathered, one for every entry of a pattern: products that are sampled.

As many entries as a vector has lanes go together: the sums of their lanes are added in pairs, and in pairs of pairs,
and come out as one vector, a lane for each entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..processor import Processor
from ..text.builder import computed, typed
from ..text.routine import Routine, is_even
from ..tuning import AHEAD, SEGMENT_VECTORS
from ..values import Op, Take, Value, View, parts
from .fetching import fetch, is_far
from .step import Direct, Share, flat_view, grouped, lanes_for, on_groups

MOST_FEATURES = 4096  # an accumulator takes a term for each lane of a vector of them


def dots(cpu: Processor, value: Value, heads: int, target: View) -> Dots | None:
    """target[e, ..] = the sum of value[e, .., :] over the axes behind the heads, or None: it is a sum like others."""
    shape = value.shape
    kinds = [int(a > 0) + int(a > heads) for a in range(len(shape))]
    spread = View(target.buffer, shape, target.strides + (0,) * (len(shape) - 1 - heads), target.offset)
    groups = grouped(shape, kinds, [value, spread])
    if [kinds[group[0]] for group in groups].count(2) != 1 or groups[0] != [0]:
        return None
    flat, place = on_groups(value, groups), flat_view(spread, groups)
    w = lanes_for(cpu, [flat, place], flat.shape[-1])
    if w == 1 or flat.shape[0] < w or flat.shape[-1] > MOST_FEATURES:
        return None
    return Dots(flat, place, w)


class Dots(Direct):
    """target[e, h ..] = the sum of value[e, h .., :]."""

    def __init__(self, value: Value, target: View, w: int) -> None:
        self.value, self.w = value, w
        self.entries, *self.heads, self.features = value.shape
        # entries run through the lanes of what is stored
        shape, strides = (*self.heads, self.entries), (*target.strides[1:-1], target.strides[0])
        self.target = View(target.buffer, shape, strides, target.offset)
        super().__init__([value], [self.target])
        self.rows = [p for p in parts(value) if isinstance(p, Take) and all(map(is_even, p.indices))]
        weight = value.weight if isinstance(value, (Op, Take)) else 1
        vectors = math.prod(self.heads) * -(-self.features // w)
        self.share = Share(self.entries, self.entries * (3 + vectors * (1 + weight / 4)) / 1000, w)

    def settings(self) -> object:
        return self.w

    def emit(self, r: Routine) -> None:
        low, high = self.share.range(r)
        last = self.entries - self.w  # the last ones are computed again rather than apart
        r.b.loop(high, self.w, lambda e: self._entries(r, r.b.intrinsic("smin", "i64", e, str(last))), low)

    def _entries(self, r: Routine, first: str) -> None:
        entries = [r.linear((1,), (first,), i) for i in range(self.w)]
        none = ["0"] * (len(self.heads) + 1)
        begins = [[*none[1:], str(at)] for at in range(0, min(self.features, SEGMENT_VECTORS * self.w), self.w)]
        for take in self.rows:
            for e in entries if is_far(take) else ():
                fetch(r, take, e, self.entries, AHEAD, begins, self.w)
        places = [[r.selected(take, [e, *none], 1, 1, {}) for take in self.rows] for e in entries]

        def along(index: list[str]) -> None:
            if len(index) < len(self.heads):
                r.each(self.heads[len(index)], lambda i: along([*index, i]))
                return
            sums = self._sums(r, lambda i, at, n: self._term(r, places[i], [entries[i], *index, at], n))
            r.store(self.target, self._paired(r, sums), [*index, first], self.w)

        along([])

    def _term(self, r: Routine, places: list[str], index: list[str], n: int) -> str:
        r.places = {id(take): place for take, place in zip(self.rows, places, strict=True)}
        found = r.value(self.value, index, self.w, n, {})
        r.places = {}
        return found

    def _sums(self, r: Routine, term: Callable[[int, str, int], str]) -> list[str]:
        """For each entry a vector, whose lanes are still to be added."""
        b, w, kind = r.b, self.w, typed(computed(self.value.dtype), self.w)
        whole, left = self.features - self.features % w, self.features % w

        def added(sums: list[str], at: str, n: int) -> list[str]:
            return [b.emit(f"fadd {kind} {s}, {term(i, at, n)}") for i, s in enumerate(sums)]

        sums = ["zeroinitializer"] * w
        if whole <= SEGMENT_VECTORS * w:
            for at in range(0, whole, w):
                sums = added(sums, str(at), w)
        else:
            sums = b.loop_with([(kind, s) for s in sums], whole, w, lambda at, sums: added(sums, at, w))
        return added(sums, str(whole), left) if left else sums

    def _paired(self, r: Routine, sums: list[str]) -> str:
        """Vectors to one vector of the sums of their lanes."""
        b, w, kind = r.b, self.w, typed(computed(self.value.dtype), self.w)
        while len(sums) > 1:
            pairs = zip(sums[::2], sums[1::2], strict=True)
            sums = []
            for x, y in pairs:
                halves = []
                for odd in (0, 1):
                    lanes = ", ".join(f"i32 {i}" for i in range(odd, 2 * w, 2))
                    halves.append(b.emit(f"shufflevector {kind} {x}, {kind} {y}, <{w} x i32> <{lanes}>"))
                sums.append(b.emit(f"fadd {kind} {halves[0]}, {halves[1]}"))
        return sums[0]
