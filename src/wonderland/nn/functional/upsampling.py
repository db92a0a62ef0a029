"""Images, sequences and volumes made larger or smaller: interpolation, and channels that become places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ... import arrays
from ...arrays.conversion import as_inexact, as_tensor
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor, wrap
from ...core.typing import Array, ArrayLike, ShapeLike
from .pooling import pool_mean_to
from .windows import as_sizes, with_axes, with_one_batch

__all__ = ["interpolate", "pixel_shuffle", "pixel_unshuffle"]

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}  # the number of spatial axes says the name
MODES = ("nearest", "nearest-exact", *LINEAR, "bicubic", "area")


def interpolate(
    x: ArrayLike,
    size: ShapeLike | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    axes: int | None = None,
) -> Tensor:
    r"""x at other places of a grid: (..., h, w, c) to (..., h', w', c).

    >>> import wonderland as wl
    >>> x = wl.tensor([[1.0, 2.0], [3.0, 4.0]])[..., None]
    >>> wl.nn.functional.interpolate(x, scale_factor=2, axes=2)[..., 0]
    tensor([[1., 1., 2., 2.],
            [1., 1., 2., 2.],
            [3., 3., 4., 4.],
            [3., 3., 4., 4.]])
    >>> wl.nn.functional.interpolate(x, size=(2, 3), mode="bilinear", align_corners=True)[..., 0]
    tensor([[1. , 1.5, 2. ],
            [3. , 3.5, 4. ]])

    Give `size` or `scale_factor`, one number or one for each axis. Modes: "nearest", "nearest-exact" (the nearest
    centre), "linear", "bilinear" and "trilinear" (for 1, 2 and 3 spatial axes), "bicubic", and "area" (means, as
    `adaptive_avg_pool2d`). Place i of the result lies at \((i + \frac12)/s - \frac12\) for the factor s, so that
    pixels are squares; with `align_corners` at \(i (n-1)/(n'-1)\), so that the corners stay where they are.

    `axes` is the number of spatial axes; without it the mode says it, or an entry for each axis in `size` or
    `scale_factor`, or it is all axes but the first and the last.
    """
    name = "interpolate"
    if mode not in MODES:
        raise InputError(f"{name}: mode={mode!r}.", " or ".join(map(repr, MODES)))
    if (size is None) == (scale_factor is None):
        raise InputError(f"{name}: size={size} and scale_factor={scale_factor}.", "one of them")
    x = as_inexact(name, x)
    axes = _axes(name, x, size if scale_factor is None else scale_factor, mode, axes)
    x, lead = with_one_batch(name, x, axes)
    spatial = x.shape[1:-1]
    if scale_factor is None:
        sizes = as_sizes(name, "size", size, axes)
        ratios = [n / m for n, m in zip(spatial, sizes, strict=True)]  # how far the places lie apart in x
    else:
        given = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * axes
        scales = [as_number(name, "scale_factor", s) for s in given]
        if len(scales) != axes or not all(s > 0 and math.isfinite(s) for s in scales):
            raise InputError(f"{name}: scale_factor={scale_factor!r} for {axes} axes.", "numbers above 0")
        sizes = tuple(math.floor(n * s) for n, s in zip(spatial, scales, strict=True))
        ratios = [1 / s for s in scales]
        if 0 in sizes:
            raise ShapeError(f"{name}: a spatial shape {spatial} times {scales} is {sizes}.", "a larger factor")
    if mode == "area":
        return with_axes(pool_mean_to(name, axes, x, sizes), lead)
    for axis, (n, m, ratio) in enumerate(zip(spatial, sizes, ratios, strict=True), start=1):
        if mode.startswith("nearest"):
            x = _nearest(x, axis, m, ratio, exact=mode == "nearest-exact")
            continue
        if align_corners:
            ratio = (n - 1) / (m - 1) if m > 1 else 0.0
        at = np.arange(m) * ratio if align_corners else (np.arange(m) + 0.5) * ratio - 0.5
        weights = _cubic(at, n) if mode == "bicubic" else _linear(at, n)
        matrix = wrap(weights.astype(x.dtype))
        x = arrays.moveaxis(arrays.matmul(arrays.moveaxis(x, axis, -1), matrix), -1, axis)
    return with_axes(x, lead)


def _axes(name: str, x: Tensor, given: float | Sequence[float] | None, mode: str, axes: int | None) -> int:
    told = LINEAR.get(mode, 2 if mode == "bicubic" else None)
    found = [n for n in (told, axes, len(given) if isinstance(given, (tuple, list)) else None) if n is not None]
    count = as_int(name, "axes", found[0] if found else x.ndim - 2)
    if count not in (1, 2, 3) or any(n != count for n in found):
        raise InputError(
            f"{name}: mode={mode!r}, axes={axes} and {given!r} for an input of shape {x.shape}.",
            "the same number of spatial axes in all: 1, 2 or 3",
        )
    return count


def _nearest(x: Tensor, axis: int, size: int, ratio: float, exact: bool) -> Tensor:
    n = x.shape[axis]
    if size % n == 0 and math.isclose(ratio * size, n):
        many = arrays.broadcast_to(
            arrays.expand_dims(x, axis=axis + 1), (*x.shape[: axis + 1], size // n, *x.shape[axis + 1 :])
        )
        return arrays.reshape(many, (*x.shape[:axis], size, *x.shape[axis + 1 :]))
    at = np.floor((np.arange(size) + (0.5 if exact else 0.0)) * ratio).astype(int)
    return arrays.take(x, wrap(np.minimum(at, n - 1)), axis=axis)


def _linear(at: Array, n: int) -> Array:
    """The matrix (n, places) of weights of the two neighbours of each place; outside, of the first or last element."""
    at = np.clip(at, 0, n - 1)
    low = np.floor(at).astype(int)
    matrix = np.zeros((n, len(at)))
    np.add.at(matrix, (low, np.arange(len(at))), 1 - (at - low))
    np.add.at(matrix, (np.minimum(low + 1, n - 1), np.arange(len(at))), at - low)
    return matrix


def _cubic(at: Array, n: int, a: float = -0.75) -> Array:
    """The matrix of cubic convolution over four neighbours."""
    low = np.floor(at).astype(int)
    t = at - low
    matrix = np.zeros((n, len(at)))
    for offset, distance in ((-1, 1 + t), (0, t), (1, 1 - t), (2, 2 - t)):
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = a * (((distance - 5) * distance + 8) * distance - 4)
        weight = near if offset in (0, 1) else far
        np.add.at(matrix, (np.clip(low + offset, 0, n - 1), np.arange(len(at))), weight)
    return matrix


def pixel_shuffle(x: ArrayLike, upscale_factor: int, axes: int = 2) -> Tensor:
    """Channels that become places: (..., h, w, c r r) to (..., h r, w r, c), after a convolution of sub-pixels.

    >>> import wonderland as wl
    >>> wl.nn.functional.pixel_shuffle(wl.arange(4.0).reshape(1, 1, 4), 2)[..., 0]
    tensor([[0., 1.],
            [2., 3.]])

    Channel (z r + i) r + j goes to place (i, j) of channel z. Nothing is computed, and `pixel_unshuffle` is the
    inverse.
    """
    name = "pixel_shuffle"
    r, axes = as_int(name, "upscale_factor", upscale_factor, 1), as_int(name, "axes", axes, 1)
    x, lead = with_one_batch(name, as_tensor(name, x), axes)
    batch, *spatial, channels = x.shape
    if channels % r**axes:
        raise ShapeError(
            f"{name}: {channels} channels of shape {(*lead, *x.shape[1:])} are not a multiple of {r}^{axes}.",
            f"(..., *spatial, channels {r**axes})",
        )
    x = arrays.reshape(x, (batch, *spatial, channels // r**axes, *[r] * axes))
    order = [axis for a in range(axes) for axis in (1 + a, 2 + axes + a)]
    x = arrays.permute_dims(x, (0, *order, 1 + axes))
    return with_axes(arrays.reshape(x, (batch, *[n * r for n in spatial], channels // r**axes)), lead)


def pixel_unshuffle(x: ArrayLike, downscale_factor: int, axes: int = 2) -> Tensor:
    """Places that become channels: (..., h r, w r, c) to (..., h, w, c r r), the inverse of `pixel_shuffle`.

    >>> import wonderland as wl
    >>> wl.nn.functional.pixel_unshuffle(wl.ones((2, 8, 8, 3)), 4).shape
    (2, 2, 2, 48)
    """
    name = "pixel_unshuffle"
    r, axes = as_int(name, "downscale_factor", downscale_factor, 1), as_int(name, "axes", axes, 1)
    x, lead = with_one_batch(name, as_tensor(name, x), axes)
    batch, *spatial, channels = x.shape
    if any(n % r for n in spatial):
        raise ShapeError(f"{name}: the spatial shape {tuple(spatial)} is not a multiple of {r}.", "padding, or a crop")
    split = [size for n in spatial for size in (n // r, r)]
    x = arrays.reshape(x, (batch, *split, channels))
    x = arrays.permute_dims(x, (0, *range(1, 2 * axes, 2), 2 * axes + 1, *range(2, 2 * axes + 1, 2)))
    return with_axes(arrays.reshape(x, (batch, *[n // r for n in spatial], channels * r**axes)), lead)
