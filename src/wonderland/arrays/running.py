"""Running extremes and running sums of exponentials along an axis; running sums and products are in reductions.py."""

from __future__ import annotations

from typing import NamedTuple

from ..core.broadcasting import normalize_axis
from ..core.primitive import Primitive
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import reduction as p
from .conversion import as_ordered, as_real

__all__ = ["cummax", "cummin", "logcumsumexp"]


class Extremes(NamedTuple):
    """The largest or smallest elements so far, and where they stand: of equal ones the last."""

    values: Tensor
    indices: Tensor


def cummax(x: ArrayLike, /, axis: int = -1) -> Extremes:
    r"""The running largest element \(y_j = \max_{i \le j} x_i\) along an axis and its position; NaN from the first on.

    >>> import wonderland as wl
    >>> values, indices = wl.cummax(wl.tensor([1.0, 3.0, 2.0, 4.0]))
    >>> values, indices
    (tensor([1., 3., 3., 4.]), tensor([0, 1, 1, 3]))

    The derivative goes to the element at that position.
    """
    return _extremes("cummax", p.cummax, x, axis)


def cummin(x: ArrayLike, /, axis: int = -1) -> Extremes:
    r"""The running smallest element \(y_j = \min_{i \le j} x_i\) along an axis and its position; NaN from the first on.

    >>> import wonderland as wl
    >>> wl.cummin(wl.tensor([3, 1, 2])).values
    tensor([3, 1, 1])
    """
    return _extremes("cummin", p.cummin, x, axis)


def _extremes(name: str, primitive: Primitive, x: ArrayLike, axis: int) -> Extremes:
    x = as_ordered(name, x)
    place = normalize_axis(name, axis, x.ndim)
    values = primitive(x, axis=place, reverse=False)
    return Extremes(values, p.places_of_extremes(x, values, place, False))


def logcumsumexp(x: ArrayLike, /, axis: int = -1) -> Tensor:
    r"""\(y_j = \ln\sum_{i \le j} e^{x_i}\) along an axis, without overflow.

    >>> import wonderland as wl
    >>> print(wl.logcumsumexp(wl.tensor([0.0, 0.0, 0.0])))
    tensor([0.       , 0.6931472, 1.0986123])
    """
    x = as_real("logcumsumexp", x)
    return p.logcumsumexp(x, axis=normalize_axis("logcumsumexp", axis, x.ndim), reverse=False)
