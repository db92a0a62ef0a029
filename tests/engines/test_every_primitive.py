"""Every primitive with every dtype, on every axis, at sizes of several chunks: native code against NumPy.

All memory holds NaN before a program runs, so what is read before it is written is seen; and the bits are the same on
1, 2, 3 and 7 threads.
"""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
import wonderland.fft
import wonderland.linalg
import wonderland.random  # these declare primitives of their own
from tests.engines.engines import native, on_threads
from tests.engines.large_cases import APART, BY_NUMPY, LARGE, agree, calls
from wonderland.core.primitive import TABLE
from wonderland.engines.numpy.evaluate import evaluate


def test_no_primitive_is_forgotten() -> None:
    declared = {name for name, p in TABLE.items() if p.impl.__module__.startswith("wonderland.")}
    assert set(LARGE) | BY_NUMPY | APART >= declared


@pytest.mark.parametrize("name", sorted(LARGE))
def test_native_code_agrees_with_numpy(name: str) -> None:
    primitive, tried = TABLE[name], 0
    for dtype, (args, params) in calls(name):
        program, arrays = native(lambda *xs, params=params: primitive(*xs, **params), *args)
        with wl.debug.filled_memory():
            found = on_threads(program, arrays, (1, 7) if tried % 4 else (1, 2, 3, 7))
        what = f"{name} of {dtype}, {[a.shape for a in args]}, {params}"
        for x, y in zip(found, evaluate(program.graph, arrays), strict=True):
            # a product of n numbers has n roundings in any order, of which many cancel
            agree(x, y, what, 64 + (4 * np.sqrt(args[0].size) if "prod" in name else 0))
        tried += 1
    assert tried
