"""Pre-emphasis: high frequencies made louder, as they are softer in speech, and its inverse."""

from __future__ import annotations

from .. import arrays
from ..arrays.conversion import as_real
from ..core.arguments import as_number
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..transforms.control.associative import associative_scan


def preemphasis(x: ArrayLike, coeff: float = 0.97) -> Tensor:
    r"""\(y_t = x_t - a\,x_{t-1}\) along the last axis, with \(x_{-1} = 0\).

    >>> import wonderland as wl
    >>> wl.audio.preemphasis(wl.tensor([1.0, 1.0, 2.0]), 0.5)
    tensor([1. , 0.5, 1.5])
    """
    x, a = _checked("preemphasis", x, coeff)
    return arrays.concat([x[..., :1], x[..., 1:] - a * x[..., :-1]], axis=-1)


def deemphasis(y: ArrayLike, coeff: float = 0.97) -> Tensor:
    r"""\(x_t = y_t + a\,x_{t-1}\), the inverse of `preemphasis`, in about \(2\log_2 t\) steps.

    >>> import wonderland as wl
    >>> wl.audio.deemphasis(wl.tensor([1.0, 0.5, 1.5]), 0.5)
    tensor([1., 1., 2.])
    """
    y, a = _checked("deemphasis", y, coeff)

    def after(
        first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:  # x -> f x + c, twice
        (f, c), (g, d) = first, second
        return f * g, g * c + d

    return associative_scan(after, (arrays.full_like(y, a), y), axis=-1)[1]


def _checked(name: str, x: ArrayLike, coeff: float) -> tuple[Tensor, float]:
    x = as_real(name, x)
    if not x.ndim or not x.shape[-1]:
        raise ShapeError(f"{name}: a signal of shape {x.shape} has no samples.", "(..., time)")
    if not 0 <= as_number(name, "coeff", coeff) <= 1:
        raise InputError(f"{name}: coeff={coeff}.", "a number from 0 to 1")
    return x, float(coeff)
