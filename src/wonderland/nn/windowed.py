"""What layers with windows over spatial axes share: settings that are one number, or one for each axis."""

from __future__ import annotations

from typing import Any

from .functional.windows import as_sizes
from .module import Module


class Windowed(Module):
    """A layer with windows over `axes` spatial axes of (..., *spatial, channels)."""

    axes: int

    def _sizes(self, what: str, least: int = 1) -> tuple[int, ...]:
        """A setting as one number for each axis, checked."""
        return as_sizes(type(self).__name__, what, getattr(self, what), self.axes, least)

    def _changed(self, **defaults: Any) -> list[str]:
        """The settings that are not the default, as `repr` shows them."""
        return [f"{name}={getattr(self, name)!r}" for name, value in defaults.items() if getattr(self, name) != value]


def as_setting(value: Any) -> Any:
    """A setting that cannot be changed in place. One number stays one."""
    return tuple(map(as_setting, value)) if isinstance(value, (tuple, list)) else value
