"""Reading and writing at computed positions.

`gather(x, i1, .., ik; axes)` indexes the named axes of x with integer tensors of one shape: the result has that shape
first, then the axes of x that are left. `scatter` writes such a block back. Negative indices count from the end, and an
index out of range raises. Repeated indices: reading them accumulates in the derivative; of several values set at one
place the last one stays, and only it receives a derivative.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..broadcasting import without_axes
from ..dtypes import float32, int64, is_half, is_integer
from ..errors import DTypeError, GradientError, IndexOutOfRange, ShapeError
from ..interpreter import Tangent
from .creation import full, iota, zeros_like
from .elementwise import astype
from .primitive import LINEAR, ZERO, Aval, Primitive
from .structure import all_batched, broadcast_to, reshape, transpose

Axes = tuple[int, ...]


def _check_indices(name: str, indices: tuple[Any, ...]) -> None:
    for index in indices:
        if not is_integer(index.dtype):
            raise DTypeError(f"{name}: an index is {index.dtype}.", "integer (or bool) indices")
        if index.shape != indices[0].shape:
            raise ShapeError(
                f"{name}: index shapes {indices[0].shape} and {index.shape} differ.", "indices of one shape"
            )


def _check_range(name: str, shape: tuple[int, ...], axes: Axes, indices: tuple[Any, ...]) -> None:
    for axis, index in zip(axes, indices, strict=True):
        n = shape[axis]
        bad = (index < -n) | (index >= n)
        if np.any(bad):
            raise out_of_range(name, shape, axis, index[bad].ravel()[0])


def out_of_range(name: str, shape: tuple[int, ...], axis: int, index: Any) -> IndexOutOfRange:
    n = shape[axis]
    return IndexOutOfRange(
        f"{name}: index {index} is out of range for axis {axis} of size {n} (shape {shape}).",
        f"indices from {-n} to {n - 1}" if n else "a non-empty axis",
    )


def _front(x: Any, axes: Axes) -> Any:
    return np.moveaxis(x, axes, range(len(axes)))


def _gather(x: Any, *indices: Any, axes: Axes) -> Any:
    try:
        if len(axes) == 1:
            return np.take(_front(x, axes), indices[0], axis=0)
        return _front(x, axes)[indices]
    except IndexError:
        _check_range("gather", x.shape, axes, indices)
        raise


def _gather_abstract(x: Any, *indices: Any, axes: Axes) -> Aval:
    _check_indices("gather", indices)
    return Aval(indices[0].shape + without_axes(x.shape, axes), x.dtype)


def _gather_transpose(ct: Any, x: Any, *indices: Any, axes: Axes) -> Any:
    return scatter(full(x.shape, 0, x.dtype), ct, *indices, axes=axes, mode="add")


def _batch_index(size: int, like: Any) -> Any:
    """0, 1, .., size-1 along the first axis, in the shape of a batched index."""
    counter = reshape(iota(size=size, dtype=like.dtype), shape=(size,) + (1,) * (like.ndim - 1))
    return broadcast_to(counter, shape=like.shape)


def _gather_batch(args: list[Any], batched: list[bool], axes: Axes) -> Any:
    x, *indices = args
    shifted = tuple(a + 1 for a in axes)
    if not any(batched[1:]):
        out = gather(x, *indices, axes=shifted)
        front = indices[0].ndim
        return transpose(out, axes=(front, *[i for i in range(out.ndim) if i != front]))
    indices = all_batched(indices, batched[1:])
    if not batched[0]:
        return gather(x, *indices, axes=axes)
    return gather(x, _batch_index(x.shape[0], indices[0]), *indices, axes=(0, *shifted))


gather: Primitive = Primitive(
    "gather",
    _gather,
    _gather_abstract,
    jvp=(LINEAR, ZERO),
    transpose=(_gather_transpose, None),
    batch=_gather_batch,
)

# --- scatter

COMBINE = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def _scatter(x: Any, updates: Any, *indices: Any, axes: Axes, mode: str) -> Any:
    _check_range("scatter", x.shape, axes, indices)
    if mode == "add" and is_half(x.dtype):  # half-precision sums are accumulated in float32
        wide = _scatter(x.astype(float32), updates.astype(float32), *indices, axes=axes, mode=mode)
        return wide.astype(x.dtype)
    out = np.array(x)
    view = _front(out, axes)
    if mode == "set":
        view[indices] = updates
    else:
        COMBINE[mode].at(view, indices, updates)
    return out


def _scatter_abstract(x: Any, updates: Any, *indices: Any, axes: Axes, mode: str) -> Aval:
    _check_indices("scatter", indices)
    wanted = indices[0].shape + without_axes(x.shape, axes)
    if updates.shape != wanted:
        raise ShapeError(
            f"scatter: updates of shape {updates.shape} do not fill the indexed block {wanted}.",
            "updates of that shape",
        )
    if updates.dtype != x.dtype:
        raise DTypeError(f"scatter: updates are {updates.dtype}, the tensor is {x.dtype}.", "updates.astype(x.dtype)")
    return Aval(x.shape, x.dtype)


def _scatter_jvp(primals: list[Any], tangents: list[Any], out: Any, axes: Axes, mode: str) -> Any:
    x, updates, *indices = primals
    t, u = tangents[:2]
    if mode == "multiply":
        if u is not None:
            raise GradientError(
                "scatter multiply: x.at[i].multiply(v) is not differentiable with respect to v.",
                "x.at[i].set(x[i] * v), where the indices are distinct",
            )
        return scatter(t, updates, *indices, axes=axes, mode=mode)
    t = zeros_like(x) if t is None else t
    u = zeros_like(updates) if u is None else u
    if mode in ("min", "max"):
        kept = astype(x == out, dtype=x.dtype)
        won = astype(updates == gather(out, *indices, axes=axes), dtype=x.dtype)
        count = scatter(kept, won, *indices, axes=axes, mode="add")
        return scatter(t * kept, u * won, *indices, axes=axes, mode="add") / count
    return scatter(t, u, *indices, axes=axes, mode=mode)


def _last_written(updates: Any, indices: list[Any], shape: tuple[int, ...], axes: Axes) -> Any:
    """1 for the updates that stay when several are set at one place, 0 for the others; broadcasts to updates."""
    block = indices[0].shape
    count = math.prod(block)
    sizes = [shape[a] for a in axes]
    # every place gets the largest number written to it, in the order of writing
    numbers = reshape(iota(size=count, dtype=int64), shape=block)
    placed = scatter(full(tuple(sizes), -1, int64), numbers, *indices, axes=tuple(range(len(axes))), mode="max")
    stays = gather(placed, *indices, axes=tuple(range(len(axes)))) == numbers
    return reshape(astype(stays, dtype=updates.dtype), shape=block + (1,) * (len(updates.shape) - len(block)))


def _scatter_transpose(ct: Any, args: list[Any], axes: Axes, mode: str) -> list[Any]:
    x, updates, *indices = args
    ct_x = ct_updates = None
    if type(x) is Tangent:
        if mode == "add":
            ct_x = ct
        elif mode == "set":
            ct_x = scatter(ct, full(updates.shape, 0, ct.dtype), *indices, axes=axes, mode="set")
        else:
            ct_x = scatter(ct, updates, *indices, axes=axes, mode="multiply")
    if type(updates) is Tangent:
        ct_updates = gather(ct, *indices, axes=axes)
        if mode == "set":
            ct_updates = ct_updates * _last_written(updates, indices, x.shape, axes)
    return [ct_x, ct_updates] + [None] * len(indices)


def _scatter_batch(args: list[Any], batched: list[bool], axes: Axes, mode: str) -> Any:
    x, updates, *indices = all_batched(args, batched)
    index = _batch_index(x.shape[0], indices[0])
    return scatter(x, updates, index, *indices, axes=(0, *[a + 1 for a in axes]), mode=mode)


scatter: Primitive = Primitive(
    "scatter", _scatter, _scatter_abstract, jvp=_scatter_jvp, transpose=_scatter_transpose, batch=_scatter_batch
)
