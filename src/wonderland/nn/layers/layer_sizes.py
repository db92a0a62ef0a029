"""Sizes of outputs and numbers of weights by closed form, before anything is made. Book, sections 7.1 and 7.2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...arrays.conversion import as_shape
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.typing import ShapeLike
from ..functional.windows import PaddingLike, as_padding, as_sizes

__all__ = ["conv_output_size", "conv_transpose_output_size", "WeightCounts", "count_weights"]


def conv_output_size(size: int, kernel_size: int, stride: int = 1, padding: PaddingLike = 0, dilation: int = 1) -> int:
    r"""\(\lfloor (n + 2p - d(k - 1) - 1)/s \rfloor + 1\): the places of a convolution or of pooling along an axis.

    >>> import wonderland as wl
    >>> wl.nn.conv_output_size(32, 5), wl.nn.conv_output_size(32, 5, padding="same")
    (28, 32)
    >>> wl.nn.conv_output_size(9, 3, stride=2, padding=1, dilation=2)
    4

    `padding` is a number, a pair, "same", "valid" or "causal".
    """
    name = "conv_output_size"
    n = as_int(name, "size", size, 1)
    window, steps, dilations = (as_sizes(name, w, v, 1) for w, v in _named(kernel_size, stride, dilation))
    pair = (padding,) if isinstance(padding, (tuple, list)) else padding
    room = n + sum(as_padding(name, pair, window, steps, dilations)[0]) - dilations[0] * (window[0] - 1) - 1
    if room < 0:
        raise ShapeError(
            f"{name}: a kernel of {kernel_size} with dilation {dilation} and padding {padding} does not fit into {n}.",
            "a smaller kernel, or more padding",
        )
    return room // steps[0] + 1


def conv_transpose_output_size(
    size: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0, dilation: int = 1
) -> int:
    r"""\((n - 1)s - 2p + d(k - 1) + 1 + o\): the places of a transposed convolution along an axis.

    >>> import wonderland as wl
    >>> wl.nn.conv_transpose_output_size(16, 3, stride=2, padding=1, output_padding=1)
    32
    """
    name = "conv_transpose_output_size"
    for what, value in (("size", size), *_named(kernel_size, stride, dilation)):
        as_int(name, what, value, 1)
    out = (size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + 1 + output_padding
    if out < 1:
        raise ShapeError(f"{name}: an output of {out} places.", "less padding")
    return out


def _named(kernel_size: int, stride: int, dilation: int) -> tuple[tuple[str, int], ...]:
    return ("kernel_size", kernel_size), ("stride", stride), ("dilation", dilation)


class WeightCounts(NamedTuple):
    """The weights of layers that do the same to images, without biases."""

    dense: int
    local: int
    convolution: int
    separable: int
    depthwise: int


def count_weights(input_shape: Sequence[int], out_channels: int, kernel_size: ShapeLike) -> WeightCounts:
    r"""How many weights layers need from (*spatial, c) to (*spatial, c'), with kernels of s places along each axis.

    >>> import wonderland as wl
    >>> wl.nn.count_weights((32, 32, 3), 64, 5)
    WeightCounts(dense=201326592, local=4915200, convolution=4800, separable=267, depthwise=75)

    A fully-connected layer on vect(X) has \((hw)^2 c c'\), a locally connected one \(h w s^2 c c'\), a convolution
    \(s^2 c c'\), a depthwise separable one \(s^2 c + c c'\), its depthwise part \(s^2 c\). Book, sections 7.1 and
    7.2.2.
    """
    name = "count_weights"
    *spatial, channels = as_shape(name, input_shape)
    if not 1 <= len(spatial) <= 3:
        raise ShapeError(f"{name}: an input of shape {tuple(input_shape)}.", "(*spatial, channels)")
    out = as_int(name, "out_channels", out_channels, 1)
    places, taps = math.prod(spatial), math.prod(as_sizes(name, "kernel_size", kernel_size, len(spatial)))
    full = taps * channels * out
    return WeightCounts(
        places**2 * channels * out, places * full, full, taps * channels + channels * out, taps * channels
    )
