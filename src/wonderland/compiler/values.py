"""What the compiler knows of a value: a strided view of a buffer, or an expression that has not been stored yet.

Reshapes, transposes, broadcasts and slices change the strides of views and pass through expressions to the views inside
them, so they cost nothing at run time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import DType

Shape = tuple[int, ...]


class Buffer:
    """A contiguous piece of memory: an argument, a result, a constant, or a part of the arena."""

    __slots__ = ("base", "data", "dtype", "kind", "offset", "position", "size")

    def __init__(self, kind: str, size: int, dtype: DType, position: int = 0, data: Any = None) -> None:
        # "input", "output", "constant", "arena"; "carry": the state of a loop, "moving": a step of the sequence `base`,
        # "word": a number in the table itself, "status": notes of bad indices
        self.kind = kind
        self.size = size
        self.dtype = dtype
        self.position = position  # of an input or output
        self.data = data  # of a constant
        self.offset = 0  # of an arena buffer, in bytes
        self.base: Buffer | None = None

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


class View:
    """Elements of a buffer at offset + sum(stride * index)."""

    __slots__ = ("buffer", "offset", "shape", "strides")

    def __init__(self, buffer: Buffer, shape: Shape, strides: Shape, offset: int = 0) -> None:
        self.buffer = buffer
        self.shape = shape
        self.strides = strides
        self.offset = offset

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def is_contiguous(self) -> bool:
        return self.offset == 0 and self.buffer.size == math.prod(self.shape) and dense(self.shape, self.strides)


def strides_of(shape: Shape) -> Shape:
    """The strides of a contiguous array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def dense(shape: Shape, strides: Shape) -> bool:
    """Whether elements follow each other without gaps."""
    return all(n == 1 or s == c for n, s, c in zip(shape, strides, strides_of(shape), strict=True))


def whole(buffer: Buffer, shape: Shape) -> View:
    return View(buffer, shape, strides_of(shape))


