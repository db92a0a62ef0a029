r"""HiPPO: the matrix whose state holds the coefficients of the past in Legendre polynomials. Book, section 13.3.1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import DTypeLike

__all__ = ["HiPPO", "HiPPONormal", "hippo_legs", "hippo_normal"]


class HiPPO(NamedTuple):
    """A (n, n) and B (n,) of a continuous system."""

    A: Tensor
    B: Tensor


class HiPPONormal(NamedTuple):
    r"""\(A = V(\Lambda - P P^*)V^*\), \(B = V \tilde B\): eigenvalues (n,), P and B (n,) in their basis, V (n, n)."""

    eigenvalues: Tensor
    P: Tensor
    B: Tensor
    V: Tensor


def hippo_legs(n: int, dtype: DTypeLike | None = None) -> HiPPO:
    r"""\(A_{ij} = -\sqrt{(2i+1)(2j+1)}\) below the diagonal, \(-(i+1)\) on it; \(B_i = \sqrt{2i+1}\). Book, 13.3.1.

    >>> import wonderland as wl
    >>> A, B = wl.nn.hippo_legs(3)
    >>> A
    tensor([[-1.       ,  0.       ,  0.       ],
            [-1.7320508, -2.       ,  0.       ],
            [-2.236068 , -3.8729835, -3.       ]])

    The state of \(\dot s = (A s + B x)/t\) holds the coefficients by which the first n Legendre polynomials are closest
    to all that x was so far (the formula is not in the book, which names it). A is lower triangular, so its eigenvalues
    are \(-1, \dots, -n\).
    """
    A, B = _legs(as_int("hippo_legs", "n", n, 1))
    kind = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
    return HiPPO(arrays.asarray(A, dtype=kind), arrays.asarray(B, dtype=kind))


def hippo_normal(n: int, dtype: DTypeLike | None = None) -> HiPPONormal:
    r"""HiPPO-LegS as a diagonal plus a low rank, in a unitary basis: what S4 and its relatives start from.

    >>> import wonderland as wl
    >>> eigenvalues, P, B, V = wl.nn.hippo_normal(4)
    >>> wl.round(eigenvalues.real, decimals=3)
    tensor([-0.5, -0.5, -0.5, -0.5])

    \(A + p p^\top = S - \frac12 I\) with \(p_i = \sqrt{i + 1/2}\) and S skew-symmetric, hence normal. The eigenvectors
    of A itself are as good as dependent already for n = 20, those of S are orthonormal. Eigenvalues come in conjugate
    pairs, by rising imaginary part. `dtype` is that of real numbers, float32 by default.
    """
    n = as_int("hippo_normal", "n", n, 1)
    A, B = _legs(n)
    p = np.sqrt(np.arange(n) + 0.5)
    S = A + np.outer(p, p) + 0.5 * np.eye(n)
    imaginary, V = np.linalg.eigh(-1j * S)  # of a Hermitian matrix, so that V is unitary
    kind = dtypes.promote_types(dtypes.default_float if dtype is None else dtypes.as_dtype(dtype), dtypes.complex64)
    parts = (-0.5 + 1j * imaginary, V.conj().T @ p, V.conj().T @ B, V)
    return HiPPONormal(*(arrays.asarray(part, dtype=kind) for part in parts))


def _legs(n: int) -> tuple[np.ndarray, np.ndarray]:
    i = np.arange(n, dtype=np.float64)
    B = np.sqrt(2 * i + 1)
    return np.tril(-np.outer(B, B), -1) + np.diag(-(i + 1)), B
