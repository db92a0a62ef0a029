"""What a kernel does: the items that it goes through for every row."""

from __future__ import annotations

from typing import NamedTuple

from ....core import dtypes
from ..values import Shape, Value, View


def rounds(name: str, dtype: dtypes.DType) -> bool:
    """Whether a reduction loses digits the longer it gets, so that its order matters."""
    return name == "sum" and dtypes.is_inexact(dtype)


class Store(NamedTuple):
    """target = value, for every place of the space, or for every row."""

    target: View
    value: Value


class Reduce(NamedTuple):
    """target = the row's sum (or other reduction) of value: one number per row."""

    target: View
    value: Value
    name: str

    @property
    def rounds(self) -> bool:
        return rounds(self.name, self.target.dtype)


class Accumulate(NamedTuple):
    """target = a reduction over outer axes: its strides over the space are 0 along these."""

    target: View
    value: Value
    name: str
    steps: Shape = ()  # for every group of axes, how many places belong to one part of it; 0 is all


Item = Store | Reduce | Accumulate
