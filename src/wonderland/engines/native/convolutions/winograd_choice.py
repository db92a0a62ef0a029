"""By which of Winograd's methods a convolution is computed, if plain sums take longer: counted in multiply-adds."""

from __future__ import annotations

import functools
import itertools
import math

from ..values import Shape
from .points import POINTS, Method, Points

TILE = 10  # to bring a number of a tile to a point, or back
READ = 16  # to read a number of a filter, at a point or not
MADE = 16  # to compute it before
SUMMED = 32  # to store a sum for a gradient, and to read it again
WORTH = 0.8  # of the time of plain sums
LEAST_CHANNELS = 8  # of input and output


def method_for(kernel: Shape, y: Shape, inner: int, fixed: bool) -> Method | None:
    """The best method for a convolution of `inner` channels whose result is y (*images, height, width, out).

    A filter that is `fixed` is at its points already.
    """
    return _best(kernel, y, inner, READ, READ if fixed else READ + MADE)


def gradient_method_for(kernel: Shape, ct: Shape, inner: int) -> Method | None:
    """The best method for the gradient of a filter: its taps are the result, and tiles of ct the filter."""
    found = _best(kernel, ct, inner, 0, SUMMED)
    return found and found.exchanged()


def _best(kernel: Shape, y: Shape, inner: int, plain_once: int, once: int) -> Method | None:
    """By the multiply-adds of plain sums and of every method, where each number of a filter costs some `once`."""
    images, (*places, out) = int(math.prod(y[:-3])), y[-3:]
    if min(inner, out) < LEAST_CHANNELS:
        return None
    plain = math.prod(kernel) * (images * math.prod(places) + plain_once) * inner * out
    costs: dict[float, Method | None] = {WORTH * plain: None}
    for found in itertools.starmap(Method, itertools.product(*map(_points, kernel))):
        tiles = images * math.prod(-(-n // size) for n, size in zip(places, found.sizes, strict=True))
        cost = found.places * (tiles * (inner * out + TILE * (inner + out)) + once * inner * out)
        costs[cost] = found
    return costs[min(costs)]


@functools.cache
def _points(taps: int) -> list[Points]:
    """The choices along one axis; where there is one tap, there is nothing to save."""
    return [Points(side - taps + 1, taps) for side in POINTS if side == taps == 1 or 1 < taps < side]
