"""Sorting, selecting and sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..primitives import sorting as p
from ..primitives.broadcasting import normalize_axis
from ..tensor import Tensor, wrap
from .conversion import as_tensor, promote
from .elementwise import bitwise_invert
from .indexing import take_along_axis


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The order that sorts x along an axis; equal elements keep their order."""
    x = as_tensor("argsort", x)
    return p.argsort(x, axis=normalize_axis("argsort", axis, x.ndim), descending=descending)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """x sorted along an axis; derivatives go back to where the elements came from.

    >>> import wonderland as wl
    >>> wl.sort(wl.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    x = as_tensor("sort", x)
    return take_along_axis(x, argsort(x, axis=axis, descending=descending), axis=axis)


class TopK(NamedTuple):
    """The values and their positions."""

    values: Tensor
    indices: Tensor


def top_k(x: Any, k: int, /, *, axis: int = -1, largest: bool = True) -> TopK:
    """The k largest (or smallest) elements along an axis, best first, and where they are.

    >>> import wonderland as wl
    >>> wl.top_k(wl.tensor([1.0, 5.0, 3.0]), 2).indices
    tensor([1, 2])
    """
    x = as_tensor("top_k", x)
    place = normalize_axis("top_k", axis, x.ndim)
    if not 0 <= k <= x.shape[place]:
        raise InputError(f"top_k: k={k} for an axis of size {x.shape[place]} (shape {x.shape}).", f"k from 0 to {x.shape[place]}")
    order = argsort(x, axis=place, descending=largest)[(slice(None),) * place + (slice(0, k),)]
    return TopK(take_along_axis(x, order, axis=place), order)


topk = top_k

# --- sets: the sizes of the results depend on the data, so these run on computed values only


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements in order, where each occurs first, where each element went, and how often each occurs."""
    x = as_tensor("unique", x)
    found = np.unique_all(x._concrete("a set of distinct values"))
    return UniqueAll(*[wrap(np.asarray(part)) for part in found])


def unique_values(x: Any, /) -> Tensor:
    """The distinct elements in order."""
    return unique_all(x).values


def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements and how often each occurs."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements and where each element went."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


unique = unique_values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 occurs in x2."""
    a, b = promote("isin", x1, x2)
    flat = b.reshape((1,) * a.ndim + (b.size,))
    found = (a.reshape((*a.shape, 1)) == flat).any(axis=-1)
    return bitwise_invert(found) if invert else found


__all__ = [
    "TopK",
    "argsort",
    "isin",
    "sort",
    "top_k",
    "topk",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]
