"""The spectral radius: how fast powers of a matrix, or of a linear map, grow or fade. Book, section 13.2.2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import arrays
from ..core.arguments import as_int
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from .factorizations import eigvals

__all__ = ["estimate_spectral_radius", "spectral_radius"]


def spectral_radius(x: ArrayLike, /) -> Tensor:
    r"""\(\rho(A) = \max_i |\lambda_i|\) of square matrices (..., n, n): (...).

    >>> import wonderland as wl
    >>> wl.linalg.spectral_radius([[0.0, 2.0], [-0.5, 0.0]])  # the eigenvalues are i and -i
    tensor(1.)

    \(\|A^k\|\) goes as \(\rho(A)^k\): powers fade if it is below 1 and grow if it is above. It is at most every norm of
    the matrix, and equal to the spectral norm, the largest singular value, for normal matrices such as symmetric and
    orthogonal ones. The eigenvalues of an empty matrix have the radius 0. Book, section 13.2.2.
    """
    matrix = arrays.asarray(x)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ShapeError(f"spectral_radius: a shape {matrix.shape}.", "square matrices (..., n, n)")
    if not matrix.shape[-1]:
        return arrays.zeros(matrix.shape[:-2])
    return arrays.max(arrays.abs(eigvals(matrix)), axis=-1)


def estimate_spectral_radius(
    apply: Callable[[Tensor], Tensor], like: ArrayLike, iterations: int = 40, seed: int = 0
) -> float:
    r"""\(\rho\) of a linear map that is known by what it does to tensors shaped as `like`, by power iteration.

    >>> import wonderland as wl
    >>> A = wl.tensor([[0.5, 1.0], [0.0, -0.9]])
    >>> f"{wl.linalg.estimate_spectral_radius(lambda v: A @ v, wl.zeros(2)):.3f}"
    '0.900'

    It is the mean growth of a random vector in the second half of the iterations, \(\|A^k v\|^{1/k}\) without its
    beginning, so it takes pairs of complex eigenvalues as well. It is an estimate: for k iterations its relative error
    is of the order 1/k where two eigenvalues are equally large.
    """
    steps = as_int("estimate_spectral_radius", "iterations", iterations, 2)
    shape = arrays.asarray(like)
    if not shape.size:
        return 0.0
    noise = np.random.default_rng(seed).normal(size=shape.shape)
    v, logs = arrays.asarray(noise / np.linalg.norm(noise), dtype=shape.dtype), []
    for _ in range(steps):
        v = apply(v)
        size = float(np.linalg.norm(np.asarray(v, np.float64)))
        if not np.isfinite(size):
            return size
        if size == 0.0:
            return 0.0  # the map is nilpotent
        logs.append(np.log(size))
        v = v / size
    return float(np.exp(np.mean(logs[steps // 2 :])))
