"""Counting what is computed, and what is still alive: costs are asserted in operations, not in seconds."""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

from wonderland.core.settings import setting


@contextlib.contextmanager
def watching(see: Any) -> Iterator[None]:
    """Call `see(primitive, results)` after every primitive that is computed."""
    with setting("debug", lambda primitive, values, outs, *place: see(primitive, outs)):
        yield


@contextlib.contextmanager
def operations() -> Iterator[Counter[str]]:
    """How often each primitive is computed inside."""
    counter: Counter[str] = Counter()
    with watching(lambda primitive, outs: counter.update([primitive.name])):
        yield counter


class Alive:
    """How many of the values computed so far are still held by somebody, after every operation."""

    def __init__(self) -> None:
        self.references: list[weakref.ref[Any]] = []
        self.history: list[int] = []

    def see(self, primitive: Any, outs: list[Any]) -> None:
        self.references += [weakref.ref(out._data) for out in outs if out.ndim]
        self.history.append(self.now())

    def now(self) -> int:
        return sum(reference() is not None for reference in self.references)


@contextlib.contextmanager
def values_alive() -> Iterator[Alive]:
    alive = Alive()
    with watching(alive.see):
        yield alive
