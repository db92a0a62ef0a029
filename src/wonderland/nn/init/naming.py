"""Initialisers by the names of their schemes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...core.errors import InputError
from ...core.tensor import Tensor
from . import schemes

__all__ = ["as_initializer"]

InitializerLike: TypeAlias = str | Callable[..., Tensor]  # the name of a scheme, or a function of shape, key and dtype


def as_initializer(name: str, init: InitializerLike) -> Callable[..., Tensor]:
    """An initialiser, also by the name of a scheme, or any function of a shape, a key and a dtype.

    >>> import wonderland as wl
    >>> wl.nn.init.as_initializer("Linear", "zeros")
    zeros()
    """
    if isinstance(init, str):
        factory = getattr(schemes, init.rstrip("_"), None) if init in schemes.__all__ else None
        if factory is None:
            import difflib

            near = difflib.get_close_matches(init, schemes.__all__, 3) or ["kaiming_normal", "xavier_uniform"]
            raise InputError(f"{name}: there is no initialiser {init!r}.", " or ".join(map(repr, near)))
        init = factory()
    if not callable(init):
        raise InputError(f"{name}: a {type(init).__name__} is no initialiser.", "wl.nn.init.kaiming_normal()")
    return init
