"""State that nobody else holds can be updated in its own memory; who else holds it is a matter of reference counts."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from threading import get_ident
from types import CodeType

from ...core.tensor import VALUES, Distant, Tensor, wrap

_count = sys.getrefcount


def _counts(operands: Sequence[Tensor], place: int) -> tuple[int, int]:
    """The reference counts of a tensor in a list, and of its array."""
    tensor = operands[place]
    return _count(tensor), _count(tensor._data)


def _counts_far(operands: Sequence[Tensor], place: int) -> tuple[int, int]:
    """The same of a tensor on a device, and of its array there."""
    tensor = operands[place]
    if type(tensor) is not Distant or tensor.near:  # who has looked at the numbers may still do so
        return 0, 0
    return _count(tensor), _count(tensor.far)


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


def unshared(operands: Sequence[Tensor], places: Sequence[int]) -> list[int]:
    """The places of those tensors in the host's memory that nobody holds but their cells."""
    return [place for place in places if type(operands[place]) is Tensor and _counts(operands, place) == _ALONE]


def unshared_far(operands: Sequence[Tensor], places: Sequence[int]) -> list[int]:
    """The same for tensors on a device."""
    return [place for place in places if _counts_far(operands, place) == _ALONE]


def _memory(x: Tensor) -> object:
    """What a run would overwrite."""
    return x.far if type(x) is Distant and x.far is not None else x._data


# A call that reads state: its operands, which of them it overwrites, and the thread that it is in.
Run = tuple[Sequence[Tensor], Sequence[int], int]


class InUse:
    """The arrays that runs are overwriting. Who wants to read one in another thread waits until it is complete.

    A run takes itself out of `runs` when it ends. Something may keep it from that (under a debugger Ctrl-C comes where
    it otherwise cannot), so one that is in the way counts only if its thread is still inside the call: its stack tells.
    """

    def __init__(self, *codes: CodeType) -> None:
        """`codes`: of the functions that runs are calls of. A variable of theirs tells one from another."""
        self.codes = [*codes]
        self.runs: dict[int, Run] = {}  # by the identity of the operands
        self.waiting: set[int] = set()  # those that wait for others, in the same way
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.runs.clear)  # the runs of other threads end there
            os.register_at_fork(after_in_child=self.waiting.clear)

    def wait(self, key: int, seconds: float) -> None:
        """Sleep until others may be done. Meanwhile calls that begin let those that wait go first.

        A thread that calls a step again and again lets others run only while native code works, which is just when
        they cannot have its state; so one that waits would wait for ever.
        """
        try:
            self.waiting.add(key)
            time.sleep(seconds)
        finally:
            self.waiting.discard(key)

    def overwrote(self, operands: Sequence[Tensor], runs: Sequence[Run]) -> bool:
        """Whether one of the runs, which were there before the operands were read, overwrites one of them.

        It may have ended since, and its other results may be in their cells by now, so the operands are to be read
        again even then.
        """
        wanted = {id(_memory(o)) for o in operands if type(o) in VALUES}
        for run in runs:
            others, owned, thread = run
            # in our own thread: one that was cut short, or one around us, which waits for us before it overwrites
            if thread == get_ident() or wanted.isdisjoint([id(_memory(others[i])) for i in owned]):
                continue
            if not self.goes_on(thread, "operands", others):
                self.runs.pop(id(others), None)
            return True
        return False

    def goes_on(self, thread: int, name: str, what: object) -> bool:
        """Whether a thread is inside a call whose variable of that name is this."""
        frame = sys._current_frames().get(thread)
        while frame is not None:
            if frame.f_code in self.codes and frame.f_locals.get(name) is what:
                return True
            frame = frame.f_back
        return False
