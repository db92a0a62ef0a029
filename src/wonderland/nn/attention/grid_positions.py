"""Relative positions on a grid: a bias for the distance of two patches in rows and in columns. Book, 10.2.3, 11.2.4."""

from __future__ import annotations

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import DTypeLike
from ..module.parameter import Held, Parameter
from .relative_positions import ScoreBias

__all__ = ["GridBias"]


class GridBias(ScoreBias):
    r"""\(B_{ij} = b_{\Delta r, \Delta c}\), a trained number for each offset in rows and columns, and head.

    >>> import wonderland as wl
    >>> bias = wl.nn.GridBias(heads=4, rows=3, columns=5, first=1)
    >>> bias(wl.arange(16), wl.arange(16)).shape, bias.weight.shape
    ((4, 16, 16), (4, 46))

    Tokens are the patches of an image, row by row, from the place `first` on. Tokens at other places (class tokens,
    registers) are nowhere: pairs with one of them share one number. There are ((2 rows - 1)(2 columns - 1) + 1) numbers
    for each head, which start from 0. Book, section 10.2.3 (relative positions), for images.
    """

    weight: Held[Parameter]

    def __init__(self, heads: int, rows: int, columns: int, first: int = 0, dtype: DTypeLike | None = None) -> None:
        self.heads, self.first = as_int("GridBias", "heads", heads, 1), as_int("GridBias", "first", first, 0)
        self.rows, self.columns = as_int("GridBias", "rows", rows, 1), as_int("GridBias", "columns", columns, 1)
        self.offsets = (2 * self.rows - 1) * (2 * self.columns - 1)
        kind = dtypes.default_float if dtype is None else dtype
        self.weight = Parameter(arrays.zeros((self.heads, self.offsets + 1), dtype=kind))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        i, j = arrays.expand_dims(queries - self.first, -1), arrays.expand_dims(keys - self.first, -2)
        n = self.rows * self.columns
        on_grid = (i >= 0) & (i < n) & (j >= 0) & (j < n)  # (..., t, s)
        down = j // self.columns - i // self.columns + self.rows - 1
        right = j % self.columns - i % self.columns + self.columns - 1
        index = arrays.where(on_grid, down * (2 * self.columns - 1) + right, self.offsets)
        return arrays.moveaxis(arrays.take(self.weight, index, axis=1), 0, -3)  # (..., heads, t, s)

    def extra_repr(self) -> str:
        return ", ".join([f"{self.heads}, {self.rows}, {self.columns}", *self._changed(first=0)])
