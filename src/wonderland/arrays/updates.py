"""Functional updates: `x.at[index].set(v)` and relatives give changed copies of x. Book, section 2.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

import numpy as np

from ..core.broadcasting import broadcasts_to
from ..core.context import current
from ..core.dtypes import bool_, is_half
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike, Index
from ..primitives import indexing as p
from ..primitives import structure as ps
from ..primitives.creation import check_size
from .arithmetic import add, divide, maximum, minimum, multiply, negative, reciprocal
from .conversion import convert_into
from .indexing import Plan, getitem, make_plan, plain_entries
from .logic import where
from .manipulation import broadcast_to

__all__: list[str] = []

_COMBINE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"multiply": multiply, "min": minimum, "max": maximum}


class At:
    """`x.at[index]`: copies of x with the indexed elements changed. Any index of NumPy's works.

    >>> import wonderland as wl
    >>> wl.zeros(3).at[1:].set(5.0)
    tensor([0., 5., 5.])
    >>> wl.zeros(3).at[wl.tensor([0, 0, 2])].add(1.0)
    tensor([2., 0., 1.])

    Where an index occurs several times, add, subtract, multiply, divide, min and max take all values into
    account; of several values set, the last one stays and it alone receives a derivative. `values` broadcast
    to the shape of x[index] and are converted to the dtype of x.

    An index out of range is an error. With `mode="drop"`, `set` and `add` leave out what belongs there, as padding:

    >>> wl.zeros(3).at[wl.tensor([1, 2, 3])].set(5.0, mode="drop")
    tensor([0., 5., 5.])
    """

    def __init__(self, x: Tensor, index: tuple[Index] | None = None) -> None:
        self._x = x
        self._index = index  # in a tuple of its own, since None is an index

    def __getitem__(self, index: Index) -> At:
        return At(self._x, (index,))

    def __repr__(self) -> str:
        return f"{self._x!r}.at" + ("" if self._index is None else f"[{self._index[0]!r}]")

    def get(self) -> Tensor:
        """x[index]."""
        return getitem(self._x, self._where())

    def set(self, values: ArrayLike, *, mode: str | None = None) -> Tensor:
        """The elements replaced by `values`."""
        return self._update(values, "set", self._drops(mode))

    def add(self, values: ArrayLike, *, mode: str | None = None) -> Tensor:
        """`values` added to the elements."""
        return self._update(values, "add", self._drops(mode))

    def subtract(self, values: ArrayLike) -> Tensor:
        """`values` subtracted from the elements."""
        return self._update(negative(convert_into("at", values, self._x.dtype)), "add")

    def multiply(self, values: ArrayLike) -> Tensor:
        """The elements multiplied by `values`."""
        return self._update(values, "multiply")

    mul = multiply

    def divide(self, values: ArrayLike) -> Tensor:
        """The elements divided by `values`."""
        x, plan = self._x, make_plan(self._x.shape, self._where())
        values = convert_into("at", values, x.dtype)
        if plan.indices:
            return self._update(reciprocal(values), "multiply")
        return self.set(divide(self.get(), values))

    def min(self, values: ArrayLike) -> Tensor:
        """The smaller of element and value."""
        return self._update(values, "min")

    def max(self, values: ArrayLike) -> Tensor:
        """The larger of element and value."""
        return self._update(values, "max")

    def apply(self, f: Callable[[Tensor], ArrayLike]) -> Tensor:
        """The elements replaced by f of them."""
        return self.set(f(self.get()))

    def _where(self) -> Index:
        if self._index is None:
            raise InputError("at: an index is missing.", "x.at[index].set(values)")
        return self._index[0]

    def _drops(self, mode: str | None) -> bool:
        if mode not in (None, "drop"):
            raise InputError(f"at: mode={mode!r}.", 'None, or "drop" to leave out what is out of range')
        return mode == "drop"

    def _update(self, values: ArrayLike, mode: str, drop: bool = False) -> Tensor:
        x, index = self._x, self._where()
        values = convert_into("at", values, x.dtype)
        done = None if drop else _update_plain(x, values, index, mode)
        if done is not None:
            return done
        if _is_mask(index, x) and values.ndim == 0:
            return _update_masked(x, values, index, mode)
        plan = make_plan(x.shape, index)
        if not plan.indices:
            if mode in _COMBINE:  # every element occurs once
                values, mode = _COMBINE[mode](self.get(), values), "set"
            return _update_slice(x, values, plan, mode)
        if not plan.sliced and plan.shape == x.shape:
            return _update_block(x, values, plan, mode, drop)
        if drop:
            raise InputError(
                "at: slices that leave something out, or new axes, beside indices whose excess is dropped.",
                "indices for these axes, too: wl.arange(2, 5)[:, None] in place of 2:5",
            )
        # slices and indices together: the flat positions of the elements, then a scatter into the flattened tensor
        positions = getitem(wrap(np.arange(x.size).reshape(x.shape)), index)
        block = _fill(values, positions.shape)
        flat = ps.reshape(x, shape=(x.size,))
        done = p.scatter(
            flat,
            ps.reshape(block, shape=(block.size,)),
            ps.reshape(positions, shape=(block.size,)),
            axes=(0,),
            mode=mode,
        )
        return ps.reshape(done, shape=x.shape)


def _update_plain(x: Tensor, values: Tensor, index: Index, mode: str) -> Tensor | None:
    """NumPy's own assignment into a copy, where there is nothing to trace or to explain; else None."""
    if not current().plain or any(type(v) is not Tensor or v._node is not None for v in (x, values)):
        return None
    check_size("at", x.shape, x.dtype)  # of the copy, should x be a broadcast view
    entries = plain_entries(index, x._data.nbytes)
    if entries is None or (mode == "add" and is_half(x.dtype)):  # those sums are wider
        return None
    out = np.array(x._data)
    try:
        if mode == "set":
            out[entries] = values._data
        else:
            p.COMBINE[mode].at(out, entries, values._data)
    except (IndexError, TypeError, ValueError):
        return None
    return wrap(out)


