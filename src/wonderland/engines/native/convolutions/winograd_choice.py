"""By which of Winograd's methods a convolution is computed, if plain sums take longer: counted in multiply-adds."""

from __future__ import annotations

import math

from ..values import Shape
from .points import POINTS, Method

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
    return found and Method(found.taps, found.size)


def _best(kernel: Shape, y: Shape, inner: int, plain_once: int, once: int) -> Method | None:
    """By the multiply-adds of plain sums and of every method, where each number of a filter costs some `once`."""
    images, (*places, out) = int(math.prod(y[:-3])), y[-3:]
    if len(kernel) != 2 or kernel[0] != kernel[1] or min(inner, out) < LEAST_CHANNELS:
        return None
    plain = math.prod(kernel) * (images * math.prod(places) + plain_once) * inner * out
    costs: dict[float, Method | None] = {WORTH * plain: None}
    for method in [Method(side - kernel[0] + 1, kernel[0]) for side in POINTS if 1 < kernel[0] < side]:
        tiles = images * math.prod(-(-n // method.size) for n in places)
        cost = method.places * (tiles * (inner * out + TILE * (inner + out)) + once * inner * out)
        costs[cost] = method
    return costs[min(costs)]
