"""How long the steps of a program take."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from ..core.typing import Array
from ..engines.native.program import Program

WARM_UP = 2  # runs before those that count
RUNS = (7, 200)  # at least and at most so many,
SECONDS = 1.0  # and for about so long


class Times(NamedTuple):
    """Of one call: the shortest of all runs, for the whole and for every step."""

    seconds: float
    steps: Array  # nanoseconds of every instruction of the program
    runs: int


def measure(program: Program, arrays: list[Array]) -> Times:
    """Run a program on copies of arrays, which stay as they are, and take the time of its steps.

    State is overwritten, as in a call of a function that nobody shares its state with, and begins each run as it was.
    """
    copies = [np.array(a) for a in arrays]
    state = frozenset(program.states.values())
    wholes: list[int] = []
    parts: list[Array] = []
    for run in range(WARM_UP + RUNS[1]):
        program.code[:, 7] = 0
        for i in state:
            np.copyto(copies[i], arrays[i])
        started = time.perf_counter_ns()
        program(copies, state, profile=True)
        if run >= WARM_UP:
            wholes.append(time.perf_counter_ns() - started)
            parts.append(program.code[:, 7].copy())
        if len(wholes) >= RUNS[0] and sum(wholes) > SECONDS * 1e9:
            break
    return Times(min(wholes) / 1e9, np.min(parts, axis=0), len(wholes))
