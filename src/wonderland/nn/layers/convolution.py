"""Convolutional layers over one, two or three spatial axes, and their transposes. Book, sections 7.1.3 and 8.1.2."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike
from ..functional.convolution import conv_nd, conv_transpose_nd
from ..functional.fft_convolution import fft_conv_nd
from ..functional.windows import SPATIAL, PaddingLike
from ..init.naming import InitializerLike
from .weighted import Weighted, as_weight_dtype
from .windowed import Windowed, as_setting

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

METHODS: dict[str, Callable[..., Tensor]] = {"direct": conv_nd, "fft": fft_conv_nd}
PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "circular": "wrap", "replicate": "edge"}


class _Convolution(Windowed, Weighted):
    """What convolutions and their transposes share: channels, kernel and parameters."""

    _shown_unless: ClassVar[dict[str, object]] = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: ShapeLike,
        stride: ShapeLike,
        padding: PaddingLike,
        dilation: ShapeLike,
        groups: int,
        bias: bool,
        dtype: DTypeLike | None,
        key: KeyLike,
        init: InitializerLike | None,
        bias_init: InitializerLike | None,
    ) -> None:
        name = type(self).__name__
        self.in_channels = None if in_channels is None else as_int(name, "in_channels", in_channels, 0)
        self.out_channels = as_int(name, "out_channels", out_channels, 0)
        self._keep(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        self._padding()  # the padding is checked, too
        self.groups = as_int(name, "groups", groups, 1)
        self.dtype = as_weight_dtype(name, dtype)
        self._check_groups("out_channels", self.out_channels)
        self._wait(name, bias, key, init, bias_init)
        if self.in_channels is not None:
            self._build(self.in_channels)

    def _check_groups(self, what: str, channels: int) -> None:
        if channels % self.groups:
            raise InputError(
                f"{type(self).__name__}: {what}={channels} does not divide into groups={self.groups}.",
                "a number of channels that is a multiple of groups; groups is their number, not their size",
            )

    def _channels(self, in_channels: int) -> tuple[int, int]:
        """The last two sizes of the weight."""
        return in_channels // self.groups, self.out_channels

    def _build(self, in_channels: int) -> None:
        """Make the parameters."""
        self._check_groups("in_channels", in_channels)
        kernel = self._sizes("kernel_size")
        shape = (*kernel, *self._channels(in_channels))
        inputs = math.prod(kernel) * in_channels // self.groups
        self._make(shape, (self.out_channels,), inputs, in_channels=in_channels)

    def _input(self, x: ArrayLike) -> Tensor:
        """The input as a tensor of the right shape; the first one makes the parameters of a lazy layer."""
        x = as_tensor(type(self).__name__, x)
        if x.ndim > self.axes and self.in_channels is None:
            self._build(x.shape[-1])
        if x.ndim <= self.axes or x.shape[-1] != self.in_channels:
            got = f"has {x.shape[-1]} channels along its last axis" if x.ndim > self.axes else "has too few axes"
            channels = "channels" if self.in_channels is None else self.in_channels
            raise ShapeError(
                f"{self._describe()}: an input of shape {x.shape} {got}.",
                f"an input of shape (..., {', '.join(SPATIAL[self.axes])}, {channels}): channels last",
            )
        return x

    def extra_repr(self) -> str:
        sizes = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        parts = [sizes, *self._changed(**self._shown_unless)]
        if self.bias is None:
            parts.append("bias=False")
        if self.dtype != dtypes.default_float:
            parts.append(f"dtype={self.dtype}")
        return ", ".join(parts)


class _Conv(_Convolution):
    _shown_unless: ClassVar[dict[str, object]] = {
        **_Convolution._shown_unless,
        "padding_mode": "zeros",
        "method": "direct",
    }

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: ShapeLike,
        stride: ShapeLike = 1,
        padding: PaddingLike = 0,
        dilation: ShapeLike = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None,
        method: str = "direct",
    ) -> None:
        for what, value, known in (("padding_mode", padding_mode, PADDING_MODES), ("method", method, METHODS)):
            if value not in known:
                raise InputError(f"{type(self).__name__}: {what}={value!r}.", " or ".join(map(repr, known)))
        self.padding_mode = padding_mode
        self.method = method
        settings = (stride, padding, dilation, groups, bias, dtype, key, init, bias_init)
        super().__init__(in_channels, out_channels, kernel_size, *settings)

    def forward(self, x: ArrayLike) -> Tensor:
        x = self._input(x)
        pairs = self._padding()
        padding: PaddingLike = pairs
        if self.padding_mode != "zeros":
            widths = ((0, 0),) * (x.ndim - self.axes - 1) + pairs + ((0, 0),)
            x, padding = arrays.pad(x, widths, mode=PADDING_MODES[self.padding_mode]), 0
        f = METHODS[self.method]
        return f(self, self.axes, x, self._filter(), self.bias, self.stride, padding, self.dilation, self.groups)

    def _filter(self) -> Tensor:
        """The weight that is used."""
        return self.weight

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        return output.size * math.prod(self.weight.shape[:-1])


class Conv1d(_Conv):
    r"""Convolution of sequences: (..., length, in_channels) to (..., length', out_channels). Book, E.8.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.Conv1d(8, 32, 5, padding="same")
    >>> layer(wl.ones((4, 20, 8))).shape, layer.weight.shape
    ((4, 20, 32), (5, 8, 32))

    The arguments are those of `Conv2d`. With `padding="causal"` no output sees later inputs.
    """

    axes = 1


class Conv2d(_Conv):
    r"""Convolution of images, \(y_{ij} = b + \sum_{i'j'} x_{i+i', j+j'} W_{i'j'}\). Book, D.7.4.

    >>> import wonderland as wl
    >>> layer = wl.nn.Conv2d(3, 64, 5, padding="same", bias=False)
    >>> layer
    Conv2d(3, 64, kernel_size=5, padding='same', bias=False)
    >>> layer(wl.ones((16, 32, 32, 3))).shape, layer.num_parameters()
    ((16, 32, 32, 64), 4800)

    Channels are last: (..., height, width, in_channels) becomes (..., height', width', out_channels), and `weight` is
    (*kernel_size, in_channels / groups, out_channels). See `wl.nn.functional.conv2d` for `stride`, `padding`,
    `dilation` and `groups`. `padding_mode` is "zeros", "reflect", "circular" (the other end follows) or "replicate"
    (the element at the border). `method="fft"` multiplies spectra instead (`wl.nn.functional.fft_conv`), which is
    faster for very large ones. Parameters start from \(U(-1/\sqrt{c}, 1/\sqrt{c})\), where c is the number of inputs of
    an output: kernel places times in_channels / groups; `init` and `bias_init` are other initialisers, see
    `wl.nn.init`.

    With `in_channels=None` the layer is lazy: its first input decides in_channels and makes the parameters.
    """

    axes = 2


class Conv3d(_Conv):
    r"""Convolution of volumes and videos, (..., depth, height, width, in_channels). Book, section 8.1.2.

    >>> import wonderland as wl
    >>> wl.nn.Conv3d(1, 4, (1, 3, 3), padding=(0, 1, 1))(wl.ones((2, 6, 8, 8, 1))).shape
    (2, 6, 8, 8, 4)

    The arguments are those of `Conv2d`.
    """

    axes = 3


# --- the transposes


class _ConvTranspose(_Convolution):
    _shown_unless: ClassVar[dict[str, object]] = {**_Convolution._shown_unless, "output_padding": 0}

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: ShapeLike,
        stride: ShapeLike = 1,
        padding: PaddingLike = 0,
        output_padding: ShapeLike = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: ShapeLike = 1,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None,
    ) -> None:
        self.output_padding = as_setting(output_padding)
        self._sizes("output_padding", least=0)
        settings = (stride, padding, dilation, groups, bias, dtype, key, init, bias_init)
        super().__init__(in_channels, out_channels, kernel_size, *settings)

    def _channels(self, in_channels: int) -> tuple[int, int]:
        return self.out_channels // self.groups, in_channels

    def forward(self, x: ArrayLike) -> Tensor:
        return conv_transpose_nd(
            self,
            self.axes,
            self._input(x),
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        return args[0].size * math.prod(self.weight.shape[:-1])


class ConvTranspose1d(_ConvTranspose):
    """The transpose of a `Conv1d` from out_channels to in_channels; see `ConvTranspose2d`.

    >>> import wonderland as wl
    >>> wl.nn.ConvTranspose1d(8, 4, 2, stride=2)(wl.ones((3, 10, 8))).shape
    (3, 20, 4)
    """

    axes = 1


class ConvTranspose2d(_ConvTranspose):
    """The transpose of a `Conv2d` from out_channels to in_channels, which makes images larger.

    >>> import wonderland as wl
    >>> layer = wl.nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1)
    >>> layer(wl.ones((16, 16, 16))).shape, layer.weight.shape
    ((32, 32, 8), (3, 3, 8, 16))

    `weight` is that of the convolution: (*kernel_size, out_channels / groups, in_channels). See
    `wl.nn.functional.conv_transpose2d`. Parameters start as those of `Conv2d`.
    """

    axes = 2


class ConvTranspose3d(_ConvTranspose):
    """The transpose of a `Conv3d` from out_channels to in_channels; see `ConvTranspose2d`.

    >>> import wonderland as wl
    >>> wl.nn.ConvTranspose3d(2, 1, 2, stride=2)(wl.ones((3, 3, 3, 2))).shape
    (6, 6, 6, 1)
    """

    axes = 3
