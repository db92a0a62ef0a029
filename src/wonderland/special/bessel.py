"""Modified Bessel functions of the first kind."""

from __future__ import annotations

from ..arrays.conversion import as_real
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import bessel as p


def i0(x: ArrayLike, /) -> Tensor:
    r"""\(I_0(x) = \frac1\pi\int_0^\pi e^{x\cos\theta}\,d\theta\).

    >>> import wonderland as wl
    >>> print(wl.special.i0(1.0))
    tensor(1.26606)
    """
    return p.i0(as_real("i0", x))


def i0e(x: ArrayLike, /) -> Tensor:
    r"""\(e^{-|x|} I_0(x)\), which does not overflow.

    >>> import wonderland as wl
    >>> print(wl.special.i0e(1.0))
    tensor(0.46575)
    """
    return p.i0e(as_real("i0e", x))


def i1(x: ArrayLike, /) -> Tensor:
    r"""\(I_1(x) = \frac1\pi\int_0^\pi e^{x\cos\theta}\cos\theta\,d\theta\), the derivative of \(I_0\).

    >>> import wonderland as wl
    >>> print(wl.special.i1(1.0))
    tensor(0.56515)
    """
    return p.i1(as_real("i1", x))


def i1e(x: ArrayLike, /) -> Tensor:
    r"""\(e^{-|x|} I_1(x)\), which does not overflow.

    >>> import wonderland as wl
    >>> print(wl.special.i1e(1.0))
    tensor(0.20791)
    """
    return p.i1e(as_real("i1e", x))
