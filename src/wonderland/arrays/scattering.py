"""Reading and writing along one axis under the names of PyTorch: `gather`, `scatter`, `index_add` and relatives.

Each gives a new tensor. `x.at[...]` and `put_along_axis` are the same under the names of JAX and NumPy.
"""

from __future__ import annotations

from ..core.broadcasting import normalize_axis
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from .conversion import as_tensor, convert_into
from .creation import arange
from .gathering import as_indices, take, take_along_axis
from .indexing import getitem
from .manipulation import broadcast_to, reshape
from .updates import At

__all__ = [
    "gather", "index_add", "index_copy", "index_fill", "index_select", "scatter", "scatter_add", "scatter_reduce",
]  # fmt: skip

REDUCE = {"sum": "add", "prod": "multiply", "amax": "max", "amin": "min"}


def gather(x: ArrayLike, axis: int, index: ArrayLike, /) -> Tensor:
    r"""out[i, j, k] = x[index[i, j, k], j, k] for axis 0, and likewise along any other axis.

    >>> import wonderland as wl
    >>> wl.gather(wl.tensor([[1, 2], [3, 4]]), 1, wl.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])

    `index` has as many axes as x, and the shape of the result; along the other axes it may be shorter than x.
    """
    x, index, place = _checked("gather", x, axis, index)
    return take_along_axis(_corner(x, index, place), index, axis=place)


def scatter(x: ArrayLike, axis: int, index: ArrayLike, src: ArrayLike, /, *, reduce: str | None = None) -> Tensor:
    r"""x with out[index[i, j, k], j, k] = src[i, j, k] for axis 0, and likewise along any other axis.

    >>> import wonderland as wl
    >>> wl.scatter(wl.zeros((2, 3)), 1, wl.tensor([[2], [0]]), wl.tensor([[5.0], [6.0]]))
    tensor([[0., 0., 5.],
            [6., 0., 0.]])

    `src` is a number, or a tensor at least as large as `index` along every axis. With `reduce="add"` or "multiply" the
    values are added to what is there, or multiplied with it; without, of several values for one place the last stays.
    """
    if reduce not in (None, "add", "multiply"):
        raise InputError(f"scatter: reduce={reduce!r}.", 'None, "add" or "multiply"; wl.scatter_reduce for others')
    return _scattered("scatter", x, axis, index, src, reduce or "set")


