"""Layers that make images larger without weights of their own."""

from __future__ import annotations

from typing import Any

from ..arguments import as_int
from ..errors import InputError
from ..tensor import Tensor
from .functional.upsampling import MODES, interpolate, pixel_shuffle, pixel_unshuffle
from .module import Module
from .windowed import as_setting


class Upsample(Module):
    """Interpolation: (..., h, w, c) to (..., h', w', c); see `wl.nn.functional.interpolate`.

    >>> import wonderland as wl
    >>> wl.nn.Upsample(scale_factor=2)(wl.ones((2, 8, 8, 3))).shape
    (2, 16, 16, 3)
    >>> wl.nn.Upsample(size=(5, 6), mode="bilinear")
    Upsample(size=(5, 6), mode='bilinear')
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
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

    def forward(self, x: Any) -> Tensor:
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.axes)

    def extra_repr(self) -> str:
        settings = {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": False, "axes": None}
        return ", ".join(f"{k}={v!r}" for k, default in settings.items() if (v := getattr(self, k)) != default)


class PixelShuffle(Module):
    """Channels that become places: (..., h, w, c r r) to (..., h r, w r, c); see `wl.nn.functional.pixel_shuffle`.

    >>> import wonderland as wl
    >>> wl.nn.PixelShuffle(2)(wl.ones((4, 8, 8, 12))).shape
    (4, 16, 16, 3)
    """

    def __init__(self, upscale_factor: int, axes: int = 2) -> None:
        self.upscale_factor = as_int("PixelShuffle", "upscale_factor", upscale_factor, 1)
        self.axes = as_int("PixelShuffle", "axes", axes, 1)

    def forward(self, x: Any) -> Tensor:
        return pixel_shuffle(x, self.upscale_factor, self.axes)


class PixelUnshuffle(Module):
    """Places that become channels: (..., h r, w r, c) to (..., h, w, c r r), the inverse of `PixelShuffle`.

    >>> import wonderland as wl
    >>> wl.nn.PixelUnshuffle(2)(wl.ones((4, 16, 16, 3))).shape
    (4, 8, 8, 12)
    """

    def __init__(self, downscale_factor: int, axes: int = 2) -> None:
        self.downscale_factor = as_int("PixelUnshuffle", "downscale_factor", downscale_factor, 1)
        self.axes = as_int("PixelUnshuffle", "axes", axes, 1)

    def forward(self, x: Any) -> Tensor:
        return pixel_unshuffle(x, self.downscale_factor, self.axes)
