"""What a call of a compiled function costs beside its work: microseconds for tensors, a model, and a training step.

The work itself is measured by running the native program alone, again and again on the same memory.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np

import wonderland as wl
from wonderland import nn
from wonderland.engines.native import runtime, threads

from .interleaved import best_times
from .options import Options
from .printed import Table, cell
from .rivals import ROOT, Rival, has

LAYERS, WIDTH, BATCH = 50, 8, 4  # a hundred parameters
ROWS, FEATURES = 128, 16  # of the logistic regression
AIMS = {
    "a handful of tensors": "at most 8",
    "a loss, recorded": "at most 8",
    "forward, 100 parameters, recorded": "at most 15",
    "training step, 100 parameters": "at most 15",
}

Call = Callable[[], object]


def main(options: Options | None = None) -> None:
    options = options or Options()
    theirs = _jax(options)
    columns = ["what", "call µs", "native µs", "beside µs", "aim", "jax µs", "jax / ours"]
    title = "A call of a compiled function"
    table = Table(title, columns, options, absolute=columns[1:4] + columns[5:6], widths=(34, 9))
    for name, (function, call) in ways().items():
        whole = best_times({name: call}, rounds=4 * options.rounds, seconds=0.05)[name] * 1e6
        native = _native(function, options) * 1e6
        jax = theirs.get(name)
        ratio = None if jax is None else jax / whole
        figures = [cell(x, ".2f") for x in (whole, native, whole - native)]
        table.row(name, *figures, AIMS.get(name, ""), cell(jax, ".2f"), cell(ratio, ".2f"))


def ways() -> dict[str, tuple[Any, Call]]:
    """Compiled functions, each with a call of it."""
    return {
        "scalar addition": _addition(),
        "a handful of tensors": _logistic(),
        "a loss, recorded": _loss(),
        "forward, 100 parameters": _forward(),
        "forward, 100 parameters, recorded": _recorded(),
        "training step, 100 parameters": _training(),
    }


def _addition() -> tuple[Any, Call]:
    add, x, y = wl.jit(lambda x, y: x + y), wl.tensor(1.0), wl.tensor(2.0)
    return add, lambda: add(x, y)


def _logistic() -> tuple[Any, Call]:
    """Gradient descent in a Python loop, with parameters that go in and come out."""

    @wl.jit
    def step(w: Any, b: Any, x: Any, y: Any) -> Any:
        def loss(w: Any, b: Any) -> Any:
            return wl.nn.functional.binary_cross_entropy_with_logits(x @ w + b, y)

        dw, db = wl.grad(loss, argnums=(0, 1))(w, b)
        return w - 0.1 * dw, b - 0.1 * db

    rng = np.random.default_rng(0)
    x, y = wl.asarray(rng.normal(size=(ROWS, FEATURES)).astype(np.float32)), wl.asarray(np.ones(ROWS, np.float32))
    state = [wl.zeros(FEATURES), wl.zeros(())]

    def call() -> None:
        state[0], state[1] = step(state[0], state[1], x, y)

    return step, call


def _model() -> Any:
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])


def _forward() -> tuple[Any, Call]:
    model, x = _model(), wl.ones((BATCH, WIDTH))
    model.eval().requires_grad_(False)
    forward = wl.jit(lambda model, x: model(x))
    return forward, lambda: forward(model, x)


def _loss() -> tuple[Any, Call]:
    """A result that may be differentiated later, `loss.backward()`, and is not."""
    model, x, y = nn.Linear(WIDTH, WIDTH), wl.ones((BATCH, WIDTH)), wl.zeros((BATCH, WIDTH))
    loss = wl.jit(lambda model, x, y: ((model(x) - y) ** 2).mean())
    return loss, lambda: loss(model, x, y)


def _recorded() -> tuple[Any, Call]:
    model, x = _model(), wl.ones((BATCH, WIDTH))
    forward = wl.jit(lambda model, x: model(x))
    return forward, lambda: forward(model, x)


def _training() -> tuple[Any, Call]:
    model, x, y = _model(), wl.ones((BATCH, WIDTH)), wl.zeros((BATCH, WIDTH))
    optimizer = wl.optim.Adam(model)

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    return step, lambda: step(model, optimizer, x, y)


def _native(function: Any, options: Options) -> float:
    """Seconds of the native program of a function's last trace, without the way into native code."""
    program = function.last_trace.graph.programs["native"]
    table, held = _memory(program)
    code = program.code
    stop = np.full_like(code[-1:], runtime.Op.STOP)
    pool = threads.pool() if program.shares else 0
    start = program.lasting.steps if program.lasting else 0  # behind what is kept from call to call
    runs = {
        "program": lambda: runtime.run(table.ctypes.data, code.ctypes.data, start, pool),
        "nothing": lambda: runtime.run(table.ctypes.data, stop.ctypes.data, 0, pool),
    }
    times = best_times(runs, rounds=4 * options.rounds, seconds=0.02)
    del held
    return times["program"] - times["nothing"]


def _memory(program: Any) -> tuple[Any, list[Any]]:
    """A table of buffers for a program with inputs and outputs of our own, and what must be held meanwhile."""
    graph, table = program.graph, program.table.copy()
    inputs = [np.ones(a.shape, a.dtype) for a in graph.inputs]
    outputs = [np.empty(a.shape, a.dtype) for a in graph.outputs]
    for out, source in program.donations.items():
        outputs[out] = inputs[source]
    for arrays, places in ((inputs, program.input_places), (outputs, program.output_places)):
        table[places] = [array.ctypes.data for array in arrays]
    return table, [*inputs, *outputs]


def _jax(options: Options) -> dict[str, float]:
    """The same by JAX, if there is one: microseconds."""
    rival = Rival("jax", "jax", (options.peers, "-m", "benchmarks.peers.jax_calls"))
    if "jax" in options.skip or not has(options.peers, rival):
        return {}
    done = subprocess.run([*rival.command, str(options.rounds)], cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
