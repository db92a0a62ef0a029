"""The scalar engine of the examples: correct on graphs that are no trees, in linear time, not recursive."""

from __future__ import annotations

import importlib.util
import math
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl

FILE = Path(__file__).resolve().parent.parent / "examples" / "scalar_engine.py"
spec = importlib.util.spec_from_file_location("scalar_engine", FILE)
engine = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
spec.loader.exec_module(engine)
Value = engine.Value


def central(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2 * h)


@pytest.mark.book("6-81", name="examples/scalar_engine.py")
@given(st.floats(-3, 3))
def test_the_diamond(x):
    def f(x):
        a = x + 1
        b = a * a
        c = a * b
        return b + c

    value = Value(x)
    f(value).backward()
    assert value.grad == pytest.approx(central(f, x), rel=1e-6, abs=1e-6)


@pytest.mark.book("6-81", name="examples/scalar_engine.py")
def test_thirty_doublings_take_thirty_steps():
    x = Value(1.0)
    y = x
    for _ in range(30):
        y = y + y
    assert len(engine.topological(y)) == 31
    start = time.perf_counter()
    y.backward()
    assert time.perf_counter() - start < 1.0, "2^30 paths would take minutes"
    assert x.grad == 2**30


@pytest.mark.book("6-81", name="examples/scalar_engine.py")
def test_a_chain_of_ten_thousand_operations_does_not_recurse():
    x = Value(0.5)
    y = x
    for _ in range(10_000):
        y = y * 1.0001
    y.backward()
    assert x.grad == pytest.approx(1.0001**10_000)


def test_operands_come_before_results():
    x, y = Value(1.0), Value(2.0)
    order = engine.topological((x * y + x.sin()) / (y - x).exp())
    place = {id(value): i for i, value in enumerate(order)}
    assert len(place) == len(order)
    assert all(place[id(p)] < place[id(v)] for v in order for p, _ in v.parents)


@given(st.floats(0.2, 3.0), st.floats(0.2, 3.0))
def test_agrees_with_the_framework(x, y):
    def f(x, y, lib):
        a = lib["log"](x) * y - 2 / (1 + x) + lib["tanh"](x - 3 * y) ** 2
        return lib["exp"](-a * 0.1) + lib["relu"](y - 1) * lib["sin"](a) - x

    methods = {name: getattr(Value, name) for name in ("log", "tanh", "exp", "relu", "sin")}
    functions = {name: getattr(wl, name) for name in methods}
    values = Value(x), Value(y)
    out = f(*values, methods)
    out.backward()
    tensors = [wl.tensor(t, dtype=wl.float64) for t in (x, y)]
    value, gradients = wl.value_and_grad(lambda x, y: f(x, y, functions), argnums=(0, 1))(*tensors)
    assert out.data == pytest.approx(value.item(), rel=1e-12)
    for mine, theirs in zip(values, gradients, strict=True):
        assert mine.grad == pytest.approx(theirs.item(), rel=1e-9, abs=1e-12)


def test_gradients_accumulate_over_passes_and_not_within_one():
    x = Value(3.0)
    y = x * x
    y.backward()
    y.backward()
    assert (x.grad, y.grad) == (12.0, 2.0)


def test_shows_value_and_gradient():
    assert repr(Value(math.pi)) == "Value(3.14159, grad=0)"
