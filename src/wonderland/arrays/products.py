"""Products of vectors, matrices and tensors. Book, sections 2.1.1 to 2.1.3."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.arguments import as_int, as_list
from ..core.broadcasting import normalize_axis
from ..core.dtypes import bool_
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, DTypeLike, ShapeLike
from ..primitives.contraction import matmul as matmul_primitive
from .arithmetic import multiply
from .complexes import conj
from .conversion import for_products, promote
from .gathering import diagonal
from .manipulation import broadcast_arrays, moveaxis, reshape, transpose
from .reductions import sum

__all__ = ["cross", "dot", "inner", "kron", "matmul", "outer", "tensordot", "trace", "vecdot"]


def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""The matrix product \(Z_{ij} = \sum_k X_{ik} Y_{kj}\): (..., a, b) and (..., b, c) give (..., a, c).

    >>> import wonderland as wl
    >>> (wl.ones((4, 5, 2)) @ wl.ones((4, 2, 3))).shape, (wl.ones((4, 3)) @ wl.ones(3)).shape
    ((4, 5, 3), (4,))

    Leading axes are a batch and broadcast; a vector stands for a row on the left, for a column on the right,
    and that axis is gone from the result. Book, D.2.3, E.2.4, E.2.5, E.2.9 and Box C.2.3.
    """
    if not (isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype):
        x1, x2 = promote("matmul", x1, x2)
    x1, x2 = for_products(x1, x2)
    if x1.dtype is bool_:
        raise DTypeError("matmul: bool tensors have no sums of products.", "x.astype(wl.int64)")
    if x1.ndim > 1 and x2.ndim > 1:
        return matmul_primitive(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise ShapeError(f"matmul: shapes {x1.shape} and {x2.shape}: a scalar is not a matrix.", "x * y")
    left = reshape(x1, (1, x1.shape[0])) if x1.ndim == 1 else x1
    right = reshape(x2, (x2.shape[0], 1)) if x2.ndim == 1 else x2
    if left.shape[-1] != right.shape[-2]:
        raise ShapeError(
            f"matmul: shapes {x1.shape} and {x2.shape} do not fit: "
            f"the inner sizes {left.shape[-1]} and {right.shape[-2]} differ.",
            "shapes (..., n, k) and (..., k, m)",
        )
    out = matmul_primitive(left, right)
    shape = out.shape[:-1] if x2.ndim == 1 else out.shape
    if x1.ndim == 1:
        shape = shape[:-1] if x2.ndim == 1 else (*shape[:-2], shape[-1])
    return reshape(out, shape)


def _move_last(name: str, x1: Tensor, x2: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Two tensors with the axis moved to the end; counted from the end when the numbers of axes differ."""
    if x1.ndim != x2.ndim and as_int(name, "axis", axis) >= 0:
        raise ShapeError(f"{name}: axis {axis} of shapes {x1.shape} and {x2.shape}.", "a negative axis")
    first, second = normalize_axis(name, axis, x1.ndim), normalize_axis(name, axis, x2.ndim)
    if x1.shape[first] != x2.shape[second]:
        raise ShapeError(f"{name}: shapes {x1.shape} and {x2.shape} differ along axis {axis}.", "vectors of one length")
    return moveaxis(x1, first, -1), moveaxis(x2, second, -1)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, axis: int = -1) -> Tensor:
    r"""\(\sum_i \overline{x_i}\, y_i\) along an axis; the other axes broadcast.

    >>> import wonderland as wl
    >>> wl.vecdot(wl.ones((2, 3)), wl.tensor([1.0, 2.0, 3.0]))
    tensor([6., 6.])
    """
    x1, x2 = promote("vecdot", x1, x2)
    a, b = _move_last("vecdot", x1, x2, axis)
    return sum(multiply(conj(a), b), axis=-1, dtype=a.dtype)


def dot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""The inner product \(\langle x, y\rangle = \sum_i x_i y_i\) of two vectors. Book, D.2.2.

    >>> import wonderland as wl
    >>> print(wl.dot(wl.tensor([0.1, 0.0, -0.3]), wl.tensor([-4.0, 0.05, 0.1])))
    tensor(-0.43)

    Of tensors, the last axis of x1 with the second-to-last of x2, as in NumPy; with a scalar, the product.
    """
    x1, x2 = promote("dot", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return multiply(x1, x2)
    if x2.ndim == 1 or (x1.ndim <= 2 and x2.ndim == 2):
        return matmul(x1, x2)
    return tensordot(x1, x2, axes=((-1,), (-2,)))


def inner(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""The inner product over the last axes, \((\dots, d), (\dots', d) \to (\dots, \dots')\).

    >>> import wonderland as wl
    >>> wl.inner(wl.ones((2, 3)), wl.ones((4, 3))).shape
    (2, 4)
    """
    x1, x2 = promote("inner", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return multiply(x1, x2)
    return tensordot(x1, x2, axes=((-1,), (-1,)))


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""\(Z_{ij} = x_i y_j\), \((n), (m) \to (n, m)\).

    >>> import wonderland as wl
    >>> wl.outer(wl.tensor([1, 2]), wl.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    x1, x2 = promote("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer: shapes {x1.shape} and {x2.shape}.", "two vectors; x.ravel() for others")
    return multiply(reshape(x1, (x1.shape[0], 1)), reshape(x2, (1, x2.shape[0])))


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: int | Sequence[ShapeLike] = 2) -> Tensor:
    """The sum of products over pairs of axes: the last of x1 with the first of x2, or two lists of axes.

    >>> import wonderland as wl
    >>> wl.tensordot(wl.ones((2, 3, 4)), wl.ones((3, 4, 5))).shape
    (2, 5)

    Over all axes of two tensors of one shape it is the generalised dot product. Book, E.2.10.
    """
    x1, x2 = promote("tensordot", x1, x2)
    if isinstance(axes, int):
        if axes < 0 or axes > min(x1.ndim, x2.ndim):
            raise ShapeError(f"tensordot: axes={axes} for shapes {x1.shape} and {x2.shape}.", "at most both ranks")
        left, right = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        pair = as_list("tensordot", "axes", axes)
        if len(pair) != 2:
            raise InputError(f"tensordot: axes={axes!r}.", "a number of axes, or two lists of axes")
        first, second = ([a] if isinstance(a, int) else as_list("tensordot", "axes", a) for a in pair)
        left = [normalize_axis("tensordot", a, x1.ndim) for a in first]
        right = [normalize_axis("tensordot", a, x2.ndim) for a in second]
    if [x1.shape[a] for a in left] != [x2.shape[a] for a in right]:
        raise ShapeError(
            f"tensordot: shapes {x1.shape} over axes {left} and {x2.shape} over axes {right} differ.",
            "pairs of equal size",
        )
    keep1 = [i for i in range(x1.ndim) if i not in left]
    keep2 = [i for i in range(x2.ndim) if i not in right]
    size = math.prod(x1.shape[a] for a in left)
    a = reshape(transpose(x1, keep1 + left), (math.prod(x1.shape[i] for i in keep1), size))
    b = reshape(transpose(x2, right + keep2), (size, math.prod(x2.shape[i] for i in keep2)))
    return reshape(matmul(a, b), tuple(x1.shape[i] for i in keep1) + tuple(x2.shape[i] for i in keep2))


def kron(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    r"""The Kronecker product \(Z_{(i,k),(j,l)} = X_{ij} Y_{kl}\), for any number of axes.

    >>> import wonderland as wl
    >>> wl.kron(wl.eye(2, dtype=wl.int64), wl.tensor([[1, 2]]))
    tensor([[1, 2, 0, 0],
            [0, 0, 1, 2]])
    """
    x1, x2 = promote("kron", x1, x2)
    rank = max(x1.ndim, x2.ndim)
    n = (1,) * (rank - x1.ndim) + x1.shape
    m = (1,) * (rank - x2.ndim) + x2.shape
    left = reshape(x1, tuple(v for size in n for v in (size, 1)))
    right = reshape(x2, tuple(v for size in m for v in (1, size)))
    return reshape(multiply(left, right), tuple(a * b for a, b in zip(n, m, strict=True)))


def cross(x1: ArrayLike, x2: ArrayLike, /, axis: int = -1) -> Tensor:
    """The cross product of vectors with three components; the other axes broadcast.

    >>> import wonderland as wl
    >>> wl.cross(wl.tensor([1, 0, 0]), wl.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    x1, x2 = promote("cross", x1, x2)
    a, b = broadcast_arrays(*_move_last("cross", x1, x2, axis))
    if a.shape[-1] != 3:
        raise ShapeError(f"cross: shapes {x1.shape} and {x2.shape} along axis {axis}.", "vectors of size 3")
    following, preceding = [1, 2, 0], [2, 0, 1]
    out = a[..., following] * b[..., preceding] - a[..., preceding] * b[..., following]
    return moveaxis(out, -1, axis)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    r"""\(\sum_i X_{ii}\) over the last two axes.

    >>> import wonderland as wl
    >>> wl.trace(wl.eye(3))
    tensor(3.)
    """
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)
