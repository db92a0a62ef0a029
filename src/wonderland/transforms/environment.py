"""What a function refers to besides its arguments: the values of its closure and of the global names in its code.

A trace holds while these are the same. The walk goes on through the functions found on the way, also through those that
`wl.grad`, `wl.vmap` or `functools.partial` wrap, and through lists, tuples and dicts. It does not look into the code of
installed libraries, nor at the attributes of objects; what changes there belongs in a module's cells.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..tensor import Cell, Tensor
from ..trees import Static, is_stateful

_ATOMS = {bool, int, float, complex, str, type(None)}
_MISSING = object()
# the code of the package, of the standard library and of installed packages does not change while a program runs
_LIBRARIES = tuple(
    os.path.dirname(path) + os.sep for path in (os.path.dirname(__file__), os.__file__, os.path.dirname(np.__file__))
)


class Same:
    """A value that is compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def fixed(value: Any, above: tuple[int, ...] = ()) -> Any:
    """What a trace keeps of a value that it takes for a constant; equal as long as the trace holds."""
    kind = type(value)
    if kind in _ATOMS or isinstance(value, np.generic):
        return Static(value)
    if kind is Tensor:
        return (Same(value), value._node is not None)
    if kind in (list, tuple, dict) and id(value) not in above:
        above = (*above, id(value))
        keys = tuple(value) if kind is dict else ()
        return (kind, keys, tuple(fixed(v, above) for v in (value.values() if keys else value)))
    return Same(value)


class Environment:
    """The places from which a function's code takes values, and what they hold now."""

    def __init__(self, f: Any) -> None:
        self.places: list[tuple[Any, str | None, Any, Any]] = []  # closure cell or globals, name, value, what is kept
        self.objects: set[int] = set()  # modules and cells, by identity
        self._seen: set[int] = set()
        self._visit(f)
        self.key = tuple(kept for _, _, _, kept in self.places)

    def changed(self) -> bool:
        """Whether some place holds another value by now."""
        for holder, name, before, kept in self.places:
            value = _held(holder, name)
            if value is not before or (type(kept) is tuple and fixed(value) != kept):
                return True
        return False

    def _visit(self, value: Any) -> None:
        if type(value) in _ATOMS or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, Cell) or is_stateful(value):
            self.objects.add(id(value))
        elif isinstance(value, FunctionType):
            self._visit_function(value)
        elif isinstance(value, (list, tuple, dict)):
            for inner in value.values() if isinstance(value, dict) else value:
                self._visit(inner)
        elif isinstance(value, MethodType):
            self._visit(value.__func__)
            self._visit(value.__self__)
        elif isinstance(value, functools.partial):
            self._visit([value.func, value.args, value.keywords])
        elif not isinstance(value, type) and hasattr(value, "__wrapped__"):  # a jitted function, one with a custom rule
            self._visit([value.__wrapped__, getattr(value, "_rule", None), getattr(value, "_rules", None)])

    def _visit_function(self, f: FunctionType) -> None:
        holders: list[tuple[Any, str | None]] = [(cell, None) for cell in f.__closure__ or ()]
        if not f.__code__.co_filename.startswith(_LIBRARIES):
            holders += [(f.__globals__, name) for name in dict.fromkeys(_names(f.__code__)) if name in f.__globals__]
        for holder, name in holders:
            value = _held(holder, name)
            self.places.append((holder, name, value, fixed(value)))
            self._visit(value)


def _held(holder: Any, name: str | None) -> Any:
    if name is not None:
        return holder.get(name, _MISSING)
    try:
        return holder.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING


def _names(code: CodeType) -> Iterator[str]:
    """The names in a function's code and in the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
