"""Reading and writing at computed positions along axes, and searching for positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core import dtypes
from ..core.arguments import as_int, as_list
from ..core.broadcasting import broadcast_shapes, normalize_axis
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike
from ..primitives import indexing as p
from ..primitives import structure as ps
from ..primitives.sorting import searchsorted as search_primitive
from .arithmetic import clip
from .conversion import as_matrices, as_shape, as_tensor, convert, convert_into
from .indexing import getitem
from .logic import where
from .manipulation import broadcast_to, reshape

__all__ = [
    "diagonal", "dynamic_slice", "dynamic_update_slice", "masked_fill", "nonzero", "put_along_axis", "searchsorted",
    "take", "take_along_axis",
]  # fmt: skip


def as_indices(name: str, indices: ArrayLike) -> Tensor:
    """Positions as a tensor of integers."""
    indices = as_tensor(name, indices)
    if not dtypes.is_integer(indices.dtype):
        raise DTypeError(f"{name}: the indices are {indices.dtype}.", "integers; x[mask] for bools")
    return indices


def take(x: ArrayLike, indices: ArrayLike, /, axis: int | None = None) -> Tensor:
    """The slices of x at `indices` along an axis (of the flattened tensor if none is named).

    >>> import wonderland as wl
    >>> wl.take(wl.tensor([[1, 2, 3], [4, 5, 6]]), wl.tensor([2, 0]), axis=1)
    tensor([[3, 1],
            [6, 4]])

    `indices` may have any shape, which then stands in the place of the axis. Out of range raises.
    """
    x, indices = as_tensor("take", x), as_indices("take", indices)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    place = normalize_axis("take", axis, x.ndim)
    out = p.gather(x, indices, axes=(place,))
    if not place:
        return out
    block = indices.ndim
    order = (*range(block, block + place), *range(block), *range(block + place, out.ndim))
    return ps.transpose(out, axes=order)


def _along_axis(name: str, x: Tensor, indices: Tensor, axis: int) -> list[Tensor]:
    """One index tensor per axis of x: `indices` along `axis`, a counter along every other."""
    if x.ndim != indices.ndim:
        raise ShapeError(
            f"{name}: shapes {x.shape} and {indices.shape} have different numbers of axes.",
            "indices with as many axes as x",
        )
    others = [list(x.shape), list(indices.shape)]
    for shape in others:
        shape[axis] = 1
    common = list(broadcast_shapes(name, *map(tuple, others)))
    common[axis] = indices.shape[axis]
    grids = []
    for i, n in enumerate(common):
        if i == axis:
            grids.append(broadcast_to(indices, tuple(common)))
        else:
            counter = np.arange(n) if x.shape[i] != 1 else np.zeros(n, np.int64)
            grid = counter.reshape([-1 if j == i else 1 for j in range(len(common))])
            grids.append(broadcast_to(convert(wrap(grid), indices.dtype), tuple(common)))
    return grids


def take_along_axis(x: ArrayLike, indices: ArrayLike, /, axis: int = -1) -> Tensor:
    """out[..., j, ...] = x[..., indices[..., j, ...], ...] along one axis.

    >>> import wonderland as wl
    >>> x = wl.tensor([[3, 1, 2], [4, 6, 5]])
    >>> wl.take_along_axis(x, wl.argsort(x))
    tensor([[1, 2, 3],
            [4, 5, 6]])

    `indices` has as many axes as x; the other axes broadcast.
    """
    x, indices = as_tensor("take_along_axis", x), as_indices("take_along_axis", indices)
    place = normalize_axis("take_along_axis", axis, x.ndim)
    return p.gather(x, *_along_axis("take_along_axis", x, indices, place), axes=tuple(range(x.ndim)))


def take_labels(name: str, scores: Tensor, labels: Tensor) -> Tensor:
    """The score of the label of each example, (..., classes) and (...) to (...); an error is in the name of a loss.

    >>> import wonderland as wl
    >>> take_labels("loss", wl.tensor([[0.1, 0.9], [0.8, 0.2]]), wl.tensor([1, 0]))
    tensor([0.9, 0.8])
    """
    grids = _along_axis(name, scores, labels[..., None], scores.ndim - 1)
    found = p.gather(scores, *grids, axes=tuple(range(scores.ndim)), labels=name)
    return p.reshape(found, shape=found.shape[:-1])


def put_along_axis(
    x: ArrayLike, indices: ArrayLike, values: ArrayLike, /, axis: int = -1, *, mode: str = "set"
) -> Tensor:
    """x with values written at `indices` along one axis; `mode` is "set", "add", "multiply", "min" or "max".

    >>> import wonderland as wl
    >>> wl.put_along_axis(wl.zeros((2, 3)), wl.tensor([[0], [2]]), 1.0)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    x, indices = as_tensor("put_along_axis", x), as_indices("put_along_axis", indices)
    if mode not in ("set", "add", "multiply", "min", "max"):
        raise InputError(f"put_along_axis: mode={mode!r}.", '"set", "add", "multiply", "min" or "max"')
    place = normalize_axis("put_along_axis", axis, x.ndim)
    grids = _along_axis("put_along_axis", x, indices, place)
    block = broadcast_to(convert_into("put_along_axis", values, x.dtype), grids[0].shape)
    return p.scatter(x, block, *grids, axes=tuple(range(x.ndim)), mode=mode)


