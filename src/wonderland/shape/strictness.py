"""A guard against accidental broadcasting. Book, Box C.2.1."""

from __future__ import annotations

from ..core.settings import set_from_now_on, setting

__all__ = ["set_strict", "strict"]


def strict(enabled: bool = True) -> setting:
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
    that are written out, as x[:, None] - y[None, :]. Holds for the current thread or task, eagerly and while tracing;
    works as a decorator, too. Book, Box C.2.1.
    """
    return setting("strict_broadcast", bool(enabled))


def set_strict(enabled: bool = True) -> None:
    """Turn the guard of `strict` on or off for the rest of the program (of this thread or task).

    >>> import wonderland as wl
    >>> wl.shape.set_strict()
    >>> wl.shape.set_strict(False)
    """
    set_from_now_on("strict_broadcast", bool(enabled))
