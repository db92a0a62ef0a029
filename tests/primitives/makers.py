"""What a test case of a primitive is, and the functions that make its arguments.

A maker takes a random generator and returns a NumPy array, so that a case can be drawn several times (for a
batch); it stays in the domain of the primitive, away from its kinks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Maker = Callable[[np.random.Generator], Array]


@dataclass(frozen=True)
class Case:
    """Arguments and parameters for one primitive.

    wrt          the arguments with respect to which it is differentiated; None: all floating and complex ones
    observe      what of the results is compared, if they are determined only up to a sign or phase
    differences  False if finite differences do not show the derivative (rounding types, stop_gradient)
    """

    label: str
    args: tuple[Maker, ...]
    params: dict[str, Any] = field(default_factory=dict)
    wrt: tuple[int, ...] | None = None
    observe: Callable[..., Any] | None = None
    differences: bool = True

    def build(self, name: str, draw: int = 0) -> list[Array]:
        """The arguments; another `draw` gives others of the same shapes."""
        rng = np.random.default_rng([zlib.crc32(f"{name} {self.label}".encode()), draw])
        return [np.asarray(maker(rng)) for maker in self.args]

    def differentiable(self, args: list[Array]) -> tuple[int, ...]:
        return tuple(i for i, a in enumerate(args) if a.dtype.kind in "fc") if self.wrt is None else self.wrt


def real(*shape: int, low: float = -2.0, high: float = 2.0) -> Maker:
    """Numbers between two bounds."""
    return lambda rng: rng.uniform(low, high, shape)


def away(*shape: int, size: float = 0.3) -> Maker:
    """Numbers of either sign that are not near 0."""
    return lambda rng: rng.choice([-1.0, 1.0], shape) * rng.uniform(size, 2.0, shape)


def between_integers(*shape: int) -> Maker:
    """Numbers that are far from integers and from the halves between them."""
    return lambda rng: rng.integers(-3, 3, shape) + rng.choice([0.25, 0.75], shape) + rng.uniform(-0.1, 0.1, shape)


def distinct(*shape: int, offset: float = 0.0) -> Maker:
    """Numbers no two of which are near each other; with another offset, near none of those either."""

    def make(rng: np.random.Generator) -> Array:
        n = int(np.prod(shape))
        return (rng.permutation(n).reshape(shape) - n / 2) * 0.4 + offset

    return make


def complexes(*shape: int, low: float = 0.2, high: float = 0.9) -> Maker:
    """Complex numbers in the first quadrant, off the branch cuts."""
    return lambda rng: rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)


def integers(*shape: int, low: int = -4, high: int = 5, dtype: Any = np.int64) -> Maker:
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def booleans(*shape: int) -> Maker:
    return lambda rng: rng.random(shape) < 0.5


def fixed(values: Any, dtype: Any = None) -> Maker:
    """The same values in every draw."""
    return lambda rng: np.array(values, dtype)


def matrices(*shape: int) -> Maker:
    """Well-conditioned matrices, not symmetric."""
    return lambda rng: 0.3 * rng.normal(size=shape) + 2 * np.eye(shape[-2], shape[-1])


def spread_matrices(*shape: int, complex_: bool = False) -> Maker:
    """Matrices whose singular values and eigenvalues lie apart."""

    def make(rng: np.random.Generator) -> Array:
        noise = rng.normal(size=shape) + (1j * rng.normal(size=shape) if complex_ else 0)
        diagonal = np.zeros(shape)
        for i in range(min(shape[-2:])):
            diagonal[..., i, i] = 1.5 + i
        return 0.2 * noise + diagonal

    return make


def definite(*shape: int, complex_: bool = False) -> Maker:
    """Positive definite matrices (Hermitian)."""

    def make(rng: np.random.Generator) -> Array:
        root = rng.normal(size=shape) + (1j * rng.normal(size=shape) if complex_ else 0)
        return root @ np.conj(np.swapaxes(root, -1, -2)) + shape[-1] * np.eye(shape[-1])

    return make
