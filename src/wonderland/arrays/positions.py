"""Tensors of indices: of triangles, of diagonals, of elements that are not zero; positions in flat and in many axes."""

from __future__ import annotations

import math

import numpy as np

from ..core.arguments import as_int, as_list
from ..core.dtypes import int64
from ..core.errors import DTypeError, InputError
from ..core.tensor import Tensor, Tracer, wrap
from ..core.typing import ArrayLike, ShapeLike
from ..primitives.creation import check_size
from .arithmetic import floor_divide, remainder
from .conversion import as_shape, as_tensor, asarray
from .creation import full
from .gathering import nonzero
from .joining import stack
from .manipulation import astype, ravel

__all__ = [
    "argwhere", "diag_indices", "flatnonzero", "ravel_multi_index", "tril_indices", "triu_indices", "unravel_index",
]  # fmt: skip


def _triangle(name: str, n: int, k: int, m: int | None, lower: bool) -> tuple[Tensor, Tensor]:
    rows = as_int(name, "n", n, least=0)
    columns = rows if m is None else as_int(name, "m", m, least=0)
    check_size(name, (rows, max(columns, 1)), int64)
    k = min(max(as_int(name, "k", k), -rows - 1), columns + 1)
    mask = np.tri(rows, columns, k if lower else k - 1, dtype=bool)
    first, second = np.nonzero(mask if lower else ~mask)
    return wrap(first), wrap(second)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Rows and columns of the lower triangle of an (n, m) matrix, up to diagonal number k.

    >>> import wonderland as wl
    >>> wl.ones((2, 2))[wl.tril_indices(2)].shape, wl.tril_indices(2, -1)
    ((3,), (tensor([1]), tensor([0])))
    """
    return _triangle("tril_indices", n, k, m, True)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Rows and columns of the upper triangle of an (n, m) matrix, from diagonal number k on.

    >>> import wonderland as wl
    >>> wl.triu_indices(2, 1)
    (tensor([0]), tensor([1]))
    """
    return _triangle("triu_indices", n, k, m, False)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The positions of the diagonal of a tensor with `ndim` axes of size n.

    >>> import wonderland as wl
    >>> wl.eye(3)[wl.diag_indices(3)]
    tensor([1., 1., 1.])
    """
    size = as_int("diag_indices", "n", n, least=0)
    check_size("diag_indices", (size,), int64)
    if as_int("diag_indices", "ndim", ndim, least=1) > 64:
        raise InputError(f"diag_indices: ndim={ndim}.", "at most 64 axes")
    return tuple(wrap(np.arange(size)) for _ in range(ndim))


def argwhere(x: ArrayLike, /) -> Tensor:
    """The positions of the elements that are not zero, one row each; their number depends on the data.

    >>> import wonderland as wl
    >>> wl.argwhere(wl.tensor([[0, 3], [4, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    x = as_tensor("argwhere", x)
    return stack(nonzero(x), axis=1) if x.ndim else wrap(np.argwhere(x._concrete("a list of positions")))


def flatnonzero(x: ArrayLike, /) -> Tensor:
    """The positions in the flattened tensor of the elements that are not zero; their number depends on the data.

    >>> import wonderland as wl
    >>> wl.flatnonzero(wl.tensor([0, 3, 0, 4]))
    tensor([1, 3])
    """
    return nonzero(ravel(x))[0]


# --- flat positions and positions along axes


def _indices(name: str, x: ArrayLike) -> Tensor:
    x = asarray(x) if isinstance(x, (list, tuple)) else as_tensor(name, x)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"{name}: the indices are {x.dtype}.", "integers")
    return astype(x, int64)


def _check_inside(name: str, x: Tensor, n: int) -> None:
    if not isinstance(x, Tracer) and x.size and not (x._data.min() >= 0 and x._data.max() < n):
        raise InputError(f"{name}: indices from {x._data.min()} to {x._data.max()}.", f"0 to {n - 1}")


def unravel_index(indices: ArrayLike, shape: ShapeLike, /) -> tuple[Tensor, ...]:
    """Positions in the flattened tensor as positions along the axes of a shape.

    >>> import wonderland as wl
    >>> wl.unravel_index(wl.argmax(wl.tensor([[1, 5], [9, 2]])), (2, 2))
    (tensor(1), tensor(0))
    """
    x, shape = _indices("unravel_index", indices), as_shape("unravel_index", shape)
    _check_inside("unravel_index", x, math.prod(shape))
    found = []
    for n in reversed(shape):
        found.append(remainder(x, n))
        x = floor_divide(x, n)
    return tuple(reversed(found))


def ravel_multi_index(indices: ArrayLike, shape: ShapeLike, /) -> Tensor:
    """Positions along the axes of a shape as positions in the flattened tensor.

    >>> import wonderland as wl
    >>> wl.ravel_multi_index((wl.tensor([1, 0]), wl.tensor([0, 1])), (2, 3))
    tensor([3, 1])
    """
    parts = [_indices("ravel_multi_index", i) for i in as_list("ravel_multi_index", "indices", indices)]
    shape = as_shape("ravel_multi_index", shape)
    if len(parts) != len(shape) or not parts:
        raise InputError(f"ravel_multi_index: {len(parts)} indices for the shape {shape}.", "one per axis")
    flat = full((), 0, dtype=int64)
    for index, n in zip(parts, shape, strict=True):
        _check_inside("ravel_multi_index", index, n)
        flat = flat * n + index
    return flat
