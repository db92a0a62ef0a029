"""Running a function on both engines: native code must give NumPy's bits, on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np

import wonderland as wl
from wonderland.core.primitive import Aval
from wonderland.engines.native import Program
from wonderland.engines.native.steps import Fallback
from wonderland.engines.native.threads import get_threads, set_threads
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.ir.stage import stage


def native(f: Any, *args: Any) -> tuple[Program, list[Any]]:
    """The program of a function, and the arrays to call it with."""
    arrays = [np.asarray(a) for a in args]
    staged = stage(lambda *xs: wl.tree.leaves(f(*xs)), [Aval(a.shape, a.dtype) for a in arrays])
    return Program(staged.graph), [np.asarray(c) for c in staged.captured] + arrays


def on_threads(program: Program, arrays: list[Any], counts: tuple[int, ...] = (1, 2, 3)) -> list[Any]:
    """The results, after making sure that they are the same bits on 1, 2 and 3 threads."""
    before = get_threads()
    try:
        found = []
        for count in counts:
            set_threads(count)
            found.append(program(arrays))
    finally:
        set_threads(before)
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            assert x.tobytes() == y.tobytes()
    return found[0]


def chunks(program: Program) -> int:
    """The largest number of pieces that a step is cut into."""
    return max(getattr(step, "chunks", 1) for step in program.schedule.steps)


def same(f: Any, *args: Any, rtol: float = 0, atol: float = 0, threads: bool = False) -> Program:
    """No step is left to NumPy, and the results are NumPy's: to the bit, or to a tolerance."""
    program, arrays = native(f, *args)
    assert not any(isinstance(step, Fallback) for step in program.schedule.steps)
    got = on_threads(program, arrays) if threads else program(arrays)
    for x, y in zip(got, evaluate(program.graph, arrays), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype == wl.bfloat16:
            x, y = x.astype(np.float32), y.astype(np.float32)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)
    return program


def raises_alike(f: Any, *args: Any) -> str:
    """Both engines raise the same error; what it says."""
    program, arrays = native(f, *args)
    errors = []
    for run in (program, lambda arrays: evaluate(program.graph, arrays)):
        try:
            run(arrays)
        except wl.errors.WonderlandError as error:
            errors.append((type(error), str(error).splitlines()[:2]))
    assert len(errors) == 2
    assert errors[0] == errors[1]
    return errors[0][1][0]
