"""What may happen to a text before it is cut: small letters, Unicode forms, replacements. Book, section 8.2.2.

Each is a record with the fields of its entry in a `tokenizer.json`, and a function from text to text. Those that do not
work character by character also have `aligned`, which tells where each character of the result comes from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..core.arguments import shown
from ..core.errors import InputError
from ..storage.bounds import LEAST_TEXT
from .patterns import WHITE, check_pattern, compiled

Normalizer = Callable[[str], str]
Span = tuple[int, int]

MOST_GROWTH = 100  # times the length of a text; the forms of Unicode make 18 of some characters


@dataclass(frozen=True)
class Lowercase:
    """Small letters, character by character.

    >>> Lowercase()("The CAT")
    'the cat'
    """

    def __call__(self, text: str) -> str:
        # one by one: the form of a letter does not depend on its place in a word, as Python's would for Σ
        return text.lower() if text.isascii() else "".join(map(str.lower, text))


@dataclass(frozen=True)
class UnicodeForm:
    """One of the forms NFC, NFD, NFKC and NFKD, in which equal characters have equal codes.

    >>> len(UnicodeForm("NFC")("e\\u0301")), len(UnicodeForm("NFD")("é"))
    (1, 2)
    """

    form: str

    def __call__(self, text: str) -> str:
        return unicodedata.normalize(self.form, text)  # type: ignore[arg-type]


@dataclass(frozen=True)
class StripAccents:
    """Without combining marks; after NFD, é is e.

    >>> StripAccents()(UnicodeForm("NFD")("café"))
    'cafe'
    """

    def __call__(self, text: str) -> str:
        return text if text.isascii() else "".join(c for c in text if not unicodedata.category(c).startswith("M"))


@dataclass(frozen=True)
class Replace:
    r"""Every match of a pattern (or every occurrence of a string) replaced.

    >>> Replace(r"\p{P}", "")("Stop, please!")
    'Stop please'
    """

    pattern: str
    content: str
    literal: bool = False

    def __post_init__(self) -> None:
        check_pattern("Replace", self.pattern, self.literal)
        if not isinstance(self.content, str):
            raise InputError(f"Replace: content={shown(self.content)}.", "a text")

    def __call__(self, text: str) -> str:
        if self.literal:
            check_growth(len(text), text.count(self.pattern) * len(self.content))
            return text.replace(self.pattern, self.content)
        expression = compiled(self.pattern, text.isascii())
        if len(self.content) > MOST_GROWTH:
            check_growth(len(text), sum(1 for _ in expression.finditer(text)) * len(self.content))
        return expression.sub(lambda _: self.content, text)

    def aligned(self, text: str) -> tuple[str, list[Span]]:
        """What is put in comes from the last character of what it replaces."""
        expression = re.compile(re.escape(self.pattern)) if self.literal else compiled(self.pattern, text.isascii())
        spans: list[Span] = []
        place = 0
        for match in expression.finditer(text):
            start, end = match.span()
            spans += [(at, at + 1) for at in range(place, start)]
            spans += [(max(end - 1, 0), end)] * len(self.content)
            place = end
        return self(text), spans + [(at, at + 1) for at in range(place, len(text))]


@dataclass(frozen=True)
class Strip:
    """Without the white space at the beginning and the end.

    >>> Strip()("  a cat "), Strip(strip_right=False)(" a ")
    ('a cat', 'a ')
    """

    strip_left: bool = True
    strip_right: bool = True

    def __call__(self, text: str) -> str:
        return text[slice(*self._ends(text))]

    def _ends(self, text: str) -> Span:
        start, end = 0, len(text)
        while self.strip_right and end and ord(text[end - 1]) in WHITE:
            end -= 1
        while self.strip_left and start < end and ord(text[start]) in WHITE:
            start += 1
        return start, end

    def aligned(self, text: str) -> tuple[str, list[Span]]:
        """What is left comes from itself."""
        start, end = self._ends(text)
        return text[start:end], [(place, place + 1) for place in range(start, end)]


@dataclass(frozen=True)
class Prepend:
    """Something in front of every text that is not empty.

    >>> Prepend("▁")("cat"), Prepend("▁")("")
    ('▁cat', '')
    """

    prepend: str

    def __post_init__(self) -> None:
        if not isinstance(self.prepend, str):
            raise InputError(f"Prepend: prepend={shown(self.prepend)}.", "a text")

    def __call__(self, text: str) -> str:
        check_growth(len(text), len(self.prepend))
        return self.prepend + text if text else text

    def aligned(self, text: str) -> tuple[str, list[Span]]:
        """What is in front belongs to the first character."""
        spans = [(place, place + 1) for place in range(len(text))]
        return self(text), spans[:1] * len(self.prepend) + spans


class CharacterTable(dict[int, str]):
    """A table for `str.translate` that is filled as characters come."""

    def __init__(self, change: Callable[[str], str]) -> None:
        super().__init__()
        self._change = change

    def __missing__(self, code: int) -> str:
        self[code] = made = self._change(chr(code))
        return made


def _cleaned(character: str) -> str:
    if ord(character) in WHITE and (character in "\t\n\r" or unicodedata.category(character) != "Cc"):
        return " "
    return "" if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs") else character


# ideographs, which get spaces around them; the gap before U+2B920 is that of the library, whose ids are wanted
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B81F), (0x2B920, 0x2CEAF)),
    *((0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


def _spaced(character: str) -> str:
    code = ord(character)
    return f" {character} " if any(first <= code <= last for first, last in _IDEOGRAPHS) else character


_CLEANED = CharacterTable(_cleaned)
_SPACED = CharacterTable(_spaced)
_WITHOUT_MARKS = CharacterTable(lambda character: "" if unicodedata.category(character) == "Mn" else character)


@dataclass(frozen=True)
class BertNormalizer:
    """What BERT does to a text: no control characters, spaces for all white space and around ideographs, small letters.

    >>> BertNormalizer()("Ça\\tva, 中国!")
    'ca va,  中  国 !'

    `strip_accents=None` takes accents away if there are small letters.
    """

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True

    def __call__(self, text: str) -> str:
        if self.clean_text:
            text = text.translate(_CLEANED)
        if not text.isascii():
            if self.handle_chinese_chars:
                text = text.translate(_SPACED)
            if self.lowercase if self.strip_accents is None else self.strip_accents:
                text = unicodedata.normalize("NFD", text).translate(_WITHOUT_MARKS)
        return Lowercase()(text) if self.lowercase else text


@dataclass(frozen=True)
class Normalizers:
    """Several, one after the other.

    >>> Normalizers((UnicodeForm("NFD"), StripAccents(), Lowercase()))("Ça Va")
    'ca va'
    """

    parts: tuple[Normalizer, ...]

    def __call__(self, text: str) -> str:
        length = len(text)
        for part in self.parts:
            text = part(text)
            check_growth(length, len(text))
        return text

    def aligned(self, text: str) -> tuple[str, list[Span]]:
        """Through all of them."""
        spans = [(place, place + 1) for place in range(len(text))]
        for part in self.parts:
            text, steps = aligned(part, text)
            spans = [(spans[first][0], spans[last - 1][1]) if first < last else (0, 0) for first, last in steps]
        return text, spans


def check_growth(before: int, after: int) -> None:
    """Refuse replacements, one by one or together, that blow a text up beyond any use."""
    if after > max(MOST_GROWTH * before, LEAST_TEXT):
        raise InputError(
            f"tokenizer: a text of {before:,} characters becomes one of {after:,} or more.", "shorter replacements"
        )


def chosen(normalizers: Sequence[Normalizer]) -> Normalizer | None:
    """One normalizer from a list of them."""
    return None if not normalizers else normalizers[0] if len(normalizers) == 1 else Normalizers(tuple(normalizers))


def aligned(normalizer: Normalizer, text: str) -> tuple[str, list[Span]]:
    """The normalized text and, for each of its characters, the span of the text that it comes from.

    >>> aligned(UnicodeForm("NFC"), "ne\\u0301!")
    ('né!', [(0, 1), (1, 3), (3, 4)])

    A character is normalized by itself or, if they melt, together with the marks that follow it. Where this is not what
    the whole text gives, every character comes from the whole text.
    """
    if (own := getattr(normalizer, "aligned", None)) is not None:
        found: tuple[str, list[Span]] = own(text)
        return found
    single = CharacterTable(normalizer)
    cuts = [place for place, character in enumerate(text) if not place or not _joins(character)]
    parts: list[str] = []
    spans: list[Span] = []
    for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True):
        if end == start + 1:
            part = single[ord(text[start])]
            spans += [(start, end)] * len(part)
        else:
            part = normalizer(text[start:end])
            spans += _of_group(part, [single[ord(character)] for character in text[start:end]], start, end)
        parts.append(part)
    whole = normalizer(text)
    return whole, spans if "".join(parts) == whole else [(0, len(text))] * len(whole)


def _of_group(made: str, singles: list[str], start: int, end: int) -> list[Span]:
    """The spans of a group of characters: one by one while each makes what it makes alone, then the rest."""
    spans: list[Span] = []
    for single in singles:
        if not made.startswith(single):
            break
        spans += [(start, start + 1)] * len(single)
        made = made[len(single) :]
        start += 1
    return spans + [(start, end)] * len(made)


def _joins(character: str) -> bool:
    """Whether a character may melt into the one before: marks, and the later parts of Korean syllables."""
    return character > "\u02ff" and (unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff")
