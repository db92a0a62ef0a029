"""Tracing: what becomes an input, a literal or a constant, Python numbers, and cells."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import errors
from wonderland.core.cell import Cell
from wonderland.core.primitive import Aval as Type
from wonderland.ir import GraphTracer, Literal
from wonderland.ir.stage import stage

SCALAR = Type((), wl.float32)


def traced(f: Any, *avals: Type) -> Any:
    return stage(lambda *xs: [f(*xs)], list(avals))


def test_scalars_are_literals_and_other_tensors_are_captured_once() -> None:
    table, number = wl.ones(3), wl.tensor(2.0)
    staged = traced(lambda x: x * table + table * number, SCALAR)
    assert len(staged.captured) == 1
    assert staged.captured[0] is table
    literals = [a for e in staged.graph.equations for a in e.inputs if isinstance(a, Literal)]
    assert [a.data.item() for a in literals] == [2.0]


def test_a_scalar_that_requires_gradients_is_captured_as_a_value() -> None:
    number = wl.tensor(2.0).requires_grad_()
    assert len(traced(lambda x: x * number, SCALAR).captured) == 1


def test_equations_know_the_line_the_module_and_the_pass() -> None:
    class Square(wl.nn.Module):
        def forward(self, x: wl.Tensor) -> wl.Tensor:
            return x * x

    class Outer(wl.nn.Module):
        def __init__(self) -> None:
            self.inner = Square()

        def forward(self, x: wl.Tensor) -> wl.Tensor:
            return self.inner(x)

    model = Outer()
    (equation,) = traced(model, SCALAR).graph.equations
    assert equation.source.file == __file__
    assert equation.source.text().endswith("return x * x")
    assert equation.module == "inner (Square)"
    assert equation.phase == "forward pass"
    phases = [e.phase for e in wl.make_graph(wl.grad(model))(wl.tensor(2.0)).equations]
    assert any(phase.startswith("backward pass, derivative of multiply") for phase in phases)


# --- cells


def test_cells_that_are_read_become_inputs_and_those_written_results() -> None:
    a, b, c = (Cell(wl.tensor(float(i))) for i in range(3))

    def f(x: wl.Tensor) -> wl.Tensor:
        b.assign(x)
        c.assign(c + 1)
        return x * a + b

    staged = traced(f, SCALAR)
    assert [id(cell) for cell in staged.read_cells] == [id(c), id(a)]
    assert [id(cell) for cell in staged.written_cells] == [id(b), id(c)]
    assert len(staged.graph.inputs) == 3
    assert len(staged.graph.outputs) == 3
    assert [cell.value.item() for cell in (a, b, c)] == [0.0, 1.0, 2.0]


def test_a_cell_written_with_its_own_value_is_not_changed() -> None:
    cell = Cell(wl.tensor(1.0))

    def f(x: wl.Tensor) -> wl.Tensor:
        before = cell + 0
        value = cell.value
        cell.assign(x)
        cell.assign(value)
        return before

    assert traced(f, SCALAR).written_cells == []


def test_an_exception_puts_the_cells_back() -> None:
    cell = Cell(wl.tensor(1.0))

    def f(x: wl.Tensor) -> wl.Tensor:
        cell.assign(cell * x)
        raise KeyError("stop")

    with pytest.raises(KeyError):
        traced(f, SCALAR)
    assert type(cell.value) is wl.Tensor
    assert cell.item() == 1.0


def test_cells_that_a_function_makes_for_itself_are_not_results() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        mine = Cell(x)
        mine.assign(mine * 2)
        return mine + 1

    gc.disable()  # they go away at once, not when the garbage is collected
    try:
        staged = traced(f, SCALAR)
    finally:
        gc.enable()
    assert staged.made_cells == staged.written_cells == []
    assert len(staged.graph.outputs) == 1


def test_cells_that_outlive_the_function_are_results() -> None:
    kept: list[Cell] = []

    def f(x: wl.Tensor) -> wl.Tensor:
        kept.append(Cell(x * 2))
        return x

    staged = traced(f, SCALAR)
    assert staged.made_cells[0] is kept[0]
    assert len(staged.graph.outputs) == 2
    with pytest.raises(errors.TraceError, match="outside the jit transformation"):
        kept[0] + 1  # it has no number as long as the graph is not run


# --- Python numbers: `weak` is their kind


def kind(f: Any, *numbers: int) -> tuple[int | None, np.dtype[Any]]:
    """The kind and dtype of f's result for traced Python numbers of the given kinds."""
    seen: list[Any] = []

    def run(*xs: Any) -> list[Any]:
        seen.append(f(*xs))
        return []

    exact = {1: wl.int64, 2: wl.float64, 3: wl.complex128}
    stage(run, [Type((), exact[n]) for n in numbers], weak=list(numbers))
    (result,) = seen
    assert isinstance(result, GraphTracer)
    return result.weak, result.dtype


