"""Primitives that make tensors from nothing: a constant, and the numbers 0, 1, 2, ..."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar
from typing import NoReturn

import numpy as np

from ..core.dtypes import DType, bool_, is_complex
from ..core.errors import ShapeError, SizeError
from ..core.primitive import Aval, Primitive, Shape
from ..core.room import GIBIBYTE, check_room
from ..core.tensor import Tensor
from ..core.typing import Array, Number, Shaped

# the bytes and the number of tensors that are left, if they are bounded
_budget: ContextVar[list[int] | None] = ContextVar("budget", default=None)


@contextlib.contextmanager
def at_most(nbytes: int, count: int) -> Iterator[None]:
    """Let the tensors that are made from nothing inside be so many, with so many bytes, for sizes that a file names.

    >>> from wonderland import zeros
    >>> with at_most(1000, 10):
    ...     zeros((1000,))
    Traceback (most recent call last):
        ...
    wonderland.errors.SizeError: zeros: a float32 tensor of shape (1000,) is more than there should be.
    ...
    """
    token = _budget.set([nbytes, count])
    try:
        yield
    finally:
        _budget.reset(token)


def check_size(name: str, shape: Shape, dtype: DType) -> None:
    """Refuse negative sizes, and a tensor larger than the machine's memory, or than what `at_most` has left."""
    if any(n < 0 for n in shape):
        raise ShapeError(f"{name}: the shape {shape} has a negative size.", "sizes of 0 or more")
    nbytes = math.prod(shape) * dtype.itemsize
    budget = _budget.get()
    if budget is not None:
        budget[0] -= nbytes
        budget[1] -= 1
        if min(budget) < 0:
            raise SizeError(f"{name}: a {dtype} tensor of shape {shape} is more than there should be.", "other sizes")
    if nbytes > GIBIBYTE:  # writing the message takes longer than most tensors
        what = f"a {dtype} tensor of shape {shape} needs"
        check_room(name, nbytes, what, "a smaller shape, or a loop over parts of it")


def _full_abstract(value: Number, shape: Shape, dtype: DType) -> Aval:
    check_size("full", shape, dtype)
    return Aval(shape, dtype)


def _full(value: Number, shape: Shape, dtype: DType) -> Array:
    if not shape and _budget.get() is None:
        return np.array(value, dtype)
    check_size("full", shape, dtype)
    return np.full(shape, value, dtype)


def _no_batch(*args: object, **params: object) -> NoReturn:
    raise AssertionError("a primitive without arguments is never batched")


_full_primitive: Primitive = Primitive("full", _full, _full_abstract, batch=_no_batch, free=True)


def full(shape: Shape, value: Number, dtype: DType) -> Tensor:
    """A constant tensor; `value` is a Python number."""
    return _full_primitive(shape=shape, value=value, dtype=dtype)


def _iota_abstract(size: int, dtype: DType) -> Aval:
    check_size("iota", (size,), dtype)
    return Aval((size,), dtype)


def _iota(size: int, dtype: DType) -> Array:
    check_size("iota", (size,), dtype)
    return np.arange(size).astype(dtype)


iota: Primitive = Primitive("iota", _iota, _iota_abstract, batch=_no_batch, free=True)


def full_like(x: Shaped, value: Number) -> Tensor:
    return full(x.shape, value, x.dtype)


def zeros_like(x: Shaped) -> Tensor:
    return full(x.shape, _number(0, x.dtype), x.dtype)


def ones_like(x: Shaped) -> Tensor:
    return full(x.shape, _number(1, x.dtype), x.dtype)


def _number(value: int, dtype: DType) -> Number:
    if dtype == bool_:
        return bool(value)
    if is_complex(dtype):
        return complex(value)
    return value if dtype.kind in "iu" else float(value)
