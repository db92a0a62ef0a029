"""What runs a program: a native loop over its instructions.

A program is data: an array of instructions of eight words (see `Op`), and a table with the addresses of its buffers.
The loop (`runtime_text.py`) walks through it without Python. Where Python is needed (a step that NumPy computes) it
returns the position, and goes on from there when called again; loops keep their state in the table, so this works
inside loops too.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...core.typing import Array
from .machine import Module, machine
from .processor import Processor
from .runtime_text import text


class Op:
    """Codes of instructions; each is (code, a, b, c, ...) in words of 64 bits."""

    RUN = 0  # call the routine at a with the slots at b for chunks 0 .. c-1; word 7 collects nanoseconds if profiling
    STOP = 1
    PYTHON = 2  # return to Python, which goes on behind it
    SET = 3  # table[a] = b
    MOVE = 4  # table[a] = table[b] + c
    ADD = 5  # table[a] += b
    SWAP = 6  # exchange table[a] and table[b]
    NEXT = 7  # table[a] += 1, and go to c if it is less than b
    UNLESS = 8  # go to c if the byte at table[a] is 0
    GO = 9  # go to a
    DIFFERS = 10  # go to c if the 64-bit integer at table[a] is not b
    CHECK = 11  # end with -2 if one of the b words at table[a] is not 0
    SAME = 12  # go to c if table[a] and table[b] are the same
    COPY = 13  # c bytes from table[b] to table[a]


WORDS = 8  # of an instruction
PAUSED = -16  # minus the position where to go on


def module(cpu: Processor) -> Module:
    return Module("runtime", functools.partial(text, PAUSED, cpu.triple), ("run", "bind", "worker", "stop"), light=True)


class Functions(NamedTuple):
    """The functions of the runtime, to be called from Python."""

    run: Callable[..., int]
    bind: Callable[..., int]
    worker: Callable[[int], None]
    stop: Callable[[int], None]


@functools.cache
def functions() -> Functions:
    run, bind, worker, stop = machine().functions(module(machine().cpu))
    size, word = ctypes.c_size_t, ctypes.c_int64
    return Functions(
        ctypes.CFUNCTYPE(word, size, size, word, size, word, size)(run),
        ctypes.CFUNCTYPE(word, size, word, size, size, size, word, word)(bind),
        ctypes.CFUNCTYPE(None, size)(worker),
        ctypes.CFUNCTYPE(None, size)(stop),
    )


def run(table: int, code: int, start: int, pool: int, profile: bool = False, begun: int = 0) -> int:
    """Run the program at `code` from an instruction on; the position where Python is needed, -1 at the end, -2 if a
    check failed.

    A loop that takes long returns now and then with PAUSED - position, so that Ctrl-C gets through, as long as the word
    at `begun` is 0.
    """
    return functions()[0](table, code, start, pool, profile, begun)


CONTIGUOUS, OWNED, WRITEABLE = 0x1, 0x4, 0x400  # among the flags of NumPy's arrays
OWN = OWNED | WRITEABLE | CONTIGUOUS  # of an array that may be overwritten


@functools.cache
def _places_in_objects() -> tuple[int, int]:
    """Where a list holds the address of its items, and an array that of its data; zeros if not where they should be."""
    array = np.zeros((2, 3))[:, :2]
    held = [array]
    for head in (16, 24, 32, 40):  # the size of what every object begins with
        items = ctypes.c_size_t.from_address(id(held) + head + 8).value if head < 32 else 0
        data = ctypes.c_size_t.from_address(id(array) + head).value
        flags = ctypes.c_int.from_address(id(array) + head + 48).value
        if data == array.ctypes.data and flags == array.flags.num and items:
            first = ctypes.c_size_t.from_address(items).value
            return (head + 8, head) if first == id(array) else (0, 0)
    return (0, 0)


class Binder:
    """Puts the addresses of arrays into their places of a table."""

    def __init__(self, places: Sequence[int], table: Array) -> None:
        self._places, self._table = np.array(places, np.int64), table
        self.flags = np.zeros(len(places), np.int64)
        objects = self._places.ctypes.data, table.ctypes.data, self.flags.ctypes.data
        self._rest = *objects, *_places_in_objects()
        self._bind = functions().bind

    def __call__(self, arrays: list[Array]) -> int:
        """The flags that all of the arrays have. `flags` holds those of each."""
        if self._rest[-1]:
            return self._bind(id(arrays), len(arrays), *self._rest)
        for i, array in enumerate(arrays):
            self._table[self._places[i]], self.flags[i] = array.ctypes.data, array.flags.num
        return int(np.bitwise_and.reduce(self.flags))
