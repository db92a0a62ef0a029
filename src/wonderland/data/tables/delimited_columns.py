"""Columns that grow by batches of fields: numbers as long as every field is one, else texts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np

from .coded_texts import MISSING, MISSING_NUMBERS, Numbered, clean_text
from .delimited_numbers import EXACT, LONGEST, parse_decimals
from .table import Column


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
    """Whether a text is a whole number that a float would not say as well: 007, or beyond 2**53.

    >>> is_code("007"), is_code("0"), is_code("0.5"), is_code("9007199254740993")
    (True, False, False, True)
    """
    text = text.strip()
    digits = text.removeprefix("-").removeprefix("+")
    return digits.isdecimal() and ((text[0] == "0" and len(text) > 1) or int(digits[:20]) > EXACT)


class Fields:
    """Some fields of a column, as bytes of UTF-8."""

    def __init__(self, fields: Sequence[bytes] | np.ndarray, lengths: np.ndarray | None = None) -> None:
        self.fields = fields  # an array of `S` has them without the zeros at their ends, and fields have no zeros
        self.lengths = np.fromiter(map(len, fields), np.int64, len(fields)) if lengths is None else lengths

    def __len__(self) -> int:
        return len(self.fields)

    def tolist(self, rows: np.ndarray | None = None) -> Sequence[bytes]:
        """All fields, or those of some rows."""
        if isinstance(self.fields, np.ndarray):
            return (self.fields if rows is None else self.fields[rows]).tolist()
        return self.fields if rows is None else [self.fields[row] for row in rows]

    def are_clean(self) -> bool:
        """Whether no field is short or has something like a space at an end, so that all stay as they are."""
        if not isinstance(self.fields, np.ndarray) or self.lengths.min(initial=6) < 6:
            return False
        letters = self.fields.view(np.uint8).reshape(len(self.fields), -1)
        ends = letters[np.arange(len(letters)), self.lengths - 1]
        return all(bool(((part > 32) & (part < 127)).all()) for part in (letters[:, 0], ends))

    def letters(self) -> np.ndarray:
        """The first bytes of each field in a row."""
        packed = self.fields if isinstance(self.fields, np.ndarray) else np.array(self.fields, dtype=f"S{LONGEST}")
        if not packed.dtype.itemsize:
            return np.zeros((len(packed), 1), np.uint8)
        return packed.view(np.uint8).reshape(len(packed), -1)[:, :LONGEST]


class CodedBytes(Numbered[bytes]):
    """Texts that become numbers and stay bytes, half as large, until the column is whole."""

    def __init__(self) -> None:
        super().__init__(b"")

    def clean(self, raw: bytes) -> bytes:
        if len(raw) > 5 and raw.isascii() and raw[0] > 32 and raw[-1] > 32:
            return raw
        return clean_text(raw.decode("utf-8")).encode("utf-8")

    def codes(self, fields: Fields) -> np.ndarray:
        """The numbers of some fields."""
        found = fields.tolist()
        if fields.are_clean():  # what is new is taken in at once, which matters where nearly everything is
            fresh = [text for text in dict.fromkeys(found) if text not in self]
            self.update(zip(fresh, count(len(self.texts)), strict=False))
            self.texts += fresh
        return np.fromiter(map(self.__getitem__, found), np.int32, len(found))


class Growing:
    """An array that grows at its end, where it lies: many small parts would leave holes in the memory.

    >>> numbers = Growing(np.float64)
    >>> numbers.put(0, np.ones(3)); numbers.put(3, np.zeros(2)); numbers.whole()
    array([1., 1., 1., 0., 0.])
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self.array, self.size = np.empty(0, dtype), 0

    def put(self, start: int, values: np.ndarray) -> None:
        """Write values from a place on, which may be behind the end."""
        end = start + len(values)
        if end > len(self.array):
            self.array.resize(max(end, len(self.array) * 5 // 4), refcheck=False)
        self.array[start:end] = values
        self.size = max(self.size, end)

    def whole(self) -> np.ndarray:
        """All of it."""
        self.array.resize(self.size, refcheck=False)
        return self.array


class GrowingColumn:
    """The fields of a column, which come in batches that begin at some row.

    >>> column = GrowingColumn()
    >>> column.add(0, Fields([b"1.50", b"NA"])); column.add(2, Fields([b"-", b"x"]))
    >>> column.unread()  # the rows before it turned out to hold texts are wanted once more
    2
    >>> column.add_again(0, Fields([b"1.50", b"NA"]))
    >>> column.column("a").strings().tolist()
    ['1.50', '', '-', 'x']
    """

    def __init__(self) -> None:
        self.values = Growing(np.float64)
        self.coded: CodedBytes | None = None  # of texts, once there is one
        self.turned = 0  # the row where the batch with the first text begins
        self.any_number = self.any_dash = False

    def add(self, row: int, fields: Fields) -> None:
        """Take the next fields."""
        if self.coded is None:
            values = self._parsed(fields)
            if values is not None:
                self.values.put(row, values)
                return
            self._turn(row)
        self.add_again(row, fields)

    def add_again(self, row: int, fields: Fields) -> None:
        """Take fields as texts."""
        assert self.coded is not None
        self.values.put(row, self.coded.codes(fields))

    def unread(self) -> int:
        """How many rows must be read again as texts, when all were added."""
        if self.coded is None and self.any_dash and not self.any_number:
            self._turn(self.values.size)  # dashes alone are no numbers
        return self.turned

    def column(self, name: str) -> Column:
        """The whole. The numbers of its texts are given up with it."""
        values = self.values.whole()
        if self.coded is None:
            return Column(name, values)
        texts, self.coded = self.coded.texts, None
        return Column(name, values, tuple(map(bytes.decode, texts)))

    def _turn(self, row: int) -> None:
        self.coded, self.turned, self.values = CodedBytes(), row, Growing(np.int32)

    def _parsed(self, fields: Fields) -> np.ndarray | None:
        """The numbers, or None if a float would not say the same as some field."""
        numbers, understood, codes = parse_decimals(fields.letters(), fields.lengths)
        if codes.any():
            return None
        rest = np.flatnonzero(~understood)
        if len(rest):
            others = self._others(fields.tolist(rest))
            if others is None:
                return None
            numbers[rest] = others
        self.any_number = self.any_number or not np.isnan(numbers).all()
        return numbers

    def _others(self, fields: Sequence[bytes]) -> np.ndarray | None:
        """The same for fields that are missing, or numbers that are written in another way."""
        try:
            numbers = np.fromiter(map(float, fields), np.float64, len(fields))
            if b"_" not in b"".join(fields) and np.nanmax(np.abs(numbers), initial=0) < EXACT:
                return numbers
        except ValueError:
            pass
        known: dict[bytes, float] = {}
        for field in set(fields):
            text = field.decode("utf-8").strip()
            word = text.lower()
            if word in MISSING_NUMBERS:
                known[field] = np.nan
                self.any_dash |= word not in MISSING
            elif is_number(text) and not is_code(text):
                known[field] = float(text)
            else:
                return None
        return np.fromiter(map(known.__getitem__, fields), np.float64, len(fields))
