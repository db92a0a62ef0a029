"""What the machine can do: multiply-adds in a second, bytes from its caches and memory, and what a step itself costs.

Measured once, in about a tenth of a second, and kept with the description of the processor (`cache.py`). Against these
limits `wl.explain` says of every step what bounds it and how near to the bound it comes.
"""

from __future__ import annotations

import functools
import hashlib
import os
import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import cache
from ..core import dtypes
from ..core.typing import Array
from ..engines.native import runtime
from ..engines.native.caches import of_this_machine
from ..engines.native.machine import machine
from ..engines.native.processor import Processor
from ..engines.native.text.builder import typed
from ..engines.native.text.routine import Routine
from ..engines.native.threads import get_threads, pool
from ..engines.native.values import Buffer, View

COMPUTE, MEMORY, OVERHEAD = "compute", "memory", "overhead"


class Limits(NamedTuple):
    """Each by one thread, and by as many as compiled functions use."""

    one: float  # multiply-adds of float32 numbers in a second; of float64, half as many
    all: float
    near: tuple[float, float]  # bytes in a second that are read from the second cache,
    between: tuple[float, float]  # from the last one,
    far: tuple[float, float]  # and from memory
    start: tuple[float, float]  # seconds that a step takes which does nothing

    def of(self, wide: bool) -> float:
        """Multiply-adds in a second, of float64 numbers if they are wide."""
        return self.all / 2 if wide else self.all

    def bandwidth(self, count: int, threads: bool) -> float:
        """Bytes in a second, of `count` that are read again and again."""
        _, second, last = of_this_machine()
        return (self.near if count <= second else self.between if count <= last else self.far)[threads]

    def bound(self, work: float, count: int, wide: bool, shared: bool, times: int = 1) -> tuple[str, float]:
        """What bounds a step, and the seconds that it takes at least.

        `work`: multiply-adds or additions in all runs; `count`: bytes that they read and write; `shared`: by threads.
        """
        rate = (self.all if shared else self.one) / (2 if wide else 1)
        least = {
            COMPUTE: work / rate,
            MEMORY: count / self.bandwidth(count // max(times, 1), shared),
            OVERHEAD: times * self.start[shared],
        }
        most = max(least, key=lambda name: least[name])
        return most, least[most]


def limits() -> Limits:
    """What the machine reaches; measured once, then remembered: for good if the machine was quiet."""
    return _limits(get_threads())


_NUMBERS = "<10d"


@functools.cache
def _limits(threads: int) -> Limits:
    name = hashlib.sha256(f"limits\n{machine().cpu}\n{of_this_machine()}\n{threads}".encode()).hexdigest()
    stored = cache.read(name)
    if stored is None or len(stored) != struct.calcsize(_NUMBERS):
        stored = struct.pack(_NUMBERS, *_measured(threads))
        if not _busy():
            cache.write(name, stored)
    one, every, *pairs = struct.unpack(_NUMBERS, stored)
    return Limits(one, every, *zip(pairs[::2], pairs[1::2], strict=True))


def _busy() -> bool:
    """Whether others use the processors, so that figures are too low to be kept."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > (os.cpu_count() or 1)


def _measured(threads: int) -> list[float]:
    """The numbers of `Limits` in order."""
    _, second, last = of_this_machine()
    everybody = pool() if threads > 1 else 0
    found = [_rate(0, 1), _rate(everybody, 4 * threads)]
    for count in (second // 2, max(last // 4, second), min(2 * last, FARTHEST)):
        found += [_read(0, 1, count), _read(everybody, threads, count)]
    return [*found, _empty(0, 1), _empty(everybody, max(threads, 2))]


# --- measuring

TURNS = 50_000  # of the loop of multiply-adds, in a chunk: a quarter of a millisecond or so
TRIES = 30
FARTHEST = 1 << 28  # bytes that are read to measure memory, at most
EMPTY = 200  # steps that do nothing


def _shortest(code: Array, table: Array, pool: int, tries: int, profiled: bool = True) -> float:
    """Nanoseconds of the first instruction, or of all, at best."""
    best = float("inf")
    for _ in range(tries):
        code[:, 7] = 0
        runtime.run(table.ctypes.data, code.ctypes.data, 0, pool, profile=True)
        best = min(best, float(code[0, 7] if profiled else code[:, 7].sum()))
    return best


def _program(description: str, text: Callable[[str], str], steps: int, chunks: int, slots: Array) -> Array:
    """Instructions that call a routine so many times."""
    address = machine().routines({description: text}, "limits")[description]
    code = np.zeros((steps + 1, runtime.WORDS), np.int64)
    code[:steps, :4] = [runtime.Op.RUN, address, slots.ctypes.data, chunks]
    code[steps, 0] = runtime.Op.STOP
    return code


def _rate(pool: int, chunks: int) -> float:
    """Multiply-adds in a second, at best."""
    cpu = machine().cpu
    sums = cpu.registers * 3 // 4  # enough to wait for none, with room for the factor
    lanes = cpu.lanes(4)
    numbers, slots = np.zeros(sums + 1, np.float32), np.zeros(2, np.int64)
    table = np.array([numbers.ctypes.data], np.int64)
    description = f"multiply-adds {sums} {lanes} {TURNS}"
    code = _program(description, lambda name: _multiply_adds(name, cpu, sums, lanes), 1, chunks, slots)
    return chunks * TURNS * sums * lanes / _shortest(code, table, pool, TRIES) * 1e9


def _multiply_adds(name: str, cpu: Processor, sums: int, lanes: int) -> str:
    """A loop of multiply-adds that do not depend on each other, with numbers that the compiler does not know."""
    view = View(Buffer("input", sums + 1, dtypes.float32), (sums + 1,), (1,))
    r = Routine([(view.buffer, 0)], cpu)
    kind = typed("float", lanes)
    x, *start = (r.b.spread(r.load(view, [str(i)]), "float", lanes) for i in range(sums + 1))
    carried = [(kind, s) for s in start]
    done = r.b.loop_with(carried, TURNS, 1, lambda _, now: [r.b.intrinsic("fmuladd", kind, n, x, n) for n in now])
    _use(r, view, done, kind)
    return r.text(name)


def _use(r: Routine, view: View, sums: list[str], kind: str) -> None:
    """Let the compiler think that sums matter; all are 0, so nothing is written and chunks leave each other alone."""
    total = functools.reduce(lambda a, b: r.b.emit(f"fadd {kind} {a}, {b}"), sums)
    first = r.b.emit(f"extractelement {kind} {total}, i32 0")
    r.b.when(r.b.emit(f"fcmp ogt float {first}, 1.0"), lambda: r.store(view, first, ["0"]))


def _read(pool: int, chunks: int, count: int) -> float:
    """Bytes in a second that are read, at best; each chunk reads its part of `count`, and what fits a cache often."""
    cpu = machine().cpu
    lanes, sums = cpu.lanes(4), 8
    size = count // chunks // (4 * lanes * sums) * lanes * sums  # numbers of a chunk
    again = max(1, (1 << 20) // (4 * size))
    numbers, slots = np.empty(size * chunks, np.float32), np.zeros(2, np.int64)
    numbers.fill(0)  # so that it has memory of its own, which np.zeros leaves for later
    table = np.array([numbers.ctypes.data], np.int64)
    description = f"reading {size} {chunks} {lanes} {sums} {again}"
    code = _program(description, lambda name: _sum(name, cpu, size, chunks, sums, again), 1, chunks, slots)
    return 4 * size * chunks * again / _shortest(code, table, pool, 4 if again == 1 else TRIES) * 1e9


def _sum(name: str, cpu: Processor, size: int, chunks: int, sums: int, again: int) -> str:
    """The sum of a chunk's numbers, several times."""
    view = View(Buffer("input", size * chunks, dtypes.float32), (chunks, size), (size, 1))
    r, lanes = Routine([(view.buffer, 0)], cpu), cpu.lanes(4)
    kind = typed("float", lanes)
    zero = r.b.spread("0.0", "float", lanes)

    def added(at: str, now: list[str]) -> list[str]:
        places = [r.b.emit(f"add nsw i64 {at}, {k * lanes}") for k in range(sums)]
        read = [r.load(view, [r.chunk, place], lanes, lanes) for place in places]
        return [r.b.emit(f"fadd {kind} {n}, {x}") for n, x in zip(now, read, strict=True)]

    def once(_: str, now: list[str]) -> list[str]:
        return r.b.loop_with([(kind, n) for n in now], size, lanes * sums, added)

    done = r.b.loop_with([(kind, zero)] * sums, again, 1, once)
    _use(r, View(view.buffer, (size * chunks,), (1,)), done, kind)
    return r.text(name)


def _empty(pool: int, chunks: int) -> float:
    """Seconds that a step takes which does nothing."""
    slots, table = np.zeros(2, np.int64), np.zeros(1, np.int64)
    cpu = machine().cpu
    code = _program("nothing", lambda name: Routine([], cpu).text(name), EMPTY, chunks, slots)
    return _shortest(code, table, pool, 5, profiled=False) / EMPTY / 1e9
