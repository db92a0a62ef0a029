"""Matrices that reorder, and those that mix without adding or losing anything. Book, section 10.2.1."""

from __future__ import annotations

import numpy as np

from ..arrays import asarray, one_hot, stop_gradient
from ..arrays.conversion import as_matrices, as_ordered, as_tensor
from ..arrays.similarity import is_binary, is_simplex
from ..core import dtypes
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, DTypeLike


def permutation_matrix(perm: ArrayLike, dtype: DTypeLike | None = None) -> Tensor:
    r"""P with \(P_{i, \pi(i)} = 1\) and zeros elsewhere, so that `P @ X` is `X[perm]`. Book, D.10.2.

    >>> import wonderland as wl
    >>> P = wl.linalg.permutation_matrix([0, 2, 1])
    >>> (P @ wl.tensor([10.0, 20.0, 30.0])), wl.linalg.is_permutation(P)
    (tensor([10., 30., 20.]), True)

    `perm` has the numbers 0 to n - 1, each once, as `wl.random.permutation(n)` gives them. The inverse is the
    transpose. `X[perm]` itself needs no matrix.
    """
    name = "permutation_matrix"
    order = as_tensor(name, asarray(perm))
    if order.ndim != 1 or not (dtypes.is_integer(order.dtype) or not order.size):
        raise ShapeError(f"{name}: received {order.dtype} of shape {order.shape}.", "integers of shape (n,)")
    n = order.shape[0]
    if not np.array_equal(np.sort(np.asarray(stop_gradient(order))), np.arange(n)):
        raise InputError(f"{name}: these are not the numbers 0 to {n - 1}, each once.", "wl.random.permutation(n)")
    return one_hot(order, n, dtype=dtypes.default_float if dtype is None else dtype)


def is_permutation(x: ArrayLike, /) -> bool:
    r"""Whether x is a permutation matrix: zeros and ones, with one 1 in every row and column. Book, D.10.2.

    >>> import wonderland as wl
    >>> wl.linalg.is_permutation([[0, 1], [1, 0]]), wl.linalg.is_permutation([[0, 1], [0, 1]])
    (True, False)

    Of several matrices (..., n, n), whether all are.
    """
    x = _square("is_permutation", x)
    return is_binary(x) and is_simplex(x, axis=-1) and is_simplex(x, axis=-2)


def is_doubly_stochastic(x: ArrayLike, /, *, tolerance: float = 1e-5) -> bool:
    r"""Whether \(X \ge 0\), and rows and columns add up to 1: \(X 1 = 1\), \(1^\top X = 1^\top\). Book, section 10.2.1.

    >>> import wonderland as wl
    >>> wl.linalg.is_doubly_stochastic([[0.3, 0.7], [0.7, 0.3]])
    True

    Permutation matrices are, and means of them. The weights of attention are not: their rows add up to 1, their columns
    to how much attention a token receives. Of several matrices (..., n, n), whether all are.
    """
    x = _square("is_doubly_stochastic", x)
    return is_simplex(x, axis=-1, tolerance=tolerance) and is_simplex(x, axis=-2, tolerance=tolerance)


def _square(name: str, x: ArrayLike) -> Tensor:
    x = as_matrices(name, as_ordered(name, asarray(x)))
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: matrices of shape {x.shape}.", "square ones (..., n, n)")
    return x
