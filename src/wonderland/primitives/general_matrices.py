"""Factorisations of matrices without symmetry, batched on leading axes: LU, and complex eigenvalues.

Eigenvectors are determined up to a complex factor. They have norm 1, and the derivative rule chooses the tangent that
keeps it and does not turn the phase of a vector along itself; functions that do not depend on phases get their exact
derivative.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.dtypes import complex_of, is_half
from ..core.primitive import Aval, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from . import elementwise
from .contraction import swap_last
from .factorization import inverse_or_zero, pairs, rounding
from .linear_algebra import (
    FINITE,
    NO_CONVERGENCE,
    check_matrices,
    check_square,
    conj,
    cubic,
    in_single,
    lapack,
    pass_through,
    solve,
    solve_triangular,
    triangle,
)
from .structure import concatenate, reshape, sum_, take_slice

# --- LU with exchanges of rows: A = P L U


def _lu(x: Array) -> list[Array]:
    """Gaussian elimination, column by column, of all matrices at once; the largest element of a column is the pivot."""
    *lead, m, n = x.shape
    k = min(m, n)
    a = x.reshape(math.prod(lead), m, n).copy()
    order = np.tile(np.arange(m), (len(a), 1))
    each = np.arange(len(a))
    for j in range(k):
        pivot = j + np.argmax(np.abs(a[:, j:, j]), axis=1)
        for array in (a, order):
            array[each, pivot], array[each, j] = array[each, j].copy(), array[each, pivot].copy()
        top = a[:, j, j]
        factor = np.where(top != 0, top, 1)  # a column of zeros needs no elimination
        a[:, j + 1 :, j] /= factor[:, None]
        a[:, j + 1 :, j + 1 :] -= a[:, j + 1 :, j, None] * a[:, j, None, j + 1 :]
    lower = np.tril(a[:, :, :k], -1) + np.eye(m, k, dtype=x.dtype)
    exchange = np.zeros((len(a), m, m), x.dtype)
    np.put_along_axis(exchange, order[:, None, :], 1, axis=1)
    return [part.reshape(*lead, *part.shape[1:]) for part in (exchange, lower, np.triu(a[:, :k]))]


def _lu_abstract(x: Shaped) -> list[Aval]:
    check_matrices("lu", x)
    *batch, m, n = x.shape
    k = min(m, n)
    return [Aval((*batch, *shape), x.dtype) for shape in ((m, m), (m, k), (k, n))]


def _lu_jvp(primals: list[Tensor], tangents: list[Tensor], out: list[Tensor]) -> list[Tensor | None]:
    (x,), (t,), (exchange, lower, upper) = primals, tangents, out
    m, n = x.shape[-2:]
    k, rows, columns = min(m, n), len(x.shape) - 2, len(x.shape) - 1
    t = swap_last(exchange) @ t
    left, right = take_slice(lower, rows, 0, k), take_slice(upper, columns, 0, k)
    top, corner = take_slice(t, rows, 0, k), take_slice(take_slice(t, rows, 0, k), columns, 0, k)

    def over_right(y: Tensor) -> Tensor:
        """y U1^-1."""
        return swap_last(solve_triangular(swap_last(right), swap_last(y), lower=True))

    # L1^-1 dA U1^-1 = L1^-1 dL1 + dU1 U1^-1: the first is strictly lower, the second upper triangular
    inner = over_right(solve_triangular(left, corner, lower=True))
    below, above = triangle(inner, True, -1), triangle(inner, False)
    d_lower, d_upper = left @ below, above @ right
    if m > k:
        rest, other = take_slice(t, rows, k, m), take_slice(lower, rows, k, m)
        d_lower = concatenate(d_lower, over_right(rest) - other @ above, axis=rows)
    if n > k:
        rest, other = take_slice(top, columns, k, n), take_slice(upper, columns, k, n)
        d_upper = concatenate(d_upper, solve_triangular(left, rest, lower=True) - below @ other, axis=columns)
    return [None, d_lower, d_upper]  # the exchange is constant


lu: Primitive = Primitive("lu", in_single(_lu), _lu_abstract, jvp=_lu_jvp, multiple=True, cost=cubic(1.0))
lu.batch = pass_through(lu)

# --- eigenvalues and eigenvectors (columns) of any square matrix; both are complex


def _eig(x: Array) -> list[Array]:
    dtype = complex_of(x.dtype)
    values, vectors = np.linalg.eig(x.astype(np.float32) if is_half(x.dtype) else x)
    return [values.astype(dtype), vectors.astype(dtype)]


def _eig_abstract(x: Shaped) -> list[Aval]:
    check_square("eig", x)
    dtype = complex_of(x.dtype)
    return [Aval(x.shape[:-1], dtype), Aval(x.shape, dtype)]


def _eig_jvp(primals: list[Tensor], tangents: list[Tensor], out: list[Tensor]) -> list[Tensor]:
    (t,), (w, v) = tangents, out
    rows = len(v.shape) - 2
    if t.dtype != v.dtype:
        t = elementwise.astype(t, dtype=v.dtype)
    # V^-1 dA V: its diagonal moves the values, the rest turns the vectors
    inner = solve(v, t @ v)
    dw = sum_(triangle(triangle(inner, True), False), axes=(rows,))
    row, column = pairs(w)
    gap = row - column
    size = reshape(rounding(elementwise.abs_(w)), shape=(*w.shape[:-1], 1, 1))
    turned = v @ (inner * inverse_or_zero(gap, elementwise.abs_(gap) <= size))
    along = sum_(conj(v) * turned, axes=(rows,))  # v_i^H dv_i, which must vanish in its real part
    along = elementwise.astype(elementwise.real(along), dtype=v.dtype)
    return [dw, turned - v * reshape(along, shape=(*along.shape[:-1], 1, along.shape[-1]))]


eig: Primitive = Primitive(
    "eig",
    lapack("eig", _eig, NO_CONVERGENCE, FINITE),
    _eig_abstract,
    jvp=_eig_jvp,
    multiple=True,
    cost=cubic(25.0),
)
eig.batch = pass_through(eig)
