"""Patches of images, sequences and volumes: taken apart, and added up again. Book, D.7.1 and chapter 7 (exercises)."""

from __future__ import annotations

import functools
import math

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ...primitives.structure import place, take_slice
from ...primitives.windows import Pairs, count_windows, padded_shape
from .windows import PaddingLike, Sizes, as_padding, as_sizes, check_fit, with_axes, with_one_batch

__all__ = ["extract_patches", "fold", "unfold"]


def unfold(
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    axes: int = 2,
) -> Tensor:
    r"""The patches as vectors, \(\mathrm{vect}(P_k(i, j))\): (..., h, w, c) to (..., h', w', s s c). Book, D.7.1.

    >>> import wonderland as wl
    >>> F, x, w = wl.nn.functional, wl.random.normal((2, 8, 8, 3)), wl.random.normal((5, 5, 3, 4))
    >>> F.unfold(x, 5).shape
    (2, 4, 4, 75)
    >>> bool(wl.isclose(F.unfold(x, 5) @ w.reshape(-1, 4), F.conv2d(x, w), atol=1e-4).all())
    True

    A convolution is a product of them with the filter as a matrix. `kernel_size`, `stride`, `padding` and `dilation`
    are as in `conv2d`; if all are single numbers, `axes` is the number of spatial axes. The transpose is `fold`.
    """
    patches = extract_patches(x, kernel_size, stride, padding, dilation, axes)
    axes = _axes("unfold", axes, kernel_size, stride, padding, dilation)
    front = patches.shape[: patches.ndim - axes - 1]
    return arrays.reshape(patches, (*front, math.prod(patches.shape[len(front) :])))


def extract_patches(
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    axes: int = 2,
) -> Tensor:
    """The patches as they are: (..., h, w, c) to (..., h', w', s, s, c), and (..., t, c) to (..., t', s, c).

    >>> import wonderland as wl
    >>> wl.nn.functional.extract_patches(wl.arange(1.0, 6.0)[:, None], (3,))[..., 0]
    tensor([[1., 2., 3.],
            [2., 3., 4.],
            [3., 4., 5.]])

    Arguments are those of `unfold`. Book, D.7.1 and section 8.1.2.
    """
    name = "unfold"
    axes = _axes(name, axes, kernel_size, stride, padding, dilation)
    x, lead = with_one_batch(name, as_tensor(name, x), axes)
    window, steps, pairs, dilations = _windows(name, axes, kernel_size, stride, padding, dilation)
    check_fit(name, (*lead, *x.shape[1:]), window, pairs, dilations)
    counts = count_windows(name, x.shape[1:-1], window, steps, pairs, dilations)
    if any(low or high for low, high in pairs):
        x = arrays.pad(x, ((0, 0), *pairs, (0, 0)))
    # axis by axis, so there are as many slices as the sum of the sizes and not their product
    for a in range(axes):
        at = 1 + 2 * a
        taps = _taps(counts[a], window[a], steps[a], dilations[a])
        x = arrays.stack([take_slice(x, at, *tap) for tap in taps], axis=at + 1)
    places, kernel = range(1, 2 * axes, 2), range(2, 2 * axes + 1, 2)
    return with_axes(arrays.permute_dims(x, (0, *places, *kernel, 2 * axes + 1)), lead)


def fold(
    patches: ArrayLike,
    output_size: ShapeLike,
    kernel_size: ShapeLike,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    axes: int = 2,
) -> Tensor:
    """The transpose of `unfold`: (..., h', w', s s c) to (..., h, w, c), where patches that overlap are added.

    >>> import wonderland as wl
    >>> F = wl.nn.functional
    >>> F.fold(F.unfold(wl.ones((4, 4, 1)), 3, padding=1), (4, 4), 3, padding=1)[..., 0]
    tensor([[4., 6., 6., 4.],
            [6., 9., 9., 6.],
            [6., 9., 9., 6.],
            [4., 6., 6., 4.]])

    `output_size` is (h, w). After `unfold` it multiplies each pixel by the number of patches that cover it. With
    patches side by side (stride = kernel_size) it is the inverse of `unfold`.
    """
    name = "fold"
    axes = _axes(name, axes, output_size, kernel_size, stride, padding, dilation)
    y = as_tensor(name, patches)
    window, steps, pairs, dilations = _windows(name, axes, kernel_size, stride, padding, dilation)
    spatial = as_sizes(name, "output_size", output_size, axes)
    check_fit(name, (*spatial, 1), window, pairs, dilations)
    counts, size = count_windows(name, spatial, window, steps, pairs, dilations), math.prod(window)
    if y.ndim < axes + 1 or y.shape[-axes - 1 : -1] != counts or y.shape[-1] % size:
        raise ShapeError(
            f"{name}: patches of shape {y.shape}, where an output of {spatial} has {counts} patches of {size} places "
            f"times channels (kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}).",
            f"(..., {', '.join(map(str, counts))}, {size} channels)",
        )
    y, lead = with_one_batch(name, y, axes)
    y = arrays.reshape(y, (*y.shape[:-1], *window, y.shape[-1] // size))
    order = [axis for a in range(axes) for axis in (1 + a, 1 + axes + a)]
    y = arrays.permute_dims(y, (0, *order, 2 * axes + 1))
    room = padded_shape(spatial, pairs)
    for a in range(axes - 1, -1, -1):
        at = 1 + 2 * a
        y = _overlap(y, at, room[a], _taps(counts[a], window[a], steps[a], dilations[a]))
    inside = tuple(slice(low, low + n) for (low, _), n in zip(pairs, spatial, strict=True))
    return with_axes(y[(slice(None), *inside)], lead)


def _overlap(y: Tensor, at: int, size: int, taps: list[tuple[int, int, int]]) -> Tensor:
    """(.., places, taps, ..) added up to (.., size, ..) along the axis `at`."""
    parts = []
    for t, tap in enumerate(taps):
        part = y[(*[slice(None)] * (at + 1), t)]
        index = tuple(tap if axis == at else (0, None, 1) for axis in range(part.ndim))
        parts.append(place(part, shape=(*part.shape[:at], size, *part.shape[at + 1 :]), index=index))
    return functools.reduce(arrays.add, parts)


def _taps(count: int, window: int, stride: int, dilation: int) -> list[tuple[int, int, int]]:
    """For each place of a window along an axis, the slice (start, stop, step) that all windows have there."""
    return [(t * dilation, t * dilation + stride * (count - 1) + 1, stride) for t in range(window)]


def _axes(name: str, axes: int, *settings: object) -> int:
    """The number of spatial axes: that of a setting with an entry for each, or as given."""
    lengths = {len(s) for s in settings if isinstance(s, (tuple, list))} or {as_int(name, "axes", axes)}
    if len(lengths) > 1 or not lengths <= {1, 2, 3}:
        raise InputError(f"{name}: settings for {sorted(lengths)} spatial axes.", "1, 2 or 3 axes, the same for all")
    return lengths.pop()


def _windows(
    name: str, axes: int, kernel_size: ShapeLike, stride: ShapeLike, padding: PaddingLike, dilation: ShapeLike
) -> tuple[Sizes, Sizes, Pairs, Sizes]:
    window, steps, dilations = (
        as_sizes(name, what, value, axes)
        for what, value in (("kernel_size", kernel_size), ("stride", stride), ("dilation", dilation))
    )
    return window, steps, as_padding(name, padding, window, steps, dilations), dilations
