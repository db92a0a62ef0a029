"""State that nobody else holds can be updated in its own memory; who else holds it is a matter of reference counts."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor, wrap

_count = sys.getrefcount


def _counts(operands: Sequence[Any], place: int) -> tuple[int, int]:
    """The reference counts of a tensor in a list, and of its array."""
    tensor = operands[place]
    return _count(tensor), _count(tensor._data)


class _Holder:
    """Stands for a cell."""

    __slots__ = ("value",)
    value: Tensor


def _calibrated() -> tuple[int, int]:
    """The counts of a tensor that only a cell and the list of operands hold: Python's versions count differently."""
    import numpy as np

    holder = _Holder()
    holder.value = wrap(np.zeros(1))
    operands = [holder.value]
    return _counts(operands, 0)


_ALONE = _calibrated()


def unshared(operands: Sequence[Any], places: Sequence[int]) -> list[int]:
    """The places of those tensors that nobody holds but their cells."""
    return [place for place in places if _counts(operands, place) == _ALONE]


class InUse:
    """The arrays that runs are overwriting. Who wants to read one in another thread waits until it is complete."""

    def __init__(self, lock: threading.RLock) -> None:
        self._changed = threading.Condition(lock)
        self._runs: dict[int, tuple[Sequence[Any], Sequence[int]]] = {}  # operands and which of them are overwritten
        self._waiting = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._runs.clear)  # the runs of other threads end there

    def enter(self, operands: Sequence[Any], owned: Sequence[int]) -> None:
        """Called with the lock held, before a run."""
        while self._runs and self._overwrites(operands):
            self._waiting += 1
            self._changed.wait()
            self._waiting -= 1
        if owned:
            self._runs[id(operands)] = (operands, owned)

    def _overwrites(self, operands: Sequence[Any]) -> bool:
        busy = {id(others[i]._data) for others, owned in self._runs.values() for i in owned}
        return any(type(o) is Tensor and id(o._data) in busy for o in operands)

    def leave(self, operands: Sequence[Any]) -> None:
        with self._changed:
            self._runs.pop(id(operands), None)
            if self._waiting:
                self._changed.notify_all()
