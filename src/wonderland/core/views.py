"""What an array is a view of: the memory, and where in it."""

from __future__ import annotations

import numpy as np

from .typing import Array

SPARSE = 8  # a view of less than one in so many elements stands for itself


def memory(a: Array) -> Array | None:
    """What an array that does not lie in order is a view of, as a vector; None if there is none that is contiguous."""
    base = a.base
    viewed = isinstance(base, np.ndarray) and base.flags.forc and base.dtype == a.dtype
    whole = base if viewed and base is not None else a
    found: Array = whole.ravel(order="K")
    if a.size * SPARSE < found.size or address(found) != address(whole):  # a copy, as there are gaps
        return None
    return found


def lie(a: Array) -> tuple[object, ...]:
    """The same for two arrays if they are the same part of memories of one size."""
    if a.flags.c_contiguous:
        return a.shape, a.dtype
    found = memory(a)
    where = None if found is None else (found.size, address(a) - address(found))
    return a.shape, a.dtype, a.strides, where


def address(a: Array) -> int:
    return int(a.__array_interface__["data"][0])
