"""Small filters that were designed by hand, and images run through them. Book, section 7.1.3."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import arrays
from ...arrays.conversion import as_inexact
from ...errors import InputError, ShapeError
from ...tensor import Tensor, wrap
from .convolution import conv_nd

__all__ = ["FILTERS", "apply_filter"]

FILTERS: dict[str, Any] = {
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


def apply_filter(images: Any, kernel: Any, padding: Any = "same") -> Tensor:
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
