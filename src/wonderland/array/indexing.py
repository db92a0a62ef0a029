"""NumPy's indexing, differentiable: `x[...]` and the functional updates `x.at[...]`. Book, section 2.1.

An index is first brought to one of two forms: slices of every axis, and integer tensors for some of the axes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import is_integer
from ..errors import AxisError, DTypeError, IndexOutOfRange, ShapeError, TraceError
from ..primitives import indexing as p
from ..primitives import structure as ps
from ..primitives.broadcasting import broadcast_shapes, normalize_axis
from ..tensor import Cell, Tensor, Tracer, wrap
from .conversion import as_tensor, asarray, convert
from .manipulation import broadcast_to, reshape


def getitem(x: Tensor, index: Any) -> Tensor:
    """x[index] with NumPy's meaning."""
    plan = _plan(x.shape, index)
    result = ps.slice_(x, index=plan.slices) if plan.sliced else x
    if plan.shape != result.shape:
        result = ps.reshape(result, shape=plan.shape)
    if plan.indices:
        result = _gather(result, plan)
    return result if not isinstance(result, Cell) else interpreter_read(result)


def _gather(x: Tensor, plan: _Plan) -> Tensor:
    out = p.gather(x, *plan.indices, axes=plan.axes)
    if plan.place:
        # NumPy puts the indexed block where the first index stood when all indices are adjacent
        block = plan.indices[0].ndim
        order = [*range(block, block + plan.place), *range(block), *range(block + plan.place, out.ndim)]
        out = ps.transpose(out, axes=tuple(order))
    return out


class _Plan:
    """An index in normal form."""

    def __init__(self) -> None:
        self.slices: tuple[Any, ...] = ()
        self.sliced = False
        self.shape: tuple[int, ...] = ()  # after slicing and new axes
        self.indices: list[Any] = []
        self.axes: tuple[int, ...] = ()
        self.place = 0


def _plan(shape: tuple[int, ...], index: Any) -> _Plan:
    entries = list(index) if isinstance(index, tuple) else [index]
    entries = [_entry(e) for e in entries]
    entries = _expand(entries, shape)
    plan = _Plan()
    slices: list[tuple[int, int | None, int]] = []
    view: list[int] = []  # the sizes after slicing, integers removed
    advanced: list[tuple[int, Any]] = []  # (axis of the view, index tensor)
    groups: list[int] = []  # positions of the advanced entries among all, to see whether they are adjacent
    has_tensor = any(isinstance(e, Tensor) and e.ndim for e in entries if not isinstance(e, (slice, int)) and e is not None)
    axis = 0
    for position, entry in enumerate(entries):
        if entry is None:
            view.append(1)
        elif isinstance(entry, slice):
            n = shape[axis]
            start, stop, step = _slice_bounds(entry, n)
            slices.append((start, stop, step))
            view.append(len(range(n)[slice(start, stop, step)]))
            axis += 1
        elif isinstance(entry, int) and not has_tensor:
            i = _check(entry, shape, axis)
            slices.append((i, i + 1, 1))
            axis += 1
        else:
            slices.append((0, None, 1))
            advanced.append((len(view), entry))
            groups.append(position)
            view.append(shape[axis])
            axis += 1
    plan.slices = tuple(slices)
    plan.sliced = any(s != (0, None, 1) and s != (0, n, 1) for s, n in zip(slices, shape, strict=True))
    plan.shape = tuple(view)
    if advanced:
        tensors = []
        for axis_of_view, entry in advanced:
            if isinstance(entry, int):
                _check(entry, plan.shape, axis_of_view)
                entry = wrap(np.asarray(entry, np.int64))
            tensors.append(entry)
        block = broadcast_shapes("index", *[t.shape for t in tensors])
        plan.indices = [broadcast_to(t, block) for t in tensors]
        plan.axes = tuple(a for a, _ in advanced)
        adjacent = groups == list(range(groups[0], groups[0] + len(groups)))
        plan.place = plan.axes[0] if adjacent else 0
    return plan


def _entry(e: Any) -> Any:
    """One entry of an index as None, Ellipsis, slice, int or an integer or bool tensor."""
    if e is None or e is Ellipsis or isinstance(e, slice):
        return e
    if isinstance(e, (bool, np.bool_)):
        return wrap(np.asarray(e))
    if isinstance(e, (int, np.integer)):
        return int(e)
    if isinstance(e, (list, np.ndarray)):
        e = asarray(np.asarray(e, dtype=np.int64) if isinstance(e, list) and not e else e)
    if isinstance(e, Tensor):
        if isinstance(e, Cell):
            e = e.value
        if e.dtype == dtypes.bool_ or is_integer(e.dtype):
            return int(e._data) if type(e) is Tensor and e.ndim == 0 and e.dtype != dtypes.bool_ else e
        raise DTypeError(f"index: a {e.dtype} tensor is not an index.", "integers, bools, slices, None or ...")
    raise DTypeError(
        f"index: a {type(e).__name__} is not an index.", "integers, slices, None, ..., and integer or bool tensors"
    )


