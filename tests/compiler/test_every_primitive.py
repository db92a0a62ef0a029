"""Every primitive with every dtype, on every axis, at sizes of several chunks: native code against NumPy.

All memory holds NaN before a program runs, so what is read before it is written is seen; and the bits are the same on
1, 2, 3 and 7 threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
import wonderland.fft
import wonderland.linalg
import wonderland.random  # these declare primitives of their own
from tests.compiler.engines import native, on_threads
from tests.compiler.large_cases import APART, BY_NUMPY, LARGE, calls
from wonderland.graph import evaluate
from wonderland.primitives.primitive import TABLE


def test_no_primitive_is_forgotten() -> None:
    declared = {name for name, p in TABLE.items() if p.impl.__module__.startswith("wonderland.")}
    assert set(LARGE) | BY_NUMPY | APART >= declared


def agree(found: Any, wanted: Any, what: str, roundings: float = 64) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    unit = float(wl.finfo(found.dtype).eps)
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    found, wanted = found.astype(wide), wanted.astype(wide)
    scale = np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))
    # a sum of n terms in another order differs by some roundings of its largest parts
    np.testing.assert_allclose(found, wanted, rtol=roundings * unit, atol=roundings * unit * scale, err_msg=what)


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
