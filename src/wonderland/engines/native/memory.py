"""Where intermediate values live: one arena, in which values that are not alive together share memory."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from ...ir.sizes import at
from .runtime import Op as Code
from .schedule import Schedule
from .steps import Control
from .tuning import COMPARED
from .values import Buffer

ALIGN = 64  # bytes: a cache line, and the widest vector
PLANNED = ("arena", "carry")

Life = tuple[int, int]


def plan(schedule: Schedule, batch: int = 0) -> int:
    """Give every arena buffer an offset such that buffers alive at one time do not overlap; the arena's size in bytes.

    `batch`: the largest that there is room for, if sizes vary.
    Large buffers are placed first, each at the lowest offset that is free during its whole life. That compares each
    with all larger ones, so the smallest of many buffers have a region of their own.
    """
    life = lifetimes(schedule)
    room = {b: at(b.size, batch) * b.dtype.itemsize for b in life if b.kind in PLANNED}
    buffers = sorted(room, key=lambda b: -room[b])
    total = _first_fit(buffers[:COMPARED], life, room)
    return _by_size(buffers[COMPARED:], life, room, total)


def _by_size(buffers: list[Buffer], life: dict[Buffer, Life], sizes: dict[Buffer, int], start: int) -> int:
    """Place buffers behind `start` as they come to life, where one of the same size, rounded up, has ended."""
    free: dict[int, list[int]] = {}
    alive: list[tuple[int, int, int]] = []  # when it ends, offset, room
    for buffer in sorted(buffers, key=lambda b: life[b][0]):
        first, last = life[buffer]
        while alive and alive[0][0] < first:
            _, offset, room = heapq.heappop(alive)
            free.setdefault(room, []).append(offset)
        room = max(ALIGN, 1 << (sizes[buffer] - 1).bit_length())
        if not free.get(room):
            free[room] = [-(-start // ALIGN) * ALIGN]
            start = free[room][0] + room
        buffer.offset = free[room].pop()
        heapq.heappush(alive, (last, buffer.offset, room))
    return start


def _first_fit(buffers: list[Buffer], life: dict[Buffer, Life], sizes: dict[Buffer, int]) -> int:
    # of the buffers that are placed already: the steps during which they live, and what they occupy, up to a multiple
    # of ALIGN
    firsts, lasts, starts, ends = np.zeros((4, len(buffers)), np.int64)
    total = 0
    for i, buffer in enumerate(buffers):
        firsts[i], lasts[i] = life[buffer]
        together = np.flatnonzero((firsts[:i] <= lasts[i]) & (firsts[i] <= lasts[:i]))
        together = together[np.argsort(starts[together], kind="stable")]
        free = np.maximum.accumulate([0, *ends[together]])  # where nothing in front reaches, before each and at the end
        fits = np.flatnonzero(free[:-1] + sizes[buffer] <= starts[together])
        buffer.offset = starts[i] = int(free[fits[0] if len(fits) else -1])
        ends[i] = -(-(buffer.offset + sizes[buffer]) // ALIGN) * ALIGN
        total = max(total, buffer.offset + sizes[buffer])
    return total


def lifetimes(schedule: Schedule) -> dict[Buffer, Life]:
    """The first and the last step that touches each buffer. What enters or leaves a loop lives through all of it."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    around = around_each(schedule)
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
    return {buffer: _through_loops(first[buffer], last[buffer], around) for buffer in first}


def _through_loops(first: int, last: int, around: list[Extent | None]) -> Life:
    """A life that covers the loops it begins before, or ends behind. `around`: the innermost loop of every step."""
    began, ended = first, last
    loop = around[last]
    while loop is not None and began < loop.begin:
        ended, loop = loop.end, loop.outer
    loop = around[first]
    while loop is not None and loop.begin < began and loop.end < last:
        began, loop = loop.begin, loop.outer
    return began, ended


def in_loops(schedule: Schedule) -> list[bool]:
    """Which steps are in loops or branches."""
    return [loop is not None for loop in around_each(schedule)]


class Extent(NamedTuple):
    """The first and the last step of a loop, and the loop around it."""

    begin: int
    end: int
    outer: Extent | None


def around_each(schedule: Schedule) -> list[Extent | None]:
    """The innermost loop that every step is in; its end is outside."""
    position = {id(step): i for i, step in enumerate(schedule.steps)}
    ends = {position[id(loop.begin)]: position[id(loop.end)] for loop in schedule.loops}
    found: list[Extent | None] = []
    inner: Extent | None = None
    for i in range(len(schedule.steps)):
        while inner is not None and inner.end <= i:
            inner = inner.outer
        if i in ends:
            inner = Extent(i, ends[i], inner)
        found.append(inner)
    return found
