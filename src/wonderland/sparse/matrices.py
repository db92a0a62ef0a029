"""Sparse matrices as values: entries with a pattern, in the coordinate form and by compressed rows.

Everything is linear algebra on the entries, so it is differentiable with respect to them. What decides where entries
are (a product of two sparse matrices, a sum, `coalesce`) needs the pattern as plain numbers; under `jit` it may come
from outside, or be an argument where only values are computed with it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Protocol, Self, overload

import numpy as np

from ..arrays.conversion import as_tensor, promote
from ..arrays.creation import asarray, zeros
from ..arrays.joining import concatenate
from ..arrays.logic import where
from ..core.dtypes import DType
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike
from .joining import pairs_of_product, unique_places
from .patterns import Pattern
from .products import matmul
from .segments import gather, segment_sum

Number = float | int | complex


class SciPyMatrix(Protocol):
    """What is asked of a sparse matrix of SciPy, in coordinate form where the last three are."""

    shape: tuple[int, ...]
    data: Array
    row: Array
    col: Array

    def tocoo(self) -> SciPyMatrix: ...
    def tocsr(self) -> SciPyMatrix: ...
    def toarray(self) -> Array: ...


@dataclass(frozen=True)
class Sparse:
    """What both forms of a sparse matrix have in common: entries `data` (m,) at the places of a `pattern`."""

    data: Tensor
    pattern: Pattern

    __array_ufunc__ = None  # NumPy's operators leave the work to ours

    # --- what it is

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        """How many entries are stored."""
        return self.pattern.nnz

    @property
    def dtype(self) -> DType:
        """The type of the entries."""
        return self.data.dtype

    @property
    def rows(self) -> Tensor:
        """The row of every entry, (m,)."""
        return self.pattern.rows.owner

    @property
    def cols(self) -> Tensor:
        """The column of every entry, (m,)."""
        return self.pattern.cols.owner

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, nnz={self.nnz}, dtype={self.dtype})"

    # --- other forms

    def todense(self) -> Tensor:
        """The matrix with its zeros, (n, s); entries at one place add."""
        return zeros(self.shape, dtype=self.dtype).at[self.rows, self.cols].add(self.data)

    def to_scipy(self) -> SciPyMatrix:
        """The matrix as SciPy has it, in the same form."""
        made: SciPyMatrix = _scipy().coo_array(
            (np.asarray(self.data), (np.asarray(self.rows), np.asarray(self.cols))), self.shape
        )
        return made.tocsr() if isinstance(self, CSR) else made

    def tocoo(self) -> COO:
        """The same entries in coordinate form."""
        return COO(self.data, self.pattern)

    def coalesce(self) -> CSR:
        """Row by row, columns rising, each place once: entries at one place are added.

        >>> import wonderland as wl
        >>> wl.sparse.COO.of([1, 0, 1], [0, 1, 0], wl.tensor([1.0, 2.0, 3.0]), (2, 2)).coalesce().data
        tensor([2., 4.])
        """
        rows, cols = self._places("coalesce")
        lines, pattern = unique_places(rows, cols, self.shape)
        return CSR(segment_sum(self.data, lines), pattern)

    def tocsr(self) -> CSR:
        """By compressed rows, as `coalesce`."""
        return self.coalesce()

    def _places(self, name: str) -> tuple[Array, Array]:
        what = f"the places of a pattern, for {name}"
        return self.rows._concrete(what), self.cols._concrete(what)

    def with_data(self, data: ArrayLike) -> Self:
        """Other entries at the same places."""
        data = as_tensor("with_data", data)
        if data.shape != (self.nnz,):
            raise ShapeError(f"with_data: data of shape {data.shape} for {self.nnz} entries.", "a value for each entry")
        return replace(self, data=data)

    def astype(self, dtype: DType) -> Self:
        """The entries in another type."""
        return replace(self, data=self.data.astype(dtype))

    # --- algebra

    @property
    def T(self) -> COO:  # noqa: N802 - as NumPy names it
        """The transpose; nothing is computed."""
        return COO(self.data, self.pattern.T)

    def transpose(self) -> COO:
        """The transpose, as `T`."""
        return self.T

    @overload
    def __matmul__(self, other: Sparse) -> CSR: ...
    @overload
    def __matmul__(self, other: ArrayLike) -> Tensor: ...
    def __matmul__(self, other: ArrayLike | Sparse) -> Tensor | CSR:
        if isinstance(other, Sparse):
            return self._times(other)
        x = as_tensor("sparse matmul", other)
        if not x.ndim or x.shape[0] != self.shape[1]:
            raise ShapeError(
                f"matmul: shapes {self.shape} and {x.shape} do not fit: the inner sizes differ.",
                f"an operand of shape ({self.shape[1]}, ...)",
            )
        return matmul(self.data, self.pattern, x)

    def __rmatmul__(self, other: ArrayLike) -> Tensor:
        x = as_tensor("sparse matmul", other)
        if x.ndim not in (1, 2) or x.shape[-1] != self.shape[0]:
            raise ShapeError(
                f"matmul: shapes {x.shape} and {self.shape} do not fit.", f"an operand of shape (..., {self.shape[0]})"
            )
        found = matmul(self.data, self.pattern.T, x.T if x.ndim == 2 else x)
        return found.T if x.ndim == 2 else found

    def _times(self, other: Sparse) -> CSR:
        """Sparse times sparse: every pair of entries that meet adds to a place of the result."""
        if self.shape[1] != other.shape[0]:
            raise ShapeError(
                f"matmul: shapes {self.shape} and {other.shape} do not fit: the inner sizes differ.",
                "matrices whose inner sizes agree",
            )
        left, right, place, pattern = pairs_of_product(
            self._places("A @ B"), other._places("A @ B"), (self.shape[0], *other.shape), self.nnz, other.nnz
        )
        a, b = promote("sparse matmul", self.data, other.data)
        return CSR(segment_sum(gather(a, left) * gather(b, right), place), pattern)

    def _plus(self, other: Sparse, sign: int) -> CSR:
        if self.shape != other.shape:
            raise ShapeError(f"add: shapes {self.shape} and {other.shape} differ.", "matrices of one shape")
        a, b = promote("sparse add", self.data, other.data)
        mine, others = self._places("A + B"), other._places("A + B")
        rows, cols = (np.concatenate([x, y]) for x, y in zip(mine, others, strict=True))
        return COO(concatenate([a, sign * b]), Pattern.of(rows, cols, self.shape)).coalesce()

    def __add__(self, other: Sparse) -> CSR:
        return self._plus(other, 1) if isinstance(other, Sparse) else NotImplemented

    def __sub__(self, other: Sparse) -> CSR:
        return self._plus(other, -1) if isinstance(other, Sparse) else NotImplemented

    def __neg__(self) -> Self:
        return replace(self, data=-self.data)

    def __mul__(self, factor: Number | Tensor) -> Self:
        return replace(self, data=self.data * self._number("*", factor))

    __rmul__ = __mul__

    def __truediv__(self, factor: Number | Tensor) -> Self:
        return replace(self, data=self.data / self._number("/", factor))

    def _number(self, sign: str, factor: Number | Tensor) -> Number | Tensor:
        if isinstance(factor, Sparse) or (np.ndim(factor) if not isinstance(factor, Tensor) else factor.ndim):
            raise DTypeError(
                f"sparse matrix {sign} {type(factor).__name__}: only a single number keeps the pattern.",
                "A.scale(rows, cols) for factors of rows and columns, A @ x for products",
            )
        return factor

    def scale(self, rows: ArrayLike | None = None, cols: ArrayLike | None = None) -> Self:
        r"""\(r_i A_{ij} c_j\): factors for rows (n,) and for columns (s,), as a normalisation by degrees has them."""
        data = self.data
        if rows is not None:
            data = data * gather(rows, self.pattern.rows)
        if cols is not None:
            data = data * gather(cols, self.pattern.cols)
        return replace(self, data=data)

    def sum(self, axis: int | None = None) -> Tensor:
        """The sum of all entries, of those of each column (axis 0) or of each row (axis 1)."""
        if axis is None:
            return self.data.sum()
        if axis not in (0, 1, -1, -2):
            raise InputError(f"sum: axis={axis!r} of a matrix.", "0, 1 or None")
        return segment_sum(self.data, self.pattern.cols if axis in (0, -2) else self.pattern.rows)

    def diagonal(self) -> Tensor:
        """The entries (i, i), with 0 where there is none, (min(n, s),)."""
        on = where(self.rows == self.cols, self.data, 0)
        return segment_sum(on, self.pattern.rows)[: min(self.shape)]


@dataclass(frozen=True, repr=False)
class COO(Sparse):
    """A sparse matrix in coordinate form: entries in any order, several at one place add. Book, section 12.2.4.

    >>> import wonderland as wl
    >>> a = wl.sparse.COO.of([0, 2], [2, 0], wl.tensor([1.0, 5.0]), (3, 3))
    >>> a @ wl.tensor([1.0, 10.0, 100.0])
    tensor([100.,   0.,   5.])
    >>> wl.grad(lambda v: (a.with_data(v) @ wl.ones(3)).sum())(a.data)
    tensor([1., 1.])
    """

    @classmethod
    def of(cls, rows: ArrayLike, cols: ArrayLike, data: ArrayLike | None, shape: tuple[int, int]) -> COO:
        """From rows, columns and values of the entries; `data=None` are ones."""
        return cls(*_made("COO.of", Pattern.of(rows, cols, shape), data))

    @classmethod
    def from_dense(cls, x: ArrayLike) -> COO:
        """The entries of a matrix that are not 0."""
        return CSR.from_dense(x).tocoo()

    @classmethod
    def from_scipy(cls, a: SciPyMatrix) -> COO:
        """From a sparse matrix of SciPy, in any form."""
        found = a.tocoo()
        return cls.of(found.row, found.col, found.data, _two(found.shape))


@dataclass(frozen=True, repr=False)
class CSR(Sparse):
    """A sparse matrix by compressed rows: row by row, columns rising, each place once. Book, section 12.1.2.

    >>> import wonderland as wl
    >>> a = wl.sparse.CSR.of([0, 1, 1, 3], [2, 0, 1], wl.tensor([1.0, 2.0, 3.0]), (3, 3))
    >>> (a @ a).todense()
    tensor([[2., 3., 0.],
            [0., 0., 0.],
            [0., 0., 2.]])
    """

    @classmethod
    def of(cls, ptr: ArrayLike, indices: ArrayLike, data: ArrayLike | None, shape: tuple[int, int]) -> CSR:
        """From where each row begins, (n + 1,), the columns of the entries, and their values (None: ones)."""
        name = "CSR.of"
        starts, columns = (np.asarray(x) for x in (ptr, indices))
        if starts.ndim != 1 or starts.dtype.kind not in "iu" or len(starts) != shape[0] + 1:
            raise ShapeError(
                f"{name}: ptr of shape {starts.shape} and type {starts.dtype} for {shape[0]} rows.",
                f"{shape[0] + 1} integers, from 0 to the number of entries",
            )
        counts = starts[1:].astype(np.int64) - starts[:-1].astype(np.int64)
        falls = np.flatnonzero(counts < 0)
        if len(falls) or starts[0] != 0 or starts[-1] != len(columns):
            found = f"it falls after row {falls[0]}" if len(falls) else f"it goes from {starts[0]} to {starts[-1]}"
            raise InputError(
                f"{name}: ptr is no list of rows of {len(columns)} entries: {found}.", f"0, .., {len(columns)}, rising"
            )
        rows = np.repeat(np.arange(shape[0]), counts)
        return COO(*_made(name, Pattern.of(rows, columns, shape), data)).coalesce()

    @classmethod
    def from_dense(cls, x: ArrayLike) -> CSR:
        """The entries of a matrix that are not 0. Their values are differentiable, their places are not."""
        x = as_tensor("CSR.from_dense", x)
        if x.ndim != 2:
            raise ShapeError(f"CSR.from_dense: a tensor of shape {x.shape}.", "a matrix (n, s)")
        rows, cols = np.nonzero(x._concrete("the places of its nonzeros"))
        return cls(x[asarray(rows), asarray(cols)], Pattern.of(rows, cols, _two(x.shape)))

    @classmethod
    def from_scipy(cls, a: SciPyMatrix) -> CSR:
        """From a sparse matrix of SciPy, in any form."""
        return COO.from_scipy(a).coalesce()

    @property
    def ptr(self) -> Tensor:
        """Where the entries of each row begin, (n + 1,)."""
        return self.pattern.rows.ptr

    @property
    def indices(self) -> Tensor:
        """The columns of the entries, (m,)."""
        return self.cols

    def tocsr(self) -> CSR:
        """The matrix itself."""
        return self


def _made(name: str, pattern: Pattern, data: ArrayLike | None) -> tuple[Tensor, Pattern]:
    values = asarray(np.ones(pattern.nnz, np.float32)) if data is None else asarray(data)
    if values.shape != (pattern.nnz,):
        raise ShapeError(f"{name}: data of shape {values.shape} for {pattern.nnz} entries.", "a value for each entry")
    return values, pattern


def _scipy() -> ModuleType:
    try:
        return importlib.import_module("scipy.sparse")
    except ImportError:
        raise InputError("to_scipy: scipy is not installed.", "pip install scipy") from None


def _two(shape: tuple[int, ...]) -> tuple[int, int]:
    return int(shape[0]), int(shape[1])
