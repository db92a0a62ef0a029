"""Rows of a table by their numbers."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_tensor, for_products
from ...core.dtypes import is_integer
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike

__all__ = ["embedding"]


def embedding(
    input: ArrayLike, weight: ArrayLike, padding_idx: int | None = None, max_norm: float | None = None
) -> Tensor:
    r"""\(W_{i}\): the rows of a table (rows, size) at integers (...), as (..., size). Book, section 8.2.2.

    >>> import wonderland as wl
    >>> wl.nn.functional.embedding(wl.tensor([2, 0]), wl.eye(3))
    tensor([[0., 0., 1.],
            [1., 0., 0.]])

    The row `padding_idx` gets no gradient. Rows longer than `max_norm` are shortened to it, by factors that count as
    constants for the gradient; the table stays as it is. Numbers outside 0, ..., rows - 1 raise.
    """
    index, table = as_tensor("embedding", input), as_tensor("embedding", weight)
    if table.ndim != 2:
        raise ShapeError(f"embedding: a table of shape {table.shape}.", "a table of shape (rows, size)")
    if not is_integer(index.dtype):
        raise DTypeError(f"embedding: rows are chosen by integers, received {index.dtype}.", "x.astype(wl.int64)")
    (rows,) = for_products(arrays.take(table, counted_from_zero(index, table.shape[0]), axis=0))
    if max_norm is not None:
        if not max_norm > 0:
            raise InputError(f"embedding: max_norm={max_norm}.", "a length above 0")
        length = arrays.norm(arrays.stop_gradient(rows), axis=-1, keepdims=True)
        rows = rows * (max_norm / arrays.maximum(length, max_norm))
    if padding_idx is None:
        return rows
    if not -table.shape[0] <= padding_idx < table.shape[0]:
        raise InputError(f"embedding: padding_idx={padding_idx} in a table of {table.shape[0]} rows.", "a row")
    padding = (index == padding_idx % table.shape[0])[..., None]
    return arrays.where(padding, arrays.stop_gradient(rows), rows)


def counted_from_zero(index: Tensor, size: int) -> Tensor:
    """Numbers of rows or classes as indices for `take`, to which a negative one is out of range, too.

    >>> import wonderland as wl
    >>> counted_from_zero(wl.tensor([0, -1]), 3)
    tensor([0, 3])
    """
    return arrays.where(index < 0, size, index)
