"""Fixed functions whose weighted sums make trained ones. Book, E.5.13.

A basis has a `size` n and turns a tensor of any shape into one with a new last axis of n values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_function, as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike

__all__ = ["Basis", "GaussianBasis", "BSplineBasis"]


class Basis:
    r"""Functions \(\phi_1, \dots, \phi_n\) of a number: x of any shape becomes (*shape, n). Book, E.5.13.

    >>> import wonderland as wl
    >>> wl.nn.Basis([wl.relu, wl.sin])(wl.tensor([-1.0, 0.0])).shape
    (2, 2)
    """

    def __init__(self, functions: Sequence[Callable[[ArrayLike], ArrayLike]]) -> None:
        self.functions = tuple(as_function("nn.Basis", f) for f in functions)
        self.size = len(self.functions)
        if not self.size:
            raise InputError("Basis: there are no functions.", "Basis([wl.relu, wl.tanh])")

    def __call__(self, x: ArrayLike) -> Tensor:
        return arrays.stack([arrays.asarray(f(x)) for f in self.functions], axis=-1)

    def settings(self) -> tuple[object, ...]:
        """What tells a basis from others of its kind."""
        return self.functions

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.settings() == self.settings()

    def __hash__(self) -> int:
        return hash((type(self), self.settings()))

    def __repr__(self) -> str:
        return f"Basis([{', '.join(getattr(f, '__name__', repr(f)) for f in self.functions)}])"


class GaussianBasis(Basis):
    r"""Kernels \(e^{-\gamma(s - d_i)^2}\) around `size` places \(d_i\) from -boundary to boundary. Book, section 5.4.

    >>> import wonderland as wl
    >>> basis = wl.nn.GaussianBasis(3, boundary=1.0)
    >>> basis.places, basis(wl.tensor(0.0)).argmax().item()
    (array([-1.,  0.,  1.]), 1)

    By default \(\gamma = 1/(6\Delta^2)\) with the distance \(\Delta\) of neighbours, so that kernels overlap.
    """

    def __init__(self, size: int = 20, boundary: float = 3.0, gamma: float | None = None) -> None:
        self.size = as_int("GaussianBasis", "size", size, 2)
        if not boundary > 0:
            raise InputError(f"GaussianBasis: boundary={boundary}.", "a number above 0")
        self.boundary = float(boundary)
        self.places = np.linspace(-self.boundary, self.boundary, self.size)
        self.gamma = 1 / (6 * (self.places[1] - self.places[0]) ** 2) if gamma is None else float(gamma)
        if not self.gamma > 0:
            raise InputError(f"GaussianBasis: gamma={gamma}.", "a number above 0")

    def __call__(self, x: ArrayLike) -> Tensor:
        x = as_real("GaussianBasis", x)
        distance = arrays.expand_dims(x, axis=-1) - arrays.asarray(self.places, dtype=x.dtype)
        return arrays.exp(-self.gamma * distance * distance)

    def settings(self) -> tuple[object, ...]:
        return self.size, self.boundary, self.gamma

    def __repr__(self) -> str:
        return f"GaussianBasis(size={self.size}, boundary={self.boundary}, gamma={self.gamma:.4g})"


class BSplineBasis(Basis):
    r"""B-splines of a degree over equal cells of [low, high]; between the ends they add up to 1. Book, section 5.4.

    >>> import wonderland as wl
    >>> basis = wl.nn.BSplineBasis(cells=4, degree=3)
    >>> basis.size, basis(wl.tensor([-0.3, 0.9])).sum(axis=-1)
    (7, tensor([1., 1.]))

    There are cells + degree of them, zero outside of their degree + 1 cells and outside of [low, high]. With
    knots \(t_i\) h apart, \(B_{i,k}(x) = \frac{x - t_i}{kh} B_{i,k-1}(x) + \frac{t_{i+k+1} - x}{kh} B_{i+1,k-1}(x)\).
    """

    def __init__(self, cells: int = 5, degree: int = 3, low: float = -1.0, high: float = 1.0) -> None:
        self.cells = as_int("BSplineBasis", "cells", cells, 1)
        self.degree = as_int("BSplineBasis", "degree", degree, 0)
        if not low < high:
            raise InputError(f"BSplineBasis: low={low} is not below high={high}.", "low < high")
        self.low, self.high = float(low), float(high)
        self.size = self.cells + self.degree
        self.knots = low + (high - low) / cells * np.arange(-degree, cells + degree + 1)

    def __call__(self, x: ArrayLike) -> Tensor:
        x = as_real("BSplineBasis", x)
        t = self.knots
        s = arrays.expand_dims(x, axis=-1)
        width = t[1] - t[0]
        # degree 0 says in which cell x lies; the last cell of the interval contains its right end
        cell = arrays.clip(arrays.floor((s - self.low) / width), 0.0, self.cells - 1.0)
        cells = arrays.asarray(np.arange(len(t) - 1) - self.degree, dtype=x.dtype)
        inside = arrays.logical_and(s >= self.low, s <= self.high)
        value = arrays.astype(arrays.logical_and(cells == cell, inside), x.dtype)
        for k in range(1, self.degree + 1):
            n = len(t) - 1 - k
            rising = (s - arrays.asarray(t[:n], dtype=x.dtype)) / (k * width)
            falling = (arrays.asarray(t[k + 1 :], dtype=x.dtype) - s) / (k * width)
            value = rising * value[..., :n] + falling * value[..., 1 : n + 1]
        return value

    def settings(self) -> tuple[object, ...]:
        return self.cells, self.degree, self.low, self.high

    def __repr__(self) -> str:
        return f"BSplineBasis(cells={self.cells}, degree={self.degree}, low={self.low}, high={self.high})"


BasisLike: TypeAlias = Basis | Sequence[Callable[[ArrayLike], ArrayLike]]


def as_basis(name: str, bases: BasisLike) -> Basis:
    """A basis, or one of the functions in a list."""
    if isinstance(bases, Basis):
        return bases
    if isinstance(bases, (list, tuple)):
        return Basis(bases)
    raise InputError(
        f"{name}: a {type(bases).__name__} is not a basis.", "a list of functions, or wl.nn.BSplineBasis(...)"
    )
