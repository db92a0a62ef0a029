"""The standard normal distribution function, its logarithm and its inverse, and the inverse of erfc."""

from __future__ import annotations

import math

from .. import arrays
from ..arrays.conversion import as_real
from ..core.dtypes import float64
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives.roots import erfcinv as primitive

FAR = -10.0  # below it the series in 1 / x^2 has all digits


def erfcinv(x: ArrayLike, /) -> Tensor:
    """The inverse of erfc on [0, 2], exact also near 0.

    >>> import wonderland as wl
    >>> print(wl.special.erfcinv(wl.tensor(1e-30, wl.float64)))
    tensor(8.14861622, dtype=float64)
    """
    return primitive(as_real("erfcinv", x))


def ndtr(x: ArrayLike, /) -> Tensor:
    r"""\(\Phi(x) = \frac12\operatorname{erfc}(-x/\sqrt2)\): a normal variable is below x with this probability.

    >>> import wonderland as wl
    >>> print(wl.special.ndtr(0.0))
    tensor(0.5)
    """
    x = as_real("ndtr", x)
    wide = arrays.astype(x, float64)  # a rounded product would be magnified by the slope of the tail
    return arrays.astype(0.5 * arrays.erfc(wide * -math.sqrt(0.5)), x.dtype)


def ndtri(p: ArrayLike, /) -> Tensor:
    r"""\(\Phi^{-1}(p)\), the quantile of the normal distribution.

    >>> import wonderland as wl
    >>> print(wl.special.ndtri(wl.tensor(0.975, wl.float64)))
    tensor(1.95996398, dtype=float64)
    """
    p = as_real("ndtri", p)
    return arrays.astype(-math.sqrt(2) * primitive(2 * arrays.astype(p, float64)), p.dtype)


def log_ndtr(x: ArrayLike, /) -> Tensor:
    r"""\(\ln\Phi(x)\), also where \(\Phi\) underflows.

    >>> import wonderland as wl
    >>> print(wl.special.log_ndtr(wl.tensor(-100.0, wl.float64)))
    tensor(-5005.52420869, dtype=float64)
    """
    narrow = as_real("log_ndtr", x)
    x = arrays.astype(narrow, float64)
    far = arrays.where(x < FAR, x, FAR)
    w = 1 / (far * far)
    series: Tensor | float = 1.0
    for k in range(16, 0, -1):
        series = 1 - (2 * k - 1) * w * series
    tail = -0.5 * far * far - arrays.log(-far) - 0.5 * math.log(2 * math.pi) + arrays.log(series)
    middle = arrays.clip(x, FAR, 0.0)
    below = arrays.log(0.5 * arrays.erfc(middle * -math.sqrt(0.5)))
    above = arrays.log1p(-0.5 * arrays.erfc(arrays.clip(x, 0.0, None) * math.sqrt(0.5)))
    return arrays.astype(arrays.where(x < FAR, tail, arrays.where(x < 0, below, above)), narrow.dtype)
