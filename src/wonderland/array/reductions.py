"""Sums, means, extremes and other reductions over axes. Book, section 2.1.2."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..dtypes import is_complex, is_integer
from ..errors import InputError
from ..primitives import elementwise as pe
from ..primitives import reduction as p
from ..primitives.broadcasting import normalize_axes, normalize_axis
from ..tensor import Tensor
from .conversion import as_inexact, as_tensor
from .elementwise import abs as abs_
from .elementwise import square
from .manipulation import astype, concat, expand_dims, reshape


def _reduce(name: str, primitive: Any, x: Any, axis: Any, keepdims: bool) -> Tensor:
    axes = normalize_axes(name, axis, x.ndim)
    out = primitive(x, axes=axes)
    return p.keep(out, x.shape, axes) if keepdims else out


def _accumulator(x: Any, dtype: Any) -> Any:
    """The type in which integers are summed: small ones become the default integer."""
    if dtype is not None:
        return astype(x, dtype)
    if x.dtype is dtypes.bool_:
        return astype(x, dtypes.default_int)
    if is_integer(x.dtype) and x.dtype.itemsize < 8:
        return astype(x, dtypes.uint64 if x.dtype.kind == "u" else dtypes.default_int)
    return x


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over the axes (all of them if none is named).

    >>> import wonderland as wl
    >>> wl.sum(wl.ones((2, 3)), axis=1)
    tensor([3., 3.])
    """
    return _reduce("sum", p.sum_, _accumulator(as_tensor("sum", x), dtype), axis, keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over the axes; its derivative is exact also where factors are zero."""
    return _reduce("prod", p.prod, _accumulator(as_tensor("prod", x), dtype), axis, keepdims)


def _count(x: Any, axis: Any, name: str) -> int:
    return math.prod(x.shape[a] for a in normalize_axes(name, axis, x.ndim))


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    r"""\(\frac1n\sum_i x_i\) over the axes.

    >>> import wonderland as wl
    >>> wl.mean(wl.tensor([1.0, 2.0, 6.0]))
    tensor(3.)
    """
    x = as_inexact("mean", x)
    n = _count(x, axis, "mean")
    if n == 0:
        raise InputError(f"mean: the reduction of shape {x.shape} over axis {axis} has no elements.", "non-empty data")
    return sum(x, axis=axis, keepdims=keepdims) / n


def var(x: Any, /, *, axis: Any = None, correction: Any = 0.0, keepdims: bool = False) -> Tensor:
    r"""\(\frac1{n-c}\sum_i |x_i-\bar x|^2\) over the axes, with c = `correction`."""
    x = as_inexact("var", x)
    n = _count(x, axis, "var")
    if n - correction <= 0:
        raise InputError(
            f"var: {n} elements with correction {correction} leave nothing to divide by.", "more elements or correction=0"
        )
    centred = x - mean(x, axis=axis, keepdims=True)
    squares = square(abs_(centred)) if is_complex(x.dtype) else square(centred)
    return sum(squares, axis=axis, keepdims=keepdims) / (n - correction)


def std(x: Any, /, *, axis: Any = None, correction: Any = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of the variance."""
    return pe.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element; several largest ones share the derivative evenly."""
    return _reduce("max", p.max_, as_tensor("max", x), axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element; several smallest ones share the derivative evenly."""
    return _reduce("min", p.min_, as_tensor("min", x), axis, keepdims)


amax, amin = max, min


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether some element is true (not zero)."""
    return _reduce("any", p.any_, as_tensor("any", x), axis, keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true (not zero)."""
    return _reduce("all", p.all_, as_tensor("all", x), axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero."""
    x = as_tensor("count_nonzero", x)
    return sum(astype(x != 0 if x.dtype is not dtypes.bool_ else x, dtypes.int64), axis=axis, keepdims=keepdims)


def _arg(name: str, primitive: Any, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    x = as_tensor(name, x)
    if axis is None:
        out = primitive(reshape(x, (x.size,)), axis=0)
        return reshape(out, (1,) * x.ndim) if keepdims else out
    place = normalize_axis(name, axis, x.ndim)
    out = primitive(x, axis=place)
    return expand_dims(out, axis=place) if keepdims else out


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the (first) largest element, in the flattened tensor if no axis is named."""
    return _arg("argmax", p.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the (first) smallest element."""
    return _arg("argmin", p.argmin, x, axis, keepdims)


def _cumulative(name: str, primitive: Any, x: Any, axis: int | None, dtype: Any, initial: int | None) -> Tensor:
    x = _accumulator(as_tensor(name, x), dtype)
    if axis is None:
        if x.ndim != 1:
            raise InputError(f"{name}: a tensor of shape {x.shape} needs an axis.", "axis=...")
        axis = 0
    place = normalize_axis(name, axis, x.ndim)
    out = primitive(x, axis=place, reverse=False)
    if initial is None:
        return out  # type: ignore[no-any-return]
    from .creation import full

    first = full((*x.shape[:place], 1, *x.shape[place + 1 :]), initial, dtype=x.dtype)
    return concat([first, out], axis=place)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The running sum along an axis.

    >>> import wonderland as wl
    >>> wl.cumulative_sum(wl.tensor([1, 2, 3]))
    tensor([1, 3, 6])
    """
    return _cumulative("cumulative_sum", p.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The running product along an axis; its derivative is exact also where factors are zero."""
    return _cumulative("cumulative_prod", p.cumprod, x, axis, dtype, 1 if include_initial else None)


def cumsum(x: Any, axis: int | None = None) -> Tensor:
    """`cumulative_sum` under NumPy's name."""
    return cumulative_sum(x, axis=axis)


def cumprod(x: Any, axis: int | None = None) -> Tensor:
    """`cumulative_prod` under NumPy's name."""
    return cumulative_prod(x, axis=axis)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """The n-th differences of neighbours along an axis."""
    x = as_tensor("diff", x)
    parts = [as_tensor("diff", part) for part in (prepend, x, append) if part is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    place = normalize_axis("diff", axis, x.ndim)
    for _ in range(n):
        head = (slice(None),) * place
        upper, lower = x[(*head, slice(1, None))], x[(*head, slice(None, -1))]
        x = upper != lower if x.dtype is dtypes.bool_ else upper - lower
    return x


__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

