"""Questions about element types, as in the Array API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from .. import dtypes
from ..dtypes import DType, as_dtype, is_complex, is_floating, is_integer, promote_types, real_of, with_scalar
from ..errors import DTypeError
from .conversion import as_operand, scalar_kind


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that an operation on these tensors, dtypes and Python numbers gives.

    >>> import wonderland as wl
    >>> wl.result_type(wl.int64, wl.float32)
    dtype('float32')
    """
    common: DType | None = None
    kind = -1
    for item in arrays_and_dtypes:
        if isinstance(item, (np.dtype, type, str)):
            found: Any = as_dtype(item)
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
        return (dtypes.bool_, dtypes.default_int, dtypes.default_float, dtypes.default_complex)[kind]
    return with_scalar(common, kind) if kind >= 0 else common


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether values of one type can become the other without loss of kind or range."""
    source = from_.dtype if hasattr(from_, "dtype") and not isinstance(from_, np.dtype) else as_dtype(from_)
    target = as_dtype(to)
    if dtypes.bfloat16 in (source, target):
        return promote_types(source, target) == target
    return bool(np.can_cast(source, target))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric", a dtype, or a tuple of these."""
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


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


@dataclass(frozen=True)
class IntInfo:
    """The limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating type (of the parts, for a complex one)."""
    dtype = type.dtype if hasattr(type, "dtype") and not isinstance(type, np.dtype) else as_dtype(type)
    if not dtypes.is_inexact(dtype):
        raise DTypeError(f"finfo: {dtype} is not a floating type.", "wl.iinfo")
    info = ml_dtypes.finfo(real_of(dtype))
    return FloatInfo(int(info.bits), float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), real_of(dtype))


def iinfo(type: Any, /) -> IntInfo:
    """The limits of an integer type."""
    dtype = type.dtype if hasattr(type, "dtype") and not isinstance(type, np.dtype) else as_dtype(type)
    if not is_integer(dtype):
        raise DTypeError(f"iinfo: {dtype} is not an integer type.", "wl.finfo")
    info = np.iinfo(dtype)
    return IntInfo(info.bits, int(info.max), int(info.min), dtype)
