"""Complex numbers: parts, conjugate and angle.

For a complex argument z = x + iy of a real function f, `wl.grad` gives df/dx + i df/dy: the direction of
steepest ascent. Real tensors pass through these functions with the meaning that they have as complex numbers.
"""

from __future__ import annotations

from ..core.dtypes import is_complex
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import elementwise as p
from ..primitives.creation import zeros_like
from .conversion import as_inexact, as_result, as_tensor, promote_inexact

__all__ = ["angle", "complex", "conj", "imag", "real"]


def real(x: ArrayLike, /) -> Tensor:
    """The real part.

    >>> import wonderland as wl
    >>> wl.real(wl.tensor([1 + 2j, 3.0]))
    tensor([1., 3.])
    """
    x = as_tensor("real", x)
    return p.real(x) if is_complex(x.dtype) else as_result(x)


def imag(x: ArrayLike, /) -> Tensor:
    """The imaginary part; zero for real tensors.

    >>> import wonderland as wl
    >>> wl.imag(wl.tensor([1 + 2j, 3.0]))
    tensor([2., 0.])
    """
    x = as_tensor("imag", x)
    return p.imag(x) if is_complex(x.dtype) else zeros_like(x)


def conj(x: ArrayLike, /) -> Tensor:
    """The complex conjugate x - iy of x + iy.

    >>> import wonderland as wl
    >>> wl.conj(wl.tensor(1 + 2j))
    tensor(1.-2.j, dtype=complex64)
    """
    x = as_tensor("conj", x)
    return p.conj(x) if is_complex(x.dtype) else as_result(x)


def angle(x: ArrayLike, /) -> Tensor:
    """The argument of a complex number, in [-pi, pi].

    >>> import wonderland as wl
    >>> print(wl.angle(1j))
    tensor(1.57079)
    """
    x = as_inexact("angle", x)
    return p.atan2(imag(x), real(x))


def complex(real: ArrayLike, imag: ArrayLike, /) -> Tensor:
    """real + i imag.

    >>> import wonderland as wl
    >>> wl.complex(wl.tensor([1.0, 2.0]), 0.5)
    tensor([1.+0.5j, 2.+0.5j], dtype=complex64)
    """
    parts = promote_inexact("complex", real, imag)
    p.check_kind("complex", p.FLOATING, parts[0])
    return p.complex_(*parts)
