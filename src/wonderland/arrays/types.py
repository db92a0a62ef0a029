"""Questions about element types, as in the Array API."""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, as_dtype, is_complex, is_floating, is_integer, promote_types, real_of, with_scalar
from ..core.errors import DTypeError
from ..core.typing import ArrayLike, DTypeLike, Shaped
from .conversion import SCALAR_DTYPE, as_operand, scalar_kind

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]

Kind = DTypeLike | tuple["Kind", ...]  # of element types, by a name or by the types themselves


def result_type(*arrays_and_dtypes: ArrayLike | DTypeLike) -> DType:
    """The dtype that an operation on these tensors, dtypes and Python numbers gives.

    >>> import wonderland as wl
    >>> wl.result_type(wl.int64, wl.float32), wl.result_type(wl.zeros(2, dtype=wl.int8), 1.5)
    (dtype('float32'), dtype('float32'))

    Types of one kind combine as in NumPy; the highest kind (bool, integer, floating, complex) wins over the
    others, and a Python number only matters when its kind is higher than that of all tensors.
    """
    common: DType | None = None
    kind = -1
    for item in arrays_and_dtypes:
        if isinstance(item, (np.dtype, type, str)):
            found = as_dtype(item)
        else:
            item = as_operand("result_type", item)
            scalar = scalar_kind(item)
            if scalar is not None:
                kind = max(kind, scalar)
                continue
            found = item.dtype
        common = found if common is None else promote_types(common, found)
    if common is None:
        if kind < 0:
            raise DTypeError("result_type: no argument.", "tensors, dtypes or numbers")
        return SCALAR_DTYPE[kind]
    return with_scalar(common, kind) if kind >= 0 else common


def _dtype_of(x: Shaped | DTypeLike) -> DType:
    """The dtype of a tensor or array, or the dtype itself."""
    return x.dtype if hasattr(x, "dtype") and not isinstance(x, (np.dtype, type)) else as_dtype(x)


def can_cast(from_: Shaped | DTypeLike, to: DTypeLike, /) -> bool:
    """Whether combining the two types gives the second: no kind and no range is lost.

    >>> import wonderland as wl
    >>> wl.can_cast(wl.float32, wl.float64), wl.can_cast(wl.float64, wl.float32)
    (True, False)
    """
    source, target = _dtype_of(from_), as_dtype(to)
    try:
        return promote_types(source, target) == target
    except DTypeError:  # no common integer type
        return False


def isdtype(dtype: DTypeLike, kind: Kind) -> bool:
    """Whether a dtype is of a kind.

    >>> import wonderland as wl
    >>> wl.isdtype(wl.bfloat16, "real floating"), wl.isdtype(wl.int8, ("bool", wl.int8))
    (True, True)

    `kind` is "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
    "numeric", a dtype, or a tuple of these.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    found = as_dtype(dtype)
    tests = {
        "bool": found == dtypes.bool_,
        "signed integer": found in dtypes.SIGNED,
        "unsigned integer": found in dtypes.UNSIGNED,
        "integral": is_integer(found),
        "real floating": is_floating(found),
        "complex floating": is_complex(found),
        "numeric": found != dtypes.bool_,
    }
    if isinstance(kind, str):
        if kind not in tests:
            raise DTypeError(f"isdtype: {kind!r} is not a kind.", f"one of {', '.join(tests)}")
        return bool(tests[kind])
    return bool(found == as_dtype(kind))


class FloatInfo(NamedTuple):
    """The limits of a floating type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntInfo(NamedTuple):
    """The limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Shaped | DTypeLike, /) -> FloatInfo:
    """The limits of a floating type (of the parts, for a complex one).

    >>> import wonderland as wl
    >>> wl.finfo(wl.bfloat16).eps, wl.finfo(wl.float32).bits
    (0.0078125, 32)
    """
    dtype = _dtype_of(type)
    if not dtypes.is_inexact(dtype):
        raise DTypeError(f"finfo: {dtype} is not a floating type.", "wl.iinfo")
    part = real_of(dtype)
    info = ml_dtypes.finfo(part)
    return FloatInfo(
        int(info.bits), float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), part
    )


def iinfo(type: Shaped | DTypeLike, /) -> IntInfo:
    """The limits of an integer type.

    >>> import wonderland as wl
    >>> wl.iinfo(wl.int8).min, wl.iinfo(wl.uint8).max
    (-128, 255)
    """
    dtype = _dtype_of(type)
    if not is_integer(dtype):
        raise DTypeError(f"iinfo: {dtype} is not an integer type.", "wl.finfo")
    info = np.iinfo(dtype)
    return IntInfo(info.bits, int(info.max), int(info.min), dtype)
