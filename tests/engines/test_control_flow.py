"""Loops and branches as native code: memory that changes places, and graphs that are used twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import same
from tests.engines.test_program import numbers

CLOSE: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}


def floats(*shape: int, seed: int = 0) -> Any:
    return numbers(*shape, dtype=np.float64, seed=seed)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_last_state_outlives_the_loop(length: int) -> None:
    """After an odd number of steps it lies in the memory of its partner, which nobody else may use then."""

    def f(a: Any, x: Any) -> Any:
        first = wl.fori_loop(0, length, lambda i, c: wl.sin(c * a) + i.astype(a.dtype), x)
        second = wl.fori_loop(0, length, lambda i, c: wl.cos(c) * a, x + 1)
        return wl.tanh(x @ second) + first + second

    same(f, floats(), floats(5), **CLOSE)
    same(wl.grad(lambda a, x: f(a, x).sum(), (0, 1)), floats(), floats(5), **CLOSE)


def test_loops_in_loops() -> None:
    def outer(c: Any, row: Any, reverse: bool) -> Any:
        d, ys = wl.scan(lambda d, x: (wl.sin(d) * row[0] + x, d * x), c, row, reverse=reverse)
        return wl.tanh(d), ys.sum() + ys[0]

    for reverse in (False, True):
        f = lambda x, r=reverse: wl.scan(lambda c, row: outer(c, row, not r), x[0, 0], x, reverse=r)
        same(f, floats(4, 5), **CLOSE)
        same(wl.grad(lambda x, f=f: sum(y.sum() for y in f(x))), floats(4, 5), **CLOSE)


def test_what_a_loop_writes_step_by_step_is_not_taken_for_a_constant_of_the_loop_around() -> None:
    def f(x: Any) -> Any:
        def outer(c: Any, s: Any) -> Any:
            last, ys = wl.scan(lambda d, row: (wl.sin(d) + row * c[0], d * d), c * s, x)
            return last + ys.sum(axis=0), None

        return wl.scan(outer, x[0], x[:, 0])[0]

    same(f, floats(3, 2), **CLOSE)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_graph_that_is_used_twice_is_computed_twice(sign: float) -> None:
    """Both branches contain the same graph, with tensors put together from parts."""
    inner = wl.checkpoint(lambda x: wl.concat([x[:1] * x[1:2], wl.sin(x[1:])]) + x)
    f = lambda x: wl.cond(x[0] > 0, inner, lambda x: inner(-x), x)
    x = np.abs(floats(5)) * sign
    same(f, x, **CLOSE)
    same(wl.grad(lambda x: (f(x) ** 2).sum()), x, **CLOSE)
    same(wl.grad(lambda x: (inner(x) * inner(wl.cos(x))).sum()), x, **CLOSE)


def test_branches_choose_and_clip() -> None:
    branches = [lambda x: x + 1, lambda x: x[::-1] * 2, wl.sin]
    for index in (-5, 0, 1, 2, 9):
        same(lambda i, x: wl.switch(i, branches, x), np.asarray(index), floats(7), **CLOSE)


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_a_while_loop_may_end_at_once(limit: int) -> None:
    def f(n: Any, x: Any) -> Any:
        count, y = wl.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, wl.sin(s[1]) @ s[1]), (n * 0, x))
        return count, y, y.sum(axis=0) + x

    same(f, np.asarray(limit), floats(4, 4), **CLOSE)


# --- where results are put


STRIDED: dict[str, Callable[[Any], Any]] = {
    "sums of rows": lambda x: wl.pad(x.sum(axis=1, keepdims=True), [(0, 0), (1, 2)]),
    "largest of rows": lambda x: wl.concat([x.max(axis=1, keepdims=True), x, x.mean(axis=1, keepdims=True)], axis=1),
    "sums of columns": lambda x: wl.stack([x.sum(axis=0), x[0]], axis=1),
    "a product": lambda x: wl.concat([wl.tanh(x @ x.T + 1), x @ x.T], axis=1)[:, ::2],
    "a product seen in another shape": lambda x: (lambda y: y * (y.reshape(-1) + 1).reshape(y.shape))(x @ x.T * 2),
    "a product and its transpose": lambda x: (lambda y: [y * y.T, y.reshape(-1)[::2]])(wl.sin(x @ x.T)),
}


@pytest.mark.parametrize("name", STRIDED)
def test_results_go_to_places_that_are_apart(name: str) -> None:
    f = STRIDED[name]
    same(f, floats(3, 5), **CLOSE)
    same(wl.vmap(f), floats(2, 3, 5), **CLOSE)
    same(wl.grad(lambda x: sum(wl.sin(y).sum() for y in wl.tree.leaves(f(x)))), floats(3, 5), **CLOSE)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_state_that_is_a_result_of_every_step(length: int, reverse: bool) -> None:
    """It is written once, among the results, where the next step reads it; so does the caller after the loop."""

    def once(h: Any, xs: Any) -> Any:
        def body(h: Any, x: Any) -> Any:
            h = wl.sin(h) * x + 0.5
            return h, (h, h * x)

        h, (hs, ys) = wl.scan(body, h, xs, reverse=reverse)
        return h * 2 + xs[0], hs, ys, h

    def both(h: Any, xs: Any) -> Any:
        """Two parts of the state become one value, and two results are one of them; a third part stays."""

        def body(carry: Any, x: Any) -> Any:
            a, b, c = carry
            new = wl.tanh(a - b) + x + c
            return (new, new, c), (new, new, x)

        return wl.scan(body, (h, h + 1, h), xs, reverse=reverse)

    def in_a_loop(h: Any, xs: Any) -> Any:
        """The inner loop begins anew in every turn, from a state that the outer one exchanges or shares."""

        def turn(h: Any, x: Any) -> Any:
            h, hs, _, _ = once(h * 0.9, xs + x)
            return h, hs.sum(0)

        def also(h: Any, x: Any) -> Any:
            h = once(h, xs * x)[0]
            return h, h

        return wl.scan(turn, h, xs), wl.scan(also, h, xs)

    h, xs = floats(3), floats(length, 3, seed=1)
    for f in (once, both, in_a_loop):
        same(f, h, xs, **CLOSE)
        same(wl.grad(lambda h, xs, f=f: sum((y * y).sum() for y in wl.tree.leaves(f(h, xs))), (0, 1)), h, xs, **CLOSE)


def test_state_that_is_a_result_is_not_confused_with_an_argument() -> None:
    """The first step reads the argument where it lies, which a result must not overwrite."""
    h = wl.nn.Buffer(wl.asarray(floats(4)))

    @wl.jit
    def step(xs: Any) -> Any:
        last, hs = wl.scan(lambda s, x: (s * x + 1,) * 2, wl.asarray(h), xs)
        h.assign(last)
        return hs

    expected = np.array(h.value)
    for _ in range(3):
        xs = floats(1, 4, seed=2)
        expected = expected * np.asarray(xs[0]) + 1
        np.testing.assert_allclose(step(xs)[-1], expected, **CLOSE)
        np.testing.assert_allclose(h.value, expected, **CLOSE)
