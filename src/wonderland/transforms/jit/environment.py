"""What a function refers to besides its arguments: the values of its closure and of the global names in its code.

A trace holds while these are the same. The walk goes on through the functions found on the way, also through those
that `wl.grad`, `wl.vmap` or `functools.partial` wrap, and through lists, tuples, dicts, modules, small NumPy arrays and
the attributes of objects of the user's own classes. It does not look into the code and the objects of installed
libraries, nor at the attributes of classes. A function that changes what it refers to is traced at every call.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.cell import Cell
from ...core.tensor import Tensor
from ...core.trees import is_stateful
from .constants import ATOMS, LIBRARIES, fixed, is_remembered, opened

if TYPE_CHECKING:
    from ...engines.native.entry import Guards

_MISSING = object()
Holder = CellType | dict[str, object]  # a variable of a closure, or global ones by name


class Environment:
    """The places from which a function's code takes values, and what they hold now."""

    def __init__(self, f: object) -> None:
        self.places: list[
            tuple[Holder, str | None, object, Hashable]
        ] = []  # closure cell or globals, name, value, what is kept
        self.cells: set[int] = set()  # those that can be reached, by identity
        self._seen: set[int] = set()
        self._keep(f)
        self.key = tuple(kept for _, _, _, kept in self.places)

    def changed(self) -> bool:
        """Whether some place holds another value by now."""
        for holder, name, before, kept in self.places:
            value = _held(holder, name)
            if value is not before or (type(kept) is tuple and fixed(value) != kept):
                return True
        return False

    def guard(self, guards: Guards) -> bool:
        """Let native code notice what `changed` does. False: it cannot."""
        for holder, name, value, kept in self.places:
            if isinstance(holder, CellType):
                guards.variable(holder, value)
            elif name:
                guards.name(holder, name, value)
            if type(kept) is tuple and not _watched(guards, value):
                return False
        return True

    def differing(self, before: Environment) -> str:
        """The name of what is not as it was before."""
        for (_, name, _, now), (_, _, _, then) in zip(self.places, before.places, strict=False):
            if now != then:
                return repr(name) if name else "a variable of a closure"
        return "something"

    def _visit(self, value: object) -> None:
        if type(value) in ATOMS or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, Cell):
            self.cells.add(id(value))
        elif is_stateful(value):
            self.cells.update(id(cell) for cell in opened(value).cells)
        elif isinstance(value, FunctionType):
            self._visit_function(value)
        elif isinstance(value, (list, tuple, dict)):
            for inner in value.values() if isinstance(value, dict) else value:
                self._visit(inner)
        elif isinstance(value, MethodType):
            self._visit(value.__func__)
            self._keep(value.__self__)
        elif isinstance(value, functools.partial):
            self._visit(value.func)
            self._keep([*value.args, *value.keywords.values()])
        elif not isinstance(value, type) and hasattr(value, "__wrapped__"):  # a jitted function, one with a custom rule
            for inner in (value.__wrapped__, getattr(value, "_rule", None), getattr(value, "_rules", None)):
                self._visit(inner)

    def _keep(self, value: object) -> None:
        """Watch a value that cannot be replaced, but may change inside."""
        self.places.append(({"": value}, "", value, fixed(value)))
        self._visit(value)

    def _visit_function(self, f: FunctionType) -> None:
        holders: list[tuple[Holder, str | None]] = [(cell, None) for cell in f.__closure__ or ()]
        if not f.__code__.co_filename.startswith(LIBRARIES):
            holders += [(f.__globals__, name) for name in dict.fromkeys(_names(f.__code__)) if name in f.__globals__]
        for holder, name in holders:
            value = _held(holder, name)
            self.places.append((holder, name, value, fixed(value)))
            self._visit(value)


def _watched(guards: Guards, value: Any, above: tuple[int, ...] = ()) -> bool:
    """Let native code notice what changes inside of a value, as `fixed` would. False: it cannot."""
    kind = type(value)
    if type(fixed(value, above)) is not tuple:
        return True  # it is known by its identity
    if is_stateful(value):
        return is_remembered(value)  # the version of all structures tells
    if kind is Tensor:
        guards.attribute(value, "_data", value._data)
        guards.attribute(value, "_node", value._node)
        return True
    if isinstance(value, (Tensor, np.ndarray)):
        return False
    inside = value
    if kind is dict:
        guards.entries(value)
    elif kind is list:
        guards.elements(value)
    elif kind is not tuple:  # an object of the user's own making
        if any("__getattribute__" in vars(base) for base in kind.__mro__ if base is not object):
            return False  # it is a function of Python, and none runs in a guard
        inside = vars(value)
        if type(inside) is not dict:
            return False
        guards.attribute(value, "__dict__", inside)
        guards.entries(inside)
    parts = inside.values() if isinstance(inside, dict) else inside
    return all(_watched(guards, part, (*above, id(value))) for part in parts)


def _held(holder: Any, name: str | None) -> object:
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
