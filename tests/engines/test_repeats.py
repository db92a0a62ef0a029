"""Extremes, any and all of what is the same along an axis."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import same
from wonderland.core.primitive import TABLE

SPREAD = """
import numpy as np
import wonderland as wl

one, column = wl.asarray(np.array(True)), wl.asarray(np.array([[True], [False], [True]]))
for f in (wl.all, wl.any):
    for n in (9, 40, 93, 200):
        assert bool(wl.jit(lambda x: f(wl.broadcast_to(x, (n,))))(one))
        for axis in (0, 1, (0, 1)):
            spread = np.broadcast_to(np.asarray(column), (3, n))
            found = wl.jit(lambda x: f(wl.broadcast_to(x, (3, n)) & one, axis=axis))(column)
            assert np.array_equal(found, getattr(np, f.__name__)(spread, axis=axis))
"""


def test_any_and_all_of_one_number() -> None:
    """In a process of its own: LLVM used to end it."""
    done = subprocess.run([sys.executable, "-c", SPREAD], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["any", "all", "max", "min"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.float32, wl.bfloat16])
def test_repeated_axes_count_once(name: str, dtype: Any) -> None:
    if dtype is np.bool_ and name in ("max", "min"):
        pytest.skip("bools have no order")
    x = np.random.default_rng(0).integers(0, 3, (5, 1, 7)).astype(dtype)

    def every(x: Any) -> Any:
        wide = wl.broadcast_to(x, (5, 40, 7))
        return [TABLE[name](wide, axes=axes) for axes in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2))]

    same(every, x)
    same(lambda x: every(x) + [TABLE["any"](wl.broadcast_to(x, (5, 40, 7)) != 0, axes=(1,))], x)
