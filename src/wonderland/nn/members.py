"""Walking through a module: everything in it, by path."""

from __future__ import annotations

from typing import Any

from ..cell import Cell
from .attributes import collect
from .lazy import Lazy


def members(owner: Any) -> dict[str, Any]:
    """The cells (lazy ones, too) and stateful objects directly in a stateful object: `weight`, `blocks.3`."""
    found: dict[str, Any] = {}
    parts = owner._attributes() if hasattr(owner, "_attributes") else owner.__tree_parts__()[0]
    for name, value in parts.items():
        collect(value, name, found)
    return found


def walk(root: Any, *, again: bool = False) -> list[tuple[str, Any]]:
    """All members of `root` and of its members, itself included, in the order of their attributes.

    What is reached twice is listed once, under its first path; with `again`, under each of them.
    """
    found: list[tuple[str, Any]] = []
    seen: set[int] = set()

    def visit(member: Any, path: str, above: tuple[int, ...]) -> None:
        if id(member) in (above if again else seen):
            return
        seen.add(id(member))
        found.append((path, member))
        if not isinstance(member, (Cell, Lazy)):
            prefix = f"{path}." if path else ""
            for name, inner in members(member).items():
                visit(inner, prefix + name, (*above, id(member)))

    visit(root, "", ())
    return found


def cells(root: Any, *, again: bool = False) -> list[tuple[str, Cell]]:
    """The cells in `root` by path."""
    return [(path, member) for path, member in walk(root, again=again) if isinstance(member, Cell)]
