"""Gated units: one half of the features decides how much of the other half passes. Book, section 5.4."""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...arrays.conversion import as_real
from ...core.broadcasting import normalize_axis
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .activations import gelu, silu

__all__ = ["geglu", "glu", "reglu", "swiglu"]


def glu(x: ArrayLike, axis: int = -1) -> Tensor:
    r"""The gated linear unit \(a \odot \sigma(b)\) of the two halves of x along an axis. Book, E.5.14.

    >>> import wonderland as wl
    >>> wl.nn.functional.glu(wl.tensor([4.0, 0.0]))
    tensor([2.])

    `wl.nn.GatedLinear` is the layer that makes both halves.
    """
    return _gated("glu", x, axis, arrays.sigmoid)


def swiglu(x: ArrayLike, axis: int = -1) -> Tensor:
    r"""\(a \odot \mathrm{silu}(b)\) of the two halves of x along an axis. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.swiglu(wl.tensor([4.0, 0.0]))
    tensor([0.])
    """
    return _gated("swiglu", x, axis, silu)


def geglu(x: ArrayLike, axis: int = -1) -> Tensor:
    r"""\(a \odot \mathrm{gelu}(b)\) of the two halves of x along an axis.

    >>> import wonderland as wl
    >>> wl.nn.functional.geglu(wl.tensor([4.0, 100.0]))
    tensor([400.])
    """
    return _gated("geglu", x, axis, gelu)


def reglu(x: ArrayLike, axis: int = -1) -> Tensor:
    r"""\(a \odot \max(0, b)\) of the two halves of x along an axis.

    >>> import wonderland as wl
    >>> wl.nn.functional.reglu(wl.tensor([4.0, 5.0, -1.0, 2.0]))
    tensor([ 0., 10.])
    """
    return _gated("reglu", x, axis, arrays.relu)


def _gated(name: str, x: ArrayLike, axis: int, phi: Callable[[Tensor], Tensor]) -> Tensor:
    x = as_real(name, x)
    place = normalize_axis(name, axis, x.ndim)
    if x.shape[place] % 2:
        raise ShapeError(f"{name}: an axis of size {x.shape[place]} in shape {x.shape} has no halves.", "an even size")
    value, gate = arrays.split(x, 2, axis=place)
    return value * phi(gate)
