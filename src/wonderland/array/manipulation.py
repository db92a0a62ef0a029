"""Functions that rearrange elements. Book, section 2.1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import as_dtype, promote_types
from ..errors import AxisError, InputError, ShapeError
from ..primitives import elementwise as pe
from ..primitives import structure as p
from ..primitives.broadcasting import broadcast_shapes, normalize_axes, normalize_axis
from ..primitives.creation import full as full_primitive
from ..tensor import Cell, Tensor, wrap
from .conversion import as_shape, as_tensor, convert


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x with another element type.

    >>> import wonderland as wl
    >>> wl.tensor([1.7, -1.7]).astype(wl.int32)
    tensor([ 1, -1], dtype=int32)
    """
    x = as_tensor("astype", x)
    target = as_dtype(dtype)
    if x.dtype == target:
        return x.value if isinstance(x, Cell) else x
    return pe.astype(x, dtype=target)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
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


def flatten(x: Any, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """The axes from start to end (included) merged into one."""
    x = as_tensor("flatten", x)
    if x.ndim == 0:
        return reshape(x, (1,))
    start, end = normalize_axis("flatten", start_axis, x.ndim), normalize_axis("flatten", end_axis, x.ndim)
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


def ravel(x: Any) -> Tensor:
    """All elements as one vector, row by row: the book's vect."""
    return reshape(x, (-1,)) if as_tensor("ravel", x).size else reshape(x, (0,))


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order; reversed if no order is given."""
    x = as_tensor("transpose", x)
    if axes is None:
        axes = tuple(range(x.ndim))[::-1]
    if len(axes) != x.ndim:
        raise AxisError(f"transpose: axes {tuple(axes)} for a tensor of shape {x.shape}.", "each axis once")
    return p.transpose(x, axes=tuple(normalize_axis("transpose", a, x.ndim) for a in axes))


def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """The axes in another order."""
    return transpose(x, axes)


def matrix_transpose(x: Any, /) -> Tensor:
    """The last two axes swapped."""
    x = as_tensor("matrix_transpose", x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose: a tensor of shape {x.shape} is not a matrix.", "at least two axes")
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = as_tensor("swapaxes", x)
    order = list(range(x.ndim))
    i, j = normalize_axis("swapaxes", axis1, x.ndim), normalize_axis("swapaxes", axis2, x.ndim)
    order[i], order[j] = order[j], order[i]
    return p.transpose(x, axes=tuple(order))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Axes moved to other positions, the others staying in order."""
    x = as_tensor("moveaxis", x)
    sources = [source] if isinstance(source, int) else list(source)
    targets = [destination] if isinstance(destination, int) else list(destination)
    if len(sources) != len(targets):
        raise AxisError(f"moveaxis: {len(sources)} sources and {len(targets)} destinations.", "as many of each")
    sources = [normalize_axis("moveaxis", a, x.ndim) for a in sources]
    targets = [normalize_axis("moveaxis", a, x.ndim) for a in targets]
    order = [i for i in range(x.ndim) if i not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return transpose(x, order)


def expand_dims(x: Any, /, *, axis: Any = 0) -> Tensor:
    """A new axis of size 1 (or several)."""
    x = as_tensor("expand_dims", x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x.ndim + len(axes)
    places = normalize_axes("expand_dims", tuple(axes), rank)
    sizes = iter(x.shape)
    return reshape(x, tuple(1 if i in places else next(sizes) for i in range(rank)))


unsqueeze = expand_dims


def squeeze(x: Any, /, axis: Any = None) -> Tensor:
    """Without the named axes, which must have size 1; all such axes if none is named."""
    x = as_tensor("squeeze", x)
    if axis is None:
        return reshape(x, tuple(n for n in x.shape if n != 1))
    axes = normalize_axes("squeeze", axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError(f"squeeze: axis {a} of shape {x.shape} has size {x.shape[a]}, not 1.", "axes of size 1")
    return reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in axes))


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """x repeated to a shape that it broadcasts to."""
    x = as_tensor("broadcast_to", x)
    sizes = as_shape("broadcast_to", shape)
    return x if x.shape == sizes else p.broadcast_to(x, shape=sizes)


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Tensors repeated to their common shape."""
    xs = [as_tensor("broadcast_arrays", a) for a in arrays]
    shape = broadcast_shapes("broadcast_arrays", *[x.shape for x in xs]) if xs else ()
    return tuple(broadcast_to(x, shape) for x in xs)


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along an existing axis; with `axis=None` flattened first."""
    xs = [as_tensor("concat", a) for a in arrays]
    if not xs:
        raise InputError("concat: there is nothing to join.", "at least one tensor")
    if axis is None:
        xs, axis = [reshape(x, (x.size,)) for x in xs], 0
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = promote_types(dtype, x.dtype)
    if any(x.ndim == 0 for x in xs):
        raise ShapeError("concat: 0-d tensors have no axis to join along.", "wl.stack")
    return p.concatenate(*[convert(x, dtype) for x in xs], axis=normalize_axis("concat", axis, xs[0].ndim))


def concatenate(arrays: Sequence[Any], /, axis: int | None = 0) -> Tensor:
    """`concat` under NumPy's name."""
    return concat(arrays, axis=axis)


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis. Book, section 2.1.2.

    >>> import wonderland as wl
    >>> wl.stack([wl.zeros(2), wl.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    xs = [as_tensor("stack", a) for a in arrays]
    if not xs:
        raise InputError("stack: there is nothing to join.", "at least one tensor")
    if len({x.shape for x in xs}) > 1:
        raise ShapeError(f"stack: shapes {', '.join(str(x.shape) for x in xs)} differ.", "tensors of one shape")
    place = normalize_axis("stack", axis, xs[0].ndim + 1)
    return concat([expand_dims(x, axis=place) for x in xs], axis=place)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    x = as_tensor("unstack", x)
    place = normalize_axis("unstack", axis, x.ndim)
    rest = x.shape[:place] + x.shape[place + 1 :]
    return tuple(p.reshape(p.take_slice(x, place, i, i + 1), shape=rest) for i in range(x.shape[place]))


def split(x: Any, /, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """x cut along an axis, into equal parts or at the given positions."""
    x = as_tensor("split", x)
    place = normalize_axis("split", axis, x.ndim)
    n = x.shape[place]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or n % indices_or_sections:
            raise ShapeError(
                f"split: axis {axis} of size {n} does not divide into {indices_or_sections} equal parts.",
                "a divisor of the size, or a list of positions",
            )
        size = n // indices_or_sections
        cuts = list(range(size, n, size)) if size else [0] * (indices_or_sections - 1)
    else:
        cuts = [int(c) for c in indices_or_sections]
    edges = [0, *cuts, n]
    return [p.take_slice(x, place, a, max(a, b)) for a, b in zip(edges, edges[1:], strict=False)]


def flip(x: Any, /, *, axis: Any = None) -> Tensor:
    """The order reversed along the axes; along all of them if none is named."""
    x = as_tensor("flip", x)
    axes = normalize_axes("flip", axis, x.ndim)
    index = tuple((n - 1, None, -1) if i in axes and n else (0, None, 1) for i, n in enumerate(x.shape))
    return p.slice_(x, index=index)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements moved along an axis, those that fall off the end coming back at the start."""
    x = as_tensor("roll", x)
    if axis is None:
        return reshape(roll(reshape(x, (x.size,)), shift, axis=0), x.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    for s, a in zip(shifts, axes, strict=True):
        place = normalize_axis("roll", a, x.ndim)
        n = x.shape[place]
        if n and s % n:
            cut = n - s % n
            x = p.concatenate(p.take_slice(x, place, cut, n), p.take_slice(x, place, 0, cut), axis=place)
    return x


def tile(x: Any, repetitions: Any, /) -> Tensor:
    """x repeated as a whole along each axis."""
    x = as_tensor("tile", x)
    reps = as_shape("tile", repetitions)
    rank = max(x.ndim, len(reps))
    reps = (1,) * (rank - len(reps)) + reps
    sizes = (1,) * (rank - x.ndim) + x.shape
    paired = tuple(v for n in sizes for v in (1, n))
    wide = tuple(v for r, n in zip(reps, sizes, strict=True) for v in (r, n))
    return reshape(broadcast_to(reshape(x, paired), wide), tuple(r * n for r, n in zip(reps, sizes, strict=True)))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element repeated along an axis (of the flattened tensor if none is named)."""
    x = as_tensor("repeat", x)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    place = normalize_axis("repeat", axis, x.ndim)
    n = x.shape[place]
    counts = np.broadcast_to(np.asarray(repeats), (n,))
    if counts.size and counts.min() < 0:
        raise InputError("repeat: a negative number of repetitions.", "counts of 0 or more")
    return take(x, wrap(np.repeat(np.arange(n), counts)), axis=place)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    """x with elements added before and after each axis; `mode` is "constant", "reflect", "edge", "wrap" or "symmetric".

    >>> import wonderland as wl
    >>> wl.pad(wl.ones(2), 1)
    tensor([0., 1., 1., 0.])
    """
    x = as_tensor("pad", x)
    widths = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (x.ndim, 2))
    if widths.size and widths.min() < 0:
        raise InputError(f"pad: the widths {widths.tolist()} are negative.", "slicing to remove elements")
    if mode == "constant":
        shape = tuple(int(n + a + b) for n, (a, b) in zip(x.shape, widths, strict=True))
        index = tuple((int(a), int(a + n), 1) for n, (a, _) in zip(x.shape, widths, strict=True))
        padded = p.place(x, shape=shape, index=index)
        if isinstance(constant_values, (int, float)) and constant_values == 0:
            return padded
        inside = p.place(full_primitive(x.shape, True, np.dtype(bool)), shape=shape, index=index)
        return pe.where(inside, padded, convert(constant_values, x.dtype))
    for axis, (a, b) in enumerate(widths):
        if a or b:
            try:
                source = np.pad(np.arange(x.shape[axis]), (a, b), mode=mode)
            except ValueError as error:
                raise InputError(f"pad: {error} (shape {x.shape}, widths {widths.tolist()}, mode {mode!r}).") from error
            x = take(x, wrap(source), axis=axis)
    return x


def atleast_1d(x: Any) -> Tensor:
    """x with at least one axis."""
    x = as_tensor("atleast_1d", x)
    return x if x.ndim else reshape(x, (1,))


def atleast_2d(x: Any) -> Tensor:
    """x with at least two axes; a vector becomes a row."""
    x = as_tensor("atleast_2d", x)
    return x if x.ndim > 1 else reshape(x, (1, x.size))


from .indexing import take  # noqa: E402 - indexing builds on the functions above
