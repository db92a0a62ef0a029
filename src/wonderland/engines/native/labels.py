"""What the expressions of a step are in a user's words, and how much work they are."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...core.primitive import TABLE
from .values import Op, Take, Value, parts

Work = tuple[str, int]  # what a step does in a user's words, and how many multiply-adds (or the like) that takes


def names(values: Iterable[Value]) -> list[str]:
    """The operations of expressions in the order in which they are computed, each name once."""
    found: dict[str, None] = {}
    for part in parts(*values):
        if isinstance(part, Take):
            found["gather"] = None
        elif isinstance(part, Op) and part.name != "copy":
            found[part.name.removeprefix("checked ")] = None
    return list(found)


def operations(values: Iterable[Value]) -> int:
    """How many elementwise operations expressions are, what they share counted once; moving elements is none."""
    return sum(int(math.prod(p.shape)) for p in parts(*values) if isinstance(p, Op) and not _free(p))


def _free(op: Op) -> bool:
    return op.name == "copy" or (op.name in TABLE and TABLE[op.name].free)


def fused(values: list[Value]) -> str:
    """What happens to the result of a step before it is stored, behind the name of the step."""
    then = "".join(f" + {', '.join(found)}" for found in [names(values)] if found)
    return then + (f" -> {len(values)} results" if len(values) > 1 else "")
