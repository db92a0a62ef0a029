"""The mesh: devices in rows and columns, whose axes have names that rules speak of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ..core.arguments import as_int
from ..core.errors import InputError

__all__ = ["Mesh", "mesh"]


class Mesh(NamedTuple):
    """Names of axes and their sizes. Made by `wl.mesh`; no device is touched before something is placed on it."""

    axes: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def devices(self) -> int:
        """How many devices it has."""
        return math.prod(self.sizes)

    def parts(self, names: Iterable[str]) -> int:
        """Into how many parts these axes together cut."""
        return math.prod(self.sizes[self.axes.index(name)] for name in names)

    def described(self, names: Iterable[str]) -> str:
        """`data=2 model=4`."""
        return " ".join(f"{name}={self.parts([name])}" for name in names)

    def __str__(self) -> str:
        return f"mesh({', '.join(f'{name}={size}' for name, size in zip(self.axes, self.sizes, strict=True))})"


def mesh(**axes: int) -> Mesh:
    """Devices in a grid, with a name and a size for each axis.

    >>> import wonderland as wl
    >>> made = wl.mesh(data=2, model=4)
    >>> print(made, made.devices)
    mesh(data=2, model=4) 8

    Neighbours along the last axis are nearest to each other, so it should be the one that is used most: "model" in
    ready rules. That there are so many devices is asked when the first tensor is placed, so layouts for machines that
    are elsewhere can be looked at here.
    """
    if not axes:
        raise InputError("mesh: no axis is named.", "wl.mesh(data=8), or wl.mesh(data=2, model=4)")
    if flags := [name for name, size in axes.items() if isinstance(size, bool)]:
        raise InputError(f"mesh: {flags[0]}={axes[flags[0]]} is not a number of devices.", f"{flags[0]}=2")
    return Mesh(tuple(axes), tuple(as_int("mesh", name, size, 1) for name, size in axes.items()))
