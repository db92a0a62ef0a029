"""Cutting a text into the pieces that a tokenizer's model then looks at one by one. Book, section 8.2.2.

Each is a record with the fields of its entry in a `tokenizer.json`, and a function from pieces to pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..arguments import shown
from ..errors import InputError
from . import byte_characters
from .patterns import check_pattern, find_all

# The cut of GPT-2: a word with the space before it, a number, other signs, white space; and English endings.
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# The cut of GPT-4 (cl100k): numbers in groups of three digits, one sign or space before a word.
GPT4_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


class Piece(NamedTuple):
    """A part of a text: what the model sees of it, and where it comes from."""

    text: str
    start: int
    end: int


PreTokenizer = Callable[[list[Piece]], list[Piece]]


@dataclass(frozen=True)
class Split:
    r"""Cuts at the matches of a pattern; `behavior` says what becomes of the matches.

    >>> [piece.text for piece in Split(r"\s+", "Removed")([Piece("the cat", 0, 7)])]
    ['the', 'cat']
    >>> [piece.text for piece in Split(" ", "MergedWithNext")([Piece("the cat", 0, 7)])]
    ['the', ' cat']

    "Removed", "Isolated" (a piece of its own), "MergedWithPrevious", "MergedWithNext", or "Contiguous" (adjacent
    matches are one piece). With `invert` the text between the matches takes their part.
    """

    pattern: str
    behavior: str = "Removed"
    invert: bool = False
    literal: bool = False

    def __post_init__(self) -> None:
        if self.behavior not in BEHAVIORS:
            raise InputError(f"Split: behavior={shown(self.behavior)}.", f"one of {BEHAVIORS}")
        check_pattern("Split", self.pattern, self.literal)

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        out: list[Piece] = []
        for text, start, _ in pieces:
            out += [Piece(text[a:b], start + a, start + b) for a, b in self._spans(text)]
        return out

    def _matches(self, text: str) -> list[tuple[int, int]]:
        if not self.literal:
            return find_all(self.pattern, text)
        found, place = [], text.find(self.pattern)
        while place >= 0 and self.pattern:
            found.append((place, place + len(self.pattern)))
            place = text.find(self.pattern, found[-1][1])
        return found

    def _spans(self, text: str) -> list[tuple[int, int]]:
        matches = self._matches(text)
        if self.behavior == "Removed" and self.invert:
            return matches
        cuts: list[tuple[int, int, bool]] = []  # start, end, whether it is a match
        place = 0
        for start, end in [*matches, (len(text), len(text))]:
            if place < start:
                cuts.append((place, start, self.invert))
            if start < end:
                cuts.append((start, end, not self.invert))
            place = end
        return _BEHAVE[self.behavior](cuts)


def _kept(cuts: list[tuple[int, int, bool]]) -> list[tuple[int, int]]:
    return [(start, end) for start, end, match in cuts if not match]


def _all(cuts: list[tuple[int, int, bool]]) -> list[tuple[int, int]]:
    return [(start, end) for start, end, _ in cuts]


def _with_previous(cuts: list[tuple[int, int, bool]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    matched = True
    for start, end, match in cuts:
        if match and not matched:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
        matched = match
    return out


def _with_next(cuts: list[tuple[int, int, bool]]) -> list[tuple[int, int]]:
    mirrored = _with_previous([(-end, -start, match) for start, end, match in reversed(cuts)])
    return [(-end, -start) for start, end in reversed(mirrored)]


def _contiguous(cuts: list[tuple[int, int, bool]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    before: bool | None = None
    for start, end, match in cuts:
        if match == before:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
        before = match
    return out


_BEHAVE: dict[str, Callable[[list[tuple[int, int, bool]]], list[tuple[int, int]]]] = {
    "Removed": _kept,
    "Isolated": _all,
    "MergedWithPrevious": _with_previous,
    "MergedWithNext": _with_next,
    "Contiguous": _contiguous,
}


@dataclass(frozen=True)
class Whitespace:
    """Words and groups of other signs, without the space between them.

    >>> [piece.text for piece in Whitespace()([Piece("Hi, you!", 0, 8)])]
    ['Hi', ',', 'you', '!']
    """

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        return Split(r"\w+|[^\w\s]+", invert=True)(pieces)


@dataclass(frozen=True)
class WhitespaceSplit:
    """What stands between white space.

    >>> [piece.text for piece in WhitespaceSplit()([Piece("Hi, you!", 0, 8)])]
    ['Hi,', 'you!']
    """

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        return Split(r"\s+")(pieces)


@dataclass(frozen=True)
class Digits:
    """Numbers apart from the rest; with `individual_digits` every digit on its own.

    >>> [piece.text for piece in Digits(True)([Piece("in 2512", 0, 7)])]
    ['in ', '2', '5', '1', '2']

    Numbers cut by frequency are hard to compute with: 2512 may become 251 and 2. Book, section 8.2.2.
    """

    individual_digits: bool = False

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        return Split(r"\p{N}", "Isolated" if self.individual_digits else "Contiguous")(pieces)


@dataclass(frozen=True)
class Punctuation:
    """Signs of punctuation apart from the rest.

    >>> [piece.text for piece in Punctuation()([Piece("Hi, you", 0, 7)])]
    ['Hi', ',', ' you']
    """

    behavior: str = "Isolated"

    def __post_init__(self) -> None:
        self._split()  # which refuses another behavior

    def _split(self) -> Split:
        return Split(r"[\p{P}!-/:-@\[-`{-~]", self.behavior)

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        return self._split()(pieces)


@dataclass(frozen=True)
class ByteLevel:
    """Pieces as bytes, each written as a character (see `byte_characters`); with `use_regex` cut like GPT-2's first.

    >>> [piece.text for piece in ByteLevel()([Piece("né you", 0, 6)])]
    ['nÃ©', 'Ġyou']
    """

    add_prefix_space: bool = False
    use_regex: bool = True

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        out: list[Piece] = []
        for text, start, end in pieces:
            extra = int(self.add_prefix_space and not text.startswith(" "))
            padded = " " + text if extra else text
            if not self.use_regex:
                out.append(Piece(byte_characters.spelled(padded), start, end))
                continue
            for a, b in find_all(GPT2_PATTERN, padded):
                out.append(Piece(byte_characters.spelled(padded[a:b]), start + max(0, a - extra), start + b - extra))
        return out


@dataclass(frozen=True)
class PreTokenizers:
    """Several, one after the other.

    >>> both = PreTokenizers((WhitespaceSplit(), Digits(True)))
    >>> [piece.text for piece in both([Piece("mp3 player", 0, 10)])]
    ['mp', '3', 'player']
    """

    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        if any(is_byte_level(part) for part in self.parts[:-1]):
            raise InputError("PreTokenizers: ByteLevel comes before another one.", "ByteLevel at the end")

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        for part in self.parts:
            pieces = part(pieces)
        return pieces


def is_byte_level(pre_tokenizer: Any) -> bool:
    """Whether the pieces are written in the characters of bytes."""
    if isinstance(pre_tokenizer, PreTokenizers):
        return bool(pre_tokenizer.parts) and is_byte_level(pre_tokenizer.parts[-1])
    return isinstance(pre_tokenizer, ByteLevel)
