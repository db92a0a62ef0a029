"""Pooling as expressions: a window is a few shifted views of one tensor, so its work fuses with what is around it.

Position t of the window that belongs to result q is the place q * stride + t * dilation of the padded tensor.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from ...core import dtypes
from ...ir.graph import Equation
from ...primitives.pooling import first_places
from . import values
from .pieces import Piece, Pieces
from .tuning import HEAVIEST, WINDOW
from .values import Buffer, Const, Op, Value, View

if TYPE_CHECKING:
    from .schedule import Schedule

Padding = tuple[tuple[int, int], ...]


def _padded(s: Schedule, value: Value, padding: Padding, fill: float) -> Value:
    """The value with `fill` around its spatial axes; negative padding takes places away."""
    if all(low == high == 0 for low, high in padding):
        return value
    batch, *spatial, channels = value.shape
    images, features = (0, batch, 1), (0, channels, 1)
    cut = [(max(0, -low), n - max(0, -high), 1) for n, (low, high) in zip(spatial, padding, strict=True)]
    left = [max(0, stop - start) for start, stop, _ in cut]
    inner = values.sliced(value, (images, *cut, features), (batch, *left, channels))
    grown = (batch, *[n + max(0, low) + max(0, high) for n, (low, high) in zip(left, padding, strict=True)], channels)
    if grown == inner.shape:
        return inner
    target = s.new(grown, value.dtype)
    s.copy(Const(fill, value.dtype, grown), target)
    places = [(max(0, low), max(0, low) + n, 1) for n, (low, _) in zip(left, padding, strict=True)]
    index = (images, *places, features)
    place = values.sliced(target, index, inner.shape)
    assert isinstance(place, View)
    s.copy(inner, place)
    return target


def _shifted(s: Schedule, e: Equation, fill: float) -> list[Value]:
    """What the windows see at each of their positions."""
    window, stride, padding, dilation = (e.params[k] for k in ("window", "stride", "padding", "dilation"))
    value = s.elsewhere(e.inputs[0])
    overlap = math.prod(window) > math.prod(stride)
    # an expression is written out for each place of the window, and where windows overlap also computed again
    large = isinstance(value, Op) and value.weight * math.prod(window) > HEAVIEST
    if overlap or large or any(p != (0, 0) for p in padding):
        value = s.in_memory(value)
    value = s.answered_for(value)
    value = _padded(s, value, padding, fill)
    out = e.outputs[0].shape[1:-1]
    found = []
    for position in itertools.product(*[range(n) for n in window]):
        index = [(0, value.shape[0], 1)]
        for t, apart, step, count in zip(position, dilation, stride, out, strict=True):
            index.append((t * apart, t * apart + (count - 1) * step + 1, step))
        found.append(values.sliced(value, (*index, (0, value.shape[-1], 1)), e.outputs[0].shape))
    return found


def argmax(s: Schedule, e: Equation) -> bool:
    (out,), x = e.outputs, e.inputs[0]
    if not _possible(e) or not dtypes.is_floating(x.dtype):
        return False
    first, *rest = _shifted(s, e, -math.inf)
    best: Value = first
    where = _first_inside(e)
    for k, value in enumerate(rest, 1):
        # larger, or the first that is not a number; -inf never is, so a window of nothing else keeps its first element
        larger: Value = Op("less_equal", [value, best], out.shape, dtypes.bool_)
        larger = Op("bitwise_invert", [larger], out.shape, dtypes.bool_)
        number = Op("equal", [best, best], out.shape, dtypes.bool_)
        larger = Op("bitwise_and", [larger, number], out.shape, dtypes.bool_)
        best = Op("where", [larger, value, best], out.shape, x.dtype)
        where = Op("where", [larger, Const(k, out.dtype, out.shape), where], out.shape, out.dtype)
    s.bind(out, where)
    s.bind_largest(x, out, best)
    return True


def _first_inside(e: Equation) -> Value:
    """The first place of each window that lies on an element: what begins with padding must not choose that."""
    (out,), (x,) = e.outputs, e.inputs
    if all(low <= 0 for low, _ in e.params["padding"]):
        return Const(0, out.dtype, out.shape)
    data = first_places(x.shape[1:-1], out.shape[1:-1], **e.params).astype(out.dtype)
    spatial = values.whole(Buffer("constant", data.size, out.dtype, data=data), data.shape)
    return View(spatial.buffer, out.shape, (0, *spatial.strides, 0))


def pick(s: Schedule, e: Equation) -> bool:
    (out,), (x, index) = e.outputs, e.inputs
    if not _possible(e):
        return False
    known = s.largest(x, index)
    if known is not None:
        s.bind(out, s.settled(known))
        return True
    where = s.value(index)
    found: Value = Const(0, out.dtype, out.shape)
    for k, value in enumerate(_shifted(s, e, 0)):
        here = Op("equal", [where, Const(k, where.dtype, out.shape)], out.shape, dtypes.bool_)
        found = Op("where", [here, value, found], out.shape, out.dtype)
    s.bind(out, found)
    return True


def sum_(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if not _possible(e) or dtypes.is_half(out.dtype):
        return False
    total, *rest = _shifted(s, e, 0)
    for value in rest:
        total = Op("add", [total, value], out.shape, out.dtype)
    s.bind(out, total)
    return True


def spread(s: Schedule, e: Equation) -> bool:
    """`window_spread`, and `window_put`, where only one position of each window receives."""
    (out,), index = e.outputs, e.inputs[1] if len(e.inputs) > 1 else None
    if not _possible(e) or (dtypes.is_half(out.dtype) and _overlaps(e)):
        return False
    window, stride, padding, dilation = (e.params[k] for k in ("window", "stride", "padding", "dilation"))
    spatial, counts = out.shape[1:-1], e.inputs[0].shape[1:-1]
    plans = [_axis(*plan) for plan in zip(spatial, counts, window, stride, padding, dilation, strict=True)]
    pads = tuple((low, high) for _, low, high in plans)
    given = _padded(s, s.keep(s.value(e.inputs[0])) if _overlaps(e) else s.often(e.inputs[0]), pads, 0)
    where = None if index is None else _padded(s, s.often(index), pads, 0)
    pieces: list[Piece] = []
    for parts in itertools.product(*[plan for plan, _, _ in plans]):
        shape = (out.shape[0], *[part.count for part in parts], out.shape[-1])
        total: Value | None = None
        for taps in itertools.product(*[part.taps for part in parts]):
            cut = [(start, start + part.count, 1) for (_, start), part in zip(taps, parts, strict=True)]
            slices = ((0, shape[0], 1), *cut, (0, shape[-1], 1))
            term = values.sliced(given, slices, shape)
            if where is not None:
                number = 0
                for (t, _), n in zip(taps, window, strict=True):
                    number = number * n + t
                there = values.sliced(where, slices, shape)
                here = Op("equal", [there, Const(number, there.dtype, shape)], shape, dtypes.bool_)
                term = Op("where", [here, term, Const(0, out.dtype, shape)], shape, out.dtype)
            total = term if total is None else Op("add", [total, term], shape, out.dtype)
        if total is not None and 0 not in shape:
            place = ((0, out.shape[0], 1), *[part.place for part in parts], (0, out.shape[-1], 1))
            pieces.append((place, total))
    s.assemble(out, Pieces(out.shape, pieces))
    return True


class _Part:
    """The places of an axis with one remainder: where they are, and which positions of which windows reach them."""

    def __init__(self, place: tuple[int, int, int], count: int, taps: list[tuple[int, int]]) -> None:
        self.place, self.count, self.taps = place, count, taps


def _axis(
    size: int, results: int, window: int, stride: int, padding: tuple[int, int], dilation: int
) -> tuple[list[_Part], int, int]:
    """The parts of an axis, and by how many zeros the results must be extended at its ends."""
    low = padding[0]
    found = []
    before = after = 0
    for r in range(stride):
        first = -(-(low - r) // stride)  # the first m with m stride + r >= low
        count = (low + size - 1 - r) // stride - first + 1
        taps = [(t, (t * dilation - r) // stride) for t in range(window) if (t * dilation - r) % stride == 0]
        if count > 0 and taps:
            found.append((first, count, taps, r))
            before = max(before, max(back - first for _, back in taps))
            after = max(after, max(first + count - back for _, back in taps) - results)
    before, after = max(0, before), max(0, after)
    parts = []
    for first, count, taps, r in found:
        start = first * stride + r - low
        place = (start, start + (count - 1) * stride + 1, stride)
        parts.append(_Part(place, count, [(t, first - back + before) for t, back in taps]))
    return parts, before, after


def _overlaps(e: Equation) -> bool:
    reach = [(n - 1) * apart + 1 for n, apart in zip(e.params["window"], e.params["dilation"], strict=True)]
    return any(n > step for n, step in zip(reach, e.params["stride"], strict=True))


def _possible(e: Equation) -> bool:
    shapes = [a.shape for a in [*e.inputs, *e.outputs]]
    few = math.prod(e.params["window"]) <= WINDOW
    return few and all(math.prod(shape) for shape in shapes)


RULES = {
    "window_argmax": argmax,
    "window_pick": pick,
    "window_sum": sum_,
    "window_spread": spread,
    "window_put": spread,
}
