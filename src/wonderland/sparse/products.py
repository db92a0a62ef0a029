"""Products with sparse matrices: sparse times dense, and the entries of a product that a pattern asks for."""

from __future__ import annotations

from ..arrays.conversion import as_tensor, promote
from ..arrays.creation import ones
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives import segments as p
from .patterns import Incidence, Pattern


def _of(lines: Incidence) -> tuple[Tensor, ...]:
    return lines.ptr, lines.owner, lines.order, lines.other


def matmul(values: ArrayLike | None, pattern: Pattern, x: ArrayLike) -> Tensor:
    r"""\(y_i = \sum_{j} A_{ij}\, x_j\) for the matrix A with these values at the places of the pattern.

    values (m,) with x (s, ...) gives (n, ...); values (m, h) with x (s, h, ...) has a matrix for each of h heads;
    `values=None` are ones. Cost and memory are O(m) and O(n + m): what the entries contribute is never stored, also not
    for the derivatives, which are products with the transpose and `sampled_matmul`. Book, sections 12.1.2 and 12.1.3.

    >>> import wonderland as wl
    >>> pattern = wl.sparse.Pattern.of([0, 0, 1], [1, 2, 0], (2, 3))
    >>> wl.sparse.matmul(wl.tensor([1.0, 2.0, 3.0]), pattern, wl.tensor([[1.0, 1.0], [2.0, 0.0], [3.0, 0.0]]))
    tensor([[8., 0.],
            [3., 3.]])
    """
    name = "sparse.matmul"
    if values is None:
        x = as_tensor(name, x)
        values = ones((pattern.nnz,), dtype=x.dtype)
    values, x = promote(name, values, x)
    if values.ndim < 1 or values.shape[0] != pattern.nnz:
        raise ShapeError(f"{name}: values of shape {values.shape} for {pattern.nnz} entries.", "a value for each entry")
    if x.ndim < 1 or x.shape[0] != pattern.shape[1]:
        raise ShapeError(
            f"{name}: x of shape {x.shape} for a matrix of shape {pattern.shape}.",
            f"x of shape ({pattern.shape[1]}, ...), with a row for each column of the matrix",
        )
    if values.shape[1:] != x.shape[1 : values.ndim]:
        raise ShapeError(
            f"{name}: values of shape {values.shape} with x of shape {x.shape}.",
            "values (m,) with x (s, ...), or values (m, h) with x (s, h, ...)",
        )
    order = (pattern.rows.sorted, pattern.cols.sorted)
    return p.sparse_matmul(values, x, *_of(pattern.rows), *_of(pattern.cols), in_order=order)


def sampled_matmul(a: ArrayLike, b: ArrayLike, pattern: Pattern) -> Tensor:
    r"""\(z_e = \langle a_{i_e}, b_{j_e}\rangle\) for every entry \((i_e, j_e)\): the entries of \(A B^\top\) asked for.

    a (n, c) and b (s, c) give (m,); with heads, a (n, h, c) and b (s, h, c) give (m, h). Scores of attention over the
    edges of a graph are such products. Book, section 12.3.1.

    >>> import wonderland as wl
    >>> pattern = wl.sparse.Pattern.of([0, 1], [1, 1], (2, 2))
    >>> wl.sparse.sampled_matmul(wl.tensor([[1.0, 2.0], [3.0, 4.0]]), wl.tensor([[1.0, 0.0], [0.0, 1.0]]), pattern)
    tensor([2., 4.])
    """
    name = "sparse.sampled_matmul"
    a, b = promote(name, a, b)
    if a.ndim < 2 or a.shape[1:] != b.shape[1:]:
        raise ShapeError(f"{name}: shapes {a.shape} and {b.shape}.", "a (n, ..., c) and b (s, ..., c)")
    if (a.shape[0], b.shape[0]) != pattern.shape:
        raise ShapeError(
            f"{name}: {a.shape[0]} and {b.shape[0]} lines for a pattern of shape {pattern.shape}.",
            "a with a line for each row, b with one for each column",
        )
    order = (pattern.rows.sorted, pattern.cols.sorted)
    return p.sampled_matmul(a, b, *_of(pattern.rows), *_of(pattern.cols), heads=a.ndim - 2, in_order=order)
