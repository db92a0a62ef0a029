"""Item assignment, `x[i] = v`: x gets other numbers, and nothing else in the program does.

No buffer is written to that somebody else holds. Where x is alone with its own, the numbers go into it; else x gets a
changed copy, and who shared the old buffer keeps it: copies and parts of x, NumPy arrays made from it, recorded
derivatives, traces. What this cannot make right is refused: traced and recorded tensors; views of memory that is still
in use, since programs written for NumPy rely on writing through them; and assignments that nobody could see.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from collections.abc import Set as AbstractSet

import numpy as np

from ..core.context import current
from ..core.errors import GradientError, InputError, TraceError
from ..core.tensor import Tensor, Tracer, alias, wrap
from ..core.typing import Array, ArrayLike, Index
from .conversion import convert_into
from .indexing import plain_entries
from .updates import At

__all__: list[str] = []

_REMEDY = "x = x.at[i].set(v), or x.at[i].add(v) and relatives"
_count = sys.getrefcount


def assign_item(x: Tensor, index: Index, value: ArrayLike, holders: int) -> None:
    """Carry out `x[index] = value`. `holders` is the reference count of x inside its `__setitem__`."""
    _check_allowed(x, value)
    if holders <= _TEMPORARY:
        raise InputError(
            "setitem: nobody holds the tensor that is assigned to, so its new value would be lost.",
            "x[i, j] = v in place of x[i][j] = v",
        )
    if _is_view_of_others(x):
        raise InputError(
            f"setitem: a tensor of shape {x.shape} is a view of memory that another tensor or array uses, too.",
            "y = y.copy() before y[i] = v; or one assignment to the whole, x[i, j] = v",
        )
    value = convert_into("setitem", value, x.dtype)
    if not _put_in(x, index, value):
        x._data = At(alias(x))[index].set(value)._data


def _check_allowed(x: Tensor, value: ArrayLike) -> None:
    if isinstance(x, Tracer) or isinstance(value, Tracer) or current().trace is not None:
        raise TraceError("setitem: inside a transformation (wl.grad, wl.jit, wl.vmap) tensors are immutable.", _REMEDY)
    recording = current().settings.grad_enabled
    if x._node is not None and (recording or x._node[0].primitive is not None):
        raise GradientError(
            "setitem: a tensor whose gradient is recorded cannot be changed.",
            f"{_REMEDY}, which are recorded; with wl.no_grad(): x[i] = v for a leaf",
        )
    if recording and isinstance(value, Tensor) and value._node is not None:
        raise GradientError(
            "setitem: a value that requires gradients would lose them in a tensor that does not.",
            f"{_REMEDY}, which are recorded; x[i] = v.detach()",
        )


def _is_view_of_others(x: Tensor) -> bool:
    """Whether x shows memory that is also somebody else's, of which it is a part or another form."""
    base = x._data.base
    while isinstance(base, np.ndarray):
        if _count(base) > _ONLY_BASE:
            return True
        base = base.base
    return type(base).__name__ == "PyCapsule"  # memory of another library, which does not say who uses it


def _put_in(x: Tensor, index: Index, value: Tensor) -> bool:
    """Put the value into the buffer of x, if x is alone with it and there is nothing to trace, watch or explain."""
    if not current().plain or type(value) is not Tensor:
        return False
    entries = plain_entries(index, x._data.nbytes)
    if entries is None or _count(x._data) > _ALONE or not x._data.flags.owndata or not x._data.flags.writeable:
        return False
    overwriting({id(x._data)})
    try:
        x._data[entries] = value._data
    except (IndexError, TypeError, ValueError):
        return False  # nothing has been written, and the general case says what is wrong
    return True


# --- who remembers something about the numbers of an array learns that they are about to change. It must not hold the
# array: a training step overwrites parameters that nobody else holds, and a model that is gone takes its memory along


class Unchanged:
    """Lives as long as the numbers of an array are what they are."""

    __slots__ = ("__weakref__",)


_unchanged: dict[int, tuple[weakref.ref[Array], Unchanged]] = {}  # by the identity of the array


def unchanged(array: Array) -> Unchanged:
    """What lives as long as the array does and nobody overwrites it. Hold it by a weak reference."""
    key = id(array)
    if key not in _unchanged:
        # a function of C, as what Ctrl-C raises in one of ours would be lost: nobody has called it
        _unchanged[key] = (weakref.ref(array, functools.partial(_unchanged.pop, key)), Unchanged())
    return _unchanged[key][1]


def overwriting(arrays: AbstractSet[int]) -> None:
    """The numbers of these arrays, told by their identities, are going to change. Whoever writes into one says so."""
    if _unchanged:
        for key in _unchanged.keys() & arrays:
            _unchanged.pop(key, None)


# whether nobody has to be told if these arrays are overwritten; a function of C
unheeded: Callable[[AbstractSet[int]], bool] = _unchanged.keys().isdisjoint


# --- reference counts, measured as above: Python's versions count differently


def _calibrated() -> tuple[int, int, int]:
    class Probe:
        def __setitem__(self, index: int, value: int) -> None:
            holders = _count(self)
            seen.append(holders)

    seen: list[int] = []
    held = Probe()
    held[0] = 0
    Probe()[0] = 0
    temporary = seen[1] if seen[1] < seen[0] else 0  # 0: this Python cannot tell
    x = wrap(np.zeros(2))
    alone = _count(x._data)
    view = wrap(np.zeros(2)[:1])
    base = view._data.base
    return temporary, alone, _count(base)


_TEMPORARY, _ALONE, _ONLY_BASE = _calibrated()
