"""Element types and how they combine.

A dtype is a NumPy dtype object. Types of one kind combine as in NumPy; an integer combined with a floating type
takes the floating type (so `int64 + float32` is `float32`), and Python scalars take the type of the tensor.

>>> import wonderland as wl
>>> (wl.arange(3) + wl.ones(3)).dtype
dtype('float32')
>>> (wl.ones(3) * 2.5).dtype
dtype('float32')
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from .errors import DTypeError
from .typing import DTypeLike

DType = np.dtype[Any]

bool_ = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
bfloat16 = np.dtype(ml_dtypes.bfloat16)
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

default_float, default_int, default_complex = float32, int64, complex64

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
FLOATS = (float16, bfloat16, float32, float64)
COMPLEXES = (complex64, complex128)
_REAL = {complex64: float32, complex128: float64}
HALVES = frozenset((float16, bfloat16))
SHORT = (float16, bfloat16, float32)  # what `wl.autocast` converts between

# 0 bool, 1 integer, 2 floating, 3 complex: an operation's result has the highest kind of its inputs.
KIND = {bool_: 0} | dict.fromkeys(SIGNED + UNSIGNED, 1) | dict.fromkeys(FLOATS, 2) | dict.fromkeys(COMPLEXES, 3)
ALL = tuple(KIND)
_BY_NAME = {d.name: d for d in ALL}
_CANONICAL = {d: d for d in ALL}


def as_dtype(dtype: DTypeLike | None) -> DType:
    """The dtype object for a dtype, a NumPy scalar type, a Python type or a name.

    >>> as_dtype("bfloat16").itemsize, as_dtype(float)
    (2, dtype('float32'))
    """
    try:
        found = _find(dtype)  # type: ignore[arg-type]  # NumPy's stubs do not say that a dtype has a hash
    except (TypeError, ValueError, SyntaxError):  # not hashable, or not a dtype
        found = None
    if found is None:
        raise DTypeError(f"dtype: {dtype!r} is not an element type of tensors.", f"one of {', '.join(_BY_NAME)}")
    return found


@functools.lru_cache(maxsize=256)
def _find(dtype: DTypeLike | None) -> DType | None:
    """Our own object for a dtype, so that equal dtypes are identical."""
    if dtype is None:
        return None
    if dtype is float:
        return default_float
    if dtype is complex:
        return default_complex
    if isinstance(dtype, str) and dtype in _BY_NAME:
        return _BY_NAME[dtype]
    return _CANONICAL.get(np.dtype(dtype).newbyteorder("="))


def is_floating(dtype: DType) -> bool:
    return KIND[dtype] == 2


def is_half(dtype: DType) -> bool:
    """Whether the type is so short that sums of it are accumulated in float32."""
    return dtype in HALVES


def is_foreign(dtype: DType) -> bool:
    """Whether NumPy has the type from elsewhere: not all of its functions take it."""
    return dtype.kind == "V"


def is_real(dtype: DType) -> bool:
    """Whether the elements are real numbers or bools, and not text, dates or objects."""
    return dtype in KIND and KIND[dtype] < 3


def is_inexact(dtype: DType) -> bool:
    """Whether derivatives with respect to this type make sense (floating or complex)."""
    return KIND[dtype] >= 2


def is_integer(dtype: DType) -> bool:
    return KIND[dtype] == 1


def is_complex(dtype: DType) -> bool:
    return KIND[dtype] == 3


@functools.lru_cache(maxsize=1024)
def promote_types(a: DType, b: DType) -> DType:
    """The type that holds values of both."""
    if a == b:
        return a
    kind_a, kind_b = KIND[a], KIND[b]
    if kind_a > kind_b:
        a, b, kind_a, kind_b = b, a, kind_b, kind_a
    if kind_a < kind_b:
        if kind_a == 2:  # floating with complex
            return complex128 if float64 in (a, b) or complex128 in (a, b) else complex64
        return b
    if kind_a == 2 and bfloat16 in (a, b):
        return float32 if float16 in (a, b) else (b if a == bfloat16 else a)
    found = np.promote_types(a, b)
    if KIND[found] != kind_a:
        raise DTypeError(
            f"dtypes {a} and {b} have no common integer type.", "convert one of them, e.g. x.astype(wl.int64)"
        )
    return found


@functools.lru_cache(maxsize=256)
def with_scalar(dtype: DType, scalar_kind: int) -> DType:
    """The type of a tensor combined with a Python scalar of the given kind (see KIND)."""
    if scalar_kind <= KIND[dtype]:
        return dtype
    if scalar_kind == 1:
        return default_int
    if scalar_kind == 2:
        return default_float
    return complex128 if dtype == float64 else default_complex


def real_of(dtype: DType) -> DType:
    """The type of the real part."""
    return _REAL.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex type with parts of this type."""
    if is_complex(dtype):
        return dtype
    return complex128 if dtype == float64 else complex64


def floating_of(dtype: DType) -> DType:
    """The type itself if it is floating or complex, else the default floating type."""
    return dtype if is_inexact(dtype) else default_float
