"""Reading and writing at computed places, and sums over the lines of sparse matrices, with indices checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

from ...core.dtypes import bool_, is_half
from ...primitives.indexing import Axes, out_of_range
from ...primitives.segments import Pair, of_nothing, wrong_line
from .widening import wide

if TYPE_CHECKING:
    from .lowering import Lowering


def _outside(index: jax.Array, n: int) -> jax.Array:
    index = index.astype(jnp.uint64 if index.dtype == jnp.uint64 else jnp.int64)
    return index >= n if index.dtype == jnp.uint64 else (index < -n) | (index >= n)


def _counted(index: jax.Array, n: int) -> jax.Array:
    """Indices from the start, in the narrowest type that XLA prefers; those out of range as n."""
    outside = _outside(index, n)
    index = index.astype(jnp.int64)
    found = jnp.where(outside, n, jnp.where(index < 0, index + n, index))
    short = isinstance(n, int) and n < 2**31 - 1  # a size that varies is none
    return found.astype(jnp.int32 if short else jnp.int64)


def _refuse(
    lowering: Lowering, name: str, shape: tuple[int, ...], axes: Axes, indices: tuple[jax.Array, ...], labels: str = ""
) -> None:
    for axis, index in zip(axes, indices, strict=True):
        lowering.refuse(
            _outside(index, shape[axis]),
            index,
            lambda bad, axis=axis: out_of_range(name, shape, axis, bad, labels),  # type: ignore[misc]  # one argument
        )


def _front(x: jax.Array, axes: Axes) -> jax.Array:
    return jnp.moveaxis(x, axes, range(len(axes)))


def _taken(x: jax.Array, indices: tuple[jax.Array, ...]) -> jax.Array:
    """What stands at indices of the first axes, where they are in range."""
    if not x.size:
        return jnp.zeros(indices[0].shape + x.shape[len(indices) :], x.dtype)
    places = tuple(_counted(i, n) for i, n in zip(indices, x.shape, strict=False))
    return x.at[places].get(mode="clip")


def _gather(lowering: Lowering, x: jax.Array, *indices: jax.Array, axes: Axes, labels: str = "") -> jax.Array:
    _refuse(lowering, "gather", x.shape, axes, indices, labels)
    return _taken(_front(x, axes), indices)


def _last(places: tuple[jax.Array, ...], sizes: tuple[int, ...]) -> jax.Array:
    """Which of several values that go to one place is the last: XLA may write them in any order."""
    number = jnp.arange(places[0].size, dtype=jnp.int64).reshape(places[0].shape)
    placed = jnp.full(sizes, -1, jnp.int64).at[places].max(number, mode="drop")
    return placed.at[places].get(mode="clip") == number


def _scatter(
    lowering: Lowering,
    x: jax.Array,
    updates: jax.Array,
    *indices: jax.Array,
    axes: Axes,
    mode: str,
    drop: bool = False,
    labels: str = "",
) -> jax.Array:
    if not drop:
        _refuse(lowering, "scatter", x.shape, axes, indices, labels)
    if not updates.size or not x.size:
        return x
    sizes = tuple(x.shape[a] for a in axes)
    places = tuple(_counted(i, n) for i, n in zip(indices, sizes, strict=True))
    if len(places) > 1:  # what is out of range along one axis is out of range
        out = jnp.zeros(places[0].shape, bool)
        for place, n in zip(places, sizes, strict=True):
            out |= place == n
        places = (jnp.where(out, sizes[0], places[0]), *places[1:])
    if mode == "set" and places[0].size > 1:
        places = (jnp.where(_last(places, sizes), places[0], sizes[0]), *places[1:])
    dtype = x.dtype
    if dtype == bool_:
        mode = {"add": "max", "multiply": "min"}.get(mode, mode)
    if mode == "add" and is_half(dtype):
        x, updates = wide(x), wide(updates)
    out_of = getattr(_front(x, axes).at[places], mode)(updates, mode="drop")
    return jnp.moveaxis(out_of, range(len(axes)), axes).astype(dtype)


# --- lines of sparse matrices


def _lines(lowering: Lowering, name: str, ptr: jax.Array, entries: int) -> tuple[jax.Array, int]:
    """The line of every place in the order of entries, or the number of lines where a place is in none."""
    ptr, count = ptr.astype(jnp.int64), ptr.shape[0] - 1
    bad = (ptr[:-1] < 0) | (ptr[1:] < ptr[:-1]) | (ptr[1:] > entries)
    lowering.refuse(bad, jnp.arange(count, dtype=jnp.int64), lambda line: wrong_line(name, int(line), entries))
    place = jnp.arange(entries, dtype=jnp.int64)
    line = jnp.searchsorted(ptr, place, side="right") - 1
    return jnp.where(line < 0, count, line), count


def _entries(lowering: Lowering, name: str, x: jax.Array, index: jax.Array, used: jax.Array) -> jax.Array:
    """x at indices; only those that are used are checked."""
    lowering.refuse(_outside(index, x.shape[0]) & used, index, lambda bad: out_of_range(name, x.shape, 0, bad))
    return _taken(x, (index,))


def _combined(name: str, terms: jax.Array, line: jax.Array, count: int) -> jax.Array:
    dtype = terms.dtype
    how = {"segment_sum": "add", "segment_max": "max", "segment_min": "min"}[name]
    if dtype == bool_ and how == "add":
        how = "max"
    start = jnp.full((count, *terms.shape[1:]), of_nothing(name, dtype), dtype)
    if not count or not terms.size:
        return start
    return getattr(start.at[line], how)(terms, mode="drop")


def _segments(name: str) -> Callable[..., jax.Array]:
    def rule(
        lowering: Lowering, x: jax.Array, ptr: jax.Array, owner: jax.Array, order: jax.Array, in_order: bool
    ) -> jax.Array:
        line, count = _lines(lowering, name, ptr, x.shape[0])
        terms = x if in_order else _entries(lowering, name, x, order, line < count)
        return _combined(name, wide(terms), line, count).astype(x.dtype)

    return rule


def _take_lines(
    lowering: Lowering, x: jax.Array, ptr: jax.Array, owner: jax.Array, order: jax.Array, in_order: bool
) -> jax.Array:
    return _entries(lowering, "take_lines", x, owner, jnp.ones(owner.shape, bool))


def _sparse_matmul(
    lowering: Lowering, values: jax.Array, x: jax.Array, *pattern: jax.Array, in_order: Pair
) -> jax.Array:
    name, (ptr, _, order, other) = "sparse_matmul", pattern[:4]
    line, count = _lines(lowering, name, ptr, values.shape[0])
    used = line < count
    factors = values if in_order[0] else _entries(lowering, name, values, order, used)
    factors = lax.expand_dims(wide(factors), range(values.ndim, x.ndim))
    terms = factors * wide(_entries(lowering, name, x, other, used))
    return _combined("segment_sum", terms, line, count).astype(x.dtype)


def _sampled_matmul(
    lowering: Lowering, x: jax.Array, y: jax.Array, *pattern: jax.Array, heads: int, in_order: Pair
) -> jax.Array:
    name, every = "sampled_matmul", jnp.ones(pattern[1].shape, bool)
    left = _entries(lowering, name, x, pattern[1], every)
    right = _entries(lowering, name, y, pattern[5], every)
    terms = wide(left) * wide(right)
    return jnp.sum(terms, axis=tuple(range(1 + heads, x.ndim)), dtype=terms.dtype).astype(x.dtype)


CHECKED: dict[str, Callable[..., jax.Array]] = {
    "gather": _gather,
    "scatter": _scatter,
    "segment_sum": _segments("segment_sum"),
    "segment_max": _segments("segment_max"),
    "segment_min": _segments("segment_min"),
    "take_lines": _take_lines,
    "sparse_matmul": _sparse_matmul,
    "sampled_matmul": _sampled_matmul,
}
