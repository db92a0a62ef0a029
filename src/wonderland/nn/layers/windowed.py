"""What layers with windows over spatial axes share: settings that are one number, or one for each axis."""

from __future__ import annotations

from typing import Any

from ...core.typing import ShapeLike
from ...primitives.windows import Pairs
from ..functional.windows import PaddingLike, as_padding, as_sizes
from ..module.module import Module


class Windowed(Module):
    """A layer with windows over `axes` spatial axes of (..., *spatial, channels)."""

    axes: int
    kernel_size: ShapeLike
    stride: ShapeLike
    padding: PaddingLike
    dilation: ShapeLike

    def _keep(self, **settings: object) -> None:
        """Keep settings of the windows, and check those that are sizes."""
        for what, value in settings.items():
            setattr(self, what, as_setting(value))
        for what in settings:
            if what != "padding":
                self._sizes(what)

    def _padding(self) -> Pairs:
        """The padding as pairs (low, high), one for each axis, checked."""
        sizes = [self._sizes(what) for what in ("kernel_size", "stride", "dilation")]
        return as_padding(type(self).__name__, self.padding, *sizes)

    def _sizes(self, what: str, least: int = 1) -> tuple[int, ...]:
        """A setting as one number for each axis, checked."""
        return as_sizes(type(self).__name__, what, getattr(self, what), self.axes, least)


def as_setting(value: object) -> Any:
    """A setting that cannot be changed in place. One number stays one."""
    return tuple(map(as_setting, value)) if isinstance(value, (tuple, list)) else value