def _is_mask(index: Index, x: Tensor) -> TypeGuard[Tensor]:
    return (
        isinstance(index, Tensor) and index.dtype == bool_ and index.ndim > 0 and index.shape == x.shape[: index.ndim]
    )


def _update_masked(x: Tensor, value: Tensor, mask: Tensor, mode: str) -> Tensor:
    """One value wherever a mask is true: a choice, so that the mask may be traced."""
    chosen = ps.reshape(mask, shape=mask.shape + (1,) * (x.ndim - mask.ndim))
    return where(chosen, value if mode == "set" else (add if mode == "add" else _COMBINE[mode])(x, value), x)


def _fill(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The values broadcast to the indexed elements; as in NumPy, leading axes of size 1 may be too many."""
    extra = values.ndim - len(shape)
    if extra > 0 and values.shape[:extra] == (1,) * extra:
        values = ps.reshape(values, shape=values.shape[extra:])
    if not broadcasts_to(values.shape, shape):
        raise ShapeError(
            f"at: values of shape {values.shape} do not fill the indexed elements of shape {shape}.",
            "values that broadcast to x[index]",
        )
    return broadcast_to(values, shape)


def _update_slice(x: Tensor, values: Tensor, plan: Plan, mode: str) -> Tensor:
    """Set or add where no index occurs twice: the values among zeros, and a choice or a sum."""
    lengths = ps.slice_lengths(x.shape, plan.slices)
    placed = ps.place(ps.reshape(_fill(values, plan.shape), shape=lengths), shape=x.shape, index=plan.slices)
    if mode == "add":
        return x + placed
    inside = ps.place(wrap(np.ones(lengths, bool)), shape=x.shape, index=plan.slices)
    return where(inside, placed, x)


def _update_block(x: Tensor, values: Tensor, plan: Plan, mode: str, drop: bool) -> Tensor:
    """A scatter along the indexed axes, the other axes whole."""
    block = plan.indices[0].shape
    rest = [n for i, n in enumerate(x.shape) if i not in plan.axes]
    shape = (*rest[: plan.place], *block, *rest[plan.place :])
    filled = _fill(values, shape)
    if plan.place:
        filled = ps.transpose(filled, axes=plan.block_first(len(shape)))
    dropping = {"drop": True} if drop else {}
    return p.scatter(x, filled, *plan.indices, axes=plan.axes, mode=mode, **dropping)
