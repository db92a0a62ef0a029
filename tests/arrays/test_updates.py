"""Functional updates where a traced mask says which elements change, and where indices may be out of range.

The rest is in test_indexing.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl


@pytest.mark.parametrize("mode", ["set", "add", "multiply", "min", "max"])
def test_one_value_under_a_traced_mask(mode: str) -> None:
    x = wl.asarray(np.random.default_rng(0).normal(size=(4, 3)))

    def update(x: Any) -> Any:
        return getattr(x.at[x > 0.2], mode)(0.5), getattr(x.at[x[:, 0] > 0], mode)(0.5)

    want = [np.asarray(part) for part in update(x)]
    for got in (wl.jit(update)(x), [p[0] for p in wl.vmap(update)(x[None])]):
        for part, expected in zip(got, want, strict=True):
            np.testing.assert_array_equal(part, expected)
    gradient = wl.jit(wl.grad(lambda x: x.at[x > 0.2].set(0.0).sum()))(x)
    np.testing.assert_array_equal(gradient, x.numpy() <= 0.2)


@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize("engine", ["eager", "compiled"])
def test_what_is_out_of_range_may_be_dropped(mode: str, engine: str) -> None:
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 4, 2))
    places = np.array([[0, 1, 5, 9], [4, -1, -6, 2], [7, 5, 6, -9]])

    def update(x: Any, new: Any) -> Any:
        return getattr(x.at[wl.arange(3)[:, None], wl.tensor(places)], mode)(new, mode="drop")

    want, used = x.copy(), np.zeros_like(new)
    for b in range(3):
        for t, place in enumerate(places[b]):
            if -5 <= place < 5:
                want[b, place] = new[b, t] + (want[b, place] if mode == "add" else 0)
                used[b, t] = 1
    if mode == "set":
        used[1, 0] = 0  # 4 and -1 are one place
    run = wl.jit(update) if engine == "compiled" else update
    np.testing.assert_allclose(run(wl.tensor(x), wl.tensor(new)), want)
    gradient = wl.grad(lambda x, new: run(x, new).sum(), argnums=1)
    np.testing.assert_array_equal(gradient(wl.tensor(x), wl.tensor(new)), used)


def test_dropping_needs_indices() -> None:
    with pytest.raises(wl.errors.InputError, match="mode='clip'"):
        wl.zeros(3).at[wl.tensor([1])].set(1.0, mode="clip")
    with pytest.raises(wl.errors.InputError, match=r"wl\.arange"):
        wl.zeros((3, 4)).at[wl.tensor([1]), 1:].set(1.0, mode="drop")
    with pytest.raises(wl.errors.IndexOutOfRange):
        wl.zeros(3).at[wl.tensor([5])].set(1.0)