def scatter_add(x: ArrayLike, axis: int, index: ArrayLike, src: ArrayLike, /) -> Tensor:
    """x with src[i, j, k] added at the place [index[i, j, k], j, k] for axis 0, and likewise along any other axis.

    >>> import wonderland as wl
    >>> wl.scatter_add(wl.zeros(3), 0, wl.tensor([0, 2, 0]), wl.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    return _scattered("scatter_add", x, axis, index, src, "add")


def scatter_reduce(x: ArrayLike, axis: int, index: ArrayLike, src: ArrayLike, /, reduce: str) -> Tensor:
    """x combined with src at the places of `index`: `reduce` is "sum", "prod", "amax" or "amin".

    >>> import wonderland as wl
    >>> wl.scatter_reduce(wl.ones(2), 0, wl.tensor([0, 0]), wl.tensor([5.0, 3.0]), "amax")
    tensor([5., 1.])
    """
    if reduce not in REDUCE:
        raise InputError(f"scatter_reduce: reduce={reduce!r}.", " or ".join(map(repr, REDUCE)))
    return _scattered("scatter_reduce", x, axis, index, src, REDUCE[reduce])


def index_select(x: ArrayLike, axis: int, index: ArrayLike, /) -> Tensor:
    """The slices of x at the positions of a vector along an axis, as `take`.

    >>> import wonderland as wl
    >>> wl.index_select(wl.tensor([[1, 2], [3, 4]]), 1, wl.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    return take(x, _vector("index_select", index), axis=axis)


def index_add(x: ArrayLike, axis: int, index: ArrayLike, source: ArrayLike, /, *, alpha: ArrayLike = 1) -> Tensor:
    """x with alpha times the slices of `source` added at the positions of a vector along an axis.

    >>> import wonderland as wl
    >>> wl.index_add(wl.zeros((3, 2)), 0, wl.tensor([2, 2]), wl.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[0., 0.],
            [0., 0.],
            [4., 6.]])
    """
    source = as_tensor("index_add", source)
    return _at_slices("index_add", x, axis, index, source if alpha == 1 else source * alpha, "add")


def index_copy(x: ArrayLike, axis: int, index: ArrayLike, source: ArrayLike, /) -> Tensor:
    """x with the slices of `source` in place of those at the positions of a vector along an axis.

    >>> import wonderland as wl
    >>> wl.index_copy(wl.zeros(3), 0, wl.tensor([2, 0]), wl.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """
    return _at_slices("index_copy", x, axis, index, as_tensor("index_copy", source), "set")


def index_fill(x: ArrayLike, axis: int, index: ArrayLike, value: ArrayLike, /) -> Tensor:
    """x with a number in all slices at the positions of a vector along an axis.

    >>> import wonderland as wl
    >>> wl.index_fill(wl.zeros((2, 3)), 1, wl.tensor([0, 2]), 1.0)
    tensor([[1., 0., 1.],
            [1., 0., 1.]])
    """
    x, vector = as_tensor("index_fill", x), _vector("index_fill", index)
    place = normalize_axis("index_fill", axis, x.ndim)
    return At(x)[(slice(None),) * place + (vector,)].set(value)


def _checked(name: str, x: ArrayLike, axis: int, index: ArrayLike) -> tuple[Tensor, Tensor, int]:
    x, index = as_tensor(name, x), as_indices(name, index)
    place = normalize_axis(name, axis, x.ndim)
    others = [i for i in range(x.ndim) if i != place]
    if index.ndim != x.ndim or any(index.shape[i] > x.shape[i] for i in others):
        raise ShapeError(
            f"{name}: an index of shape {index.shape} for a tensor of shape {x.shape}.",
            f"as many axes, and along those other than {place} no more places than there are",
        )
    return x, index, place


def _corner(x: Tensor, index: Tensor, place: int) -> Tensor:
    """The part of x that has the index's extent along all axes but one."""
    return getitem(x, tuple(slice(None) if i == place else slice(n) for i, n in enumerate(index.shape)))


def _scattered(name: str, x: ArrayLike, axis: int, index: ArrayLike, src: ArrayLike, mode: str) -> Tensor:
    x, index, place = _checked(name, x, axis, index)
    values = convert_into(name, src, x.dtype)
    if values.ndim:
        if values.ndim != x.ndim or any(n > m for n, m in zip(index.shape, values.shape, strict=True)):
            raise ShapeError(
                f"{name}: values of shape {values.shape} for an index of shape {index.shape}.",
                "a number, or values at least as large as the index along every axis",
            )
        values = getitem(values, tuple(map(slice, index.shape)))
    grid = tuple(
        index if i == place else reshape(arange(n), tuple(n if j == i else 1 for j in range(x.ndim)))
        for i, n in enumerate(index.shape)
    )
    return getattr(At(x)[grid], mode)(broadcast_to(values, index.shape))


def _vector(name: str, index: ArrayLike) -> Tensor:
    vector = as_indices(name, index)
    if vector.ndim > 1:
        raise ShapeError(f"{name}: an index of shape {vector.shape}.", "a vector of positions")
    return reshape(vector, (vector.size,))


def _at_slices(name: str, x: ArrayLike, axis: int, index: ArrayLike, source: Tensor, mode: str) -> Tensor:
    x, vector = as_tensor(name, x), _vector(name, index)
    place = normalize_axis(name, axis, x.ndim)
    wanted = (*x.shape[:place], vector.size, *x.shape[place + 1 :])
    if source.shape != wanted:
        raise ShapeError(f"{name}: a source of shape {source.shape}.", f"the shape {wanted}, one slice per position")
    at = At(x)[(slice(None),) * place + (vector,)]
    return getattr(at, mode)(source)
