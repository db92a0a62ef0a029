"""Who remembers something about the numbers of an array learns here that they are about to change.

Arrays do not change while others hold them. But what remembers things about them must not hold them: a training step
overwrites the parameters that nobody else holds, and a model that is gone should take its memory along.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable

from .typing import Array


class Unchanged:
    """Lives as long as the numbers of an array are what they are."""

    __slots__ = ("__weakref__",)


_unchanged: dict[int, tuple[weakref.ref[Array], Unchanged]] = {}  # by the identity of the array


def unchanged(array: Array) -> Unchanged:
    """What lives as long as the array does and nobody overwrites it. Hold it by a weak reference."""
    key = id(array)
    if key not in _unchanged:
        # a function of C, as what Ctrl-C raises in one of ours would be lost: nobody has called it
        _unchanged[key] = (weakref.ref(array, functools.partial(_unchanged.pop, key)), Unchanged())
    return _unchanged[key][1]


def overwriting(arrays: Iterable[Array]) -> None:
    """The numbers of these arrays are going to change. Whoever writes into an array says so here before."""
    if _unchanged:
        for key in _unchanged.keys() & {*map(id, arrays)}:
            _unchanged.pop(key, None)
