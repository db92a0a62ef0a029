r"""\(A = P \Lambda P^{-1}\): a basis in which a matrix only scales, if there is one. Book, section 13.3.3."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike

__all__ = ["Diagonalization", "DiagonalizationWarning", "diagonalize"]

POOR = 1e4  # condition number of the basis: four digits are lost
DEFECTIVE = 1e7  # eigenvectors of a double eigenvalue that rounding has taken apart have about 1/sqrt(eps)
SLACK = 1e-6  # how far rounding may put an eigenvalue of modulus 1 beyond it


class DiagonalizationWarning(UserWarning):
    """A basis of eigenvectors is nearly degenerate: products with it lose digits."""


class Diagonalization(NamedTuple):
    """Eigenvalues (e,), eigenvectors as columns (e, e), their inverse, and the condition number of both."""

    eigenvalues: Tensor
    P: Tensor
    P_inverse: Tensor
    condition: float

    def power(self, i: int) -> Tensor:
        r"""\(A^i = P \Lambda^i P^{-1}\), with powers of numbers alone. Book, E.13.21."""
        return self.P * self.eigenvalues**i @ self.P_inverse


def diagonalize(A: ArrayLike) -> Diagonalization:
    r"""\(A = P \Lambda P^{-1}\) for a square matrix (e, e). Book, E.13.21.

    >>> import wonderland as wl
    >>> found = wl.nn.diagonalize([[2.0, 1.0], [0.0, 3.0]])
    >>> found.eigenvalues
    tensor([2., 3.])
    >>> wl.round(found.power(3))  # with the powers 8 and 27
    tensor([[ 8., 19.],
            [ 0., 27.]])

    Real eigenvalues give real numbers, others complex ones. A matrix without a basis of eigenvectors, such as
    [[1, 1], [0, 1]], is an error, as is one that cannot be told from it (a condition number above 1e7); from 1e4 on
    there is a `DiagonalizationWarning`. It is computed in float64.
    """
    given = arrays.asarray(A)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ShapeError(f"diagonalize: a matrix of shape {given.shape}.", "(e, e)")
    kind = dtypes.promote_types(given.dtype, dtypes.float32)
    wide = np.asarray(given).astype(np.complex128 if dtypes.is_complex(kind) else np.float64)
    if not np.isfinite(wide).all():
        raise InputError("diagonalize: a matrix with numbers that are not finite.", "finite numbers")
    values, P = np.linalg.eig(wide)
    condition = float(np.linalg.cond(P)) if len(values) else 1.0
    if condition > DEFECTIVE:
        raise InputError(
            f"diagonalize: the matrix has no basis of eigenvectors (the condition number is {condition:.2g}; "
            f"eigenvalues {_listed(values)}).",
            "a diagonalisable matrix, or LinearSSM, which needs no basis",
        )
    if condition > POOR:
        warnings.warn(
            f"diagonalize: the eigenvectors have the condition number {condition:.2g}; about "
            f"{np.log10(condition):.0f} digits are lost.",
            DiagonalizationWarning,
            stacklevel=2,
        )
    inverse = np.linalg.inv(P)
    if np.iscomplexobj(values) or np.iscomplexobj(P):
        kind = dtypes.promote_types(kind, dtypes.complex64)
    eigenvalues, basis, back = (arrays.asarray(part, dtype=kind) for part in (values, P, inverse))
    return Diagonalization(eigenvalues, basis, back, condition)


def check_disc(name: str, eigenvalues: Array) -> None:
    """Refuse eigenvalues outside the unit disc, by name; rounding may have put one there that belongs on its edge."""
    sizes = np.abs(eigenvalues)
    outside = ~(sizes <= 1 + SLACK)
    if outside.any():
        raise InputError(
            f"{name}: eigenvalues outside the unit disc: {_listed(eigenvalues[outside])} (the largest modulus is "
            f"{sizes.max():.4g}); states would grow without bound.",
            "eigenvalues of modulus 1 at most",
        )


def _listed(values: Array) -> str:
    text = ", ".join(f"{value:.4g}" for value in values[:5].tolist())
    return text if len(values) <= 5 else f"{text} and {len(values) - 5} more"
