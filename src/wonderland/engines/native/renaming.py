"""Copies that are another name for the same memory: what is copied is not read in its old form any more.

A scatter changes a copy of its argument. In a loop that is a copy of the whole state in every turn, as of a cache of
keys to which a step of decoding adds a token. Where nobody reads the argument afterwards, both are one memory: the copy
becomes a move of an address, and the state of a loop is changed where it lies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .kernels.kernel import Kernel, Store
from .memory import around_each
from .runtime import Op as Code
from .schedule import Schedule
from .steps import Control, Step
from .values import Buffer, View

OWN = ("arena", "carry")  # memory of the program


class Copy(NamedTuple):
    """A step that does nothing but copy all of a buffer to all of another."""

    at: int
    old: Buffer
    new: Buffer


def copied(step: Step) -> tuple[Buffer, Buffer] | None:
    """The buffers of a step that does nothing but copy all of one to the other."""
    if not isinstance(step, Kernel) or len(step.items) != 1 or not isinstance(step.items[0], Store):
        return None
    target, value = step.items[0]
    if not isinstance(value, View) or not value.is_contiguous() or not target.is_contiguous():
        return None
    old, new = value.buffer, target.buffer
    return (old, new) if old.size == new.size and old.dtype == new.dtype else None


def rename_copies(schedule: Schedule) -> None:
    """Leave out the copies of a schedule that need not be made."""
    renaming = _Renaming(schedule)
    found = [Copy(i, *both) for i, step in enumerate(schedule.steps) if (both := copied(step)) is not None]
    dropped: set[int] = set()
    for copy in found:
        if (swap := renaming.turn(copy)) is not None:
            renaming.rename(copy)
            dropped.add(swap)
        elif renaming.gives(copy):
            renaming.give(copy)
            dropped.add(copy.at)
    schedule.steps = [step for i, step in enumerate(schedule.steps) if i not in dropped]


class _Renaming:
    """Who reads and writes what in a schedule, and what follows from it for a copy."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.around = schedule, around_each(schedule)
        self.read: dict[Buffer, list[int]] = {}  # where a buffer, or what moves along it, is read
        self.written: dict[Buffer, list[int]] = {}
        self.swapped: dict[Buffer, list[int]] = {}  # where the two buffers of a loop's state exchange their addresses
        self.bases: set[Buffer] = set()  # of what moves
        for i, step in enumerate(schedule.steps):
            if isinstance(step, Control) and step.code == Code.SWAP:
                for buffer in step.reads:
                    self.swapped.setdefault(buffer, []).append(i)
            elif not isinstance(step, Control) or step.code != Code.SET:  # that one keeps alive, and reads nothing
                self._note(self.read, step.reads, i)
            self._note(self.written, step.writes, i)

    def _note(self, where: dict[Buffer, list[int]], buffers: Iterable[Buffer], i: int) -> None:
        for touched in dict.fromkeys(buffers):
            buffer: Buffer | None = touched
            while buffer is not None:
                where.setdefault(buffer, []).append(i)
                buffer = buffer.base
                if buffer is not None:
                    self.bases.add(buffer)

    def turn(self, copy: Copy) -> int | None:
        """Where a loop exchanges the buffers of its state, if the copy begins the new from the old in every turn."""
        at, old, new = copy
        swaps, loop = self.swapped.get(new, []), self.around[at]
        if len(swaps) != 1 or self.swapped.get(old) != swaps or loop is None or self.around[swaps[0]] is not loop:
            return None
        late = any(at < i < loop.end for i in self.read.get(old, ()))
        early = any(i < at for i in [*self.read.get(new, ()), *self.written[new]])
        return None if late or early or not self.bases.isdisjoint((old, new)) else swaps[0]

    def rename(self, copy: Copy) -> None:
        """New is old, from the copy on."""
        at, old, new = copy
        self.schedule.steps[at] = Control(Code.MOVE, new, old, 0)
        new.kind, new.base = "moving", old
        self.written[old] = [*self.written.get(old, ()), *self.written[new]]
        for buffer in (old, new):
            del self.swapped[buffer]

    def gives(self, copy: Copy) -> bool:
        """Whether a copy makes a result of memory of the program that stays as it is from then on."""
        at, old, new = copy
        if old.kind not in OWN or new.kind != "output" or old in self.swapped or self.around[at] is not None:
            return False
        alone = len(self.written[new]) == 1 and new not in self.read
        return alone and all(i <= at for i in self.written.get(old, ()))

    def give(self, copy: Copy) -> None:
        """The memory is that of the result."""
        copy.old.kind, copy.old.position = "output", copy.new.position
        self.schedule.outputs[copy.new.position] = copy.old
