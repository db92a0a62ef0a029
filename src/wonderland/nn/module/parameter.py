"""The cells of modules: a `Parameter` is trained, a `Buffer` is other state."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ...core.cell import Cell
from ...core.context import note_structure_change
from ...core.dtypes import is_inexact
from ...core.errors import GradientError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike
from ...transforms import imperative
from .lazy import Lazy

__all__ = ["Parameter", "Buffer"]

C = TypeVar("C", covariant=True)


class Held(Protocol[C]):
    """The type of an attribute with a cell, as in `weight: Held[Parameter]`: one reads the cell; what is assigned goes
    into it, or takes its place."""

    def __get__(self, module: object, kind: type | None = None, /) -> C: ...

    def __set__(self, module: object, value: ArrayLike | Lazy | None, /) -> None: ...


class Parameter(Cell):
    r"""A tensor \(w\) that training moves. Book, section 6.1.

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([2.0, 3.0])
    >>> (w * w).sum().backward()
    >>> w.grad
    tensor([4., 6.])
    >>> w.assign(w - 0.5 * w.grad)
    >>> w
    parameter([0., 0.])

    Used in an operation it stands for its value; `assign` puts a new value of the same shape and dtype into
    it. While `trainable` is true, `wl.grad` of a function of its module differentiates with respect to it,
    and operations on it are recorded for `backward()`. `requires_grad` is another name of `trainable`.
    """

    __slots__ = ("_trainable",)

    def __init__(self, data: ArrayLike, dtype: DTypeLike | None = None, *, trainable: bool = True) -> None:
        super().__init__(data, dtype)
        self._trainable = False
        if trainable:
            self.trainable = True

    @property
    def trainable(self) -> bool:
        """Whether training may change the value."""
        return self._trainable

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        if trainable and not is_inexact(self.dtype):
            raise GradientError(
                f"Parameter: {self.dtype}{list(self.shape)} has no gradient, so it cannot be trained.",
                "a floating dtype, trainable=False, or wl.nn.Buffer",
            )
        if trainable != self._trainable:
            self._trainable = bool(trainable)
            imperative.requires_grad_(self, self._trainable)
            note_structure_change()

    @property
    def requires_grad(self) -> bool:
        return self._trainable

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        self.trainable = requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self.trainable = requires_grad
        return self

    def settings(self) -> tuple[tuple[str, bool], ...]:
        return (("trainable", self._trainable),)


class Buffer(Cell):
    """State of a module that is not trained, such as a running mean. Book, section 6.1.

    >>> import wonderland as wl
    >>> count = wl.nn.Buffer(0)
    >>> count.assign(count + 1)
    >>> count
    buffer(1)

    `state_dict()` contains the persistent ones.
    """

    __slots__ = ("persistent",)

    def __init__(self, data: ArrayLike, dtype: DTypeLike | None = None, *, persistent: bool = True) -> None:
        super().__init__(data, dtype)
        self.persistent = persistent

    def settings(self) -> tuple[tuple[str, bool], ...]:
        return (("persistent", self.persistent),)
