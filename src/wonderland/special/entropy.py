"""Terms of entropies and divergences, with their limits at 0."""

from __future__ import annotations

import math

from .. import arrays
from ..arrays.conversion import as_real, promote_inexact
from ..core.tensor import Tensor
from ..core.typing import ArrayLike


def entr(x: ArrayLike, /) -> Tensor:
    r"""\(-x\ln x\), 0 at 0 and \(-\infty\) below.

    >>> import wonderland as wl
    >>> wl.special.entr(wl.tensor([0.0, 1.0, -1.0]))
    tensor([  0.,   0., -inf])
    """
    x = as_real("entr", x)
    return arrays.where(x < 0, -math.inf, -arrays.xlogy(x, arrays.where(x < 0, 1.0, x)))


def xlog1py(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    r"""\(x \ln(1 + y)\), and 0 where x is 0 (also for y = -1).

    >>> import wonderland as wl
    >>> wl.special.xlog1py(wl.tensor([0.0, 2.0]), wl.tensor([-1.0, 0.0]))
    tensor([0., 0.])
    """
    x, y = promote_inexact("xlog1py", x, y)
    zero = (x == 0) & (y == y)  # a NaN stays one
    return arrays.where(zero, 0.0, x * arrays.log1p(arrays.where(zero, 0.0, y)))


def rel_entr(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    r"""\(x\ln(x/y)\), 0 for x = 0 and y >= 0, and infinite where it is not defined.

    >>> import wonderland as wl
    >>> wl.special.rel_entr(wl.tensor([0.0, 1.0]), wl.tensor([1.0, 0.0]))
    tensor([ 0., inf])
    """
    x, y = promote_inexact("rel_entr", x, y)
    inside = (x > 0) & (y > 0)
    a, b = arrays.where(inside, x, 1.0), arrays.where(inside, y, 1.0)
    outside = arrays.where((x == 0) & (y >= 0), 0.0, arrays.where((x == x) & (y == y), math.inf, math.nan))
    return arrays.where(inside, a * (arrays.log(a) - arrays.log(b)), outside)


def kl_div(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    r"""\(x\ln(x/y) - x + y\): the terms of the Kullback-Leibler divergence, none of which is negative.

    >>> import wonderland as wl
    >>> wl.special.kl_div(wl.tensor([0.0, 1.0]), wl.tensor([1.0, 1.0]))
    tensor([1., 0.])
    """
    x, y = promote_inexact("kl_div", x, y)
    found = rel_entr(x, y)
    return arrays.where(arrays.isinf(found), found, found - x + y)
