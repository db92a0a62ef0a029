"""Columns that grow by batches of fields: numbers as long as every field is one, else texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .coded_texts import MISSING, MISSING_NUMBERS, CodedTexts
from .table import Column

EXACT = 2**53  # whole numbers up to here are different floats


def is_number(text: str | float) -> bool:
    """Whether a text is a number. Python's 1_000 is none: in data it is more likely a name.

    >>> is_number(" 1e-3"), is_number("1_000"), is_number("x")
    (True, False, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in str(text)


def is_code(text: str) -> bool:
    """Whether a whole number is written so that a float would not say the same: 007, or beyond 2**53.

    >>> is_code("007"), is_code("0"), is_code("0.5"), is_code("9007199254740993")
    (True, False, False, True)
    """
    text = text.strip()
    if text.isdecimal():
        return (text[0] == "0" and len(text) > 1) or int(text[:20]) > EXACT
    return text[:1] in "+-" and text[1:].isdecimal() and int(text[1:21]) > EXACT


class GrowingColumn:
    """The fields of a column, which come in batches.

    >>> column = GrowingColumn()
    >>> column.add(0, ["1.50", "NA"]); column.add(1, ["-", "x"])
    >>> column.unread()  # the batches before it turned out to hold texts are wanted once more
    1
    >>> column.add_again(0, ["1.50", "NA"])
    >>> column.column("a").strings().tolist()
    ['1.50', '', '-', 'x']
    """

    def __init__(self, as_text: bool = False) -> None:
        self.numbers: list[np.ndarray] = []
        self.codes: dict[int, np.ndarray] = {}
        self.coded: CodedTexts | None = CodedTexts() if as_text else None
        self.turned = 0  # the batch with the first text
        self.gaps: set[str] = set()  # ways to write a missing number, as they are found
        self.any_number = self.any_dash = False

    def add(self, batch: int, fields: Sequence[str], zeros: bool = True, underscores: bool = True) -> None:
        """Take the next fields. `zeros`, `underscores`: whether some field of the batch may have 007 or 1_000."""
        if self.coded is None:
            values = self._parsed(fields)
            if values is not None and self._safe(fields, values, zeros, underscores):
                self.numbers.append(values)
                return
            self._turn(batch)
        self.add_again(batch, fields)

    def add_again(self, batch: int, fields: Sequence[str]) -> None:
        """Take fields as texts."""
        assert self.coded is not None
        self.codes[batch] = self.coded.codes(fields)

    def unread(self) -> int:
        """How many batches must be read again as texts, when all were added."""
        if self.coded is None and self.any_dash and not self.any_number:
            self._turn(len(self.numbers))  # dashes alone are no numbers
        return self.turned

    def column(self, name: str) -> Column:
        """The whole."""
        if self.coded is None:
            return Column(name, np.concatenate(self.numbers))
        return Column(name, np.concatenate([self.codes[i] for i in range(len(self.codes))]), tuple(self.coded.texts))

    def _turn(self, batch: int) -> None:
        self.coded, self.turned, self.numbers = CodedTexts(), batch, []

    def _parsed(self, fields: Sequence[str]) -> np.ndarray | None:
        """The numbers, or None if there is something else."""
        count = len(fields)
        if not self.gaps:
            try:
                return np.fromiter(map(float, fields), np.float64, count)
            except ValueError:
                pass
        for _ in range(2):
            gaps = self.gaps
            filled = ["nan" if field in gaps else field for field in fields]
            try:
                return np.fromiter(map(float, filled), np.float64, count)
            except ValueError:
                odd = {field for field in filled if not is_number(field)}
                words = {field.strip().lower() for field in odd}
                if not words <= MISSING_NUMBERS:
                    return None
                self.any_dash |= not words <= MISSING
                self.gaps |= odd
        return None

    def _safe(self, fields: Sequence[str], values: np.ndarray, zeros: bool, underscores: bool) -> bool:
        """Whether the numbers say the same as the fields."""
        self.any_number = self.any_number or not np.isnan(values).all()
        if underscores and any("_" in field for field in fields):
            return False
        with np.errstate(invalid="ignore"):
            large = bool((np.abs(values) >= EXACT).any())
        return not ((zeros or large) and any(is_code(field) for field in fields))
