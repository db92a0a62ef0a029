"""Reductions over segments: rows that share an id are combined, as the messages to one node of a graph are.

With data (n, ...) and ids (n,) every function gives (num_segments, ...). Without `num_segments` it is the
largest id plus one, which only computed values can tell. An id out of range raises.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.dtypes import int64, is_complex, is_floating, is_integer
from ..core.errors import DTypeError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import indexing as p
from ..primitives.elementwise import exp, isfinite
from .activations import safe_log
from .conversion import as_inexact, as_real, as_tensor
from .creation import full, ones
from .logic import where
from .manipulation import reshape
from .stopping import stop_gradient

__all__ = [
    "segment_logsumexp",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_softmax",
    "segment_sum",
]


def _segments(name: str, data: ArrayLike, ids: ArrayLike, count: int | None) -> tuple[Tensor, Tensor, int]:
    data, ids = as_tensor(name, data), as_tensor(name, ids)
    if ids.ndim != 1 or data.shape[:1] != ids.shape:
        raise ShapeError(
            f"{name}: data of shape {data.shape} with ids of shape {ids.shape}.",
            "one id per row: data (n, ...), ids (n,)",
        )
    if not is_integer(ids.dtype):
        raise DTypeError(f"{name}: the ids are {ids.dtype}.", "integer ids")
    if count is None:
        known = ids._concrete("a number of segments")
        count = int(known.max()) + 1 if known.size else 0
    return data, ids, count


def _combine(start: float, data: Tensor, ids: Tensor, count: int, mode: str) -> Tensor:
    initial = full((count, *data.shape[1:]), start, dtype=data.dtype)
    return p.scatter(initial, data, ids, axes=(0,), mode=mode)


def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    r"""\(\mathrm{out}_k = \sum_{i:\, s_i = k} x_i\); 0 for empty segments.

    >>> import wonderland as wl
    >>> wl.segment_sum(wl.tensor([1.0, 2.0, 3.0]), wl.tensor([0, 0, 1]), 3)
    tensor([3., 3., 0.])
    """
    data, ids, count = _segments("segment_sum", data, segment_ids, num_segments)
    return _combine(0, data, ids, count, "add")


def segment_mean(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """The means of the rows with equal segment id; 0 for empty segments.

    >>> import wonderland as wl
    >>> wl.segment_mean(wl.tensor([1.0, 2.0, 3.0]), wl.tensor([0, 0, 1]), 3)
    tensor([1.5, 3. , 0. ])
    """
    data, ids, count = _segments("segment_mean", data, segment_ids, num_segments)
    data = as_inexact("segment_mean", data)
    members = _combine(0, ones(ids.shape, dtype=int64), ids, count, "add")
    members = reshape(where(members == 0, 1, members), (count,) + (1,) * (data.ndim - 1))
    return _combine(0, data, ids, count, "add") / members


def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """The products of the rows with equal segment id; 1 for empty segments. Not differentiable.

    >>> import wonderland as wl
    >>> wl.segment_prod(wl.tensor([2.0, 5.0, 3.0]), wl.tensor([0, 0, 1]), 3)
    tensor([10.,  3.,  1.])
    """
    data, ids, count = _segments("segment_prod", data, segment_ids, num_segments)
    return _combine(1, data, ids, count, "multiply")


def _extreme(name: str, data: ArrayLike, ids: ArrayLike, count: int | None, mode: str) -> Tensor:
    data, ids, count = _segments(name, data, ids, count)
    if is_floating(data.dtype):
        return _combine(-math.inf if mode == "max" else math.inf, data, ids, count, mode)
    if is_complex(data.dtype) or not is_integer(data.dtype):
        raise DTypeError(f"{name}: takes integer or floating tensors, received {data.dtype}.", "x.astype(...)")
    info = np.iinfo(data.dtype)
    return _combine(int(info.min if mode == "max" else info.max), data, ids, count, mode)


def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """The largest of the rows with equal segment id; -inf (or the least integer) for empty segments.

    >>> import wonderland as wl
    >>> wl.segment_max(wl.tensor([1.0, 2.0, 3.0]), wl.tensor([0, 0, 1]))
    tensor([2., 3.])
    """
    return _extreme("segment_max", data, segment_ids, num_segments, "max")


def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """The smallest of the rows with equal segment id; inf (or the largest integer) for empty segments.

    >>> import wonderland as wl
    >>> wl.segment_min(wl.tensor([1.0, 2.0, 3.0]), wl.tensor([0, 0, 1]))
    tensor([1., 3.])
    """
    return _extreme("segment_min", data, segment_ids, num_segments, "min")


def _finite_max(data: Tensor, ids: Tensor, count: int) -> Tensor:
    """The largest of each segment, no derivative through it; 0 where it is infinite."""
    top = _combine(-math.inf, stop_gradient(data), ids, count, "max")
    return where(isfinite(top), top, 0)


def segment_softmax(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    r"""\(e^{x_i} / \sum_{j:\, s_j = s_i} e^{x_j}\), a softmax within each segment, (n, ...). Book, section 12.3.1.

    The largest of each segment is subtracted first. A segment without rows has no weights, and nothing is divided by 0;
    one whose rows are all -inf has weights 0. `wl.sparse.segment_softmax` is faster where ids are used again.

    >>> import wonderland as wl
    >>> wl.segment_softmax(wl.tensor([0.0, 1000.0, 0.0]), wl.tensor([0, 2, 0]), 4)
    tensor([0.5, 1. , 0.5])
    """
    data, ids, count = _segments("segment_softmax", data, segment_ids, num_segments)
    data = as_real("segment_softmax", data)
    terms = exp(data - p.gather(_finite_max(data, ids, count), ids, axes=(0,)))
    total = _combine(0, terms, ids, count, "add")
    return terms / p.gather(where(total == 0, 1, total), ids, axes=(0,))


def segment_logsumexp(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    r"""\(\ln \sum_{i:\, s_i = k} e^{x_i}\) without overflow; -inf for empty segments.

    >>> import wonderland as wl
    >>> wl.segment_logsumexp(wl.tensor([1000.0, 1000.0, 5.0]), wl.tensor([0, 0, 1]), 3)
    tensor([1000.6932,    5.    ,      -inf])
    """
    data, ids, count = _segments("segment_logsumexp", data, segment_ids, num_segments)
    data = as_real("segment_logsumexp", data)
    top = _finite_max(data, ids, count)
    total = _combine(0, exp(data - p.gather(top, ids, axes=(0,))), ids, count, "add")
    return safe_log(total) + top
