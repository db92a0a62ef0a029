"""What the compiler knows of a value: a strided view of a buffer, or an expression that has not been stored yet.

Reshapes, transposes, broadcasts and slices change the strides of views and pass through expressions to the views inside
them, so they cost nothing at run time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import DType

Shape = tuple[int, ...]


class Buffer:
    """A contiguous piece of memory: an argument, a result, a constant, or a part of the arena."""

    __slots__ = ("data", "dtype", "kind", "offset", "position", "size")

    def __init__(self, kind: str, size: int, dtype: DType, position: int = 0, data: Any = None) -> None:
        self.kind = kind  # "input", "output", "constant" or "arena"
        self.size = size
        self.dtype = dtype
        self.position = position  # of an input or output
        self.data = data  # of a constant
        self.offset = 0  # of an arena buffer, in bytes

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
        return self.offset == 0 and self.buffer.size == math.prod(self.shape) and _dense(self.shape, self.strides)


def contiguous_strides(shape: Shape) -> Shape:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def _dense(shape: Shape, strides: Shape) -> bool:
    return all(n == 1 or s == c for n, s, c in zip(shape, strides, contiguous_strides(shape), strict=True))


def whole(buffer: Buffer, shape: Shape) -> View:
    return View(buffer, shape, contiguous_strides(shape))


class Op:
    """An elementwise operation that has not been computed; its arguments have its shape (or are scalars)."""

    __slots__ = ("args", "dtype", "name", "shape", "stored", "weight")

    def __init__(self, name: str, args: list[Value], shape: Shape, dtype: DType) -> None:
        self.name = name
        self.args = args
        self.shape = shape
        self.dtype = dtype
        self.stored: View | None = None  # where a kernel puts it
        self.weight: int = 1 + sum(a.weight for a in args if isinstance(a, Op))  # operations in the whole expression


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


Value = View | Op | Const | Counter


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


def _mapped(value: Value, shape: Shape, strides: Any, starts: Any) -> Value:
    """Apply a change of strides to every view inside a value."""
    if isinstance(value, Const):
        return Const(value.value, value.dtype, shape)
    if isinstance(value, View):
        offset = value.offset
        if starts:
            offset += sum(a * b for a, b in zip(starts, value.strides, strict=True))
        return View(value.buffer, shape, strides(value.strides), offset)
    if isinstance(value, Counter):
        start = value.start
        if starts:
            start += sum(a * b for a, b in zip(starts, value.scales, strict=True))
        return Counter(shape, strides(value.scales), start, value.dtype)
    return Op(value.name, [_mapped(a, shape, strides, starts) for a in value.args], shape, value.dtype)


def reshaped(value: Value, shape: Shape) -> Value | None:
    if isinstance(value, Const):
        return Const(value.value, value.dtype, shape)
    if isinstance(value, View):
        strides = reshape_strides(value.shape, value.strides, shape)
        return None if strides is None else View(value.buffer, shape, strides, value.offset)
    if isinstance(value, Counter):
        scales = reshape_strides(value.shape, value.scales, shape)
        return None if scales is None else Counter(shape, scales, value.start, value.dtype)
    args = [reshaped(a, shape) for a in value.args]
    if any(a is None for a in args):
        return None
    return Op(value.name, args, shape, value.dtype)  # type: ignore[arg-type]


def reshape_strides(old: Shape, strides: Shape, new: Shape) -> Shape | None:
    """The strides of a reshaped view, if it needs no copy."""
    if math.prod(old) == 0:
        return contiguous_strides(new)
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


def leaves(value: Value) -> list[View]:
    """The views that an expression reads."""
    if isinstance(value, View):
        return [value]
    if isinstance(value, Op):
        return [leaf for a in value.args for leaf in leaves(a)]
    return []


def as_array(view: View, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A NumPy array over a view, given the flat memory of its buffer."""
    item = view.dtype.itemsize
    return np.lib.stride_tricks.as_strided(memory[view.offset :], view.shape, tuple(s * item for s in view.strides))