def dynamic_slice(x: ArrayLike, starts: Sequence[ArrayLike], sizes: Sequence[int], /) -> Tensor:
    """The block of fixed `sizes` that begins at computed positions, moved inside x where it would reach out.

    >>> import wonderland as wl
    >>> wl.dynamic_slice(wl.arange(5), [wl.tensor(2)], [2])
    tensor([2, 3])
    """
    x = as_tensor("dynamic_slice", x)
    starts = as_list("dynamic_slice", "starts", starts)
    sizes = as_shape("dynamic_slice", sizes)
    _check_block("dynamic_slice", x.shape, len(starts), sizes)
    for axis, size in enumerate(sizes):
        start = clip(as_tensor("dynamic_slice", starts[axis]), 0, x.shape[axis] - size)
        x = take(x, start + wrap(np.arange(size)), axis=axis)
    return x


def dynamic_update_slice(x: ArrayLike, update: ArrayLike, starts: Sequence[ArrayLike], /) -> Tensor:
    """x with a block written at computed positions, moved inside x where it would reach out.

    >>> import wonderland as wl
    >>> wl.dynamic_update_slice(wl.arange(5), wl.tensor([9, 9]), [wl.tensor(3)])
    tensor([0, 1, 2, 9, 9])
    """
    x, update = as_tensor("dynamic_update_slice", x), as_tensor("dynamic_update_slice", update)
    starts = as_list("dynamic_update_slice", "starts", starts)
    _check_block("dynamic_update_slice", x.shape, len(starts), update.shape)
    index = []
    for axis, size in enumerate(update.shape):
        start = clip(as_tensor("dynamic_update_slice", starts[axis]), 0, x.shape[axis] - size)
        places = start + wrap(np.arange(size))
        index.append(reshape(places, tuple(size if i == axis else 1 for i in range(update.ndim))))
    return x.at[tuple(index)].set(update)


def _check_block(name: str, shape: tuple[int, ...], starts: int, sizes: tuple[int, ...]) -> None:
    if len(sizes) != len(shape) or starts != len(shape) or any(s > n for s, n in zip(sizes, shape, strict=True)):
        raise ShapeError(
            f"{name}: {starts} starts and a block of shape {sizes} for a tensor of shape {shape}.",
            "one start and one size per axis, no size larger than the axis",
        )


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Tensor:
    """The diagonal number `offset` of the last two axes (..., n, m), as a new last axis.

    >>> import wonderland as wl
    >>> wl.diagonal(wl.tensor([[1, 2], [3, 4]])), wl.diagonal(wl.tensor([[1, 2], [3, 4]]), offset=1)
    (tensor([1, 4]), tensor([2]))
    """
    x = as_matrices("diagonal", x)
    n, m = x.shape[-2:]
    offset = diagonal_number("diagonal", "offset", offset, n, m)
    first = max(0, -offset)
    rows = np.arange(first, max(first, min(n, m - offset)))
    return getitem(x, (..., wrap(rows), wrap(rows + offset)))


def diagonal_number(name: str, what: str, k: int, rows: int, columns: int) -> int:
    """The number of a diagonal, moved to the border if it lies outside of the matrix."""
    return min(max(as_int(name, what, k), -rows), columns)


def masked_fill(x: ArrayLike, mask: ArrayLike, value: ArrayLike, /) -> Tensor:
    """x with `value` where the mask is true; no derivative passes there. Book, section 2.1.2.

    >>> import wonderland as wl
    >>> wl.masked_fill(wl.tensor([1.0, 2.0]), wl.tensor([True, False]), 0.0)
    tensor([0., 2.])
    """
    return where(mask, value, x)


# --- searching


def nonzero(x: ArrayLike, /) -> tuple[Tensor, ...]:
    """The positions of the elements that are not zero, one vector per axis.

    >>> import wonderland as wl
    >>> wl.nonzero(wl.tensor([0, 3, 0, 4]))
    (tensor([1, 3]),)

    The size of the result depends on the data, so it works on computed values only, not inside `jit`.
    """
    x = as_tensor("nonzero", x)
    if x.ndim == 0:
        raise ShapeError("nonzero: a 0-d tensor has no positions.", "x != 0")
    return tuple(wrap(i.astype(np.int64)) for i in np.nonzero(x._concrete("a list of positions")))


def searchsorted(x1: ArrayLike, x2: ArrayLike, /, *, side: str = "left", sorter: ArrayLike | None = None) -> Tensor:
    """Where values x2 would go into the sorted vector x1: before ("left") or after ("right") equal elements.

    >>> import wonderland as wl
    >>> wl.searchsorted(wl.tensor([1.0, 2.0, 4.0]), wl.tensor([2.0, 3.0]))
    tensor([1, 2])

    Several sorted rows (..., n) take several rows of values (..., m); the axes before broadcast. `sorter` is an order
    that sorts x1, such as `wl.argsort(x1)`.

    >>> wl.searchsorted(wl.tensor([[1, 3], [2, 4]]), wl.tensor([[2], [5]]))
    tensor([[1],
            [2]])
    """
    x1, x2 = as_tensor("searchsorted", x1), as_tensor("searchsorted", x2)
    if side not in ("left", "right"):
        raise InputError(f"searchsorted: side={side!r}.", '"left" or "right"')
    if not x1.ndim or (x1.ndim > 1 and x2.ndim != x1.ndim):
        raise ShapeError(
            f"searchsorted: sorted {x1.shape} with values {x2.shape}.",
            "a sorted vector, or rows (..., n) with rows of values (..., m)",
        )
    if sorter is not None:
        x1 = take_along_axis(x1, sorter, axis=-1)
    if x1.ndim > 1:
        lead = broadcast_shapes("searchsorted", x1.shape[:-1], x2.shape[:-1])
        x1, x2 = (broadcast_to(x, (*lead, x.shape[-1])) for x in (x1, x2))
    common = dtypes.promote_types(x1.dtype, x2.dtype)
    return search_primitive(convert(x1, common), convert(x2, common), side=side)
