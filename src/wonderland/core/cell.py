"""The cell: a place for a tensor that may change. Everything in the package that changes is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .context import Scope, current
from .dtypes import DType
from .errors import TraceError
from .tensor import Shape, Tensor, Tracer, alias
from .typing import Array

if TYPE_CHECKING:
    from ..arrays.methods import CellMethods as Given  # what is given to the class below from above, see core/giving.py
    from .tape import Recorded
else:
    Given = Tensor


class Cell(Given):
    """A named place for a tensor that may change: a parameter, or a buffer of a module, or a random stream.

    Used in an operation it stands for its value. While a transformation runs, what it puts into cells is seen in its
    own context alone; other threads and tasks go on seeing the last value from outside.
    """

    __slots__ = ("_inside", "_leaf", "_outside")
    _outside: Tensor  # the value outside all transformations
    _inside: dict[Scope, Tensor] | None  # the values inside them, by the outermost one
    _leaf: Recorded
    trainable: bool = False  # whether `grad` of a module differentiates with respect to it
    persistent: bool = True  # whether a module's `state_dict` contains it
    permanent: bool = False  # whether it is the same one for ever, however the structure of modules changes

    @property
    def value(self) -> Tensor:
        """What the cell holds, in this context."""
        inside = self.inside
        return self._outside if inside is None else inside

    @value.setter
    def value(self, value: Tensor) -> None:
        if current().trace is not None or isinstance(value, Tracer):
            self.hold(value)
        else:
            self.settle(value)

    @property
    def inside(self) -> Tensor | None:
        """What a transformation that we are in put in, if one did."""
        return self._inside.get(current().scope) if self._inside else None  # type: ignore[arg-type]  # None: not there

    def hold(self, value: Tensor) -> None:
        """Put a value in for the transformation that we are in alone, until `restore`."""
        scope = current().scope
        if scope is None:
            raise TraceError(
                f"assign: a traced value of shape {value.shape} was to go into a {type(self).__name__} outside the "
                "transformation that traced it.",
                "assign inside the transformed function, or return the value and assign the result",
            )
        if self._inside is None:
            self._inside = {}
        self._inside[scope] = value

    def restore(self, inside: Tensor | None) -> None:
        """Put back what was found `inside` before; None: the value outside counts again."""
        if inside is not None:
            self.hold(inside)
        else:
            self.release()

    def release(self) -> Tensor:
        """What the cell holds; from now on, the value outside counts again."""
        inside = self._inside.pop(current().scope, None) if self._inside else None  # type: ignore[arg-type]
        return self._outside if inside is None else inside

    def settle(self, value: Tensor) -> None:
        """Make this the value outside, and for this context."""
        self.release()
        self._outside = alias(value)  # what becomes of the tensor that was given is no matter of the cell's

    @property
    def _data(self) -> Array:  # type: ignore[override]  # a slot in Tensor, here computed
        return self.value._concrete("a NumPy array")

    @property
    def _node(self) -> Recorded:
        return None if type(self.inside) is Tensor else self._leaf  # gradients are for its own value, not for a guest

    @_node.setter
    def _node(self, node: Recorded) -> None:
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

    def _concrete(self, what: str) -> Array:
        return self.value._concrete(what)

    def _item_data(self) -> Array:
        return self.value._item_data()

    def __repr__(self) -> str:
        return type(self).__name__.lower() + repr(self.value).removeprefix("tensor")

    def settings(self) -> tuple[tuple[str, Any], ...]:
        """What makes the cell besides its value, as keyword arguments of its class."""
        return ()

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore_cell, (type(self), self.value._concrete("a pickle"), self.settings()))

    def __copy__(self) -> Tensor:
        return type(self)(self.value, **dict(self.settings()))

    def __deepcopy__(self, memo: dict[int, Tensor]) -> Tensor:
        copy = memo[id(self)] = self.__copy__()
        return copy


def _restore_cell(kind: type[Cell], data: Array, settings: tuple[tuple[str, Any], ...]) -> Cell:
    return kind(data, **dict(settings))