INT, FLOAT, COMPLEX = 1, 2, 3


@pytest.mark.parametrize(
    ("f", "numbers", "expected"),
    [
        (lambda n: n + 1, (INT,), INT),
        (lambda n: 2 * n - n**2, (INT,), INT),
        (lambda n: n // 2 + n % 3, (INT,), INT),
        (lambda n: abs(-n), (INT,), INT),
        (lambda n: n / 2, (INT,), FLOAT),
        (lambda n: 1 / n, (INT,), FLOAT),
        (lambda n: n**-1, (INT,), FLOAT),
        (lambda n: n + 0.5, (INT,), FLOAT),
        (lambda n: n + 1j, (INT,), COMPLEX),
        (lambda n, x: n * x, (INT, FLOAT), FLOAT),
        (lambda x, z: x - z, (FLOAT, COMPLEX), COMPLEX),
        (lambda x: +x + True, (FLOAT,), FLOAT),
    ],
)
def test_operators_on_python_numbers_give_python_numbers(f: Any, numbers: tuple[int, ...], expected: int) -> None:
    weak, dtype = kind(f, *numbers)
    assert weak == expected
    assert dtype == {INT: wl.int64, FLOAT: wl.float32, COMPLEX: wl.complex64}[expected]


@pytest.mark.parametrize(
    ("f", "dtype"),
    [
        (lambda x: wl.sin(x), wl.float32),
        (lambda x: wl.add(x, 1), wl.float32),
        (lambda x: wl.asarray(x), wl.float32),
        (lambda x: x * wl.tensor(2.0), wl.float32),
        (lambda x: x * wl.tensor(2.0, dtype=wl.float16), wl.float16),
        (lambda x: x * wl.tensor(2.0, dtype=wl.float64), wl.float64),
        (lambda x: x > 1, wl.bool),
    ],
)
def test_functions_and_tensors_give_tensors(f: Any, dtype: Any) -> None:
    assert kind(f, FLOAT) == (None, dtype)


def test_the_number_keeps_pythons_precision() -> None:
    def f(x: Any) -> Any:
        third = x / 3
        return wl.tensor(1.0, dtype=wl.float64) * third, wl.sin(third), third == x / 3, x + 0.2 == 0.3

    wide, usual, same, sum_is = wl.jit(f)(0.1)
    assert wide.item() == 0.1 / 3
    assert usual.item() == wl.sin(0.1 / 3).item()
    assert same.item() is True
    assert sum_is.item() is (0.1 + 0.2 == 0.3)  # which is False


def test_numbers_are_the_same_inside_loops_and_derivatives() -> None:
    x = wl.tensor([1.0, 2.0], dtype=wl.float16)

    def f(x: wl.Tensor, n: Any) -> Any:
        slope = wl.grad(lambda x: (n * 0.5 * x).sum())(x)
        total, _ = wl.scan(lambda c, e: (c + n * e, None), wl.tensor(0.0, dtype=wl.float16), x)
        return slope, total, wl.vmap(lambda e: e * n)(x)

    for eager, compiled in zip(f(x, 3.0), wl.jit(f)(x, 3.0), strict=True):
        assert eager.dtype == compiled.dtype == wl.float16
        np.testing.assert_array_equal(eager, compiled)


def test_a_number_that_is_differentiated_is_a_tensor() -> None:
    def f(n: Any) -> Any:
        return wl.grad(lambda s: (s * wl.tensor([1.0], dtype=wl.float16)).sum())(n)

    eager, compiled = f(2.0), wl.jit(f)(2.0)
    assert eager.dtype == compiled.dtype
    assert eager.item() == compiled.item()