def _expand(entries: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Replace bool masks by integer tensors, and the ellipsis by full slices."""
    result: list[Any] = []
    used = sum(0 if e is None or e is Ellipsis else (e.ndim if _is_mask(e) else 1) for e in entries)
    if sum(e is Ellipsis for e in entries) > 1:
        raise AxisError("index: more than one ellipsis.", "one ...")
    if used > len(shape):
        raise IndexOutOfRange(f"index: {used} indices for a tensor of shape {shape}.", f"at most {len(shape)}")
    axis = 0
    for e in entries:
        if e is Ellipsis:
            result.extend([slice(None)] * (len(shape) - used))
            axis += len(shape) - used
        elif _is_mask(e):
            result.extend(_mask_indices(e, shape, axis))
            axis += e.ndim
        else:
            result.append(e)
            axis += e is not None
    result.extend([slice(None)] * (len(shape) - axis))
    return result


def _is_mask(e: Any) -> bool:
    return isinstance(e, Tensor) and e.dtype == dtypes.bool_


def _mask_indices(mask: Tensor, shape: tuple[int, ...], axis: int) -> list[Any]:
    if isinstance(mask, Tracer):
        data = mask._concrete("a mask with a known number of elements")
    else:
        data = mask._data
    if mask.ndim == 0:
        return [None, wrap(np.zeros(1 if data else 0, np.int64))]
    if mask.shape != shape[axis : axis + mask.ndim]:
        raise ShapeError(
            f"index: a mask of shape {mask.shape} does not fit the axes {shape[axis : axis + mask.ndim]} of shape {shape}.",
            "a mask of the same shape",
        )
    return [wrap(i) for i in np.nonzero(data)]


def _slice_bounds(s: slice, n: int) -> tuple[int, int | None, int]:
    try:
        start, stop, step = s.indices(n)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"index: the slice {s} is not made of integers ({error}).", "x[i:j:k] with integers") from error
    if step > 0:
        return min(start, n), max(start, stop) if start < n else n, step
    length = len(range(start, stop, step))
    if length == 0:
        return 0, 0, 1
    return start, None if stop < 0 else stop, step


def _check(i: int, shape: tuple[int, ...], axis: int) -> int:
    n = shape[axis]
    if not -n <= i < n:
        raise IndexOutOfRange(
            f"index: {i} is out of range for axis {axis} of size {n} (shape {shape}).",
            f"from {-n} to {n - 1}" if n else "a non-empty axis",
        )
    return i % n


# --- functional updates


class At:
    """`x.at[index]`: copies of x with the indexed elements changed. Repeated indices accumulate in add, min, max, multiply.

    >>> import wonderland as wl
    >>> wl.zeros(3).at[wl.tensor([0, 0, 2])].add(1.0)
    tensor([2., 0., 1.])
    """

    def __init__(self, x: Tensor, index: Any = None) -> None:
        self._x = x
        self._index = index

    def __getitem__(self, index: Any) -> At:
        return At(self._x, (index,))

    def get(self) -> Tensor:
        """x[index]."""
        return getitem(self._x, self._index[0])

    def set(self, values: Any) -> Tensor:
        """The elements replaced by `values`."""
        return self._update(values, "set")

    def add(self, values: Any) -> Tensor:
        """`values` added to the elements."""
        return self._update(values, "add")

    def subtract(self, values: Any) -> Tensor:
        """`values` subtracted from the elements."""
        return self._update(-as_tensor("at", values), "add")

    def multiply(self, values: Any) -> Tensor:
        """The elements multiplied by `values`."""
        return self._update(values, "multiply")

    mul = multiply

    def divide(self, values: Any) -> Tensor:
        """The elements divided by `values`."""
        return self._update(1 / as_tensor("at", values), "multiply")

    def min(self, values: Any) -> Tensor:
        """The smaller of element and value."""
        return self._update(values, "min")

    def max(self, values: Any) -> Tensor:
        """The larger of element and value."""
        return self._update(values, "max")

    def apply(self, f: Any) -> Tensor:
        """The elements replaced by f of them."""
        return self.set(f(self.get()))

    def _update(self, values: Any, mode: str) -> Tensor:
        if self._index is None:
            raise TraceError("at: an index is missing.", "x.at[index].set(values)")
        x = self._x
        values = as_tensor("at", values)
        if dtypes.KIND[values.dtype] > dtypes.KIND[x.dtype]:
            raise DTypeError(f"at: values of {values.dtype} do not fit into a tensor of {x.dtype}.", "values.astype(x.dtype)")
        values = convert(values, x.dtype)
        plan = _plan(x.shape, self._index[0])
        if not plan.indices and all(step == 1 for _, _, step in plan.slices) and mode in ("set", "add"):
            return self._update_slice(x, values, plan, mode)
        # the general case: the flat positions of the indexed block, then a scatter on the flattened tensor
        positions = getitem(reshape(wrap(np.arange(x.size)), x.shape), self._index[0])
        block = broadcast_to(values, positions.shape)
        flat = ps.reshape(x, shape=(x.size,))
        done = p.scatter(
            flat,
            ps.reshape(block, shape=(block.size,)),
            ps.reshape(positions, shape=(block.size,)),
            axes=(0,),
            mode=mode,
        )
        return ps.reshape(done, shape=x.shape)  # type: ignore[no-any-return]

    @staticmethod
    def _update_slice(x: Tensor, values: Tensor, plan: _Plan, mode: str) -> Tensor:
        block = broadcast_to(values, plan.shape)
        lengths = ps.slice_lengths(x.shape, plan.slices)
        placed = ps.place(ps.reshape(block, shape=lengths), shape=x.shape, index=plan.slices)
        if mode == "add":
            return x + placed
        inside = ps.place(wrap(np.ones(lengths, bool)), shape=x.shape, index=plan.slices)
        return where(inside, placed, x)


# --- reading and writing along an axis


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """The slices of x at `indices` along an axis (of the flattened tensor if none is named)."""
    x, indices = as_tensor("take", x), as_tensor("take", indices)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    place = normalize_axis("take", axis, x.ndim)
    out = p.gather(x, indices, axes=(place,))
    block = indices.ndim
    if not place:
        return out  # type: ignore[no-any-return]
    order = [*range(block, block + place), *range(block), *range(block + place, out.ndim)]
    return ps.transpose(out, axes=tuple(order))  # type: ignore[no-any-return]


def _along_axis(name: str, x: Tensor, indices: Tensor, axis: int) -> tuple[list[Any], tuple[int, ...]]:
    if x.ndim != indices.ndim:
        raise ShapeError(
            f"{name}: shapes {x.shape} and {indices.shape} have different numbers of axes.", "indices with as many axes as x"
        )
    shape = list(broadcast_shapes(name, x.shape[:axis] + (1,) + x.shape[axis + 1 :], indices.shape[:axis] + (1,) + indices.shape[axis + 1 :]))
    shape[axis] = indices.shape[axis]
    grids = []
    for i, n in enumerate(shape):
        if i == axis:
            grids.append(broadcast_to(indices, tuple(shape)))
        else:
            counter = np.arange(n) if x.shape[i] != 1 else np.zeros(n, np.int64)
            grid = counter.reshape([-1 if j == i else 1 for j in range(len(shape))])
            grids.append(broadcast_to(convert(wrap(grid), indices.dtype), tuple(shape)))
    return grids, tuple(range(x.ndim))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """out[..., j, ...] = x[..., indices[..., j, ...], ...] along one axis."""
    x, indices = as_tensor("take_along_axis", x), as_tensor("take_along_axis", indices)
    place = normalize_axis("take_along_axis", axis, x.ndim)
    grids, axes = _along_axis("take_along_axis", x, indices, place)
    return p.gather(x, *grids, axes=axes)  # type: ignore[no-any-return]


def put_along_axis(x: Any, indices: Any, values: Any, /, *, axis: int = -1, mode: str = "set") -> Tensor:
    """x with values written at `indices` along one axis; `mode` is "set", "add", "multiply", "min" or "max"."""
    x, indices = as_tensor("put_along_axis", x), as_tensor("put_along_axis", indices)
    place = normalize_axis("put_along_axis", axis, x.ndim)
    grids, axes = _along_axis("put_along_axis", x, indices, place)
    block = broadcast_to(convert(as_tensor("put_along_axis", values), x.dtype), grids[0].shape)
    return p.scatter(x, block, *grids, axes=axes, mode=mode)  # type: ignore[no-any-return]


def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Tensor:
    """The block of fixed `sizes` that begins at computed positions, moved inside x where it would reach out.

    >>> import wonderland as wl
    >>> wl.dynamic_slice(wl.arange(5), [wl.tensor(2)], [2])
    tensor([2, 3])
    """
    x = as_tensor("dynamic_slice", x)
    for axis, size in enumerate(sizes):
        start = clip(as_tensor("dynamic_slice", starts[axis]), 0, x.shape[axis] - size)
        x = take(x, start + wrap(np.arange(size)), axis=axis)
    return x


def dynamic_update_slice(x: Any, update: Any, starts: Any) -> Tensor:
    """x with a block written at computed positions, moved inside x where it would reach out."""
    x, update = as_tensor("dynamic_update_slice", x), as_tensor("dynamic_update_slice", update)
    index = []
    for axis, size in enumerate(update.shape):
        start = clip(as_tensor("dynamic_update_slice", starts[axis]), 0, x.shape[axis] - size)
        places = start + wrap(np.arange(size))
        index.append(reshape(places, tuple(-1 if i == axis else 1 for i in range(update.ndim))))
    return x.at[tuple(index)].set(update)  # type: ignore[no-any-return]


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The diagonal of the last two axes."""
    x = as_tensor("diagonal", x)
    if x.ndim < 2:
        raise ShapeError(f"diagonal: a tensor of shape {x.shape} is not a matrix.", "at least two axes")
    n, m = x.shape[-2:]
    rows = np.arange(max(0, -offset), max(max(0, -offset), min(n, m - offset)))
    return getitem(x, (..., wrap(rows), wrap(rows + offset)))


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The positions of the elements that are not zero, one vector per axis. Not inside `jit`: the size depends on the data."""
    x = as_tensor("nonzero", x)
    return tuple(wrap(i.astype(np.int64)) for i in np.nonzero(x._concrete("nonzero")))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Where values x2 would go into the sorted vector x1."""
    x1, x2 = as_tensor("searchsorted", x1), as_tensor("searchsorted", x2)
    if sorter is not None:
        x1 = take(x1, sorter, axis=0)
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: side={side!r}.", '"left" or "right"')
    common = dtypes.promote_types(x1.dtype, x2.dtype)
    return search_primitive(convert(x1, common), convert(x2, common), side=side)  # type: ignore[no-any-return]


def masked_fill(x: Any, mask: Any, value: Any) -> Tensor:
    """x with `value` where the mask is true; no derivative passes there."""
    return where(mask, value, x)


# --- segments


def segment_sum(data: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """The sums of the rows with equal segment id: out[k] = sum of data[i] over segment_ids[i] == k.

    >>> import wonderland as wl
    >>> wl.segment_sum(wl.tensor([1.0, 2.0, 3.0]), wl.tensor([0, 0, 1]), 3)
    tensor([3., 3., 0.])
    """
    data, ids = as_tensor("segment_sum", data), as_tensor("segment_sum", segment_ids)
    return p.scatter(creation.zeros((num_segments, *data.shape[1:]), dtype=data.dtype), data, ids, axes=(0,), mode="add")  # type: ignore[no-any-return]


def segment_mean(data: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """The means of the rows with equal segment id; 0 for empty segments."""
    data, ids = as_tensor("segment_mean", data), as_tensor("segment_mean", segment_ids)
    count = segment_sum(creation.ones(ids.shape, dtype=data.dtype), ids, num_segments)
    count = reshape(where(count == 0, 1, count), (num_segments,) + (1,) * (data.ndim - 1))
    return segment_sum(data, ids, num_segments) / count


def _segment_extreme(data: Any, segment_ids: Any, num_segments: int, mode: str) -> Tensor:
    data, ids = as_tensor(f"segment_{mode}", data), as_tensor(f"segment_{mode}", segment_ids)
    if dtypes.is_floating(data.dtype):
        lowest: Any = -math.inf if mode == "max" else math.inf
    else:
        info = np.iinfo(data.dtype)
        lowest = int(info.min if mode == "max" else info.max)
    start = creation.full((num_segments, *data.shape[1:]), lowest, dtype=data.dtype)
    return p.scatter(start, data, ids, axes=(0,), mode=mode)  # type: ignore[no-any-return]


def segment_max(data: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """The largest of the rows with equal segment id; -inf for empty segments."""
    return _segment_extreme(data, segment_ids, num_segments, "max")


def segment_min(data: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """The smallest of the rows with equal segment id; inf for empty segments."""
    return _segment_extreme(data, segment_ids, num_segments, "min")


def segment_prod(data: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """The products of the rows with equal segment id; 1 for empty segments."""
    data, ids = as_tensor("segment_prod", data), as_tensor("segment_prod", segment_ids)
    return p.scatter(creation.ones((num_segments, *data.shape[1:]), dtype=data.dtype), data, ids, axes=(0,), mode="multiply")  # type: ignore[no-any-return]


from ..interpreter import read as interpreter_read  # noqa: E402 - these build on the functions above
from ..primitives.sorting import searchsorted as search_primitive  # noqa: E402
from . import creation  # noqa: E402
from .elementwise import clip, where  # noqa: E402

__all__ = [
    "At",
    "diagonal",
    "dynamic_slice",
    "dynamic_update_slice",
    "getitem",
    "masked_fill",
    "nonzero",
    "put_along_axis",
    "searchsorted",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "take",
    "take_along_axis",
]
