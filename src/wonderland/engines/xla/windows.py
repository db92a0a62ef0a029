"""Pooling: windows that choose or add what they see are XLA's own reductions over windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import bool_, is_floating, is_half
from ...core.primitive import Shape
from ...primitives.pooling import Windows, index_dtype
from ...primitives.windows import Pairs
from .contractions import turned_padding
from .widening import in_float32


def _padded(x: jax.Array, padding: Pairs, fill: jax.Array, apart: Shape | None = None) -> jax.Array:
    """x with its spatial axes extended or cut, and with `apart` steps from one element to the next."""
    steps = (1,) * len(padding) if apart is None else apart
    around = [(low, high, step - 1) for (low, high), step in zip(padding, steps, strict=True)]
    return lax.pad(x, fill, [(0, 0, 0), *around, (0, 0, 0)])


def _all(sizes: Shape) -> Shape:
    return (1, *sizes, 1)


def _argmax(x: jax.Array, window: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> jax.Array:
    """The places of the largest elements: pairs of an element and its position are reduced, the first one wins."""
    x = x.astype(jnp.float32) if is_half(x.dtype) else x.astype(jnp.uint8) if x.dtype == bool_ else x
    least = jnp.asarray(-np.inf if is_floating(x.dtype) else np.iinfo(x.dtype).min, x.dtype)
    spatial = x.shape[1:-1]
    kind = jnp.int32 if math.prod(spatial) < 2**31 - 1 else jnp.int64  # pairs are half as large
    nowhere = jnp.asarray(math.prod(spatial), kind)
    position = jnp.arange(math.prod(spatial), dtype=kind).reshape(1, *spatial, 1)
    position = jnp.broadcast_to(position, x.shape)

    def larger(a: tuple[jax.Array, jax.Array], b: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        (x, i), (y, j) = a, b
        alike, more = x == y, y > x
        if is_floating(x.dtype):
            alike, more = alike | ((x != x) & (y != y)), more | ((y != y) & (x == x))
        other = more | (alike & (j < i))
        return jnp.where(other, y, x), jnp.where(other, j, i)

    found = lax.reduce_window(
        (_padded(x, padding, least), _padded(position, padding, nowhere)),
        (least, nowhere),
        larger,
        _all(window),
        _all(stride),
        "VALID",
        window_dilation=_all(dilation),
    )[1]
    at = jnp.unravel_index(found, spatial)
    number = jnp.zeros(found.shape, jnp.int64)
    for axis, place in enumerate(at):
        start = lax.broadcasted_iota(jnp.int64, found.shape, axis + 1) * stride[axis] - padding[axis][0]
        number = number * window[axis] + (place - start) // dilation[axis]
    return number.astype(index_dtype(window))


def _positions(index: jax.Array, spatial: Shape, windows: Windows) -> tuple[jax.Array, jax.Array]:
    """Where in all places of the input windows point, and whether there is an element."""
    window, stride, padding, dilation = windows["window"], windows["stride"], windows["padding"], windows["dilation"]
    places = jnp.unravel_index(index.astype(jnp.int64), window)
    flat, inside = jnp.zeros(index.shape, jnp.int64), jnp.ones(index.shape, bool)
    for axis, place in enumerate(places):
        start = lax.broadcasted_iota(jnp.int64, index.shape, axis + 1) * stride[axis] - padding[axis][0]
        at, n = start + place * dilation[axis], spatial[axis]
        inside &= (at >= 0) & (at < n + min(padding[axis][1], 0))
        flat = flat * n + jnp.clip(at, 0, max(n - 1, 0))
    return flat, inside & (index < math.prod(window)) & (index >= 0)


def _rows(x: jax.Array) -> jax.Array:
    """All places as one axis."""
    return x.reshape(x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1])


def _pick(x: jax.Array, index: jax.Array, **windows: Unpack[Windows]) -> jax.Array:
    flat, inside = _positions(index, x.shape[1:-1], windows)
    found = jnp.take_along_axis(_rows(x), _rows(flat), axis=1, mode="clip")
    return jnp.where(inside, found.reshape(index.shape), jnp.zeros((), x.dtype))


def _put(y: jax.Array, index: jax.Array, spatial: Shape, **windows: Unpack[Windows]) -> jax.Array:
    dtype = y.dtype
    y = y.astype(jnp.float32) if is_half(dtype) else y
    flat, inside = _positions(index, spatial, windows)
    b, c = y.shape[0], y.shape[-1]
    count = math.prod(spatial)
    flat = _rows(jnp.where(inside, flat, count))  # what is outside is dropped
    which = jnp.arange(b)[:, None, None], flat, jnp.arange(c)[None, None, :]
    out = jnp.zeros((b, count, c), y.dtype).at[which].add(_rows(y), mode="drop")
    return out.reshape(b, *spatial, c).astype(dtype)


def _sum(x: jax.Array, window: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> jax.Array:
    zero = jnp.zeros((), x.dtype)
    x = _padded(x, padding, zero)
    return lax.reduce_window(x, zero, lax.add, _all(window), _all(stride), "VALID", window_dilation=_all(dilation))


def _spread(y: jax.Array, spatial: Shape, window: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> jax.Array:
    around = turned_padding(spatial, y.shape[1:-1], window, stride, padding, dilation)
    zero = jnp.zeros((), y.dtype)
    y = _padded(y, around, zero, stride)
    out = lax.reduce_window(
        y, zero, lax.add, _all(window), _all((1,) * len(window)), "VALID", window_dilation=_all(dilation)
    )
    kept = [n + min(high, 0) for n, (_, high) in zip(spatial, padding, strict=True)]
    if any(n < whole for n, whole in zip(kept, spatial, strict=True)):  # what was cut off gets nothing
        for axis, n in enumerate(kept):
            out = jnp.where(lax.broadcasted_iota(jnp.int64, out.shape, axis + 1) < n, out, zero)
    return out


PLAIN: dict[str, Callable[..., jax.Array]] = {
    "window_argmax": _argmax,
    "window_pick": _pick,
    "window_put": _put,
    "window_sum": in_float32(_sum),
    "window_spread": in_float32(_spread),
}
