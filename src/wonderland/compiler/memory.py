"""Where intermediate values live: one arena, in which values that are not alive together share memory."""

from __future__ import annotations

from .schedule import Schedule
from .values import Buffer

ALIGN = 64  # bytes: a cache line, and the widest vector


def plan(schedule: Schedule) -> int:
    """Give every arena buffer an offset such that buffers alive at one time do not overlap; the arena's size in bytes.

    Large buffers are placed first, each at the lowest offset that is free during its whole life.
    """
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for i, step in enumerate(schedule.steps):
        for buffer in [*step.reads, *step.writes]:
            if buffer.kind == "arena":
                first.setdefault(buffer, i)
                last[buffer] = i
    placed: list[Buffer] = []
    total = 0
    for buffer in sorted(first, key=lambda b: -b.nbytes):
        busy = sorted(
            (other.offset, other.offset + other.nbytes)
            for other in placed
            if first[other] <= last[buffer] and first[buffer] <= last[other]
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
