"""Convolutions along two axes in planes of neighbours: each step sees what lies next to each other.

Axes before these whose windows have a single place are images of their own, and with a dilation d, so are the places
with the same remainder of division by d: they see each other and nobody else. So (batch, height, width, channels) is
(batch, d, d, height / d, width / d, channels) in other steps through the same memory. A line is a plane of height 1.
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
        if len(value.shape) == 3:
            value = regrouped(value, [[0], [], [1], [2]], {})
        return interleaved(value, len(value.shape) - 3, self.apart)

    def result(self, hole: Hole, stores: Stores) -> tuple[Hole, Stores]:
        return cast(Hole, self.of(hole)), [(cast(View, self.of(view)), self.of(value)) for view, value in stores]


def flat_filter(w: View) -> View:
    """(*kernel, in, out) with a kernel of two axes."""
    return cast(View, _flat(w))


def flat_filter_result(hole: Hole, stores: Stores) -> tuple[Hole, Stores]:
    return cast(Hole, _flat(hole)), [(flat_filter(view), _flat(value)) for view, value in stores]


def _flat(value: Value) -> Value:
    rank = len(value.shape)
    axes = [[axis] for axis in range(max(rank - 4, 0), rank)]
    return regrouped(value, [[], *axes] if rank == 3 else axes, {})


def planes_of(
    kernel: Shape, x: Shape, y: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Planes | None:
    """The planes of a convolution from x to y; none with strides, groups or sizes that the dilation does not divide."""
    if groups != 1 or any(s != 1 for s in stride):
        return None
    if any(n != 1 for n in kernel[:-2]) or any(pair != (0, 0) for pair in padding[:-2]):
        return None
    lows = [low for low, _ in padding]
    if any(n % d for sizes in (lows, x[1:-1], y[1:-1]) for n, d in zip(sizes[-2:], dilation[-2:], strict=True)):
        return None
    before = tuple(low // d for low, d in zip(lows, dilation, strict=True))
    return Planes((1, *dilation)[-2:], (0, *before)[-2:])
