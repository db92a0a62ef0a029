r"""Regular expressions as tokenizers write them, for Python's `re`: classes of Unicode such as \p{L} are spelled out.

Tokenizer files use the syntax of Oniguruma and of Rust's regex. What differs from Python's for the patterns found there
are the classes: \p{...} is missing, and \s and \w hold other characters. Texts of ASCII alone get classes of ASCII
alone, which are fast and need no table of Unicode.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby

from ..core.arguments import shown
from ..core.errors import InputError
from .backtracking import check_time

Ranges = tuple[tuple[int, int], ...]

LONGEST = 4000  # characters of a pattern; those of known tokenizers have less than a thousand
_ASCII = 128
_UNICODE = sys.maxunicode + 1
# what Unicode calls white space; Python's \s has the four separators 1c to 1f as well
WHITE = frozenset(map(ord, "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000")) | frozenset(
    range(0x2000, 0x200B)
)
# letters by their property Other_Alphabetic, whose category is "symbol", and the two joiners of words
_MORE_WORD = frozenset(
    [0x200C, 0x200D, *range(0x24B6, 0x24EA), *range(0x1F130, 0x1F14A), *range(0x1F150, 0x1F16A)]
    + list(range(0x1F170, 0x1F18A))
)
_WORD = ("L", "M", "Nd", "Nl", "Pc")
_MINOR = {"C": "cfnos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}
_CATEGORIES = frozenset([*_MINOR, *(major + letter for major, minor in _MINOR.items() for letter in minor)])
_LONG_NAMES = {"Letter": "L", "Mark": "M", "Number": "N", "Punctuation": "P", "Symbol": "S", "Separator": "Z"}


def find_all(pattern: str, text: str) -> list[tuple[int, int]]:
    r"""Where a pattern matches: the spans from left to right, without empty ones.

    >>> find_all(r"\p{L}+|\p{N}", "año 42")
    [(0, 3), (4, 5), (5, 6)]
    """
    found = (match.span() for match in compiled(pattern, text.isascii()).finditer(text))
    return [span for span in found if span[0] < span[1]]


@lru_cache(maxsize=256)
def compiled(pattern: str, only_ascii: bool) -> re.Pattern[str]:
    r"""The pattern for Python; with `only_ascii` it is right for texts of ASCII characters.

    >>> compiled(r"\s+(?!\S)", True).pattern
    '[\\U00000009-\\U0000000d\\U00000020-\\U00000020]+(?![\\U00000000-\\U00000008\\U0000000e-\\U0000001f\\U00000021-\\U0000007f])'

    A pattern that might take more than quadratic time is refused, see `backtracking`.
    """
    if not isinstance(pattern, str) or len(pattern) > LONGEST:
        raise InputError(f"tokenizer: the pattern {shown(pattern)}.", f"a text of at most {LONGEST:,} characters")
    translated = _translated(pattern, _ASCII if only_ascii else _UNICODE)
    try:
        found = re.compile(translated)
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        raise InputError(
            f"tokenizer: the pattern {shown(pattern)} is not understood: {error}.", "a pattern of `re`"
        ) from None
    try:
        check_time(translated)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"tokenizer: the pattern {pattern!r} is refused: {error}.",
            "repetitions of which each text has one reading, as (?:a+b)* instead of (?:a+b?)*",
        ) from None
    return found


def check_pattern(name: str, pattern: object, literal: bool) -> None:
    """Refuse what is no pattern when it is given, not when it meets a text."""
    if not isinstance(pattern, str):
        raise InputError(f"{name}: the pattern {shown(pattern)}.", "a text")
    if not literal:
        compiled(pattern, True)


def _translated(pattern: str, limit: int) -> str:
    out: list[str] = []
    inside = False  # of a class [...]
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == "\\" and place + 1 < len(pattern):
            kind, place = _escape(pattern, place + 1)
            body = _body(kind, limit) if len(kind) > 1 else None
            out.append("\\" + kind if body is None else body if inside else f"[{body}]")
            continue
        place += 1
        if not inside and character == "[":
            inside = True
            out.append(character)
            while pattern[place : place + 1] in ("^", "]") and pattern[place - 1] != "]":
                out.append(pattern[place] if pattern[place] == "^" else "\\]")
                place += 1
        elif inside and character == "]":
            inside = False
            out.append(character)
        elif inside and character in "[&|~":
            if pattern[place : place + 1] == (":" if character == "[" else character):
                raise InputError(f"tokenizer: the pattern {pattern!r} has classes of classes.", "plain classes [...]")
            out.append("\\" + character)
        else:
            out.append(character)
    return "".join(out)


def _escape(pattern: str, place: int) -> tuple[str, int]:
    """What follows a backslash: one plain character, or a class as a sign and a name, as "+s" or "-L"; and the end."""
    letter = pattern[place]
    if letter in "sdwSDW":
        return ("+" if letter.islower() else "-") + letter.lower(), place + 1
    if letter not in "pP":
        return letter, place + 1
    if pattern[place + 1 : place + 2] != "{":
        name, end = pattern[place + 1 : place + 2], place + 2
    else:
        end = pattern.find("}", place) + 1
        name = pattern[place + 2 : end - 1] if end else ""
    positive = (letter == "p") != name.startswith("^")
    name = _LONG_NAMES.get(name.lstrip("^"), name.lstrip("^"))
    if name not in _CATEGORIES:
        raise InputError(f"tokenizer: the pattern {pattern!r} has the class {name!r}.", "general categories, as \\p{L}")
    return ("+" if positive else "-") + name, end


@lru_cache(maxsize=256)
def _body(kind: str, limit: int) -> str:
    """The ranges of a class, to stand between brackets."""
    ranges = _ranges(kind[1:], limit)
    if kind[0] == "-":
        ranges = _complement(ranges, limit)
    # a class without ASCII characters gets one that is not ASCII: it matches nothing there
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges or ((_ASCII, _ASCII),))


@lru_cache(maxsize=256)
def _ranges(name: str, limit: int) -> Ranges:
    if name == "s":
        return _joined(sorted((code, code) for code in WHITE if code < limit))
    if name == "d":
        name = "Nd"
    wanted = _WORD if name == "w" else name
    ranges = [(first, last) for category, first, last in _categories(limit) if category.startswith(wanted)]
    if name == "w":
        ranges += [(code, code) for code in _MORE_WORD if code < limit]
    return _joined(sorted(ranges))


@lru_cache(maxsize=2)
def _categories(limit: int) -> list[tuple[str, int, int]]:
    """The runs of characters of one category: its name, the first and the last."""
    runs, first = [], 0
    for category, codes in groupby(unicodedata.category(chr(code)) for code in range(limit)):
        last = first + sum(1 for _ in codes) - 1
        runs.append((category, first, last))
        first = last + 1
    return runs


def _joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in order, neighbours as one."""
    out: list[list[int]] = []
    for first, last in ranges:
        if out and out[-1][1] >= first - 1:
            out[-1][1] = max(out[-1][1], last)
        else:
            out.append([first, last])
    return tuple((first, last) for first, last in out)


def _complement(ranges: Ranges, limit: int) -> Ranges:
    edges = [-1, *(edge for pair in ranges for edge in pair), limit]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((last + 1, first - 1) for last, first in gaps if last + 1 <= first - 1)
