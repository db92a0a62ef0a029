"""Sizes of vectors and matrices, condition and rank."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import abs, expand_dims, max, min, moveaxis, stop_gradient, sum, where
from ..arrays import norm as euclidean
from ..arrays.conversion import as_inexact
from ..core.broadcasting import normalize_axes, normalize_axis
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, Axes
from ..primitives.creation import full_like, ones_like, zeros_like
from ..primitives.linear_algebra import check_matrices, check_square
from .factorizations import rank_of, svdvals, tolerance
from .systems import inv

INF = math.inf


def vector_norm(x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    r"""The p-norm \((\sum_i |x_i|^p)^{1/p}\) with p = `ord` over the axes, all of them if none is named.

    >>> import wonderland as wl
    >>> x = wl.tensor([3.0, -4.0])
    >>> print(*[wl.linalg.vector_norm(x, ord=p) for p in (2, 1, float("inf"))])
    tensor(5.) tensor(7.) tensor(4.)

    `ord` may be any number: inf gives the largest \(|x_i|\), -inf the smallest, 0 the count of elements that
    are not zero. Elements that are zero, and the zero vector, have derivative 0. Book, section 2.1.1.
    """
    x = as_inexact("vector_norm", x)
    if isinstance(ord, bool) or not isinstance(ord, (int, float, np.integer)) or math.isnan(ord):
        raise InputError(f"vector_norm: ord={ord!r} is not the order of a norm.", "a number, inf or -inf")
    if ord == 2:
        return euclidean(x, axis=axis, keepdims=keepdims)
    size = abs(x)
    if ord in (INF, -INF):
        return (_largest if ord > 0 else min)(size, axis=axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis=axis, keepdims=keepdims)
    zero = size == 0
    if ord == 0:
        return sum(where(zero, zeros_like(size), ones_like(size)), axis=axis, keepdims=keepdims)
    # infinite slopes of the powers at zero are kept out of the derivative
    powers = where(zero, full_like(size, 0.0 if ord > 0 else INF), where(zero, ones_like(size), size) ** ord)
    total = sum(powers, axis=axis, keepdims=keepdims)
    regular = (total > 0) & (total < INF)
    root = where(regular, total, ones_like(total)) ** (1 / ord)
    return where(regular, root, stop_gradient(total) ** (1 / ord))


def _largest(sizes: Tensor, axis: Axes, keepdims: bool = False) -> Tensor:
    """The largest of numbers that are not negative; 0 of none, so that the norm of nothing is 0."""
    nothing = math.prod(sizes.shape[a] for a in normalize_axes("norm", axis, sizes.ndim)) == 0
    return (sum if nothing else max)(sizes, axis=axis, keepdims=keepdims)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: float | str = "fro") -> Tensor:
    r"""A norm of matrices (..., m, n).

    >>> import wonderland as wl
    >>> A = wl.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> print(wl.linalg.matrix_norm(A, ord=1), wl.linalg.matrix_norm(A, ord=float("inf")))
    tensor(6.) tensor(7.)

    "fro": \(\sqrt{\sum_{ij} |A_{ij}|^2}\); "nuc": the sum of the singular values; 2 and -2: the largest and
    the smallest singular value; 1 and -1: the largest and the smallest absolute column sum; inf and -inf: the
    same of rows.
    """
    x = as_inexact("matrix_norm", x)
    check_matrices("matrix_norm", x)
    if ord == "fro":
        return euclidean(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        out = sum(values, axis=-1) if ord == "nuc" else (_largest if ord == 2 else min)(values, axis=-1)
    elif ord in (1, -1, INF, -INF):
        sums = sum(abs(x), axis=-2 if ord in (1, -1) else -1)
        out = (_largest if ord > 0 else min)(sums, axis=-1)
    else:
        raise InputError(
            f"matrix_norm: ord={ord!r} is not a norm of matrices.", '"fro", "nuc", 1, -1, 2, -2, inf or -inf'
        )
    return expand_dims(out, axis=(-2, -1)) if keepdims else out


def norm(x: ArrayLike, /, ord: float | str | None = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors (`axis` is an integer) or matrices (`axis` is a pair), under NumPy's name.

    >>> import wonderland as wl
    >>> wl.linalg.norm(wl.tensor([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    tensor([ 5., 10.])

    Without `ord` the Euclidean norm over all axes named. Without `axis`, x is one vector or one matrix.
    """
    x = as_inexact("norm", x)
    if ord is None:
        return euclidean(x, axis=axis, keepdims=keepdims)
    if axis is None:
        if x.ndim not in (1, 2):
            raise ShapeError(
                f"norm: ord={ord!r} of a tensor of shape {x.shape} needs an axis.", "axis=-1 or axis=(-2, -1)"
            )
        axis = tuple(range(x.ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=ord)  # type: ignore[arg-type]  # refuses names
    if len(axes) != 2:
        raise InputError(f"norm: axis={axis!r} with ord={ord!r}.", "one axis for vectors, two for matrices")
    normalize_axes("norm", tuple(axes), x.ndim)  # refuses axes that do not exist or are equal
    out = matrix_norm(moveaxis(x, tuple(axes), (-2, -1)), ord=ord)
    places = tuple(normalize_axis("norm", a, x.ndim) for a in axes)
    return expand_dims(out, axis=places) if keepdims else out


def cond(x: ArrayLike, /, p: float | str | None = None) -> Tensor:
    r"""The condition number \(\|A\|\,\|A^{-1}\|\) of matrices (..., m, n).

    >>> import wonderland as wl
    >>> print(wl.linalg.cond(wl.tensor([[2.0, 0.0], [0.0, 0.5]])))
    tensor(4.)

    It is the factor by which `solve` may enlarge relative errors. By default (and for p=2) the largest over
    the smallest singular value, which is inf for a singular matrix; for p=-2 the other way round. For "fro",
    "nuc", 1, -1, inf and -inf by `matrix_norm`; a singular matrix then raises.
    """
    x = as_inexact("cond", x)
    check_matrices("cond", x)
    if p not in (None, 2, -2):
        check_square("cond", x)
        return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)
    if 0 in x.shape[-2:]:
        raise ShapeError(f"cond: an empty matrix of shape {x.shape} has no condition number.", "non-empty matrices")
    values = svdvals(x)
    largest, smallest = values[..., 0], values[..., -1]
    if p == -2:
        return where(
            largest == 0,
            full_like(largest, math.nan),
            smallest / where(largest == 0, ones_like(largest), largest),
        )
    singular = smallest == 0
    return where(singular, full_like(largest, INF), largest / where(singular, ones_like(largest), smallest))


def matrix_rank(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Tensor:
    """How many independent rows matrices (..., m, n) have: the singular values above `rtol` of the largest.

    >>> import wonderland as wl
    >>> print(wl.linalg.matrix_rank(wl.tensor([[1.0, 2.0], [2.0, 4.0]])))
    tensor(1)

    By default `rtol` is max(m, n) times the rounding unit of the dtype.
    """
    x = as_inexact("matrix_rank", x)
    check_matrices("matrix_rank", x)
    return rank_of(svdvals(x), tolerance(x, rtol))
