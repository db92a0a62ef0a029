"""Cutting a text into the pieces that a tokenizer's model then looks at one by one. Book, section 8.2.2.

Each is a record with the fields of its entry in a `tokenizer.json`, and a function from pieces to pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..core.arguments import shown
from ..core.errors import InputError
from . import byte_characters
from .patterns import check_pattern, find_all

# The cut of GPT-2: a word with the space before it, a number, other signs, white space; and English endings.
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# The cut of GPT-4 (cl100k): numbers in groups of three digits, one sign or space before a word.
GPT4_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
MOST_GROWTH = 16  # times the length of a text: bytes make four of a character, a sign in front of it two
SCHEMES = ("first", "always", "never")
BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
_PUNCTUATION = r"\p{P}!-/:-@\[-`{-~"


class Piece(NamedTuple):
    """A part of a text: what the model sees of it, and for each of these characters the place that it comes from."""

    text: str
    places: Sequence[int]

    @classmethod
    def of(cls, text: str, start: int = 0) -> Piece:
        """A text that nothing was done to.

        >>> Piece.of("cat", 4)
        Piece(text='cat', places=range(4, 7))
        """
        return cls(text, range(start, start + len(text)))

    def led_by(self, sign: str) -> Piece:
        """With a sign in front, which belongs to the first character."""
        return Piece(sign + self.text, [*self.places[:1], *self.places])


PreTokenizer = Callable[[list[Piece]], list[Piece]]


@dataclass(frozen=True)
class Split:
    r"""Cuts at the matches of a pattern; `behavior` says what becomes of the matches.

    >>> [piece.text for piece in Split(r"\s+", "Removed")([Piece.of("the cat")])]
    ['the', 'cat']
    >>> [piece.text for piece in Split(" ", "MergedWithNext")([Piece.of("the cat")])]
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
        drop = self.behavior == "Removed" and self.invert
        for piece in pieces:
            text, places = piece
            matches = self._matches(text)
            if not matches and text:
                out += [] if drop else [piece]
                continue
            out += [Piece(text[a:b], places[a:b]) for a, b in self._spans(matches, len(text))]
        return out

    def _matches(self, text: str) -> list[tuple[int, int]]:
        if not self.literal:
            return find_all(self.pattern, text)
        found, place = [], text.find(self.pattern)
        while place >= 0 and self.pattern:
            found.append((place, place + len(self.pattern)))
            place = text.find(self.pattern, found[-1][1])
        return found

    def _spans(self, matches: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
        if self.behavior == "Removed" and self.invert:
            return matches
        cuts: list[tuple[int, int, bool]] = []  # start, end, whether it is a match
        place = 0
        for start, end in [*matches, (length, length)]:
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

    >>> [piece.text for piece in Whitespace()([Piece.of("Hi, you!")])]
    ['Hi', ',', 'you', '!']
    """

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        return Split(r"\w+|[^\w\s]+", invert=True)(pieces)


@dataclass(frozen=True)
class WhitespaceSplit:
    """What stands between white space.

    >>> [piece.text for piece in WhitespaceSplit()([Piece.of("Hi, you!")])]
    ['Hi,', 'you!']
    """

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        return Split(r"\S+", invert=True)(pieces)


@dataclass(frozen=True)
class Digits:
    """Numbers apart from the rest; with `individual_digits` every digit on its own.

    >>> [piece.text for piece in Digits(True)([Piece.of("in 2512")])]
    ['in ', '2', '5', '1', '2']

    Numbers cut by frequency are hard to compute with: 2512 may become 251 and 2. Book, section 8.2.2.
    """

    individual_digits: bool = False

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        return Split(r"\p{N}", "Isolated" if self.individual_digits else "Contiguous")(pieces)


@dataclass(frozen=True)
class Punctuation:
    """Signs of punctuation apart from the rest.

    >>> [piece.text for piece in Punctuation()([Piece.of("Hi, you")])]
    ['Hi', ',', ' you']
    """

    behavior: str = "Isolated"

    def __post_init__(self) -> None:
        self._split()  # which refuses another behavior

    def _split(self) -> Split:
        return Split(f"[{_PUNCTUATION}]", self.behavior)

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        return self._split()(pieces)


@dataclass(frozen=True)
class BertPreTokenizer:
    """What stands between white space, with every sign of punctuation on its own.

    >>> [piece.text for piece in BertPreTokenizer()([Piece.of("Hi, you!!")])]
    ['Hi', ',', 'you', '!', '!']
    """

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        return Split(rf"[{_PUNCTUATION}]|[^\s{_PUNCTUATION}]+", invert=True)(pieces)


@dataclass(frozen=True)
class Metaspace:
    """A sign instead of every space and one in front of the text; with `split`, cut before each.

    >>> [piece.text for piece in Metaspace()([Piece.of("the cat")])]
    ['▁the', '▁cat']

    `prepend_scheme` says whether the sign comes "always" in front of a piece that has none, only of the "first" of a
    text, or "never".
    """

    replacement: str = "▁"
    prepend_scheme: str = "always"
    split: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.replacement, str) or len(self.replacement) != 1:
            raise InputError(f"Metaspace: replacement={shown(self.replacement)}.", "one character")
        if self.prepend_scheme not in SCHEMES:
            raise InputError(f"Metaspace: prepend_scheme={shown(self.prepend_scheme)}.", f"one of {SCHEMES}")

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        out: list[Piece] = []
        sign = re.escape(self.replacement)
        words = re.compile(f"{sign}[^{sign}]*|[^{sign}]+")
        for text, places in pieces:
            piece = Piece(text.replace(" ", self.replacement), places)
            leads = self.prepend_scheme == "always" or (self.prepend_scheme == "first" and places[0] == 0)
            if leads and not piece.text.startswith(self.replacement):
                piece = piece.led_by(self.replacement)
            if not self.split or self.replacement not in piece.text[1:]:
                out.append(piece)
                continue
            for match in words.finditer(piece.text):
                start, end = match.span()
                out.append(Piece(match.group(), piece.places[start:end]))
        return out


@dataclass(frozen=True)
class ByteLevel:
    """Pieces as bytes, each written as a character (see `byte_characters`); with `use_regex` cut like GPT-2's first.

    >>> [piece.text for piece in ByteLevel()([Piece.of("né you")])]
    ['nÃ©', 'Ġyou']
    """

    add_prefix_space: bool = False
    use_regex: bool = True
    trim_offsets: bool = False  # said in files; a post-processor does it

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        out: list[Piece] = []
        for piece in pieces:
            if self.add_prefix_space and not piece.text.startswith(" "):
                piece = piece.led_by(" ")
            text, places = piece
            for a, b in find_all(GPT2_PATTERN, text) if self.use_regex else [(0, len(text))]:
                word, found = text[a:b], places[a:b]
                if not word.isascii():
                    found = [place for c, place in zip(word, found, strict=True) for _ in byte_characters.spelled(c)]
                out.append(Piece(byte_characters.spelled(word), found))
        return out


@dataclass(frozen=True)
class PreTokenizers:
    """Several, one after the other.

    >>> both = PreTokenizers((WhitespaceSplit(), Digits(True)))
    >>> [piece.text for piece in both([Piece.of("mp3 player")])]
    ['mp', '3', 'player']
    """

    parts: tuple[PreTokenizer, ...]

    def __call__(self, pieces: list[Piece]) -> list[Piece]:
        length = sum(len(piece.text) for piece in pieces)
        for part in self.parts:
            pieces = part(pieces)
            if (made := sum(len(piece.text) for piece in pieces)) > MOST_GROWTH * length:
                raise InputError(
                    f"PreTokenizers: {length:,} characters become {made:,}.", "bytes once, and one sign for the space"
                )
        return pieces
