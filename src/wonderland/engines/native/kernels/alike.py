"""Items of one kernel that have nothing to do with each other and look alike: the updates of many small parameters.

In one loop they are a long text, and another one for every number of them. As steps of their own they share one short
routine, which is compiled once; a step costs some ten nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..values import Const, Op, View, inside, parts
from .items import Item, Store

Likeness = tuple[tuple[object, ...], ...]


def groups(items: list[Item]) -> list[list[Item]]:
    """The items in groups: each that is like another one alone, and all others together."""
    together = _connected(items)
    if len(together) == 1:
        return together
    alike: dict[Likeness, list[list[Item]]] = {}
    for group in together:
        alike.setdefault(_likeness(group), []).append(group)
    single = [item for same in alike.values() if len(same) == 1 for item in same[0]]
    return [*([single] if single else []), *[group for same in alike.values() if len(same) > 1 for group in same]]


def _connected(items: list[Item]) -> list[list[Item]]:
    """Items that touch the same memory or share a computation are in one group.

    Numbers for all places do not count, unless one of the items makes them.
    """
    written = {id(item.target.buffer) for item in items}
    group_of: dict[int, int] = {}  # by the id of what is shared
    groups: dict[int, list[int]] = {}
    for i, item in enumerate(items):
        shared = list(_shared(item, written))
        others = {group_of[key] for key in shared if key in group_of}
        merged = sorted([i, *[j for other in others for j in groups.pop(other)]])
        groups[i] = merged
        if others:
            group_of = {key: i if group in others else group for key, group in group_of.items()}
        group_of.update(dict.fromkeys(shared, i))
    return [[items[i] for i in group] for group in groups.values()]


def _shared(item: Item, written: set[int]) -> Iterable[int]:
    """The ids of the memory that an item touches and of all that it computes for each place anew."""
    yield id(item.target.buffer)
    varies: set[int] = set()
    for part in parts(item.value):
        if isinstance(part, View):
            if any(part.strides) or id(part.buffer) in written:
                varies.add(id(part))
                yield id(part.buffer)
        elif not isinstance(part, (Op, Const)) or any(id(a) in varies for a in inside(part)):
            varies.add(id(part))
            yield id(part)


def _likeness(items: list[Item]) -> Likeness:
    """What items must have in common to share a routine, or nearly so."""
    return tuple(
        (
            type(item),
            "" if isinstance(item, Store) else item.name,
            item.target.strides,
            *[part.name if isinstance(part, Op) else (type(part), part.dtype) for part in parts(item.value)],
        )
        for item in items
    )
