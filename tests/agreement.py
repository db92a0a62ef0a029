"""When results are the same: to the last bit if NumPy computes both, up to rounding if native code computes one."""

from __future__ import annotations

from typing import Any

import numpy as np

import wonderland as wl


def same_array(x: Any, y: Any, roundings: int = 100) -> None:
    """Equal shapes, dtypes and numbers; native code may differ by some roundings of 1 or the largest number."""
    x, y = np.asarray(x), np.asarray(y)
    assert (x.shape, x.dtype) == (y.shape, y.dtype)
    if wl.get_backend() == "numpy" or x.dtype.kind not in "fcV":
        np.testing.assert_array_equal(x, y)
    else:
        unit = float(wl.finfo(x.dtype).eps)
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        x, y = x.astype(wide), y.astype(wide)
        largest = np.max(np.abs(y), initial=1.0, where=np.isfinite(y))
        np.testing.assert_allclose(x, y, rtol=roundings * unit, atol=roundings * unit * largest)


def same(a: Any, b: Any) -> None:
    """Two trees of results are the same, with the same dtypes."""
    left, right = wl.tree.flatten(a), wl.tree.flatten(b)
    assert left[1] == right[1]
    for x, y in zip(left[0], right[0], strict=True):
        same_array(x, y)
