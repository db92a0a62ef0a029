"""Primitives that combine the elements along axes: sums, products, extremes, and their running forms.

Where several elements are the largest, `max` and `min` share the derivative evenly among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..core.dtypes import bool_, int64
from ..core.primitive import LINEAR, ZERO, Aval, Primitive, Rule
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from . import elementwise
from .creation import full, iota, ones_like, zeros_like
from .indexing import gather
from .structure import (
    SUMMED,
    Axes,
    broadcast_to,
    concatenate,
    in_float32,
    keep,
    reduced_abstract,
    reduced_batch,
    reduced_cost,
    reshape,
    sum_,
    take_slice,
    transpose,
)

# The reductions below are ufuncs' own, as in structure.py.

# --- product: the derivative multiplies what stands before and after, so zeros need no division


def _prod_jvp(t: Tensor, out: Tensor, x: Tensor, axes: Axes) -> Tensor | None:
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    kept = tuple(x.shape[i] for i in rest)
    flat_shape = (*kept, math.prod(x.shape[i] for i in axes))
    flat = reshape(transpose(x, axes=rest + axes), shape=flat_shape)
    tangent = reshape(transpose(t, axes=rest + axes), shape=flat_shape)
    n, axis = flat_shape[-1], len(kept)
    if n == 0:
        return None
    ones = full((*kept, 1), 1, x.dtype)
    before = concatenate(ones, take_slice(cumprod(flat, axis=axis, reverse=False), axis, 0, n - 1), axis=axis)
    after = concatenate(take_slice(cumprod(flat, axis=axis, reverse=True), axis, 1, n), ones, axis=axis)
    return sum_(tangent * (before * after), axes=(axis,))


prod: Primitive = Primitive(
    "prod",
    in_float32(lambda x, axes: np.multiply.reduce(x, axis=axes, dtype=x.dtype)),
    reduced_abstract("prod"),
    jvp=(_prod_jvp,),
    batch=reduced_batch("prod"),
    cost=reduced_cost,
    takes=SUMMED,
)

# --- extremes


def _extreme_jvp(t: Tensor, out: Tensor, x: Tensor, axes: Axes) -> Tensor:
    winners = elementwise.astype(x == keep(out, x.shape, axes), dtype=x.dtype)
    share = winners / keep(sum_(winners, axes=axes), x.shape, axes)
    return sum_(t * share, axes=axes)


max_: Primitive = Primitive(
    "max",
    lambda x, axes: np.maximum.reduce(x, axis=axes),
    reduced_abstract("max", empty=False),
    jvp=(_extreme_jvp,),
    batch=reduced_batch("max"),
    cost=reduced_cost,
    single=1 << 17,
    takes=elementwise.of_kinds(elementwise.REAL),
)
min_: Primitive = Primitive(
    "min",
    lambda x, axes: np.minimum.reduce(x, axis=axes),
    reduced_abstract("min", empty=False),
    jvp=(_extreme_jvp,),
    batch=reduced_batch("min"),
    cost=reduced_cost,
    single=1 << 17,
    takes=elementwise.of_kinds(elementwise.REAL),
)
any_: Primitive = Primitive(
    "any",
    lambda x, axes: np.any(x, axis=axes),
    reduced_abstract("any", bool_),
    jvp=(ZERO,),
    batch=reduced_batch("any"),
    cost=reduced_cost,
    takes=elementwise.of_kinds(elementwise.ANY),
)
all_: Primitive = Primitive(
    "all",
    lambda x, axes: np.all(x, axis=axes),
    reduced_abstract("all", bool_),
    jvp=(ZERO,),
    batch=reduced_batch("all"),
    cost=reduced_cost,
    takes=elementwise.of_kinds(elementwise.ANY),
)


def _argreduced_abstract(name: str) -> Callable[..., Aval]:
    reduced = reduced_abstract(name, int64, empty=False)
    return lambda x, axis: reduced(x, (axis,))


argmax: Primitive = Primitive(
    "argmax",
    lambda x, axis: np.argmax(x, axis=axis),
    _argreduced_abstract("argmax"),
    jvp=(ZERO,),
    batch=lambda args, batched, axis: argmax(args[0], axis=axis + 1),
    cost=reduced_cost,
)
argmin: Primitive = Primitive(
    "argmin",
    lambda x, axis: np.argmin(x, axis=axis),
    _argreduced_abstract("argmin"),
    jvp=(ZERO,),
    batch=lambda args, batched, axis: argmin(args[0], axis=axis + 1),
    cost=reduced_cost,
)

# --- running forms


def _running(f: Rule) -> Rule:
    """A running form from either end; as in sums, half precision is accumulated in float32."""

    def impl(x: Array, axis: int, reverse: bool) -> Array:
        out = f(np.flip(x, axis) if reverse else x, axis=axis, dtype=x.dtype)
        return np.flip(out, axis) if reverse else out

    return in_float32(impl)


def _same(x: Shaped, axis: int, reverse: bool) -> Aval:
    return Aval(x.shape, x.dtype)


cumsum: Primitive = Primitive(
    "cumsum",
    _running(np.add.accumulate),
    _same,
    jvp=(LINEAR,),
    transpose=(lambda ct, x, axis, reverse: cumsum(ct, axis=axis, reverse=not reverse),),
    batch=lambda args, batched, axis, reverse: cumsum(args[0], axis=axis + 1, reverse=reverse),
)


def _cumprod_jvp(t: Tensor, out: Tensor, x: Tensor, axis: int, reverse: bool) -> Tensor:
    """The product rule (p, t) (q, u) = (pq, tq + pu) as a scan of log2(n) shifted multiplications: no division."""
    n = x.shape[axis]
    products, tangents, shift = x, t, 1
    while shift < n:
        moved_p = _shifted(products, axis, shift, reverse, 1)
        moved_t = _shifted(tangents, axis, shift, reverse, 0)
        tangents = moved_t * products + tangents * moved_p
        products = moved_p * products
        shift *= 2
    return tangents


def _shifted(x: Tensor, axis: int, shift: int, reverse: bool, fill: int) -> Tensor:
    n = x.shape[axis]
    ends = full((*x.shape[:axis], shift, *x.shape[axis + 1 :]), fill, x.dtype)
    if reverse:
        return concatenate(take_slice(x, axis, shift, n), ends, axis=axis)
    return concatenate(ends, take_slice(x, axis, 0, n - shift), axis=axis)


cumprod: Primitive = Primitive(
    "cumprod",
    _running(np.multiply.accumulate),
    _same,
    jvp=(_cumprod_jvp,),
    batch=lambda args, batched, axis, reverse: cumprod(args[0], axis=axis + 1, reverse=reverse),
)


def _running_extreme(name: str, f: Rule) -> Primitive:
    """The largest or smallest element so far. Its derivative is that of the last element that was it."""

    def abstract(x: Shaped, axis: int, reverse: bool) -> Aval:
        elementwise.check_kind(name, elementwise.REAL, x)
        return Aval(x.shape, x.dtype)

    def jvp(t: Tensor, out: Tensor, x: Tensor, axis: int, reverse: bool) -> Tensor:
        return along_axis(t, places_of_extremes(x, out, axis, reverse), axis)

    def batch(args: list[Tensor], batched: list[bool], axis: int, reverse: bool) -> Tensor:
        return primitive(args[0], axis=axis + 1, reverse=reverse)

    primitive = Primitive(name, _running(f), abstract, jvp=(jvp,), batch=batch)
    return primitive


cummax: Primitive = _running_extreme("cummax", np.maximum.accumulate)
cummin: Primitive = _running_extreme("cummin", np.minimum.accumulate)


def _counter(x: Tensor, axis: int) -> Tensor:
    n = x.shape[axis]
    column = reshape(iota(size=n, dtype=int64), shape=(n,) + (1,) * (x.ndim - axis - 1))
    return broadcast_to(column, shape=x.shape)


def places_of_extremes(x: Tensor, running: Tensor, axis: int, reverse: bool) -> Tensor:
    """Where the running largest or smallest elements stand: the last place at which an element was equal to it."""
    number = _counter(x, axis)
    new = elementwise.bitwise_or(x == running, elementwise.isnan(x))
    if reverse:
        return cummin(elementwise.where(new, number, full((), x.shape[axis], int64)), axis=axis, reverse=True)
    return cummax(elementwise.where(new, number, full((), 0, int64)), axis=axis, reverse=False)


def along_axis(x: Tensor, places: Tensor, axis: int) -> Tensor:
    """The elements of x at places along one axis; both have one shape."""
    index = [places if a == axis else _counter(x, a) for a in range(x.ndim)]
    return gather(x, *index, axes=tuple(range(x.ndim)))


def _log_running_jvp(t: Tensor, out: Tensor, x: Tensor, axis: int, reverse: bool) -> Tensor:
    """t_j = c_j t_{j-1} + (1 - c_j) t_j with the share c of what was there before: no number leaves [0, 1]."""
    n = x.shape[axis]
    if n < 2:
        return t
    before = _shifted(out, axis, 1, reverse, 0)
    share, rest = elementwise.share_of_sum(before, x, out), elementwise.share_of_sum(x, before, out)
    first = _counter(x, axis) == (n - 1 if reverse else 0)
    share = elementwise.where(first, zeros_like(x), share)
    tangents, shift = t * elementwise.where(first, ones_like(x), rest), 1
    while shift < n:
        tangents = tangents + share * _shifted(tangents, axis, shift, reverse, 0)
        share = share * _shifted(share, axis, shift, reverse, 0)
        shift *= 2
    return tangents


def _floating(x: Shaped, axis: int, reverse: bool) -> Aval:
    elementwise.check_kind("logcumsumexp", elementwise.FLOATING, x)
    return Aval(x.shape, x.dtype)


logcumsumexp: Primitive = Primitive(
    "logcumsumexp",
    _running(np.logaddexp.accumulate),
    _floating,
    jvp=(_log_running_jvp,),
    batch=lambda args, batched, axis, reverse: logcumsumexp(args[0], axis=axis + 1, reverse=reverse),
)
