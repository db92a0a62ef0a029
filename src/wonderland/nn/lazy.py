"""Parameters that the first input makes. Book, section 6.1 (deferred initialisation)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..context import leave, switch
from ..tensor import Tracer


class Lazy:
    """The place of a parameter or buffer whose shape the first input decides.

    >>> import wonderland as wl
    >>> class Bias(wl.nn.Module):
    ...     def __init__(self):
    ...         self.b = wl.nn.Lazy()
    ...     def forward(self, x):
    ...         if isinstance(self.b, wl.nn.Lazy):
    ...             with wl.nn.at_once():
    ...                 self.b = wl.nn.Parameter(wl.zeros(x.shape[-1]))
    ...         return x + self.b
    >>> layer = Bias()
    >>> layer.output_shape((5, 3)), layer
    ((5, 3), Bias(b=float32[3]))

    As long as a module has one, its parameters cannot be listed.
    """

    def __eq__(self, other: object) -> bool:
        return type(other) is Lazy

    def __hash__(self) -> int:
        return hash(Lazy)

    def __repr__(self) -> str:
        return "lazy"


@contextlib.contextmanager
def at_once(key: Any = None) -> Iterator[None]:
    """Compute what follows now, even while a function is being traced.

    A lazy layer that a trace completes must not depend on whether the trace is ever run. Only with a `key`
    that is traced itself are there no numbers now, and what follows is traced as well.
    """
    if isinstance(key, Tracer):
        yield
        return
    before = switch(None)
    try:
        yield
    finally:
        leave(before)
