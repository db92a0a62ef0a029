"""New state in the place of old: which results may overwrite the inputs that they replace."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from .direct.checks import Check, Risk, risks
from .direct.scatters import Scatter
from .kernels.kernel import Kernel, Reduce
from .memory import in_loops
from .products.epilogue import WithEpilogue
from .renaming import copied
from .runtime import Op as Code
from .schedule import Schedule
from .steps import Control, Fallback, Label, Step
from .values import Buffer


class Write(NamedTuple):
    """A result that may take the memory of an input."""

    source: int  # the position of the input
    at: int  # the step from which on the input is overwritten
    copies: bool  # whether that step only copies the input, for others to change some places


class Touched:
    """Which steps read and write each buffer."""

    def __init__(self, steps: list[Step]) -> None:
        self.readers: dict[Buffer, list[int]] = {}
        self.writers: dict[Buffer, list[int]] = {}
        for i, step in enumerate(steps):
            for buffer in dict.fromkeys(step.reads):
                self.readers.setdefault(buffer, []).append(i)
            for buffer in dict.fromkeys(step.writes):
                self.writers.setdefault(buffer, []).append(i)


def donations(schedule: Schedule, states: Mapping[int, int]) -> dict[int, int]:
    """The pairs (output, input) of `states` where no step reads the input once the output is written in its place.

    Nothing may fail once state is being overwritten. So what later steps might refuse is looked for before, if it is
    known by then; pairs that are written earlier than the last step that could fail otherwise are left out.
    """
    steps, touched, inside = schedule.steps, Touched(schedule.steps), in_loops(schedule)
    found: dict[int, Write] = {}
    for out, source in states.items():
        write = _write(steps, touched, inside, source, schedule.inputs[source], schedule.outputs[out])
        if write is not None:
            found[out] = write
    guard, fatal = _guard(schedule, touched, inside, found.values())
    if fatal >= 0:
        found = {out: write for out, write in found.items() if write.at > fatal}
        guard, _ = _guard(schedule, touched, inside, found.values())
    _insert(schedule, found, guard)
    return {out: write.source for out, write in found.items()}


def _write(
    steps: list[Step], touched: Touched, inside: list[bool], source: int, old: Buffer, new: Buffer
) -> Write | None:
    """How a result may be written in the place of an input, if it may."""
    writers = touched.writers.get(new, [])
    if not writers or old.size != new.size or old.dtype != new.dtype:
        return None
    at = writers[0]
    if any(i > at for i in touched.readers.get(old, [])):
        return None
    if len(writers) == 1 and new not in touched.readers and _in_place(steps[at], old, new):
        return Write(source, at, copies=False)
    changed = all(isinstance(steps[i], Scatter) for i in writers[1:])
    if changed and not inside[at] and copied(steps[at]) == (old, new):
        return Write(source, at, copies=True)
    return None


def _in_place(step: Step, old: Buffer, new: Buffer) -> bool:
    """Whether a step reads an element of the old buffer, if at all, just before it writes the same of the new one."""
    if isinstance(step, Kernel):
        if any(isinstance(item, Reduce) for item in step.items):
            return False
    elif not isinstance(step, WithEpilogue) or any(v.buffer is old for v in step.factors):
        return False
    targets = [v for v in step.views if v.buffer is new]
    sources = [v for v in step.views if v.buffer is old]
    return len(targets) == 1 and all(
        v.shape == targets[0].shape and v.strides == targets[0].strides and v.offset == targets[0].offset
        for v in sources
    )


class Guard(NamedTuple):
    """What comes before the first step that overwrites state."""

    moved: list[int]  # steps that come later otherwise
    checks: list[Risk]


def _guard(schedule: Schedule, touched: Touched, inside: list[bool], writes: Collection[Write]) -> tuple[Guard, int]:
    """What must be done before the first write so that nothing can fail after it, and the last step that still could.

    A check can be made early if its arguments can be computed early: from inputs, constants and what is there by then.
    """
    steps, guard, fatal = schedule.steps, Guard([], []), -1
    if not writes:
        return guard, fatal
    first = min(write.at for write in writes)
    early = _early(steps, touched, inside, first)
    wanted: set[Buffer] = set()
    for i in range(first, len(steps)):
        if not _can_fail(steps[i], schedule.status):
            continue
        found = None if isinstance(steps[i], Fallback) or inside[first] else risks(steps[i], schedule.status)
        needed = {b for risk in found or () for b in Check(risk).reads}
        if found is None or not all(_there(b, touched, early) for b in needed):
            fatal = i
        else:
            guard.checks.extend(found)
            wanted |= needed
    for i in reversed(range(first, len(steps))):
        if early[i] and any(b in wanted for b in steps[i].writes):
            guard.moved.append(i)
            wanted.update(steps[i].reads)
    guard.moved.reverse()
    return guard, fatal


def _early(steps: list[Step], touched: Touched, inside: list[bool], first: int) -> list[bool]:
    """Which steps are run before the first write, or could be."""
    early = [i < first for i in range(len(steps))]
    for i in range(first, len(steps)):
        step = steps[i]
        if inside[i] or isinstance(step, (Control, Fallback, Label)):
            continue
        alone = all(b.kind == "arena" and touched.writers[b] == [i] for b in step.writes)
        early[i] = alone and all(_there(b, touched, early) for b in step.reads)
    return early


def _there(buffer: Buffer, touched: Touched, early: list[bool]) -> bool:
    """Whether all of a buffer is written by steps that are early."""
    writers = touched.writers.get(buffer, [])
    return all(early[i] for i in writers) if writers else buffer.kind in ("input", "constant", "status")


def _can_fail(step: Step, status: Buffer) -> bool:
    return isinstance(step, Fallback) or status in step.reads


def _insert(schedule: Schedule, found: Mapping[int, Write], guard: Guard) -> None:
    """The steps of the schedule with checks before the first write, and copies that are left out in place."""
    if not found:
        return
    first, old = min(write.at for write in found.values()), schedule.steps
    copied = {write.at: out for out, write in found.items() if write.copies}
    steps = [*old[:first], *[old[i] for i in guard.moved], *map(Check, guard.checks)]
    if schedule.checks:
        steps.append(Control(Code.CHECK, schedule.status, 2 * len(schedule.checks)))
    steps.append(Control(Code.SET, schedule.begun, 1))
    moved = set(guard.moved)
    for i in range(first, len(old)):
        if i in copied:
            new, source = schedule.outputs[copied[i]], schedule.inputs[found[copied[i]].source]
            behind = Label()
            steps += [Control(Code.SAME, new, source, behind), old[i], behind]
        elif i not in moved:
            steps.append(old[i])
    schedule.steps = steps
