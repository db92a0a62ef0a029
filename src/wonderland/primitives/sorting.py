"""Order: sorting permutations and positions in sorted sequences. Integers, so without derivatives of their own."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..core.dtypes import float32, int64, is_complex, is_foreign
from ..core.errors import DTypeError, ShapeError
from ..core.primitive import ZERO, Aval, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .structure import all_batched

Side = Literal["left", "right"]


def _ordered(x: Array) -> Array:
    """In float32, NaN is sorted behind all numbers; NumPy does not know it in bfloat16."""
    return x.astype(float32) if is_foreign(x.dtype) else x


def _argsort(x: Array, axis: int, descending: bool) -> Array:
    x = _ordered(x)
    if descending:
        # sorting the reversed axis and reversing the result keeps equal elements in their order
        order = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        return np.flip(x.shape[axis] - 1 - order, axis).astype(np.int64)
    return np.argsort(x, axis=axis, kind="stable")


def _argsort_abstract(x: Shaped, axis: int, descending: bool) -> Aval:
    if is_complex(x.dtype):
        raise DTypeError(f"sort: {x.dtype} has no order.", "sort wl.abs(x) or wl.real(x)")
    return Aval(x.shape, int64)


argsort: Primitive = Primitive(
    "argsort",
    _argsort,
    _argsort_abstract,
    jvp=(ZERO,),
    batch=lambda args, batched, axis, descending: argsort(args[0], axis=axis + 1, descending=descending),
    cost=lambda x, **p: math.prod(x.shape) * max(1, math.ceil(math.log2(max(2, x.shape[p["axis"]])))),
)


def _searchsorted(sorted_: Array, values: Array, side: Side) -> Array:
    sorted_, values = _ordered(sorted_), _ordered(values)
    if sorted_.ndim == 1:
        return np.searchsorted(sorted_, values, side=side).astype(np.int64)
    out = np.empty(values.shape, np.int64)
    for i in np.ndindex(sorted_.shape[:-1]):
        out[i] = np.searchsorted(sorted_[i], values[i], side=side)
    return out


def _searchsorted_abstract(sorted_: Shaped, values: Shaped, side: Side) -> Aval:
    lead = sorted_.shape[:-1]
    if not sorted_.shape or values.shape[: len(lead)] != lead:
        raise ShapeError(
            f"searchsorted: sorted {sorted_.shape} and values {values.shape} do not fit.",
            "one sorted vector, or one per row of values",
        )
    return Aval(values.shape, int64)


def _searchsorted_batch(args: list[Tensor], batched: list[bool], side: Side) -> Tensor:
    return searchsorted(*all_batched(args, batched), side=side)


# `sorted_` may have leading axes, shared with `values`
searchsorted: Primitive = Primitive(
    "searchsorted", _searchsorted, _searchsorted_abstract, jvp=(ZERO, ZERO), batch=_searchsorted_batch
)
