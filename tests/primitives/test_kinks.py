"""The documented choice at every kink: which subgradient each function gives. Book, section 6.4.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl

inf = float("inf")

# function, point, the documented gradient there
KINKS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "relu": (wl.relu, 0.0, 0.0),
    "abs": (wl.abs, 0.0, 0.0),
    "abs of a complex number": (wl.abs, 0j, 0j),
    "sign": (wl.sign, 0.0, 0.0),
    "floor": (wl.floor, 1.0, 0.0),
    "ceil": (wl.ceil, 1.0, 0.0),
    "round": (wl.round, 0.5, 0.0),
    "trunc": (wl.trunc, 1.0, 0.0),
    "maximum with a constant": (lambda x: wl.maximum(x, 0.0), 0.0, 0.5),
    "minimum with a constant": (lambda x: wl.minimum(x, 0.0), 0.0, 0.5),
    "maximum with itself": (lambda x: wl.maximum(x, x), 3.0, 1.0),
    "largest element, tie of two": (wl.max, [1.0, 2.0, 2.0], [0.0, 0.5, 0.5]),
    "largest element, tie of four": (wl.max, [3.0] * 4, [0.25] * 4),
    "smallest element, tie": (wl.min, [1.0, 2.0, 1.0], [0.5, 0.0, 0.5]),
    "clip at its ends": (
        lambda x: wl.clip(x, 0.0, 1.0).sum(),
        [0.0, 1.0, -0.1, 1.1, 0.5],
        [1.0, 1.0, 0.0, 0.0, 1.0],
    ),
    "hinge": (lambda s: wl.relu(1 - s), 1.0, 0.0),
    "sort with ties": (lambda x: wl.sort(x)[0], [2.0, 1.0, 1.0], [0.0, 1.0, 0.0]),
    "top-k with ties": (lambda x: wl.top_k(x, 1).values.sum(), [5.0, 5.0], [1.0, 0.0]),
    "square root at 0": (wl.sqrt, 0.0, inf),
    "norm at 0": (wl.norm, [0.0, 0.0], [0.0, 0.0]),
    "hypot at 0": (lambda x: wl.hypot(x[0], x[1]), [0.0, 0.0], [0.0, 0.0]),
    "x^0 at 0": (lambda x: x**0.0, 0.0, 0.0),
    "x^1 at 0": (lambda x: x**1.0, 0.0, 1.0),
    "x^2 at 0": (lambda x: x**2, 0.0, 0.0),
    "0^p": (lambda p: wl.pow(0.0, p), 2.0, 0.0),
    "copysign at 0": (lambda x: wl.copysign(x, -1.0), 0.0, 0.0),
    "where takes the chosen side": (lambda x: wl.where(x > 0, x, 2 * x), 0.0, 2.0),
    "product with one zero": (wl.prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    "product with two zeros": (wl.prod, [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
    "softplus is smooth": (wl.softplus, 0.0, 0.5),
    "logaddexp of two infinities": (lambda x: wl.logaddexp(x, x), -inf, 1.0),
    "scatter max, tie": (lambda x: wl.zeros(1).at[wl.tensor([0, 0])].max(x).sum(), [2.0, 2.0], [0.5, 0.5]),
}


@pytest.mark.book("6-05", "6-70", "6-75", "6-76", "B6-21", "C-12")
@pytest.mark.parametrize("name", KINKS)
def test_documented_value(name: str) -> None:
    f, at, want = KINKS[name]
    with np.errstate(divide="ignore"):
        got = wl.grad(f)(wl.asarray(at, dtype=wl.complex128 if isinstance(at, complex) else wl.float64))
    np.testing.assert_allclose(got, want, rtol=0, atol=0)


@pytest.mark.parametrize("name", [name for name, (f, at, want) in KINKS.items() if not isinstance(at, complex)])
def test_both_modes_make_the_same_choice(name: str) -> None:
    f, at, want = KINKS[name]
    x = wl.asarray(at, dtype=wl.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = [wl.jvp(f, (x,), (e,))[1].item() for e in wl.eye(max(1, x.size), dtype=wl.float64).reshape(-1, *x.shape)]
    np.testing.assert_array_equal(np.reshape(rows, x.shape), want)


CONVEX: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "relu": (wl.relu, [0.0]),
    "abs": (wl.abs, [0.0]),
    "hinge": (lambda s: wl.relu(1 - s), [1.0]),
    "maximum": (lambda x: wl.maximum(x, 2 * x - 1), [1.0]),
    "max": (lambda x: wl.max(wl.stack([x, -x, x * 0])), [0.0]),
}


@pytest.mark.book("6-74", "6-75", "6-76", name="wl.is_subgradient")
@pytest.mark.parametrize("name", CONVEX)
def test_the_choice_is_a_subgradient(name: str) -> None:
    f, points = CONVEX[name]
    grid = wl.linspace(-3, 3, 121)
    for x in [*points, -1.3, 0.4, 2.2]:
        slope = wl.grad(f)(x)
        assert wl.is_subgradient(f, x, slope, grid)
        low, high = wl.subdifferential(f, x)
        assert low - 1e-6 <= slope.item() <= high + 1e-6


@pytest.mark.parametrize("f", [wl.relu, wl.abs, wl.norm, lambda x: wl.hypot(x, x), lambda x: wl.maximum(x, -x)])
def test_second_derivatives_at_kinks_are_finite(f: Callable[..., Any]) -> None:
    assert np.isfinite(wl.grad(wl.grad(f))(0.0).item())
    assert np.isfinite(wl.jvp(wl.grad(f), (wl.tensor(0.0),), (wl.tensor(1.0),))[1].item())
