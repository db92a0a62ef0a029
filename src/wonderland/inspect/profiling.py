"""How long the steps of a program take, and what the machine could do: its multiply-adds in a second."""

from __future__ import annotations

import functools
import hashlib
import struct
import time
from typing import NamedTuple

import numpy as np

from .. import cache
from ..core import dtypes
from ..core.typing import Array
from ..engines.native import runtime
from ..engines.native.machine import machine
from ..engines.native.processor import Processor
from ..engines.native.program import Program
from ..engines.native.text.builder import typed
from ..engines.native.text.routine import Routine
from ..engines.native.threads import get_threads, pool
from ..engines.native.values import Buffer, View

WARM_UP = 2  # runs before those that count
RUNS = (7, 200)  # at least and at most so many,
SECONDS = 1.0  # and for about so long


class Times(NamedTuple):
    """Of one call: the shortest of all runs, for the whole and for every step."""

    seconds: float
    steps: Array  # nanoseconds of every instruction of the program
    runs: int


def measure(program: Program, arrays: list[Array]) -> Times:
    """Run a program on copies of arrays, which stay as they are, and take the time of its steps."""
    arrays = [np.array(a) for a in arrays]
    wholes: list[int] = []
    parts: list[Array] = []
    for run in range(WARM_UP + RUNS[1]):
        program.code[:, 7] = 0
        started = time.perf_counter_ns()
        program(arrays, profile=True)
        if run >= WARM_UP:
            wholes.append(time.perf_counter_ns() - started)
            parts.append(program.code[:, 7].copy())
        if len(wholes) >= RUNS[0] and sum(wholes) > SECONDS * 1e9:
            break
    return Times(min(wholes) / 1e9, np.min(parts, axis=0), len(wholes))


class Peak(NamedTuple):
    """Multiply-adds of float32 numbers in a second; of float64, half as many."""

    one: float  # by one thread
    all: float  # by as many as compiled functions use

    def of(self, wide: bool) -> float:
        return self.all / 2 if wide else self.all


def peak() -> Peak:
    """What the machine reaches with multiply-adds that wait for nothing; measured once, then remembered."""
    return _peak(get_threads())


@functools.cache
def _peak(threads: int) -> Peak:
    name = hashlib.sha256(f"peak\n{machine().cpu}\n{threads}".encode()).hexdigest()
    stored = cache.read(name)
    if stored is not None and len(stored) == 16:
        return Peak(*struct.unpack("<dd", stored))
    one = _rate(0, 1)
    found = Peak(one, one if threads == 1 else _rate(pool(), 4 * threads))
    cache.write(name, struct.pack("<dd", *found))
    return found


TURNS = 50_000  # of the loop, in a chunk: a quarter of a millisecond or so
TRIES = 60


def _rate(pool: int, chunks: int) -> float:
    """Multiply-adds in a second, at best."""
    cpu = machine().cpu
    sums = cpu.registers * 3 // 4  # enough to wait for none, with room for the factor
    lanes = cpu.lanes(4)
    text = f"peak {sums} {lanes} {TURNS}"
    address = machine().routines({text: lambda name: _text(name, cpu, sums, lanes)}, "peak")[text]
    numbers = np.zeros(sums + 1, np.float32)
    table, slots = np.array([numbers.ctypes.data], np.int64), np.zeros(2, np.int64)
    code = np.zeros((2, runtime.WORDS), np.int64)
    code[0, :4] = [runtime.Op.RUN, address, slots.ctypes.data, chunks]
    code[1, 0] = runtime.Op.STOP
    best = float("inf")
    for _ in range(TRIES):
        code[0, 7] = 0
        runtime.run(table.ctypes.data, code.ctypes.data, 0, pool, profile=True)
        best = min(best, float(code[0, 7]))
    return chunks * TURNS * sums * lanes / best * 1e9


def _text(name: str, cpu: Processor, sums: int, lanes: int) -> str:
    """A loop of multiply-adds that do not depend on each other, with numbers that the compiler does not know."""
    view = View(Buffer("input", sums + 1, dtypes.float32), (sums + 1,), (1,))
    r = Routine([(view.buffer, 0)], cpu)
    kind = typed("float", lanes)
    x, *start = (r.b.spread(r.load(view, [str(i)]), "float", lanes) for i in range(sums + 1))
    carried = [(kind, s) for s in start]
    done = r.b.loop_with(carried, TURNS, 1, lambda _, now: [r.b.intrinsic("fmuladd", kind, n, x, n) for n in now])
    total = functools.reduce(lambda a, b: r.b.emit(f"fadd {kind} {a}, {b}"), done)
    # all are 0, so nothing is written and chunks do not disturb each other; but the compiler cannot know
    first = r.b.emit(f"extractelement {kind} {total}, i32 0")
    r.b.when(r.b.emit(f"fcmp ogt float {first}, 1.0"), lambda: r.store(view, first, ["0"]))
    return r.text(name)
