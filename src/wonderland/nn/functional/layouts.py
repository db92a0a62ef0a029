"""The orders of axes that images and filters have elsewhere, and ours. Book, section 7.1.1.

Ours: images (..., *spatial, channels), filters (*kernel, in / groups, out).
"""

from __future__ import annotations

import math

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike

__all__ = ["channels_first", "channels_last", "filter_layout"]

LAYOUTS = ("ours", "torch", "book")


def channels_last(x: ArrayLike, axes: int | None = None) -> Tensor:
    """(..., channels, *spatial) with the channels moved to the end: what NCHW images are here.

    >>> import wonderland as wl
    >>> wl.nn.functional.channels_last(wl.ones((16, 3, 32, 40))).shape
    (16, 32, 40, 3)

    `axes` is the number of spatial axes: by default all but the first and the channels. Book, section 7.1.1.
    """
    x, axes = _image("channels_last", x, axes)
    return arrays.moveaxis(x, -axes - 1, -1)


def channels_first(x: ArrayLike, axes: int | None = None) -> Tensor:
    """(..., *spatial, channels) with the channels before the spatial axes: the inverse of `channels_last`.

    >>> import wonderland as wl
    >>> wl.nn.functional.channels_first(wl.ones((16, 32, 40, 3))).shape
    (16, 3, 32, 40)
    """
    x, axes = _image("channels_first", x, axes)
    return arrays.moveaxis(x, -1, -axes - 1)


def _image(name: str, x: ArrayLike, axes: int | None) -> tuple[Tensor, int]:
    x = as_tensor(name, x)
    count = x.ndim - 2 if axes is None else as_int(name, "axes", axes)
    if not 1 <= count < x.ndim:
        raise ShapeError(f"{name}: a shape {x.shape} with {count} spatial axes.", "images, or axes=2")
    return x, count


def filter_layout(weight: ArrayLike, source: str, target: str, kernel_size: tuple[int, ...] | None = None) -> Tensor:
    """A filter of a convolution with its axes in another order.

    >>> import wonderland as wl
    >>> w = wl.ones((64, 3, 5, 5))
    >>> ours = wl.nn.functional.filter_layout(w, "torch", "ours")
    >>> ours.shape, wl.nn.functional.filter_layout(ours, "ours", "book").shape
    ((5, 5, 3, 64), (64, 75))

    Layouts: "ours" (*kernel, in, out); "torch" (out, in, *kernel); "book" (out, s s in), the matrix that multiplies
    vect(P), whose columns run over the kernel's rows, columns and then channels (D.7.4). From "book", give the
    `kernel_size` (s, s).
    """
    name = "filter_layout"
    w = as_tensor(name, weight)
    for layout in (source, target):
        if layout not in LAYOUTS:
            raise InputError(f"{name}: there is no layout {layout!r}.", " or ".join(map(repr, LAYOUTS)))
    if source == "book":
        if w.ndim != 2 or kernel_size is None or w.shape[1] % math.prod(kernel_size):
            raise ShapeError(
                f"{name}: a matrix of shape {w.shape} with kernel_size={kernel_size}.",
                "(out, s s in), and kernel_size=(s, s)",
            )
        size = math.prod(kernel_size)
        w = arrays.reshape(arrays.matrix_transpose(w), (*kernel_size, w.shape[1] // size, w.shape[0]))
    elif w.ndim < 3:
        raise ShapeError(f"{name}: a filter of shape {w.shape}.", "three axes or more")
    elif source == "torch":
        w = arrays.permute_dims(w, (*range(2, w.ndim), 1, 0))
    if target == "torch":
        return arrays.permute_dims(w, (w.ndim - 1, w.ndim - 2, *range(w.ndim - 2)))
    return w if target == "ours" else arrays.matrix_transpose(arrays.reshape(w, (-1, w.shape[-1])))
