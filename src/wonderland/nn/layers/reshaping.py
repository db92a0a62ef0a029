"""Layers between images and vectors. Book, section 7.1.1."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_shape, as_tensor
from ...core.arguments import as_int
from ...core.broadcasting import normalize_axis
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ..module.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Axes merged into one, by default all but the first: (batch, h, w, c) to (batch, h w c). Book, E.7.1.

    >>> import wonderland as wl
    >>> wl.nn.Flatten()(wl.ones((16, 8, 8, 3))).shape
    (16, 192)
    """

    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        self.start_axis = as_int("Flatten", "start_axis", start_axis)
        self.end_axis = as_int("Flatten", "end_axis", end_axis)

    def forward(self, x: ArrayLike) -> Tensor:
        return arrays.flatten(x, self.start_axis, self.end_axis)


class Unflatten(Module):
    """One axis split into several, in the order of `Flatten`: (batch, h w c) to (batch, h, w, c). Book, E.7.2.

    >>> import wonderland as wl
    >>> wl.nn.Unflatten(1, (8, 8, 3))(wl.ones((16, 192))).shape
    (16, 8, 8, 3)
    """

    def __init__(self, axis: int, sizes: ShapeLike) -> None:
        self.axis = as_int("Unflatten", "axis", axis)
        self.sizes = as_shape("Unflatten", sizes)

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_tensor("Unflatten", x)
        axis = normalize_axis("Unflatten", self.axis, x.ndim)
        return arrays.reshape(x, (*x.shape[:axis], *self.sizes, *x.shape[axis + 1 :]))

    def extra_repr(self) -> str:
        return f"axis={self.axis}, sizes={self.sizes}"
