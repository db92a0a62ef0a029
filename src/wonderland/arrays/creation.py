"""Functions that make tensors: constants, ranges, grids, the identity and its relatives."""

from __future__ import annotations

import math
import numbers

import numpy as np

from ..core import dtypes
from ..core.arguments import as_int, as_number, shown
from ..core.context import current
from ..core.dtypes import as_dtype, is_integer
from ..core.errors import DTypeError, IndexOutOfRange, InputError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike, DTypeLike, Number, ShapeLike
from ..primitives import creation as p
from ..primitives.creation import check_size
from .conversion import as_matrices, as_shape, as_tensor, asarray, check_device
from .gathering import diagonal, diagonal_number, put_along_axis
from .logic import where
from .manipulation import broadcast_to, reshape
from .types import iinfo

__all__ = [
    "arange", "diag", "empty", "empty_like", "eye", "full", "full_like", "linspace", "logspace", "meshgrid", "one_hot",
    "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

# --- constants


def full(
    shape: ShapeLike, fill_value: ArrayLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """A tensor filled with one value.

    >>> import wonderland as wl
    >>> wl.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    check_device("full", device)
    sizes = as_shape("full", shape)
    value = asarray(fill_value, dtype=dtype)
    check_size("full", sizes, value.dtype)
    if value.ndim:
        raise ShapeError(f"full: a fill value of shape {value.shape}.", "one number, or wl.broadcast_to")
    if isinstance(fill_value, Tensor):
        return broadcast_to(value, sizes)  # derivatives flow through it
    return p.full(sizes, value._data.item(), value.dtype)


def zeros(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor of zeros.

    >>> import wonderland as wl
    >>> wl.zeros((2, 3)).shape
    (2, 3)
    """
    return _constant("zeros", shape, 0, dtype, device)


def ones(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    r"""A tensor of ones; \(\langle x, \mathbf 1\rangle = \sum_i x_i\).

    >>> import wonderland as wl
    >>> wl.ones(2, dtype=wl.int64)
    tensor([1, 1])
    """
    return _constant("ones", shape, 1, dtype, device)


def empty(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor whose values are not specified; here zeros.

    >>> import wonderland as wl
    >>> wl.empty((2, 3)).shape
    (2, 3)
    """
    return _constant("empty", shape, 0, dtype, device)


def _constant(name: str, shape: ShapeLike, value: int, dtype: DTypeLike | None, device: str | None) -> Tensor:
    check_device(name, device)
    target = dtypes.default_float if dtype is None else as_dtype(dtype)
    sizes = as_shape(name, shape)
    check_size(name, sizes, target)
    return p.full(sizes, value, target)


def full_like(
    x: ArrayLike, /, fill_value: ArrayLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """A tensor filled with one value, in the shape and dtype of x.

    >>> import wonderland as wl
    >>> wl.full_like(wl.zeros(2), 7)
    tensor([7., 7.])
    """
    x = as_tensor("full_like", x)
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def zeros_like(x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Zeros in the shape and dtype of x.

    >>> import wonderland as wl
    >>> wl.zeros_like(wl.tensor([1, 2]))
    tensor([0, 0])
    """
    x = as_tensor("zeros_like", x)
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def ones_like(x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Ones in the shape and dtype of x.

    >>> import wonderland as wl
    >>> wl.ones_like(wl.tensor([5, 6]))
    tensor([1, 1])
    """
    x = as_tensor("ones_like", x)
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def empty_like(x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Unspecified values in the shape and dtype of x; here zeros.

    >>> import wonderland as wl
    >>> wl.empty_like(wl.zeros((2, 3))).shape
    (2, 3)
    """
    return zeros_like(x, dtype=dtype, device=device)


# --- ranges


def arange(
    start: Number | Tensor,
    /,
    stop: Number | Tensor | None = None,
    step: Number | Tensor = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """The numbers start, start + step, ... before stop. With one argument, 0, 1, ... before it.

    >>> import wonderland as wl
    >>> wl.arange(3), wl.arange(2, 8, 3)
    (tensor([0, 1, 2]), tensor([2, 5]))
    """
    check_device("arange", device)
    if stop is None:
        start, stop = 0, start
    first, end, by = (as_number("arange", "a bound or step", v) for v in (start, stop, step))
    if not all(map(math.isfinite, (first, end, by))):
        raise InputError(f"arange: from {first} to {end} in steps of {by}.", "finite numbers")
    if by == 0:
        raise InputError("arange: the step is 0.", "a positive or negative step")
    whole = all(isinstance(v, int) for v in (first, end, by))
    target = as_dtype(dtype) if dtype is not None else (dtypes.default_int if whole else dtypes.default_float)
    count = max(0, -((first - end) // by) if whole else math.ceil((end - first) / by))
    check_size("arange", (count,), target)
    if is_integer(target) and count:
        limits, last = iinfo(target), first + by * (count - 1)
        if not limits.min <= min(first, last) <= max(first, last) <= limits.max:
            raise DTypeError(f"arange: {first} to {last} does not fit into {target}.", "a wider dtype")
    if first == 0 and by == 1:
        return p.iota(size=count, dtype=target)
    if (trace := current().trace) is not None and trace.staged:
        return p.iota(size=count, dtype=target) * asarray(by, dtype=target) + asarray(first, dtype=target)
    if whole and is_integer(target):
        return wrap(np.arange(first, first + by * count, by, dtype=target))
    return wrap((first + by * np.arange(count)).astype(target))


def linspace(
    start: Number | Tensor,
    stop: Number | Tensor,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from start to stop (included unless `endpoint=False`).

    >>> import wonderland as wl
    >>> wl.linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    check_device("linspace", device)
    num = as_int("linspace", "num", num, least=0)
    if isinstance(start, Tensor) or isinstance(stop, Tensor):
        first, last = as_tensor("linspace", start), as_tensor("linspace", stop)
        part = linspace(0, 1, num, endpoint=endpoint, dtype=dtype or dtypes.floating_of(first.dtype))
        return first * (1 - part) + last * part  # derivatives flow through both ends
    if dtype is None:
        ends_complex = isinstance(start, complex) or isinstance(stop, complex)
        target = dtypes.default_complex if ends_complex else dtypes.default_float
    else:
        target = as_dtype(dtype)
    check_size("linspace", (num,), target)
    for end in (start, stop):
        if not isinstance(end, numbers.Number):
            raise InputError(f"linspace: {shown(end)} is not a number.", "two numbers")
    with np.errstate(all="ignore"):
        found = np.linspace(start, stop, num, endpoint=endpoint)  # type: ignore[arg-type]  # numbers, as just seen
        return asarray(found, dtype=target)


def logspace(
    start: Number | Tensor,
    stop: Number | Tensor,
    /,
    num: int,
    *,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Numbers evenly spaced on a logarithmic scale, from base**start to base**stop.

    >>> import wonderland as wl
    >>> wl.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    check_device("logspace", device)
    target = dtypes.default_float if dtype is None else as_dtype(dtype)
    num = as_int("logspace", "num", num, least=0)
    first, last, base = (as_number("logspace", "start, stop or base", v) for v in (start, stop, base))
    check_size("logspace", (num,), target)
    with np.errstate(all="ignore"):
        return asarray(np.logspace(first, last, num, base=base), dtype=target)


def meshgrid(*arrays: ArrayLike, indexing: str = "xy") -> list[Tensor]:
    """A list of coordinate grids from coordinate vectors: out[k] is arrays[k] repeated along all axes but one.

    >>> import wonderland as wl
    >>> x, y = wl.meshgrid(wl.arange(3), wl.arange(2))
    >>> x.shape, y[:, 0]
    ((2, 3), tensor([0, 1]))

    With "xy" (the default) the first two axes are exchanged, as for pictures; with "ij" the axes follow the arguments.
    """
    if indexing not in ("xy", "ij"):
        raise InputError(f"meshgrid: indexing={indexing!r}.", '"xy" or "ij"')
    xs = [as_tensor("meshgrid", a) for a in arrays]
    if any(x.ndim > 1 for x in xs):
        raise ShapeError(f"meshgrid: shapes {[x.shape for x in xs]}.", "vectors")
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[0], places[1] = 1, 0
    sizes = [0] * len(xs)
    for x, place in zip(xs, places, strict=True):
        sizes[place] = x.size
    return [
        broadcast_to(reshape(x, tuple(x.size if i == place else 1 for i in range(len(xs)))), tuple(sizes))
        for x, place in zip(xs, places, strict=True)
    ]


# --- matrices


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Ones on the diagonal number k, zeros elsewhere. Row i is the basis vector e_i. Book, E.2.18.

    >>> import wonderland as wl
    >>> wl.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_device("eye", device)
    target = dtypes.default_float if dtype is None else as_dtype(dtype)
    n_rows = as_int("eye", "n_rows", n_rows)
    n_cols = n_rows if n_cols is None else as_int("eye", "n_cols", n_cols)
    check_size("eye", (n_rows, n_cols), target)
    return wrap(np.eye(n_rows, n_cols, k=diagonal_number("eye", "k", k, n_rows, n_cols), dtype=target))


def tri(
    n_rows: int, n_cols: int | None = None, k: int = 0, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Ones at and below the diagonal number k.

    >>> import wonderland as wl
    >>> wl.tri(2, dtype=wl.int64)
    tensor([[1, 0],
            [1, 1]])
    """
    check_device("tri", device)
    target = dtypes.default_float if dtype is None else as_dtype(dtype)
    n_rows = as_int("tri", "n_rows", n_rows)
    n_cols = n_rows if n_cols is None else as_int("tri", "n_cols", n_cols)
    check_size("tri", (n_rows, max(n_cols, 1)), target)
    return wrap(np.tri(n_rows, n_cols, diagonal_number("tri", "k", k, n_rows, n_cols), dtype=target))


def _triangle(name: str, x: ArrayLike, k: int, lower: bool) -> Tensor:
    x = as_matrices(name, x)
    rows, columns = x.shape[-2:]
    k = diagonal_number(name, "k", k, rows, columns)
    mask = np.tri(rows, columns, k if lower else k - 1, dtype=bool)
    return where(wrap(mask if lower else ~mask), x, zeros_like(x))


def tril(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """The lower triangle of the last two axes, zeros above the diagonal number k.

    >>> import wonderland as wl
    >>> wl.tril(wl.ones((2, 2)))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle("tril", x, k, True)


def triu(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """The upper triangle of the last two axes, zeros below the diagonal number k.

    >>> import wonderland as wl
    >>> wl.triu(wl.ones((2, 2)))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _triangle("triu", x, k, False)


def diag(x: ArrayLike, /, k: int = 0) -> Tensor:
    """The matrix with a vector on diagonal number k, or that diagonal of a matrix (of the last two axes).

    >>> import wonderland as wl
    >>> wl.diag(wl.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = as_tensor("diag", x)
    if x.ndim != 1:
        return diagonal(x, offset=k)
    n = x.shape[0] + max(k, -k)
    check_size("diag", (n, n), x.dtype)
    rows = np.arange(x.shape[0]) + max(0, -k)
    return zeros((n, n), dtype=x.dtype).at[wrap(rows), wrap(rows + k)].set(x)


def one_hot(indices: ArrayLike, /, num_classes: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The rows of the identity at the indices: 1 at the index, 0 elsewhere along a new last axis.

    >>> import wonderland as wl
    >>> wl.one_hot(wl.tensor([0, 2]), 3)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])

    An index out of range raises; as everywhere, -1 is the last class. Book, section 4.2.
    """
    indices = as_tensor("one_hot", indices)
    if not is_integer(indices.dtype):
        raise DTypeError(f"one_hot: the indices are {indices.dtype}.", "integers: x.astype(wl.int64)")
    count = as_int("one_hot", "num_classes", num_classes, least=0)
    target = dtypes.default_float if dtype is None else as_dtype(dtype)
    check_size("one_hot", (*indices.shape, count), target)
    try:
        places = reshape(indices, (*indices.shape, 1))
        return put_along_axis(zeros((*indices.shape, count), dtype=target), places, 1)
    except IndexOutOfRange as error:
        raise IndexOutOfRange(
            f"one_hot: an index of shape {indices.shape} is not among the {count} classes.",
            f"indices from 0 to {count - 1}",
        ) from error
