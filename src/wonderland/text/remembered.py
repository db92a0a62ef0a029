"""The pieces of a text come again and again: their ids are computed once."""

from __future__ import annotations

from collections.abc import Callable

from .word_level import Encoded

MOST = 1 << 16  # how many pieces are kept, and how long such a piece may be
LONGEST = 256


class Remembered(dict[str, Encoded]):
    """Pieces and what a function makes of them; short ones are kept, and never forgotten: frequent words come early.

    >>> known = Remembered(lambda piece: ([len(piece)], [(0, len(piece))]))
    >>> known["cat"], list(known)
    (([3], [(0, 3)]), ['cat'])
    """

    def __init__(self, encode: Callable[[str], Encoded]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, piece: str) -> Encoded:
        found = self._encode(piece)
        if len(piece) <= LONGEST and len(self) < MOST:
            self[piece] = found
        return found
