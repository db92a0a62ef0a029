"""Layers that pool over all places, over features, and by norms. Book, section 7.2.1."""

from __future__ import annotations

from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ..functional.global_pooling import (
    feature_avg_pool,
    feature_max_pool,
    global_avg_pool,
    global_max_pool,
    global_sum_pool,
    pool_norm,
)
from ..module.applied import Applied, AppliedToOne
from .windowed import Windowed

__all__ = [
    "GlobalAvgPool", "GlobalMaxPool", "GlobalSumPool", "FeatureMaxPool", "FeatureAvgPool", "LPPool1d", "LPPool2d",
    "LPPool3d",
]  # fmt: skip


class _GlobalPool(Applied):
    def __init__(self, axes: int = 2, keepdims: bool = False) -> None:
        self.axes = as_int(type(self).__name__, "axes", axes, 1)
        self.keepdims = keepdims

    def forward(self, x: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        return self._applied(x, mask=mask)

    def extra_repr(self) -> str:
        return f"axes={self.axes}" + (", keepdims=True" if self.keepdims else "")


class GlobalAvgPool(_GlobalPool, function=global_avg_pool):
    """The mean over all places: (..., *spatial, c) to (..., c), with `axes` spatial axes. Book, E.7.11.

    >>> import wonderland as wl
    >>> wl.nn.GlobalAvgPool()(wl.ones((8, 7, 7, 64))).shape, wl.nn.GlobalAvgPool(axes=1)(wl.ones((8, 50, 64))).shape
    ((8, 64), (8, 64))

    `layer(x, mask)` counts the places where the mask (..., *spatial) is true, see `wl.nn.functional.global_avg_pool`.
    """


class GlobalMaxPool(_GlobalPool, function=global_max_pool):
    """The largest element over all places: (..., *spatial, c) to (..., c). Book, section 7.2.1.

    >>> import wonderland as wl
    >>> wl.nn.GlobalMaxPool(axes=3, keepdims=True)(wl.ones((2, 4, 7, 7, 5))).shape
    (2, 1, 1, 1, 5)

    Settings and the mask are those of `GlobalAvgPool`.
    """


class GlobalSumPool(_GlobalPool, function=global_sum_pool):
    """The sum over all places: (..., *spatial, c) to (..., c). Book, section 7.2.1.

    >>> import wonderland as wl
    >>> wl.nn.GlobalSumPool(axes=1)(wl.ones((3, 2)))
    tensor([3., 3.])

    Settings and the mask are those of `GlobalAvgPool`.
    """


class _FeaturePool(AppliedToOne):
    def __init__(self, kernel_size: int) -> None:
        self.kernel_size = as_int(type(self).__name__, "kernel_size", kernel_size, 1)


class FeatureMaxPool(_FeaturePool, function=feature_max_pool):
    """The largest of each `kernel_size` features side by side: (..., c) to (..., c / kernel_size).

    >>> import wonderland as wl
    >>> wl.nn.FeatureMaxPool(4)(wl.ones((2, 8, 8, 32))).shape
    (2, 8, 8, 8)
    """


class FeatureAvgPool(_FeaturePool, function=feature_avg_pool):
    """The mean of each `kernel_size` features side by side: (..., c) to (..., c / kernel_size).

    >>> import wonderland as wl
    >>> wl.nn.FeatureAvgPool(4)(wl.ones((2, 8, 8, 32))).shape
    (2, 8, 8, 8)
    """


class _LPPool(Windowed):
    def __init__(
        self, norm_type: float, kernel_size: ShapeLike, stride: ShapeLike | None = None, ceil_mode: bool = False
    ) -> None:
        self.norm_type = norm_type
        self._keep(kernel_size=kernel_size, stride=kernel_size if stride is None else stride, padding=0)
        self.ceil_mode = ceil_mode

    def forward(self, x: ArrayLike) -> Tensor:
        return pool_norm(self, self.axes, x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        changed = self._changed(stride=self.kernel_size, ceil_mode=False)
        return ", ".join([f"norm_type={self.norm_type}, kernel_size={self.kernel_size}", *changed])


class LPPool1d(_LPPool):
    """Norms of windows over (..., length, channels); see `wl.nn.functional.lp_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.LPPool1d(2, 2)(wl.ones((4, 20, 8))).shape
    (4, 10, 8)
    """

    axes = 1


class LPPool2d(_LPPool):
    """Norms of windows over (..., height, width, channels); see `wl.nn.functional.lp_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.LPPool2d(2, 3, stride=2)
    LPPool2d(norm_type=2, kernel_size=3, stride=2)
    """

    axes = 2


class LPPool3d(_LPPool):
    """Norms of windows over (..., depth, height, width, channels); see `wl.nn.functional.lp_pool2d`.

    >>> import wonderland as wl
    >>> wl.nn.LPPool3d(1, 2)(wl.ones((4, 4, 4, 1))).shape
    (2, 2, 2, 1)
    """

    axes = 3
