"""Small filters that were designed by hand, and images run through them. Book, section 7.1.3."""

from __future__ import annotations

import numpy as np

from ... import arrays
from ...arrays.conversion import as_inexact, promote_inexact
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor, wrap
from ...core.typing import Array, ArrayLike
from .convolution import conv_nd
from .windows import PaddingLike

__all__ = ["FILTERS", "apply_filter", "merged_kernel"]

FILTERS: dict[str, Array] = {
    "identity": np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]], float),
    "edge": np.array([[0, -1, 0], [-1, 4, -1], [0, -1, 0]], float),
    "ridge": np.array([[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]], float),
    "box_blur": np.full((3, 3), 1 / 9),
    "gaussian_blur": np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], float) / 16,
    "sharpen": np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], float),
    "sobel_x": np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], float),
    "sobel_y": np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], float),
}
for _kernel in FILTERS.values():
    _kernel.setflags(write=False)


def apply_filter(images: ArrayLike, kernel: ArrayLike | str, padding: PaddingLike = "same") -> Tensor:
    """Every channel of (..., height, width, channels) correlated with one kernel (rows, columns). Book, section 7.1.3.

    >>> import wonderland as wl
    >>> F = wl.nn.functional
    >>> F.apply_filter(wl.ones((5, 5, 1)), "ridge")[..., 0]
    tensor([[5., 3., 3., 3., 5.],
            [3., 0., 0., 0., 3.],
            [3., 0., 0., 0., 3.],
            [3., 0., 0., 0., 3.],
            [5., 3., 3., 3., 5.]])

    The kernel is an array, or a name in `FILTERS`: "identity", "edge", "ridge", "box_blur", "gaussian_blur",
    "sharpen", "sobel_x" or "sobel_y". A filter whose elements add up to 0 gives 0 on a constant image; with a sum of 1
    it keeps it.
    """
    x = as_inexact("apply_filter", images)
    if isinstance(kernel, str):
        if kernel not in FILTERS:
            raise InputError(f"apply_filter: there is no filter {kernel!r}.", " or ".join(map(repr, FILTERS)))
        kernel = FILTERS[kernel]
    w = arrays.asarray(wrap(np.array(kernel)) if isinstance(kernel, np.ndarray) else kernel, dtype=x.dtype)
    if w.ndim != 2 or x.ndim < 3:
        raise ShapeError(
            f"apply_filter: a kernel of shape {w.shape} and images of shape {x.shape}.",
            "(rows, columns) and (..., height, width, channels)",
        )
    channels = x.shape[-1]
    w = arrays.broadcast_to(w[:, :, None, None], (*w.shape, 1, channels))
    return conv_nd("apply_filter", 2, x, w, None, 1, padding, 1, channels)


def merged_kernel(first: ArrayLike, second: ArrayLike) -> Tensor:
    r"""The kernel of the one convolution that two in a row are: sizes s and t give s + t - 1. Book, section 7.2.1.

    \(W_{k,c,o} = \sum_{i+j=k} \sum_m W^{(1)}_{i,c,m}\,W^{(2)}_{j,m,o}\), a full convolution of the kernels.

    >>> import wonderland as wl
    >>> F = wl.nn.functional
    >>> x, a, b = (wl.random.normal(s, key=wl.random.key(i)) for i, s in enumerate([(9, 2), (3, 2, 4), (3, 4, 1)]))
    >>> twice, once = F.conv1d(F.conv1d(x, a), b), F.conv1d(x, F.merged_kernel(a, b))
    >>> once.shape, bool(abs(twice - once).max() < 1e-5)
    ((5, 1), True)

    Kernels are (*sizes, channels in, channels out), with stride and dilation 1. With padding the two differ at the
    border, where the second one meets zeros instead of what the first would give there. A nonlinearity between them
    keeps layers from collapsing.
    """
    w, v = promote_inexact("merged_kernel", first, second)
    axes = w.ndim - 2
    if not 1 <= axes <= 3 or v.ndim != w.ndim or w.shape[-1] != v.shape[-2]:
        raise ShapeError(
            f"merged_kernel: kernels of shapes {w.shape} and {v.shape}.", "(*sizes, c, m) and (*sizes, m, o)"
        )
    images = arrays.moveaxis(w, -2, 0)  # (c, *sizes, m): the first kernel goes through the second one, turned round
    turned = arrays.flip(v, axis=tuple(range(axes)))
    padding = tuple(size - 1 for size in v.shape[:axes])
    return arrays.moveaxis(conv_nd("merged_kernel", axes, images, turned, None, 1, padding, 1, 1), 0, -2)
