"""Which programs stay compiled: those that were used last. So a process that meets ever new shapes does not grow."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

from ...core.errors import InputError
from ...core.forking import open_after_fork
from ...core.room import memory
from ...ir.graph import Graph

if TYPE_CHECKING:
    from .program import Program

# A program of one kernel takes three of the 65,530 mappings that Linux gives to a process and some 100 KB; compiling it
# again takes ten milliseconds, or a tenth of that if it is in the cache on disk.
PROGRAMS = 1000
SHARE = 4  # all programs together take at most this part of the machine's memory for what they compute with
FEWEST = 8  # stay however large they are: training, evaluation and generation take turns


class Kept:
    """The programs of the process. A program is dropped from its graph; who is just running it holds it still."""

    def __init__(self) -> None:
        self.most = PROGRAMS
        self.turn = 0  # how many were compiled; a program notes at every call when it was used last
        self._lock = open_after_fork(threading.Lock())
        self._entries: list[tuple[weakref.ref[Program], weakref.ref[Graph]]] = []

    def add(self, program: Program, graph: Graph) -> None:
        """Make it the program of its graph, and drop others if there are too many."""
        with self._lock:
            self.turn += 1
            program.used = self.turn
            self._entries.append((weakref.ref(program), weakref.ref(graph)))
            graph.programs["native"] = program
            self._trim()

    def limit(self, most: int) -> None:
        with self._lock:
            self.most = most
            self._trim()

    def _trim(self) -> None:
        alive = [(p, g) for p, g in ((p(), g()) for p, g in self._entries) if p is not None and g is not None]
        alive.sort(key=lambda entry: entry[0].used, reverse=True)
        room = memory() // SHARE
        stay, taken = 0, 0
        while stay < min(len(alive), self.most) and (stay < FEWEST or taken <= room):
            taken += alive[stay][0].bytes
            stay += 1
        for program, graph in alive[stay:]:
            if graph.programs.get("native") is program:
                del graph.programs["native"]
        self._entries = [(weakref.ref(p), weakref.ref(g)) for p, g in alive[:stay]]

    def __len__(self) -> int:
        return sum(program() is not None for program, _ in self._entries)


kept = Kept()


def get_kept_programs() -> int:
    """How many compiled programs the process keeps at most.

    >>> import wonderland as wl
    >>> wl.get_kept_programs() >= 1
    True
    """
    return kept.most


def set_kept_programs(n: int) -> None:
    """Keep at most n compiled programs in memory, one for every function and kind of arguments: those used last.

    Another one is compiled again when it is needed, or read from the cache on disk. A process that works with more
    shapes than that in turns is faster with a larger number; each program takes memory for what it computes with.

    >>> import wonderland as wl
    >>> before = wl.get_kept_programs()
    >>> wl.set_kept_programs(5000)
    >>> wl.set_kept_programs(before)
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"set_kept_programs: {n!r} is not a number of programs.", "a positive integer")
    kept.limit(n)
