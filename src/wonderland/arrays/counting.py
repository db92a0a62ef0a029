"""Counting: elements by value, by interval, and the intervals themselves.

How many there are is no smooth function of the elements; weights and densities have derivatives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes
from ..core.arguments import as_int, as_number, as_pair, is_sequence
from ..core.dtypes import int64, is_integer
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor, Tracer, wrap
from ..core.typing import ArrayLike
from ..primitives import indexing as p
from .conversion import as_ordered, as_result, as_tensor, asarray, convert
from .creation import linspace, ones, zeros
from .gathering import searchsorted
from .joining import flip
from .logic import logical_and, where
from .manipulation import astype, ravel
from .reductions import diff, sum
from .reductions import max as max_
from .reductions import min as min_

__all__ = ["bincount", "bucketize", "digitize", "histogram", "histogram_bin_edges"]


def bincount(
    x: ArrayLike, /, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None
) -> Tensor:
    """How often each of the numbers 0, 1, 2, ... occurs in a vector, or the sums of the weights.

    >>> import wonderland as wl
    >>> wl.bincount(wl.tensor([1, 3, 1])), wl.bincount(wl.tensor([0, 1, 1]), weights=wl.tensor([0.5, 1.0, 2.0]))
    (tensor([0, 2, 0, 1]), tensor([0.5, 3. ]))

    The result has as many elements as the data need, at least `minlength`; with `length` just so many, which `jit` and
    `vmap` need to know. A negative number, or one that is not below `length`, is refused.
    """
    x = as_tensor("bincount", x)
    if x.ndim != 1:
        raise ShapeError(f"bincount: a tensor of shape {x.shape}.", "a vector; x.ravel() counts all elements")
    if not is_integer(x.dtype):
        raise DTypeError(f"bincount: the elements are {x.dtype}.", "integers: x.astype(wl.int64)")
    if length is None:
        if isinstance(x, Tracer):
            raise InputError("bincount: in a traced function the number of bins must be known.", "length=...")
        largest = int(x._data.max()) + 1 if x.size else 0
        count = max(largest, as_int("bincount", "minlength", minlength, least=0))
    else:
        count = as_int("bincount", "length", length, least=0)
    x = astype(x, int64)
    # a negative index would count from the end; behind the end it is refused
    x = where(x < 0, count, x)
    terms = ones(x.shape, dtype=int64) if weights is None else as_tensor("bincount", weights)
    if terms.shape != x.shape:
        raise ShapeError(f"bincount: weights of shape {terms.shape} for {x.shape}.", "one weight per element")
    if terms.dtype == dtypes.bool_:
        terms = astype(terms, int64)
    return p.scatter(zeros((count,), dtype=terms.dtype), terms, x, axes=(0,), mode="add")


# --- intervals


def digitize(x: ArrayLike, bins: ArrayLike, /, right: bool = False) -> Tensor:
    r"""The number i of the interval \(b_{i-1} \le x < b_i\) that each element falls into; 0 and n are outside.

    >>> import wonderland as wl
    >>> wl.digitize(wl.tensor([0.2, 6.4, 3.0]), wl.tensor([0.0, 1.0, 2.5, 4.0]))
    tensor([1, 4, 3])

    With `right`, \(b_{i-1} < x \le b_i\). The bounds may also fall, which turns the comparisons round.
    """
    x, bins = as_ordered("digitize", x), _bounds("digitize", bins)
    side = "left" if right else "right"
    up = searchsorted(bins, x, side=side)
    if not bins.size:
        return up
    down = bins.size - searchsorted(flip(bins), x, side=side)
    return where(bins[0] <= bins[-1], up, down)


def bucketize(x: ArrayLike, boundaries: ArrayLike, /, *, right: bool = False) -> Tensor:
    r"""The number i of the interval \(b_{i-1} < x \le b_i\) of rising bounds; with `right`, \(b_{i-1} \le x < b_i\).

    >>> import wonderland as wl
    >>> wl.bucketize(wl.tensor([0.5, 1.0, 3.0]), wl.tensor([1.0, 2.0]))
    tensor([0, 0, 2])

    PyTorch's function: its `right` is the opposite of that of `digitize`.
    """
    return searchsorted(_bounds("bucketize", boundaries), as_ordered("bucketize", x), side="right" if right else "left")


def _bounds(name: str, bins: ArrayLike) -> Tensor:
    bins = asarray(bins) if isinstance(bins, (list, tuple, range)) else as_ordered(name, bins)
    if bins.ndim != 1:
        raise ShapeError(f"{name}: bounds of shape {bins.shape}.", "a vector")
    if not isinstance(bins, Tracer):
        steps = np.diff(bins._data)
        one_way = (steps >= 0).all() or (name == "digitize" and (steps <= 0).all())
        if not one_way:
            raise InputError(f"{name}: the bounds do not go one way.", "wl.sort(bounds)")
    return bins


# --- histograms


class Histogram(NamedTuple):
    """What falls into each interval, and the bounds of the intervals."""

    counts: Tensor
    edges: Tensor


def histogram_bin_edges(
    x: ArrayLike,
    /,
    bins: ArrayLike | str = 10,
    range: tuple[float, float] | None = None,
    weights: ArrayLike | None = None,
) -> Tensor:
    """The n + 1 bounds of the n intervals of `histogram`.

    >>> import wonderland as wl
    >>> wl.histogram_bin_edges(wl.tensor([0.0, 4.0]), 2)
    tensor([0., 2., 4.])
    """
    x = as_ordered("histogram", x)
    return _narrow(_edges(_wide(x), bins, range, weights), x, bins)


def _wide(x: Tensor) -> Tensor:
    """The elements as a vector in which the bounds between integers are exact, and those of half precision fine."""
    wide = {0: dtypes.float64, 1: dtypes.float64}.get(dtypes.KIND[x.dtype], x.dtype)
    return ravel(convert(x, dtypes.float32 if dtypes.is_half(wide) else wide))


def _narrow(edges: Tensor, x: Tensor, bins: ArrayLike | str) -> Tensor:
    return as_result(edges) if is_sequence(bins) else convert(edges, dtypes.floating_of(x.dtype))


def _edges(x: Tensor, bins: ArrayLike | str, range: tuple[float, float] | None, weights: ArrayLike | None) -> Tensor:
    if isinstance(bins, str):  # a rule that looks at the data
        data = x._concrete("the number of intervals")
        try:
            found = np.histogram_bin_edges(data, bins, range, None if weights is None else np.asarray(weights))
        except (ValueError, TypeError) as error:
            hint = 'a number, bounds, or one of NumPy\'s rules such as "auto"'
            raise InputError(f"histogram: {error}.", hint) from error
        return convert(wrap(found), x.dtype)
    if is_sequence(bins):
        return _bounds("histogram", bins)
    return _even_edges(x, as_int("histogram", "bins", bins, least=1), range)


def _even_edges(x: Tensor, bins: int, range: tuple[float, float] | None) -> Tensor:
    first: Any
    last: Any
    if range is not None:
        first, last = (as_number("histogram", "range", v) for v in as_pair("histogram", "range", range))
        if not (np.isfinite(first) and np.isfinite(last) and first <= last):
            raise InputError(f"histogram: range={(first, last)}.", "two finite numbers in order")
        first, last = (first - 0.5, last + 0.5) if first == last else (first, last)
        return convert(linspace(first, last, bins + 1, dtype=dtypes.float64), x.dtype)
    if not x.size:
        return linspace(0, 1, bins + 1, dtype=x.dtype)
    first, last = min_(x), max_(x)
    if not isinstance(first, Tracer) and not np.isfinite([first.item(), last.item()]).all():
        raise InputError(f"histogram: the elements reach from {first.item()} to {last.item()}.", "range=(low, high)")
    half = where(first == last, 0.5, 0.0)
    return linspace(first - half, last + half, bins + 1, dtype=x.dtype)


def histogram(
    x: ArrayLike,
    /,
    bins: ArrayLike | str = 10,
    range: tuple[float, float] | None = None,
    *,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> Histogram:
    r"""How many elements fall into each of the intervals \([e_i, e_{i+1})\), the last of which is closed.

    >>> import wonderland as wl
    >>> counts, edges = wl.histogram(wl.tensor([1.0, 2.0, 1.0, 4.0]), bins=3)
    >>> counts, edges
    (tensor([2, 1, 1]), tensor([1., 2., 3., 4.]))

    `bins` is the number of intervals of equal width (over `range`, or from the smallest element to the largest),
    their bounds, or the name of one of NumPy's rules. `density` divides by the total and the widths: the integral is
    1. Elements outside, and NaN with a given range, are not counted.
    """
    given = as_ordered("histogram", x)
    x = _wide(given)
    edges = _edges(x, bins, range, weights)
    n = edges.size - 1
    if n < 1:
        raise InputError(f"histogram: {edges.size} bounds.", "at least two bounds")
    common = dtypes.promote_types(x.dtype, edges.dtype)
    values, bounds = convert(x, common), convert(edges, common)
    place = searchsorted(bounds, values, side="right") - 1
    place = where(values == bounds[-1], n - 1, place)
    inside = logical_and(place >= 0, place < n)
    terms = ones(x.shape, dtype=int64) if weights is None else ravel(as_tensor("histogram", weights))
    if terms.shape != x.shape:
        raise ShapeError(f"histogram: weights of shape {terms.shape} for {x.shape}.", "one weight per element")
    terms = astype(terms, int64) if terms.dtype == dtypes.bool_ else terms
    terms = where(inside, terms, 0)
    counts = p.scatter(zeros((n,), dtype=terms.dtype), terms, where(inside, place, 0), axes=(0,), mode="add")
    edges = _narrow(edges, given, bins)
    if density:
        counts = astype(counts, dtypes.promote_types(counts.dtype, dtypes.floating_of(edges.dtype)))
        counts = counts / diff(edges) / sum(counts)
    return Histogram(counts, edges)
