"""Layers between images and their patches. Book, D.7.1 and chapter 7 (exercises)."""

from __future__ import annotations

from ...core.typing import ShapeLike
from ..functional.patches import fold, unfold
from ..functional.pooling import OutputSize
from ..functional.windows import PaddingLike
from ..module.applied import AppliedToOne
from .windowed import Windowed

__all__ = ["Unfold", "Fold"]


class Unfold(Windowed, AppliedToOne, function=unfold):
    """The patches of (..., *spatial, channels) as vectors: (..., *places, kernel places x channels). Book, D.7.1.

    >>> import wonderland as wl
    >>> wl.nn.Unfold(8, stride=8)(wl.ones((2, 32, 32, 3))).shape
    (2, 4, 4, 192)

    Settings are the arguments of `wl.nn.functional.unfold`.
    """

    def __init__(
        self,
        kernel_size: ShapeLike,
        dilation: ShapeLike = 1,
        padding: PaddingLike = 0,
        stride: ShapeLike = 1,
        axes: int = 2,
    ) -> None:
        self.axes = len(kernel_size) if isinstance(kernel_size, (tuple, list)) else axes
        self._keep(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)

    def extra_repr(self) -> str:
        return ", ".join([f"kernel_size={self.kernel_size}", *self._changed(dilation=1, padding=0, stride=1, axes=2)])


class Fold(Windowed, AppliedToOne, function=fold):
    """The transpose of `Unfold`: patches added up to (..., *output_size, channels).

    >>> import wonderland as wl
    >>> wl.nn.Fold((32, 32), 8, stride=8)(wl.ones((2, 4, 4, 192))).shape
    (2, 32, 32, 3)

    Settings are the arguments of `wl.nn.functional.fold`.
    """

    output_size: OutputSize

    def __init__(
        self,
        output_size: ShapeLike,
        kernel_size: ShapeLike,
        dilation: ShapeLike = 1,
        padding: PaddingLike = 0,
        stride: ShapeLike = 1,
        axes: int = 2,
    ) -> None:
        told = next((s for s in (output_size, kernel_size) if isinstance(s, (tuple, list))), None)
        self.axes = axes if told is None else len(told)
        sizes = {"output_size": output_size, "kernel_size": kernel_size}
        self._keep(**sizes, dilation=dilation, padding=padding, stride=stride)

    def extra_repr(self) -> str:
        sizes = [f"output_size={self.output_size}", f"kernel_size={self.kernel_size}"]
        return ", ".join([*sizes, *self._changed(dilation=1, padding=0, stride=1, axes=2)])
