"""Where the nonzeros of a matrix are: which entries lie in each row, and in each column. Book, section 12.1.2.

A pattern is made once, from plain integers, and then used for any values: it holds the entries by rows and by columns,
so that a product with the matrix and one with its transpose both read memory in lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..arrays.conversion import as_tensor
from ..core.errors import DTypeError, IndexOutOfRange, InputError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, ArrayLike

STATIC = {"static": True}


@dataclass(frozen=True)
class Incidence:
    r"""Which of m entries belong to each line: to a row or a column of a matrix, to a node or a graph of a batch.

    The entries of line \(i\) are `order[ptr[i]:ptr[i + 1]]`. It is a tree of integer tensors, so it may be an argument
    of compiled functions. Book, section 12.2.4 (the batch vector).

    >>> import wonderland as wl
    >>> lines = wl.sparse.Incidence.of([0, 2, 0, 0], 3)
    >>> lines.ptr, lines.order
    (tensor([0, 3, 3, 4], dtype=int32), tensor([0, 2, 3, 1], dtype=int32))
    """

    ptr: Tensor  # (lines + 1,) where each line begins
    owner: Tensor  # (m,) the line of entry e
    order: Tensor  # (m,) the entries, line by line
    other: Tensor  # (m,) of entry order[k], the place along the other axis
    sorted: bool = field(metadata=STATIC)  # order is 0, 1, 2, .. and need not be read

    @classmethod
    def of(cls, ids: ArrayLike, lines: int | None = None) -> Incidence:
        """From the line of every entry, as the graph of every node of a batch; `other` counts the entries.

        Without `lines` there are as many as the largest id asks for.
        """
        owner = _integers("Incidence.of", "ids", ids)
        if lines is None:
            lines = int(owner.max()) + 1 if owner.size else 0
        lines = _size("Incidence.of", lines)
        _check_range("Incidence.of", "ids", owner, lines)
        kind = _kind(len(owner), lines)
        return _incidence(owner, np.arange(len(owner), dtype=kind), lines, kind)

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return self.ptr.shape[0] - 1

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return self.owner.shape[0]

    @property
    def counts(self) -> Tensor:
        """How many entries each line has, (lines,)."""
        return self.ptr[1:] - self.ptr[:-1]


@dataclass(frozen=True)
class Pattern:
    r"""The places of the nonzeros of an (n, s) matrix, in an order of their own: entry \(e\) is \((i_e, j_e)\).

    Values and features of edges keep to that order. `rows` has the entries by their rows \(i\) (of a graph: the nodes
    that read), `cols` by their columns \(j\). Entries at one place add. Book, sections 12.1.2 and 12.2.4.

    >>> import wonderland as wl
    >>> pattern = wl.sparse.Pattern.of([0, 2], [2, 0], (3, 3))
    >>> wl.sparse.matmul(wl.tensor([1.0, 5.0]), pattern, wl.tensor([1.0, 10.0, 100.0]))
    tensor([100.,   0.,   5.])
    """

    rows: Incidence
    cols: Incidence
    shape: tuple[int, int] = field(metadata=STATIC)

    @classmethod
    def of(cls, rows: ArrayLike, cols: ArrayLike, shape: tuple[int, int]) -> Pattern:
        """From the row and the column of every entry.

        >>> import wonderland as wl
        >>> wl.sparse.Pattern.of([0, 1, 1], [1, 1, 0], (3, 2))
        Pattern(shape=(3, 2), nnz=3)
        """
        name = "Pattern.of"
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise ShapeError(f"{name}: shape={shape!r}.", "two sizes, as (3, 3)")
        first, second = _integers(name, "rows", rows), _integers(name, "columns", cols)
        if first.shape != second.shape:
            raise ShapeError(f"{name}: {len(first)} rows and {len(second)} columns.", "one of each for every entry")
        n, s = _size(name, shape[0]), _size(name, shape[1])
        _check_range(name, "rows", first, n)
        _check_range(name, "columns", second, s)
        kind = _kind(len(first), n, s)
        lines = _incidence(first, second, n, kind)
        # of the two at most one counts as in order, so that compiled functions meet few kinds of patterns
        return cls(lines, _incidence(second, first, s, kind, mixed=lines.sorted), (n, s))

    @property
    def nnz(self) -> int:
        """How many entries there are."""
        return self.rows.entries

    @property
    def T(self) -> Pattern:  # noqa: N802 - as NumPy names it
        """The pattern of the transpose: nothing is computed."""
        return Pattern(self.cols, self.rows, (self.shape[1], self.shape[0]))

    def transpose(self) -> Pattern:
        """The pattern of the transpose, as `T`."""
        return self.T

    def __repr__(self) -> str:
        return f"Pattern(shape={self.shape}, nnz={self.nnz})"


def _incidence(owner: Array, other: Array, lines: int, kind: type[np.signedinteger], mixed: bool = False) -> Incidence:
    in_order = not mixed and bool(np.all(owner[1:] >= owner[:-1]))
    order = np.arange(len(owner)) if in_order else np.argsort(owner, kind="stable")
    ptr = np.zeros(lines + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=lines), out=ptr[1:])
    starts, own, places, across = (
        wrap(np.array(a, kind)) for a in (ptr, owner, order, other if in_order else other[order])
    )
    return Incidence(starts, own, places, across, in_order)


def _kind(*sizes: int) -> type[np.signedinteger]:
    """Half as many bytes are read where they hold all indices."""
    return np.int32 if max(sizes) <= np.iinfo(np.int32).max else np.int64


def _size(name: str, size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise InputError(f"{name}: a size is {size!r}.", "a whole number, 0 or more")
    return int(size)


def _integers(name: str, what: str, x: ArrayLike) -> Array:
    if isinstance(x, (list, tuple)):
        x = np.array(x) if len(x) else np.zeros(0, np.int64)
    found = as_tensor(name, x)._concrete("indices of a pattern")
    if found.dtype.kind not in "iu":
        raise DTypeError(f"{name}: {what} are {found.dtype}.", "integers")
    if found.ndim != 1:
        raise ShapeError(f"{name}: {what} have shape {found.shape}.", "one axis, with an index for every entry")
    return found.astype(np.int64, copy=False)


def _check_range(name: str, what: str, index: Array, size: int) -> None:
    bad = np.flatnonzero((index < 0) | (index >= size))
    if len(bad):
        shown = ", ".join(f"entry {e} is {index[e]}" for e in bad[:3])
        more = ", .." if len(bad) > 3 else ""
        verb = "is" if len(bad) == 1 else "are"
        raise IndexOutOfRange(
            f"{name}: of {len(index)} {what}, {len(bad)} {verb} out of range for size {size}: {shown}{more}.",
            f"{what} from 0 to {size - 1}" if size else f"a matrix with {what}",
        )
