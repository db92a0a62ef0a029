"""Operations on matrices as wholes, `wl.linalg`. Book, section 2.1.2 (Box C.2.2).

The linear algebra extension of the Python Array API standard (2024.12) and the usual companions. Matrices are
the last two axes; all axes before them are batch axes. Everything is differentiable in both modes, to any
order, where the derivative exists. The matrix functions have names of their own: `wl.exp` acts element by
element, `wl.linalg.matrix_exp` on the matrix.
"""

from ..arrays import cross, diagonal, matmul, matrix_transpose, outer, tensordot, trace, vecdot
from ..core.naming import hints_for as _hints_for
from .factorizations import (
    EighResult,
    EigResult,
    LUResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu,
    qr,
    svd,
    svdvals,
)
from .norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from .permutations import is_doubly_stochastic, is_permutation, permutation_matrix
from .powers import expm, matrix_exp, matrix_power, multi_dot
from .spectra import estimate_spectral_radius, spectral_radius
from .systems import (
    LstsqResult,
    SlogdetResult,
    det,
    inv,
    lstsq,
    pinv,
    slogdet,
    solve,
    solve_triangular,
)

__all__ = [
    # systems and inverses
    "solve",
    "solve_triangular",
    "lstsq",
    "inv",
    "pinv",
    "det",
    "slogdet",
    # factorisations
    "cholesky",
    "qr",
    "lu",
    "eig",
    "eigvals",
    "eigh",
    "eigvalsh",
    "svd",
    "svdvals",
    # spectra
    "spectral_radius",
    "estimate_spectral_radius",
    # norms
    "norm",
    "vector_norm",
    "matrix_norm",
    "cond",
    "matrix_rank",
    # powers
    "matrix_exp",
    "expm",
    "matrix_power",
    "multi_dot",
    # permutations
    "permutation_matrix",
    "is_permutation",
    "is_doubly_stochastic",
    # products and parts, as in the top-level namespace
    "cross",
    "diagonal",
    "matmul",
    "matrix_transpose",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    # results with several parts
    "EighResult",
    "EigResult",
    "LUResult",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
]

_hints_for(globals())