# What operations cost, in additions, where it is not about one.
COSTS = dict.fromkeys(["divide", "sqrt", "tan", "hypot"], 4) | dict.fromkeys(
    ["exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "tanh", "sigmoid", "sin", "cos", "erf", "erfc", "power"]
    + ["asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "erfinv", "logaddexp"]
    + ["floor_divide", "remainder", "checked floor_divide", "checked remainder", "checked power"],
    10,
)


class Op:
    """An elementwise operation that has not been computed; its arguments have its shape (or are scalars)."""

    __slots__ = ("args", "dtype", "name", "shape", "sources", "stored", "visited", "wanted", "weight")

    def __init__(self, name: str, args: list[Value], shape: Shape, dtype: DType) -> None:
        self.name = name
        self.args = args
        self.shape = shape
        self.dtype = dtype
        self.stored: View | None = None  # where a kernel puts it
        self.wanted: View | None = None  # where it should be put
        self.sources: list[View] | None = None  # the views inside, once somebody asked
        self.visited = -1  # when it was last looked at, see `Schedule.settled`
        self.weight: int = COSTS.get(name, 1) + sum(a.weight for a in args if isinstance(a, Op))  # to compute it all


class Const:
    """One number for all elements."""

    __slots__ = ("dtype", "shape", "value")

    def __init__(self, value: Any, dtype: DType, shape: Shape) -> None:
        self.value = value
        self.dtype = dtype
        self.shape = shape


class Counter:
    """The index along one axis: 0, 1, 2, ... scaled and shifted."""

    __slots__ = ("dtype", "scales", "shape", "start")

    def __init__(self, shape: Shape, scales: Shape, start: int, dtype: DType) -> None:
        self.shape = shape
        self.scales = scales  # per axis: value = start + sum(scale * index)
        self.start = start
        self.dtype = dtype


class Hole:
    """A value that the routine that uses it computes by itself: a product, a reduction of its row.

    Broadcasting a hole gives another one with the same source; no other view of it can be taken.
    """

    __slots__ = ("dtype", "shape", "source")

    def __init__(self, shape: Shape, dtype: DType, source: Hole | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.source: Hole = self if source is None else source


class Take:
    """Elements of a view at computed places: the named axes are indexed by values, the others by the position itself.

    For the named axes `view.strides` is used with the index values; `rest` gives the strides of the remaining axes
    spread over the axes of the result, so that no shape of the gathered block is needed.
    """

    __slots__ = ("dtype", "indices", "label", "rest", "shape", "sizes", "steps", "view")

    def __init__(
        self, view: View, indices: list[Value], steps: Shape, sizes: Shape, rest: Shape, shape: Shape, label: View
    ) -> None:
        self.view = view
        self.indices = indices  # integer values of the result's shape
        self.steps = steps  # the stride of each indexed axis
        self.sizes = sizes  # and its size: an index out of range is an error
        self.rest = rest  # per axis of the result, the stride of what is not indexed
        self.shape = shape
        self.dtype = view.dtype
        self.label = label  # where the routine leaves a bad index


Value = View | Op | Const | Counter | Hole | Take


# --- views of values. Each returns None when the view cannot be expressed with strides.


def broadcast(value: Value, shape: Shape) -> Value:
    if value.shape == shape:
        return value
    extra = len(shape) - len(value.shape)
    grown = [extra + i for i, n in enumerate(value.shape) if n == 1 and shape[extra + i] != 1]

    def strides(old: Shape) -> Shape:
        new = [0] * extra + list(old)
        for i in grown:
            new[i] = 0
        return tuple(new)

    return _mapped(value, shape, strides, 0)


def transposed(value: Value, axes: tuple[int, ...]) -> Value:
    return _mapped(value, tuple(value.shape[a] for a in axes), lambda s: tuple(s[a] for a in axes), 0)


def sliced(value: Value, index: Any, shape: Shape) -> Value:
    triples = [slice(*t).indices(n) for t, n in zip(index, value.shape, strict=True)]
    starts = [start for start, _, _ in triples]
    steps = [step for _, _, step in triples]
    return _mapped(value, shape, lambda s: tuple(a * b for a, b in zip(s, steps, strict=True)), starts)


def _mapped(value: Value, shape: Shape, strides: Any, starts: Any, done: dict[int, Value] | None = None) -> Value:
    """Apply a change of strides to every view inside a value; what is shared stays shared."""
    done = {} if done is None else done
    if id(value) not in done:
        done[id(value)] = _mapped_once(value, shape, strides, starts, done)
    return done[id(value)]


def _mapped_once(value: Value, shape: Shape, strides: Any, starts: Any, done: dict[int, Value]) -> Value:
    def moved(old: Shape) -> int:
        return sum(a * b for a, b in zip(starts, old, strict=True)) if starts else 0

    if isinstance(value, Const):
        return Const(value.value, value.dtype, shape)
    if isinstance(value, View):
        return View(value.buffer, shape, strides(value.strides), value.offset + moved(value.strides))
    if isinstance(value, Counter):
        return Counter(shape, strides(value.scales), value.start + moved(value.scales), value.dtype)
    if isinstance(value, Hole):
        return Hole(shape, value.dtype, value.source)  # only ever broadcast
    if isinstance(value, Take):
        view = value.view
        view = View(view.buffer, view.shape, view.strides, view.offset + moved(value.rest))
        indices = [_mapped(i, shape, strides, starts, done) for i in value.indices]
        return Take(view, indices, value.steps, value.sizes, strides(value.rest), shape, value.label)
    return Op(value.name, [_mapped(a, shape, strides, starts, done) for a in value.args], shape, value.dtype)


def reshaped(value: Value, shape: Shape, done: dict[int, Value | None] | None = None) -> Value | None:
    """The value in another shape, or None where that needs a copy."""
    done = {} if done is None else done
    if id(value) not in done:
        done[id(value)] = _reshaped_once(value, shape, done)
    return done[id(value)]


def _reshaped_once(value: Value, shape: Shape, done: dict[int, Value | None]) -> Value | None:
    if isinstance(value, Const):
        return Const(value.value, value.dtype, shape)
    if isinstance(value, View):
        strides = reshape_strides(value.shape, value.strides, shape)
        return None if strides is None else View(value.buffer, shape, strides, value.offset)
    if isinstance(value, Counter):
        scales = reshape_strides(value.shape, value.scales, shape)
        return None if scales is None else Counter(shape, scales, value.start, value.dtype)
    if isinstance(value, Hole):
        return None
    inside = value.indices if isinstance(value, Take) else value.args
    found = [reshaped(a, shape, done) for a in inside]
    args = [a for a in found if a is not None]
    if len(args) < len(inside):
        return None
    if isinstance(value, Op):
        return Op(value.name, args, shape, value.dtype)
    rest = reshape_strides(value.shape, value.rest, shape)
    return None if rest is None else Take(value.view, args, value.steps, value.sizes, rest, shape, value.label)


def regrouped(value: Value, groups: list[list[int]], done: dict[int, Value]) -> Value:
    """The value with one axis for every group of axes that step evenly: the others have size 1."""

    def strides(old: Shape) -> Shape:
        return tuple(old[group[-1]] for group in groups)

    shape = tuple(math.prod(value.shape[a] for a in group) for group in groups)
    return _mapped(value, shape, strides, 0, done)


def replaced(value: Value, new: Callable[[Value], Value | None], done: dict[int, Value] | None = None) -> Value:
    """The value with parts exchanged: `new(part)` is what stands for a part, None to look inside it."""
    done = {} if done is None else done
    if id(value) not in done:
        found = new(value)
        if found is None:
            found = value
            if isinstance(value, Op):
                args = [replaced(a, new, done) for a in value.args]
                if any(a is not b for a, b in zip(args, value.args, strict=True)):
                    found = Op(value.name, args, value.shape, value.dtype)
                    found.stored, found.wanted = value.stored, value.wanted
            elif isinstance(value, Take):
                indices = [replaced(i, new, done) for i in value.indices]
                if any(a is not b for a, b in zip(indices, value.indices, strict=True)):
                    found = Take(value.view, indices, value.steps, value.sizes, value.rest, value.shape, value.label)
        done[id(value)] = found
    return done[id(value)]


def reshape_strides(old: Shape, strides: Shape, new: Shape) -> Shape | None:
    """The strides of a reshaped view, if it needs no copy."""
    if math.prod(old) == 0:
        return strides_of(new)
    # groups of adjacent axes that step evenly through memory
    kept = [(n, s) for n, s in zip(old, strides, strict=True) if n != 1]
    result: list[int] = [0] * len(new)
    i = 0
    j = 0
    while i < len(kept) or j < len(new):
        if j < len(new) and new[j] == 1:
            result[j] = 0
            j += 1
            continue
        if i >= len(kept):
            break
        size, last = kept[i]
        total = new[j]
        first_j = j
        j += 1
        while size != total:
            if size < total:
                i += 1
                n, s = kept[i]
                if last != s * n:
                    return None
                size, last = size * n, s
            else:
                while j < len(new) and new[j] == 1:
                    j += 1
                total *= new[j]
                j += 1
        step = last
        for k in range(j - 1, first_j - 1, -1):
            if new[k] != 1:
                result[k] = step
                step *= new[k]
        i += 1
    return tuple(result)


def parts(value: Value) -> list[Value]:
    """A value and everything inside it, each once, arguments before what they are arguments of."""
    found: dict[int, Value] = {}

    def visit(value: Value) -> None:
        if id(value) in found:
            return
        if isinstance(value, Op):
            for a in value.args:
                visit(a)
        elif isinstance(value, Take):
            for i in value.indices:
                visit(i)
        found[id(value)] = value

    visit(value)
    return list(found.values())


def leaves(value: Value) -> list[View]:
    """The views that an expression reads, each once."""
    if isinstance(value, View):
        return [value]
    if isinstance(value, Op):
        if value.sources is None:
            value.sources = list({id(v): v for a in value.args for v in leaves(a)}.values())
        return value.sources
    if isinstance(value, Take):
        return [value.view, value.label, *[v for i in value.indices for v in leaves(i)]]
    return []


def accesses(value: Value) -> list[Shape]:
    """The strides of everything inside a value."""
    found: list[Shape] = []
    for part in parts(value):
        if isinstance(part, View):
            found.append(part.strides)
        elif isinstance(part, Counter):
            found.append(part.scales)
        elif isinstance(part, Take):
            found.append(part.rest)
    return found


def as_array(view: View, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A NumPy array over a view, given the flat memory of its buffer."""
    item = view.dtype.itemsize
    return np.lib.stride_tricks.as_strided(memory[view.offset :], view.shape, tuple(s * item for s in view.strides))
