"""Layers that make images larger without weights of their own."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.typing import ShapeLike
from ..functional.upsampling import MODES, interpolate, pixel_shuffle, pixel_unshuffle
from ..module.applied import AppliedToOne
from .windowed import as_setting

__all__ = ["Upsample", "PixelShuffle", "PixelUnshuffle"]


class Upsample(AppliedToOne, function=interpolate):
    """Interpolation: (..., h, w, c) to (..., h', w', c); see `wl.nn.functional.interpolate`.

    >>> import wonderland as wl
    >>> wl.nn.Upsample(scale_factor=2)(wl.ones((2, 8, 8, 3))).shape
    (2, 16, 16, 3)
    >>> wl.nn.Upsample(size=(5, 6), mode="bilinear")
    Upsample(size=(5, 6), mode='bilinear')
    """

    def __init__(
        self,
        size: ShapeLike | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
        axes: int | None = None,
    ) -> None:
        if (size is None) == (scale_factor is None):
            raise InputError(f"Upsample: size={size} and scale_factor={scale_factor}.", "one of them")
        if mode not in MODES:
            raise InputError(f"Upsample: mode={mode!r}.", " or ".join(map(repr, MODES)))
        self.size, self.scale_factor = as_setting(size), as_setting(scale_factor)
        self.mode, self.align_corners, self.axes = mode, align_corners, axes

    def extra_repr(self) -> str:
        changed = self._changed(size=None, scale_factor=None, mode="nearest", align_corners=False, axes=None)
        return ", ".join(changed)


class PixelShuffle(AppliedToOne, function=pixel_shuffle):
    """Channels that become places: (..., h, w, c r r) to (..., h r, w r, c); see `wl.nn.functional.pixel_shuffle`.

    >>> import wonderland as wl
    >>> wl.nn.PixelShuffle(2)(wl.ones((4, 8, 8, 12))).shape
    (4, 16, 16, 3)
    """

    def __init__(self, upscale_factor: int, axes: int = 2) -> None:
        self.upscale_factor = as_int("PixelShuffle", "upscale_factor", upscale_factor, 1)
        self.axes = as_int("PixelShuffle", "axes", axes, 1)


class PixelUnshuffle(AppliedToOne, function=pixel_unshuffle):
    """Places that become channels: (..., h r, w r, c) to (..., h, w, c r r), the inverse of `PixelShuffle`.

    >>> import wonderland as wl
    >>> wl.nn.PixelUnshuffle(2)(wl.ones((4, 16, 16, 3))).shape
    (4, 8, 8, 12)
    """

    def __init__(self, downscale_factor: int, axes: int = 2) -> None:
        self.downscale_factor = as_int("PixelUnshuffle", "downscale_factor", downscale_factor, 1)
        self.axes = as_int("PixelUnshuffle", "axes", axes, 1)
