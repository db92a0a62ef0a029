"""Kernels as long as the sequence, and features made of waves. Book, chapter 7 (exercises) and section 13.3."""

from __future__ import annotations

import math

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from ...random.streams import take_key
from ..functional.fft_convolution import long_conv
from ..module.module import Module
from ..module.parameter import Buffer, Parameter

__all__ = ["LongConv1d", "FourierFeatures"]


class LongConv1d(Module):
    r"""\(y_t = \sum_{s < n} k_s \odot x_{t-s} + d \odot x_t\): causal, a kernel of `length` places for each channel.

    >>> import wonderland as wl
    >>> layer = wl.nn.LongConv1d(8, 1000)
    >>> layer(wl.ones((2, 1000, 8))).shape, layer.num_parameters()
    ((2, 1000, 8), 8008)

    It is computed with spectra in n log n steps (`wl.nn.functional.long_conv`). Sequences may be shorter or longer
    than the kernel. `decay` is the factor by which the random kernel shrinks over its whole length at the start.
    """

    def __init__(
        self,
        channels: int,
        length: int,
        decay: float = 0.01,
        skip: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.channels = as_int("LongConv1d", "channels", channels, 1)
        self.length = as_int("LongConv1d", "length", length, 1)
        decay = as_number("LongConv1d", "decay", decay)
        if not 0 < decay <= 1:
            raise InputError(f"LongConv1d: decay={decay}.", "above 0 and not above 1")
        dtype = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        steps = arrays.arange(self.length, dtype=dtype)[:, None] / self.length
        # a sum of so many terms starts with variance 1
        noise = normal((self.length, self.channels), key=take_key("LongConv1d", key), dtype=dtype)
        fading = arrays.exp(math.log(decay) * steps)
        self.kernel = Parameter(noise * fading / arrays.sqrt(arrays.sum(fading * fading)))
        self.skip = Parameter(arrays.ones(self.channels, dtype=dtype)) if skip else None

    def forward(self, x: ArrayLike) -> Tensor:
        x = arrays.asarray(x)
        if x.ndim < 2 or x.shape[-1] != self.channels or not x.shape[-2]:
            raise ShapeError(f"{self}: an input of shape {x.shape}.", f"(..., length, {self.channels})")
        y = long_conv(x, self.kernel)
        return y if self.skip is None else y + self.skip * x

    def extra_repr(self) -> str:
        return f"{self.channels}, length={self.length}" + (", skip=False" if self.skip is None else "")


class FourierFeatures(Module):
    r"""\(\frac{1}{\sqrt m}[\cos(Bx), \sin(Bx)]\) with m random frequencies \(B_{ij} \sim N(0, \sigma^2)\).

    >>> import wonderland as wl
    >>> layer = wl.nn.FourierFeatures(2, 128, sigma=10.0)
    >>> layer(wl.ones((5, 2))).shape, layer.num_parameters()
    ((5, 256), 0)

    (..., in_features) becomes (..., 2 num_frequencies). Inner products of the features approach the Gaussian kernel
    \(e^{-\sigma^2 \lVert x - y \rVert^2 / 2}\), with an error of about \(1/\sqrt m\). Coordinates turned into such
    waves let a network learn details that it would not learn from the coordinates; a larger \(\sigma\) means finer
    ones. The frequencies stay fixed, unless `trainable`. Book, section 13.1.1.
    """

    def __init__(
        self,
        in_features: int,
        num_frequencies: int,
        sigma: float = 1.0,
        trainable: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "FourierFeatures"
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.num_frequencies = as_int(name, "num_frequencies", num_frequencies, 1)
        self.sigma = float(as_number(name, "sigma", sigma))
        if not self.sigma > 0:
            raise InputError(f"{name}: sigma={sigma}.", "a number above 0")
        dtype = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        shape = (self.in_features, self.num_frequencies)
        drawn = normal(shape, 0.0, self.sigma, key=take_key(name, key), dtype=dtype)
        self.frequencies: Parameter | Buffer = Parameter(drawn) if trainable else Buffer(drawn)

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_real("FourierFeatures", x)
        if not x.ndim or x.shape[-1] != self.in_features:
            raise ShapeError(f"{self}: an input of shape {x.shape}.", f"(..., {self.in_features})")
        phases = arrays.matmul(x, self.frequencies)
        waves = arrays.concat([arrays.cos(phases), arrays.sin(phases)], axis=-1)
        return waves / math.sqrt(self.num_frequencies)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.num_frequencies}, sigma={self.sigma}"
