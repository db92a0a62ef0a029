"""Comparisons, predicates, logic, bits, and the choice between two tensors."""

from __future__ import annotations

from ..core import dtypes
from ..core.shortcuts import of_one, of_two
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import elementwise as p
from ..primitives.creation import zeros_like
from .arithmetic import abs as abs_
from .conversion import as_tensor, promote, promote_inexact, promote_kind

__all__ = [
    "allclose", "array_equal", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "equal", "greater", "greater_equal", "isclose", "isfinite", "isinf", "isnan",
    "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal", "where",
]  # fmt: skip

# --- comparisons


@of_two(p.equal)
def equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 == x2, element by element; NaN equals nothing.

    >>> import wonderland as wl
    >>> wl.equal(wl.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return p.equal(*promote("equal", x1, x2))


@of_two(p.not_equal)
def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 != x2.

    >>> import wonderland as wl
    >>> wl.not_equal(wl.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return p.not_equal(*promote("not_equal", x1, x2))


@of_two(p.less)
def less(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 < x2.

    >>> import wonderland as wl
    >>> wl.less(wl.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return p.less(*promote_kind("less", p.REAL, x1, x2))


@of_two(p.less_equal)
def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 <= x2.

    >>> import wonderland as wl
    >>> wl.less_equal(wl.tensor([1, 2]), 2)
    tensor([ True,  True])
    """
    return p.less_equal(*promote_kind("less_equal", p.REAL, x1, x2))


@of_two(p.greater)
def greater(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 > x2.

    >>> import wonderland as wl
    >>> wl.greater(wl.tensor([1, 2]), 1)
    tensor([False,  True])
    """
    return p.greater(*promote_kind("greater", p.REAL, x1, x2))


@of_two(p.greater_equal)
def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 >= x2.

    >>> import wonderland as wl
    >>> wl.greater_equal(wl.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return p.greater_equal(*promote_kind("greater_equal", p.REAL, x1, x2))


def isclose(
    x1: ArrayLike, x2: ArrayLike, /, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    r"""\(|x_1 - x_2| \le \mathrm{atol} + \mathrm{rtol}\,|x_2|\), element by element.

    >>> import wonderland as wl
    >>> wl.isclose(wl.tensor([1.0, 2.0]), wl.tensor([1.0 + 1e-7, 2.1]))
    tensor([ True, False])
    """
    a, b = promote_inexact("isclose", x1, x2)
    with_bound = abs_(a - b) <= abs_(b) * rtol + atol
    close = logical_or(equal(a, b), logical_and(with_bound, isfinite(b)))
    return logical_or(close, logical_and(isnan(a), isnan(b))) if equal_nan else close


def allclose(
    x1: ArrayLike, x2: ArrayLike, /, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close, see `isclose`.

    >>> import wonderland as wl
    >>> wl.allclose(wl.ones(3), wl.ones(3) + 1e-7)
    True
    """
    return bool(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan).all())


def array_equal(x1: ArrayLike, x2: ArrayLike, /) -> bool:
    """Whether two tensors have the same shape and the same elements.

    >>> import wonderland as wl
    >>> wl.array_equal(wl.ones(3), wl.ones((3, 1)))
    False
    """
    a, b = as_tensor("array_equal", x1), as_tensor("array_equal", x2)
    return a.shape == b.shape and bool(equal(a, b).all())


# --- predicates


@of_one(p.isfinite)
def isfinite(x: ArrayLike, /) -> Tensor:
    """Neither NaN nor infinite.

    >>> import math, wonderland as wl
    >>> wl.isfinite(wl.tensor([1.0, math.inf, math.nan]))
    tensor([ True, False, False])
    """
    return p.isfinite(as_tensor("isfinite", x))


@of_one(p.isinf)
def isinf(x: ArrayLike, /) -> Tensor:
    """Infinite.

    >>> import math, wonderland as wl
    >>> wl.isinf(wl.tensor([1.0, -math.inf, math.nan]))
    tensor([False,  True, False])
    """
    return p.isinf(as_tensor("isinf", x))


@of_one(p.isnan)
def isnan(x: ArrayLike, /) -> Tensor:
    """Not a number.

    >>> import math, wonderland as wl
    >>> wl.isnan(wl.tensor([1.0, math.inf, math.nan]))
    tensor([False, False,  True])
    """
    return p.isnan(as_tensor("isnan", x))


# --- logic: numbers are true when they are not zero


def as_bool(name: str, x: ArrayLike) -> Tensor:
    x = as_tensor(name, x)
    return x if x.dtype is dtypes.bool_ else p.not_equal(x, zeros_like(x))


def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Both true.

    >>> import wonderland as wl
    >>> wl.logical_and(wl.tensor([True, True]), wl.tensor([True, False]))
    tensor([ True, False])
    """
    return p.bitwise_and(as_bool("logical_and", x1), as_bool("logical_and", x2))


def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """At least one true.

    >>> import wonderland as wl
    >>> wl.logical_or(wl.tensor([True, False]), wl.tensor([False, False]))
    tensor([ True, False])
    """
    return p.bitwise_or(as_bool("logical_or", x1), as_bool("logical_or", x2))


def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Exactly one true.

    >>> import wonderland as wl
    >>> wl.logical_xor(wl.tensor([True, True]), wl.tensor([True, False]))
    tensor([False,  True])
    """
    return p.bitwise_xor(as_bool("logical_xor", x1), as_bool("logical_xor", x2))


def logical_not(x: ArrayLike, /) -> Tensor:
    """Not true.

    >>> import wonderland as wl
    >>> wl.logical_not(wl.tensor([True, False]))
    tensor([False,  True])
    """
    return p.bitwise_invert(as_bool("logical_not", x))


# --- bits


@of_two(p.bitwise_and)
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The bits set in both.

    >>> import wonderland as wl
    >>> wl.bitwise_and(wl.tensor([6]), 3)
    tensor([2])
    """
    return p.bitwise_and(*promote("bitwise_and", x1, x2))


@of_two(p.bitwise_or)
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The bits set in either.

    >>> import wonderland as wl
    >>> wl.bitwise_or(wl.tensor([6]), 3)
    tensor([7])
    """
    return p.bitwise_or(*promote("bitwise_or", x1, x2))


@of_two(p.bitwise_xor)
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The bits set in exactly one.

    >>> import wonderland as wl
    >>> wl.bitwise_xor(wl.tensor([6]), 3)
    tensor([5])
    """
    return p.bitwise_xor(*promote("bitwise_xor", x1, x2))


@of_one(p.bitwise_invert)
def bitwise_invert(x: ArrayLike, /) -> Tensor:
    """Every bit flipped; logical not for bool.

    >>> import wonderland as wl
    >>> wl.bitwise_invert(wl.tensor([0, 1]))
    tensor([-1, -2])
    """
    return p.bitwise_invert(as_tensor("bitwise_invert", x))


@of_two(p.bitwise_left_shift)
def bitwise_left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 shifted left by x2 bits.

    >>> import wonderland as wl
    >>> wl.bitwise_left_shift(wl.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """
    return p.bitwise_left_shift(*promote_kind("bitwise_left_shift", p.INTEGER, x1, x2))


@of_two(p.bitwise_right_shift)
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 shifted right by x2 bits; the sign stays.

    >>> import wonderland as wl
    >>> wl.bitwise_right_shift(wl.tensor([4, -8]), 2)
    tensor([ 1, -2])
    """
    return p.bitwise_right_shift(*promote_kind("bitwise_right_shift", p.INTEGER, x1, x2))


# --- choice


def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 where the condition holds, x2 elsewhere; the derivative goes to the one that was chosen.

    >>> import wonderland as wl
    >>> wl.where(wl.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    a, b = promote("where", x1, x2)
    return p.where(as_bool("where", condition), a, b)
