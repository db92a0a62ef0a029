"""Parameters that the first input makes. Book, section 6.1 (deferred initialisation)."""

from __future__ import annotations

from ...core.context import leave, note_structure_change, switch
from ...core.tensor import Tracer
from ...core.typing import KeyLike

__all__ = ["Lazy", "at_once"]


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


class at_once:  # noqa: N801 - reads as `with at_once():`
    """Compute what follows now, even while a function is being traced.

    A lazy layer that a trace completes must not depend on whether the trace is ever run. Only with a `key`
    that is traced itself are there no numbers now, and what follows is traced as well.
    """

    __slots__ = ("_before", "_traced")

    def __init__(self, key: KeyLike = None) -> None:
        self._traced = isinstance(key, Tracer)

    def __enter__(self) -> None:
        if not self._traced:
            self._before = switch(None)

    def __exit__(self, *exception: object) -> None:
        if not self._traced:
            leave(self._before)


def set_together(module: object, **attributes: object) -> None:
    """Set several attributes of a module at one moment: Ctrl-C and other threads find all of them or none.

    >>> import wonderland as wl
    >>> layer = wl.nn.Linear(None, 2)
    >>> set_together(layer, note="first", in_features=None)
    >>> layer.note
    'first'
    """
    note_structure_change()  # before, as an interrupt may come right after the change
    vars(module).update(attributes)  # one call into C: no signal is heard inside it
    note_structure_change()  # and after, for a thread that looked in between
