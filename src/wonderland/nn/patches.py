"""Layers between images and their patches. Book, D.7.1 and chapter 7 (exercises)."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .functional.patches import fold, unfold
from .windowed import Windowed, as_setting


class Unfold(Windowed):
    """The patches of (..., *spatial, channels) as vectors: (..., *places, kernel places x channels). Book, D.7.1.

    >>> import wonderland as wl
    >>> wl.nn.Unfold(8, stride=8)(wl.ones((2, 32, 32, 3))).shape
    (2, 4, 4, 192)

    Settings are the arguments of `wl.nn.functional.unfold`.
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1, axes: int = 2) -> None:
        self.kernel_size, self.dilation = as_setting(kernel_size), as_setting(dilation)
        self.padding, self.stride = as_setting(padding), as_setting(stride)
        self.axes = len(self.kernel_size) if isinstance(self.kernel_size, tuple) else axes
        for what in ("kernel_size", "stride", "dilation"):
            self._sizes(what)

    def forward(self, x: Any) -> Tensor:
        return unfold(x, self.kernel_size, self.stride, self.padding, self.dilation, self.axes)

    def extra_repr(self) -> str:
        return ", ".join([f"kernel_size={self.kernel_size}", *self._changed(dilation=1, padding=0, stride=1, axes=2)])


class Fold(Windowed):
    """The transpose of `Unfold`: patches added up to (..., *output_size, channels).

    >>> import wonderland as wl
    >>> wl.nn.Fold((32, 32), 8, stride=8)(wl.ones((2, 4, 4, 192))).shape
    (2, 32, 32, 3)

    Settings are the arguments of `wl.nn.functional.fold`.
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1, axes: int = 2
    ) -> None:
        self.output_size = as_setting(output_size)
        self.kernel_size, self.dilation = as_setting(kernel_size), as_setting(dilation)
        self.padding, self.stride = as_setting(padding), as_setting(stride)
        told = next((s for s in (self.output_size, self.kernel_size) if isinstance(s, tuple)), None)
        self.axes = axes if told is None else len(told)
        for what in ("output_size", "kernel_size", "stride", "dilation"):
            self._sizes(what)

    def forward(self, x: Any) -> Tensor:
        return fold(x, self.output_size, self.kernel_size, self.stride, self.padding, self.dilation, self.axes)

    def extra_repr(self) -> str:
        sizes = [f"output_size={self.output_size}", f"kernel_size={self.kernel_size}"]
        return ", ".join([*sizes, *self._changed(dilation=1, padding=0, stride=1, axes=2)])
