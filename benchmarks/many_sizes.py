"""Forty batch sizes of the mlp, each called once: how many times the first one's time of compiling they take together.

Forward pass and training step, with nothing compiled before, with and without `dynamic=`. The best of several
processes, as wall time and as what all threads computed; the aim is twice the first call without `dynamic=`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import wonderland as wl

from .options import Options
from .printed import Table
from .rivals import ROOT
from .workloads import classify, labels, perceptron

SIZES = range(20, 60)
AIM = 2.0
Times = list[tuple[float, float]]  # of every size: wall and processor seconds


def main(options: Options) -> None:
    title = f"{len(SIZES)} sizes of a batch of the mlp, each once: their calls together / the first call of one"
    columns = ["what", "first call s", "all s", "all / first", "processor", "aim"]
    table = Table(title, columns, options, absolute=["first call s", "all s"], widths=(34, 10))
    for which in MAKERS:
        first: tuple[float, float] | None = None
        for named in (False, True):
            runs = [process(which, named) for _ in range(max(3, options.rounds))]
            everything = [min(sum(times[i] for times in run) for run in runs) for i in (0, 1)]
            first = first or (min(run[0][0] for run in runs), min(run[0][1] for run in runs))
            table.row(
                f"{which}, {'with dynamic=' if named else 'found by itself'}",
                f"{first[0]:.2f}",
                f"{everything[0]:.2f}",
                f"{everything[0] / first[0]:.2f}",
                f"{everything[1] / first[1]:.2f}",
                f"at most {AIM:.0f}",
            )


def process(which: str, named: bool) -> Times:
    """What one process measures that has nothing compiled."""
    command = [sys.executable, "-m", "benchmarks.many_sizes", which, *(["named"] if named else [])]
    environment = {**os.environ, "WONDERLAND_CACHE": "off"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return [(wall, computed) for wall, computed in json.loads(done.stdout)]


def measured(which: str, named: bool, sizes: range = SIZES) -> Times:
    """The time of a call with every size."""
    call = MAKERS[which](named)
    batches = [(wl.random.normal((n, 784)), labels(10, n)) for n in sizes]
    times = []
    for x, y in batches:
        wall, computed = time.perf_counter(), time.process_time()
        call(x, y)
        times.append((time.perf_counter() - wall, time.process_time() - computed))
    return times


def forward(named: bool) -> Callable[[wl.Tensor, wl.Tensor], wl.Tensor]:
    model = perceptron()
    f = wl.jit(lambda model, x: model(x), dynamic={"x": {0: "batch"}} if named else None)
    return lambda x, y: f(model, x)


def training_step(named: bool) -> Callable[[wl.Tensor, wl.Tensor], wl.Tensor]:
    model = perceptron()
    optimizer = wl.optim.Adam(model, lr=1e-3)

    def step(model: wl.nn.Module, optimizer: wl.optim.Adam, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
        loss, grads = wl.value_and_grad(classify)(model, x, y)
        optimizer.step(grads)
        return loss

    f = wl.jit(step, dynamic={"x": {0: "batch"}, "y": {0: "batch"}} if named else None)
    return lambda x, y: f(model, optimizer, x, y)


MAKERS = {"forward": forward, "step": training_step}


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], "named" in sys.argv[2:])))
