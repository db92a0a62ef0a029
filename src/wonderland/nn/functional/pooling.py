"""Pooling: the largest or the mean element of windows, channel by channel. Book, section 7.2.1."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ... import arrays
from ...arrays.conversion import as_inexact, as_ordered
from ...core.arguments import as_number
from ...core.errors import ShapeError
from ...core.tensor import Tensor, wrap
from ...core.typing import Array, ArrayLike, ShapeLike
from ...primitives import pooling as p
from ...primitives.windows import Pairs, extents
from .windows import SPATIAL, PaddingLike, Sizes, as_padding, as_sizes, check_fit, with_axes, with_one_batch

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d",
]  # fmt: skip

# --- the largest element

OutputSize: TypeAlias = int | Sequence[int | None] | None  # for each axis a size, or None for that of the input


def max_pool1d(
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike | None = None,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of windows over (..., length, channels); see `max_pool2d`. Book, section 8.1.2.

    >>> import wonderland as wl
    >>> wl.nn.functional.max_pool1d(wl.tensor([1.0, 3.0, 2.0, 5.0])[:, None], 2)[:, 0]
    tensor([3., 5.])
    """
    return pool_max("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike | None = None,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of windows over (..., height, width, channels), channel by channel. Book, D.7.6.

    >>> import wonderland as wl
    >>> x = wl.arange(1.0, 17.0).reshape(4, 4, 1)
    >>> wl.nn.functional.max_pool2d(x, 2)[..., 0]
    tensor([[ 6., 8.],
            [14., 16.]])

    kernel_size, stride, dilation: one number or one for each axis; windows lie side by side unless there is a stride.
    padding: as in `conv2d`, but with places that are never the largest.
    ceil_mode: rows and columns at the end that do not fill a window make one, if it starts inside; otherwise they are
        left out.

    Of several largest elements the first one receives the derivative. A NaN is larger than all numbers.
    """
    return pool_max("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike | None = None,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of windows over (..., depth, height, width, channels); see `max_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.max_pool3d(wl.ones((4, 6, 6, 3)), 2).shape
    (2, 3, 3, 3)
    """
    return pool_max("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode)


def pool_max(
    name: Any,
    axes: int,
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike | None,
    padding: PaddingLike,
    dilation: ShapeLike,
    ceil_mode: bool,
) -> Tensor:
    x, lead = with_one_batch(name, as_ordered(name, x), axes)
    windows, _ = _windows(name, axes, (*lead, *x.shape[1:]), kernel_size, stride, padding, dilation, ceil_mode)
    return with_axes(p.window_pick(x, p.window_argmax(x, **windows), **windows), lead)


def _windows(
    name: str,
    axes: int,
    shape: Sizes,
    kernel_size: ShapeLike,
    stride: ShapeLike | None,
    padding: PaddingLike,
    dilation: ShapeLike,
    ceil_mode: bool,
) -> tuple[dict[str, Any], Pairs]:
    """The parameters of the primitives, and the padding without what ceil_mode adds."""
    spatial = shape[-axes - 1 : -1]
    window = as_sizes(name, "kernel_size", kernel_size, axes)
    steps = window if stride is None else as_sizes(name, "stride", stride, axes)
    dilation = as_sizes(name, "dilation", dilation, axes)
    pairs = asked = as_padding(name, padding, window, steps, dilation)
    if ceil_mode:
        pairs = tuple(map(_up, spatial, extents(window, dilation), steps, asked))
    check_fit(name, shape, window, pairs, dilation)
    return {"window": window, "stride": steps, "padding": pairs, "dilation": dilation}, asked


def _up(n: int, reach: int, stride: int, padding: tuple[int, int]) -> tuple[int, int]:
    """The padding with which a window covers the end, unless that window would start behind the last element."""
    low, high = padding
    more = -(n + low + high - reach) % stride
    start = n + low + high + more - reach
    return (low, high + more) if start < n + low else padding


# --- the mean


def avg_pool1d(
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike | None = None,
    padding: PaddingLike = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Tensor:
    """The mean of windows over (..., length, channels); see `avg_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.avg_pool1d(wl.tensor([1.0, 3.0, 2.0, 6.0])[:, None], 2)[:, 0]
    tensor([2., 4.])
    """
    return pool_mean("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool2d(
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike | None = None,
    padding: PaddingLike = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Tensor:
    """The mean of windows over (..., height, width, channels), channel by channel. Book, section 7.2.1.

    >>> import wonderland as wl
    >>> x = wl.arange(1.0, 17.0).reshape(4, 4, 1)
    >>> wl.nn.functional.avg_pool2d(x, 2)[..., 0]
    tensor([[ 3.5, 5.5],
            [11.5, 13.5]])

    Windows are as in `max_pool2d`, with zeros as padding. The sum is divided by the number of places of the window:
    with `count_include_pad` the zeros of the padding count (those that ceil_mode adds do not), without it they do not.
    `divisor_override` divides by a number of your own.
    """
    return pool_mean("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike | None = None,
    padding: PaddingLike = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Tensor:
    """The mean of windows over (..., depth, height, width, channels); see `avg_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.avg_pool3d(wl.ones((4, 6, 6, 3)), 2).shape
    (2, 3, 3, 3)
    """
    return pool_mean("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def pool_mean(
    name: Any,
    axes: int,
    x: ArrayLike,
    kernel_size: ShapeLike,
    stride: ShapeLike | None,
    padding: PaddingLike,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: float | None,
) -> Tensor:
    x, lead = with_one_batch(name, as_inexact(name, x), axes)
    spatial = x.shape[1:-1]
    windows, asked = _windows(name, axes, (*lead, *x.shape[1:]), kernel_size, stride, padding, 1, ceil_mode)
    sums = p.window_sum(x, **windows)
    if divisor_override is not None:
        return with_axes(sums / as_number(name, "divisor_override", divisor_override), lead)
    counted = asked if count_include_pad else ((0, 0),) * axes
    counts = [
        _count(n, places, k, s, low, margins)
        for n, places, k, s, (low, _), margins in zip(
            spatial, sums.shape[1:-1], windows["window"], windows["stride"], windows["padding"], counted, strict=True
        )
    ]
    if all((count == k).all() for count, k in zip(counts, windows["window"], strict=True)):
        return with_axes(sums / math.prod(windows["window"]), lead)
    sizes = functools.reduce(np.multiply.outer, counts)[..., None].astype(x.dtype)
    return with_axes(sums / wrap(sizes), lead)


def _count(n: int, places: int, window: int, stride: int, low: int, margins: tuple[int, int]) -> Array:
    """How many places of each window along an axis lie on elements or in the margins."""
    at = np.arange(places)[:, None] * stride + np.arange(window) - low
    return ((at >= -margins[0]) & (at < n + margins[1])).sum(1)


# --- with a given size of the result


def adaptive_avg_pool1d(x: ArrayLike, output_size: OutputSize) -> Tensor:
    """Means of `output_size` bins of (..., length, channels); see `adaptive_avg_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.adaptive_avg_pool1d(wl.arange(6.0)[:, None], 3)[:, 0]
    tensor([0.5, 2.5, 4.5])
    """
    return pool_mean_to("adaptive_avg_pool1d", 1, x, output_size)


def adaptive_avg_pool2d(x: ArrayLike, output_size: OutputSize) -> Tensor:
    r"""Means of (..., height, width, channels) in a grid of `output_size`. Book, section 7.2.2, E.7.11.

    >>> import wonderland as wl
    >>> wl.nn.functional.adaptive_avg_pool2d(wl.ones((8, 7, 7, 64)), 1).shape
    (8, 1, 1, 64)

    With m bins along an axis of n elements bin i has those from \(\lfloor i n / m \rfloor\) up to
    \(\lceil (i + 1) n / m \rceil\), so bins overlap where m does not divide n. `output_size` is one number or one
    for each axis; None keeps the axis as it is. With 1 it is global average pooling, for images of any size.
    """
    return pool_mean_to("adaptive_avg_pool2d", 2, x, output_size)


def adaptive_avg_pool3d(x: ArrayLike, output_size: OutputSize) -> Tensor:
    """Means of (..., depth, height, width, channels) in a grid; see `adaptive_avg_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.adaptive_avg_pool3d(wl.ones((4, 7, 7, 3)), (2, None, 1)).shape
    (2, 7, 1, 3)
    """
    return pool_mean_to("adaptive_avg_pool3d", 3, x, output_size)


def adaptive_max_pool1d(x: ArrayLike, output_size: OutputSize) -> Tensor:
    """The largest elements of `output_size` bins of (..., length, channels); see `adaptive_max_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.adaptive_max_pool1d(wl.arange(6.0)[:, None], 3)[:, 0]
    tensor([1., 3., 5.])
    """
    return pool_max_to("adaptive_max_pool1d", 1, x, output_size)


def adaptive_max_pool2d(x: ArrayLike, output_size: OutputSize) -> Tensor:
    """The largest elements of (..., height, width, channels) in a grid, with the bins of `adaptive_avg_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.adaptive_max_pool2d(wl.ones((8, 7, 7, 64)), (3, 2)).shape
    (8, 3, 2, 64)

    Of several largest elements the first one receives the derivative.
    """
    return pool_max_to("adaptive_max_pool2d", 2, x, output_size)


def adaptive_max_pool3d(x: ArrayLike, output_size: OutputSize) -> Tensor:
    """The largest elements of (..., depth, height, width, channels) in a grid; see `adaptive_max_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.adaptive_max_pool3d(wl.ones((4, 7, 7, 3)), 1).shape
    (1, 1, 1, 3)
    """
    return pool_max_to("adaptive_max_pool3d", 3, x, output_size)


def pool_mean_to(name: Any, axes: int, x: ArrayLike, output_size: OutputSize) -> Tensor:
    x, lead = with_one_batch(name, as_inexact(name, x), axes)
    for axis, bins in enumerate(_bins(name, x.shape[1:-1], output_size), start=1):
        n, count = x.shape[axis], len(bins)
        if n % count == 0:
            split = arrays.reshape(x, (*x.shape[:axis], count, n // count, *x.shape[axis + 1 :]))
            x = arrays.mean(split, axis=axis + 1)
        else:
            means = np.zeros((n, count), x.dtype)
            for i, (start, stop) in enumerate(bins):
                means[start:stop, i] = 1 / (stop - start)
            x = arrays.moveaxis(arrays.matmul(arrays.moveaxis(x, axis, -1), wrap(means)), -1, axis)
    return with_axes(x, lead)


def pool_max_to(name: Any, axes: int, x: ArrayLike, output_size: OutputSize) -> Tensor:
    x, lead = with_one_batch(name, as_ordered(name, x), axes)
    window = []
    for axis, bins in enumerate(_bins(name, x.shape[1:-1], output_size), start=1):
        width = max(stop - start for start, stop in bins)
        window.append(width)
        if x.shape[axis] != width * len(bins):
            # bins side by side and of one width: shorter ones repeat their last element, which changes no maximum
            source = [min(start + i, stop - 1) for start, stop in bins for i in range(width)]
            x = arrays.take(x, wrap(np.array(source)), axis=axis)
    sizes, none = tuple(window), ((0, 0),) * axes
    windows = {"window": sizes, "stride": sizes, "padding": none, "dilation": (1,) * axes}
    return with_axes(p.window_pick(x, p.window_argmax(x, **windows), **windows), lead)


def _bins(name: str, spatial: Sizes, output_size: OutputSize) -> list[list[tuple[int, int]]]:
    """For each axis the bins as pairs (start, stop)."""
    if 0 in spatial:
        raise ShapeError(
            f"{name}: an input with the spatial shape {spatial} has no elements.",
            f"(..., {', '.join(SPATIAL[len(spatial)])}, channels)",
        )
    wanted = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * len(spatial)
    if len(wanted) == len(spatial):
        wanted = [n if m is None else m for n, m in zip(spatial, wanted, strict=True)]
    counts = as_sizes(name, "output_size", wanted, len(spatial))
    return [[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(spatial, counts, strict=True)]
