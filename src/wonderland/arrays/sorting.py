"""Sorting, selecting the best, and sets of distinct elements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.arguments import as_int
from ..core.broadcasting import normalize_axis
from ..core.dtypes import is_complex
from ..core.errors import InputError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike
from ..primitives import sorting as p
from ..primitives.creation import full
from .arithmetic import minimum
from .conversion import as_ordered, as_tensor, promote
from .gathering import searchsorted, take, take_along_axis
from .logic import equal, logical_not
from .manipulation import ravel, reshape

__all__ = [
    "argsort", "isin", "sort", "top_k", "topk", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]  # fmt: skip


def argsort(x: ArrayLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The order that sorts x along an axis; equal elements keep their order, NaN counts as the largest.

    >>> import wonderland as wl
    >>> wl.argsort(wl.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    x = as_ordered("argsort", x)
    return p.argsort(x, axis=normalize_axis("argsort", axis, x.ndim), descending=descending)


def sort(x: ArrayLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """x sorted along an axis; derivatives go back to where the elements came from.

    >>> import wonderland as wl
    >>> wl.sort(wl.tensor([3.0, 1.0, 2.0])), wl.sort(wl.tensor([3, 1, 2]), descending=True)
    (tensor([1., 2., 3.]), tensor([3, 2, 1]))
    """
    x = as_tensor("sort", x)
    return take_along_axis(x, argsort(x, axis=axis, descending=descending), axis=axis)


class TopK(NamedTuple):
    """The k best values, best first, and their positions."""

    values: Tensor
    indices: Tensor


def top_k(x: ArrayLike, k: int, /, axis: int = -1, *, largest: bool = True) -> TopK:
    """The k largest (or smallest) elements along an axis, best first, and where they are.

    >>> import wonderland as wl
    >>> values, indices = wl.top_k(wl.tensor([1.0, 5.0, 3.0]), 2)
    >>> values, indices
    (tensor([5., 3.]), tensor([1, 2]))

    Of equal elements the first comes first; derivatives go to the selected elements.
    """
    x = as_tensor("top_k", x)
    place = normalize_axis("top_k", axis, x.ndim)
    k = as_int("top_k", "k", k)
    if not 0 <= k <= x.shape[place]:
        raise InputError(
            f"top_k: k={k} for an axis of size {x.shape[place]} (shape {x.shape}).",
            f"k from 0 to {x.shape[place]}",
        )
    order = argsort(x, axis=place, descending=largest)[(slice(None),) * place + (slice(0, k),)]
    return TopK(take_along_axis(x, order, axis=place), order)


topk = top_k

# --- sets: the sizes of the results depend on the data, so these run on computed values only


class UniqueAll(NamedTuple):
    """The distinct values, where each occurs first, where each element went, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The distinct values and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The distinct values and where each element went."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: ArrayLike, /) -> UniqueAll:
    """The distinct elements in order, with their first positions, the inverse, and the counts.

    >>> import wonderland as wl
    >>> found = wl.unique_all(wl.tensor([3, 1, 3]))
    >>> found.values, found.indices, found.inverse_indices, found.counts
    (tensor([1, 3]), tensor([1, 0]), tensor([1, 0, 1]), tensor([1, 2]))

    Every NaN is distinct. Not inside `jit`: the sizes depend on the data.
    """
    x = as_tensor("unique", x)
    found = np.unique_all(x._concrete("a set of distinct values"))
    return UniqueAll(*[wrap(np.asarray(part)) for part in found])


def unique_values(x: ArrayLike, /) -> Tensor:
    """The distinct elements in order.

    >>> import wonderland as wl
    >>> wl.unique_values(wl.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    return unique_all(x).values


unique = unique_values


def unique_counts(x: ArrayLike, /) -> UniqueCounts:
    """The distinct elements and how often each occurs.

    >>> import wonderland as wl
    >>> wl.unique_counts(wl.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: ArrayLike, /) -> UniqueInverse:
    """The distinct elements and where each element went: values[inverse_indices] is x.

    >>> import wonderland as wl
    >>> wl.unique_inverse(wl.tensor([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 occurs in x2 (or, inverted, does not).

    >>> import wonderland as wl
    >>> wl.isin(wl.tensor([1, 2, 3]), wl.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    a, b = promote("isin", x1, x2)
    if is_complex(a.dtype):
        found = equal(a[..., None], reshape(b, (1,) * a.ndim + (b.size,))).any(axis=-1)
    elif b.size == 0:
        found = full(a.shape, False, np.dtype(bool))
    else:
        ordered = sort(ravel(b))
        place = minimum(searchsorted(ordered, a), b.size - 1)
        found = equal(take(ordered, place), a)
    return logical_not(found) if invert else found
