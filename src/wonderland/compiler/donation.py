"""New state in the place of old: which results may overwrite the inputs that they replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .kernels.kernel import Kernel, Reduce
from .products.epilogue import WithEpilogue
from .runtime import Op as Code
from .schedule import Schedule
from .steps import Control, Fallback
from .values import Buffer


def donations(schedule: Schedule, states: Mapping[int, int]) -> dict[int, int]:
    """The pairs (output, input) of `states` where the last step that reads the input writes the output in its place.

    Nothing may fail once state is being overwritten: bad indices are looked for before, and pairs that are written
    earlier than the last step that could fail are left out.
    """
    steps = schedule.steps
    last_risk = max((i for i, step in enumerate(steps) if _can_fail(step, schedule.status)), default=-1)
    readers: dict[Buffer, list[int]] = {}
    writers: dict[Buffer, list[int]] = {}
    for i, step in enumerate(steps):
        for buffer in dict.fromkeys(step.reads):
            readers.setdefault(buffer, []).append(i)
        for buffer in dict.fromkeys(step.writes):
            writers.setdefault(buffer, []).append(i)
    found: dict[int, int] = {}
    for out, source in states.items():
        old, new = schedule.inputs[source], schedule.outputs[out]
        if len(writers.get(new, [])) != 1 or new in readers or old.size != new.size or old.dtype != new.dtype:
            continue
        at = writers[new][0]
        if at > last_risk and all(i <= at for i in readers.get(old, [])) and _in_place(steps[at], old, new):
            found[out] = source
    first = min((writers[schedule.outputs[out]][0] for out in found), default=0)
    if found:
        steps.insert(first, Control(Code.SET, schedule.begun, 1))
    if found and schedule.checks:
        steps.insert(first, Control(Code.CHECK, schedule.status, 2 * len(schedule.checks)))
    return found


def _can_fail(step: Any, status: Buffer) -> bool:
    return isinstance(step, Fallback) or status in step.reads


def _in_place(step: Any, old: Buffer, new: Buffer) -> bool:
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
