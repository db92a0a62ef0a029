"""Windows that slide over the spatial axes of (batch, *spatial, channels): how many there are, and what they see.

Along each spatial axis a window has `window` places, `dilation` apart, and the next window starts `stride` further on.
The axis is first extended by `padding` = (low, high) places at its ends; a negative number cuts places off instead.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.errors import InputError, ShapeError
from ..core.primitive import Shape
from ..core.typing import Array, Number

Pairs = tuple[tuple[int, int], ...]


def extents(window: Shape, dilation: Shape) -> Shape:
    """How far a window reaches along each axis, from its first place to its last."""
    return tuple(d * (k - 1) + 1 for k, d in zip(window, dilation, strict=True))


def padded_shape(spatial: Shape, padding: Pairs) -> Shape:
    """The spatial shape with the padding."""
    kept = [max(n + min(low, 0) + min(high, 0), 0) for n, (low, high) in zip(spatial, padding, strict=True)]
    return tuple(n + max(low, 0) + max(high, 0) for n, (low, high) in zip(kept, padding, strict=True))


def count_windows(name: str, spatial: Shape, window: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Shape:
    """The number of windows along each axis: (n + low + high - extent) // stride + 1."""
    if not len(spatial) == len(window) == len(stride) == len(padding) == len(dilation):
        raise ShapeError(
            f"{name}: spatial shape {spatial}, window {window}, stride {stride}, padding {padding} and dilation "
            f"{dilation} do not name the same axes.",
            "one entry for each spatial axis of (batch, *spatial, channels)",
        )
    for what, sizes in (("window", window), ("stride", stride), ("dilation", dilation)):
        if min(sizes, default=1) < 1:
            raise InputError(f"{name}: {what} {sizes} is not positive.", "1 or more along each axis")
    reaches, room = extents(window, dilation), padded_shape(spatial, padding)
    if any(n < reach for n, reach in zip(room, reaches, strict=True)):
        raise ShapeError(
            f"{name}: a window of shape {window} with dilation {dilation} does not fit into the spatial shape "
            f"{spatial} with padding {padding}: it reaches over {reaches} places where there are {room}.",
            "a smaller window, more padding, or a larger input",
        )
    return tuple((n - reach) // step + 1 for n, reach, step in zip(room, reaches, stride, strict=True))


def _common(spatial: Shape, padding: Pairs) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The part that the tensor and the padded tensor share, as an index of the one and of the other."""
    inside, outside = [slice(None)], [slice(None)]
    for n, (low, high) in zip(spatial, padding, strict=True):
        start, stop = max(-low, 0), n - max(-high, 0)
        inside.append(slice(start, max(start, stop)))
        outside.append(slice(max(low, 0), max(low, 0) + max(stop - start, 0)))
    return tuple(inside), tuple(outside)


def pad(x: Array, padding: Pairs, fill: Number = 0) -> Array:
    """The array with its spatial axes extended, or cut."""
    if not any(low or high for low, high in padding):
        return x
    inside, outside = _common(x.shape[1:-1], padding)
    out = np.full((x.shape[0], *padded_shape(x.shape[1:-1], padding), x.shape[-1]), fill, x.dtype)
    out[outside] = x[inside]
    return out


def unpad(x: Array, spatial: Shape, padding: Pairs) -> Array:
    """The transpose of `pad`: back to the spatial shape, with zeros where something was cut off."""
    if not any(low or high for low, high in padding):
        return x
    inside, outside = _common(spatial, padding)
    if all(low >= 0 and high >= 0 for low, high in padding):
        return x[outside]
    out = np.zeros((x.shape[0], *spatial, x.shape[-1]), x.dtype)
    out[inside] = x[outside]
    return out


def places(counts: Shape, window: Shape, stride: Shape, dilation: Shape) -> Iterator[tuple[slice, ...]]:
    """For each place of the window, row by row, the index of what all windows have there in a padded array."""
    for place in np.ndindex(*window):
        starts = [t * d for t, d in zip(place, dilation, strict=True)]
        ends = [a + s * (n - 1) + 1 for a, s, n in zip(starts, stride, counts, strict=True)]
        yield (slice(None), *map(slice, starts, ends, stride))
