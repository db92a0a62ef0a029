"""Functional updates where a traced mask says which elements change; the rest is in test_indexing.py."""

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
