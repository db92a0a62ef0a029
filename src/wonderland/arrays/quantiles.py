"""Medians, quantiles and percentiles, with and without regard to NaN, and partial orders.

All of them sort: derivatives go back to the one or two elements that a quantile lies at or between.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..core.arguments import as_int, as_list, is_sequence
from ..core.broadcasting import normalize_axes, normalize_axis, without_axes
from ..core.dtypes import float64, int64
from ..core.errors import InputError
from ..core.tensor import Tensor, Tracer
from ..core.typing import ArrayLike, Axes, ShapeLike
from .arithmetic import ceil, clip, floor
from .arithmetic import round as round_
from .conversion import as_real, as_tensor, asarray, convert
from .creation import full
from .gathering import take, take_along_axis
from .logic import isinf, isnan, logical_and, where
from .manipulation import astype, broadcast_to, moveaxis, reshape, transpose
from .reductions import mean, sum
from .sorting import argsort, sort

__all__ = ["argpartition", "median", "nanmedian", "nanpercentile", "nanquantile", "partition", "percentile", "quantile"]

# Hyndman and Fan (1996): the place of quantile q among n elements is n q + a + q (1 - a - b) - 1, counted from 0
PLOTTING = {
    "linear": (1.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "interpolated_inverted_cdf": (0.0, 1.0),
}


def _inverted(n: float | Tensor, q: Tensor) -> Tensor:
    return ceil(n * q) - 1


def _averaged(n: float | Tensor, q: Tensor) -> Tensor:
    """Half way between two elements where n q is whole, else at the next element."""
    place = n * q - 1
    whole = floor(place)
    return where(place == whole, whole + 0.5, whole + 1)


def _closest(n: float | Tensor, q: Tensor) -> Tensor:
    """The nearest element to n q, counted from 1, and the even one of two."""
    return round_(n * q) - 1


# the other methods, from the number of elements and q to the place; fractions interpolate
PLACES: dict[str, Callable[[float | Tensor, Tensor], Tensor]] = {
    "lower": lambda n, q: floor((n - 1) * q),
    "higher": lambda n, q: ceil((n - 1) * q),
    "nearest": lambda n, q: round_((n - 1) * q),
    "midpoint": lambda n, q: 0.5 * (floor((n - 1) * q) + ceil((n - 1) * q)),
    "inverted_cdf": _inverted,
    "averaged_inverted_cdf": _averaged,
    "closest_observation": _closest,
}


def quantile(
    x: ArrayLike, q: ArrayLike, /, axis: Axes = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    r"""The value below which a share q of the elements lies: the element at place \((n-1)\,q\) of the sorted ones.

    >>> import wonderland as wl
    >>> wl.quantile(wl.tensor([4.0, 1.0, 3.0, 2.0]), 0.5), wl.quantile(wl.arange(5), wl.tensor([0.25, 1.0]))
    (tensor(2.5), tensor([1., 4.]))

    The axes of q come first in the result. Between two places `method` decides, with NumPy's names: "linear",
    "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased". A NaN makes the result NaN.
    Differentiable in x, and in q where the method interpolates.
    """
    return _quantile("quantile", x, q, axis, method, keepdims, False)


def nanquantile(
    x: ArrayLike, q: ArrayLike, /, axis: Axes = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where there is none.

    >>> import wonderland as wl
    >>> wl.nanquantile(wl.tensor([1.0, wl.nan, 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", x, q, axis, method, keepdims, True)


def percentile(
    x: ArrayLike, q: ArrayLike, /, axis: Axes = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """`quantile` with q in percent.

    >>> import wonderland as wl
    >>> wl.percentile(wl.arange(101), 30)
    tensor(30.)
    """
    return _quantile("percentile", x, _shares("percentile", q, 100), axis, method, keepdims, False)


def nanpercentile(
    x: ArrayLike, q: ArrayLike, /, axis: Axes = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """`percentile` of the elements that are not NaN; NaN where there is none.

    >>> import wonderland as wl
    >>> wl.nanpercentile(wl.tensor([1.0, wl.nan, 3.0]), 100)
    tensor(3.)
    """
    return _quantile("nanpercentile", x, _shares("nanpercentile", q, 100), axis, method, keepdims, True)


def median(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The middle of the sorted elements, or the mean of the two in the middle; NaN if there is a NaN or no element.

    >>> import wonderland as wl
    >>> wl.median(wl.tensor([3.0, 1.0, 2.0])), wl.median(wl.tensor([[1, 9], [3, 5]]), axis=1)
    (tensor(2.), tensor([5., 4.]))
    """
    x = as_real("median", x)
    rows, shape = _rows("median", x, axis, keepdims)
    n = rows.shape[-1]
    if not n:
        return full(shape, math.nan, dtype=x.dtype)
    ordered = sort(rows)
    middle = ordered[..., n // 2] if n % 2 else mean(ordered[..., n // 2 - 1 : n // 2 + 1], axis=-1)
    return reshape(where(isnan(ordered[..., -1]), math.nan, middle), shape)


def nanmedian(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """`median` of the elements that are not NaN; NaN where there is none.

    >>> import wonderland as wl
    >>> wl.nanmedian(wl.tensor([[1.0, wl.nan], [3.0, wl.nan]]), axis=0)
    tensor([ 2., nan])
    """
    return _quantile("nanmedian", x, 0.5, axis, "linear", keepdims, True)


# --- how it is done


def _rows(name: str, x: Tensor, axis: Axes, keepdims: bool) -> tuple[Tensor, tuple[int, ...]]:
    """x with the reduced axes as one at the end, and the shape of the result."""
    axes = normalize_axes(name, axis, x.ndim)
    left = without_axes(x.shape, axes)
    rows = x
    if axes != (x.ndim - 1,):
        order = (*[a for a in range(x.ndim) if a not in axes], *axes)
        rows = reshape(transpose(x, order), (*left, math.prod(x.shape[a] for a in axes)))
    return rows, tuple(1 if a in axes else n for a, n in enumerate(x.shape)) if keepdims else left


def _shares(name: str, q: ArrayLike, whole: int = 1) -> Tensor:
    """q as a tensor of float64 between 0 and 1."""
    q = asarray(q, dtype=float64) / whole
    if not isinstance(q, Tracer) and not np.all((q._data >= 0) & (q._data <= 1)):
        raise InputError(f"{name}: q reaches from {q._data.min() * whole} to {q._data.max() * whole}.", f"0 to {whole}")
    return q


def _quantile(name: str, x: ArrayLike, q: ArrayLike, axis: Axes, method: str, keepdims: bool, skip_nan: bool) -> Tensor:
    x, q = as_real(name, x), _shares(name, q)
    if method not in PLOTTING and method not in PLACES:
        raise InputError(f"{name}: method={method!r}.", f"one of {', '.join([*PLOTTING, *PLACES])}")
    rows, shape = _rows(name, x, axis, keepdims)
    if not rows.shape[-1]:
        raise InputError(f"{name}: no elements along axis {axis} of shape {x.shape}.", "a non-empty axis")
    ordered = sort(rows)
    shares = reshape(q, (q.size,))
    count: float | Tensor = rows.shape[-1]
    if skip_nan:  # NaNs stand behind the others
        count = astype(sum(astype(~isnan(rows), int64), axis=-1, keepdims=True), float64)
        shares = broadcast_to(shares, (*rows.shape[:-1], q.size))
    found = _between(ordered, _places(method, count, shares), count - 1)  # (.., q)
    missing = count == 0 if skip_nan else isnan(ordered[..., -1:])
    found = where(missing, math.nan, found)
    return reshape(moveaxis(found, -1, 0), (*q.shape, *shape))


def _places(method: str, n: float | Tensor, q: Tensor) -> Tensor:
    if method in PLACES:
        return PLACES[method](n, q)
    a, b = PLOTTING[method]
    return n * q + (a + q * (1 - a - b)) - 1


def _between(ordered: Tensor, places: Tensor, last: float | Tensor) -> Tensor:
    """The elements at places along the last axis; at fractions, those of the line through their neighbours."""
    places = clip(clip(places, None, last), 0.0, None)
    below = floor(places)
    share = places - below
    under, over = (astype(i, int64) for i in (below, ceil(places)))
    pick = take_along_axis if places.ndim > 1 else take  # one place for all rows, or one for each
    low, high = pick(ordered, under, axis=-1), pick(ordered, over, axis=-1)
    share = convert(share, ordered.dtype)
    gap = high - low
    line = where(share < 0.5, low + gap * share, high - gap * (1 - share))
    # equal infinities have no gap, and 0 times an infinite one is not 0
    return where((share == 0) | logical_and(low == high, isinf(low)), low, line)


# --- partial order


def partition(x: ArrayLike, kth: ShapeLike, /, axis: int = -1) -> Tensor:
    """x with element number `kth` of the sorted axis in its place, smaller ones before it and larger ones behind it.

    >>> import wonderland as wl
    >>> wl.partition(wl.tensor([3, 1, 2]), 1)
    tensor([1, 2, 3])

    Here all elements are sorted, which is one of the orders that this allows.
    """
    x = as_tensor("partition", x)
    _check_places("partition", x, kth, axis)
    return sort(x, axis=axis)


def argpartition(x: ArrayLike, kth: ShapeLike, /, axis: int = -1) -> Tensor:
    """The order of `partition`.

    >>> import wonderland as wl
    >>> wl.argpartition(wl.tensor([3, 1, 2]), 1)
    tensor([1, 2, 0])
    """
    x = as_tensor("argpartition", x)
    _check_places("argpartition", x, kth, axis)
    return argsort(x, axis=axis)


def _check_places(name: str, x: Tensor, kth: ShapeLike, axis: int) -> None:
    n = x.shape[normalize_axis(name, axis, x.ndim)]
    for k in as_list(name, "kth", kth) if is_sequence(kth) else [kth]:
        if not -n <= as_int(name, "kth", k) < n:
            raise InputError(f"{name}: kth={k!r} for an axis of size {n}.", f"places from {-n} to {n - 1}")
