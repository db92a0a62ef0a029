"""What the compiler knows of a value: a strided view of a buffer, or an expression that has not been stored yet.

Reshapes, transposes, broadcasts and slices change the strides of views and pass through expressions to the views inside
them, so they cost nothing at run time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Sequence

import numpy as np

from ...core.dtypes import DType
from ...core.typing import Array
from .text.operations import cost_of

Shape = tuple[int, ...]
_numbers = itertools.count()


class Buffer:
    """A contiguous piece of memory: an argument, a result, a constant, or a part of the arena."""

    __slots__ = ("base", "data", "dtype", "kind", "number", "offset", "position", "size")

    def __init__(self, kind: str, size: int, dtype: DType, position: int = 0, data: Array | None = None) -> None:
        # "input", "output", "constant", "arena"; "carry": the state of a loop, "moving": a step of the sequence `base`,
        # "word": a number in the table itself, "status": notes of bad indices, "size": see `SIZE`,
        # "lasting": kept from call to call
        self.kind = kind
        self.size = size
        self.dtype = dtype
        self.position = position  # of an input or output
        self.data = data  # of a constant
        self.offset = 0  # of an arena buffer, in bytes
        self.number = next(_numbers)  # later buffers have larger ones
        self.base: Buffer | None = None

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


SIZE = Buffer("size", 1, np.dtype(np.int64))  # the size of the batch, in programs for all sizes


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


class Earlier:
    """All buffers that exist when this is made."""

    def __init__(self) -> None:
        self._end = next(_numbers)

    def __contains__(self, buffer: object) -> bool:
        return isinstance(buffer, Buffer) and buffer.number < self._end


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
        # to compute all of it, if nothing were shared: an estimate that says when an expression is small
        self.weight: int = cost_of(name) + sum(a.weight for a in args if isinstance(a, (Op, Take)))


class Const:
    """One number for all elements."""

    __slots__ = ("dtype", "shape", "value")

    def __init__(self, value: float, dtype: DType, shape: Shape) -> None:
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

    __slots__ = ("dtype", "indices", "label", "rest", "shape", "sizes", "steps", "view", "weight")

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
        self.weight: int = sum(i.weight for i in indices if isinstance(i, (Op, Take)))  # to compute the places


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

    return _mapped(value, shape, strides, ())


def transposed(value: Value, axes: tuple[int, ...]) -> Value:
    return _mapped(value, tuple(value.shape[a] for a in axes), lambda s: tuple(s[a] for a in axes), ())


def sliced(value: Value, index: Sequence[tuple[int | None, int | None, int | None]], shape: Shape) -> Value:
    triples = [slice(*t).indices(n) for t, n in zip(index, value.shape, strict=True)]
    starts = [start for start, _, _ in triples]
    steps = [step for _, _, step in triples]
    return _mapped(value, shape, lambda s: tuple(a * b for a, b in zip(s, steps, strict=True)), starts)


def interleaved(value: Value, first: int, apart: Shape) -> Value:
    """Every so many places of axes from the `first` on: the remainders of places become axes in front of these."""
    several = [i for i, d in enumerate(apart) if d > 1]
    if not several:
        return value
    last = first + len(apart)

    def put(old: Shape, near: Sequence[int], far: Sequence[int]) -> Shape:
        return (*old[:first], *(near[i] for i in several), *far, *old[last:])

    def strides(old: Shape) -> Shape:
        along = old[first:last]
        return put(old, along, [s * d for s, d in zip(along, apart, strict=True)])

    sizes = [n // d for n, d in zip(value.shape[first:last], apart, strict=True)]
    return _mapped(value, put(value.shape, apart, sizes), strides, ())


def without_repeats(value: Value, axes: Sequence[int]) -> Value:
    """The value with size 1 along those axes where it is the same everywhere.

    Besides being less work, this keeps loops away from LLVM in which one number meets an accumulator again and again by
    `and` or `or`: its value numbering does not come to an end there, and then it ends the process.
    """
    if any(isinstance(part, Hole) for part in parts(value)):
        return value
    steps = accesses(value)
    same = [a for a in axes if value.shape[a] > 1 and not any(len(s) > a and s[a] for s in steps)]
    if not same:
        return value
    index = [(0, 1 if a in same else n, 1) for a, n in enumerate(value.shape)]
    return sliced(value, index, tuple(stop for _, stop, _ in index))


def _mapped(
    value: Value,
    shape: Shape,
    strides: Callable[[Shape], Shape],
    starts: Sequence[int],
    done: dict[int, Value] | None = None,
) -> Value:
    """Apply a change of strides to every view inside a value; what is shared stays shared."""
    done = {} if done is None else done

    def moved(old: Shape) -> int:
        return sum(a * b for a, b in zip(starts, old, strict=True)) if starts else 0

    for part in parts(value, known=done):
        if isinstance(part, Const):
            made: Value = Const(part.value, part.dtype, shape)
        elif isinstance(part, View):
            made = View(part.buffer, shape, strides(part.strides), part.offset + moved(part.strides))
        elif isinstance(part, Counter):
            made = Counter(shape, strides(part.scales), part.start + moved(part.scales), part.dtype)
        elif isinstance(part, Hole):
            made = Hole(shape, part.dtype, part.source)  # only ever broadcast
        elif isinstance(part, Take):
            view = View(part.view.buffer, part.view.shape, part.view.strides, part.view.offset + moved(part.rest))
            indices = [done[id(i)] for i in part.indices]
            made = Take(view, indices, part.steps, part.sizes, strides(part.rest), shape, part.label)
        else:
            made = Op(part.name, [done[id(a)] for a in part.args], shape, part.dtype)
        done[id(part)] = made
    return done[id(value)]


def reshaped(value: Value, shape: Shape) -> Value | None:
    """The value in another shape, or None where that needs a copy."""
    done: dict[int, Value] = {}
    for part in parts(value):
        made = _reshaped(part, shape, done)
        if made is None:
            return None
        done[id(part)] = made
    return done[id(value)]


def _reshaped(part: Value, shape: Shape, done: dict[int, Value]) -> Value | None:
    """A part in another shape, given those inside it."""
    if isinstance(part, Const):
        return Const(part.value, part.dtype, shape)
    if isinstance(part, Op):
        return Op(part.name, [done[id(a)] for a in part.args], shape, part.dtype)
    if isinstance(part, Hole):
        return None
    old = part.strides if isinstance(part, View) else part.scales if isinstance(part, Counter) else part.rest
    strides = reshape_strides(part.shape, old, shape)
    if strides is None:
        return None
    if isinstance(part, View):
        return View(part.buffer, shape, strides, part.offset)
    if isinstance(part, Counter):
        return Counter(shape, strides, part.start, part.dtype)
    return Take(part.view, [done[id(i)] for i in part.indices], part.steps, part.sizes, strides, shape, part.label)


def regrouped(value: Value, groups: list[list[int]], done: dict[int, Value]) -> Value:
    """The value with one axis for every group of axes that step evenly, of size 1 for none; the others have size 1."""

    def strides(old: Shape) -> Shape:
        return tuple(old[group[-1]] if group else 0 for group in groups)

    shape = tuple(math.prod(value.shape[a] for a in group) for group in groups)
    return _mapped(value, shape, strides, (), done)


def replaced(value: Value, new: Callable[[Value], Value | None], done: dict[int, Value] | None = None) -> Value:
    """The value with parts exchanged: `new(part)` is what stands for a part, None to look inside it."""
    done = {} if done is None else done
    chosen: dict[int, Value | None] = {}

    def looked_into(part: Value) -> Sequence[Value]:
        if id(part) not in chosen:
            chosen[id(part)] = new(part)
        return inside(part) if chosen[id(part)] is None else ()

    for part in parts(value, known=done, within=looked_into):
        done[id(part)] = chosen[id(part)] or rebuilt(part, [done[id(a)] for a in inside(part)])
    return done[id(value)]


def rebuilt(value: Value, args: list[Value]) -> Value:
    """The value with other arguments, itself if they are the same."""
    if all(a is b for a, b in zip(args, inside(value), strict=True)):
        return value
    if isinstance(value, Take):
        return Take(value.view, args, value.steps, value.sizes, value.rest, value.shape, value.label)
    assert isinstance(value, Op)
    made = Op(value.name, args, value.shape, value.dtype)
    made.stored, made.wanted = value.stored, value.wanted
    return made


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


class Together:
    """Expressions that one step computes: what they share is computed, and counts, once."""

    def __init__(self) -> None:
        self.operations = 0  # in additions
        self._parts: dict[int, Value] = {}  # by id, and so that no id is used twice

    def add(self, value: Value) -> None:
        for part in parts(value, known=self._parts):
            self._parts[id(part)] = part
            self.operations += cost_of(part.name) if isinstance(part, Op) else 0


# --- walks. Expressions share parts and may be deep, so each part is visited once, and nothing recurses.


def inside(value: Value) -> Sequence[Value]:
    """What a value is computed from."""
    return value.args if isinstance(value, Op) else value.indices if isinstance(value, Take) else ()


def may_refuse(value: Value) -> bool:
    """Whether computing the value notes places that it is not defined for, see checked.py and `Take`."""
    return isinstance(value, Take) or (isinstance(value, Op) and value.name.startswith("checked "))


def parts(
    *values: Value, known: Container[int] = (), within: Callable[[Value], Sequence[Value]] | None = None
) -> list[Value]:
    """Values and everything inside them, each once, arguments before what they are arguments of.

    What is `known`, by id, is left out and not looked into; `within` says what to look at inside a value.
    """
    look = within or inside
    found: dict[int, Value] = {}
    entered: set[int] = set()  # those whose arguments come first
    waiting = list(reversed(values))
    while waiting:
        part = waiting[-1]
        key = id(part)
        if key in found or key in known:
            waiting.pop()
            continue
        args = () if key in entered else look(part)
        if args:
            entered.add(key)
            waiting.extend(reversed(args))
        else:
            found[key] = part
            waiting.pop()
    return list(found.values())


def leaves(value: Value) -> list[View]:
    """The views that an expression reads, each once."""
    if isinstance(value, View):
        return [value]
    if isinstance(value, Op) and value.sources is not None:
        return value.sources
    found: dict[int, View] = {}
    for part in parts(value, within=_unasked):
        read: Sequence[View] = ()
        if isinstance(part, View):
            read = [part]
        elif isinstance(part, Take):
            read = [part.view, part.label]
        elif isinstance(part, Op):
            read = part.sources or ()
        found.update((id(v), v) for v in read)
    views = list(found.values())
    if isinstance(value, Op):
        value.sources = views
    return views


def _unasked(value: Value) -> Sequence[Value]:
    """What is inside a value whose views nobody has asked for yet."""
    return () if isinstance(value, Op) and value.sources is not None else inside(value)


def accesses(value: Value) -> list[Shape]:
    """The strides of everything inside a value."""
    return [strides for part in parts(value) if (strides := steps_of(part)) is not None]


def steps_of(part: Value) -> Shape | None:
    """How a part by itself, whatever is inside it, steps through memory or counts; None if it does neither."""
    if isinstance(part, View):
        return part.strides
    if isinstance(part, Counter):
        return part.scales
    return part.rest if isinstance(part, Take) else None


def as_array(view: View, memory: Array) -> Array:
    """A NumPy array over a view, given the flat memory of its buffer."""
    item = view.dtype.itemsize
    return np.lib.stride_tricks.as_strided(memory[view.offset :], view.shape, tuple(s * item for s in view.strides))
