"""Matrices as products of simpler ones."""

from __future__ import annotations

from typing import Literal, NamedTuple, overload

from ml_dtypes import finfo

from ..arrays import abs, argmax, asarray, concat, count_nonzero, max, sign, take_along_axis
from ..arrays.conversion import as_inexact
from ..core.dtypes import real_of
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import factorization as p
from ..primitives import general_matrices as general


def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    r"""The lower triangular L with positive diagonal and \(L L^H = A\), for positive definite A (..., n, n).

    >>> import wonderland as wl
    >>> wl.linalg.cholesky(wl.tensor([[4.0, 2.0], [2.0, 10.0]]))
    tensor([[2., 0.],
            [1., 3.]])

    With `upper`, the upper triangular \(L^H\). A is taken to be symmetric (Hermitian): only \((A + A^H)/2\)
    matters, and gradients are symmetric. A matrix that is not positive definite raises `LinearAlgebraError`.
    Book, appendix A.3.
    """
    lower = p.cholesky(as_inexact("cholesky", x))
    return lower.H if upper else lower


class QRResult(NamedTuple):
    """A matrix as Q @ R."""

    Q: Tensor
    R: Tensor


def qr(x: ArrayLike, /, *, mode: str = "reduced") -> QRResult:
    r"""Orthonormal columns Q and an upper triangular R with \(Q R = A\), for A (..., m, n).

    >>> import wonderland as wl
    >>> Q, R = wl.linalg.qr(wl.tensor([[3.0, 1.0], [4.0, 2.0], [0.0, 5.0]]))
    >>> Q.shape, R.shape
    ((3, 2), (2, 2))
    >>> wl.round(wl.abs(R))
    tensor([[5., 2.],
            [0., 5.]])

    "reduced" gives Q (..., m, k) and R (..., k, n) with k = min(m, n); "complete" gives Q (..., m, m) and
    R (..., m, n), and has no derivative for m > n. The derivative needs independent columns (for m < n, the
    first m of them).
    """
    if mode not in ("reduced", "complete"):
        raise InputError(f"qr: mode={mode!r}.", '"reduced" or "complete"')
    x = as_inexact("qr", x)
    complete = mode == "complete" and x.ndim > 1 and x.shape[-2] > x.shape[-1]
    return QRResult(*p.qr(x, complete=complete))


def _phases(vectors: Tensor) -> Tensor:
    """The signs (phases) of columns (..., m, k), as (..., 1, k): of their first component of largest size."""
    size = abs(vectors)
    # components of equal size differ by rounding, which must not decide
    largest = size >= max(size, axis=-2, keepdims=True) * 0.999
    first = take_along_axis(vectors, argmax(largest, axis=-2, keepdims=True), axis=-2)
    return sign(first)


class LUResult(NamedTuple):
    """A matrix as P @ L @ U."""

    P: Tensor
    L: Tensor
    U: Tensor


def lu(x: ArrayLike, /) -> LUResult:
    r"""A permutation P, a unit lower triangular L and an upper triangular U with \(P L U = A\), for A (..., m, n).

    >>> import wonderland as wl
    >>> P, L, U = wl.linalg.lu(wl.tensor([[1.0, 2.0], [4.0, 6.0]]))
    >>> P
    tensor([[0., 1.],
            [1., 0.]])
    >>> L
    tensor([[1.  , 0.  ],
            [0.25, 1.  ]])
    >>> U
    tensor([[4. , 6. ],
            [0. , 0.5]])

    Gaussian elimination with exchanges of rows. L is (..., m, k) and U (..., k, n) with k = min(m, n). The derivative
    needs the first k columns (after the exchanges) to be independent; P is constant. `solve`, `det` and `inv` do this
    inside and are faster.
    """
    return LUResult(*general.lu(as_inexact("lu", x)))


