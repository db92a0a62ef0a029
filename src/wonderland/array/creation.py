"""Functions that make tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import as_dtype
from ..errors import InputError, ShapeError
from ..primitives import creation as p
from ..primitives.creation import check_size
from ..tensor import Tensor, wrap
from .conversion import as_shape, as_tensor, asarray
from .manipulation import broadcast_to, reshape


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with one value.

    >>> import wonderland as wl
    >>> wl.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    sizes = as_shape("full", shape)
    if isinstance(fill_value, Tensor):
        value = fill_value if dtype is None else fill_value.astype(dtype)
        check_size("full", sizes, value.dtype)
        return broadcast_to(value, sizes)
    if isinstance(fill_value, np.generic):
        fill_value = fill_value.item()
    made = asarray(fill_value, dtype=dtype)
    return p.full(sizes, made._data.item(), made.dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of zeros.

    >>> import wonderland as wl
    >>> wl.zeros((2, 3)).shape
    (2, 3)
    """
    return p.full(as_shape("zeros", shape), 0, as_dtype(dtype or dtypes.default_float))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of ones."""
    return p.full(as_shape("ones", shape), 1, as_dtype(dtype or dtypes.default_float))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor whose values are not specified; here zeros."""
    return zeros(shape, dtype=dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with one value, in the shape and dtype of x."""
    x = as_tensor("full_like", x)
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in the shape and dtype of x."""
    x = as_tensor("zeros_like", x)
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in the shape and dtype of x."""
    x = as_tensor("ones_like", x)
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Unspecified values in the shape and dtype of x; here zeros."""
    return zeros_like(x, dtype=dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The numbers start, start + step, ... before stop. With one argument, 0, 1, ... before it.

    >>> import wonderland as wl
    >>> wl.arange(2, 8, 3)
    tensor([2, 5])
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise InputError("arange: the step is 0.", "a positive or negative step")
    whole = all(isinstance(v, (int, np.integer)) for v in (start, stop, step))
    target = as_dtype(dtype) if dtype is not None else (dtypes.default_int if whole else dtypes.default_float)
    count = max(0, math.ceil((stop - start) / step))
    check_size("arange", (count,), target)
    if start == 0 and step == 1:
        return p.iota(size=count, dtype=target)
    if state.trace is not None and state.trace.staged:
        return p.iota(size=count, dtype=target) * asarray(step, dtype=target) + asarray(start, dtype=target)
    return wrap((start + step * np.arange(count)).astype(target))


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True) -> Tensor:
    """`num` evenly spaced numbers from start to stop (included unless `endpoint=False`)."""
    target = dtypes.default_float if dtype is None else as_dtype(dtype)
    if isinstance(start, complex) or isinstance(stop, complex):
        target = dtypes.default_complex if dtype is None else target
    check_size("linspace", (num,), target)
    return wrap(np.linspace(start, stop, num, endpoint=endpoint).astype(target))


def logspace(start: Any, stop: Any, /, num: int, *, base: float = 10.0, dtype: Any = None) -> Tensor:
    """Numbers evenly spaced on a logarithmic scale, from base**start to base**stop."""
    return wrap(np.logspace(start, stop, num, base=base).astype(as_dtype(dtype or dtypes.default_float)))


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the diagonal number k, zeros elsewhere. Row i is the basis vector e_i. Book, E.2.18.

    >>> import wonderland as wl
    >>> wl.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    target = as_dtype(dtype or dtypes.default_float)
    n_cols = n_rows if n_cols is None else n_cols
    check_size("eye", (n_rows, n_cols), target)
    return wrap(np.eye(n_rows, n_cols, k=k, dtype=target))


def tri(n: int, m: int | None = None, k: int = 0, *, dtype: Any = None) -> Tensor:
    """Ones at and below the diagonal number k."""
    return wrap(np.tri(n, m, k, dtype=as_dtype(dtype or dtypes.default_float)))


def _triangle(name: str, x: Any, k: int, lower: bool) -> Tensor:
    x = as_tensor(name, x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: a tensor of shape {x.shape} is not a matrix.", "at least two axes")
    mask = np.tri(x.shape[-2], x.shape[-1], k if lower else k - 1, dtype=bool)
    return where(wrap(mask if lower else ~mask), x, zeros_like(x))


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """The lower triangle, zeros above the diagonal number k."""
    return _triangle("tril", x, k, True)


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """The upper triangle, zeros below the diagonal number k."""
    return _triangle("triu", x, k, False)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate grids from coordinate vectors."""
    if indexing not in ("xy", "ij"):
        raise InputError(f"meshgrid: indexing={indexing!r}.", '"xy" or "ij"')
    xs = [as_tensor("meshgrid", a) for a in arrays]
    if any(x.ndim > 1 for x in xs):
        raise ShapeError(f"meshgrid: shapes {[x.shape for x in xs]}.", "vectors")
    xs = [reshape(x, (-1,)) for x in xs]
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[0], places[1] = 1, 0
    sizes = [0] * len(xs)
    for x, place in zip(xs, places, strict=True):
        sizes[place] = x.shape[0]
    return tuple(
        broadcast_to(reshape(x, tuple(-1 if i == place else 1 for i in range(len(xs)))), tuple(sizes))
        for x, place in zip(xs, places, strict=True)
    )


def one_hot(indices: Any, num_classes: int, *, dtype: Any = None) -> Tensor:
    """The rows of the identity: 1 at the index, 0 elsewhere, as a new last axis of size `num_classes`.

    >>> import wonderland as wl
    >>> wl.one_hot(wl.tensor([0, 2]), 3)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    indices = as_tensor("one_hot", indices)
    return take(eye(num_classes, dtype=dtype), indices, axis=0)


def diag(x: Any, /, k: int = 0) -> Tensor:
    """The matrix with a vector on diagonal k, or the diagonal of a matrix."""
    x = as_tensor("diag", x)
    if x.ndim == 1:
        n = x.shape[0] + builtin_abs(k)
        rows = np.arange(x.shape[0]) + max(0, -k)
        return zeros((n, n), dtype=x.dtype).at[wrap(rows), wrap(rows + k)].set(x)
    return diagonal(x, offset=k)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array."""
    if isinstance(x, Tensor):
        return x
    return asarray(np.from_dlpack(x), copy=copy)


builtin_abs = abs

from ..context import state  # noqa: E402
from .elementwise import where  # noqa: E402 - these build on the functions above
from .indexing import diagonal, take  # noqa: E402
