"""More ways to put tensors together and to cut them apart, with NumPy's names for rows, columns and layers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..core.arguments import as_int, as_list, as_pair, is_sequence
from ..core.broadcasting import normalize_axis
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, ArrayLike, ShapeLike
from ..primitives.creation import check_size
from .conversion import as_result, as_shape, as_tensor, asarray, promote
from .gathering import take
from .joining import check_parts, concat, flip, split
from .manipulation import broadcast_to, expand_dims, ravel, reshape, transpose

__all__ = [
    "append", "array_split", "atleast_3d", "block", "column_stack", "delete", "dsplit", "dstack", "fliplr", "flipud",
    "hsplit", "insert", "resize", "rot90", "vsplit",
]  # fmt: skip

# --- cutting apart


def array_split(x: ArrayLike, /, indices_or_sections: ShapeLike | Tensor, axis: int = 0) -> list[Tensor]:
    """`split` into parts that need not be equal: the first ones are longer by one.

    >>> import wonderland as wl
    >>> wl.array_split(wl.arange(5), 2)
    [tensor([0, 1, 2]), tensor([3, 4])]
    """
    x = as_tensor("array_split", x)
    if is_sequence(indices_or_sections):
        return split(x, indices_or_sections, axis=axis)
    n = x.shape[normalize_axis("array_split", axis, x.ndim)]
    parts = as_int("array_split", "sections", indices_or_sections, least=1)
    check_parts("array_split", parts, n)
    sizes = [n // parts + (i < n % parts) for i in range(parts)]
    return split(x, list(itertools.accumulate(sizes))[:-1], axis=axis)


def _split_at(name: str, x: ArrayLike, sections: ShapeLike | Tensor, axis: int) -> list[Tensor]:
    x = as_tensor(name, x)
    if x.ndim <= axis:
        raise ShapeError(f"{name}: a tensor of shape {x.shape}.", f"at least {axis + 1} axes")
    return split(x, sections, axis=axis)


def vsplit(x: ArrayLike, /, indices_or_sections: ShapeLike | Tensor) -> list[Tensor]:
    """x cut along axis 0, one part below the other; the inverse of `vstack`.

    >>> import wonderland as wl
    >>> [part.shape for part in wl.vsplit(wl.zeros((4, 3)), 2)]
    [(2, 3), (2, 3)]
    """
    x = as_tensor("vsplit", x)
    if x.ndim < 2:
        raise ShapeError(f"vsplit: a tensor of shape {x.shape}.", "at least 2 axes")
    return split(x, indices_or_sections, axis=0)


def hsplit(x: ArrayLike, /, indices_or_sections: ShapeLike | Tensor) -> list[Tensor]:
    """x cut along axis 1 (a vector along its only axis), side by side; the inverse of `hstack`.

    >>> import wonderland as wl
    >>> [part.shape for part in wl.hsplit(wl.zeros((2, 4)), [1])]
    [(2, 1), (2, 3)]
    """
    x = as_tensor("hsplit", x)
    return _split_at("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


def dsplit(x: ArrayLike, /, indices_or_sections: ShapeLike | Tensor) -> list[Tensor]:
    """x cut along axis 2, one part behind the other; the inverse of `dstack`.

    >>> import wonderland as wl
    >>> [part.shape for part in wl.dsplit(wl.zeros((2, 2, 4)), 2)]
    [(2, 2, 2), (2, 2, 2)]
    """
    return _split_at("dsplit", x, indices_or_sections, 2)


# --- joining


def append(x: ArrayLike, values: ArrayLike, /, axis: int | None = None) -> Tensor:
    """The values joined to the end of x along an axis; both flattened if none is named.

    >>> import wonderland as wl
    >>> wl.append(wl.tensor([1, 2]), 3)
    tensor([1, 2, 3])
    """
    x, values = (asarray(v) if isinstance(v, (list, tuple)) else as_tensor("append", v) for v in (x, values))
    if axis is None:
        x, values, axis = ravel(x), ravel(values), 0
    return concat([x, values], axis=axis)


def atleast_3d(x: ArrayLike, /) -> Tensor:
    """x with at least three axes: a vector (n) becomes (1, n, 1), a matrix (n, m) becomes (n, m, 1).

    >>> import wonderland as wl
    >>> wl.atleast_3d(wl.zeros((2, 3))).shape
    (2, 3, 1)
    """
    x = as_tensor("atleast_3d", x)
    shapes = {0: (1, 1, 1), 1: (1, x.size, 1), 2: (*x.shape, 1)}
    return reshape(x, shapes[x.ndim]) if x.ndim < 3 else as_result(x)


def dstack(arrays: Sequence[ArrayLike] | Tensor, /) -> Tensor:
    """Tensors put one behind the other: joined along axis 2, as `atleast_3d` makes them.

    >>> import wonderland as wl
    >>> wl.dstack([wl.zeros((2, 3)), wl.ones((2, 3))]).shape
    (2, 3, 2)
    """
    return concat([atleast_3d(x) for x in as_list("dstack", "arrays", arrays)], axis=2)


def column_stack(arrays: Sequence[ArrayLike] | Tensor, /) -> Tensor:
    """Vectors as the columns of a matrix; matrices are put beside them as they are.

    >>> import wonderland as wl
    >>> wl.column_stack([wl.tensor([1, 2]), wl.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    xs = [as_tensor("column_stack", x) for x in as_list("column_stack", "arrays", arrays)]
    return concat([x if x.ndim > 1 else reshape(x, (x.size, 1)) for x in xs], axis=1)


def block(arrays: ArrayLike, /) -> Tensor:
    """A tensor from nested lists of blocks: the innermost lists along the last axis, the next along the one before.

    >>> import wonderland as wl
    >>> wl.block([[wl.eye(2), wl.zeros((2, 1))], [wl.ones((1, 2)), 2.0]]).shape
    (3, 3)
    """
    if not isinstance(arrays, list):
        return as_result(as_tensor("block", arrays))
    depth = _depth(arrays)
    leaves = _leaves(arrays)
    rank = max(depth, *[x.ndim for x in leaves]) if leaves else depth

    def build(part: ArrayLike, level: int) -> Tensor:
        if not isinstance(part, list):
            x = as_tensor("block", part)
            return reshape(x, (1,) * (rank - x.ndim) + x.shape)
        if not part:
            raise InputError("block: an empty list.", "at least one block")
        return concat([build(p, level + 1) for p in part], axis=rank - depth + level)

    return build(arrays, 0)


def _depth(part: object) -> int:
    if not isinstance(part, list):
        return 0
    depths = {_depth(p) for p in part} or {0}
    if len(depths) > 1:
        raise InputError(f"block: lists of depths {sorted(depths)} beside each other.", "lists of one depth")
    return 1 + depths.pop()


def _leaves(part: ArrayLike) -> list[Tensor]:
    return [x for p in part for x in _leaves(p)] if isinstance(part, list) else [as_tensor("block", part)]


# --- putting in and taking out


def delete(x: ArrayLike, obj: ArrayLike | slice, /, axis: int | None = None) -> Tensor:
    """x without the slices at `obj` (an index, several, a slice or a mask) along an axis; flattened if none is named.

    >>> import wonderland as wl
    >>> wl.delete(wl.tensor([1, 2, 3, 4]), [0, 2])
    tensor([2, 4])
    """
    x = as_tensor("delete", x)
    x, place = (ravel(x), 0) if axis is None else (x, normalize_axis("delete", axis, x.ndim))
    n = x.shape[place]
    gone = _positions("delete", obj, n, n - 1)
    return take(x, wrap(np.delete(np.arange(n), gone)), axis=place)


def insert(x: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, /, axis: int | None = None) -> Tensor:
    """x with values put in before the positions `obj` of an axis; flattened if none is named.

    >>> import wonderland as wl
    >>> wl.insert(wl.tensor([1, 2, 3]), 1, 9), wl.insert(wl.zeros((2, 2)), 1, 5.0, axis=1)
    (tensor([1, 9, 2, 3]), tensor([[0., 5., 0.],
            [0., 5., 0.]]))

    One position takes one slice, or with as many axes as x any number of them; several positions take a slice each.
    """
    x = as_tensor("insert", x)
    values = asarray(values, dtype=x.dtype) if isinstance(values, (list, tuple)) else as_tensor("insert", values)
    x, place = (ravel(x), 0) if axis is None else (x, normalize_axis("insert", axis, x.ndim))
    n = x.shape[place]
    positions = _positions("insert", obj, n, n)
    if axis is None:
        values = ravel(values)
    elif positions.size == 1 and values.ndim < x.ndim:
        values = expand_dims(broadcast_to(values, (*x.shape[:place], *x.shape[place + 1 :])), axis=place)
    count = values.shape[place] if positions.size == 1 else positions.size
    values = broadcast_to(values, (*x.shape[:place], count, *x.shape[place + 1 :]))
    where_to = positions[0] if positions.size == 1 else positions
    order = np.insert(np.arange(n), where_to, np.arange(n, n + count))
    return take(concat(promote("insert", x, values), axis=place), wrap(order), axis=place)


def _positions(name: str, obj: ArrayLike | slice, n: int, last: int) -> Array:
    """Positions along an axis of size n, up to `last`, that are known before the computation; as a vector."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n))
    given = obj if isinstance(obj, Tensor) else asarray(obj)
    found = np.atleast_1d(given._concrete("positions along an axis"))
    if found.dtype.kind == "b" and found.shape == (n,):
        return np.flatnonzero(found)
    if not found.size:
        return np.zeros(0, np.int64)
    if found.ndim > 1 or found.dtype.kind not in "iu":
        raise InputError(f"{name}: positions of {found.dtype}{list(found.shape)}.", "integers, a slice or a mask")
    found = found.astype(np.int64)
    if found.min() < -n or found.max() > last:
        raise InputError(f"{name}: position {found.min()} or {found.max()} on an axis of size {n}.", f"{-n} to {last}")
    return found


def resize(x: ArrayLike, new_shape: ShapeLike, /) -> Tensor:
    """The elements in order in another shape; from the start again, or cut off, where their number differs.

    >>> import wonderland as wl
    >>> wl.resize(wl.tensor([1, 2, 3]), (2, 2))
    tensor([[1, 2],
            [3, 1]])
    """
    x, shape = ravel(as_tensor("resize", x)), as_shape("resize", new_shape)
    check_size("resize", shape, x.dtype)
    total = int(np.prod(shape, dtype=np.int64))
    if total and not x.size:
        raise ShapeError(f"resize: no elements for the shape {shape}.", "a non-empty tensor")
    return take(x, wrap(np.arange(total).reshape(shape) % max(x.size, 1)), axis=0)


# --- turning


def flipud(x: ArrayLike, /) -> Tensor:
    """Upside down: the order reversed along axis 0.

    >>> import wonderland as wl
    >>> wl.flipud(wl.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    return flip(x, axis=0)


def fliplr(x: ArrayLike, /) -> Tensor:
    """Left and right exchanged: the order reversed along axis 1.

    >>> import wonderland as wl
    >>> wl.fliplr(wl.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    return flip(x, axis=1)


def rot90(x: ArrayLike, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """x turned k times by 90 degrees in the plane of two axes, from the first towards the second.

    >>> import wonderland as wl
    >>> wl.rot90(wl.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    x = as_tensor("rot90", x)
    first, second = (normalize_axis("rot90", a, x.ndim) for a in as_pair("rot90", "axes", axes))
    if first == second:
        raise InputError(f"rot90: axes={tuple(axes)} are one axis.", "two different axes")
    turns = as_int("rot90", "k", k) % 4
    if turns == 2:
        return flip(x, axis=(first, second))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    if turns == 1:
        return transpose(flip(x, axis=second), tuple(order))
    return flip(transpose(x, tuple(order)), axis=second) if turns == 3 else as_result(x)
