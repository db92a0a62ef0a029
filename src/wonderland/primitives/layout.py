"""Parts of memory (core/views.py) as operations on it."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..core.views import Part
from .structure import reshape, slice_, transpose


def part_of(x: Tensor, part: Part) -> Tensor:
    """What a part sees of a vector, the memory."""
    ordered = transpose(slice_(reshape(x, shape=part.whole), index=part.cut), axes=part.axes)
    return reshape(ordered, shape=part.shape)
