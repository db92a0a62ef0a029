"""Transformations nested at random: every nest equals the same nest made of plain evaluations and forward mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import wonderland as wl

F64 = wl.float64
Function = Callable[[Any], Any]  # from vectors of two numbers to vectors of two numbers

A = wl.tensor([[0.4, -0.7], [0.9, 0.3]], dtype=F64)
V = wl.tensor([0.6, -1.1], dtype=F64)
SCALES = wl.tensor([0.5, 1.0, -0.8], dtype=F64)
X = wl.tensor([0.3, -0.5], dtype=F64)


# --- functions, with loops, branches, state of their own and rules of their own


@wl.custom_jvp
def _sine(x: Any) -> Any:
    return wl.sin(x)


_sine.defjvp(lambda primals, tangents: (_sine(*primals), tangents[0] * wl.cos(primals[0])))


@wl.custom_vjp
def _product(x: Any, y: Any) -> Any:
    return x * y


_product.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (ct * r[1], ct * r[0]))


def plain(x: Any) -> Any:
    return wl.tanh(A @ x) + wl.sin(x) * x[0]


def looped(x: Any) -> Any:
    last, ys = wl.scan(lambda c, row: (wl.sin(c) + row * x[0], c * c), x, A)
    return last + ys.sum(axis=0)


def branched(x: Any) -> Any:
    return wl.cond(x.sum() < 0.1, lambda x: wl.exp(0.5 * x) * x[1], lambda x: x**3 + A @ x, x)


def ruled(x: Any) -> Any:
    return _product(_sine(A @ x), wl.cos(x))


def indexed(x: Any) -> Any:
    y = wl.stack([x[1], x[0] * x[1], x[0]])
    return y[wl.tensor([0, 2])] * wl.sigmoid(y[1:]) + wl.where(x > 0, x, 0.1 * x * x)


FUNCTIONS = [plain, looped, branched, ruled, indexed]


# --- transformations of functions, and how the same is said plainly


def basis(f: Function, x: Any) -> list[Any]:
    """The columns of the Jacobian, by forward mode on computed values."""
    return [wl.jvp(f, (x,), (e,))[1] for e in wl.eye(2, dtype=F64)]


def with_state(f: Function) -> Function:
    """The function next to a counter that it does not depend on."""
    count = wl.nn.Buffer(0)

    def run(x: Any) -> Any:
        count.assign(count + 1)
        return f(x) + 0 * count.astype(F64)

    return wl.jit(run)  # type: ignore[no-any-return]


NESTED: dict[str, Callable[[Function], Function]] = {
    "jit": wl.jit,
    "checkpoint": wl.checkpoint,
    "grad": lambda f: wl.grad(lambda x: f(x) @ V),
    "vjp": lambda f: lambda x: wl.vjp(f, x)[1](V)[0],
    "jvp": lambda f: lambda x: wl.jvp(f, (x,), (V,))[1],
    "linearize": lambda f: lambda x: wl.linearize(f, x)[1](V),
    "vmap": lambda f: lambda x: wl.vmap(lambda s: f(s * x))(SCALES).sum(axis=0),
    "vmap of columns": lambda f: lambda x: wl.vmap(f, in_axes=1, out_axes=1)(wl.stack([x, -x, 2 * x], axis=1)) @ SCALES,
    "scan": lambda f: lambda x: wl.scan(lambda c, s: (f(c * s), None), x, SCALES[:2])[0],
    "cond": lambda f: lambda x: wl.cond(x[0] > 0, f, lambda x: f(-x), x),
    "state": with_state,
}
PLAIN: dict[str, Callable[[Function], Function]] = {
    "jit": lambda f: f,
    "checkpoint": lambda f: f,
    "grad": lambda f: lambda x: wl.stack([column @ V for column in basis(f, x)]),
    "vjp": lambda f: lambda x: wl.stack([column @ V for column in basis(f, x)]),
    "jvp": lambda f: lambda x: sum(column * v for column, v in zip(basis(f, x), V, strict=True)),
    "linearize": lambda f: lambda x: sum(column * v for column, v in zip(basis(f, x), V, strict=True)),
    "vmap": lambda f: lambda x: sum(f(s * x) for s in SCALES),
    "vmap of columns": lambda f: lambda x: f(x) * SCALES[0] + f(-x) * SCALES[1] + f(2 * x) * SCALES[2],
    "scan": lambda f: lambda x: f(f(x * SCALES[0]) * SCALES[1]),
    "cond": lambda f: lambda x: f(x) if x[0] > 0 else f(-x),
    "state": lambda f: f,
}


def apply(table: dict[str, Callable[[Function], Function]], names: list[str], f: Function) -> Function:
    for name in names:
        f = table[name](f)
    return f


def is_refused(names: list[str]) -> bool:
    """State that a branch writes, where the choice differs from example to example, is an error."""
    places = [i for i, name in enumerate(names) if name == "cond"]
    return any("state" in names[:i] and any(name.startswith("vmap") for name in names[i:]) for i in places)


@settings(max_examples=150)
@given(st.sampled_from(FUNCTIONS), st.lists(st.sampled_from(sorted(NESTED)), min_size=1, max_size=4))
def test_random_nests(f: Function, names: list[str]) -> None:
    assume(not is_refused(names))
    expected = apply(PLAIN, names, f)(X)
    np.testing.assert_allclose(apply(NESTED, names, f)(X), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("outer", sorted(NESTED))
def test_every_pair(f: Function, outer: str) -> None:
    for inner in NESTED:
        names = [inner, outer]
        expected = apply(PLAIN, names, f)(X)
        np.testing.assert_allclose(apply(NESTED, names, f)(X), expected, rtol=1e-10, atol=1e-11, err_msg=str(names))


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("name", sorted(NESTED))
def test_derivatives_of_every_transformation_by_finite_differences(f: Function, name: str) -> None:
    wl.check_grads(wl.jit(NESTED[name](f)), (X,), rtol=1e-5, atol=1e-6)


def test_ten_levels() -> None:
    f: Function = lambda x: wl.sin(0.5 * x)
    for _ in range(5):
        f = wl.jit(wl.vmap(lambda x, g=f: g(x)))
        f = wl.checkpoint(f)
    np.testing.assert_allclose(f(wl.ones((1,) * 5 + (2,), dtype=F64)), np.sin(0.5) * np.ones((1,) * 5 + (2,)))
    slope: Any = lambda x: wl.exp(0.5 * x)
    for _ in range(6):
        slope = wl.jit(wl.grad(slope))
    assert slope(wl.tensor(0.0, dtype=F64)).item() == pytest.approx(0.5**6)
