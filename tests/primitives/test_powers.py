"""Powers where NumPy has several answers."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_square_roots_at_the_ends(dtype: str) -> None:
    """As C's pow has it, whether there is one exponent or one for each number, on both engines."""
    x = wl.asarray(np.array([-np.inf, -0.0, 0.0, 4.0, np.inf, np.nan]), dtype=dtype)
    halves = wl.full((6,), 0.5, dtype=dtype)
    for f in (lambda x: x**0.5, lambda x: wl.pow(x, halves), lambda x: wl.pow(x, halves[:1]), wl.jit(lambda x: x**0.5)):
        found = np.asarray(f(x), np.float64)
        np.testing.assert_array_equal(found, [np.inf, 0.0, 0.0, 2.0, np.inf, np.nan])
        assert not np.signbit(found[:5]).any()
    assert float(x[0] ** 0.5) == np.inf
