"""Inputs brought to mean 0 and standard deviation 1, inside the model. Book, section 9.3.2."""

from __future__ import annotations

import numpy as np

from ... import arrays
from ...core.dtypes import default_float, is_floating
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, Axes
from ..module.module import Module
from ..module.parameter import Buffer

__all__ = ["Standardize", "Restore"]


class Standardize(Module):
    r"""\((x - \mu) / \sigma\) with the statistics of the training data, which belong to the model's state.

    >>> import wonderland as wl
    >>> layer = wl.nn.Standardize.of(wl.tensor([[1.0, 10.0], [3.0, 10.0]]))
    >>> layer(wl.tensor([[1.0, 10.0]]))
    tensor([[-1., 0.]])

    With it as the first layer, a model takes data as they are, and what was measured on the training data goes wherever
    the model goes. Integers, such as the bytes of images, become floating. Book, section 9.3.2.
    """

    def __init__(self, mean: ArrayLike, scale: ArrayLike) -> None:
        self.mean, self.scale = Buffer(arrays.asarray(mean)), Buffer(arrays.asarray(scale))

    @classmethod
    def of(cls, x: ArrayLike, axis: Axes = None) -> Standardize:
        """With the statistics of x: one mean and scale per feature of the last axis, or over `axis`.

        Features that do not vary are only shifted.
        """
        data = np.asarray(x)
        if data.ndim < 2 or not data.size:
            raise InputError(f"Standardize: data of shape {data.shape}.", "examples along the first axis, some of them")
        data = data.astype(np.float64)
        if not np.isfinite(data).all():
            raise InputError("Standardize: the data have NaN or infinities.", "data without them")
        over = tuple(range(data.ndim - 1)) if axis is None else axis
        mean, scale = data.mean(over), data.std(over)
        scale = np.where(scale <= 1e-12 * np.maximum(1.0, np.abs(mean)), 1.0, scale)
        return cls(mean.astype(default_float), scale.astype(default_float))

    def inverse(self) -> Restore:
        """The layer that takes outputs back to the scale of the data.

        >>> import wonderland as wl
        >>> layer = wl.nn.Standardize([2.0], [4.0])
        >>> layer.inverse()(layer(wl.tensor([[10.0]])))
        tensor([[10.]])
        """
        return Restore(self.mean.value, self.scale.value)

    def forward(self, x: ArrayLike) -> Tensor:
        x = arrays.asarray(x)
        if not is_floating(x.dtype):
            x = arrays.astype(x, self.mean.dtype)
        return (x - self.mean) / self.scale


class Restore(Module):
    r"""\(\sigma y + \mu\): outputs of a model in the scale of the data; `Standardize.inverse` makes it."""

    def __init__(self, mean: ArrayLike, scale: ArrayLike) -> None:
        self.mean, self.scale = Buffer(arrays.asarray(mean)), Buffer(arrays.asarray(scale))

    def forward(self, y: Tensor) -> Tensor:
        return y * self.scale + self.mean
