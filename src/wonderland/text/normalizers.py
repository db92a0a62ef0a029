"""What may happen to a text before it is cut: small letters, Unicode forms, replacements. Book, section 8.2.2.

Each is a record with the fields of its entry in a `tokenizer.json`, and a function from text to text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..arguments import shown
from ..errors import InputError
from ..storage.bounds import LEAST_TEXT
from .patterns import check_pattern, compiled

Normalizer = Callable[[str], str]

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


@dataclass(frozen=True)
class Normalizers:
    """Several, one after the other.

    >>> Normalizers((UnicodeForm("NFD"), StripAccents(), Lowercase()))("Ça Va")
    'ca va'
    """

    parts: tuple[Any, ...]

    def __call__(self, text: str) -> str:
        length = len(text)
        for part in self.parts:
            text = part(text)
            check_growth(length, len(text))
        return text


def check_growth(before: int, after: int) -> None:
    """Refuse replacements, one by one or together, that blow a text up beyond any use."""
    if after > max(MOST_GROWTH * before, LEAST_TEXT):
        raise InputError(
            f"tokenizer: a text of {before:,} characters becomes one of {after:,} or more.", "shorter replacements"
        )


def chosen(normalizers: Sequence[Normalizer]) -> Normalizer | None:
    """One normalizer from a list of them."""
    return None if not normalizers else normalizers[0] if len(normalizers) == 1 else Normalizers(tuple(normalizers))


def aligned(normalizer: Normalizer, text: str) -> tuple[str, list[tuple[int, int]]]:
    """The normalized text and, for each of its characters, the span of the text that it comes from.

    >>> aligned(UnicodeForm("NFC"), "ne\\u0301!")
    ('né!', [(0, 1), (1, 3), (3, 4)])

    A character is normalized by itself or, if they melt, together with the marks that follow it. Where this is not what
    the whole text gives, every character comes from the whole text.
    """
    cuts = [place for place, character in enumerate(text) if not place or not _joins(character)]
    parts, spans = [], []
    for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True):
        part, single = normalizer(text[start:end]), [normalizer(character) for character in text[start:end]]
        parts.append(part)
        if "".join(single) == part:
            spans += [(start + place, start + place + 1) for place, made in enumerate(single) for _ in made]
        else:
            spans += [(start, end)] * len(part)
    whole = normalizer(text)
    return whole, spans if "".join(parts) == whole else [(0, len(text))] * len(whole)


def _joins(character: str) -> bool:
    """Whether a character may melt into the one before: marks, and the later parts of Korean syllables."""
    return character > "\u02ff" and (unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff")
