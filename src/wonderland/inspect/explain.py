"""What a compiled function does: native code step by step, or XLA's program."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType

import numpy as np

from ..core.errors import InputError
from ..core.primitive import Aval
from ..engines.choosing import engine_name
from ..engines.engine import TABLE
from ..engines.native.engine import ENGINE
from ..engines.native.general import Sized
from ..transforms.jit.jit import Jitted, jit
from .explanation import Explanation
from .on_xla import on_xla
from .profiling import measure


def explain(f: Callable[..., object], *args: object, profile: bool = False, **kwargs: object) -> Explanation:
    """How `f(*args)` runs, by native code: the steps in order, with what was fused, multiply-adds, bytes and memory.

    >>> import wonderland as wl
    >>> print(wl.explain(lambda x, w: wl.tanh(x @ w + 1).sum(axis=0), wl.ones((8, 4)), wl.ones((4, 16))))
    <lambda>: 2 steps
       step                                 chunks  multiply-adds  bytes  per byte     bound  at least
    0  matmul (8, 4) @ (4, 16)                   1            512    896      0.57  ...
    1  kernel over (8, 16): add, tanh, sum       1            384    576      0.67  ...
       total                                                  896  1,472      0.61 ...
    native steps: 2; different routines: 2
    memory: an arena of 512 bytes for 512 of intermediate values
    NumPy computes: nothing
    bounds: ... GFLOP/s on one thread, ... on all; ... GB/s from memory, ... from the second cache; ... to share a step

    An elementwise operation counts as a multiply-add; "per byte" is their number divided by the bytes that are read and
    written. "bound" is what a step waits for at best, and "at least" how long: for its arithmetic at the machine's peak
    (compute; an exp counts as the additions that it takes), for its bytes from the cache that they fit in or from
    memory (memory), or for being started (overhead). What the machine can do is measured once and kept. "chunks" are
    the pieces of a step that threads share. Steps inside a loop are indented and counted as often as they run; those of
    a while loop once, and every case of a branch.

    f may be a function, or one that `wl.jit` made, with the arguments that it takes: modules, optimizers, and
    `wl.ShapeDtype` for tensors that do not exist yet. Without arguments, a jitted function is explained as it was
    called last. Nothing is computed, unless `profile=True`: then the program
    runs a number of times on copies, so no state changes, and the table tells how long each step takes, what it
    reaches in GFLOP/s (two for a multiply-add) and GB/s, and which share of its bound that is.

    The result has the records as `.steps`, the code as `.llvm` and `.assembly`, and a picture: `.svg`, or `.show()`.

    With the engine "xla" it is XLA's program for tensors where the arguments are: its instructions, operations and
    memory, and what devices of a mesh send each other, see `wl.collectives`. Its text is `.text`; times are not there.
    """
    jitted = f.__func__ if isinstance(f, MethodType) else f
    if isinstance(f, MethodType) and isinstance(jitted, Jitted):
        args = (f.__self__, *args)
    elif not isinstance(jitted, Jitted):
        jitted = jit(f)
    distant = TABLE[engine_name()].distant
    if distant and profile:
        raise InputError(
            "explain: profile=True measures the steps of native code, and the engine is XLA.",
            'wl.using_backend("native"), or JAX\'s profiler around a call: jax.profiler.trace(folder)',
        )
    last = None if args or kwargs or profile else jitted.last_trace
    traced, arguments = (last, None) if last is not None else jitted._find(args, kwargs)[:2]
    graph = traced.graph
    if distant:
        cells = [] if arguments is None else [cell.value for cell in traced.pick_read(arguments.cells)]
        operands = None if arguments is None else [*traced.captured, *cells, *arguments.operands]
        return on_xla(jitted._name, graph, operands, jitted.why())
    found = ENGINE.program(graph)
    program, numbers = found.prepared() if isinstance(found, Sized) else (found, [])
    times = None
    if profile and arguments is not None:
        given = [*traced.captured, *[c.value for c in traced.pick_read(arguments.cells)], *arguments.operands]
        if any(isinstance(operand, Aval) for operand in given):
            raise InputError("explain: profile=True runs the function, but an argument is a ShapeDtype.", "a tensor")
        times = measure(program, [*[np.asarray(operand) for operand in given], *numbers])
    return Explanation(jitted._name, program, len(graph.states), times, jitted.why())
