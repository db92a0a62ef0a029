"""Reading and writing at computed positions.

`gather(x, i1, .., ik; axes)` indexes the named axes of x with integer tensors of one shape: the result has that shape
first, then the axes of x that are left. `scatter` writes such a block back. Negative indices count from the end, and an
index out of range raises (`labels`, there only if it is given, is the loss that looks up classes, for the message);
with the parameter `drop`, which is there only if it is true, `scatter` leaves out what
belongs to it. Repeated indices: reading them accumulates in the derivative; of several values set at one place the last
one stays, and only it receives a derivative.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.broadcasting import without_axes
from ..core.dtypes import float32, int64, is_half, is_integer
from ..core.errors import DTypeError, GradientError, IndexOutOfRange, ShapeError
from ..core.interpreter import Tangent
from ..core.primitive import LINEAR, ZERO, Aval, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .creation import full, iota, zeros_like
from .elementwise import astype, bitwise_and, where
from .structure import all_batched, broadcast_to, reshape, transpose

Axes = tuple[int, ...]


def _check_indices(name: str, indices: tuple[Shaped, ...]) -> None:
    for index in indices:
        if not is_integer(index.dtype):
            raise DTypeError(f"{name}: an index is {index.dtype}.", "integer (or bool) indices")
        if index.shape != indices[0].shape:
            raise ShapeError(
                f"{name}: index shapes {indices[0].shape} and {index.shape} differ.", "indices of one shape"
            )


def _check_range(name: str, shape: tuple[int, ...], axes: Axes, indices: tuple[Array, ...], labels: str = "") -> None:
    for axis, index in zip(axes, indices, strict=True):
        n = shape[axis]
        bad = (index < -n) | (index >= n)
        if np.any(bad):
            raise out_of_range(name, shape, axis, index[bad].ravel()[0], labels)


def out_of_range(name: str, shape: tuple[int, ...], axis: int, index: object, labels: str = "") -> IndexOutOfRange:
    n = shape[axis]
    if labels:  # negative ones have been replaced by n, see nn/functional/lookup.py
        return wrong_label(labels, f"below 0 or {n}" if index == n else str(index), n)
    return IndexOutOfRange(
        f"{name}: index {index} is out of range for axis {axis} of size {n} (shape {shape}).",
        f"indices from {-n} to {n - 1}" if n else "a non-empty axis",
    )


def wrong_label(name: str, label: str, classes: int) -> IndexOutOfRange:
    """The error for a label that is none of the classes that a model gives scores for."""
    return IndexOutOfRange(
        f"{name}: a label is {label}, but the scores are for {classes} classes, 0 to {classes - 1}.",
        f"labels from 0 to {classes - 1} (y - 1 if they begin with 1), or a model with more outputs",
    )


def _front(x: Array, axes: Axes) -> Array:
    return np.moveaxis(x, axes, range(len(axes)))


def _gather(x: Array, *indices: Array, axes: Axes, labels: str = "") -> Array:
    try:
        if len(axes) == 1:
            return np.take(_front(x, axes), indices[0], axis=0)
        return _front(x, axes)[indices]
    except IndexError:
        _check_range("gather", x.shape, axes, indices, labels)
        raise


def _gather_abstract(x: Shaped, *indices: Shaped, axes: Axes, labels: str = "") -> Aval:
    _check_indices("gather", indices)
    return Aval(indices[0].shape + without_axes(x.shape, axes), x.dtype)


def _gather_transpose(ct: Tensor, x: Shaped, *indices: Tensor, axes: Axes, labels: str = "") -> Tensor:
    return scatter(full(x.shape, 0, x.dtype), ct, *indices, axes=axes, mode="add", **_dropping(False, labels))


def _batch_index(size: int, like: Tensor) -> Tensor:
    """0, 1, .., size-1 along the first axis, in the shape of a batched index."""
    counter = reshape(iota(size=size, dtype=like.dtype), shape=(size,) + (1,) * (like.ndim - 1))
    return broadcast_to(counter, shape=like.shape)


def _gather_batch(args: list[Tensor], batched: list[bool], axes: Axes, **labels: str) -> Tensor:
    x, *indices = args
    shifted = tuple(a + 1 for a in axes)
    if not any(batched[1:]):
        out = gather(x, *indices, axes=shifted, **labels)
        front = indices[0].ndim
        return transpose(out, axes=(front, *[i for i in range(out.ndim) if i != front]))
    indices = all_batched(indices, batched[1:])
    if not batched[0]:
        return gather(x, *indices, axes=axes, **labels)
    return gather(x, _batch_index(x.shape[0], indices[0]), *indices, axes=(0, *shifted), **labels)


gather: Primitive = Primitive(
    "gather",
    _gather,
    _gather_abstract,
    jvp=(LINEAR, ZERO),
    transpose=(_gather_transpose, None),
    batch=_gather_batch,
    free=True,
)

# --- scatter

COMBINE = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def _scatter(
    x: Array, updates: Array, *indices: Array, axes: Axes, mode: str, drop: bool = False, labels: str = ""
) -> Array:
    if drop:
        good = np.ones(indices[0].shape, bool)
        for axis, index in zip(axes, indices, strict=True):
            good &= (index >= -x.shape[axis]) & (index < x.shape[axis])
        updates, indices = updates[good], tuple(index[good] for index in indices)
    _check_range("scatter", x.shape, axes, indices, labels)
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


def _scatter_abstract(
    x: Shaped, updates: Shaped, *indices: Shaped, axes: Axes, mode: str, drop: bool = False, labels: str = ""
) -> Aval:
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


def _dropping(drop: bool, labels: str) -> dict[str, bool | str]:
    """The parameters are there only if they say something."""
    return ({"drop": True} if drop else {}) | ({"labels": labels} if labels else {})


def _inside(x: Shaped, indices: list[Tensor], axes: Axes) -> tuple[Tensor, list[Tensor]]:
    """Which places of a block are in range, and the indices with 0 where they are not."""
    inside: Tensor | None = None
    wide = [i if i.dtype == int64 else astype(i, dtype=int64) for i in indices]
    for axis, index in zip(axes, wide, strict=True):
        fits = bitwise_and(index >= -x.shape[axis], index < x.shape[axis])
        inside = fits if inside is None else bitwise_and(inside, fits)
    assert inside is not None  # some axis is indexed
    return inside, [where(inside, index, full(index.shape, 0, int64)) for index in wide]


def _scatter_jvp(
    primals: list[Tensor],
    tangents: list[Tensor | None],
    out: Tensor,
    axes: Axes,
    mode: str,
    drop: bool = False,
    labels: str = "",
) -> Tensor:
    x, updates, *indices = primals
    t, u = tangents[:2]
    dropping = _dropping(drop, labels)
    if mode == "multiply":
        if u is not None:
            raise GradientError(
                "scatter multiply: x.at[i].multiply(v) is not differentiable with respect to v.",
                "x.at[i].set(x[i] * v), where the indices are distinct",
            )
        return scatter(t, updates, *indices, axes=axes, mode=mode, **dropping)  # type: ignore[arg-type]  # u has none
    t = zeros_like(x) if t is None else t
    u = zeros_like(updates) if u is None else u
    if mode in ("min", "max"):
        kept = astype(x == out, dtype=x.dtype)
        safe = _inside(x, indices, axes)[1] if drop else indices
        won = astype(updates == gather(out, *safe, axes=axes), dtype=x.dtype)
        count = scatter(kept, won, *indices, axes=axes, mode="add", **dropping)
        return scatter(t * kept, u * won, *indices, axes=axes, mode="add", **dropping) / count
    return scatter(t, u, *indices, axes=axes, mode=mode, **dropping)


def _last_written(
    updates: Tensor, indices: list[Tensor], x: Shaped, axes: Axes, drop: bool, labels: str = ""
) -> Tensor:
    """1 for the updates that stay when several are set at one place, 0 for the others; broadcasts to updates."""
    block = indices[0].shape
    count = math.prod(block)
    sizes = [x.shape[a] for a in axes]
    # every place gets the largest number written to it, in the order of writing
    numbers = reshape(iota(size=count, dtype=int64), shape=block)
    along, empty = tuple(range(len(axes))), full(tuple(sizes), -1, int64)
    placed = scatter(empty, numbers, *indices, axes=along, mode="max", **_dropping(drop, labels))
    safe = _inside(x, indices, axes)[1] if drop else indices
    stays = gather(placed, *safe, axes=along) == numbers
    return reshape(astype(stays, dtype=updates.dtype), shape=block + (1,) * (len(updates.shape) - len(block)))


def _scatter_transpose(
    ct: Tensor, args: list[Tensor], axes: Axes, mode: str, drop: bool = False, labels: str = ""
) -> list[Tensor | None]:
    x, updates, *indices = args
    dropping = _dropping(drop, labels)
    ct_x = ct_updates = None
    if type(x) is Tangent:
        if mode == "add":
            ct_x = ct
        elif mode == "set":
            ct_x = scatter(ct, full(updates.shape, 0, ct.dtype), *indices, axes=axes, mode="set", **dropping)
        else:
            ct_x = scatter(ct, updates, *indices, axes=axes, mode="multiply", **dropping)
    if type(updates) is Tangent:
        inside, safe = _inside(x, indices, axes) if drop else (None, indices)
        ct_updates = gather(ct, *safe, axes=axes)
        if inside is not None:
            wide = reshape(inside, shape=inside.shape + (1,) * (len(updates.shape) - inside.ndim))
            ct_updates = where(wide, ct_updates, full((), 0, ct.dtype))
        if mode == "set":
            ct_updates = ct_updates * _last_written(updates, indices, x, axes, drop)
    return [ct_x, ct_updates] + [None] * len(indices)


def _scatter_batch(
    args: list[Tensor], batched: list[bool], axes: Axes, mode: str, drop: bool = False, labels: str = ""
) -> Tensor:
    x, updates, *indices = all_batched(args, batched)
    index = _batch_index(x.shape[0], indices[0])
    return scatter(x, updates, index, *indices, axes=(0, *[a + 1 for a in axes]), mode=mode, **_dropping(drop, labels))


scatter: Primitive = Primitive(
    "scatter",
    _scatter,
    _scatter_abstract,
    jvp=_scatter_jvp,
    transpose=_scatter_transpose,
    batch=_scatter_batch,
    free=True,
)
