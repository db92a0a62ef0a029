"""Reductions that leave NaN out, as data with gaps need them, and the larger and smaller of two where one may be NaN.

No derivative passes through a NaN. Integers have none, so for them these are the functions without "nan".
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..core import dtypes
from ..core.broadcasting import normalize_axis
from ..core.dtypes import is_complex, is_half, is_inexact
from ..core.errors import InputError
from ..core.primitive import Primitive
from ..core.tensor import Tensor, Tracer
from ..core.typing import ArrayLike, Axes, DTypeLike
from ..primitives import elementwise as p
from . import reductions
from .arithmetic import abs as abs_
from .arithmetic import square
from .conversion import as_inexact, as_ordered, as_tensor, convert, promote_kind
from .creation import arange
from .gathering import take
from .logic import isnan, where
from .manipulation import astype, expand_dims, ravel, reshape

__all__ = [
    "fmax", "fmin", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip


def _filled(x: Tensor, value: float) -> Tensor:
    return where(isnan(x), convert(value, x.dtype), x) if is_inexact(x.dtype) else x


def nansum(x: ArrayLike, /, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements that are not NaN; 0 if there is none.

    >>> import wonderland as wl
    >>> wl.nansum(wl.tensor([1.0, wl.nan, 2.0]))
    tensor(3.)
    """
    return reductions.sum(_filled(as_tensor("nansum", x), 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: ArrayLike, /, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The product of the elements that are not NaN; 1 if there is none.

    >>> import wonderland as wl
    >>> wl.nanprod(wl.tensor([3.0, wl.nan, 2.0]))
    tensor(6.)
    """
    return reductions.prod(_filled(as_tensor("nanprod", x), 1), axis=axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: ArrayLike, /, axis: int | None = None) -> Tensor:
    """The running sum with NaN counted as 0; of the flattened tensor if no axis is named.

    >>> import wonderland as wl
    >>> wl.nancumsum(wl.tensor([1.0, wl.nan, 2.0]))
    tensor([1., 1., 3.])
    """
    return reductions.cumsum(_filled(as_tensor("nancumsum", x), 0), axis=axis)


def nancumprod(x: ArrayLike, /, axis: int | None = None) -> Tensor:
    """The running product with NaN counted as 1; of the flattened tensor if no axis is named.

    >>> import wonderland as wl
    >>> wl.nancumprod(wl.tensor([3.0, wl.nan, 2.0]))
    tensor([3., 3., 6.])
    """
    return reductions.cumprod(_filled(as_tensor("nancumprod", x), 1), axis=axis)


# --- moments


def _wide(x: Tensor) -> Tensor:
    """Half precision is summed and counted in float32."""
    return astype(x, dtypes.float32) if is_half(x.dtype) else x


def _mean(x: Tensor, axis: Axes, keepdims: bool) -> tuple[Tensor, Tensor]:
    """The mean of what is not NaN, NaN where there is nothing, and the number of elements."""
    kind = dtypes.real_of(x.dtype)
    count = reductions.sum(astype(~isnan(x), dtypes.int64), axis=axis, keepdims=keepdims)
    return reductions.sum(_filled(x, 0), axis=axis, keepdims=keepdims) / astype(count, kind), count


def nanmean(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are not NaN; NaN if there is none.

    >>> import wonderland as wl
    >>> wl.nanmean(wl.tensor([[1.0, wl.nan], [3.0, wl.nan]]), axis=0)
    tensor([ 2., nan])
    """
    x = as_inexact("nanmean", x)
    return convert(_mean(_wide(x), axis, keepdims)[0], x.dtype)


def nanvar(x: ArrayLike, /, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance of the n elements that are not NaN, over n - `correction`; NaN where that is not positive.

    >>> import wonderland as wl
    >>> wl.nanvar(wl.tensor([1.0, wl.nan, 3.0])), wl.nanvar(wl.tensor([1.0, wl.nan, 3.0]), correction=1)
    (tensor(1.), tensor(2.))
    """
    x = as_inexact("nanvar", x)
    wide = _wide(x)
    kind = dtypes.real_of(wide.dtype)
    centred = where(isnan(wide), 0.0, wide - _mean(wide, axis, True)[0])
    squares = square(abs_(centred)) if is_complex(x.dtype) else square(centred)
    count = reductions.sum(astype(~isnan(x), kind), axis=axis, keepdims=keepdims)
    divisor = count - correction
    found = reductions.sum(squares, axis=axis, keepdims=keepdims) / where(divisor > 0, divisor, math.nan)
    return convert(found, dtypes.real_of(x.dtype))


def nanstd(x: ArrayLike, /, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of `nanvar`, with derivative 0 where all elements are equal.

    >>> import wonderland as wl
    >>> wl.nanstd(wl.tensor([1.0, wl.nan, 3.0]))
    tensor(1.)
    """
    return reductions.root(nanvar(x, axis=axis, correction=correction, keepdims=keepdims))


# --- extremes


def _extreme(name: str, f: Callable[..., Tensor], least: float, x: ArrayLike, axis: Axes, keepdims: bool) -> Tensor:
    x = as_ordered(name, x)
    found = f(_filled(x, least), axis=axis, keepdims=keepdims)
    if not is_inexact(x.dtype):
        return found
    return where(reductions.all(isnan(x), axis=axis, keepdims=keepdims), math.nan, found)


def nanmax(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The largest element that is not NaN; NaN if there is none.

    >>> import wonderland as wl
    >>> wl.nanmax(wl.tensor([1.0, wl.nan, 3.0]))
    tensor(3.)
    """
    return _extreme("nanmax", reductions.max, -math.inf, x, axis, keepdims)


def nanmin(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element that is not NaN; NaN if there is none.

    >>> import wonderland as wl
    >>> wl.nanmin(wl.tensor([1.0, wl.nan, 3.0]))
    tensor(1.)
    """
    return _extreme("nanmin", reductions.min, math.inf, x, axis, keepdims)


def _arg(name: str, x: ArrayLike, axis: int | None, keepdims: bool) -> Tensor:
    x = as_ordered(name, x)
    rows, place = (ravel(x), 0) if axis is None else (x, normalize_axis(name, axis, x.ndim))
    find, least = (reductions.argmax, -math.inf) if name == "nanargmax" else (reductions.argmin, math.inf)
    found = find(_filled(rows, least), axis=place)
    if is_inexact(x.dtype):
        gone = isnan(rows)
        # an infinite element that is no NaN may stand behind a NaN with the same filling
        number = reductions.argmin(astype(gone, dtypes.int8), axis=place)
        at = where(reductions.all(_filled(rows, least) == least, axis=place), number, found)
        empty = reductions.all(gone, axis=place)
        if not isinstance(empty, Tracer) and np.any(empty._data):
            raise InputError(f"{name}: nothing but NaN along axis {axis} of shape {x.shape}.", "wl.nan_to_num first")
        # a traced slice without numbers is found out when the place behind its end is read
        found = take(arange(rows.shape[place]), where(empty, rows.shape[place], at))
    if not keepdims:
        return found
    return reshape(found, (1,) * x.ndim) if axis is None else expand_dims(found, axis=place)


def nanargmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The position of the first largest element that is not NaN; an error if there is none.

    >>> import wonderland as wl
    >>> wl.nanargmax(wl.tensor([1.0, wl.nan, 3.0]))
    tensor(2)
    """
    return _arg("nanargmax", x, axis, keepdims)


def nanargmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The position of the first smallest element that is not NaN; an error if there is none.

    >>> import wonderland as wl
    >>> wl.nanargmin(wl.tensor([1.0, wl.nan, 3.0]))
    tensor(0)
    """
    return _arg("nanargmin", x, axis, keepdims)


# --- of two


def fmax(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The larger of two; of a number and a NaN the number.

    >>> import wonderland as wl
    >>> wl.fmax(wl.tensor([1.0, wl.nan]), wl.tensor([2.0, 3.0]))
    tensor([2., 3.])
    """
    return _of_two(p.maximum, *promote_kind("fmax", p.REAL, x1, x2))


def fmin(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The smaller of two; of a number and a NaN the number.

    >>> import wonderland as wl
    >>> wl.fmin(wl.tensor([1.0, wl.nan]), wl.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """
    return _of_two(p.minimum, *promote_kind("fmin", p.REAL, x1, x2))


def _of_two(primitive: Primitive, x: Tensor, y: Tensor) -> Tensor:
    if not is_inexact(x.dtype):
        return primitive(x, y)
    return primitive(where(isnan(x), y, x), where(isnan(y), x, y))
