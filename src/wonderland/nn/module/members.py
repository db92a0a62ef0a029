"""Walking through a module: everything in it, by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from ...core.cell import Cell
from ...core.errors import DepthError
from .attributes import collect
from .lazy import Lazy


class Stateful(Protocol):
    """An object with cells in it: a module, an optimizer, a random stream."""

    def __tree_parts__(self) -> tuple[Mapping[str, object], object]: ...


Member: TypeAlias = Cell | Lazy | Stateful
DEEPEST = 10_000  # levels of modules; the paths of more would fill the memory


def members(owner: Any) -> dict[str, Member]:
    """The cells (lazy ones, too) and stateful objects directly in a stateful object: `weight`, `blocks.3`."""
    found: dict[str, Member] = {}
    parts = owner._attributes() if hasattr(owner, "_attributes") else owner.__tree_parts__()[0]
    for name, value in parts.items():
        collect(value, name, found)
    return found


def walk(root: Any, *, again: bool = False) -> list[tuple[str, Member]]:
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


def cells(root: Any, *, again: bool = False) -> list[tuple[str, Cell]]:
    """The cells in `root` by path."""
    return [(path, member) for path, member in walk(root, again=again) if isinstance(member, Cell)]
