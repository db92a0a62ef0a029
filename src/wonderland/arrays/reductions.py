"""Sums, means, extremes and other reductions over axes, and their running forms. Book, section 2.1.2.

`axis` is an axis, a tuple of axes, or None for all; negative axes count from the end. `keepdims` leaves the
reduced axes in place with size 1, so that the result broadcasts against the tensor.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from ..core import dtypes
from ..core.arguments import as_int, as_number
from ..core.broadcasting import normalize_axes, normalize_axis
from ..core.context import user_level
from ..core.dtypes import is_complex, is_half
from ..core.errors import InputError
from ..core.fused import fused
from ..core.primitive import Primitive
from ..core.shortcuts import of_axes
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, Axes, DTypeLike, Shaped
from ..primitives import elementwise as pe
from ..primitives import reduction as p
from ..primitives.creation import full, ones_like, zeros_like
from ..primitives.structure import SUMMED_IN
from .arithmetic import abs as abs_
from .arithmetic import square
from .conversion import as_inexact, as_ordered, as_result, as_tensor, convert, for_sums
from .joining import concat
from .manipulation import astype, broadcast_to, expand_dims, ravel, reshape

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip


def _reduce(name: str, primitive: Primitive, x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    axes = normalize_axes(name, axis, x.ndim)
    out = primitive(x, axes=axes)
    return p.keep(out, x.shape, axes) if keepdims else out


# --- sums and products


def _accumulator(x: Tensor, dtype: DTypeLike | None) -> Tensor:
    """x in the type in which it is summed."""
    if dtype is not None:
        return astype(x, dtype)
    wide = SUMMED_IN.get(x.dtype)
    return for_sums(x) if wide is None else pe.astype(x, dtype=wide)


@of_axes(p.sum_)
def sum(x: ArrayLike, /, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    r"""\(\sum_i x_i\) over the axes (all of them if none is named); 0 if there is nothing to sum.

    >>> import wonderland as wl
    >>> wl.sum(wl.ones((2, 3)), axis=1)
    tensor([3., 3.])
    """
    return _reduce("sum", p.sum_, _accumulator(as_tensor("sum", x), dtype), axis, keepdims)


@of_axes(p.prod)
def prod(x: ArrayLike, /, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    r"""\(\prod_i x_i\) over the axes; its derivative is exact also where factors are zero.

    >>> import wonderland as wl
    >>> x = wl.tensor([2.0, 0.0, 3.0])
    >>> wl.prod(x), wl.grad(wl.prod)(x)
    (tensor(0.), tensor([0., 6., 0.]))
    """
    return _reduce("prod", p.prod, _accumulator(as_tensor("prod", x), dtype), axis, keepdims)


def _count(x: Tensor, axis: Axes, name: str) -> int:
    if axis is None:
        return x.size
    return math.prod(x.shape[a] for a in normalize_axes(name, axis, x.ndim))


def mean(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    r"""\(\frac1n\sum_i x_i\) over the axes; the derivative is \(1/n\) everywhere.

    >>> import wonderland as wl
    >>> wl.mean(wl.tensor([1.0, 2.0, 6.0]))
    tensor(3.)

    The mean of nothing is NaN, with a warning.
    """
    x = for_sums(as_inexact("mean", x))
    if is_half(x.dtype):  # the sum may be too large for the type of the mean
        return astype(mean(astype(x, dtypes.float32), axis=axis, keepdims=keepdims), x.dtype)
    axes = normalize_axes("mean", axis, x.ndim)
    if not x.size and _count(x, axis, "mean") == 0:
        total = _reduce("mean", p.sum_, x, axis, keepdims)
        return _undefined(total, f"mean: the reduction of shape {x.shape} over axis {axis} has no elements.")
    out = _mean(x, axes=axes)
    return p.keep(out, x.shape, axes) if keepdims else out


def _number(x: Shaped, axes: tuple[int, ...]) -> int:
    """How many elements are put together."""
    return math.prod([x.shape[axis] for axis in axes])


@fused(
    single=0,
    jvp=(lambda t, out, x, axes: mean(t, axis=axes),),
    of_arrays=lambda x, axes: p.sum_.impl(x, axes) / x.dtype.type(_number(x, axes)),
)
def _mean(x: Tensor, *, axes: tuple[int, ...]) -> Tensor:
    return pe.divide(p.sum_(x, axes=axes), convert(_number(x, axes), x.dtype))


def _undefined(total: Tensor, why: str) -> Tensor:
    """NaN in place of every element, by a division that `wl.debug.nans` finds; no element, no warning."""
    if total.size:
        warnings.warn(f"{why} The result is NaN.", RuntimeWarning, stacklevel=user_level())
    with np.errstate(invalid="ignore"):  # one warning is enough
        return total * 0 / 0


def var(x: ArrayLike, /, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    r"""The variance \(\frac1{n-c}\sum_i |x_i-\bar x|^2\) over the axes, with c = `correction`.

    >>> import wonderland as wl
    >>> wl.var(wl.tensor([1.0, 2.0, 3.0])), wl.var(wl.tensor([1.0, 2.0, 3.0]), correction=1)
    (tensor(0.6666667), tensor(1.))

    Where n - c is not positive the variance is NaN, with a warning.
    """
    x = for_sums(as_inexact("var", x))
    if is_half(x.dtype):
        wide = var(astype(x, dtypes.float32), axis=axis, correction=correction, keepdims=keepdims)
        return astype(wide, x.dtype)
    correction = as_number("var", "correction", correction)
    n = _count(x, axis, "var")
    if n - correction <= 0:
        total = sum(abs_(x), axis=axis, keepdims=keepdims)
        return _undefined(total, f"var: {n} elements with correction {correction} leave nothing to divide by.")
    # with a negative correction, the squares of nothing have a sum
    centred = x - (mean(x, axis=axis, keepdims=True) if n else 0)
    squares = square(abs_(centred)) if is_complex(x.dtype) else square(centred)
    return sum(squares, axis=axis, keepdims=keepdims) / (n - correction)


def std(x: ArrayLike, /, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of the variance, with derivative 0 where all elements are equal.

    >>> import wonderland as wl
    >>> wl.std(wl.tensor([1.0, 3.0])), wl.grad(wl.std)(wl.tensor([1.0, 1.0]))
    (tensor(1.), tensor([0., 0.]))
    """
    return root(var(x, axis=axis, correction=correction, keepdims=keepdims))


