"""What depends on parameters alone is computed once, and kept while they are the same arrays with the same numbers.

Steps that read nothing but steady inputs (the state that a program reads and does not write: parameters and running
statistics in a forward pass) come first: packed weights and filters, transposes, casts, the scales of normalisations.
Their results have memory of their own, and a call that gets the same arrays as the last one begins behind them.

An array stands for its numbers as long as it lives and nobody overwrites it (arrays/assignment.py). What is kept goes
with the first array that does not, so a model that is gone, or that is trained on, leaves no memory behind. Arrays over
the memory of others, who may write there unseen, are never taken for the same.
"""

from __future__ import annotations

import functools
import mmap
import weakref
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ...arrays.assignment import unchanged
from ...core.typing import Array
from .memory import ALIGN, in_loops
from .schedule import Schedule
from .steps import Control, Fallback, Label, Step
from .tuning import WORTH_KEEPING
from .values import Buffer


class Prologue(NamedTuple):
    """The first steps of a program, which depend on steady inputs alone."""

    steps: int
    sources: list[int]  # the positions of the inputs that they read
    results: list[Buffer]  # what later steps read


def prologue(schedule: Schedule, steady: Collection[int]) -> Prologue:
    """Move the steps that depend on steady inputs alone to the front of a schedule."""
    sources = {schedule.inputs[i]: i for i in steady}
    steps = schedule.steps
    moved = _moved(schedule, sources) if sources else []
    written = {b for i in moved for b in steps[i].writes}
    if sum(b.size for b in written) < WORTH_KEEPING:
        return Prologue(0, [], [])
    first = set(moved)
    later = [step for i, step in enumerate(steps) if i not in first]
    front = [steps[i] for i in moved]
    schedule.steps = [*front, *later]
    read = {b for step in later for b in step.reads}
    results = [b for b in written if b in read]
    for buffer in results:
        buffer.kind = "lasting"
    used = {sources[b] for step in front for b in step.reads if b in sources}
    return Prologue(len(front), sorted(used), results)


def _moved(schedule: Schedule, sources: Collection[Buffer]) -> list[int]:
    """The steps that read steady inputs, constants and each other's results alone, and write nothing else's."""
    steps = schedule.steps
    touching: dict[Buffer, list[int]] = {}
    for i, step in enumerate(steps):
        for buffer in {*step.reads, *step.writes}:
            touching.setdefault(buffer, []).append(i)
    inside = in_loops(schedule)
    good = [_movable(step, schedule.status) and not inside[i] for i, step in enumerate(steps)]
    bad = [b for b in touching if not (b.kind in ("arena", "constant") or b in sources)]
    bad += [b for i, step in enumerate(steps) if not good[i] for b in step.writes]
    bad += [b for step in steps if isinstance(step, Control) for b in step.reads]  # loops change state where it lies
    seen = set(bad)
    while bad:  # what touches a buffer that changes from call to call stays, and with it all that it writes
        buffer = bad.pop()
        for i in touching[buffer]:
            if good[i]:
                good[i] = False
                new = [b for b in steps[i].writes if b not in seen]
                seen.update(new)
                bad += new
    return _rooted([i for i in range(len(steps)) if good[i]], steps, sources)


def _movable(step: Step, status: Buffer) -> bool:
    return not isinstance(step, (Control, Fallback, Label)) and status not in step.reads


def _rooted(good: list[int], steps: list[Step], sources: Collection[Buffer]) -> list[int]:
    """Those that a steady input goes into, and what they need: what is made of constants alone may stay."""
    from_sources = {*sources}
    for i in good:
        if any(b in from_sources for b in steps[i].reads):
            from_sources.update(steps[i].writes)
    found: list[int] = []
    needed: set[Buffer] = set()
    for i in reversed(good):
        if any(b in from_sources or b in needed for b in steps[i].writes):
            found.append(i)
            needed.update(steps[i].reads)
    return found[::-1]


class Kept:
    """Results, for which arrays they were made (by identity), and the weak references that see to their end."""

    __slots__ = ("__weakref__", "arrays", "memory", "watched")

    def __init__(self, memory: Array, arrays: tuple[int, ...] = (), watched: Sequence[object] = ()) -> None:
        self.memory, self.arrays, self.watched = memory, arrays, watched


class Lasting:
    """The memory of what is kept from call to call, and for which arrays it was computed."""

    def __init__(self, made: Prologue, places: dict[Buffer, int]) -> None:
        offsets, size = [], 0
        for buffer in made.results:
            offsets.append(size)
            size += -(-buffer.nbytes // ALIGN) * ALIGN
        self._places = np.array([places[b] for b in made.results], np.int64)
        self._offsets = np.array(offsets, np.int64)
        self.bytes = size
        self.steps = made.steps
        self._pick = itemgetter(*made.sources, made.sources[0])  # always a tuple
        self._kept: dict[int, Kept] = {}  # one, or none

    def start(self, arrays: list[Array], table: Array) -> int:
        """The step to begin with: the first one, or the first behind what is there already."""
        if self.found(arrays) is not None:
            return self.steps
        kept = self._kept.get(0)
        memory: Array = np.empty(self.bytes + ALIGN, np.uint8) if kept is None else kept.memory
        self._kept[0] = Kept(memory)  # until `remember`
        self.place(self._kept[0], table)
        return 0

    def found(self, arrays: list[Array]) -> Kept | None:
        """What is there already for these arrays."""
        kept = self._kept.get(0)
        return kept if kept is not None and kept.arrays == (*map(id, self._pick(arrays)),) else None

    def place(self, kept: Kept, table: Array) -> None:
        """Let a table show where it is."""
        table[self._places] = -(-kept.memory.ctypes.data // ALIGN) * ALIGN + self._offsets

    @property
    def ready(self) -> bool:
        """Whether something is there for a call with the same arrays."""
        return 0 in self._kept and bool(self._kept[0].arrays)

    @property
    def memory(self) -> Array:
        return self._kept[0].memory

    def remember(self, arrays: list[Array]) -> None:
        """All is computed; the next call need not do it again if it gets the same arrays."""
        kept, picked = self._kept.get(0), self._pick(arrays)
        if kept is not None and all(map(_is_ours, picked)):
            forget = functools.partial(self._kept.pop, 0)  # a function of C, see arrays/assignment.py
            watched = [weakref.ref(unchanged(a), forget) for a in picked]
            self._kept[0] = Kept(kept.memory, (*map(id, picked),), watched)


def _is_ours(array: Array) -> bool:
    """Whether nobody else can write to the memory of an array."""
    base: object = array
    while isinstance(base, np.ndarray) and not base.flags.owndata:
        base = base.base
    return base is array or (isinstance(base, (bytes, mmap.mmap)) and not array.flags.writeable)
