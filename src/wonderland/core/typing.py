"""What functions take, in words that readers, editors and type checkers understand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from .cell import Cell
    from .tensor import Tensor

Array: TypeAlias = np.ndarray[Any, Any]
Number: TypeAlias = bool | int | float | complex | np.generic


class SupportsArray(Protocol):
    """What NumPy can turn into an array: the arrays of other packages."""

    def __array__(self, *args: Any, **kwargs: Any) -> Array: ...


class SupportsDLPack(Protocol):
    """An array that lets others read its memory, see the Python specification of DLPack."""

    def __dlpack__(self, *, stream: None = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, int]: ...


class Shaped(Protocol):
    """What has a shape and a dtype: a tensor, an array, an abstract value, a variable of a graph."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def ndim(self) -> int: ...


class KeySource(Protocol):
    """What gives a new key whenever it is asked: a `wl.random.Stream`."""

    def next_key(self) -> Tensor: ...


# What stands for a tensor. Not any sequence, for a string is one.
ArrayLike: TypeAlias = "Tensor | Cell | Array | Number | list[Any] | tuple[Any, ...] | range | SupportsArray"
DTypeLike: TypeAlias = np.dtype[Any] | str | type[Any]
ShapeLike: TypeAlias = int | Sequence[int]
Ints: TypeAlias = int | tuple[int, ...] | list[int]  # one or several
Axes: TypeAlias = int | Sequence[int] | None  # None: all of them
KeyLike: TypeAlias = "Tensor | Array | KeySource | None"  # None: the next key of the global stream
PathLike: TypeAlias = str | os.PathLike[str]
Foreign: TypeAlias = Any  # an object of a package that need not be installed: a frame, an Arrow table, an image
# What stands between brackets: integers, slices, None, ..., masks and positions, or a tuple of them.
Index: TypeAlias = "SupportsIndex | slice | EllipsisType | Tensor | Array | list[Any] | tuple[Any, ...] | range | None"
Tangents: TypeAlias = "list[Tensor | None]"  # or adjoints; None: zero
