"""Simplification: what is computed twice is computed once, what nobody needs is not computed, and no result changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from tests.transforms.counting import operations
from wonderland.core.primitive import aval_of
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.ir import Graph, simplify, verify
from wonderland.ir.stage import stage


def counts(graph: Graph) -> Counter[str]:
    found = Counter(e.primitive.name for e in graph.equations)
    for inner in graph.subgraphs():
        found += counts(inner)
    return found


def raw(f: Any, *args: wl.Tensor) -> Graph:
    """The graph of f as it was traced."""
    staged = stage(lambda *xs: [f(*xs)], [aval_of(a) for a in args])
    assert not staged.captured
    return staged.graph


@pytest.mark.book("6-25", "B6-05", name="wl.jit")
def test_sine_and_cosine_are_computed_once_in_forward_and_backward_pass() -> None:
    a, b = 2.0, 3.0

    def f(x: wl.Tensor) -> wl.Tensor:
        return a * wl.sin(x) + b * x * wl.sin(x)

    both = wl.jit(wl.value_and_grad(f))
    x = wl.tensor(1.0, dtype=wl.float64)
    found = counts(both.graph(x))
    assert found["sin"] == 1
    assert found["cos"] == 1
    with operations() as computed:
        value, slope = both(x)
    assert computed["sin"] == computed["cos"] == 1
    np.testing.assert_allclose(value, a * np.sin(1.0) + b * np.sin(1.0), rtol=1e-14)
    np.testing.assert_allclose(slope, 5.225924483764388, rtol=1e-14)


def test_what_nobody_needs_is_removed() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        wl.exp(wl.cos(x))
        return wl.sin(x)

    assert counts(raw(f, wl.ones(2))) == {"exp": 1, "cos": 1, "sin": 1}
    assert counts(simplify(raw(f, wl.ones(2)))) == {"sin": 1}


def test_one_needed_result_keeps_an_equation_with_several() -> None:
    graph = wl.make_graph(lambda x: wl.scan(lambda c, e: (c + e, c * e), x[0], x)[0])(wl.ones(3))
    assert counts(graph)["scan"] == 1


def test_equal_equations_need_equal_inputs_and_parameters() -> None:
    def f(x: wl.Tensor) -> Any:
        return wl.sin(x) + wl.sin(x) + wl.sin(2 * x) + x.sum(axis=0) + x.sum(axis=1) + x.sum(axis=0)

    found = counts(simplify(raw(f, wl.ones((2, 2)))))
    assert found["sin"] == 2
    assert found["sum"] == 2


def test_chains_of_equal_equations_are_found() -> None:
    found = counts(simplify(raw(lambda x: wl.exp(wl.sin(x)) * wl.exp(wl.sin(x)), wl.ones(2))))
    assert found == {"sin": 1, "exp": 1, "multiply": 1}


def test_zeros_of_both_signs_are_not_equal() -> None:
    def f(x: wl.Tensor) -> Any:
        return 1 / wl.full((2,), 0.0) + x, 1 / wl.full((2,), -0.0) + x, x / 0.0, x / -0.0

    for result, sign in zip(wl.jit(f)(wl.ones(2)), [1, -1, 1, -1], strict=True):
        np.testing.assert_array_equal(result, sign * np.full(2, np.inf))


def test_numbers_of_different_types_are_not_equal() -> None:
    def f(x: wl.Tensor) -> Any:
        return x + 1, x + 1.0, x.astype(wl.float64) + 1

    found = wl.jit(f)(wl.tensor([1, 2]))
    assert [r.dtype for r in found] == [wl.int64, wl.float32, wl.float64]


def test_calls_of_one_traced_function_are_shared() -> None:
    inner = wl.jit(lambda x: wl.sin(x) * x)
    graph = wl.make_graph(lambda x: inner(x) + inner(x) + inner(2 * x))(wl.ones(2))
    assert counts(graph)["call"] == 2


def test_graphs_inside_equations_are_simplified() -> None:
    def step(c: wl.Tensor, e: wl.Tensor) -> Any:
        wl.cos(e)
        return wl.sin(c) + wl.sin(c), None

    graph = wl.make_graph(lambda x: wl.scan(step, x[0], x)[0])(wl.ones(3))
    (body,) = [g for g in graph.subgraphs() if "sin" in counts(g)]
    assert counts(body) == {"sin": 1, "add": 1}


def test_simplifying_twice_changes_nothing() -> None:
    graph = raw(lambda x: wl.sin(x) + wl.sin(x), wl.ones(2))
    once = simplify(graph)
    assert simplify(graph) is once
    assert simplify(once) is once


@given(
    st.lists(
        st.tuples(st.sampled_from(["sin", "cos", "add", "multiply"]), st.integers(0, 9), st.integers(0, 9)), max_size=15
    )
)
def test_no_result_changes(program: list[tuple[str, int, int]]) -> None:
    def f(x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
        values = [x, y]
        for name, i, j in program:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(getattr(wl, name)(a) if name in ("sin", "cos") else getattr(wl, name)(a, b))
        return wl.stack(values[-3:])

    args = wl.tensor([0.5, -1.0]), wl.tensor([2.0, 0.25])
    graph = raw(f, *args)
    made = simplify(graph)
    verify(graph)
    verify(made)
    keys = [(e.primitive, tuple(e.inputs)) for e in made.equations]
    assert len(set(keys)) == len(keys)  # none is left to share
    used = {a for e in made.equations for a in e.inputs} | set(made.outputs)
    assert all(any(v in used for v in e.outputs) for e in made.equations)  # none is dead
    (result,) = evaluate(graph, [np.asarray(a) for a in args])
    np.testing.assert_array_equal(result, f(*args))
