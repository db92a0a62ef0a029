"""Where intermediate values live: one arena, in which values that are not alive together share memory."""

from __future__ import annotations

from .runtime import Op as Code
from .schedule import Schedule
from .steps import Control
from .values import Buffer

ALIGN = 64  # bytes: a cache line, and the widest vector
PLANNED = ("arena", "carry")


def plan(schedule: Schedule) -> int:
    """Give every arena buffer an offset such that buffers alive at one time do not overlap; the arena's size in bytes.

    Large buffers are placed first, each at the lowest offset that is free during its whole life.
    """
    life = lifetimes(schedule)
    placed: list[Buffer] = []
    total = 0
    for buffer in sorted(life, key=lambda b: -b.nbytes):
        if buffer.kind not in PLANNED:
            continue
        first, last = life[buffer]
        busy = sorted(
            (other.offset, other.offset + other.nbytes)
            for other in placed
            if life[other][0] <= last and first <= life[other][1]
        )
        offset = 0
        for start, end in busy:
            if offset + buffer.nbytes <= start:
                break
            offset = max(offset, -(-end // ALIGN) * ALIGN)
        buffer.offset = offset
        placed.append(buffer)
        total = max(total, offset + buffer.nbytes)
    return total


def lifetimes(schedule: Schedule) -> dict[Buffer, tuple[int, int]]:
    """The first and the last step that touches each buffer. What enters or leaves a loop lives through all of it."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    position = {id(step): i for i, step in enumerate(schedule.steps)}
    for i, step in enumerate(schedule.steps):
        for touched in [*step.reads, *step.writes]:
            buffer = touched
            while buffer.base is not None:
                buffer = buffer.base
            first.setdefault(buffer, i)
            last[buffer] = i
    # buffers that exchange their addresses stand for each other: as long as one is needed, so is the memory of both
    for step in schedule.steps:
        if not isinstance(step, Control) or step.code != Code.SWAP:
            continue
        one, other = (b for b in step.args if isinstance(b, Buffer))
        first[one] = first[other] = min(first[one], first[other])
        last[one] = last[other] = max(last[one], last[other])
    # inner loops stand before the ones around them
    for loop in schedule.loops:
        begin, end = position[id(loop.begin)], position[id(loop.end)]
        for buffer in first:
            if first[buffer] < begin <= last[buffer] < end:
                last[buffer] = end
            elif begin < first[buffer] < end < last[buffer]:
                first[buffer] = begin
    return {buffer: (first[buffer], last[buffer]) for buffer in first}
