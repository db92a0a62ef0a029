"""Where the elements of an array lie in the memory that it is a view of, said as operations on that memory.

A program that reads parts of one array, such as the queries, keys and values of one product, or a transposed matrix,
gets the memory, and neither copies of the parts nor the array twice.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.tensor import Shape, Tensor
from ..core.typing import Array
from ..core.views import address, memory
from .structure import Slices, reshape, slice_, transpose


class Part(NamedTuple):
    """A view of memory: it in another shape, a slice of that, the axes in another order, and axes of size 1 added."""

    whole: Shape
    cut: Slices
    axes: tuple[int, ...]
    shape: Shape

    def of(self, x: Tensor) -> Tensor:
        """The part of a vector, the memory."""
        ordered = transpose(slice_(reshape(x, shape=self.whole), index=self.cut), axes=self.axes)
        return reshape(ordered, shape=self.shape)


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
