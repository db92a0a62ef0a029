"""Texts as numbers in a list of different ones, and which words say that a value is missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from .table import Column

# compared in lower case; the last ones are written by databases, spreadsheets and data frames
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "\\n", "#n/a", "<na>", "nat"})
# no value among numbers, but perhaps one among texts: a dash may be the name of a category
MISSING_NUMBERS = MISSING | {"-", "--", ".", "..", "n.a."}
BOOLEANS = ("False", "True")
_SPELLED = {"false": "False", "true": "True"}


def clean_text(text: str) -> str:
    """A text without spaces around it, "" if it says that a value is missing; booleans are spelled in one way.

    >>> [clean_text(text) for text in (" Rome ", "N/A", "TRUE", "-")]
    ['Rome', '', 'True', '-']
    """
    text = text.strip()
    if len(text) < 6:  # as long as the longest of these words
        lower = text.lower()
        return "" if lower in MISSING else _SPELLED.get(lower, text)
    return text


Raw = TypeVar("Raw", str, bytes)


class Numbered(dict[Raw, int]):
    """The number of each text, by any way to write it; what is new gets the next number, what is missing -1."""

    def __init__(self, missing: Raw) -> None:
        super().__init__()
        self[missing] = -1
        self.texts: list[Raw] = []

    def clean(self, raw: Raw) -> Raw:
        """The one way to write a text."""
        raise NotImplementedError

    def __missing__(self, raw: Raw) -> int:
        text = self.clean(raw)
        if text != raw:
            code = self[text]
        else:
            code = len(self.texts)
            self.texts.append(text)
        self[raw] = code
        return code


class CodedTexts(Numbered[str]):
    """Texts that become numbers.

    >>> coded = CodedTexts()
    >>> coded.codes(["Rome", "Pisa ", "NA", "Pisa"]).tolist(), coded.texts
    ([0, 1, -1, 1], ['Rome', 'Pisa'])
    """

    def __init__(self) -> None:
        super().__init__("")

    def clean(self, raw: str) -> str:
        return clean_text(raw)

    def codes(self, texts: Iterable[str]) -> np.ndarray:
        """The numbers of many texts."""
        return np.fromiter(map(self.__getitem__, texts), np.int32)


def text_column(name: str, texts: Iterable[str]) -> Column:
    """The column of some texts.

    >>> text_column("city", ["Rome", "", "Rome"]).values
    array([ 0, -1,  0], dtype=int32)
    """
    coded = CodedTexts()
    codes = coded.codes(texts)
    return Column(name, codes, tuple(coded.texts))
