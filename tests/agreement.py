"""When results are the same: to the last bit if NumPy computes both in the same way, up to rounding otherwise.

NumPy's own last digits depend on the processor and on shapes (its BLAS blocks rows as it likes), so equal bits are
asked of it only where the same operations see the same shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wonderland as wl


def close_array(x: Any, y: Any, roundings: int = 100, least: float = 1.0) -> None:
    """Equal shapes and dtypes, and numbers up to some roundings of the largest of them (or of `least`).

    `roundings` is about the depth of the computation: how many operations one number goes through.
    """
    x, y = np.asarray(x), np.asarray(y)
    assert (x.shape, x.dtype) == (y.shape, y.dtype)
    if x.dtype.kind not in "fcV":
        np.testing.assert_array_equal(x, y)
        return
    unit = float(wl.finfo(x.dtype).eps)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    largest = np.max(np.abs(y), initial=least, where=np.isfinite(y))
    np.testing.assert_allclose(x, y, rtol=roundings * unit, atol=roundings * unit * largest)


def same_array(x: Any, y: Any, roundings: int = 100) -> None:
    """Equal shapes, dtypes and numbers; native code may differ by some roundings of 1 or the largest number."""
    if wl.get_backend() == "numpy":
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_array_equal(x, y)
    else:
        close_array(x, y, roundings)


def same(a: Any, b: Any) -> None:
    """Two trees of results are the same, with the same dtypes."""
    left, right = wl.tree.flatten(a), wl.tree.flatten(b)
    assert left[1] == right[1]
    for x, y in zip(left[0], right[0], strict=True):
        same_array(x, y)
