"""Locks that are open in a forked child: the threads that might have held them do not exist there."""

from __future__ import annotations

import os
import weakref
from typing import Any, TypeVar

LockType = TypeVar("LockType")
_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def open_after_fork(lock: LockType) -> LockType:
    """The lock itself, to be opened in children."""
    _locks.add(lock)
    return lock


def _open() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # what Python's own modules do


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open)
