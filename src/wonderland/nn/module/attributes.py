"""What the attributes of a module hold: cells and modules, perhaps inside lists and dicts, and settings.

`collect` finds the members of a value (cells and stateful objects) by path, `outline` makes something
hashable of all the rest, and `join` puts both together again. Outlines of equal settings are equal, so that
`jit` can tell whether a module is still the one that it traced.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...core.cell import Cell
from ...core.errors import ModuleError, TreeError
from ...core.tensor import Distant, Tensor, alias
from ...core.trees import DEEPEST, Static
from ...core.typing import Array
from .lazy import Lazy


class Container(NamedTuple):
    """The outline of a list, tuple, dict, set or dataclass."""

    kind: type
    keys: tuple[Any, ...]
    entries: tuple[Outline, ...]


class Constant:
    """The outline of an array that is no cell: equal to another one with the same numbers.

    It keeps the numbers of today, since a tensor may be assigned to and an array be written to; a large array is known
    by its identity alone.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        small = type(value) is np.ndarray and value.nbytes <= SMALL
        self.value = value.copy() if small else alias(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return False
        mine, theirs = self.value, other.value
        if mine is theirs or (type(mine) is type(theirs) is Tensor and mine._data is theirs._data):
            return True
        return (
            type(mine) in (Tensor, Distant, np.ndarray) and type(mine) is type(theirs) and _bits(mine) == _bits(theirs)
        )

    def __hash__(self) -> int:
        return hash((self.value.shape, self.value.dtype))

    def __repr__(self) -> str:
        return f"{self.value.dtype}{list(self.value.shape)}"


def _bits(value: Tensor | Array) -> tuple[object, ...]:
    return value.shape, value.dtype, np.asarray(value).tobytes()


SMALL = 2**16  # bytes
Outline: TypeAlias = Static | Constant | Container
MEMBER = Static("member")  # where a cell or a module goes


def _category(kind: type) -> str:
    """How values of a type are treated."""
    if issubclass(kind, (Cell, Lazy)) or hasattr(kind, "__tree_parts__"):
        return "member"
    if issubclass(kind, (Tensor, np.ndarray)):
        return "constant"
    if issubclass(kind, (dict, list, tuple, set)) or dataclasses.is_dataclass(kind):
        return "container"
    return "setting"


category: Callable[[type], str] = functools.lru_cache(maxsize=1024)(_category)


def is_steady(value: object) -> bool:
    """Whether a value can only be replaced, not changed in place: a member, a setting, a tuple or record of these."""
    if type(value) is tuple:
        return all(map(is_steady, value))
    if getattr(getattr(type(value), "__dataclass_params__", None), "frozen", False):
        return all(map(is_steady, _entries(value).values()))
    return category(type(value)) in ("member", "setting")


def collect(value: object, path: str, members: dict[str, Any], above: tuple[int, ...] = ()) -> None:
    """Add the members of a value to `members`, which may be lazy ones."""
    what = category(type(value))
    if what == "member":
        if path in members:
            raise ModuleError(f"module: two of its members have the path {path!r}.", "keys that differ as text, too")
        members[path] = value
    elif what == "container":
        if id(value) in above:
            raise TreeError(f"module: the {type(value).__name__} at {path!r} contains itself.", "a tree without cycles")
        if len(above) == DEEPEST:
            name = path.partition(".")[0]
            raise TreeError(f"module: the attribute {name!r} is nested more than {DEEPEST} levels deep.", "one list")
        inside = (*above, id(value))
        for key, entry in _entries(value).items():
            collect(entry, f"{path}.{key}", members, inside)


def outline(value: Any) -> Outline:
    """What a value is besides its members."""
    what = category(type(value))
    if what == "setting" or isinstance(value, Lazy):
        return Static(value)
    if what == "member":
        return MEMBER
    if what == "constant":
        return Constant(value)
    entries = _entries(value)
    return Container(type(value), tuple(entries), tuple(outline(entry) for entry in entries.values()))


def _entries(value: Any) -> dict[Hashable, Any]:
    """The contents of a container."""
    if isinstance(value, dict):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, set):
        if any(category(type(entry)) == "member" for entry in value):
            raise ModuleError("module: a set has no order, so its members have no paths.", "a list or a dict")
        return {"contents": frozenset(value)}
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if hasattr(value, f.name)}


def join(outline: Outline, members: Iterator[object]) -> Any:
    """The value with this outline and these members."""
    if outline is MEMBER:
        return next(members)
    if not isinstance(outline, Container):
        return outline.value
    values = [join(entry, members) for entry in outline.entries]
    kind = outline.kind
    if issubclass(kind, dict):
        return dict(zip(outline.keys, values, strict=True))
    if issubclass(kind, list):
        return values
    if issubclass(kind, set):
        return set(values[0])
    if issubclass(kind, tuple):
        return kind(*values) if hasattr(kind, "_fields") else tuple(values)
    made = object.__new__(kind)  # a dataclass: as it was, without its __init__
    for name, value in zip(outline.keys, values, strict=True):
        object.__setattr__(made, name, value)
    return made
