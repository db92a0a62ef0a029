"""The layer that does nothing."""

from __future__ import annotations

from ...core.tensor import Tensor
from ..module.module import Module

__all__ = ["Identity"]


class Identity(Module):
    r"""\(x\), in the place of a layer that is left out; its constructor takes any arguments.

    >>> import wonderland as wl
    >>> wl.nn.Identity()(wl.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return x
