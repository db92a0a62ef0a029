"""Self-loops in a pattern of places: put there by NumPy where it is known, by array operations where it is traced."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ... import arrays, sparse
from ...core.interpreter import Tracer
from ...core.tangents import JVPTracer
from ...core.tensor import VALUES, Tensor
from ...core.typing import Array
from ...sparse import Incidence, Pattern

Made: TypeAlias = tuple[Pattern, Tensor]
# what was made of patterns, which are seen in every step of a training, as long as they live
_KNOWN: dict[tuple[int, bool], tuple[weakref.ref[Pattern], Looped]] = {}
_MADE: dict[tuple[object, ...], tuple[weakref.ref[Pattern], Array | None, Pattern | None, Tensor]] = {}


def is_known(x: Tensor) -> bool:
    """Whether the numbers of a tensor can be looked at."""
    return not isinstance(_primal(x), Tracer)


def known(x: Tensor) -> Array:
    """The numbers of a tensor, for what depends on them but has no derivative, as places do."""
    return np.asarray(_primal(x))


def _primal(x: Tensor) -> Tensor:
    """A value without its tangents; not by `stop_gradient`, which compiled functions would record."""
    while isinstance(x, JVPTracer):
        x = x.primal
    return x


@dataclass(frozen=True)
class Looped:
    """A pattern with self-loops behind its entries, and what became of these."""

    pattern: Pattern
    count: int  # self-loops that were added
    kept: Array | None = None  # which entries stayed; None: all of them
    added: Array | None = None  # whose loops were added; None: those of all nodes
    fills: Tensor | None = None  # (n,) whether an added loop was missing; None: all were
    hidden: Tensor | None = None  # (m + n,) entries that count as if they were not there; None: all are

    def with_ends(self, values: Tensor | None, ends: Tensor | float = 0.0) -> Tensor | None:
        """Values of entries (m, ...) followed by those of the loops."""
        if values is None:
            return None
        if not isinstance(ends, Tensor):
            ends = arrays.full((self.count, *values.shape[1:]), ends, dtype=values.dtype)
        elif self.added is not None:
            ends = arrays.take(ends, self.added, axis=0)
        return arrays.concat([values if self.kept is None else arrays.take(values, self.kept, axis=0), ends])


def looped(pattern: Pattern, replace: bool) -> Looped:
    """A pattern whose every node has a self-loop: the missing ones are added, or with `replace` all are made anew."""
    if not is_known(pattern.rows.owner):
        return _traced(pattern, replace)
    at = (id(pattern), replace)
    if at not in _KNOWN:
        made = _made(pattern, replace)
        _KNOWN[at] = (weakref.ref(pattern, lambda _: _KNOWN.pop(at, None)), made)  # an id is used again
    return _KNOWN[at][1]


def _made(pattern: Pattern, replace: bool) -> Looped:
    rows, cols = known(pattern.rows.owner), known(pattern.cols.owner)
    n = pattern.shape[0]
    own = rows == cols
    kept = np.flatnonzero(~own) if replace and own.any() else None
    added = np.arange(n) if replace else np.setdiff1d(np.arange(n), rows[own])
    if kept is not None:
        rows, cols = rows[kept], cols[kept]
    found = Pattern.of(np.concatenate([rows, added]), np.concatenate([cols, added]), pattern.shape)
    return Looped(found, len(added), kept, None if len(added) == n else added)


def _traced(pattern: Pattern, replace: bool) -> Looped:
    n = pattern.shape[0]
    own = pattern.rows.owner == pattern.cols.owner
    found = Pattern(_with_ends(pattern.rows, n), _with_ends(pattern.cols, n), pattern.shape)
    if replace:
        return Looped(found, n, hidden=arrays.concat([own, arrays.zeros((n,), dtype=own.dtype)]))
    there = sparse.segment_sum(arrays.astype(own, "float32"), pattern.rows)
    return Looped(found, n, fills=there == 0)


def _with_ends(line: Incidence, n: int) -> Incidence:
    """Every line with one more entry behind its own: line i with entry m + i."""
    m, nodes = line.owner.shape[0], arrays.arange(n, dtype=line.owner.dtype)
    place = arrays.arange(m, dtype=line.owner.dtype) + arrays.take(line.owner, line.order)
    ends = line.ptr[1:] + nodes
    empty = arrays.zeros((m + n,), dtype=line.owner.dtype)
    order = empty.at[place].set(line.order).at[ends].set(m + nodes)
    other = empty.at[place].set(line.other).at[ends].set(nodes)
    ptr = line.ptr + arrays.arange(n + 1, dtype=line.ptr.dtype)
    return Incidence(ptr, arrays.concat([line.owner, nodes]), order, other, False)


def is_constant(pattern: Pattern, weight: Tensor | None) -> bool:
    """Whether nothing of a matrix is traced or differentiated."""
    if isinstance(pattern.rows.owner, Tracer):
        return False
    return weight is None or (type(weight) in VALUES and not weight.requires_grad)


def once(
    how: tuple[object, ...],
    pattern: Pattern,
    weight: Tensor | None,
    make: Callable[[Pattern, Array | None], Made],
) -> Made:
    """What `make` gives for a constant matrix, computed for the first call alone."""
    buffer = None if weight is None else weight._data  # held, so that assignment to the tensor gives it another one
    at = (id(pattern), None if buffer is None else id(buffer), *how)
    if at not in _MADE:
        found, values = make(pattern, buffer)
        other = None if found is pattern else found  # a pattern that is held here would live for ever
        _MADE[at] = (weakref.ref(pattern, lambda _: _MADE.pop(at, None)), buffer, other, values)
    other, values = _MADE[at][2:]
    return (pattern if other is None else other), values
