"""Native steps for convolution and its two transposes, channels last, along any number of spatial axes.

convolution(x, w)          out[b, p, o] = sum over t, c of  x[b, stride p + dilation t - low, c] w[t, c, o]
convolution_input(ct, w)   its transpose in x: for each remainder of places divided by the stride a convolution of
                           stride 1 with every so many taps of the filter, turned around
convolution_weight(x, ct)  its transpose in w: sums over images and places, in parts that are added in a fixed order
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import cast

from ....core import dtypes
from ....core.dtypes import DType
from ....ir.sizes import varying
from ..processor import Processor
from ..products.epilogue import Stores
from ..products.packing import packed
from ..products.steps import product_steps
from ..steps import Native
from ..values import Buffer, Hole, Shape, Value, View, reshaped, transposed
from .convolve import Convolve, PackFilter
from .filter_gradient import AddParts, FilterSums
from .overlap import overlapping_steps
from .patches import Axis, Channels, Phase, lanes_of
from .planes import Pairs, Planes, flat_filter, flat_filter_result, planes_of
from .winograd import winograd_steps
from .winograd_choice import gradient_method_for, method_for
from .winograd_gradient import winograd_gradient_steps


def supported(dtype: DType, *shapes: Shape) -> bool:
    """Whether there are native steps for a convolution among tensors of these shapes (operands and result)."""
    return dtypes.is_floating(dtype) and all(math.prod(shape) > 0 for shape in shapes)


def convolution_steps(
    cpu: Processor,
    x: Value,
    w: View,
    hole: Hole,
    stores: Stores,
    *,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
    fixed: Container[Buffer] = (),
) -> Sequence[Native]:
    """The steps of a convolution x (batch, *spatial, in), w (*kernel, in / groups, out); the hole is its result.

    What is done to a filter that is `fixed` is done once for many calls.
    """
    if _pointwise(w.shape[:-2], stride, padding):
        if isinstance(x, View) and groups == 1:
            return product_steps(cpu, x, _matrix(w, x.shape), hole, stores, fixed)
        if _few_places(x.shape):
            x, hole, stores = _turned(x), cast(Hole, _turned(hole)), _turned_stores(stores)
    planes = planes_of(w.shape[:-2], x.shape, hole.shape, stride, padding, dilation, groups)
    if planes and (found := _in_planes(cpu, planes, x, flat_filter(w), hole, stores, w.buffer in fixed)):
        return found
    axes = _two(
        [
            Axis(size, count, (Phase(taps, 0, low, 0),), step, apart)
            for size, count, taps, step, apart, (low, _) in zip(
                x.shape[1:-1], hole.shape[1:-1], w.shape[:-2], stride, dilation, padding, strict=True
            )
        ]
    )
    pack, depthwise = _packed(cpu, _by_group(w, groups, len(axes)), x.dtype)
    step = Convolve(cpu, x, pack, hole, stores, axes, depthwise)
    return [step] if pack.ready else [pack, step]


def convolution_input_steps(
    cpu: Processor,
    ct: Value,
    w: View,
    hole: Hole,
    stores: Stores,
    *,
    spatial: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
) -> Sequence[Native]:
    """The steps of the transpose in x: from ct (batch, *places, out) and w to (batch, *spatial, in)."""
    if _pointwise(w.shape[:-2], stride, padding):
        if isinstance(ct, View) and groups == 1:
            axes = (*range(len(w.shape) - 2), len(w.shape) - 1, len(w.shape) - 2)
            return product_steps(cpu, ct, _matrix(cast(View, transposed(w, axes)), ct.shape), hole, stores)
        if _few_places(ct.shape):
            ct, hole, stores = _turned(ct), cast(Hole, _turned(hole)), _turned_stores(stores)
            spatial = ct.shape[1:-1]
    elif groups == 1:
        lows = tuple(low for low, _ in padding)
        found = overlapping_steps(cpu, ct, w, hole, stores, stride=stride, lows=lows, dilation=dilation)
        if found is not None:
            return found
    planes = planes_of(w.shape[:-2], hole.shape, ct.shape, stride, padding, dilation, groups)
    if planes:  # a convolution with the taps turned around
        turned = cast(View, transposed(_last_first(flat_filter(w)), (0, 1, 3, 2)))
        lows = tuple(taps - 1 - low for taps, low in zip(turned.shape, planes.lows, strict=False))
        if found := _in_planes(cpu, planes._replace(lows=lows), ct, turned, hole, stores, fixed=False):
            return found
    kinds = [
        _phases(size, count, taps, step, apart, low)
        for size, count, taps, step, apart, (low, _) in zip(
            spatial, ct.shape[1:-1], w.shape[:-2], stride, dilation, padding, strict=True
        )
    ]
    if all(step == 1 for step in stride):  # one phase with all taps, the last one first: pack them in this order
        w = _last_first(w)
        kinds = [[replace(axis, phases=(axis.phases[0]._replace(first=0),), every=1)] for (axis,) in kinds]
    grouped = _by_group(w, groups, max(len(kinds), 2))
    shape = (*grouped.shape[:-2], grouped.shape[-1], grouped.shape[-2])
    strides = (*grouped.strides[:-2], grouped.strides[-1], grouped.strides[-2])
    packs, turned = _in_rows(cpu, View(w.buffer, shape, strides, grouped.offset))
    pack, depthwise = _packed(cpu, turned, ct.dtype)
    steps: list[Native] = packs if pack.ready else [*packs, pack]
    return steps + [
        Convolve(cpu, ct, pack, hole, stores, _two([*axes]), depthwise) for axes in itertools.product(*kinds)
    ]


def convolution_weight_steps(
    cpu: Processor,
    x: Value,
    ct: Value,
    hole: Hole,
    stores: Stores,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
) -> Sequence[Native]:
    """The steps of the transpose in w: from x (batch, *spatial, in) and ct to (*kernel, in / groups, out)."""
    if _pointwise(kernel, stride, padding):
        rows, columns = _tall(x), _tall(ct)
        if groups == 1 and isinstance(rows, View) and isinstance(columns, View):
            lead = (1,) * len(kernel)
            return product_steps(
                cpu, _led(cast(View, transposed(rows, (1, 0))), lead), _led(columns, lead), hole, stores
            )
        if _few_places(x.shape):
            x, ct = _turned(x), _turned(ct)
    planes = planes_of(kernel, x.shape, ct.shape, stride, padding, dilation, groups)
    if planes and (method := gradient_method_for((1, *kernel)[-2:], planes.of(ct).shape, x.shape[-1])):
        hole, stores = flat_filter_result(hole, stores)
        return winograd_gradient_steps(cpu, method, planes.of(x), planes.of(ct), hole, stores, planes.lows)
    axes = _two(
        [
            Axis(size, count, (Phase(taps, 0, low, 0),), step, apart)
            for size, count, taps, step, apart, (low, _) in zip(
                x.shape[1:-1], ct.shape[1:-1], kernel, stride, dilation, padding, strict=True
            )
        ]
    )
    depthwise = groups > 1 and x.shape[-1] == ct.shape[-1] == groups
    sums = FilterSums(cpu, x, ct, axes, 1 if depthwise else groups, depthwise)
    return [sums, AddParts(sums, hole, stores)]


def _in_planes(
    cpu: Processor, planes: Planes, x: Value, w: View, hole: Hole, stores: Stores, fixed: bool
) -> Sequence[Native]:
    """The steps of a convolution in fewer products; none where these take as long as plain sums."""
    hole, stores = planes.result(hole, stores)
    method = method_for(w.shape[:2], hole.shape, x.shape[-1], fixed)
    if method is None:
        return []
    packs, w = _in_rows(cpu, w)
    return [*packs, *winograd_steps(cpu, method, planes.of(x), w, hole, stores, planes.lows)]


# --- kernels of size 1: matrix products


def _pointwise(kernel: Shape, stride: Shape, padding: Pairs) -> bool:
    return all(k == 1 for k in kernel) and all(s == 1 for s in stride) and all(p == (0, 0) for p in padding)


def _few_places(shape: Shape) -> bool:
    """Whether the last spatial axis is better exchanged for the images, whose number is known."""
    return shape[-2] < shape[0] and not varying(shape)


def _led(matrix: View, lead: Shape) -> View:
    """The same matrix for every index of leading axes."""
    return View(matrix.buffer, (*lead, *matrix.shape), (*(0 for _ in lead), *matrix.strides), matrix.offset)


def _matrix(w: View, shape: Shape) -> View:
    """A filter (1, ..., 1, in, out) for the product with an operand of a shape."""
    return _led(View(w.buffer, w.shape[-2:], w.strides[-2:], w.offset), shape[:-2])


def _tall(value: Value) -> Value | None:
    """(batch, *spatial, channels) as a matrix, if it is evenly spaced."""
    return reshaped(value, (math.prod(value.shape[:-1]), value.shape[-1]))


def _turned(value: Value) -> Value:
    """(batch, *spatial, channels) as (*spatial, batch, channels): with windows of size 1 these are images as well.

    Blocks of places are cut from the last axis, so it should be a long one.
    """
    rank = len(value.shape)
    return transposed(value, (*range(1, rank - 1), 0, rank - 1))


def _turned_stores(stores: Stores) -> Stores:
    return [(cast(View, _turned(view)), _turned(value)) for view, value in stores]


# --- axes and filters


def _two(axes: list[Axis]) -> list[Axis]:
    """With a single axis, another one of size 1 before it."""
    return [Axis(1, 1), *axes] if len(axes) == 1 else axes


def _by_group(w: View, groups: int, axes: int) -> View:
    """A filter (*kernel, in, out) as (*kernel, groups, in, out / groups)."""
    *kernel, inner, out = w.shape
    *steps, step_in, step_out = w.strides
    kernel, steps = [1] * (axes - len(kernel)) + kernel, [0] * (axes - len(steps)) + steps
    shape = (*kernel, groups, inner, out // groups)
    return View(w.buffer, shape, (*steps, step_out * (out // groups), step_in, step_out), w.offset)


def _last_first(w: View) -> View:
    """A filter with the order of taps turned around."""
    axes = len(w.shape) - 2
    offset = w.offset + sum((n - 1) * s for n, s in zip(w.shape[:axes], w.strides[:axes], strict=True))
    return View(w.buffer, w.shape, (*(-s for s in w.strides[:axes]), *w.strides[axes:]), offset)


def _phases(size: int, count: int, taps: int, stride: int, dilation: int, low: int) -> list[Axis]:
    """The transpose along one axis, with a phase for each remainder of j + low divided by the stride.

    The place j of the result takes ct[(j + low - dilation t) / stride] for the taps t that leave no remainder: every
    so many of them. From the last such tap down this is a convolution of stride 1. If the stride does not divide the
    size, some phases have a place more than others; these are an axis of their own.
    """
    every = stride // math.gcd(stride, dilation)
    found: dict[int, list[Phase]] = {}
    for start in range(min(stride, size)):
        fit = [t for t in range(taps) if (start + low - dilation * t) % stride == 0]
        last = max(fit, default=0)
        seen = (start + low - dilation * last) // stride if fit else 0  # through the last tap, from the first place
        found.setdefault(len(range(start, size, stride)), []).append(Phase(len(fit), last, -seen, start))
    apart = dilation * every // stride
    return [Axis(count, n, tuple(phases), 1, apart, stride, -every) for n, phases in found.items()]


def _in_rows(cpu: Processor, w: View) -> tuple[list[Native], View]:
    """A filter (..., in, out) whose last axis goes along memory, and the step that copies it where it did not."""
    if w.strides[-1] == 1 or w.strides[-2] != 1:
        return [], w
    pack, copy = packed(cpu, w)
    return [pack], copy


def _packed(cpu: Processor, w: View, dtype: DType) -> tuple[PackFilter, bool]:
    """How a filter (*kernel, groups, in, out) is packed, and whether it is depthwise."""
    *kernel, groups, inner, out = w.shape
    depthwise = groups > 1 and inner == out == 1
    if depthwise:  # the groups are the channels of one
        w = View(w.buffer, (*kernel, 1, 1, groups), (*w.strides[:-3], 0, 0, w.strides[-3]), w.offset)
        out = groups
    return PackFilter(w, Channels(cpu, out, lanes_of(cpu, dtype))), depthwise