def root(x: Tensor) -> Tensor:
    """The square root, with derivative 0 at 0: what norms and deviations have there."""
    zero = x == 0
    # the inner choice keeps the infinite slope of the root at 0 out of the derivative
    return pe.where(zero, zeros_like(x), pe.sqrt(pe.where(zero, ones_like(x), x)))


# --- extremes


@of_axes(p.max_)
def max(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The largest element, NaN if there is one; several largest ones share the derivative evenly.

    >>> import wonderland as wl
    >>> x = wl.tensor([1.0, 3.0, 3.0])
    >>> wl.max(x), wl.grad(wl.max)(x)
    (tensor(3.), tensor([0. , 0.5, 0.5]))
    """
    return _reduce("max", p.max_, as_ordered("max", x), axis, keepdims)


@of_axes(p.min_)
def min(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element, NaN if there is one; several smallest ones share the derivative evenly.

    >>> import wonderland as wl
    >>> wl.min(wl.tensor([[4, 2], [1, 3]]), axis=0)
    tensor([1, 2])
    """
    return _reduce("min", p.min_, as_ordered("min", x), axis, keepdims)


amax, amin = max, min


def _arg(name: str, primitive: Primitive, x: ArrayLike, axis: int | None, keepdims: bool) -> Tensor:
    x = as_ordered(name, x)
    if axis is None:
        out = primitive(ravel(x), axis=0)
        return reshape(out, (1,) * x.ndim) if keepdims else out
    place = normalize_axis(name, axis, x.ndim)
    out = primitive(x, axis=place)
    return expand_dims(out, axis=place) if keepdims else out


def argmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The position of the first largest element, in the flattened tensor if no axis is named. Book, 2.1.1.

    >>> import wonderland as wl
    >>> wl.argmax(wl.tensor([1.0, 3.0, 3.0]))
    tensor(1)
    """
    return _arg("argmax", p.argmax, x, axis, keepdims)


def argmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The position of the first smallest element, in the flattened tensor if no axis is named.

    >>> import wonderland as wl
    >>> wl.argmin(wl.tensor([[4, 2], [1, 3]]), axis=1)
    tensor([1, 0])
    """
    return _arg("argmin", p.argmin, x, axis, keepdims)


# --- logic


@of_axes(p.any_)
def any(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Whether some element is true (not zero); false if there is none.

    >>> import wonderland as wl
    >>> wl.any(wl.tensor([[0, 1], [0, 0]]), axis=1)
    tensor([ True, False])
    """
    return _reduce("any", p.any_, as_tensor("any", x), axis, keepdims)


@of_axes(p.all_)
def all(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Whether all elements are true (not zero); true if there is none.

    >>> import wonderland as wl
    >>> wl.all(wl.tensor([[1, 1], [0, 1]]), axis=1)
    tensor([ True, False])
    """
    return _reduce("all", p.all_, as_tensor("all", x), axis, keepdims)


def count_nonzero(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """How many elements are not zero.

    >>> import wonderland as wl
    >>> wl.count_nonzero(wl.tensor([[1, 0], [2, 3]]), axis=1)
    tensor([1, 2])
    """
    return sum(astype(astype(x, dtypes.bool_), dtypes.int64), axis=axis, keepdims=keepdims)


# --- running forms


def _cumulative(
    name: str, primitive: Primitive, x: ArrayLike, axis: int | None, dtype: DTypeLike | None, initial: int | None
) -> Tensor:
    x = _accumulator(as_tensor(name, x), dtype)
    if axis is None:
        if x.ndim != 1:
            raise InputError(f"{name}: a tensor of shape {x.shape} needs an axis.", "axis=...")
        axis = 0
    place = normalize_axis(name, axis, x.ndim)
    out = primitive(x, axis=place, reverse=False)
    if initial is None:
        return out
    first = full((*x.shape[:place], 1, *x.shape[place + 1 :]), initial, x.dtype)
    return concat([first, out], axis=place)


def cumulative_sum(
    x: ArrayLike, /, axis: int | None = None, *, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    r"""The running sum \(y_j = \sum_{i \le j} x_i\) along an axis, after a 0 if `include_initial`.

    >>> import wonderland as wl
    >>> wl.cumulative_sum(wl.tensor([1, 2, 3]))
    tensor([1, 3, 6])
    """
    return _cumulative("cumulative_sum", p.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: ArrayLike, /, axis: int | None = None, *, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    r"""The running product \(y_j = \prod_{i \le j} x_i\) along an axis, after a 1 if `include_initial`.

    >>> import wonderland as wl
    >>> wl.cumulative_prod(wl.tensor([1, 2, 3]), include_initial=True)
    tensor([1, 1, 2, 6])

    The derivative is exact also where factors are zero.
    """
    return _cumulative("cumulative_prod", p.cumprod, x, axis, dtype, 1 if include_initial else None)


def cumsum(x: ArrayLike, /, axis: int | None = None) -> Tensor:
    """`cumulative_sum` under NumPy's name; of the flattened tensor if no axis is named.

    >>> import wonderland as wl
    >>> wl.cumsum(wl.ones((2, 2)))
    tensor([1., 2., 3., 4.])
    """
    return cumulative_sum(ravel(x) if axis is None else x, axis=axis)


def cumprod(x: ArrayLike, /, axis: int | None = None) -> Tensor:
    """`cumulative_prod` under NumPy's name; of the flattened tensor if no axis is named.

    >>> import wonderland as wl
    >>> wl.cumprod(wl.tensor([1, 2, 3]))
    tensor([1, 2, 6])
    """
    return cumulative_prod(ravel(x) if axis is None else x, axis=axis)


def diff(
    x: ArrayLike, /, *, axis: int = -1, n: int = 1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Tensor:
    r"""The n-th differences \(x_{i+1} - x_i\) of neighbours along an axis.

    >>> import wonderland as wl
    >>> wl.diff(wl.tensor([1, 4, 9, 16])), wl.diff(wl.tensor([1, 4, 9, 16]), n=2)
    (tensor([3, 5, 7]), tensor([2, 2]))

    `prepend` and `append` are joined to x first; for n = 0 the result is x itself.
    """
    x = as_tensor("diff", x)
    place = normalize_axis("diff", axis, x.ndim)
    n = as_int("diff", "n", n, least=0)
    if n == 0:
        return as_result(x)
    parts = [as_tensor("diff", part) for part in (prepend, x, append) if part is not None]
    edge = (*x.shape[:place], 1, *x.shape[place + 1 :])
    parts = [part if part.ndim else broadcast_to(part, edge) for part in parts]
    x = concat(parts, axis=place) if len(parts) > 1 else x
    head = (slice(None),) * place
    for _ in range(n):
        if not x.shape[place]:
            break  # nothing is left
        upper, lower = x[(*head, slice(1, None))], x[(*head, slice(None, -1))]
        x = upper != lower if x.dtype == dtypes.bool_ else upper - lower
    return as_result(x)
