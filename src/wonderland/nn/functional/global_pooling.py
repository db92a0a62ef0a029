"""Pooling over all places, over features, and by norms. Book, section 7.2.1."""

from __future__ import annotations

import math
from typing import Any

from ... import arrays
from ...arrays.conversion import as_inexact, as_ordered, as_tensor
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from .pooling import pool_max, pool_mean
from .windows import SPATIAL, with_axes, with_one_batch

__all__ = [
    "feature_avg_pool", "feature_max_pool", "global_avg_pool", "global_max_pool", "global_sum_pool", "lp_pool1d",
    "lp_pool2d", "lp_pool3d",
]  # fmt: skip

# --- over all places


def global_avg_pool(x: ArrayLike, axes: int = 2, keepdims: bool = False, mask: ArrayLike | None = None) -> Tensor:
    r"""The mean \(\frac{1}{hw} \sum_{ij} H_{ij}\) over all places: (..., h, w, c) to (..., c). Book, E.7.11.

    >>> import wonderland as wl
    >>> x = wl.tensor([[1.0], [3.0], [100.0]])
    >>> F = wl.nn.functional
    >>> F.global_avg_pool(x[:2], axes=1), F.global_avg_pool(x, axes=1, mask=wl.tensor([True, True, False]))
    (tensor([2.]), tensor([2.]))

    `axes` is the number of spatial axes before the channels. With a `mask` (..., h, w), only places where it is true
    count, so that a padded sequence has the result of the sequence itself; one without any place gives 0.
    """
    name = "global_avg_pool"
    x, over, kept = _places(name, as_inexact(name, x), axes, mask)
    if kept is None:
        return arrays.mean(x, axis=over, keepdims=keepdims)
    counts = arrays.sum(arrays.astype(kept, x.dtype), axis=over, keepdims=keepdims)
    return arrays.sum(arrays.where(kept, x, 0.0), axis=over, keepdims=keepdims) / arrays.maximum(counts, 1.0)


def global_sum_pool(x: ArrayLike, axes: int = 2, keepdims: bool = False, mask: ArrayLike | None = None) -> Tensor:
    r"""The sum \(\sum_{ij} H_{ij}\) over all places: (..., h, w, c) to (..., c). Book, section 7.2.1.

    >>> import wonderland as wl
    >>> wl.nn.functional.global_sum_pool(wl.ones((4, 5, 3)))
    tensor([20., 20., 20.])

    Arguments are those of `global_avg_pool`; it depends on the number of places, as the mean does not.
    """
    name = "global_sum_pool"
    x, over, kept = _places(name, as_tensor(name, x), axes, mask)
    return arrays.sum(x if kept is None else arrays.where(kept, x, 0), axis=over, keepdims=keepdims)


def global_max_pool(x: ArrayLike, axes: int = 2, keepdims: bool = False, mask: ArrayLike | None = None) -> Tensor:
    r"""The largest element \(\max_{ij} H_{ij}\) over all places: (..., h, w, c) to (..., c). Book, section 7.2.1.

    >>> import wonderland as wl
    >>> wl.nn.functional.global_max_pool(wl.tensor([[1.0, 5.0], [3.0, 2.0]]), axes=1)
    tensor([3., 5.])

    Arguments are those of `global_avg_pool`. Of several largest elements each gets an equal part of the derivative.
    With a mask, a sequence without any place gives the least number.
    """
    name = "global_max_pool"
    x, over, kept = _places(name, as_inexact(name, as_ordered(name, x)), axes, mask)
    return arrays.max(x if kept is None else arrays.where(kept, x, -math.inf), axis=over, keepdims=keepdims)


def _places(name: str, x: Tensor, axes: int, mask: ArrayLike | None) -> tuple[Tensor, tuple[int, ...], Tensor | None]:
    axes = as_int(name, "axes", axes, 1)
    if axes > 3 or x.ndim < axes + 1 or 0 in x.shape[-axes - 1 : -1]:
        raise ShapeError(
            f"{name}: an input of shape {x.shape} with {axes} spatial axes.",
            f"(..., {', '.join(SPATIAL[min(axes, 3)])}, channels) that is not empty",
        )
    over = tuple(range(-axes - 1, -1))
    if mask is None:
        return x, over, None
    mask = as_tensor(name, mask)
    if mask.shape != x.shape[:-1]:
        raise ShapeError(f"{name}: a mask of shape {mask.shape} for an input of shape {x.shape}.", f"{x.shape[:-1]}")
    return x, over, arrays.expand_dims(mask != 0, axis=-1)


# --- over features


