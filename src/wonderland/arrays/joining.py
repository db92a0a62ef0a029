"""Tensors put together, cut apart, turned round, repeated and padded. Book, section 2.1.2."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..core.arguments import as_int, as_list
from ..core.broadcasting import normalize_axes, normalize_axis
from ..core.dtypes import bool_
from ..core.errors import AxisError, InputError, ShapeError, SizeError
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, ArrayLike, Axes, Ints, ShapeLike
from ..primitives import elementwise as pe
from ..primitives import structure as p
from ..primitives.creation import check_size, full
from .conversion import as_result, as_shape, as_tensor, convert_into, promote
from .gathering import take
from .manipulation import broadcast_to, expand_dims, reshape

__all__ = [
    "block_diag", "concat", "concatenate", "flip", "hstack", "pad", "roll", "split", "stack", "tile", "unstack",
    "vstack",
]  # fmt: skip

# --- joining


def _parts(name: str, arrays: Sequence[ArrayLike] | Tensor) -> list[Tensor]:
    if isinstance(arrays, Tensor) and arrays.ndim == 0:
        raise ShapeError(f"{name}: received one 0-d tensor.", "a list of tensors")
    xs = promote(name, *as_list(name, "arrays", arrays))
    if not xs:
        raise InputError(f"{name}: there is nothing to join.", "at least one tensor")
    return xs


def concat(arrays: Sequence[ArrayLike] | Tensor, /, axis: int | None = 0) -> Tensor:
    """Tensors joined along an existing axis; with `axis=None` flattened first.

    >>> import wonderland as wl
    >>> wl.concat([wl.zeros((2, 3)), wl.ones((1, 3))]).shape
    (3, 3)
    """
    xs = _parts("concat", arrays)
    if axis is None:
        xs, axis = [reshape(x, (x.size,)) for x in xs], 0
    if any(x.ndim == 0 for x in xs):
        raise ShapeError("concat: 0-d tensors have no axis to join along.", "wl.stack")
    return p.concatenate(*xs, axis=normalize_axis("concat", axis, xs[0].ndim))


def concatenate(arrays: Sequence[ArrayLike] | Tensor, /, axis: int | None = 0) -> Tensor:
    """`concat` under NumPy's name.

    >>> import wonderland as wl
    >>> wl.concatenate([wl.zeros(1), wl.ones(2)])
    tensor([0., 1., 1.])
    """
    return concat(arrays, axis=axis)


def stack(arrays: Sequence[ArrayLike] | Tensor, /, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis: n vectors (d) become a matrix (n, d). Book, 2.1.2.

    >>> import wonderland as wl
    >>> wl.stack([wl.zeros(2), wl.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    xs = _parts("stack", arrays)
    if len({x.shape for x in xs}) > 1:
        raise ShapeError(f"stack: shapes {', '.join(str(x.shape) for x in xs)} differ.", "tensors of one shape")
    place = normalize_axis("stack", axis, xs[0].ndim + 1)
    return p.concatenate(*[expand_dims(x, axis=place) for x in xs], axis=place)


def vstack(arrays: Sequence[ArrayLike] | Tensor, /) -> Tensor:
    """Tensors put one below the other: joined along axis 0, vectors as rows.

    >>> import wonderland as wl
    >>> wl.vstack([wl.zeros(2), wl.ones((3, 2))]).shape
    (4, 2)
    """
    return concat([reshape(x, (1, x.size)) if x.ndim < 2 else x for x in _parts("vstack", arrays)])


def hstack(arrays: Sequence[ArrayLike] | Tensor, /) -> Tensor:
    """Tensors put side by side: joined along axis 1, vectors along their only axis.

    >>> import wonderland as wl
    >>> wl.hstack([wl.zeros((2, 1)), wl.ones((2, 3))]).shape
    (2, 4)
    """
    xs = [x if x.ndim else reshape(x, (1,)) for x in _parts("hstack", arrays)]
    return concat(xs, axis=0 if xs[0].ndim == 1 else 1)


# --- cutting apart

EMPTY_PARTS = 1 << 16  # that `split` makes of nothing


def unstack(x: ArrayLike, /, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis: the inverse of `stack`.

    >>> import wonderland as wl
    >>> wl.unstack(wl.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    x = as_tensor("unstack", x)
    place = normalize_axis("unstack", axis, x.ndim)
    rest = x.shape[:place] + x.shape[place + 1 :]
    return tuple(p.reshape(p.take_slice(x, place, i, i + 1), shape=rest) for i in range(x.shape[place]))


def check_parts(name: str, parts: int, size: int) -> None:
    """Refuse to make many more tensors than an axis has elements: nothing can be cut into any number of parts."""
    if parts > max(size, EMPTY_PARTS):
        raise SizeError(f"{name}: an axis of size {size} cut into {parts} parts.", f"at most {EMPTY_PARTS} empty parts")


def split(x: ArrayLike, /, indices_or_sections: ShapeLike | Tensor, axis: int = 0) -> list[Tensor]:
    """x cut along an axis, into equal parts or at the given positions.

    >>> import wonderland as wl
    >>> wl.split(wl.arange(6), 3), wl.split(wl.arange(4), [1])
    ([tensor([0, 1]), tensor([2, 3]), tensor([4, 5])], [tensor([0]), tensor([1, 2, 3])])
    """
    x = as_tensor("split", x)
    place = normalize_axis("split", axis, x.ndim)
    n = x.shape[place]
    if isinstance(indices_or_sections, (int, np.integer)):
        parts = int(indices_or_sections)
        if parts < 1 or n % parts:
            raise ShapeError(
                f"split: axis {axis} of size {n} does not divide into {parts} equal parts.",
                "a divisor of the size, or a list of positions",
            )
        check_parts("split", parts, n)
        edges = [i * (n // parts) for i in range(parts + 1)]
    else:
        cuts = [as_int("split", "a position", c) for c in as_list("split", "indices", indices_or_sections)]
        edges = [0, *[slice(None, c).indices(n)[1] for c in cuts], n]
    return [p.take_slice(x, place, a, max(a, b)) for a, b in itertools.pairwise(edges)]


def block_diag(*matrices: ArrayLike) -> Tensor:
    """The matrix with the given ones along its diagonal and zeros elsewhere; vectors count as rows.

    >>> import wonderland as wl
    >>> wl.block_diag(wl.tensor([[1, 2], [3, 4]]), wl.tensor([5, 6]))
    tensor([[1, 2, 0, 0],
            [3, 4, 0, 0],
            [0, 0, 5, 6]])
    """
    parts = _parts("block_diag", matrices)
    if any(part.ndim > 2 for part in parts):
        shapes = ", ".join(str(part.shape) for part in parts)
        raise ShapeError(f"block_diag: received the shapes {shapes}.", "matrices, vectors and numbers")
    blocks = [reshape(part, (1,) * (2 - part.ndim) + part.shape) for part in parts]
    width = sum(block.shape[1] for block in blocks)
    check_size("block_diag", (sum(block.shape[0] for block in blocks), width), blocks[0].dtype)
    rows, before = [], 0
    for block in blocks:
        m, n = block.shape
        rows.append(p.place(block, shape=(m, width), index=((0, m, 1), (before, before + n, 1))))
        before += n
    return p.concatenate(*rows, axis=0)


# --- turning and moving


def flip(x: ArrayLike, /, axis: Axes = None) -> Tensor:
    """The order reversed along the axes; along all of them if none is named.

    >>> import wonderland as wl
    >>> wl.flip(wl.tensor([[1, 2], [3, 4]]), axis=1)
    tensor([[2, 1],
            [4, 3]])
    """
    x = as_tensor("flip", x)
    axes = normalize_axes("flip", axis, x.ndim)
    index = tuple((n - 1, None, -1) if i in axes and n else (0, None, 1) for i, n in enumerate(x.shape))
    return p.slice_(x, index=index)


def roll(x: ArrayLike, /, shift: Ints, axis: Ints | None = None) -> Tensor:
    """Elements moved along an axis (or the flattened tensor); what falls off the end comes back at the start.

    >>> import wonderland as wl
    >>> wl.roll(wl.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    out = as_tensor("roll", x)
    if axis is None:
        shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
        amount = sum(as_int("roll", "shift", s) for s in shifts)
        return reshape(roll(reshape(out, (out.size,)), amount, axis=0), out.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise AxisError(f"roll: {len(shifts)} shifts for {len(axes)} axes.", "one shift per axis")
    for s, a in zip(shifts, axes, strict=True):
        place = normalize_axis("roll", a, out.ndim)
        n, amount = out.shape[place], as_int("roll", "shift", s)
        if n and amount % n:
            cut = n - amount % n
            out = p.concatenate(p.take_slice(out, place, cut, n), p.take_slice(out, place, 0, cut), axis=place)
    return as_result(out)


# --- repeating


def tile(x: ArrayLike, repetitions: ShapeLike, /) -> Tensor:
    """x repeated as a whole along each axis.

    >>> import wonderland as wl
    >>> wl.tile(wl.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = as_tensor("tile", x)
    counts = as_shape("tile", repetitions)
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - x.ndim) + x.shape
    result = tuple(r * n for r, n in zip(counts, sizes, strict=True))
    check_size("tile", result, x.dtype)
    paired = tuple(v for n in sizes for v in (1, n))
    wide = tuple(v for r, n in zip(counts, sizes, strict=True) for v in (r, n))
    return reshape(broadcast_to(reshape(x, paired), wide), result)


# --- padding


def pad(
    x: ArrayLike,
    /,
    pad_width: int | Sequence[int] | Sequence[Sequence[int]],
    mode: str = "constant",
    *,
    constant_values: ArrayLike = 0,
) -> Tensor:
    """x with elements added before and after each axis.

    >>> import wonderland as wl
    >>> wl.pad(wl.ones(2), 1), wl.pad(wl.arange(3), (0, 2), mode="reflect")
    (tensor([0., 1., 1., 0.]), tensor([0, 1, 2, 1, 0]))

    `pad_width` is one number, a pair (before, after), or a pair per axis. `mode` is "constant" (filled with
    `constant_values`), "edge", "reflect", "symmetric" or "wrap".
    """
    x = as_tensor("pad", x)
    try:
        widths = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (x.ndim, 2))
    except (ValueError, TypeError, OverflowError) as error:
        raise ShapeError(
            f"pad: the widths {pad_width} do not fit a tensor of shape {x.shape}.",
            "a pair (before, after) per axis",
        ) from error
    if widths.size and widths.min() < 0:
        raise InputError(f"pad: the widths {widths.tolist()} are negative.", "slicing to remove elements")
    if mode == "constant":
        return _pad_constant(x, widths, constant_values)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise InputError(f"pad: mode={mode!r}.", '"constant", "edge", "reflect", "symmetric" or "wrap"')
    for axis, (before, after) in enumerate(widths):
        if before or after:
            if not x.shape[axis]:
                raise ShapeError(f"pad: axis {axis} of shape {x.shape} has no elements to repeat.", 'mode="constant"')
            source = np.pad(np.arange(x.shape[axis]), (before, after), mode=cast(Any, mode))
            x = take(x, wrap(source), axis=axis)
    return x


def _pad_constant(x: Tensor, widths: Array, value: ArrayLike) -> Tensor:
    shape = tuple(int(n + a + b) for n, (a, b) in zip(x.shape, widths, strict=True))
    index = tuple((int(a), int(a + n), 1) for n, (a, _) in zip(x.shape, widths, strict=True))
    padded = p.place(x, shape=shape, index=index)
    if isinstance(value, (int, float)) and value == 0 and math.copysign(1, value) > 0:
        return padded
    inside = p.place(full(x.shape, True, bool_), shape=shape, index=index)
    filling = convert_into("pad", value, x.dtype)
    if filling.ndim:
        raise ShapeError(f"pad: constant_values of shape {filling.shape}.", "one number")
    return pe.where(inside, padded, filling)
