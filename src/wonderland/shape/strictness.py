"""A guard against accidental broadcasting. Book, Box C.2.1."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..context import state, switch

__all__ = ["set_strict", "strict"]


@contextlib.contextmanager
def strict(enabled: bool = True) -> Iterator[None]:
    """Refuse broadcasting that looks like an accident: every operand is repeated, and one of them gets a new axis.

    >>> import wonderland as wl
    >>> prediction, target = wl.zeros((4, 1)), wl.zeros(4)
    >>> (prediction - target).shape  # not four differences, but sixteen
    (4, 4)
    >>> with wl.shape.strict():
    ...     try:
    ...         prediction - target
    ...     except wl.errors.BroadcastError as error:
    ...         print(str(error).splitlines()[0])
    subtract: the shapes (4, 1) and (4,) broadcast into (4, 4), which none of them has.

    What remains: an operand with the shape of the result, as a bias (d,) added to (n, d); scalars; and axes
    that are written out, as x[:, None] - y[None, :]. Holds for the current thread, eagerly and while tracing;
    works as a decorator, too. Book, Box C.2.1.
    """
    before = state.strict_broadcast
    set_strict(enabled)
    try:
        yield
    finally:
        set_strict(before)


def set_strict(enabled: bool = True) -> None:
    """Turn the guard of `strict` on or off for the rest of the program (of this thread).

    >>> import wonderland as wl
    >>> wl.shape.set_strict()
    >>> wl.shape.set_strict(False)
    """
    state.strict_broadcast = bool(enabled)
    switch(state.trace)  # operations on plain tensors may not skip the check any more, or may again
