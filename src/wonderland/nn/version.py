"""A counter of changes to modules, other than in their cells: by it `jit` knows that a trace may be stale."""

from __future__ import annotations

import itertools

_next = itertools.count(1).__next__
_current = 0


def structure_version() -> int:
    """Grows whenever an attribute of some module is set, a mode is changed or a parameter is frozen.

    A new value *in* a parameter or a buffer does not count: a trace reads cells when it runs.
    """
    return _current


def bump() -> None:
    """Note a change."""
    global _current
    _current = _next()
