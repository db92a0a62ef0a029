"""Shapes and axes: the same elements, seen with another shape, order of axes or dtype. Book, section 2.1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core import broadcasting
from ..core.arguments import as_list
from ..core.broadcasting import normalize_axes, normalize_axis, without_axes
from ..core.cell import Cell
from ..core.dtypes import as_dtype
from ..core.errors import AxisError, ShapeError
from ..core.shortcuts import of_view
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike, Axes, DTypeLike, Ints, ShapeLike
from ..primitives import elementwise as pe
from ..primitives import structure as p
from .conversion import as_matrices, as_result, as_shape, as_tensor, check_device

__all__ = [
    "astype", "atleast_1d", "atleast_2d", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims",
    "flatten", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "squeeze", "swapaxes", "transpose",
    "unsqueeze",
]  # fmt: skip


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """x with another element type; fractions lose their digits after the point when they become integers.

    >>> import wonderland as wl
    >>> wl.tensor([1.7, -1.7]).astype(wl.int32)
    tensor([ 1, -1], dtype=int32)

    With `copy=False` a tensor that has the type already is returned itself; its memory is shared in any case, until
    one of the two is assigned to.
    """
    check_device("astype", device)
    x = as_tensor("astype", x)
    target = as_dtype(dtype)
    if x.dtype == target:
        return as_result(x) if copy or isinstance(x, Cell) else x
    return pe.astype(x, dtype=target)


# --- shape


def _reshaped(x: Array, shape: tuple[int, ...]) -> Array:
    out = x.reshape(shape)
    if out.shape != shape and (type(shape) is not tuple or min(shape) < -1):  # NumPy takes -2 for -1
        raise ValueError
    return out


@of_view(_reshaped)
def reshape(x: ArrayLike, /, shape: ShapeLike, *, copy: bool | None = None) -> Tensor:
    """The same elements in row-major order with another shape; one size may be -1.

    >>> import wonderland as wl
    >>> wl.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    x = as_tensor("reshape", x)
    sizes = as_shape("reshape", shape)
    if -1 in sizes:
        known = math.prod(n for n in sizes if n != -1)
        if sizes.count(-1) > 1 or known == 0 or x.size % known:
            raise ShapeError(
                f"reshape: shape {x.shape} with {x.size} elements cannot become {sizes}.",
                "one size of -1, and other sizes whose product divides the number of elements",
            )
        sizes = tuple(x.size // known if n == -1 else n for n in sizes)
    if any(n < 0 for n in sizes):
        raise ShapeError(f"reshape: the shape {sizes} has a negative size.", "sizes of 0 or more, or one -1")
    return p.reshape(x, shape=sizes)


def flatten(x: ArrayLike, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """The axes from start to end (included) merged into one.

    >>> import wonderland as wl
    >>> wl.flatten(wl.zeros((2, 3, 4)), start_axis=1).shape
    (2, 12)
    """
    x = as_tensor("flatten", x)
    if x.ndim == 0:
        return reshape(x, (1,))
    start, end = normalize_axis("flatten", start_axis, x.ndim), normalize_axis("flatten", end_axis, x.ndim)
    if start > end:
        raise AxisError(f"flatten: axis {start_axis} comes after {end_axis} in shape {x.shape}.", "axes in order")
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


def ravel(x: ArrayLike, /) -> Tensor:
    """All elements as one vector, row by row: the book's vect. Book, section 2.2.3.

    >>> import wonderland as wl
    >>> wl.ravel(wl.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    x = as_tensor("ravel", x)
    return reshape(x, (x.size,))


def _expanded(x: Array, axis: int = 0) -> Array:
    shape = [*x.shape]
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, 1)
    if type(axis) is not int or not -len(shape) <= axis < len(shape):
        raise ValueError
    return x.reshape(shape)


@of_view(_expanded)
def expand_dims(x: ArrayLike, /, axis: Ints = 0) -> Tensor:
    """A new axis of size 1 at a position of the result, or several at a tuple of positions.

    >>> import wonderland as wl
    >>> wl.expand_dims(wl.zeros(3), axis=-1).shape
    (3, 1)
    """
    x = as_tensor("expand_dims", x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x.ndim + len(axes)
    places = normalize_axes("expand_dims", tuple(axes), rank)
    sizes = iter(x.shape)
    return reshape(x, tuple(1 if i in places else next(sizes) for i in range(rank)))


unsqueeze = expand_dims


def _squeezed(x: Array, axis: int) -> Array:
    if type(axis) is not int or not x.ndim:  # NumPy knows an axis of a scalar
        raise TypeError
    return x.squeeze(axis)


@of_view(_squeezed)
def squeeze(x: ArrayLike, /, axis: Axes = None) -> Tensor:
    """Without the named axes, which must have size 1; without all such axes if none is named.

    >>> import wonderland as wl
    >>> wl.squeeze(wl.zeros((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    x = as_tensor("squeeze", x)
    if axis is None:
        return reshape(x, tuple(n for n in x.shape if n != 1))
    axes = normalize_axes("squeeze", axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError(f"squeeze: axis {a} of shape {x.shape} has size {x.shape[a]}, not 1.", "axes of size 1")
    return reshape(x, without_axes(x.shape, axes))


def atleast_1d(x: ArrayLike, /) -> Tensor:
    """x with at least one axis.

    >>> import wonderland as wl
    >>> wl.atleast_1d(3.0)
    tensor([3.])
    """
    x = as_tensor("atleast_1d", x)
    return as_result(x) if x.ndim else reshape(x, (1,))


def atleast_2d(x: ArrayLike, /) -> Tensor:
    """x with at least two axes; a vector becomes a row.

    >>> import wonderland as wl
    >>> wl.atleast_2d(wl.zeros(3)).shape
    (1, 3)
    """
    x = as_tensor("atleast_2d", x)
    return as_result(x) if x.ndim > 1 else reshape(x, (1, x.size))


# --- order of axes


@of_view(np.ndarray.transpose)
def transpose(x: ArrayLike, /, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order: axis i of the result is axis `axes[i]` of x. Reversed if no order is given.

    >>> import wonderland as wl
    >>> wl.transpose(wl.zeros((2, 3, 4))).shape, wl.transpose(wl.zeros(3)).shape
    ((4, 3, 2), (3,))

    A vector has one axis and no orientation, so its transpose is itself; x[:, None] is a column.
    """
    x = as_tensor("transpose", x)
    if axes is None:
        axes = tuple(range(x.ndim))[::-1]
    axes = as_list("transpose", "axes", axes)
    if len(axes) != x.ndim:
        raise AxisError(f"transpose: axes {tuple(axes)} for a tensor of shape {x.shape}.", "each axis once")
    return p.transpose(x, axes=tuple(normalize_axis("transpose", a, x.ndim) for a in axes))


def permute_dims(x: ArrayLike, /, axes: Sequence[int]) -> Tensor:
    """The axes in another order: axis i of the result is axis `axes[i]` of x.

    >>> import wonderland as wl
    >>> wl.permute_dims(wl.zeros((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    return transpose(x, axes)


def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """The last two axes swapped.

    >>> import wonderland as wl
    >>> wl.matrix_transpose(wl.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    return swapaxes(as_matrices("matrix_transpose", x), -1, -2)


@of_view(np.ndarray.swapaxes)
def swapaxes(x: ArrayLike, axis1: int, axis2: int, /) -> Tensor:
    """Two axes exchanged.

    >>> import wonderland as wl
    >>> wl.swapaxes(wl.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_tensor("swapaxes", x)
    order = list(range(x.ndim))
    i, j = normalize_axis("swapaxes", axis1, x.ndim), normalize_axis("swapaxes", axis2, x.ndim)
    order[i], order[j] = order[j], order[i]
    return p.transpose(x, axes=tuple(order))


def moveaxis(x: ArrayLike, source: Ints, destination: Ints, /) -> Tensor:
    """Axes moved to other positions, the others staying in order.

    >>> import wonderland as wl
    >>> wl.moveaxis(wl.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor("moveaxis", x)
    sources = list(source) if isinstance(source, (tuple, list)) else [source]
    targets = list(destination) if isinstance(destination, (tuple, list)) else [destination]
    if len(sources) != len(targets):
        raise AxisError(f"moveaxis: {len(sources)} sources and {len(targets)} destinations.", "as many of each")
    sources = [normalize_axis("moveaxis", a, x.ndim) for a in sources]
    targets = [normalize_axis("moveaxis", a, x.ndim) for a in targets]
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise AxisError(f"moveaxis: an axis appears twice in {source} or {destination}.", "each axis once")
    order = [i for i in range(x.ndim) if i not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return p.transpose(x, axes=tuple(order))


# --- broadcasting


def broadcast_to(x: ArrayLike, /, shape: ShapeLike) -> Tensor:
    """x repeated to a shape that it broadcasts to; the adjoint sums over the repetitions.

    >>> import wonderland as wl
    >>> wl.broadcast_to(wl.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    x = as_tensor("broadcast_to", x)
    sizes = as_shape("broadcast_to", shape)
    return as_result(x) if x.shape == sizes else p.broadcast_to(x, shape=sizes)


def broadcast_arrays(*arrays: ArrayLike) -> list[Tensor]:
    """A list of the tensors, repeated to their common shape.

    >>> import wonderland as wl
    >>> [x.shape for x in wl.broadcast_arrays(wl.zeros((4, 1)), wl.zeros(3))]
    [(4, 3), (4, 3)]
    """
    xs = [as_tensor("broadcast_arrays", a) for a in arrays]
    shape = broadcasting.broadcast_shapes("broadcast_arrays", *[x.shape for x in xs]) if xs else ()
    return [broadcast_to(x, shape) for x in xs]


def broadcast_shapes(*shapes: ShapeLike) -> tuple[int, ...]:
    """The common shape to which tensors of these shapes broadcast.

    >>> import wonderland as wl
    >>> wl.broadcast_shapes((4, 1), (3,))
    (4, 3)
    """
    if not shapes:
        return ()
    return broadcasting.broadcast_shapes("broadcast_shapes", *[as_shape("broadcast_shapes", s) for s in shapes])
