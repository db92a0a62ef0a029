"""What an array is a view of: the memory, and where in it the elements lie.

A program that reads parts of one array, such as the queries, keys and values of one product, or a transposed matrix,
gets the memory, and neither copies of the parts nor the array twice (`primitives/layout.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .typing import Array

SPARSE = 8  # a view of less than one in so many elements stands for itself


class Part(NamedTuple):
    """A view of memory: it in another shape, a slice of that, the axes in another order, and axes of size 1 added."""

    whole: tuple[int, ...]
    cut: tuple[tuple[int, int | None, int], ...]
    axes: tuple[int, ...]
    shape: tuple[int, ...]


def part(a: Array) -> Part | None:
    """What an array sees of its `memory`; None if it is whole and in order, or if no shape of the memory has it."""
    if a.flags.c_contiguous or (found := memory(a)) is None:
        return None
    long = [i for i, n in enumerate(a.shape) if n > 1]
    steps = {i: a.strides[i] // a.itemsize for i in long}
    order = sorted(long, key=lambda i: -steps[i])
    inner = steps[order[-1]]
    offset = (address(a) - address(found)) // a.itemsize
    if inner <= 0 or any(a.strides[i] % a.itemsize for i in long):
        return None
    # an axis for every step, of as many places as fit into the step before, and one for what is left out inside of all
    pieces = [(steps[i], a.shape[i]) for i in order] + [(1, 1)] * (inner > 1)
    whole, index, before = [], [], found.size
    for step, length in pieces:
        (first, offset), (places, odd) = divmod(offset, step), divmod(before, step)
        if odd or first + length > places:
            return None
        whole.append(places)
        index.append((first, first + length, 1))
        before = step
    axes = (*map(order.index, long), *range(len(long), len(whole)))
    return Part(tuple(whole), tuple(index), axes, a.shape)


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
