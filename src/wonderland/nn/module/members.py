"""Walking through a module: everything in it, by path."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from ...core.cell import Cell
from ...core.context import structure_version
from ...core.errors import DepthError
from .attributes import collect
from .lazy import Lazy


class Stateful(Protocol):
    """An object with cells in it: a module, an optimizer, a random stream."""

    def __tree_parts__(self) -> tuple[Mapping[str, object], object]: ...


class Steady(Stateful, Protocol):
    """One that knows whether a change other than in cells always shows in `structure_version`."""

    def __tree_steady__(self) -> bool: ...


Member: TypeAlias = Cell | Lazy | Stateful
DEEPEST = 10_000  # levels of modules; the paths of more would fill the memory


def members(owner: Any) -> dict[str, Member]:
    """The cells (lazy ones, too) and stateful objects directly in a stateful object: `weight`, `blocks.3`."""
    found: dict[str, Member] = {}
    parts = owner._attributes() if hasattr(owner, "_attributes") else owner.__tree_parts__()[0]
    for name, value in parts.items():
        collect(value, name, found)
    return found


def walk(root: Stateful, *, again: bool = False) -> list[tuple[str, Member]]:
    """All members of `root` and of its members, itself included, in the order of their attributes.

    What is reached twice is listed once, under its first path; with `again`, under each of them.
    """
    found: list[tuple[str, Member]] = []
    seen: set[int] = set()
    above: set[int] = set()  # the members that the next one is in
    waiting: list[tuple[str | None, Member]] = [("", root)]  # the next one last; without a path, the end of one
    while waiting:
        path, member = waiting.pop()
        if path is None:
            above.discard(id(member))
        elif id(member) not in (above if again else seen):
            seen.add(id(member))
            found.append((path, member))
            if not isinstance(member, (Cell, Lazy)):
                above.add(id(member))
                if len(above) > DEEPEST:
                    what = f"{type(root).__name__}: modules in modules, more than {DEEPEST:,} levels deep."
                    raise DepthError(what, "one list of modules, as in a flat Sequential")
                prefix = f"{path}." if path else ""
                inside = [(prefix + name, inner) for name, inner in members(member).items()]
                waiting += [(None, member), *reversed(inside)]
    return found


Ends: TypeAlias = list[tuple[str, Cell | Lazy]]
# By the identity of a module: it, the version of all structures, and its cells; None if they may change unnoticed.
_known: dict[int, tuple[weakref.ref[Steady], int, Ends | None]] = {}


def ends(root: Steady) -> Ends:
    """The cells in a module, lazy ones, too, by path: remembered while no module changes, if changes show."""
    version = structure_version()
    known = _known.get(id(root))
    if known is not None and known[1] == version and known[2] is not None and known[0]() is root:
        return known[2]
    found: Ends = [(path, member) for path, member in walk(root) if isinstance(member, (Cell, Lazy))]
    if known is None or known[1] != version or known[0]() is not root:
        # a function of C, as what Ctrl-C raises in one of ours would be lost: nobody has called it
        reference = weakref.ref(root, functools.partial(_known.pop, id(root)))
        _known[id(root)] = (reference, version, found if root.__tree_steady__() else None)
    return found


def cells(root: Any, *, again: bool = False) -> list[tuple[str, Cell]]:
    """The cells in `root` by path."""
    return [(path, member) for path, member in walk(root, again=again) if isinstance(member, Cell)]
