"""Threads that share one function of `jit`."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

import wonderland as wl
from tests.transforms.running_mean import Mean
from wonderland import nn


def in_threads(work: Any, count: int = 4) -> list[Any]:
    results: list[Any] = [None] * count
    problems: list[BaseException] = []
    start = threading.Barrier(count)

    def run(i: int) -> None:
        try:
            start.wait()
            results[i] = work(i)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return results


def test_threads_that_trace_and_call_one_function() -> None:
    model = nn.Linear(3, 2)
    f = wl.jit(lambda x: wl.sin(model(x)).sum())
    inputs = [wl.ones((n % 3 + 1, 3)) * n for n in range(12)]
    expected = [wl.sin(model(x)).sum().item() for x in inputs]

    def work(i: int) -> list[float]:
        return [f(x).item() for x in inputs[i:] + inputs[:i]]

    for i, found in enumerate(in_threads(work)):
        np.testing.assert_allclose(found, expected[i:] + expected[:i], rtol=1e-6)
    assert f.traces == 3
    assert type(model.weight.value) is wl.Tensor


def test_threads_that_write_state_of_their_own() -> None:
    f = wl.jit(lambda model, x: model(x))

    def work(i: int) -> int:
        model = Mean(2)
        for _ in range(20):
            f(model, wl.ones((i % 2 + 1, 2)))
        return model.steps.item()  # type: ignore[no-any-return]

    assert in_threads(work) == [20] * 4
