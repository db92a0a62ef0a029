"""What a trace keeps of the values that it takes for constants: how to tell later whether they are still the same."""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Hashable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...core.cell import Cell
from ...core.context import PACKAGE, structure_version
from ...core.errors import TreeError
from ...core.tensor import Distant, Tensor
from ...core.trees import DEEPEST as LEVELS
from ...core.trees import Static, flatten, is_stateful

ATOMS = {bool, int, float, complex, str, type(None)}
SMALL = 2**16  # bytes; larger NumPy arrays are known by identity alone
DEEPEST = 3  # objects inside objects inside objects; beyond, identity counts
# the code of the package, of the standard library and of installed packages does not change while a program runs
LIBRARIES = tuple(
    folder + os.sep for folder in (PACKAGE, os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(np.__file__)))
)


class Same:
    """A value that is compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def fixed(value: Any, above: tuple[int, ...] = ()) -> Hashable:
    """What a trace keeps of a value; equal as long as the trace holds. A tuple, if the value may change in place."""
    kind = type(value)
    if kind in ATOMS or isinstance(value, np.generic):
        return Static(value)
    if kind is Distant and value.far is not None:
        return (Same(value), value._node is not None, Same(value.far))
    if kind is Tensor or kind is Distant:
        return (Same(value), value._node is not None, Same(value._data))  # another buffer: it was assigned to
    if isinstance(value, Cell):
        return (Same(value), value.settings(), value.shape, value.dtype)
    if is_stateful(value):
        parts = opened(value)
        return (Same(value), parts.kind, parts.identities)  # a trace reads these very cells, not others of the kind
    if kind in (list, tuple, dict) and id(value) not in above:
        if len(above) == LEVELS:
            what = f"jit: a {kind.__name__} that the function refers to is nested more than {LEVELS} levels deep."
            raise TreeError(what, "a flatter one, or an argument")
        above = (*above, id(value))
        keys = tuple(value) if kind is dict else ()
        return (kind, keys, tuple(fixed(v, above) for v in (value.values() if keys else value)))
    if kind is np.ndarray and value.nbytes <= SMALL:
        return (Same(value), value.shape, value.tobytes())  # may be written to
    inside = contents(value, above)
    return (Same(value), inside) if inside else Same(value)


def contents(value: object, above: tuple[int, ...] = ()) -> tuple[Hashable, ...]:
    """What a trace keeps of the attributes of an object of the user's own making."""
    kind: Any = type(value)
    if len(above) > DEEPEST or id(value) in above or not _is_plain(kind):
        return ()
    above = (*above, id(value))
    return tuple((name, fixed(v, above)) for name, v in vars(value).items())


@functools.lru_cache(maxsize=1024)
def _is_plain(kind: type) -> bool:
    """Whether instances hold their state in attributes, and neither Python nor a library looks after them."""
    home = sys.modules.get(kind.__module__)
    file = getattr(home, "__file__", None) or ""
    library = kind.__module__.partition(".")[0] in sys.stdlib_module_names or file.startswith(LIBRARIES)
    named = kind.__name__ == "SimpleNamespace"
    return kind.__dictoffset__ != 0 and (named or not library) and not issubclass(kind, (type, ModuleType, Exception))


class Kind:
    """What all stateful objects of one structure have in common, known by identity."""

    __slots__ = ("__weakref__",)


class Opened(NamedTuple):
    """A stateful object taken apart into its cells and everything else that a trace depends on."""

    version: int
    cells: list[Cell]
    kind: Kind
    identities: tuple[int, ...]  # of the cells


_opened: dict[int, tuple[weakref.ref[object], Opened]] = {}  # by identity
_kinds: weakref.WeakValueDictionary[Hashable, Kind] = weakref.WeakValueDictionary()


def opened(value: Any) -> Opened:
    """A module taken apart. This is remembered while no module changes, if changes cannot go unnoticed."""
    version = structure_version()
    reference, known = _opened.get(id(value), (None, None))
    if known is None or reference is None or reference() is not value or known.version != version:
        known = _taken_apart(value, version)
        if hasattr(value, "__tree_steady__") and value.__tree_steady__():
            # a function of C, as what Ctrl-C raises in one of ours would be lost: nobody has called it
            forget = functools.partial(_opened.pop, id(value))
            _opened[id(value)] = (weakref.ref(value, forget), known)
    return known


def is_remembered(value: object) -> bool:
    """Whether a module that was just opened need not be opened again until some module changes."""
    return id(value) in _opened


def _taken_apart(value: object, version: int) -> Opened:
    found, structure = flatten(value)
    cells = [part for part in found if isinstance(part, Cell)]
    types = tuple((c.shape, c.dtype) for c in cells)
    key = (structure, types, tuple(fixed(part) for part in found if not isinstance(part, Cell)))
    kind = _kinds.get(key)
    if kind is None:
        kind = _kinds[key] = Kind()
    return Opened(version, cells, kind, tuple(map(id, cells)))
