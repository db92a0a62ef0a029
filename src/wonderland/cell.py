"""The cell: a place for a tensor that may change. Everything in the package that changes is one."""

from __future__ import annotations

from threading import get_ident
from typing import Any

import numpy as np

from .context import state
from .dtypes import DType
from .tensor import Shape, Tensor, Tracer, wrap


class Cell(Tensor):
    """A named place for a tensor that may change: a parameter, or a buffer of a module, or a random stream.

    Used in an operation it stands for its value. While a transformation runs, what it puts into cells is seen by its
    own thread alone; the others go on seeing the last value from outside.
    """

    __slots__ = ("_inside", "_leaf", "_outside")
    _outside: Tensor  # the value outside all transformations
    _inside: dict[int, Tensor] | None  # the values inside them, by thread
    _leaf: Any
    trainable: bool = False  # whether `grad` of a module differentiates with respect to it
    persistent: bool = True  # whether a module's `state_dict` contains it
    permanent: bool = False  # whether it is the same one for ever, however the structure of modules changes

    def __init__(self, data: Any, dtype: Any = None) -> None:
        value = arrays.asarray(data, dtype=dtype, copy=True if isinstance(data, np.ndarray) else None)
        self._leaf = None
        self._outside = wrap(value._data) if type(value) is Tensor else value  # without its imperative record
        self._inside = {get_ident(): value} if isinstance(value, Tracer) else None
        if state.trace is not None:
            state.trace.note_create(self)

    @property
    def value(self) -> Tensor:
        """What the cell holds, for this thread."""
        inside = self.inside
        return self._outside if inside is None else inside

    @value.setter
    def value(self, value: Tensor) -> None:
        if state.trace is not None or isinstance(value, Tracer):
            self.hold(value)
        else:
            if self._inside:
                self._inside.pop(get_ident(), None)
            self._outside = value

    @property
    def inside(self) -> Tensor | None:
        """What a transformation of this thread put in, if one did."""
        return self._inside.get(get_ident()) if self._inside else None

    def hold(self, value: Tensor) -> None:
        """Put a value in for this thread alone, until `restore`."""
        if self._inside is None:
            self._inside = {}
        self._inside[get_ident()] = value

    def restore(self, inside: Tensor | None) -> None:
        """Put back what was found `inside` before; None: the value outside counts again."""
        if inside is not None:
            self.hold(inside)
        elif self._inside:
            self._inside.pop(get_ident(), None)

    def assign(self, value: Any) -> None:
        """Put a new value of the same shape into the cell; `interpreter.assign` does the bookkeeping."""
        interpreter.assign(self, value)

    @property
    def _data(self) -> np.ndarray[Any, Any]:  # type: ignore[override]  # a slot in Tensor, here computed
        return self.value._concrete("a NumPy array")

    @property
    def _node(self) -> Any:
        return self._leaf

    @_node.setter
    def _node(self, node: Any) -> None:
        self._leaf = node

    @property
    def shape(self) -> Shape:
        return self.value.shape

    @property
    def dtype(self) -> DType:
        return self.value.dtype

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def _concrete(self, what: str) -> np.ndarray[Any, Any]:
        return self.value._concrete(what)

    def _item_data(self) -> np.ndarray[Any, Any]:
        return self.value._item_data()

    def __repr__(self) -> str:
        return type(self).__name__.lower() + repr(self.value).removeprefix("tensor")

    def settings(self) -> tuple[tuple[str, Any], ...]:
        """What makes the cell besides its value, as keyword arguments of its class."""
        return ()

    def __reduce__(self) -> Any:
        return (_restore_cell, (type(self), self.value._concrete("a pickle"), self.settings()))

    def __copy__(self) -> Tensor:
        return type(self)(self.value, **dict(self.settings()))

    def __deepcopy__(self, memo: Any) -> Tensor:
        copy = memo[id(self)] = self.__copy__()
        return copy


def _restore_cell(kind: type[Cell], data: np.ndarray[Any, Any], settings: tuple[tuple[str, Any], ...]) -> Cell:
    return kind(data, **dict(settings))


from . import arrays, interpreter  # noqa: E402 - these know cells
