"""How often something was seen: what is worth compiling is known when it comes again.

The number depends on what was seen and never on a clock, so two runs of a program switch to compiled code at the same
call and give the same numbers.
"""

from __future__ import annotations

from collections.abc import Hashable

REMEMBERED = 4096  # kinds, the last ones
# Compiling takes some ten milliseconds for a kernel. What computes with many elements saves that in a few calls; what
# computes with few saves Python's overhead alone, and pays in a long loop only.
MANY = 1 << 15  # elements
CALLS_OF_MANY, CALLS_OF_FEW = 4, 64


class Sightings:
    """Counts of kinds of calls, by what the calls have in common."""

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def enough(self, kind: Hashable, elements: int, together: int = 0) -> bool:
        """Note a call that computes with so many elements; whether such calls came often enough to be compiled.

        With `together`, they must have computed with so many elements together: then what saves little in a call is
        compiled the later.
        """
        count = self._counts.pop(kind, 0) + 1
        self._counts[kind] = count  # at the end
        if len(self._counts) > REMEMBERED:
            self._counts.pop(next(iter(self._counts)), None)
        if together:
            return count >= CALLS_OF_MANY and count * elements >= together
        return count >= (CALLS_OF_MANY if elements >= MANY else CALLS_OF_FEW)
