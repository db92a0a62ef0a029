"""Philox-4x32-10 on vectors: as many blocks at once as 64-bit lanes hold the counters of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ....ir.graph import Equation
from ....ir.sizes import Extent
from ....primitives.random_bits import MULTIPLIERS, WEYL
from .. import values
from ..labels import Work
from ..processor import Processor
from ..text.builder import typed
from ..text.functions.vector import Vector
from ..text.routine import Routine
from ..values import View
from .step import Direct, Share

if TYPE_CHECKING:
    from ..schedule import Schedule

MASK = 0xFFFFFFFF


def random_bits(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if not out.aval.size:
        return False
    keys = math.prod(e.inputs[0].shape[:-1])
    key = values.reshaped(s.contiguous(s.value(e.inputs[0])), (keys, 2))
    assert isinstance(key, View)
    target = s.new(out.shape, out.dtype)
    draws = values.reshaped(target, (keys, math.prod(e.params["shape"])))
    assert isinstance(draws, View)
    s.emit(Draw(s.cpu, key, draws, e.params["domain"]))
    s.bind(out, target)
    return True


class Draw(Direct):
    """target[k, i] = word i % 4 of block i // 4 under key k."""

    any_size = True  # see general.py

    def __init__(self, cpu: Processor, key: View, target: View, domain: int) -> None:
        super().__init__([key], [target])
        self.key, self.target, self.domain = key, target, domain
        self.w = cpu.lanes(8)  # blocks at once
        keys, size = target.shape
        time = keys * -(-int(size) // (4 * self.w)) * 0.05
        self.long = size >= 64 * self.w  # one draw after the other is shared out, else draws are
        self.share = Share(size, time, 4 * self.w) if self.long else Share(keys, time)

    @property
    def work(self) -> Work:
        return f"random bits {self.target.shape}", math.prod(self.target.shape)

    def settings(self) -> object:
        return self.domain, self.w, self.long

    def emit(self, r: Routine) -> None:
        low, high = self.share.range(r)
        keys, size = self.target.shape

        def draw(k: str) -> None:
            key = [r.b.emit(f"zext i32 {r.load(self.key, [k, part])} to i64") for part in ("0", "1")]
            start, end = (low, high) if self.long else ("0", r.size(size))
            r.b.loop(end, 4 * self.w, lambda i: self._words(r, key, k, i), start)

        if self.long:
            r.each(keys, draw)
        else:
            r.b.loop(high, 1, draw, low)

    def _words(self, r: Routine, key: list[str], k: str, start: str) -> None:
        b, w, size = r.b, self.w, self.target.shape[1]
        first = b.emit(f"lshr i64 {start}, 2")
        ramp = "<" + ", ".join(f"i64 {lane}" for lane in range(w)) + ">"
        number = Vector(b, b.emit(f"add {typed('i64', w)} {b.spread(first, 'i64', w)}, {ramp}"), "i64", w)
        zero = number.number(0)
        counter = [number & MASK, number.op("lshr", 32), zero, zero.number(self.domain)]
        words = _philox(counter, [Vector(b, part, "i64", 1) for part in key])
        short = [word.to("trunc", "i32").name for word in words]
        halves = [_chosen(r, short[i], short[i + 1], w, list(range(2 * w))) for i in (0, 2)]
        # block by block: word 0, 1, 2, 3
        mixed = _chosen(r, halves[0], halves[1], 2 * w, [part * w + lane for lane in range(w) for part in range(4)])
        place = r.at(r.pointer(self.target), "i32", self.target.strides, [k, start])
        if isinstance(size, Extent):
            left = b.emit(f"sub nsw i64 {r.size(size)}, {start}")
            ramp = "<" + ", ".join(f"i64 {lane}" for lane in range(4 * w)) + ">"
            kind = typed("i64", 4 * w)
            lanes = b.emit(f"icmp slt {kind} {ramp}, {b.spread(left, 'i64', 4 * w)}")
            r.store_lanes(mixed, place, "i32", 4, 4 * w, lanes)
            return
        rest = size % (4 * w)
        last = b.emit(f"icmp sgt i64 {start}, {size - 4 * w}")
        if rest:
            b.when(last, lambda: r.store_vector(mixed, place, "i32", 4, 4 * w, rest))
        whole = b.emit(f"xor i1 {last}, true")
        b.when(whole, lambda: r.store_vector(mixed, place, "i32", 4, 4 * w, 4 * w))


def _philox(counter: list[Vector], key: list[Vector]) -> list[Vector]:
    c0, c1, c2, c3 = counter
    b, w = c0.b, c0.width
    for i in range(10):
        if i:
            key = [(k + weyl) & MASK for k, weyl in zip(key, WEYL, strict=True)]
        k0, k1 = (c0.like(b.spread(k.name, "i64", w)) for k in key)
        even, odd = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = odd.op("lshr", 32) ^ c1 ^ k0, odd & MASK, even.op("lshr", 32) ^ c3 ^ k1, even & MASK
    return [c0, c1, c2, c3]


def _chosen(r: Routine, x: str, y: str, w: int, lanes: list[int]) -> str:
    """Lanes of two vectors of w 32-bit words."""
    kind, mask = typed("i32", w), ", ".join(f"i32 {t}" for t in lanes)
    return r.b.emit(f"shufflevector {kind} {x}, {kind} {y}, <{len(lanes)} x i32> <{mask}>")
