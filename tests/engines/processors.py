"""A script: compile a call of every primitive for the processor that WONDERLAND_CPU names, and run it if the host can.

With `kernels` a few elementwise primitives stand for all, as one routine computes them, and those that NumPy computes
are left out. It prints how many programs were compiled, and how many of them ran and agreed with NumPy.
"""

from __future__ import annotations

import sys

import wonderland as wl
import wonderland.nn.functional
import wonderland.random
from tests.engines.engines import native
from tests.engines.large_cases import BY_NUMPY, LARGE, agree, calls
from wonderland.core.primitive import TABLE
from wonderland.engines.native.machine import CannotRun
from wonderland.engines.numpy.evaluate import evaluate

DTYPES = [wl.float32, wl.float16]
ELEMENTWISE = {"add", "exp", "floor", "greater", "power", "where"}  # stand for all


def kernels() -> set[str]:
    """The primitives whose routines differ."""
    return {name for name in LARGE if not TABLE[name].elementwise or name in ELEMENTWISE} - BY_NUMPY


def main() -> None:
    compiled = ran = 0
    for name in sorted(kernels() if sys.argv[1:] == ["kernels"] else LARGE):
        for dtype in DTYPES:
            call = next(calls(name, [dtype]), None)
            if call is None:
                continue
            _, (args, params) = call
            compiled += 1
            try:
                program, arrays = native(lambda *xs, f=TABLE[name], params=params: f(*xs, **params), *args)
            except CannotRun:
                continue
            for x, y in zip(program(arrays), evaluate(program.graph, arrays), strict=True):
                agree(x, y, f"{name} of {dtype}")
            ran += 1
    print(compiled, ran)


if __name__ == "__main__":
    main()
