"""Primitives that make tensors from nothing: a constant, and the numbers 0, 1, 2, ..."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..dtypes import bool_, is_complex
from ..errors import ShapeError, SizeError
from .primitive import Aval, Primitive, Shape


@functools.cache
def _memory() -> int:
    """The bytes that the machine has, or the container in which we run."""
    import contextlib
    import os

    limit = 2**63 - 1  # where the system does not say, the allocation itself will
    with contextlib.suppress(AttributeError, ValueError, OSError):
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(ValueError, OSError), open(path) as file:
            limit = min(limit, int(file.read()))
    return limit


def check_size(name: str, shape: Shape, dtype: Any) -> None:
    """Refuse negative sizes, and a tensor larger than the machine's memory."""
    if any(n < 0 for n in shape):
        raise ShapeError(f"{name}: the shape {shape} has a negative size.", "sizes of 0 or more")
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > 1 << 30 and nbytes > _memory():
        raise SizeError(
            f"{name}: a {dtype} tensor of shape {shape} needs {nbytes / 2**30:,.1f} GiB, "
            f"the machine has {_memory() / 2**30:,.1f} GiB.",
            "a smaller shape, or a loop over parts of it",
        )


def _full_abstract(value: Any, shape: Shape, dtype: Any) -> Aval:
    check_size("full", shape, dtype)
    return Aval(shape, dtype)


def _full(value: Any, shape: Shape, dtype: Any) -> Any:
    check_size("full", shape, dtype)
    return np.full(shape, value, dtype)


def _no_batch(*args: Any, **params: Any) -> Any:
    raise AssertionError("a primitive without arguments is never batched")


_full_primitive: Primitive = Primitive("full", _full, _full_abstract, batch=_no_batch)


def full(shape: Shape, value: Any, dtype: Any) -> Any:
    """A constant tensor; `value` is a Python number."""
    return _full_primitive(shape=shape, value=value, dtype=dtype)


def _iota_abstract(size: int, dtype: Any) -> Aval:
    check_size("iota", (size,), dtype)
    return Aval((size,), dtype)


def _iota(size: int, dtype: Any) -> Any:
    check_size("iota", (size,), dtype)
    return np.arange(size).astype(dtype)


iota: Primitive = Primitive("iota", _iota, _iota_abstract, batch=_no_batch)


def full_like(x: Any, value: Any) -> Any:
    return full(x.shape, value, x.dtype)


def zeros_like(x: Any) -> Any:
    return full(x.shape, _number(0, x.dtype), x.dtype)


def ones_like(x: Any) -> Any:
    return full(x.shape, _number(1, x.dtype), x.dtype)


def _number(value: int, dtype: Any) -> Any:
    if dtype == bool_:
        return bool(value)
    if is_complex(dtype):
        return complex(value)
    return value if dtype.kind in "iu" else float(value)