def feature_max_pool(x: ArrayLike, kernel_size: int) -> Tensor:
    r"""The largest of each `kernel_size` features side by side: (..., c) to (..., c / kernel_size), as in maxout.

    >>> import wonderland as wl
    >>> wl.nn.functional.feature_max_pool(wl.tensor([1.0, 4.0, 3.0, 2.0]), 2)
    tensor([4., 3.])

    A unit that is the largest of linear functions of its input is convex and piecewise linear; here it becomes
    invariant to whatever its features respond to. Of equal ones the first receives the derivative.
    """
    groups = _groups("feature_max_pool", as_ordered("feature_max_pool", x), kernel_size)
    where = arrays.argmax(groups, axis=-1, keepdims=True)
    return arrays.squeeze(arrays.take_along_axis(groups, where, axis=-1), axis=-1)


def feature_avg_pool(x: ArrayLike, kernel_size: int) -> Tensor:
    """The mean of each `kernel_size` features side by side: (..., c) to (..., c / kernel_size).

    >>> import wonderland as wl
    >>> wl.nn.functional.feature_avg_pool(wl.tensor([1.0, 4.0, 3.0, 2.0]), 2)
    tensor([2.5, 2.5])
    """
    return arrays.mean(_groups("feature_avg_pool", as_inexact("feature_avg_pool", x), kernel_size), axis=-1)


def _groups(name: str, x: Tensor, kernel_size: ShapeLike) -> Tensor:
    k = as_int(name, "kernel_size", kernel_size, 1)
    if not x.ndim or x.shape[-1] % k or not x.shape[-1]:
        raise ShapeError(
            f"{name}: the features of an input of shape {x.shape} do not divide into groups of {k}.",
            f"(..., features) with a multiple of {k} features",
        )
    return arrays.reshape(x, (*x.shape[:-1], x.shape[-1] // k, k))


# --- norms of windows


def lp_pool1d(
    x: ArrayLike, norm_type: float, kernel_size: ShapeLike, stride: ShapeLike | None = None, ceil_mode: bool = False
) -> Tensor:
    """Norms of windows over (..., length, channels); see `lp_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.lp_pool1d(wl.tensor([3.0, 4.0, 6.0, 8.0])[:, None], 2, 2)[:, 0]
    tensor([ 5., 10.])
    """
    return pool_norm("lp_pool1d", 1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    x: ArrayLike, norm_type: float, kernel_size: ShapeLike, stride: ShapeLike | None = None, ceil_mode: bool = False
) -> Tensor:
    r"""\((\sum x_{ij}^p)^{1/p}\) over windows of (..., height, width, channels), between the sum and the maximum.

    >>> import wonderland as wl
    >>> wl.nn.functional.lp_pool2d(wl.ones((4, 4, 1)), 2, 2)[..., 0]
    tensor([[2., 2.],
            [2., 2.]])

    `norm_type` is p: 1 gives the sum, infinity the maximum. For odd p signs are kept, for all others \(|x|^p\) is
    added. Where the sum is 0 the derivative is 0. Windows are as in `max_pool2d`.
    """
    return pool_norm("lp_pool2d", 2, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    x: ArrayLike, norm_type: float, kernel_size: ShapeLike, stride: ShapeLike | None = None, ceil_mode: bool = False
) -> Tensor:
    """Norms of windows over (..., depth, height, width, channels); see `lp_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.lp_pool3d(wl.ones((4, 4, 4, 1)), 3, 2).shape
    (2, 2, 2, 1)
    """
    return pool_norm("lp_pool3d", 3, x, norm_type, kernel_size, stride, ceil_mode)


def pool_norm(
    name: Any,
    axes: int,
    x: ArrayLike,
    norm_type: float,
    kernel_size: ShapeLike,
    stride: ShapeLike | None,
    ceil_mode: bool,
) -> Tensor:
    p = as_number(name, "norm_type", norm_type)
    if not p > 0:
        raise InputError(f"{name}: norm_type={p}.", "a number above 0, or math.inf")
    if math.isinf(p):
        return pool_max(name, axes, x, kernel_size, stride, 0, 1, ceil_mode)
    x, lead = with_one_batch(name, as_inexact(name, x), axes)
    signed = p % 2 == 1
    powers = x if p == 1 else x ** int(p) if float(p).is_integer() else arrays.abs(x) ** p
    sums = pool_mean(name, axes, powers, kernel_size, stride, 0, ceil_mode, True, 1)
    if p == 1:
        return with_axes(sums, lead)
    size = arrays.abs(sums)
    zero = size == 0
    roots = arrays.where(zero, 0.0, arrays.where(zero, 1.0, size) ** (1 / p))
    return with_axes(arrays.sign(sums) * roots if signed else roots, lead)
