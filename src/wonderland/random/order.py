"""Random orders and selections: permutations, shuffles, choices."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import argsort, cumsum, finfo, log, moveaxis, searchsorted, take
from ..arrays.conversion import as_shape, convert
from ..core import dtypes
from ..core.broadcasting import normalize_axis
from ..core.dtypes import is_floating
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike, ShapeLike
from .arguments import as_parameter_tensor, key_and_shape, known
from .continuous import standard_gumbel
from .discrete import randint
from .streams import take_key
from .words import draw_fraction, draw_wide


def permutation(x: ArrayLike, axis: int = 0, *, key: KeyLike = None) -> Tensor:
    """The numbers 0 to n - 1 in random order, or a tensor with its slices along an axis in random order.

    >>> import wonderland as wl
    >>> wl.sort(wl.random.permutation(5))
    tensor([0, 1, 2, 3, 4])

    All orders are equally likely: they sort random 64-bit numbers, of which two are equal with probability
    below n^2 / 2^65.
    """
    if isinstance(x, (int, np.integer)):
        return _order("permutation", int(x), key)
    x = as_parameter_tensor("permutation", x)
    place = normalize_axis("permutation", axis, x.ndim)
    return _select(x, place, _order("permutation", x.shape[place], key), 1)


shuffle = permutation


def _order(name: str, n: int, key: KeyLike) -> Tensor:
    key, shape = key_and_shape(name, (n,), key, dtypes.int64)
    return argsort(draw_wide(key, shape), axis=-1)


def _select(x: Tensor, axis: int, index: Tensor, ndim: int) -> Tensor:
    """The slices of x at an index whose last `ndim` axes take the place of the axis; the others lead."""
    out = take(moveaxis(x, axis, 0), index, axis=0)
    if not axis:
        return out
    places = range(index.ndim - ndim, index.ndim)
    return moveaxis(out, tuple(places), tuple(i + axis for i in places))


def choice(
    a: ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    *,
    key: KeyLike = None,
) -> Tensor:
    """Elements of a drawn at random: numbers below a if a is an integer, else slices of a along an axis.

    >>> import wonderland as wl
    >>> wl.sort(wl.random.choice(5, (5,), replace=False))
    tensor([0, 1, 2, 3, 4])

    `p` are probabilities, one per element (all equal if None). Without replacement no element comes twice:
    each is drawn from those that are left, with probabilities in proportion to p. The axis is replaced by the
    axes of `shape`.
    """
    sizes = as_shape("choice", shape)
    if isinstance(a, (int, np.integer)):
        x, n, place = None, int(a), 0
    else:
        x = as_parameter_tensor("choice", a)
        place = normalize_axis("choice", axis, x.ndim)
        n = x.shape[place]
    count = math.prod(sizes)
    if n <= 0 and count:
        raise InputError(f"choice: there are {n} elements to choose from.", "at least one element")
    if not replace and count > n:
        raise InputError(f"choice: {count} of {n} elements without replacement.", "replace=True, or a smaller shape")
    if p is not None:
        p = as_parameter_tensor("choice", p)
        _check_probabilities(p, n, 1 if replace else count)
    key = take_key("choice", key)
    if p is None:
        index = _uniform_index(n, sizes, replace, key)
    else:
        index = _weighted_index(n, sizes, replace, p, key)
    return index if x is None else _select(x, place, index, len(sizes))


def _uniform_index(n: int, shape: tuple[int, ...], replace: bool, key: Tensor) -> Tensor:
    if replace:
        return randint(shape, 0, max(1, n), key=key)
    return _order("choice", n, key)[..., : math.prod(shape)].reshape(key.shape[:-1] + shape)


def _weighted_index(n: int, shape: tuple[int, ...], replace: bool, p: Tensor, key: Tensor) -> Tensor:
    p = convert(p, dtypes.float64)
    if replace:
        total = cumsum(p, axis=0)
        return searchsorted(total / total[-1], draw_fraction(key, shape, dtypes.float64), side="right")
    # log p plus Gumbel noise, sorted downwards, is the order of successive draws
    scores = log(p) + standard_gumbel(key, (n,), dtypes.float64)
    return argsort(scores, axis=-1, descending=True)[..., : math.prod(shape)].reshape(key.shape[:-1] + shape)


def _check_probabilities(p: Tensor, n: int, count: int) -> None:
    if not is_floating(p.dtype):
        raise DTypeError(f"choice: probabilities of {p.dtype}.", "a floating dtype")
    if p.shape != (n,):
        raise ShapeError(f"choice: probabilities of shape {p.shape} for {n} elements.", f"shape ({n},)")
    value = known(p)
    if value is None:
        return
    value = value.astype(np.float64)
    if not np.all(value >= 0):
        raise InputError("choice: a probability is negative or NaN.", "probabilities of 0 or more")
    if abs(value.sum() - 1) > max(1e-5, 8 * finfo(p.dtype).eps):
        raise InputError(f"choice: the probabilities sum to {value.sum():.6g}, not to 1.", "p / p.sum()")
    possible = np.count_nonzero(value)
    if possible < count:
        raise InputError(
            f"choice: {count} elements without replacement, but only {possible} have a probability above 0.",
            "a smaller shape",
        )
