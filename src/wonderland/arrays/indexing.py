"""NumPy's indexing, differentiable: `x[...]`. Book, section 2.1.

An index is first brought to normal form: a slice of every axis, then integer tensors for some of the axes
that are left. The functional updates `x.at[...]` (updates.py) use the same form.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes, interpreter
from ..core.broadcasting import broadcast_shapes
from ..core.cell import Cell
from ..core.dtypes import is_integer
from ..core.errors import AxisError, DTypeError, IndexOutOfRange, ShapeError
from ..core.shortcuts import is_plain
from ..core.tensor import Tensor, wrap
from ..core.typing import Index
from ..primitives import indexing as p
from ..primitives import structure as ps
from .conversion import asarray
from .manipulation import broadcast_to

__all__: list[str] = []

Shape = tuple[int, ...]
Bounds = tuple[int, int | None, int]  # start, stop (None: to the end), step
EVERYTHING: Bounds = (0, None, 1)


class Plan(NamedTuple):
    """An index in normal form: slice x, give it `shape`, then index `axes` with `indices` of one shape."""

    slices: tuple[Bounds, ...]
    sliced: bool  # whether the slices leave anything out
    shape: Shape  # after slicing, with integers removed and new axes added
    indices: list[Tensor]
    axes: tuple[int, ...]
    place: int  # the axis of the result where the block of indexed elements begins

    def block_first(self, rank: int) -> tuple[int, ...]:
        """The order of axes that brings the indexed block of a result with `rank` axes to the front."""
        block = self.indices[0].ndim
        return (*range(self.place, self.place + block), *range(self.place), *range(self.place + block, rank))


def getitem(x: Tensor, index: Index) -> Tensor:
    """x[index] with NumPy's meaning; the adjoint of an element read several times accumulates.

    >>> import wonderland as wl
    >>> x = wl.arange(6).reshape(2, 3)
    >>> x[1, ::-1], x[:, wl.tensor([0, 0])].shape, x[x > 3]
    (tensor([5, 4, 3]), (2, 2), tensor([4, 5]))
    """
    if is_plain(x):
        simple = type(index) is int or type(index) is slice
        entries = index if simple else plain_entries(index, x._data.nbytes)
        if entries is not None:
            try:
                return wrap(x._data[entries])
            except (IndexError, TypeError, ValueError):
                pass  # the general case says what is wrong
    plan = make_plan(x.shape, index)
    result = ps.slice_(x, index=plan.slices) if plan.sliced else x
    if plan.shape != result.shape:
        result = ps.reshape(result, shape=plan.shape)
    if plan.indices:
        result = p.gather(result, *plan.indices, axes=plan.axes)
        if plan.place:
            order = np.argsort(plan.block_first(result.ndim))
            result = ps.transpose(result, axes=tuple(int(a) for a in order))
    return interpreter.read(result) if isinstance(result, Cell) else result


def plain_entries(index: Index, nbytes: int) -> tuple[Any, ...] | None:
    """The index as NumPy takes it, if nothing in it is to be traced, explained or measured; else None."""
    entries: list[Any] = []
    for e in index if type(index) is tuple else (index,):
        if type(e) is Tensor and e._node is None and e._data.dtype.kind in "iub":
            nbytes *= e._data.size  # the result is not larger than this
            if nbytes > 1 << 28:
                return None
            entries.append(e._data)
        elif type(e) is int or type(e) is slice or e is None or e is Ellipsis:
            entries.append(e)
        else:
            return None
    return tuple(entries)


def make_plan(shape: Shape, index: Index) -> Plan:
    """The normal form of an index into a tensor of this shape."""
    entries = _expand(index, shape)
    has_block = any(isinstance(e, Tensor) and e.ndim for e in entries) or any(isinstance(e, _Flag) for e in entries)
    slices: list[Bounds] = []
    view: list[int] = []  # the sizes after slicing
    indices: list[Tensor] = []
    axes: list[int] = []  # the axes of the view that the indices index
    positions: list[int] = []  # of the indices among all entries, to see whether they are adjacent
    axis = 0  # of x
    for position, entry in enumerate(entries):
        if entry is _GAP:
            continue
        if entry is None:
            view.append(1)
            continue
        if isinstance(entry, _Flag):
            indices.append(wrap(np.zeros(int(entry.value), np.int64)))
            axes.append(len(view))
            positions.append(position)
            view.append(1)
            continue
        n = shape[axis]
        if isinstance(entry, slice):
            bounds = _bounds(entry, n)
            slices.append(bounds)
            view.append(len(range(n)[slice(*bounds)]))
        elif isinstance(entry, int) and not has_block:
            i = _check(entry, shape, axis)
            slices.append((i, i + 1, 1))
        else:
            if isinstance(entry, int):
                entry = wrap(np.asarray(_check(entry, shape, axis)))
            slices.append(EVERYTHING)
            indices.append(entry)
            axes.append(len(view))
            positions.append(position)
            view.append(n)
        axis += 1
    sliced = any(s not in (EVERYTHING, (0, n, 1)) for s, n in zip(slices, shape, strict=True))
    adjacent = bool(positions) and positions == list(range(positions[0], positions[0] + len(positions)))
    if len(indices) > 1:
        block = broadcast_shapes("index", *[i.shape for i in indices])
        indices = [broadcast_to(i, block) for i in indices]
    # NumPy puts the indexed block where the first index stood if all of them are adjacent, else in front
    return Plan(tuple(slices), sliced, tuple(view), indices, tuple(axes), axes[0] if adjacent else 0)


# --- the entries of an index


# an ellipsis that stands for no axis at all: as in NumPy, it still separates the indices around it
_GAP = object()


class _Flag:
    """A single bool as an index: a new axis of size 1 or 0."""

    def __init__(self, value: bool) -> None:
        self.value = value


def _expand(index: Index, shape: Shape) -> list[Any]:
    """The entries of an index, one per axis: masks become integer tensors, the ellipsis full slices."""
    entries = [_entry(e) for e in index] if isinstance(index, tuple) else [_entry(index)]
    if sum(e is Ellipsis for e in entries) > 1:
        raise AxisError("index: more than one ellipsis.", "one ...")
    used = sum(_axes_used(e) for e in entries)
    if used > len(shape):
        raise IndexOutOfRange(f"index: {used} indices for a tensor of shape {shape}.", f"at most {len(shape)}")
    if all(e is not Ellipsis for e in entries):
        entries.append(Ellipsis)
    result: list[Any] = []
    axis = 0
    for e in entries:
        if e is Ellipsis:
            result.extend([slice(None)] * (len(shape) - used) or [_GAP])
            axis += len(shape) - used
        elif _is_mask(e):
            result.extend(_mask_indices(e, shape, axis))
            axis += e.ndim
        else:
            result.append(e)
            axis += _axes_used(e)
    return result


def _axes_used(e: Any) -> int:
    if e is None or e is Ellipsis:
        return 0
    return e.ndim if _is_mask(e) else 1


def _is_mask(e: object) -> bool:
    return isinstance(e, Tensor) and e.dtype == dtypes.bool_


def _entry(e: Index) -> Any:
    """One entry of an index as None, Ellipsis, slice, int, or an integer or bool tensor."""
    if e is None or e is Ellipsis or isinstance(e, slice):
        return e
    if isinstance(e, (bool, np.bool_)):
        return wrap(np.asarray(e))
    if isinstance(e, (int, np.integer)):
        return int(e)
    if hasattr(e, "__index__") and not isinstance(e, (Tensor, np.ndarray)):
        return operator.index(e)
    if isinstance(e, (list, tuple, range, np.ndarray)):
        e = asarray(e) if len(e) else wrap(np.zeros(np.shape(e), np.int64))
    if isinstance(e, Tensor):
        if isinstance(e, Cell):
            e = interpreter.read(e)
        if is_integer(e.dtype):
            return int(e._data) if type(e) is Tensor and e.ndim == 0 else e
        if e.dtype == dtypes.bool_:
            return e
        raise DTypeError(f"index: a {e.dtype} tensor is not an index.", "integers, bools, slices, None or ...")
    raise DTypeError(
        f"index: a {type(e).__name__} is not an index.",
        "integers, slices, None, ..., and integer or bool tensors",
    )


def _mask_indices(mask: Tensor, shape: Shape, axis: int) -> list[Tensor | _Flag]:
    data = mask._concrete("a mask")
    if mask.ndim == 0:
        return [_Flag(bool(data))]
    if mask.shape != shape[axis : axis + mask.ndim]:
        raise ShapeError(
            f"index: a mask of shape {mask.shape} does not fit the axes {shape[axis : axis + mask.ndim]} "
            f"of shape {shape}.",
            "a mask of the same shape",
        )
    return [wrap(i) for i in np.nonzero(data)]


def _bounds(s: slice, n: int) -> Bounds:
    """A slice with its bounds inside an axis of size n; it means the same when it is applied again."""
    try:
        start, stop, step = s.indices(n)
    except (TypeError, ValueError) as error:
        raise DTypeError(
            f"index: the slice {s} is not made of integers ({error}).", "x[i:j:k] with integers"
        ) from error
    if not len(range(start, stop, step)):
        return (0, 0, 1)
    return (start, None if stop < 0 else stop, step)


def _check(i: int, shape: Shape, axis: int) -> int:
    n = shape[axis]
    if not -n <= i < n:
        raise IndexOutOfRange(
            f"index: {i} is out of range for axis {axis} of size {n} (shape {shape}).",
            f"from {-n} to {n - 1}" if n else "a non-empty axis",
        )
    return i % n
