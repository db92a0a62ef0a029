"""Convolutions that mix places and channels one after the other, and causal ones. Book, sections 7.2.2 and 8.3.2."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike
from ...random.keys import split
from ...random.streams import take_key
from ..functional.windows import PaddingLike
from ..module.module import Module
from .convolution import Conv1d, Conv2d, Conv3d, _Conv

__all__ = [
    "DepthwiseConv1d", "DepthwiseConv2d", "DepthwiseConv3d", "SeparableConv1d", "SeparableConv2d", "SeparableConv3d",
    "CausalConv1d",
]  # fmt: skip

_CONVOLUTIONS: dict[int, type[_Conv]] = {1: Conv1d, 2: Conv2d, 3: Conv3d}


class _DepthwiseConv(_Conv):
    def __init__(
        self,
        in_channels: int,
        kernel_size: ShapeLike,
        stride: ShapeLike = 1,
        padding: PaddingLike = 0,
        dilation: ShapeLike = 1,
        depth_multiplier: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        **options: Any,
    ) -> None:
        name = type(self).__name__
        channels = as_int(name, "in_channels", in_channels, 1)
        out = channels * as_int(name, "depth_multiplier", depth_multiplier, 1)
        settings = (stride, padding, dilation, channels, bias, padding_mode, dtype, key)
        super().__init__(channels, out, kernel_size, *settings, **options)


class DepthwiseConv1d(_DepthwiseConv):
    """A kernel for each channel of (..., length, channels); see `DepthwiseConv2d`.

    >>> import wonderland as wl
    >>> wl.nn.DepthwiseConv1d(8, 5, padding="causal", bias=False).num_parameters()
    40
    """

    axes = 1


class DepthwiseConv2d(_DepthwiseConv):
    r"""A kernel for each channel, \(H_{ijc} = \sum_{i'j'} W_{i'j'c} X_{i+i', j+j', c}\). Book, section 7.2.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.DepthwiseConv2d(3, 5, padding="same", bias=False)
    >>> layer(wl.ones((16, 32, 32, 3))).shape, layer.num_parameters()
    ((16, 32, 32, 3), 75)

    It is a `Conv2d` with groups = in_channels, so groups of one channel each. `depth_multiplier` kernels for each
    channel make so many times as many channels. Other arguments are those of `Conv2d`.
    """

    axes = 2


class DepthwiseConv3d(_DepthwiseConv):
    """A kernel for each channel of (..., depth, height, width, channels); see `DepthwiseConv2d`.

    >>> import wonderland as wl
    >>> wl.nn.DepthwiseConv3d(4, 3)(wl.ones((5, 5, 5, 4))).shape
    (3, 3, 3, 4)
    """

    axes = 3


_DEPTHWISE: dict[int, type[_DepthwiseConv]] = {1: DepthwiseConv1d, 2: DepthwiseConv2d, 3: DepthwiseConv3d}


class _SeparableConv(Module):
    axes: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: ShapeLike,
        stride: ShapeLike = 1,
        padding: PaddingLike = 0,
        dilation: ShapeLike = 1,
        depth_multiplier: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        keys = split(take_key(type(self).__name__, key), 2)
        settings = (stride, padding, dilation, depth_multiplier, False, padding_mode, dtype, keys[0])
        self.depthwise = _DEPTHWISE[self.axes](in_channels, kernel_size, *settings)
        self.pointwise = _CONVOLUTIONS[self.axes](
            self.depthwise.out_channels, out_channels, 1, bias=bias, dtype=dtype, key=keys[1]
        )

    def forward(self, x: ArrayLike) -> Tensor:
        return self.pointwise(self.depthwise(x))


class SeparableConv1d(_SeparableConv):
    """A kernel for each channel, then a linear map of the channels; see `SeparableConv2d`.

    >>> import wonderland as wl
    >>> wl.nn.SeparableConv1d(8, 16, 5, padding="same")(wl.ones((4, 20, 8))).shape
    (4, 20, 16)
    """

    axes = 1


class SeparableConv2d(_SeparableConv):
    """A depthwise convolution, which mixes pixels, then one of 1 x 1, which mixes channels. Book, section 7.2.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.SeparableConv2d(3, 64, 5, padding="same", bias=False)
    >>> layer(wl.ones((16, 32, 32, 3))).shape, layer.num_parameters()
    ((16, 32, 32, 64), 267)

    That are s s c + c c' weights instead of the s s c c' of a `Conv2d`, here 4800. There is one bias, at the end. It
    is the convolution whose filter is the product of both: W[i, j, c, z] = D[i, j, c] P[c, z].
    """

    axes = 2


class SeparableConv3d(_SeparableConv):
    """A kernel for each channel, then a linear map of the channels; see `SeparableConv2d`.

    >>> import wonderland as wl
    >>> wl.nn.SeparableConv3d(2, 6, 3)(wl.ones((5, 5, 5, 2))).shape
    (3, 3, 3, 6)
    """

    axes = 3


class CausalConv1d(Conv1d):
    r"""Convolution of sequences in which output i sees the inputs up to i: \(H_i = f(X_{:i})\). Book, D.8.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.CausalConv1d(1, 1, 2, dilation=2, bias=False, init=wl.nn.init.constant(1.0))
    >>> layer(wl.arange(1.0, 6.0)[:, None])[:, 0]
    tensor([1., 2., 4., 6., 8.])

    It is a `Conv1d` with `padding="causal"`: (kernel_size - 1) dilation zeros before the beginning, none at the end, so
    that the length stays. A centred kernel of 2k + 1 places whose last k are masked is one of k + 1 places here.
    """

    _shown_unless: ClassVar[dict[str, object]] = {**Conv1d._shown_unless, "padding": "causal"}

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: ShapeLike,
        stride: ShapeLike = 1,
        dilation: ShapeLike = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        **options: Any,
    ) -> None:
        settings = (stride, "causal", dilation, groups, bias, "zeros", dtype, key)
        super().__init__(in_channels, out_channels, kernel_size, *settings, **options)
