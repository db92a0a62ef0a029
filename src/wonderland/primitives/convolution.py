r"""Convolution and its two transposes, with channels last. Book, section 7.1.3.

Three primitives come from one trilinear form of an input x, a filter w and an output y,

    sum over b, p, t, i, o of  x[b, stride p + dilation t - low, i] w[t, i, o] y[b, p, o]

where p runs over the places of the output, t over those of the kernel, and x is 0 outside its shape. Each gives
the factor of one of the three tensors, so the transposes of any of them are the other two. With `groups`, channels
i and o belong to one of so many equal groups, and only channels of the same group meet.

    x  (batch, *spatial, in)    w  (*kernel, in / groups, out)    y  (batch, *places, out)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..core.dtypes import float32, is_half
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.primitive import LINEAR, Aval, Primitive, Rule, Shape
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .creation import full
from .structure import reshape, transpose
from .windows import Pairs, count_windows, pad, padded_shape, places, unpad

CHUNK = 1 << 19  # bytes of patches that are laid out at a time: they stay in the processor's cache

# --- shapes


def _check(name: str, x: Shaped, y: Shaped, groups: int) -> None:
    if x.dtype != y.dtype or x.dtype.kind == "b":
        raise DTypeError(f"{name}: dtypes {x.dtype} and {y.dtype}.", "two numeric tensors of one dtype")
    if len(x.shape) < 3 or len(y.shape) != len(x.shape):
        raise ShapeError(
            f"{name}: shapes {x.shape} and {y.shape}.",
            "(batch, *spatial, channels) and (*kernel, in / groups, out) with the same number of spatial axes",
        )
    if groups < 1:
        raise InputError(f"{name}: groups={groups}.", "1 or more")


def _check_groups(name: str, what: str, channels: int, groups: int) -> None:
    if channels % groups:
        raise ShapeError(
            f"{name}: {channels} {what} channels do not divide into {groups} groups.",
            "a number of channels that is a multiple of groups",
        )


def _check_places(name: str, got: Shape, wanted: Shape) -> None:
    if got != wanted:
        raise ShapeError(
            f"{name}: the windows lie at {wanted} places, and the output's spatial shape is {got}.",
            f"an output of shape (batch, {', '.join(map(str, wanted))}, channels)",
        )


def _convolution_abstract(x: Shaped, w: Shaped, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> Aval:
    name = "convolution"
    _check(name, x, w, groups)
    _check_groups(name, "input", x.shape[-1], groups)
    _check_groups(name, "output", w.shape[-1], groups)
    if w.shape[-2] * groups != x.shape[-1]:
        within = f" in {groups} groups of {x.shape[-1] // groups}" if groups > 1 else ""
        raise ShapeError(
            f"{name}: an input of shape {x.shape} has {x.shape[-1]} channels{within}, and a filter of shape {w.shape} "
            f"takes {w.shape[-2]}.",
            "channels last: (batch, *spatial, in) with a filter (*kernel, in / groups, out)",
        )
    counts = count_windows(name, x.shape[1:-1], w.shape[:-2], stride, padding, dilation)
    return Aval((x.shape[0], *counts, w.shape[-1]), x.dtype)


def _input_abstract(
    y: Shaped, w: Shaped, spatial: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Aval:
    name = "convolution_input"
    _check(name, y, w, groups)
    _check_groups(name, "output", w.shape[-1], groups)
    if y.shape[-1] != w.shape[-1]:
        raise ShapeError(
            f"{name}: an output of shape {y.shape} has {y.shape[-1]} channels, and a filter of shape {w.shape} "
            f"makes {w.shape[-1]}.",
            "(batch, *places, out) with a filter (*kernel, in / groups, out)",
        )
    counts = count_windows(name, spatial, w.shape[:-2], stride, padding, dilation)
    _check_places(name, y.shape[1:-1], counts)
    return Aval((y.shape[0], *spatial, w.shape[-2] * groups), y.dtype)


def _weight_abstract(
    x: Shaped, y: Shaped, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Aval:
    name = "convolution_weight"
    _check(name, x, y, groups)
    _check_groups(name, "input", x.shape[-1], groups)
    _check_groups(name, "output", y.shape[-1], groups)
    if x.shape[0] != y.shape[0]:
        raise ShapeError(f"{name}: batches of {x.shape[0]} and {y.shape[0]} examples.", "one batch")
    _check_places(name, y.shape[1:-1], count_windows(name, x.shape[1:-1], kernel, stride, padding, dilation))
    return Aval((*kernel, x.shape[-1] // groups, y.shape[-1]), x.dtype)


# --- with NumPy: a matrix product of patches, laid out as rows, with the filter


def _widened(f: Rule) -> Rule:
    """Half precision is computed in float32 and rounded once."""

    def impl(x: Array, y: Array, **params: object) -> Array:
        if is_half(x.dtype):
            return f(x.astype(float32), y.astype(float32), **params).astype(x.dtype)
        return f(x, y, **params)

    return impl


def _by_group(rows: Array, groups: int) -> Array:
    """(..., channels) as matrices (groups, rows, channels / groups), of outputs or of a filter."""
    *front, channels = rows.shape
    return rows.reshape(math.prod(front), groups, channels // groups).transpose(1, 0, 2)


def _patches(
    x: Array, counts: Shape, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Iterator[tuple[slice, Array]]:
    """Parts of the batch, with the patches under their windows as (groups, rows, kernel in / groups)."""
    x = pad(x, padding)
    steps = x.strides[1:-1]
    shape = (x.shape[0], *counts, *kernel, groups, x.shape[-1] // groups)
    strides = (
        x.strides[0],
        *[n * s for n, s in zip(steps, stride, strict=True)],
        *[n * d for n, d in zip(steps, dilation, strict=True)],
        x.strides[-1] * shape[-1],
        x.strides[-1],
    )
    windows = np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
    m = len(counts)
    grouped = windows.transpose(2 * m + 1, *range(2 * m + 1), 2 * m + 2)
    width = math.prod(kernel) * shape[-1]
    size = max(1, CHUNK // max(1, math.prod(counts) * width * groups * x.itemsize))
    for start in range(0, x.shape[0], size):
        part = slice(start, min(start + size, x.shape[0]))
        rows = (part.stop - part.start) * math.prod(counts)
        yield part, grouped[:, part].reshape(groups, rows, width)


def _convolution(x: Array, w: Array, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> Array:
    shape = _convolution_abstract(x, w, stride, padding, dilation, groups).shape
    counts, kernel = shape[1:-1], w.shape[:-2]
    if groups > 1 and w.shape[-2] == 1:  # depthwise: one product of numbers for each place
        out = np.zeros((*shape[:-1], groups, shape[-1] // groups), x.dtype)
        taps = w.reshape(math.prod(kernel), *out.shape[-2:])
        x = pad(x, padding)
        for tap, place in zip(taps, places(counts, kernel, stride, dilation), strict=True):
            out += x[place][..., None] * tap
        return out.reshape(shape)
    out = np.empty(shape, x.dtype)
    matrices = _by_group(w, groups)
    for part, rows in _patches(x, counts, kernel, stride, padding, dilation, groups):
        np.matmul(rows, matrices, out=_by_group(out[part], groups))
    return out


def _input(y: Array, w: Array, spatial: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> Array:
    shape = _input_abstract(y, w, spatial, stride, padding, dilation, groups).shape
    counts, kernel = y.shape[1:-1], w.shape[:-2]
    out = np.zeros((shape[0], *padded_shape(spatial, padding), shape[-1]), y.dtype)
    taps = w.reshape(math.prod(kernel), w.shape[-2], groups, w.shape[-1] // groups).transpose(0, 2, 3, 1)
    depthwise = groups > 1 and w.shape[-2] == 1
    rows = y.reshape(*y.shape[:-1], *taps.shape[1:3]) if depthwise else _by_group(y, groups)
    for tap, place in zip(taps, places(counts, kernel, stride, dilation), strict=True):
        seen = out[place]
        if depthwise:
            products = rows * tap[..., 0]
            seen += products[..., 0] if products.shape[-1] == 1 else products.sum(axis=-1)
        else:
            seen += np.matmul(rows, tap).transpose(1, 0, 2).reshape(seen.shape)
    return unpad(out, spatial, padding)


def _weight(x: Array, y: Array, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> Array:
    shape = _weight_abstract(x, y, kernel, stride, padding, dilation, groups).shape
    counts = y.shape[1:-1]
    if groups > 1 and shape[-2] == 1:
        x, rows = pad(x, padding), math.prod(y.shape[:-1])
        y = y.reshape(rows, groups, y.shape[-1] // groups)
        seen = [x[place].reshape(rows, groups) for place in places(counts, kernel, stride, dilation)]
        return np.stack([np.einsum("rg,rgo->go", tap, y) for tap in seen]).reshape(shape)
    out = np.zeros((groups, math.prod(shape[:-1]), shape[-1] // groups), x.dtype)
    for part, rows in _patches(x, counts, kernel, stride, padding, dilation, groups):
        out += np.matmul(rows.transpose(0, 2, 1), _by_group(y[part], groups))
    return out.transpose(1, 0, 2).reshape(shape)


# --- many at once

# The indices of the form: b is the batch, g a group, i and o the channels of a group; spatial axes are left out.
INDICES = {"x": "bgi", "w": "igo", "y": "bgo"}


def _position(of: str, index: str, ndim: int) -> int:
    """The axis of an index in a tensor whose channels are split into groups."""
    return 0 if index == "b" else INDICES[of].index(index) - 3 + ndim


def _fold(t: Tensor, of: str, into: str, groups: int) -> Tensor:
    """A tensor x, w or y with a batch in front; the batch becomes the outer part of the index `into`."""
    split = [*t.shape[1:-1], groups, t.shape[-1] // groups]
    at = _position(of, into, len(split))
    t = transpose(reshape(t, shape=(t.shape[0], *split)), axes=(*range(1, at + 1), 0, *range(at + 1, len(split) + 1)))
    split[at] *= t.shape[at]
    return reshape(t, shape=(*split[:-2], split[-2] * split[-1]))


def _unfold(t: Tensor, of: str, into: str, size: int, groups: int) -> Tensor:
    """The inverse of `_fold`."""
    pieces = groups * size if into == "g" else groups
    split = [*t.shape[:-1], pieces, t.shape[-1] // pieces]
    at = _position(of, into, len(split))
    split[at : at + 1] = [size, split[at] // size]
    t = transpose(reshape(t, shape=tuple(split)), axes=(at, *range(at), *range(at + 1, len(split))))
    return reshape(t, shape=(*t.shape[:-2], t.shape[-2] * t.shape[-1]))


def _batch(primitive: Primitive, first: str, second: str, result: str) -> Rule:
    """A batch is a further outer part of an index that the batched tensors share; if all are batched, of the group."""

    def batch(args: list[Tensor], batched: list[bool], groups: int, **params: object) -> Tensor:
        size = next(a.shape[0] for a, on in zip(args, batched, strict=True) if on)
        if not size:
            ones = [Aval(a.shape[1:] if on else a.shape, a.dtype) for a, on in zip(args, batched, strict=True)]
            one = primitive.abstract(*ones, groups=groups, **params)
            return full((0, *one.shape), 0, one.dtype)
        carriers = [of for of, on in zip((first, second, result), (*batched, True), strict=True) if on]
        into = "g" if len(carriers) == 3 else next(n for n in "bio" if all(n in INDICES[of] for of in carriers))
        folded = [
            _fold(a, of, into, groups) if on else a for a, of, on in zip(args, (first, second), batched, strict=True)
        ]
        out = primitive(*folded, groups=groups * size if into == "g" else groups, **params)
        return _unfold(out, result, into, size, groups)

    return batch


# --- the primitives


def _cost(y: Shaped, kernel: Shape, channels: int) -> int:
    return math.prod(y.shape) * math.prod(kernel) * channels


convolution: Primitive = Primitive(
    "convolution",
    _widened(_convolution),
    _convolution_abstract,
    jvp=(LINEAR, LINEAR),
    transpose=(
        lambda ct, x, w, **params: convolution_input(ct, w, spatial=x.shape[1:-1], **params),
        lambda ct, x, w, **params: convolution_weight(x, ct, kernel=w.shape[:-2], **params),
    ),
    cost=lambda x, w, **params: _cost(_convolution_abstract(x, w, **params), w.shape[:-2], w.shape[-2]),
    single=1 << 21,
)
convolution.batch = _batch(convolution, "x", "w", "y")

convolution_input: Primitive = Primitive(
    "convolution_input",
    _widened(_input),
    _input_abstract,
    jvp=(LINEAR, LINEAR),
    transpose=(
        lambda ct, y, w, spatial, **params: convolution(ct, w, **params),
        lambda ct, y, w, spatial, **params: convolution_weight(ct, y, kernel=w.shape[:-2], **params),
    ),
    cost=lambda y, w, **params: _cost(y, w.shape[:-2], w.shape[-2]),
    single=1 << 21,
)
convolution_input.batch = _batch(convolution_input, "y", "w", "x")

convolution_weight: Primitive = Primitive(
    "convolution_weight",
    _widened(_weight),
    _weight_abstract,
    jvp=(LINEAR, LINEAR),
    transpose=(
        lambda ct, x, y, kernel, **params: convolution_input(y, ct, spatial=x.shape[1:-1], **params),
        lambda ct, x, y, kernel, **params: convolution(x, ct, **params),
    ),
    cost=lambda x, y, kernel, groups, **params: _cost(y, kernel, x.shape[-1] // groups),
    single=1 << 21,
)
convolution_weight.batch = _batch(convolution_weight, "x", "y", "w")
