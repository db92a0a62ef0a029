"""What makes, moves and combines elements along axes: creation, views, reductions, running forms, order."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import DType, bool_, is_floating, is_foreign
from ...core.primitive import Shape
from ...ir.deriving import Constant
from ...primitives.quantized import HALF, MIDDLE
from ...primitives.quantized import wide as wide_of
from ...primitives.structure import Axes, Slices
from .widening import in_float32

Rule = Callable[..., jax.Array]

# --- creation


def _full(value: complex, shape: Shape, dtype: DType) -> jax.Array:
    return jnp.full(shape, value, dtype)


def _iota(size: int, dtype: DType) -> jax.Array:
    return jnp.arange(size).astype(dtype)


def _constant(value: Constant) -> jax.Array:
    return jnp.asarray(value.tensor._data)


# --- views


def _slices(index: Slices) -> tuple[slice, ...]:
    return tuple(slice(*triple) for triple in index)


def _place(x: jax.Array, shape: Shape, index: Slices) -> jax.Array:
    """Zeros around x and between its elements."""
    backward, padding = [], []
    for axis, (n, s) in enumerate(zip(shape, _slices(index), strict=True)):
        if (
            s.start == 0 and s.step == 1 and (s.stop is None or s.stop == n)
        ):  # all of it, and perhaps of a size that varies
            padding.append((0, 0, 0))
            continue
        r = range(n)[s]
        if r.step < 0:
            backward.append(axis)
        low, high = (min(r[0], r[-1]), max(r[0], r[-1])) if len(r) else (0, n - 1)
        padding.append((low, n - 1 - high, abs(r.step) - 1) if len(r) else (0, n, 0))
    x = lax.rev(x, backward)
    return lax.pad(x, jnp.zeros((), x.dtype), padding)


# --- reductions


def _sum(x: jax.Array, axes: Axes) -> jax.Array:
    return jnp.any(x, axis=axes) if x.dtype == bool_ else jnp.sum(x, axis=axes, dtype=x.dtype)


def _prod(x: jax.Array, axes: Axes) -> jax.Array:
    return jnp.all(x, axis=axes) if x.dtype == bool_ else jnp.prod(x, axis=axes, dtype=x.dtype)


def _place_of(f: Rule) -> Rule:
    return lambda x, axis: f(x, axis=axis).astype(jnp.int64)


def _running(f: Rule) -> Rule:
    """A running form from either end; bools are counted as numbers."""

    def rule(x: jax.Array, axis: int, reverse: bool) -> jax.Array:
        if not x.size:
            return x
        if x.dtype == bool_:
            return f(x.astype(jnp.int32), axis=axis, reverse=reverse) != 0
        return f(x, axis=axis, reverse=reverse)

    return in_float32(rule)


# --- order


def _argsort(x: jax.Array, axis: int, descending: bool) -> jax.Array:
    x = x.astype(jnp.float32) if is_foreign(x.dtype) else x
    if descending:  # the reversed axis, so that equal elements keep their order
        order = jnp.argsort(jnp.flip(x, axis), axis=axis, stable=True)
        return jnp.flip(x.shape[axis] - 1 - order, axis).astype(jnp.int64)
    return jnp.argsort(x, axis=axis, stable=True).astype(jnp.int64)


def _searchsorted(ordered: jax.Array, values: jax.Array, side: str) -> jax.Array:
    def one(row: jax.Array, some: jax.Array) -> jax.Array:
        return jnp.searchsorted(row, some, side=side)

    for _ in ordered.shape[:-1]:
        one = jax.vmap(one)
    return one(ordered, values).astype(jnp.int64)


# --- matrices of few bits


def _dequantize(values: jax.Array, *scales: jax.Array, features: int, group: int, dtype: DType) -> jax.Array:
    if not scales:
        return values.astype(dtype)
    if values.dtype == jnp.uint8:
        blocks = values.reshape(*values.shape[:-1], values.shape[-1] // HALF, 1, HALF)
        both = jnp.concatenate([blocks & 15, blocks >> 4], axis=-2)
        values = both.reshape(*values.shape[:-1], -1).astype(jnp.int8)[..., :features] - jnp.int8(MIDDLE)
    kind = wide_of(dtype)
    each = jnp.repeat(scales[0].astype(kind), group, axis=-1)[..., :features]
    return (values.astype(kind) * each).astype(dtype)


def _extreme(reduce: Callable[..., jax.Array]) -> Rule:
    """NaN where there is one: beside an infinity, XLA's own reduction on processors may lose it."""

    def rule(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        found = reduce(x, axis=axes)
        if not is_floating(x.dtype):
            return found
        return jnp.where(jnp.isnan(x).any(axis=axes), jnp.asarray(np.nan, x.dtype), found)

    return rule


PLAIN: dict[str, Rule] = {
    "full": _full,
    "iota": _iota,
    "constant": _constant,
    "reshape": lambda x, shape: jnp.reshape(x, shape),
    "transpose": lambda x, axes: jnp.transpose(x, axes),
    "broadcast_to": lambda x, shape: jnp.broadcast_to(x, shape),
    "concatenate": lambda *xs, axis: jnp.concatenate(xs, axis=axis),
    "slice": lambda x, index: x[_slices(index)],
    "place": _place,
    "sum": in_float32(_sum),
    "prod": in_float32(_prod),
    "max": _extreme(jnp.max),
    "min": _extreme(jnp.min),
    "any": lambda x, axes: jnp.any(x, axis=axes),
    "all": lambda x, axes: jnp.all(x, axis=axes),
    "argmax": _place_of(jnp.argmax),
    "argmin": _place_of(jnp.argmin),
    "cumsum": _running(lax.cumsum),
    "cumprod": _running(lax.cumprod),
    "cummax": _running(lax.cummax),
    "cummin": _running(lax.cummin),
    "logcumsumexp": _running(lax.cumlogsumexp),
    "argsort": _argsort,
    "searchsorted": _searchsorted,
    "dequantize": _dequantize,
}
