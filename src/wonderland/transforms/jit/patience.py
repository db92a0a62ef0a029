"""Preparing for the next call takes time, which is lost if that cannot use it: as when parameters change in between."""

from __future__ import annotations

LONGEST = 15  # calls in a row for which nothing is prepared


class Patience:
    """Whether to prepare. What was in vain once is left for one call, twice for three, and so on."""

    __slots__ = ("_left", "_vain")

    def __init__(self) -> None:
        self._vain = 0  # times in a row
        self._left = 0  # calls that are left out

    def prepares(self, used: bool) -> bool:
        """Asked by every call that would: has what was prepared last been used since?"""
        if used:
            self._vain = self._left = 0
        elif self._left:
            self._left -= 1
            return False
        else:
            self._left = min(2**self._vain - 1, LONGEST)
            self._vain += 1
        return True
