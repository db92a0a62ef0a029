"""Products of many matrices: powers, the exponential, chains."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from ..arrays import broadcast_to, eye, reshape
from ..arrays.conversion import as_inexact, as_result, promote
from ..core.arguments import as_list
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives.linear_algebra import check_square
from ..primitives.matrix_exponential import matrix_exp as matrix_exp_primitive
from .systems import inv


def matrix_exp(x: ArrayLike, /) -> Tensor:
    r"""The matrix exponential \(\exp(A) = \sum_k A^k / k!\) of square matrices (..., n, n).

    >>> import wonderland as wl
    >>> wl.linalg.matrix_exp(wl.tensor([[0.0, -1.0], [1.0, 0.0]]))
    tensor([[ 0.5403023 , -0.84147096],
            [ 0.84147096,  0.5403023 ]])

    `wl.exp` is another function, of the elements. By scaling and squaring of a Pade approximation in float64.
    Book, section 2.1.2 (E.2.7, Box C.2.2).
    """
    return matrix_exp_primitive(as_inexact("matrix_exp", x))


expm = matrix_exp


def matrix_power(x: ArrayLike, n: int, /) -> Tensor:
    """The n-th power of square matrices (..., m, m) by repeated squaring; for negative n, of the inverse.

    >>> import wonderland as wl
    >>> wl.linalg.matrix_power(wl.tensor([[1.0, 1.0], [1.0, 0.0]]), 10)
    tensor([[89., 55.],
            [55., 34.]])
    """
    try:
        n = operator.index(n)
    except TypeError as error:
        raise InputError(f"matrix_power: the exponent {n!r} is not an integer.", "an integer") from error
    x = as_inexact("matrix_power", x)
    check_square("matrix_power", x)
    if n < 0:
        x, n = inv(x), -n
    result: Tensor | None = None
    while n:
        if n % 2:
            result = x if result is None else result @ x
        n //= 2
        if n:
            x = x @ x
    return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape) if result is None else as_result(result)


def multi_dot(arrays: Sequence[ArrayLike], /) -> Tensor:
    """The product of two or more matrices in the order that takes the fewest multiplications.

    >>> import wonderland as wl
    >>> wl.linalg.multi_dot([wl.ones((10, 100)), wl.ones((100, 5)), wl.ones((5, 50))]).shape
    (10, 50)

    The first may be a vector, which is then a row, and the last one a column. Matrices may have leading batch axes.
    """
    xs = promote("multi_dot", *as_list("multi_dot", "arrays", arrays))
    if len(xs) < 2:
        raise InputError(f"multi_dot: received {len(xs)} matrices.", "at least two")
    if any(x.ndim < (1 if i in (0, len(xs) - 1) else 2) for i, x in enumerate(xs)):
        raise ShapeError(
            f"multi_dot: shapes {[x.shape for x in xs]}.", "matrices; the first and the last may be vectors"
        )
    row, column = xs[0].ndim == 1, xs[-1].ndim == 1
    if row:
        xs[0] = reshape(xs[0], (1, xs[0].shape[0]))
    if column:
        xs[-1] = reshape(xs[-1], (xs[-1].shape[0], 1))
    out = _chain(xs, _best_splits([x.shape[-2] for x in xs] + [xs[-1].shape[-1]]), 0, len(xs) - 1)
    shape = out.shape[:-2] + (() if row else out.shape[-2:-1]) + (() if column else out.shape[-1:])
    return reshape(out, shape)


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split the product of the matrices i .. j; matrix i has shape (sizes[i], sizes[i + 1])."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], splits[i, j] = min(options)
    return splits


def _chain(xs: list[Tensor], splits: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return xs[i]
    k = splits[i, j]
    return _chain(xs, splits, i, k) @ _chain(xs, splits, k + 1, j)
