"""Sums over the entries of a line: what sparse matrices and graphs are computed with.

The nonzeros of a matrix are m *entries*, in any order. Which of them lie in each *line* (a row, or a column) is told by
integer tensors, which are arguments like others and have no derivative:

    ptr    (lines + 1,)  the entries of line i are order[ptr[i]], .., order[ptr[i + 1] - 1]
    owner  (m,)          the line of entry e
    order  (m,)          the entries, line by line; with the parameter `in_order` it is 0, 1, 2, .. and is not read
    other  (m,)          the place of entry order[k] along the other axis: the column, where lines are rows

`segment_sum`, `segment_max` and `segment_min` combine what belongs to each line, `take_lines` gives every entry what
its line has, `sparse_matmul` multiplies by the matrix with given values, and `sampled_matmul` computes the entries of a
product of two dense matrices. The first and the last two pairs are each other's transposes. A sum has the terms of its
own line and nothing else, so a NaN elsewhere does not reach it; a line without entries gives 0 (-inf, inf). `ptr` that
does not rise, or an index out of range, raises; negative indices count from the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..core.dtypes import DType, bool_, float32, int64, is_complex, is_floating, is_half, is_integer
from ..core.errors import DTypeError, IndexOutOfRange, ShapeError
from ..core.primitive import LINEAR, ZERO, Aval, Primitive, Rule
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .creation import full, iota
from .elementwise import astype, where
from .indexing import out_of_range
from .structure import broadcast_to, concatenate, reshape, take_slice, transpose

Pair = tuple[bool, bool]  # of a property of the rows, and of the columns
AT_ONCE = 1 << 18  # elements that NumPy works on: they stay in its caches, and memory stays that of the result


# --- what NumPy computes


def wrong_line(name: str, line: int, entries: int) -> IndexOutOfRange:
    return IndexOutOfRange(
        f"{name}: the entries of line {line} are no range within the {entries} entries.",
        f"ptr that rises from 0 to {entries}",
    )


def _taken(name: str, x: Array, index: Array) -> Array:
    try:
        return np.take(x, index, axis=0)
    except IndexError:
        bad = (index < -x.shape[0]) | (index >= x.shape[0])
        raise out_of_range(name, x.shape, 0, index[bad][0]) from None


def _blocks(name: str, ptr: Array, entries: int, row: int) -> Iterator[tuple[int, int]]:
    """Ranges of lines with some hundred thousand elements in their entries."""
    bad = (ptr[:-1] < 0) | (ptr[1:] < ptr[:-1]) | (ptr[1:] > entries)
    if np.any(bad):
        raise wrong_line(name, int(np.argmax(bad)), entries)
    first, lines, room = 0, len(ptr) - 1, max(AT_ONCE // max(row, 1), 1)
    while first < lines:
        last = int(np.searchsorted(ptr, ptr[first] + room, side="right")) - 1
        last = min(max(last, first + 1), lines)
        yield first, last
        first = last


def _combined(combine: np.ufunc, terms: Array, ptr: Array, out: Array) -> None:
    """out[i] = the terms of line i, combined; what has none is left as it is. `terms` begin with those of line 0."""
    some = ptr[:-1] < ptr[1:]
    if np.any(some):
        out[some] = combine.reduceat(terms, (ptr[:-1] - ptr[0])[some], axis=0)


def _segments(name: str, combine: np.ufunc, x: Array, ptr: Array, order: Array, in_order: bool) -> Array:
    wide = x.dtype if not is_half(x.dtype) else float32
    ptr = ptr.astype(np.int64)
    out = np.full((len(ptr) - 1, *x.shape[1:]), of_nothing(name, x.dtype), wide)
    for first, last in _blocks(name, ptr, x.shape[0], math.prod(x.shape[1:])):
        here = slice(ptr[first], ptr[last])
        terms = x[here] if in_order else _taken(name, x, order[here])
        _combined(combine, terms.astype(wide, copy=False), ptr[first : last + 1], out[first:last])
    return out.astype(x.dtype, copy=False)


def of_nothing(name: str, dtype: DType) -> float:
    """What a line without entries gives."""
    if name == "segment_sum" or dtype == bool_:
        return name == "segment_min"
    if is_floating(dtype):
        return -math.inf if name == "segment_max" else math.inf
    return int(np.iinfo(dtype).min if name == "segment_max" else np.iinfo(dtype).max)


# --- lines of a tensor


def _check_lines(name: str, entries: int | None, ptr: Shaped, *others: Shaped) -> None:
    for index in (ptr, *others):
        if not is_integer(index.dtype):
            raise DTypeError(f"{name}: an index is {index.dtype}.", "integer indices")
        if index.ndim != 1:
            raise ShapeError(f"{name}: an index has shape {index.shape}.", "indices with one axis")
    if not ptr.shape[0]:
        raise ShapeError(f"{name}: ptr is empty.", "ptr of one more element than there are lines")
    for index in others:
        if entries is not None and index.shape[0] != entries:
            raise ShapeError(f"{name}: {index.shape[0]} indices for {entries} entries.", "an index for each entry")


def _segment_abstract(name: str) -> Rule:
    def abstract(x: Shaped, ptr: Shaped, owner: Shaped, order: Shaped, in_order: bool) -> Aval:
        if not x.ndim:
            raise ShapeError(f"{name}: x is 0-d.", "x of shape (entries, ...)")
        if name != "segment_sum" and is_complex(x.dtype):
            raise DTypeError(f"{name}: {x.dtype} has no order.", "the real part, or abs(x)")
        _check_lines(name, x.shape[0], ptr, owner, order)
        return Aval((ptr.shape[0] - 1, *x.shape[1:]), x.dtype)

    return abstract


def _segment_sum(x: Array, ptr: Array, owner: Array, order: Array, in_order: bool) -> Array:
    return _segments("segment_sum", np.add, x, ptr, order, in_order)


def _segment_max(x: Array, ptr: Array, owner: Array, order: Array, in_order: bool) -> Array:
    return _segments("segment_max", np.maximum, x, ptr, order, in_order)


def _segment_min(x: Array, ptr: Array, owner: Array, order: Array, in_order: bool) -> Array:
    return _segments("segment_min", np.minimum, x, ptr, order, in_order)


def _take_lines(x: Array, ptr: Array, owner: Array, order: Array, in_order: bool) -> Array:
    return _taken("take_lines", x, owner)


def _take_lines_abstract(x: Shaped, ptr: Shaped, owner: Shaped, order: Shaped, in_order: bool) -> Aval:
    if not x.ndim or x.shape[0] != ptr.shape[0] - 1:
        raise ShapeError(f"take_lines: x of shape {x.shape} for {ptr.shape[0] - 1} lines.", "x of shape (lines, ...)")
    _check_lines("take_lines", order.shape[0], ptr, owner, order)
    return Aval((owner.shape[0], *x.shape[1:]), x.dtype)


def _extreme_jvp(
    t: Tensor, out: Tensor, x: Tensor, ptr: Tensor, owner: Tensor, order: Tensor, in_order: bool
) -> Tensor:
    """Of several largest entries of a line, each has an equal part."""
    lines = (ptr, owner, order)
    won = astype(x == take_lines(out, *lines, in_order=in_order), dtype=x.dtype)
    count = segment_sum(won, *lines, in_order=in_order)
    return segment_sum(t * (won / take_lines(count, *lines, in_order=in_order)), *lines, in_order=in_order)


def _first_to(x: Tensor, place: int) -> Tensor:
    """The first axis moved to a place."""
    axes = list(range(1, x.ndim))
    axes.insert(place, 0)
    return transpose(x, axes=tuple(axes))


def _to_first(x: Tensor, place: int) -> Tensor:
    return transpose(x, axes=(place, *[a for a in range(x.ndim) if a != place]))


def _spread(x: Tensor, size: int) -> Tensor:
    """The same for every element of a batch."""
    return broadcast_to(reshape(x, shape=(1, *x.shape)), shape=(size, *x.shape))


def _stacked(size: int, lines: list[Tensor], batched: list[bool], along: int = 0) -> list[Tensor]:
    """The lines of many patterns as those of one pattern that has them along its diagonal.

    Every pattern gets a line behind its own, which takes what is in none of them, so that lines follow each other
    without gaps. `along` is the size of the other axis, with such a place.
    """
    wide = [i if i.dtype == int64 else astype(i, dtype=int64) for i in lines]
    ptr, *others = [i if on else _spread(i, size) for i, on in zip(wide, batched, strict=True)]
    count, each = others[0].shape[1], ptr.shape[1]
    number = reshape(iota(size=size, dtype=int64), shape=(size, 1))
    total = full((1,), size * count, int64)
    made = [concatenate(reshape(ptr + number * count, shape=(size * each,)), total, axis=0)]
    for index, whole, room in zip(others, (each, count, along), (1, 0, 1), strict=False):
        counted = where(index < 0, index + (whole - room), index)
        made.append(reshape(counted + number * whole, shape=(size * count,)))
    return made


def _with_room(x: Tensor) -> Tensor:
    """A batch of lines as lines, each element of the batch with one more, of zeros."""
    size, lines, *rest = x.shape
    wide = concatenate(x, full((size, 1, *rest), 0, x.dtype), axis=1)
    return reshape(wide, shape=(size * (lines + 1), *rest))


def _without_room(x: Tensor, size: int) -> Tensor:
    apart = reshape(x, shape=(size, x.shape[0] // size, *x.shape[1:]))
    return take_slice(apart, 1, 0, apart.shape[1] - 1)


def _batch_size(args: list[Tensor], batched: list[bool]) -> int:
    return next(a.shape[0] for a, on in zip(args, batched, strict=True) if on)


def _segment_batch(name: str) -> Rule:
    def batch(args: list[Tensor], batched: list[bool], in_order: bool) -> Tensor:
        (x, *lines), size = args, _batch_size(args, batched)
        f = {"segment_sum": segment_sum, "segment_max": segment_max, "segment_min": segment_min}[name]
        if not any(batched[1:]):
            return _to_first(f(_first_to(x, 1), *lines, in_order=in_order), 1)
        x = x if batched[0] else _spread(x, size)
        flat = reshape(x, shape=(size * x.shape[1], *x.shape[2:]))
        return _without_room(f(flat, *_stacked(size, lines, batched[1:]), in_order=in_order), size)

    return batch


def _take_lines_batch(args: list[Tensor], batched: list[bool], in_order: bool) -> Tensor:
    (x, *lines), size = args, _batch_size(args, batched)
    if not any(batched[1:]):
        return _to_first(take_lines(_first_to(x, 1), *lines, in_order=in_order), 1)
    x = x if batched[0] else _spread(x, size)
    out = take_lines(_with_room(x), *_stacked(size, lines, batched[1:]), in_order=in_order)
    return reshape(out, shape=(size, out.shape[0] // size, *out.shape[1:]))


segment_sum: Primitive = Primitive(
    "segment_sum",
    _segment_sum,
    _segment_abstract("segment_sum"),
    jvp=(LINEAR, ZERO),
    transpose=(lambda ct, x, *lines, in_order: take_lines(ct, *lines, in_order=in_order), None),
    batch=_segment_batch("segment_sum"),
    cost=lambda x, *lines, in_order: math.prod(x.shape),
)
segment_max: Primitive = Primitive(
    "segment_max",
    _segment_max,
    _segment_abstract("segment_max"),
    jvp=(_extreme_jvp, ZERO),
    batch=_segment_batch("segment_max"),
    cost=lambda x, *lines, in_order: math.prod(x.shape),
)
segment_min: Primitive = Primitive(
    "segment_min",
    _segment_min,
    _segment_abstract("segment_min"),
    jvp=(_extreme_jvp, ZERO),
    batch=_segment_batch("segment_min"),
    cost=lambda x, *lines, in_order: math.prod(x.shape),
)
take_lines: Primitive = Primitive(
    "take_lines",
    _take_lines,
    _take_lines_abstract,
    jvp=(LINEAR, ZERO),
    transpose=(lambda ct, x, *lines, in_order: segment_sum(ct, *lines, in_order=in_order), None),
    batch=_take_lines_batch,
    free=True,
)

# --- products


def _sparse_matmul(values: Array, x: Array, *pattern: Array, in_order: Pair) -> Array:
    name, wide = "sparse_matmul", x.dtype if not is_half(x.dtype) else float32
    ptr, _, order, other = pattern[:4]
    ptr = ptr.astype(np.int64)
    out = np.zeros((len(ptr) - 1, *x.shape[1:]), wide)
    spread = (...,) + (None,) * (x.ndim - values.ndim)
    for first, last in _blocks(name, ptr, values.shape[0], math.prod(x.shape[1:])):
        here = slice(ptr[first], ptr[last])
        factors = values[here] if in_order[0] else _taken(name, values, order[here])
        terms = factors.astype(wide, copy=False)[spread] * _taken(name, x, other[here])
        _combined(np.add, terms, ptr[first : last + 1], out[first:last])
    return out.astype(x.dtype, copy=False)


def _check_pattern(name: str, entries: int | None, pattern: tuple[Shaped, ...]) -> None:
    entries = pattern[1].shape[0] if entries is None else entries
    _check_lines(name, entries, *pattern[:4])
    _check_lines(name, entries, *pattern[4:])


def _check_types(name: str, left: Shaped, right: Shaped) -> None:
    if left.dtype != right.dtype:
        raise DTypeError(f"{name}: {left.dtype} and {right.dtype} differ.", "operands of one dtype")


def _sparse_matmul_abstract(values: Shaped, x: Shaped, *pattern: Shaped, in_order: Pair) -> Aval:
    name = "sparse_matmul"
    _check_types(name, values, x)
    heads = values.ndim - 1
    if heads < 0 or x.ndim <= heads or values.shape[1:] != x.shape[1 : 1 + heads]:
        raise ShapeError(
            f"{name}: values of shape {values.shape} with x of shape {x.shape}.",
            "values (entries,) with x (lines, ...), or values (entries, heads) with x (lines, heads, ...)",
        )
    _check_pattern(name, values.shape[0], pattern)
    if x.shape[0] != pattern[4].shape[0] - 1:
        raise ShapeError(
            f"{name}: x of shape {x.shape} for a matrix with {pattern[4].shape[0] - 1} columns.",
            "x with a line for every column",
        )
    return Aval((pattern[0].shape[0] - 1, *x.shape[1:]), x.dtype)


def _sampled_matmul(x: Array, y: Array, *pattern: Array, heads: int, in_order: Pair) -> Array:
    name, wide = "sampled_matmul", x.dtype if not is_half(x.dtype) else float32
    rows, columns = pattern[1], pattern[5]
    kept, rest = x.shape[1 : 1 + heads], tuple(range(1 + heads, x.ndim))
    out = np.zeros((len(rows), *kept), wide)
    room = max(AT_ONCE // max(math.prod(x.shape[1:]), 1), 1)
    for first in range(0, len(rows), room):
        here = slice(first, first + room)
        left, right = _taken(name, x, rows[here]), _taken(name, y, columns[here])
        terms = left.astype(wide, copy=False) * right.astype(wide, copy=False)
        out[here] = np.add.reduce(terms, axis=rest, dtype=wide)
    return out.astype(x.dtype, copy=False)


def _sampled_matmul_abstract(x: Shaped, y: Shaped, *pattern: Shaped, heads: int, in_order: Pair) -> Aval:
    name = "sampled_matmul"
    _check_types(name, x, y)
    if x.ndim <= heads or x.shape[1:] != y.shape[1:]:
        raise ShapeError(
            f"{name}: shapes {x.shape} and {y.shape} do not fit.", "shapes that agree but for the first axis"
        )
    _check_pattern(name, None, pattern)
    for side, operand, ptr in (("rows", x, pattern[0]), ("columns", y, pattern[4])):
        if operand.shape[0] != ptr.shape[0] - 1:
            raise ShapeError(
                f"{name}: an operand of shape {operand.shape} for {ptr.shape[0] - 1} {side}.",
                "operands with a line for every row and for every column",
            )
    return Aval((pattern[1].shape[0], *x.shape[1 : 1 + heads]), x.dtype)


def _swapped(pattern: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return pattern[4:] + pattern[:4]


def _to_values(ct: Tensor, values: Shaped, x: Tensor, *pattern: Tensor, in_order: Pair) -> Tensor:
    return sampled_matmul(ct, x, *pattern, heads=values.ndim - 1, in_order=in_order)


def _to_lines(ct: Tensor, values: Tensor, x: Shaped, *pattern: Tensor, in_order: Pair) -> Tensor:
    return sparse_matmul(values, ct, *_swapped(pattern), in_order=in_order[::-1])


def _to_left(ct: Tensor, x: Shaped, y: Tensor, *pattern: Tensor, heads: int, in_order: Pair) -> Tensor:
    return sparse_matmul(ct, y, *pattern, in_order=in_order)


def _to_right(ct: Tensor, x: Tensor, y: Shaped, *pattern: Tensor, heads: int, in_order: Pair) -> Tensor:
    return sparse_matmul(ct, x, *_swapped(pattern), in_order=in_order[::-1])


def _stacked_pattern(size: int, pattern: list[Tensor], batched: list[bool]) -> list[Tensor]:
    rows, columns = pattern[:4], pattern[4:]
    return [
        *_stacked(size, rows, batched[:4], columns[0].shape[-1]),
        *_stacked(size, columns, batched[4:], rows[0].shape[-1]),
    ]


def _sparse_matmul_batch(args: list[Tensor], batched: list[bool], in_order: Pair) -> Tensor:
    (values, x, *pattern), size = args, _batch_size(args, batched)
    heads = values.ndim - 1 - batched[0]
    if not any(batched[2:]):
        if not batched[0]:  # the batch goes behind the heads, where axes are free
            out = sparse_matmul(values, _first_to(x, 1 + heads), *pattern, in_order=in_order)
            return _to_first(out, 1 + heads)
        x = x if batched[1] else _spread(x, size)  # each has values of its own, as a head has
        out = sparse_matmul(_first_to(values, 1), _first_to(x, 1), *pattern, in_order=in_order)
        return _to_first(out, 1)
    values = values if batched[0] else _spread(values, size)
    x = x if batched[1] else _spread(x, size)
    flat = reshape(values, shape=(size * values.shape[1], *values.shape[2:]))
    stacked = _stacked_pattern(size, pattern, batched[2:])
    return _without_room(sparse_matmul(flat, _with_room(x), *stacked, in_order=in_order), size)


def _sampled_matmul_batch(args: list[Tensor], batched: list[bool], heads: int, in_order: Pair) -> Tensor:
    (x, y, *pattern), size = args, _batch_size(args, batched)
    x, y = x if batched[0] else _spread(x, size), y if batched[1] else _spread(y, size)
    if not any(batched[2:]):
        out = sampled_matmul(_first_to(x, 1), _first_to(y, 1), *pattern, heads=heads + 1, in_order=in_order)
        return _to_first(out, 1)
    stacked = _stacked_pattern(size, pattern, batched[2:])
    out = sampled_matmul(_with_room(x), _with_room(y), *stacked, heads=heads, in_order=in_order)
    return reshape(out, shape=(size, out.shape[0] // size, *out.shape[1:]))


def _sparse_matmul_cost(values: Shaped, x: Shaped, *pattern: Shaped, in_order: Pair) -> int:
    return values.shape[0] * math.prod(x.shape[1:])


def _sampled_matmul_cost(x: Shaped, y: Shaped, *pattern: Shaped, heads: int, in_order: Pair) -> int:
    return pattern[1].shape[0] * math.prod(x.shape[1:])


# sparse_matmul(values, x, *rows, *columns): rows and columns are (ptr, owner, order, other) each
sparse_matmul: Primitive = Primitive(
    "sparse_matmul",
    _sparse_matmul,
    _sparse_matmul_abstract,
    jvp=(LINEAR, LINEAR, ZERO),
    transpose=(_to_values, _to_lines, None),
    batch=_sparse_matmul_batch,
    cost=_sparse_matmul_cost,
)
# sampled_matmul(x, y, *rows, *columns): x has a line for every row, y for every column
sampled_matmul: Primitive = Primitive(
    "sampled_matmul",
    _sampled_matmul,
    _sampled_matmul_abstract,
    jvp=(LINEAR, LINEAR, ZERO),
    transpose=(_to_left, _to_right, None),
    batch=_sampled_matmul_batch,
    cost=_sampled_matmul_cost,
)
