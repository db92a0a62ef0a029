"""The layer that does nothing."""

from __future__ import annotations

from typing import Any

from .module import Module


class Identity(Module):
    r"""\(x\), in the place of a layer that is left out; its constructor takes any arguments.

    >>> import wonderland as wl
    >>> wl.nn.Identity()(wl.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x
