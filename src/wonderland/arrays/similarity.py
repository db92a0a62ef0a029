"""Norms, distances and similarities of vectors, and the book's constraints on them. Book, section 2.1.1."""

from __future__ import annotations

import math

from ..core.arguments import as_number
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, Axes
from ..primitives import elementwise as p
from ..primitives.elementwise import FLOATING, check_kind
from .activations import relu
from .arithmetic import abs as abs_
from .arithmetic import clip, maximum, power
from .conversion import as_inexact, as_tensor, promote_inexact
from .gathering import diagonal
from .logic import where
from .manipulation import astype, broadcast_arrays, expand_dims, matrix_transpose
from .products import matmul
from .reductions import max as max_
from .reductions import root
from .reductions import sum as sum_

__all__ = [
    "cdist", "cosine_similarity", "is_binary", "is_simplex", "norm", "normalize", "pairwise_sq_distances", "sq_norm",
]  # fmt: skip


def norm(x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    r"""The Euclidean norm \(\|x\| = \sqrt{\sum_i |x_i|^2}\) over the axes (all if none is named).

    >>> import wonderland as wl
    >>> print(wl.norm(wl.tensor([3.0, 4.0])), wl.grad(wl.norm)(wl.zeros(2)))
    tensor(5.) tensor([0., 0.])

    The derivative is \(x/\|x\|\), and 0 at 0. Other norms are in `wl.linalg`.
    """
    return root(sq_norm(x, axis=axis, keepdims=keepdims))


def sq_norm(x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    r"""\(\|x\|^2 = \sum_i |x_i|^2\) over the axes.

    >>> import wonderland as wl
    >>> wl.sq_norm(wl.tensor([[3.0, 4.0], [1.0, 0.0]]), axis=-1)
    tensor([25.,  1.])
    """
    return sum_(p.square(abs_(as_inexact("sq_norm", x))), axis=axis, keepdims=keepdims)


def normalize(x: ArrayLike, /, axis: Axes = -1, *, eps: float = 1e-12) -> Tensor:
    r"""\(x / \|x\|\) along an axis; the zero vector stays zero.

    >>> import wonderland as wl
    >>> wl.normalize(wl.tensor([3.0, 4.0]))
    tensor([0.6, 0.8])
    """
    x = as_inexact("normalize", x)
    return x / maximum(norm(x, axis=axis, keepdims=True), eps)


def cosine_similarity(x1: ArrayLike, x2: ArrayLike, /, axis: int = -1, *, eps: float = 1e-12) -> Tensor:
    r"""\(\langle x, y\rangle / (\|x\|\,\|y\|)\) along an axis, in [-1, 1]; 0 for a zero vector. Book, E.2.2.

    >>> import wonderland as wl
    >>> wl.cosine_similarity(wl.tensor([1.0, 0.0]), wl.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]]))
    tensor([ 1.,  0., -1.])

    The axis is one of the common shape of both: x and y are broadcast first.
    """
    x1, x2 = promote_inexact("cosine_similarity", x1, x2)
    p.check_kind("cosine_similarity", p.FLOATING, x1)
    if x1.shape != x2.shape:  # an axis that is repeated has another norm
        x1, x2 = broadcast_arrays(x1, x2)
    products = sum_(normalize(x1, axis=axis, eps=eps) * normalize(x2, axis=axis, eps=eps), axis=axis)
    return clip(products, -1.0, 1.0)


def pairwise_sq_distances(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(\|x_i - y_j\|^2\) for all rows, as \(\langle x_i, x_i\rangle + \langle y_j, y_j\rangle
    - 2\langle x_i, y_j\rangle\).

    >>> import wonderland as wl
    >>> X = wl.tensor([[0.0, 0.0], [3.0, 4.0]])
    >>> wl.pairwise_sq_distances(X, X)
    tensor([[ 0., 25.],
            [25.,  0.]])

    Shapes (..., n, d) and (..., m, d) give (..., n, m). Tiny negative results of rounding are raised to 0,
    and a tensor has distance 0 to itself exactly. Book, section 2.1.1.
    """
    x1, x2 = promote_inexact("pairwise_sq_distances", x1, x2)
    p.check_kind("pairwise_sq_distances", p.FLOATING, x1)
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"pairwise_sq_distances: shapes {x1.shape} and {x2.shape}.",
            "matrices (..., n, d) and (..., m, d)",
        )
    products = matmul(x1, matrix_transpose(x2))
    if x1 is x2:  # the squares as they stand among the products, with the same rounding
        squares1 = squares2 = diagonal(products)
    else:
        squares1, squares2 = sq_norm(x1, axis=-1), sq_norm(x2, axis=-1)
    return relu(expand_dims(squares1, axis=-1) + expand_dims(squares2, axis=-2) - 2 * products)


def cdist(x1: ArrayLike, x2: ArrayLike, /, p: float = 2.0) -> Tensor:
    r"""The distances \(\|x_i - y_j\|_p\) of all rows: (..., n, d) and (..., m, d) give (..., n, m).

    >>> import wonderland as wl
    >>> X, Y = wl.tensor([[0.0, 0.0], [3.0, 4.0]]), wl.tensor([[3.0, 0.0]])
    >>> wl.cdist(X, Y), wl.cdist(X, Y, p=1.0), wl.cdist(X, Y, p=wl.inf)
    (tensor([[3.],
            [4.]]), tensor([[3.],
            [4.]]), tensor([[3.],
            [4.]]))

    p is at least 0 (the number of components that differ) and may be infinite (the largest difference). The differences
    are formed, n m d numbers, so that near points lose no digits; `pairwise_sq_distances` needs n m and rounds more.
    The derivative at distance 0 is 0.
    """
    x1, x2 = promote_inexact("cdist", x1, x2)
    check_kind("cdist", FLOATING, x1)
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"cdist: shapes {x1.shape} and {x2.shape}.", "matrices (..., n, d) and (..., m, d)")
    order = as_number("cdist", "p", p)
    if not order >= 0:
        raise InputError(f"cdist: p={p}.", "a number from 0 to wl.inf")
    apart = expand_dims(x1, axis=-2) - expand_dims(x2, axis=-3)
    if order == 2:
        return norm(apart, axis=-1)
    size = abs_(apart)
    if order == math.inf:
        return max_(size, axis=-1) if size.shape[-1] else sum_(size, axis=-1)
    if order == 0:
        return sum_(astype(size != 0, size.dtype), axis=-1)
    if order == 1:
        return sum_(size, axis=-1)
    total = sum_(power(size, order), axis=-1)
    positive = total != 0  # the root has no derivative at 0; NaN stays
    return where(positive, power(where(positive, total, 1), 1 / order), 0)


# --- constraints of the book's notation


def is_binary(x: ArrayLike, /) -> bool:
    r"""Whether all elements are 0 or 1: \(x \sim \mathrm{Binary}(c)\). Book, notation.

    >>> import wonderland as wl
    >>> wl.is_binary(wl.one_hot(wl.tensor([2]), 3)), wl.is_binary(0.5)
    (True, False)
    """
    x = as_tensor("is_binary", x)
    return bool(((x == 0) | (x == 1)).all())


def is_simplex(x: ArrayLike, /, axis: int = -1, *, strict: bool = False, tolerance: float = 1e-5) -> bool:
    r"""Whether \(x_i \ge 0\) (> 0 if `strict`) and \(\sum_i x_i = 1\) along an axis: \(x \sim \Delta(c)\).

    >>> import wonderland as wl
    >>> wl.is_simplex(wl.softmax(wl.tensor([[1.0, 2.0], [0.0, 5.0]]))), wl.is_simplex(wl.tensor([0.5, 0.6]))
    (True, False)

    Book, notation: tensors of higher rank are normalised over the last axis.
    """
    x = as_tensor("is_simplex", x)
    positive = (x > 0) if strict else (x >= 0)
    return bool(positive.all()) and bool((abs_(sum_(x, axis=axis) - 1) <= tolerance).all())