class EigResult(NamedTuple):
    """Complex eigenvalues, and eigenvectors as columns of norm 1."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eig(x: ArrayLike, /) -> EigResult:
    r"""Eigenvalues and eigenvectors of any square matrices: \(A V = V\,\mathrm{diag}(w)\), both complex.

    >>> import wonderland as wl
    >>> w, V = wl.linalg.eig(wl.tensor([[0.0, -1.0], [1.0, 0.0]]))  # a quarter turn
    >>> wl.sort(w.imag)
    tensor([-1.,  1.])
    >>> wl.allclose(wl.tensor([[0.0, -1.0], [1.0, 0.0]]) @ V, V * w)
    True

    A is (..., n, n), real or complex; w (..., n) comes in no particular order, and the columns of V (..., n, n) have
    norm 1 and any phase. For symmetric matrices `eigh` is better in every respect.

    Derivatives: \(dw = \mathrm{diag}(V^{-1}\,dA\,V)\); those of vectors divide by differences of eigenvalues, and
    terms between equal ones are left out. They hold for what does not depend on the phases of the vectors. A matrix
    that has no basis of eigenvectors has no derivative.
    """
    return EigResult(*general.eig(as_inexact("eig", x)))


def eigvals(x: ArrayLike, /) -> Tensor:
    """The complex eigenvalues (..., n) of square matrices (..., n, n), in no particular order. See `eig`.

    >>> import wonderland as wl
    >>> wl.sort(wl.linalg.eigvals(wl.tensor([[2.0, 1.0], [0.0, 3.0]])).real)
    tensor([2., 3.])
    """
    return general.eig(as_inexact("eigvals", x))[0]


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eigh(x: ArrayLike, /) -> EighResult:
    r"""Eigenvalues and eigenvectors of symmetric (Hermitian) matrices: \(A = V\,\mathrm{diag}(w)\,V^H\).

    >>> import wonderland as wl
    >>> w, V = wl.linalg.eigh(wl.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    tensor([1., 3.])
    >>> V
    tensor([[ 0.70710677,  0.70710677],
            [-0.70710677,  0.70710677]])

    A is (..., n, n). The eigenvalues w (..., n) ascend; the eigenvectors are the orthonormal columns of V
    (..., n, n), and of each the first component of the largest size is positive. Only \((A + A^H)/2\)
    matters, and gradients are symmetric.

    Derivatives: \(dw_i = v_i^H\,dA\,v_i\) and \(dv_i = \sum_{j \ne i} v_j\,(v_j^H\,dA\,v_i) / (w_i - w_j)\).
    Eigenvectors of equal eigenvalues are any basis and have no derivative; the terms between them are left
    out, which is exact for functions that do not mix them, such as the sum of those eigenvalues or the
    projection on their space.
    """
    x = as_inexact("eigh", x)
    values, vectors = p.eigh(x)
    return EighResult(values, vectors if x.shape[-1] == 0 else vectors * _phases(vectors).conj())


def eigvalsh(x: ArrayLike, /) -> Tensor:
    """The eigenvalues (..., n) of symmetric (Hermitian) matrices (..., n, n), ascending. See `eigh`.

    >>> import wonderland as wl
    >>> wl.linalg.eigvalsh(wl.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor([-1.,  1.])
    """
    return p.eigh(as_inexact("eigvalsh", x))[0]


class SVDResult(NamedTuple):
    """A matrix as U @ diag(S) @ Vh."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@overload
def svd(x: ArrayLike, /, *, full_matrices: bool = True, compute_uv: Literal[True] = True) -> SVDResult: ...
@overload
def svd(x: ArrayLike, /, *, full_matrices: bool = True, compute_uv: bool) -> SVDResult | Tensor: ...
def svd(x: ArrayLike, /, *, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | Tensor:
    r"""The singular value decomposition \(A = U\,\mathrm{diag}(S)\,V^H\) of matrices (..., m, n).

    >>> import wonderland as wl
    >>> A = wl.tensor([[3.0, 0.0], [4.0, 5.0], [0.0, 0.0]])
    >>> U, S, Vh = wl.linalg.svd(A, full_matrices=False)
    >>> U.shape, S.shape, Vh.shape
    ((3, 2), (2,), (2, 2))
    >>> wl.round(((U * S) @ Vh).sum())
    tensor(12.)

    The singular values S (..., k), k = min(m, n), descend and are not negative. U is (..., m, k) and Vh
    (..., k, n), or (..., m, m) and (..., n, n) with `full_matrices`; their columns and rows are orthonormal,
    and of each of the first k columns of U the first component of the largest size is positive.

    Singular vectors of equal or zero singular values are any basis and have no derivative; terms between them
    are left out, see `eigh`. With `full_matrices` only square matrices have a derivative. With `compute_uv=False`
    the result is S alone, as `svdvals` gives it.
    """
    if not compute_uv:
        return svdvals(x)
    x = as_inexact("svd", x)
    p.check_matrices("svd", x)
    m, n = x.shape[-2:]
    u, s, vh = p.svd(x, full=full_matrices and m != n)
    k = s.shape[-1]
    if k:
        phases = _phases(u[..., :k])
        u = concat([u[..., :k] * phases.conj(), u[..., k:]], axis=-1)
        vh = concat([phases.mT * vh[..., :k, :], vh[..., k:, :]], axis=-2)
    return SVDResult(u, s, vh)


def svdvals(x: ArrayLike, /) -> Tensor:
    """The singular values (..., min(m, n)) of matrices (..., m, n), descending. See `svd`.

    >>> import wonderland as wl
    >>> wl.linalg.svdvals(wl.tensor([[3.0, 0.0], [0.0, -5.0]]))
    tensor([5., 3.])
    """
    return p.svd(as_inexact("svdvals", x), full=False)[1]


def tolerance(x: Tensor, rtol: ArrayLike | None) -> Tensor:
    """The part of the largest singular value up to which others count as zero; may differ by matrix."""
    real = real_of(x.dtype)
    if rtol is None:
        rtol = sorted(x.shape[-2:])[-1] * float(finfo(real).eps)
    return asarray(rtol, dtype=real)


def rank_of(values: Tensor, rtol: Tensor) -> Tensor:
    """How many singular values (descending, on the last axis) count."""
    return count_nonzero(values > rtol[..., None] * values[..., :1], axis=-1)
