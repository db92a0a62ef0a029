"""Layers that pool over one, two or three spatial axes, with channels last. Book, section 7.2.1."""

from __future__ import annotations

from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ..functional.pooling import pool_max, pool_max_to, pool_mean, pool_mean_to
from ..functional.windows import PaddingLike
from .windowed import Windowed, as_setting

__all__ = [
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
]  # fmt: skip

# --- the largest element


class _MaxPool(Windowed):
    def __init__(
        self,
        kernel_size: ShapeLike,
        stride: ShapeLike | None = None,
        padding: PaddingLike = 0,
        dilation: ShapeLike = 1,
        ceil_mode: bool = False,
    ) -> None:
        stride = kernel_size if stride is None else stride
        self._keep(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        self.ceil_mode = ceil_mode

    def forward(self, x: ArrayLike) -> Tensor:
        return pool_max(self, self.axes, x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)

    def extra_repr(self) -> str:
        changed = self._changed(stride=self.kernel_size, padding=0, dilation=1, ceil_mode=False)
        return ", ".join([f"kernel_size={self.kernel_size}", *changed])


class MaxPool1d(_MaxPool):
    """The largest element of windows over (..., length, channels); see `wl.nn.functional.max_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.MaxPool1d(2)(wl.ones((4, 20, 8))).shape
    (4, 10, 8)
    """

    axes = 1


class MaxPool2d(_MaxPool):
    """The largest element of windows over (..., height, width, channels). Book, D.7.6.

    >>> import wonderland as wl
    >>> wl.nn.MaxPool2d(3, stride=2, padding=1)
    MaxPool2d(kernel_size=3, stride=2, padding=1)
    >>> wl.nn.MaxPool2d(2)(wl.ones((16, 32, 32, 3))).shape
    (16, 16, 16, 3)

    Settings are the arguments of `wl.nn.functional.max_pool2d`.
    """

    axes = 2


class MaxPool3d(_MaxPool):
    """The largest element of windows over (..., depth, height, width, channels).

    >>> import wonderland as wl
    >>> wl.nn.MaxPool3d((1, 2, 2))(wl.ones((4, 8, 8, 3))).shape
    (4, 4, 4, 3)
    """

    axes = 3


# --- the mean


class _AvgPool(Windowed):
    def __init__(
        self,
        kernel_size: ShapeLike,
        stride: ShapeLike | None = None,
        padding: PaddingLike = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: float | None = None,
    ) -> None:
        stride = kernel_size if stride is None else stride
        self._keep(kernel_size=kernel_size, stride=stride, padding=padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: ArrayLike) -> Tensor:
        return pool_mean(
            self,
            self.axes,
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        changed = self._changed(
            stride=self.kernel_size, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
        )
        return ", ".join([f"kernel_size={self.kernel_size}", *changed])


class AvgPool1d(_AvgPool):
    """The mean of windows over (..., length, channels); see `wl.nn.functional.avg_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.AvgPool1d(2)(wl.ones((4, 20, 8))).shape
    (4, 10, 8)
    """

    axes = 1


class AvgPool2d(_AvgPool):
    """The mean of windows over (..., height, width, channels); see `wl.nn.functional.avg_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.AvgPool2d(2)(wl.ones((16, 32, 32, 3))).shape
    (16, 16, 16, 3)
    """

    axes = 2


class AvgPool3d(_AvgPool):
    """The mean of windows over (..., depth, height, width, channels); see `wl.nn.functional.avg_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.AvgPool3d(2)(wl.ones((4, 8, 8, 3))).shape
    (2, 4, 4, 3)
    """

    axes = 3


# --- with a given size of the result


class _AdaptivePool(Windowed):
    def __init__(self, output_size: ShapeLike) -> None:
        self.output_size = as_setting(output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(_AdaptivePool):
    def forward(self, x: ArrayLike) -> Tensor:
        return pool_mean_to(self, self.axes, x, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of `output_size` bins of (..., length, channels); see `wl.nn.functional.adaptive_avg_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.AdaptiveAvgPool1d(1)(wl.ones((4, 20, 8))).shape
    (4, 1, 8)
    """

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means of (..., height, width, channels) in a grid of `output_size`; with 1, global pooling. Book, E.7.11.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Conv2d(3, 8, 3), wl.relu, wl.nn.AdaptiveAvgPool2d(1), wl.nn.Flatten())
    >>> model(wl.ones((2, 32, 32, 3))).shape, model(wl.ones((2, 20, 28, 3))).shape
    ((2, 8), (2, 8))
    """

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means of (..., depth, height, width, channels) in a grid of `output_size`.

    >>> import wonderland as wl
    >>> wl.nn.AdaptiveAvgPool3d((1, 2, None))(wl.ones((4, 8, 8, 3))).shape
    (1, 2, 8, 3)
    """

    axes = 3


class _AdaptiveMaxPool(_AdaptivePool):
    def forward(self, x: ArrayLike) -> Tensor:
        return pool_max_to(self, self.axes, x, self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of `output_size` bins; see `wl.nn.functional.adaptive_max_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.AdaptiveMaxPool1d(1)(wl.ones((4, 20, 8))).shape
    (4, 1, 8)
    """

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of (..., height, width, channels) in a grid; with 1, global pooling. Book, section 7.2.1.

    >>> import wonderland as wl
    >>> wl.nn.AdaptiveMaxPool2d((2, 3))(wl.ones((4, 7, 7, 8))).shape
    (4, 2, 3, 8)
    """

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of (..., depth, height, width, channels) in a grid of `output_size`.

    >>> import wonderland as wl
    >>> wl.nn.AdaptiveMaxPool3d(1)(wl.ones((4, 7, 7, 8))).shape
    (1, 1, 1, 8)
    """

    axes = 3
