"""What the compiler writes: one line for every program of the benchmarks, and of some random programs.

    python -m tools.routines > before.txt

A line has a name, the number of routines and a digest of their descriptions and of their text. When code is moved and
no behaviour is to change, the lines before and after are the same; `--show NAME` prints what is behind one of them.
The code is that for one processor (x86-64-v3, unless WONDERLAND_CPU says otherwise), whatever the machine is.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("WONDERLAND_CPU", "x86-64-v3")

import wonderland as wl
from benchmarks.step import ALL
from tools.fuzz.comparing import Engines, UnfitError, outcome
from tools.fuzz.generation import random_case
from wonderland.engines.native import program

SEED = 11
Written = list[tuple[str, str]]  # descriptions and texts


@contextlib.contextmanager
def recorded() -> Iterator[Written]:
    """What is written inside."""
    written: Written = []
    original = program.Program._find_code

    def find(self: program.Program) -> None:
        written.extend(
            (str(step.describe()), program.text_of(step, self.schedule.cpu, "routine")) for _, step in self.routines
        )
        original(self)

    program.Program._find_code = find  # type: ignore[method-assign]
    try:
        yield written
    finally:
        program.Program._find_code = original  # type: ignore[method-assign]


def run_once(make: Callable[[], Callable[[], Any]]) -> None:
    make()()


def random_program(seed: int, number: int) -> None:
    with contextlib.suppress(UnfitError):
        outcome(Engines(random_case(seed, number), "native").tried)


def named(programs: int, seed: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every program with a way to compile and run it."""
    for name, make in ALL.items():
        yield name, functools.partial(run_once, make)
    for number in range(programs):
        yield f"random {number}", functools.partial(random_program, seed, number)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.routines", description=__doc__)
    parser.add_argument("--programs", type=int, default=300, help="how many random programs (300)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--show", help="the name of the program whose routines are printed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of random programs
    for name, go in named(options.programs, options.seed):
        if options.show not in (None, name):
            continue
        wl.random.seed(0)
        with recorded() as written:
            go()
        digest = hashlib.sha256("\n".join(part for both in written for part in both).encode()).hexdigest()
        print(f"{name:36}{len(written):5} routines  {digest[:20]}", flush=True)
        for description, text in written if options.show else []:
            print(description, text, sep="\n")


if __name__ == "__main__":
    main()
