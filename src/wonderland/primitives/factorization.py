"""Factorisations of matrices, batched on leading axes: Cholesky, QR, symmetric eigenvalues, singular values.

Eigenvectors and singular vectors are determined up to a sign (a phase, for complex matrices), and for equal
eigenvalues up to a rotation. The derivative rules choose the tangent that does not turn within such a space:
terms with 1 / (difference of two values) are left out where the difference is within the rounding error of
the values. Functions that do not depend on the choice, such as sums over all eigenvalues, get their exact
derivative also there.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ..core.dtypes import is_complex, real_of
from ..core.errors import GradientError
from ..core.primitive import Aval, Primitive, Rule
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, Shaped
from . import creation, elementwise
from .contraction import swap_last
from .linear_algebra import (
    FINITE,
    NO_CONVERGENCE,
    adjoint,
    check_matrices,
    check_square,
    conj,
    cubic,
    hermitian_part,
    in_single,
    lapack,
    pass_through,
    solve_triangular,
    square_abstract,
    triangle,
)
from .structure import broadcast_to, reshape, sum_, take_slice

INDEFINITE = "is not positive definite"
POSITIVE = "a symmetric matrix with positive eigenvalues; adding a small multiple of wl.eye(n) helps"

# --- Cholesky: the lower triangular L with L L^H = A, of the Hermitian part of the argument


def _hermitian(x: Array) -> Array:
    return ((x + np.conj(x.swapaxes(-1, -2))) / 2).astype(x.dtype)


def _cholesky_jvp(t: Tensor, out: Tensor, x: Tensor) -> Tensor:
    # L^-1 dA L^-H = L^-1 dL + (L^-1 dL)^H, and L^-1 dL is lower triangular
    half = solve_triangular(out, hermitian_part(t), lower=True)
    both = solve_triangular(out, adjoint(half), lower=True)
    halved_diagonal = (triangle(both, True) + triangle(both, True, -1)) * 0.5
    return out @ halved_diagonal


cholesky: Primitive = Primitive(
    "cholesky",
    in_single(
        lapack(
            "cholesky",
            lambda x: np.linalg.cholesky(_hermitian(x)),
            INDEFINITE,
            POSITIVE,
        )
    ),
    square_abstract("cholesky"),
    jvp=(_cholesky_jvp,),
    cost=cubic(1 / 3),
)
cholesky.batch = pass_through(cholesky)

# --- QR: orthonormal columns Q and upper triangular R with Q R = A


def _qr_abstract(x: Shaped, complete: bool) -> list[Aval]:
    check_matrices("qr", x)
    *batch, m, n = x.shape
    k = m if complete else min(m, n)
    return [Aval((*batch, m, k), x.dtype), Aval((*batch, k, n), x.dtype)]


def _qr_jvp(primals: list[Tensor], tangents: list[Tensor], out: list[Tensor], complete: bool) -> list[Tensor]:
    (x,), (t,), (q, r) = primals, tangents, out
    m, n = x.shape[-2:]
    if complete and m > n:
        raise GradientError(
            f'qr: with mode="complete" the last {m - n} columns of Q for a matrix of shape {x.shape} are any '
            "basis, which has no derivative.",
            'mode="reduced"',
        )
    if m < n:  # Q depends on the first columns only
        r, first = take_slice(r, r.ndim - 1, 0, m), take_slice(t, len(t.shape) - 1, 0, m)
    else:
        first = t
    # dA R^-1 = dQ + Q dR R^-1, where Q^H dQ is skew and dR R^-1 is upper triangular with a real diagonal
    scaled = swap_last(solve_triangular(swap_last(r), swap_last(first), lower=True))
    inner = adjoint(q) @ scaled
    below = triangle(inner, True, -1)
    skew = below - adjoint(below)
    if is_complex(x.dtype):
        diagonal = triangle(triangle(inner, True), False)
        skew = skew + (diagonal - conj(diagonal)) * 0.5
    dq = q @ (skew - inner) + scaled
    return [dq, triangle(adjoint(dq) @ x + adjoint(q) @ t, False)]


qr: Primitive = Primitive(
    "qr",
    in_single(lambda x, complete: list(np.linalg.qr(x, mode="complete" if complete else "reduced"))),
    _qr_abstract,
    jvp=_qr_jvp,
    multiple=True,
    cost=cubic(2.0),
)
qr.batch = pass_through(qr)

# --- eigenvalues (ascending) and eigenvectors (columns) of the Hermitian part of the argument


def _row(x: Tensor) -> Tensor:
    return reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))


def _column(x: Tensor) -> Tensor:
    return reshape(x, shape=(*x.shape, 1))


def pairs(values: Tensor) -> tuple[Tensor, Tensor]:
    """values_j and values_i, as matrices with elements (i, j)."""
    shape = (*values.shape, values.shape[-1])
    return broadcast_to(_row(values), shape=shape), broadcast_to(_column(values), shape=shape)


def inverse_or_zero(x: Tensor, zero: Tensor) -> Tensor:
    """1 / x, and 0 where `zero` holds; also its derivative is 0 there."""
    return elementwise.where(zero, creation.zeros_like(x), 1 / elementwise.where(zero, creation.ones_like(x), x))


def rounding(values: Tensor) -> Tensor:
    """The size of the rounding errors of the singular values or eigenvalues, with an axis of size 1."""
    total = sum_(elementwise.abs_(values), axes=(values.ndim - 1,))
    return _column(total) * float(ml_dtypes.finfo(values.dtype).eps)


def _indistinct(values: Tensor) -> Tensor:
    """Which pairs (i, j) of values are equal but for rounding."""
    row, column = pairs(values)
    return elementwise.abs_(row - column) <= _column(rounding(values))


def _eigh_abstract(x: Shaped) -> list[Aval]:
    check_square("eigh", x)
    return [Aval(x.shape[:-1], real_of(x.dtype)), Aval(x.shape, x.dtype)]


def _eigh_jvp(primals: list[Tensor], tangents: list[Tensor], out: list[Tensor]) -> list[Tensor]:
    (t,), (w, v) = tangents, out
    moved = hermitian_part(t) @ v
    dw = sum_(conj(v) * moved, axes=(len(moved.shape) - 2,))
    row, column = pairs(w)
    gaps = inverse_or_zero(row - column, _indistinct(w))
    dv = v @ ((adjoint(v) @ moved) * gaps)
    return [elementwise.real(dw) if is_complex(dw.dtype) else dw, dv]


eigh: Primitive = Primitive(
    "eigh",
    in_single(lapack("eigh", lambda x: list(np.linalg.eigh(_hermitian(x))), NO_CONVERGENCE, FINITE)),
    _eigh_abstract,
    jvp=_eigh_jvp,
    multiple=True,
    cost=cubic(9.0),
)
eigh.batch = pass_through(eigh)

# --- singular values (descending): A = U diag(s) V^H


def _svd_abstract(x: Shaped, full: bool) -> list[Aval]:
    check_matrices("svd", x)
    *batch, m, n = x.shape
    k = min(m, n)
    u, vh = ((m, m), (n, n)) if full else ((m, k), (k, n))
    return [Aval((*batch, *u), x.dtype), Aval((*batch, k), real_of(x.dtype)), Aval((*batch, *vh), x.dtype)]


def _svd_jvp(primals: list[Tensor], tangents: list[Tensor], out: list[Tensor], full: bool) -> list[Tensor]:
    (x,), (t,), (u, s, vh) = primals, tangents, out
    m, n = x.shape[-2:]
    if full and m != n:
        raise GradientError(
            f"svd: with full_matrices=True the last singular vectors of a matrix of shape {x.shape} are any "
            "basis, which has no derivative.",
            "full_matrices=False, or wl.linalg.svdvals for the singular values alone",
        )
    right, left = t @ adjoint(vh), adjoint(t) @ u  # dA V and dA^H U
    inner = adjoint(u) @ right  # U^H dA V = (U^H dU) S + dS - S (V^H dV)
    diagonal = sum_(conj(u) * right, axes=(len(t.shape) - 2,))
    ds = elementwise.real(diagonal) if is_complex(x.dtype) else diagonal
    row, column = pairs(s)
    gaps = inverse_or_zero((row - column) * (row + column), _indistinct(s))
    inverse = _row(inverse_or_zero(s, s <= rounding(s)))
    turn_u = (inner * row + column * adjoint(inner)) * gaps
    turn_v = (column * inner + adjoint(inner) * row) * gaps
    if is_complex(x.dtype):
        # only the difference of the phases of u_i and v_i is determined: u_i takes all of it
        half = diagonal - conj(diagonal)
        turn_u = turn_u + _row(half) * (0.5 * inverse) * wrap(np.eye(s.shape[-1], dtype=s.dtype))
    du, dv = u @ turn_u, adjoint(vh) @ turn_v
    if m > n:
        du = du + (right - u @ inner) * inverse
    if n > m:
        dv = dv + (left - adjoint(vh) @ adjoint(inner)) * inverse
    return [du, ds, adjoint(dv)]


def _svd(full: bool) -> Rule:
    def impl(x: Array) -> list[Array]:
        return list(np.linalg.svd(x, full_matrices=full))

    return in_single(lapack("svd", impl, NO_CONVERGENCE, FINITE, square=False))


_SVD = {full: _svd(full) for full in (False, True)}

svd: Primitive = Primitive(
    "svd",
    lambda x, full: _SVD[full](x),
    _svd_abstract,
    jvp=_svd_jvp,
    multiple=True,
    cost=cubic(14.0),
)
svd.batch = pass_through(svd)
