"""Primitives that move, repeat and sum elements: all of them linear, each with another one as its transpose."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..core.broadcasting import broadcasts_to, without_axes
from ..core.dtypes import ALL, HALVES, SIGNED, UNSIGNED, DType, bool_, float32, int64, uint64
from ..core.errors import AxisError, DTypeError, InputError, ShapeError
from ..core.interpreter import Tangent
from ..core.primitive import LINEAR, TABLE, ZERO, Aval, Primitive, Rule, Shape
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .creation import check_size, zeros_like

Axes = tuple[int, ...]
Slices = tuple[tuple[int, int | None, int], ...]  # (start, stop, step) for every axis; stop None: up to the end

# --- reshape


def _reshape_abstract(x: Shaped, shape: Shape) -> Aval:
    if math.prod(shape) != math.prod(x.shape):
        raise ShapeError(
            f"reshape: shape {x.shape} has {math.prod(x.shape)} elements and cannot become {shape}, "
            f"which has {math.prod(shape)}.",
            "sizes with the same product; one size may be -1",
        )
    return Aval(shape, x.dtype)


reshape: Primitive = Primitive(
    "reshape",
    lambda x, shape: x.reshape(shape),
    _reshape_abstract,
    jvp=(LINEAR,),
    transpose=(lambda ct, x, shape: reshape(ct, shape=x.shape),),
    batch=lambda args, batched, shape: reshape(args[0], shape=args[0].shape[:1] + shape),
    view=True,
)

# --- transpose: axis i of the result is axis axes[i] of the argument


def _transpose_abstract(x: Shaped, axes: tuple[int, ...]) -> Aval:
    if sorted(axes) != list(range(len(x.shape))):
        raise AxisError(
            f"transpose: axes {axes} do not name each of the {len(x.shape)} axes of shape {x.shape} once.",
            "a permutation of the axes",
        )
    return Aval(tuple(x.shape[a] for a in axes), x.dtype)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort(axes))


transpose: Primitive = Primitive(
    "transpose",
    lambda x, axes: x.transpose(axes),
    _transpose_abstract,
    jvp=(LINEAR,),
    transpose=(lambda ct, x, axes: transpose(ct, axes=_inverse(axes)),),
    batch=lambda args, batched, axes: transpose(args[0], axes=(0, *[a + 1 for a in axes])),
    view=True,
)

# --- broadcast_to


def _broadcast_abstract(x: Shaped, shape: Shape) -> Aval:
    if not broadcasts_to(x.shape, shape):
        raise ShapeError(
            f"broadcast_to: shape {x.shape} does not broadcast to {shape}.",
            "sizes that agree from the right, or are 1 in the tensor",
        )
    return Aval(shape, x.dtype)


def _broadcast_batch(args: list[Tensor], batched: list[bool], shape: Shape) -> Tensor:
    (x,) = args
    missing = len(shape) - (x.ndim - 1)
    x = reshape(x, shape=x.shape[:1] + (1,) * missing + x.shape[1:])
    return broadcast_to(x, shape=x.shape[:1] + shape)


broadcast_to: Primitive = Primitive(
    "broadcast_to",
    lambda x, shape: np.broadcast_to(x, shape),
    _broadcast_abstract,
    jvp=(LINEAR,),
    transpose=(lambda ct, x, shape: unbroadcast(ct, x.shape),),
    batch=_broadcast_batch,
    view=True,
)

# --- sum, and what all reductions have in common


def keep(x: Tensor, shape: tuple[int, ...], axes: Axes) -> Tensor:
    """Put the reduced axes of an original `shape` back with size 1."""
    return reshape(x, shape=tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _spread(x: Tensor, shape: tuple[int, ...], axes: Axes) -> Tensor:
    return broadcast_to(keep(x, shape, axes), shape=shape)


def reduced_batch(name: str) -> Rule:
    def batch(args: list[Tensor], batched: list[bool], axes: Axes) -> Tensor:
        return TABLE[name](args[0], axes=tuple(a + 1 for a in axes))

    return batch


def reduced_abstract(name: str, dtype: DType | None = None, empty: bool = True) -> Callable[[Shaped, Axes], Aval]:
    def abstract(x: Shaped, axes: Axes) -> Aval:
        if not empty and any(x.shape[a] == 0 for a in axes):
            raise InputError(
                f"{name}: the reduction of shape {x.shape} over axes {axes} has no elements and no neutral element.",
                "a non-empty axis, or x.sum() / wl.where for empty data",
            )
        return Aval(without_axes(x.shape, axes), x.dtype if dtype is None else dtype)

    return abstract


def reduced_cost(x: Shaped, **params: object) -> int:
    return math.prod(x.shape)


def in_float32(f: Rule) -> Rule:
    """Half-precision sums are accumulated in float32."""

    def impl(x: Array, *args: object, **params: object) -> Array:
        if x.dtype in HALVES:
            return np.asarray(f(x.astype(float32), *args, **params)).astype(x.dtype)
        return f(x, *args, **params)

    return impl


# Small integers are summed in the widest type of their sign, and half precision inside `wl.autocast` in float32.
SUMMED_IN = dict.fromkeys((bool_, *SIGNED[:-1]), int64) | dict.fromkeys(UNSIGNED[:-1], uint64)
SUMMED = frozenset(ALL) - frozenset(SUMMED_IN) - HALVES  # as they are

# Reductions are ufuncs' own: faster than np.sum and relatives, and a floating-point warning is then
# attributed to this package, which silences it, and not to NumPy.

sum_: Primitive = Primitive(
    "sum",
    in_float32(lambda x, axes: np.add.reduce(x, axes, x.dtype)),
    reduced_abstract("sum"),
    jvp=(LINEAR,),
    transpose=(lambda ct, x, axes: _spread(ct, x.shape, axes),),
    batch=reduced_batch("sum"),
    cost=reduced_cost,
    single=1 << 17,
    takes=SUMMED,
)


def unbroadcast(ct: Tensor, shape: Shape) -> Tensor:
    """Sum an adjoint over the axes along which a value of `shape` was repeated."""
    if ct.shape == shape:
        return ct
    extra = ct.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and ct.shape[i + extra] != 1)
    if axes:
        ct = sum_(ct, axes=axes)
    return ct if ct.shape == shape else reshape(ct, shape=shape)


# --- concatenate


def _concatenate_abstract(*xs: Shaped, axis: int) -> Aval:
    first = xs[0]
    for x in xs[1:]:
        others = x.shape[:axis] + x.shape[axis + 1 :]
        if len(x.shape) != len(first.shape) or others != first.shape[:axis] + first.shape[axis + 1 :]:
            raise ShapeError(
                f"concatenate: shapes {first.shape} and {x.shape} differ outside axis {axis}.",
                "equal sizes on all other axes",
            )
        if x.dtype != first.dtype:
            raise DTypeError(f"concatenate: dtypes {first.dtype} and {x.dtype} differ.", "x.astype(...)")
    total = sum(x.shape[axis] for x in xs)
    return Aval(first.shape[:axis] + (total,) + first.shape[axis + 1 :], first.dtype)


def _concatenate_jvp(primals: list[Tensor], tangents: list[Tensor | None], out: Tensor, axis: int) -> Tensor:
    filled = [zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    return concatenate(*filled, axis=axis)


def _concatenate_transpose(ct: Tensor, args: list[Tensor], axis: int) -> list[Tensor | None]:
    cts, start = [], 0
    for arg in args:
        stop = start + arg.shape[axis]
        cts.append(take_slice(ct, axis, start, stop) if type(arg) is Tangent else None)
        start = stop
    return cts


def all_batched(args: list[Tensor], batched: list[bool]) -> list[Tensor]:
    """The arguments of a batching rule, all of them with the batch in front."""
    size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
    return [a if b else broadcast_to(a, shape=(size, *a.shape)) for a, b in zip(args, batched, strict=True)]


concatenate: Primitive = Primitive(
    "concatenate",
    lambda *xs, axis: np.concatenate(xs, axis=axis),
    _concatenate_abstract,
    jvp=_concatenate_jvp,
    transpose=_concatenate_transpose,
    batch=lambda args, batched, axis: concatenate(*all_batched(args, batched), axis=axis + 1),
    free=True,
)

# --- slice, and its transpose: placing a tensor into zeros


def _to_slices(index: Slices) -> tuple[slice, ...]:
    return tuple(slice(*triple) for triple in index)


def slice_lengths(shape: Shape, index: Slices) -> Shape:
    return tuple(len(range(n)[slice(*triple)]) for n, triple in zip(shape, index, strict=True))


slice_: Primitive = Primitive(
    "slice",
    lambda x, index: x[_to_slices(index)],
    lambda x, index: Aval(slice_lengths(x.shape, index), x.dtype),
    jvp=(LINEAR,),
    transpose=(lambda ct, x, index: place(ct, shape=x.shape, index=index),),
    batch=lambda args, batched, index: slice_(args[0], index=((0, None, 1), *index)),
    view=True,
)


def take_slice(x: Tensor, axis: int, start: int, stop: int | None, step: int = 1) -> Tensor:
    """x[start:stop:step] along one axis."""
    index: list[tuple[int, int | None, int]] = [(0, None, 1)] * x.ndim
    index[axis] = (start, stop, step)
    return slice_(x, index=tuple(index))


def _place(x: Array, shape: Shape, index: Slices) -> Array:
    check_size("place", shape, x.dtype)
    out = np.zeros(shape, x.dtype)
    out[_to_slices(index)] = x
    return out


def _place_abstract(x: Shaped, shape: Shape, index: Slices) -> Aval:
    if slice_lengths(shape, index) != x.shape:
        raise ShapeError(
            f"place: a tensor of shape {x.shape} does not fill {index} of shape {shape}.",
            "a tensor of the size of the slice",
        )
    return Aval(shape, x.dtype)


place: Primitive = Primitive(
    "place",
    _place,
    _place_abstract,
    jvp=(LINEAR,),
    transpose=(lambda ct, x, shape, index: slice_(ct, index=index),),
    batch=lambda args, batched, shape, index: place(
        args[0], shape=args[0].shape[:1] + shape, index=((0, None, 1), *index)
    ),
    free=True,
)

# --- the same value, as a constant

stop: Primitive = Primitive(
    "stop_gradient",
    lambda x: x,
    lambda x: Aval(x.shape, x.dtype),
    jvp=(ZERO,),
    batch=lambda args, batched: stop(args[0]),
    view=True,
)
