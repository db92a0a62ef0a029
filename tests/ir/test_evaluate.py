"""The reference evaluator: the same numbers as without a graph, nothing kept for long, errors that point home."""

from __future__ import annotations

import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import errors
from wonderland.core.primitive import TABLE
from wonderland.engines.numpy.evaluate import evaluate, interpret


def graph_of(f: Any, *args: Any) -> Any:
    return wl.make_graph(f)(*args)


def test_results_are_those_of_the_program() -> None:
    def f(x: wl.Tensor, y: wl.Tensor) -> Any:
        return wl.sin(x) @ y, {"sum": y.sum(), "same": x}

    x, y = wl.tensor([[1.0, 2.0]]), wl.tensor([[3.0], [4.0]])
    outs = evaluate(graph_of(f, x, y), [np.asarray(x), np.asarray(y)])
    eager = f(x, y)
    np.testing.assert_array_equal(outs[0], eager[0])
    np.testing.assert_array_equal(outs[1], x)  # dict entries in the order of their keys
    np.testing.assert_array_equal(outs[2], eager[1]["sum"])


def test_constants_inputs_and_repeated_results_can_be_outputs() -> None:
    graph = graph_of(lambda x: (x, wl.tensor(2.0), x, wl.sin(x)), wl.ones(2))
    outs = evaluate(graph, [np.zeros(2, np.float32)])
    assert outs[0] is outs[2]
    assert outs[1] == 2.0


def test_interpret_runs_the_equations_under_the_current_interpreter() -> None:
    graph = graph_of(lambda x: wl.sin(x) * x, wl.tensor(1.0))
    x = wl.tensor(0.7, dtype=wl.float32)
    expected = wl.grad(lambda x: wl.sin(x) * x)(x)
    assert wl.grad(lambda x: interpret(graph, [x])[0])(x).item() == expected.item()


@wl.using_backend("numpy")
def test_values_are_dropped_after_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[Any]] = []
    most = 0
    sine = TABLE["sin"].impl

    def watched(x: Any) -> Any:
        nonlocal most
        out = sine(x)
        alive.append(weakref.ref(out))
        most = max(most, sum(r() is not None for r in alive))
        return out

    monkeypatch.setattr(TABLE["sin"], "impl", watched)

    def f(x: wl.Tensor) -> wl.Tensor:
        for _ in range(20):
            x = wl.sin(x)
        return x

    wl.jit(f)(wl.ones(3))
    assert len(alive) == 20
    assert most == 2  # the argument and the result of one sine


@pytest.mark.parametrize("depth", [10, 40])
def test_memory_does_not_grow_with_depth(depth: int) -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        for _ in range(depth):
            x = wl.sin(x) + 1.0
        return x.sum()

    x = wl.ones(100_000)
    compiled = wl.jit(f)
    compiled(x)
    tracemalloc.start()
    compiled(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3.5 * x.nbytes


@wl.using_backend("numpy")
def test_a_backward_pass_frees_residuals_as_it_walks() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        for _ in range(20):
            x = wl.sin(x)
        return x.sum()

    x = wl.ones(100_000)
    gradient = wl.jit(wl.grad(f))
    gradient(x)
    tracemalloc.start()
    gradient(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 20 * x.nbytes < peak < 24 * x.nbytes  # the cosines, and a few values besides


def test_a_primitive_that_fails_at_run_time_names_the_traced_line() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        return wl.linalg.inv(x)

    compiled = wl.jit(f)
    compiled(wl.eye(2))
    with pytest.raises(errors.LinearAlgebraError) as caught:
        compiled(wl.zeros((2, 2)))
    assert "traced at:" in str(caught.value)
    assert "return wl.linalg.inv(x)" in str(caught.value)


def test_out_of_range_indices_are_found_at_run_time() -> None:
    compiled = wl.jit(lambda x, i: x[i])
    assert compiled(wl.arange(3), wl.tensor(-1)).item() == 2
    with pytest.raises(errors.IndexOutOfRange, match="traced at"):
        compiled(wl.arange(3), wl.tensor(3))


def test_warnings_of_numpy_are_not_shown() -> None:
    assert np.isinf(wl.jit(lambda x: 1 / x)(wl.zeros(1)))[0]  # warnings are errors in this suite
