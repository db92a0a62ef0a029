"""Forward mode: `wl.jvp`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.counting import operations, values_alive
from wonderland.errors import GradientError, TraceError, TreeError


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Line:
    slope: Any
    offset: Any


def f64(x: Any) -> wl.Tensor:
    return wl.asarray(x, dtype=wl.float64)


@pytest.mark.book("6-47", "2.51", "B2-09", name="wl.jvp")
def test_directional_derivative_three_ways() -> None:
    f = lambda x: (wl.sin(x) * x**2).sum()
    x, v = f64([0.3, -1.2, 2.0]), f64([1.0, 0.5, -2.0])
    value, slope = wl.jvp(f, (x,), (v,))
    assert value.item() == pytest.approx(float(np.sum(np.sin(x.numpy()) * x.numpy() ** 2)))
    assert slope.item() == pytest.approx(wl.dot(wl.grad(f)(x), v).item(), rel=1e-12)
    assert slope.item() == pytest.approx(wl.numerical_jvp(f, (x,), (v,)).item(), rel=1e-8)
    assert slope.item() == wl.directional_derivative(f, x, v).item()


def test_several_arguments_add_up() -> None:
    f = lambda x, y: x * y + y
    _, both = wl.jvp(f, (f64(2.0), f64(5.0)), (f64(1.0), f64(10.0)))
    assert both.item() == 5.0 * 1.0 + 3.0 * 10.0


def test_trees_in_and_out() -> None:
    def f(p: Any) -> Any:
        return {"line": Line(p["a"].first * 2, p["a"].second), "list": [p["b"][0] ** 2, None]}

    x = {"a": Pair(f64([1.0, 2.0]), f64(3.0)), "b": (f64(4.0),)}
    t = {"a": Pair(f64([1.0, 1.0]), f64(0.5)), "b": (f64(2.0),)}
    value, tangent = wl.jvp(f, (x,), (t,))
    assert isinstance(tangent["line"], Line)
    np.testing.assert_array_equal(tangent["line"].slope, [2.0, 2.0])
    assert tangent["line"].offset.item() == 0.5
    assert tangent["list"][0].item() == 16.0
    assert tangent["list"][1] is None
    assert value["list"][0].item() == 16.0


def test_a_result_that_does_not_depend_has_tangent_zero() -> None:
    value, tangent = wl.jvp(lambda x: {"one": wl.ones(2), "count": wl.arange(3)}, (1.0,), (1.0,))
    np.testing.assert_array_equal(tangent["one"], [0.0, 0.0])
    np.testing.assert_array_equal(tangent["count"], [0, 0, 0])
    assert tangent["count"].dtype == value["count"].dtype


def test_aux_is_passed_through() -> None:
    value, tangent, aux = wl.jvp(lambda x: (x * 3, {"seen": x, "note": "text"}), (f64(2.0),), (f64(1.0),), has_aux=True)
    assert (value.item(), tangent.item(), aux["seen"].item(), aux["note"]) == (6.0, 3.0, 2.0, "text")
    assert type(aux["seen"]) is wl.Tensor
    with pytest.raises(GradientError, match="returns a pair"):
        wl.jvp(lambda x: x, (1.0,), (1.0,), has_aux=True)


def test_python_control_flow_follows_the_value() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        while x < 10:  # doubles until it is large
            x = x * 2
        return x if x > 12 else x**2

    assert [t.item() for t in wl.jvp(f, (f64(3.0),), (f64(1.0),))] == [144.0, 2 * 12.0 * 4]
    assert [t.item() for t in wl.jvp(f, (f64(8.0),), (f64(1.0),))] == [16.0, 2.0]


def test_nested_derivatives_do_not_confuse_their_perturbations() -> None:
    # d/dx of x * d/dy (x + y) is d/dx of x * 1; a confusion of the two tangents gives 2
    inner = lambda x: wl.jvp(lambda y: x + y, (f64(1.0),), (f64(1.0),))[1]
    assert wl.jvp(lambda x: x * inner(x), (f64(1.0),), (f64(1.0),))[1].item() == 1.0
    # d/dx of x * d/dy (x y) at y = 2 is 2 x
    inner = lambda x: wl.derivative(lambda y: x * y)(f64(2.0))
    assert wl.derivative(lambda x: x * inner(x))(f64(5.0)).item() == 10.0


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_higher_orders(order: int) -> None:
    f, x = wl.exp, f64(0.7)
    for _ in range(order):
        f = wl.derivative(f)  # type: ignore[assignment]
    assert f(x).item() == pytest.approx(np.exp(0.7), rel=1e-14)


@pytest.mark.parametrize(
    "primals, tangents, error, message",
    [
        ((1.0, 2.0), (1.0,), TreeError, "structure"),
        (({"a": 1.0},), ({"b": 1.0},), TreeError, "structure"),
        (
            (wl.ones(2),),
            (wl.ones(3),),
            GradientError,
            r"tangent of float32\[3\] belongs to a value of float32\[2\]",
        ),
        ((wl.ones(2),), (f64([1.0, 1.0]),), GradientError, "float64"),
        ((wl.arange(3),), (wl.arange(3),), GradientError, "int64; derivatives need floating"),
        (("text",), ("text",), GradientError, "leaf of type str"),
        (wl.ones(2), wl.ones(2), GradientError, "tuples"),
    ],
)
def test_bad_calls_explain_themselves(primals: Any, tangents: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wl.jvp(lambda *xs: xs[0], primals, tangents)


def test_results_that_are_no_tensors_are_refused() -> None:
    with pytest.raises(GradientError, match="the function returned a str"):
        wl.jvp(lambda x: "text", (1.0,), (1.0,))


def test_numpy_would_cut_the_derivative_off() -> None:
    with pytest.raises(TraceError, match="cut its derivative off"):
        wl.jvp(lambda x: wl.asarray(np.sin(np.asarray(x))), (1.0,), (1.0,))
    assert wl.jvp(lambda x: x * x.item(), (3.0,), (1.0,))[1].item() == 3.0  # item() says that the cut is meant


def test_a_value_that_escapes_is_reported() -> None:
    kept: list[Any] = []
    wl.jvp(lambda x: kept.append(x * 2) or x, (1.0,), (1.0,))
    with pytest.raises(TraceError, match="outside the JVP transformation"):
        kept[0] + 1


def test_an_exception_leaves_no_trace_behind() -> None:
    with pytest.raises(ZeroDivisionError):
        wl.jvp(lambda x: x / 0 if False else 1 // 0, (1.0,), (1.0,))
    assert (wl.ones(1) + 1).item() == 2.0


@pytest.mark.book("6-31", "B6-08", name="wl.jvp")
def test_nothing_is_kept_for_later() -> None:
    """The number of live values does not grow with the depth of a chain."""

    def deep(x: wl.Tensor, depth: int) -> wl.Tensor:
        for _ in range(depth):
            x = wl.tanh(x)
        return x

    def most(depth: int) -> int:
        x = wl.ones(4)
        with values_alive() as alive:
            wl.jvp(lambda x: deep(x, depth), (x,), (x,))
        return max(alive.history)

    assert most(5) == most(50) <= 10


@pytest.mark.book("6-18", "6-46")
def test_cost_is_a_small_multiple_of_the_function() -> None:
    f = lambda x: (wl.tanh(x @ x.mT) * x.sum()).mean()
    x = wl.ones((3, 3))
    with operations() as plain:
        f(x)
    with operations() as both:
        wl.jvp(f, (x,), (x,))
    assert plain["tanh"] == both["tanh"] == 1  # the value is computed once
    assert both["matmul"] == 3
    assert both.total() <= 5 * plain.total()
