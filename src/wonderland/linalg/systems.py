"""Systems of linear equations, inverses and determinants."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..arrays import expand_dims, eye, reshape, sq_norm, tril, triu
from ..arrays.conversion import as_inexact, promote_inexact
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import linear_algebra as p
from .factorizations import rank_of, svdvals, tolerance


def _with_columns(name: str, f: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
    """f(a, b) for right-hand sides that are columns; a vector stands for one column."""
    if b.ndim == 0:
        raise ShapeError(f"{name}: the right-hand side is a scalar.", "shape (n,) or (..., n, k)")
    if b.ndim > 1:
        return f(a, b)
    out = f(a, reshape(b, (b.shape[0], 1)))
    return reshape(out, out.shape[:-1])


def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""The solution X of \(A X = B\) for square matrices A (..., n, n); B is (..., n, k), or one vector (n,).

    >>> import wonderland as wl
    >>> A = wl.tensor([[3.0, 1.0], [1.0, 2.0]])
    >>> wl.linalg.solve(A, wl.tensor([9.0, 8.0]))
    tensor([2., 3.])

    Derivative: \(dX = A^{-1}(dB - dA\,X)\). A singular matrix raises `LinearAlgebraError`; a nearly singular
    one gives a result without correct digits, see `cond`. Prefer it to `inv(A) @ B`. Book, section 2.1.2.
    """
    return _with_columns("solve", p.solve, *promote_inexact("solve", x1, x2))


def solve_triangular(a: ArrayLike, b: ArrayLike, /, *, lower: bool = False, unit_diagonal: bool = False) -> Tensor:
    r"""The solution X of \(A X = B\) for triangular A (..., n, n), by substitution; B is (..., n, k) or (n,).

    >>> import wonderland as wl
    >>> L = wl.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> wl.linalg.solve_triangular(L, wl.tensor([2.0, 9.0]), lower=True)
    tensor([1., 2.])

    Only the named triangle of A is read, and with `unit_diagonal` the diagonal counts as ones. A zero on the
    diagonal raises `LinearAlgebraError`.
    """
    a, b = promote_inexact("solve_triangular", a, b)
    if unit_diagonal:
        p.check_square("solve_triangular", a)
        a = (tril(a, k=-1) if lower else triu(a, k=1)) + eye(a.shape[-1], dtype=a.dtype)
    return _with_columns("solve_triangular", lambda a, b: p.solve_triangular(a, b, lower=lower), a, b)


def inv(x: ArrayLike, /) -> Tensor:
    r"""The inverse \(A^{-1}\) of square matrices (..., n, n).

    >>> import wonderland as wl
    >>> wl.linalg.inv(wl.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]])

    Derivative: \(-A^{-1}\,dA\,A^{-1}\), so an adjoint G becomes \(-A^{-\top} G A^{-\top}\). A singular matrix
    raises `LinearAlgebraError`. Book, section 2.1.2.
    """
    return p.inv(as_inexact("inv", x))


def pinv(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Tensor:
    r"""The pseudo-inverse \(A^+\) (..., n, m) of matrices (..., m, n): \(A A^+ A = A\).

    >>> import wonderland as wl
    >>> X = wl.tensor([[1.0], [2.0]])
    >>> wl.linalg.pinv(X)
    tensor([[0.2, 0.4]])

    Singular values up to `rtol` times the largest count as zero; by default `rtol` is max(m, n) times the
    rounding unit. With independent columns \(A^+ = (A^\top A)^{-1} A^\top\). The derivative is that along
    matrices of the same rank. Book, section 4.1.3.
    """
    x = as_inexact("pinv", x)
    p.check_matrices("pinv", x)
    return p.pinv(x, expand_dims(tolerance(x, rtol), axis=(-2, -1)))


class LstsqResult(NamedTuple):
    """What `lstsq` finds."""

    x: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(a: ArrayLike, b: ArrayLike, /, *, rcond: ArrayLike | None = None) -> LstsqResult:
    r"""Least squares: the shortest X that minimises \(\|A X - B\|^2\), column by column.

    >>> import wonderland as wl
    >>> A = wl.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    >>> slope_and_offset = wl.linalg.lstsq(A, wl.tensor([-1.0, 0.2, 0.9, 2.1])).x
    >>> wl.round(slope_and_offset * 1000) / 1000
    tensor([ 1.  , -0.95])

    A is (..., m, n) and B (..., m, k), or one vector (m,). Returns x (..., n, k), the squared residuals of
    every column (..., k), the rank of A and its singular values. Unlike NumPy's, the residuals are there for
    every rank. `rcond` is the `rtol` of `pinv`. Book, section 4.1.3.
    """
    a, b = promote_inexact("lstsq", a, b)
    p.check_matrices("lstsq", a)
    rows = b.shape[0] if b.ndim == 1 else b.shape[-2] if b.ndim else None
    if rows != a.shape[-2]:
        raise ShapeError(
            f"lstsq: a matrix of shape {a.shape} and right-hand sides of shape {b.shape} do not fit.",
            "shapes (..., m, n) and (..., m, k), or (m,) for a single right-hand side",
        )
    columns = reshape(b, (rows, 1)) if b.ndim == 1 else b
    x = pinv(a, rtol=rcond) @ columns
    residuals = sq_norm(a @ x - columns, axis=-2)
    if b.ndim == 1:
        x, residuals = reshape(x, x.shape[:-1]), reshape(residuals, residuals.shape[:-1])
    values = svdvals(a)
    return LstsqResult(x, residuals, rank_of(values, tolerance(a, rcond)), values)


def det(x: ArrayLike, /) -> Tensor:
    r"""The determinant of square matrices (..., n, n); 0 (but for rounding) if the matrix is singular.

    >>> import wonderland as wl
    >>> print(wl.linalg.det(wl.tensor([[1.0, 2.0], [3.0, 4.0]])))
    tensor(-2.)
    >>> wl.grad(wl.linalg.det)(wl.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor([[ 4., -2.],
            [-2.,  1.]])

    The gradient is the matrix of cofactors, \(\det(A)\,A^{-\top}\) where A is invertible; it is right for singular
    matrices too. Derivatives of second and higher order need an invertible matrix. Book, section 2.1.2.
    """
    return p.det(as_inexact("det", x))


class SlogdetResult(NamedTuple):
    """A determinant as sign times exp(logabsdet)."""

    sign: Tensor
    logabsdet: Tensor


def slogdet(x: ArrayLike, /) -> SlogdetResult:
    r"""The sign of the determinant and \(\ln|\det A|\), without overflow for large matrices (..., n, n).

    >>> import wonderland as wl
    >>> sign, logabsdet = wl.linalg.slogdet(-wl.eye(3) * 1e20)
    >>> print(sign, logabsdet)
    tensor(-1.) tensor(138.1551)

    The sign of a complex determinant is a number of size 1; a singular matrix has sign 0 and logabsdet -inf,
    and no derivative. Derivative of logabsdet: \(\mathrm{Re}\,\mathrm{tr}(A^{-1}\,dA)\).
    """
    return SlogdetResult(*p.slogdet(as_inexact("slogdet", x)))
