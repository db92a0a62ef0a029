"""Layers that hand their settings to a function, and what they are given with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import ClassVar

from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .module import Module


class Applied(Module):
    """The base of layers that compute a function of `wl.nn.functional`, as in `class ELU(Applied, function=F.elu)`.

    What `__init__` takes are the settings: attributes of the layer, and arguments of the function by the same names.
    """

    _function: ClassVar[Callable[..., Tensor]]
    _settings: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, function: Callable[..., Tensor] | None = None) -> None:
        super().__init_subclass__()
        if function is not None:  # else the class is a kind of one that has a function
            cls._function = staticmethod(function)
            cls._settings = tuple(inspect.signature(cls).parameters)

    def _applied(self, *tensors: ArrayLike | None, **more: object) -> Tensor:
        """The function of these tensors with the settings of the layer."""
        return self._function(*tensors, **{name: getattr(self, name) for name in self._settings}, **more)


class AppliedToOne(Applied):
    """The base of those that take one tensor."""

    def forward(self, x: ArrayLike) -> Tensor:
        return self._applied(x)
