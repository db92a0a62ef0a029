"""Convolutions along two axes in planes of neighbours: each step sees what lies next to each other.

Axes before these whose windows have a single place are images of their own, and with a dilation d, so are the places
with the same remainder of division by d: they see each other and nobody else. So (batch, height, width, channels) is
(batch, d, d, height / d, width / d, channels) in other steps through the same memory.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from ..products.epilogue import Stores
from ..values import Hole, Shape, Value, View, interleaved, regrouped

Pairs = tuple[tuple[int, int], ...]


class Planes(NamedTuple):
    apart: Shape  # the dilation along both axes
    lows: Shape  # zeros before a plane

    def of(self, value: Value) -> Value:
        """(batch, *spatial, channels) as (*images, height, width, channels)."""
        return interleaved(value, len(value.shape) - 3, self.apart)

    def result(self, hole: Hole, stores: Stores) -> tuple[Hole, Stores]:
        return cast(Hole, self.of(hole)), [(cast(View, self.of(view)), self.of(value)) for view, value in stores]


def flat_filter(w: View) -> View:
    """(1, ..., 1, taps, taps, in, out) without the first axes."""
    return cast(View, _last_four(w))


def flat_filter_result(hole: Hole, stores: Stores) -> tuple[Hole, Stores]:
    return cast(Hole, _last_four(hole)), [(flat_filter(view), _last_four(value)) for view, value in stores]


def _last_four(value: Value) -> Value:
    rank = len(value.shape)
    return regrouped(value, [[axis] for axis in range(rank - 4, rank)], {})


def planes_of(
    kernel: Shape, x: Shape, y: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Planes | None:
    """The planes of a convolution from x to y; none with strides, groups or sizes that the dilation does not divide."""
    outer = len(kernel) - 2
    if outer < 0 or groups != 1 or any(s != 1 for s in stride):
        return None
    if any(n != 1 for n in kernel[:outer]) or any(pair != (0, 0) for pair in padding[:outer]):
        return None
    apart, lows = dilation[outer:], [low for low, _ in padding[outer:]]
    divided = zip((*lows, *x[-3:-1], *y[-3:-1]), apart * 3, strict=True)
    if any(n % d for n, d in divided):
        return None
    return Planes(apart, tuple(low // d for low, d in zip(lows, apart, strict=True)))
