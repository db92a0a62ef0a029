"""What the columns of a table are: numbers, categories, dates, texts, names of rows ... found by looking at them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .categories import MOST
from .dates import day_or_month_first, parse_dates
from .distinct import distinct, used_texts
from .numbers import decimal_mark, parse_numbers, skewness, unit_of, without_unit
from .table import Column

# fmt: off
KINDS = ("number", "count", "category", "ordinal", "date", "text", "identifier", "constant", "image", "sound")
ENCODED = ("number", "count", "category", "ordinal", "date", "text")  # the others are left out

# Scales that people use. A scale that begins again has its name in CYCLES.
SCALES: dict[str, tuple[str, ...]] = {
    "months": ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
               "november", "december"),
    "short months": ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    "weekdays": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "short weekdays": ("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
    "weekday letters": ("mon", "tues", "wed", "thur", "fri", "sat", "sun"),
    "levels": ("none", "very low", "low", "medium", "high", "very high", "extreme"),
    "middles": ("none", "very low", "low", "moderate", "high", "very high", "extreme"),
    "amounts": ("none", "few", "some", "many", "most", "all"),
    "frequencies": ("never", "rarely", "seldom", "sometimes", "often", "usually", "always"),
    "sizes": ("xxs", "xs", "s", "m", "l", "xl", "xxl", "xxxl"),
    "words of size": ("tiny", "small", "medium", "large", "huge"),
    "agreement": ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    "quality": ("very poor", "poor", "fair", "good", "very good", "excellent"),
    "judgement": ("very bad", "bad", "average", "good", "very good", "excellent"),
    "cuts": ("fair", "good", "very good", "premium", "ideal"),
    "medals": ("bronze", "silver", "gold", "platinum"),
    "ordinals": ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"),
    "ordinal words": ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    "grades": ("f", "d-", "d", "d+", "c-", "c", "c+", "b-", "b", "b+", "a-", "a", "a+"),
    "quarters": ("q1", "q2", "q3", "q4"),
    "degrees": ("mild", "moderate", "severe", "critical"),
    "change": ("decreasing", "stable", "increasing"),
    "places in order": ("beginner", "intermediate", "advanced", "expert"),
}
CYCLES = frozenset({"months", "short months", "weekdays", "short weekdays", "weekday letters", "quarters"})
SIGNS = {"grades": ("+", "-")}  # letters alone may be anything: a scale that needs one of these in its texts
# fmt: on

IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm")
SOUNDS = (".wav", ".mp3", ".flac", ".ogg", ".m4a", ".aiff", ".aif")

ALMOST = 0.95  # the share of values that makes a column what they are
SAMPLE = 5000  # different texts that are looked at

_ID = {"id", "ids", "key", "uuid", "guid", "index", "idx", "rowid", "identifier", "rownum", "rownames", "pk"}
_TIMES = {"t", "time", "day", "days", "date", "week", "month", "quarter", "year", "hour", "step", "trend", "period"}
_UNIX = {"timestamp", "unix", "epoch", "unixtime", "ts", "datetime", "time", "date"}
_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True)
class Guess:
    """What a column seems to be, and why; `settings` are what its encoding has to know."""

    kind: str
    reason: str = ""
    order: tuple[str, ...] = ()
    cyclic: bool = False
    source: str = "text"
    repeats: bool = False  # an identifier that several rows share: it names groups


def name_pieces(name: str) -> list[str]:
    """The words of a name, in small letters.

    >>> name_pieces("customerID"), name_pieces("sold_at"), name_pieces("Unnamed: 0")
    (['customer', 'id'], ['sold', 'at'], ['unnamed', '0'])
    """
    return [piece.lower() for piece in _PIECES.findall(name)]


def says_identifier(name: str) -> bool:
    """Whether a name promises to tell rows apart.

    >>> [says_identifier(n) for n in ("customer_id", "PassengerId", "idea", "Unnamed: 0", "index", "price index")]
    [True, True, False, True, True, False]
    """
    pieces = name_pieces(name)
    if pieces[:1] == ["unnamed"] and len(pieces) <= 2:
        return True
    if pieces and pieces[-1] in {"no", "nr", "index", "key"}:  # "price index" is a number
        return len(pieces) == 1 or pieces[0] in {"row", "record", "sample", "line"}
    return bool(pieces) and (pieces[-1] in _ID or pieces[0] in {"id", "uuid", "guid"})


def guess_kind(column: Column, rows: np.ndarray | None = None) -> Guess:
    """What a column is, by its name and its values; with `rows`, by the values of these.

    >>> guess_kind(Column("age", np.array([31.5, 40.0, np.nan]))).kind
    'number'
    >>> guess_kind(Column("city", np.array([0, 1, 0, 0], np.int32), ("Rome", "Pisa"))).kind
    'category'
    """
    part = column if rows is None else column.select(rows)
    there = ~part.missing
    present = int(there.sum())
    if not present:
        return Guess("constant", "everything is missing")
    if part.kind == "date":
        values = part.values[there]
        if present == len(part) and bool((values == values[0]).all()):
            return Guess("constant", f"always {str(values[0]).removesuffix('T00:00:00.000000')}")
        return Guess("date")
    return _of_numbers(column, part, there) if part.kind == "number" else _of_texts(column.name, part, present)


def _of_numbers(column: Column, part: Column, there: np.ndarray, texts: bool = False) -> Guess:
    """`column` has all rows, in which row numbers are seen; `part` those that are asked."""
    name, values = column.name, part.values[there]
    values = values[np.isfinite(values)]
    if not len(values):
        return Guess("constant", "no finite number")
    if values.min() == values.max():
        if len(values) == len(part):
            return Guess("constant", f"always {distinct(part)[0][0]}")
        return Guess("category", "one value, or missing")
    if not bool((values == np.floor(values)).all()):
        if name_pieces(name) and set(name_pieces(name)) & _UNIX - {"date"} and _moments(values, "seconds"):
            return Guess("date", "Unix seconds", source="seconds")
        return Guess("number")
    if form := _date_form(name, values):
        return Guess("date", {"digits": "yyyymmdd"}.get(form, f"Unix {form}"), source=form)
    if _row_numbers(column):
        return Guess("identifier", "numbers the rows")
    if says_identifier(name):
        different = len(np.unique(values))
        if different >= ALMOST * len(values):
            return Guess("identifier", "almost every value is different")
        if different > MOST:
            return Guess("identifier", f"{different} different, named as an identifier", repeats=True)
        return Guess("category", "few different values, named as an identifier")
    if values.min() >= 0 and values.max() > 10 and len(values) >= 20 and skewness(values) > 1.5:
        return Guess("count")
    return Guess("number")


def _date_form(name: str, values: np.ndarray) -> str:
    """How whole numbers stand for moments, if the name says that they do: "seconds", "milliseconds", "digits" or ""."""
    pieces = set(name_pieces(name))
    if pieces & _UNIX:
        for form in ("seconds", "milliseconds"):
            if _moments(values, form):
                return form
    if pieces & {"date", "day", "ymd", "yyyymmdd"} and values.min() > 1900_00_00 and values.max() < 2101_00_00:
        month, day = values // 100 % 100, values % 100
        if bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all()):
            return "digits"
    return ""


def _moments(values: np.ndarray, form: str) -> bool:
    """Whether all numbers are moments between 1990 and 2070."""
    unit = {"seconds": 1.0, "milliseconds": 1000.0}[form]
    return bool(values.min() > 631e6 * unit and values.max() < 3156e6 * unit)


def _row_numbers(column: Column) -> bool:
    """Whether a column counts the rows from 0 or 1, and its name does not say that it is a time."""
    values = column.values
    if len(values) < 10 or values[0] not in (0, 1) or set(name_pieces(column.name)) & _TIMES:
        return False
    return bool((values[1:] == values[:-1] + 1).all())


def _of_texts(name: str, part: Column, present: int) -> Guess:
    values, codes = used_texts(part)
    if len(values) <= SAMPLE:  # more are too different for it to matter that some say the same
        values, codes = distinct(part)
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    if not values:
        return Guess("constant", "everything is missing")
    if len(values) == 1:
        alone = present == len(part)
        return Guess("constant", f"always {values[0][:40]!r}") if alone else Guess("category", "one value, or missing")
    step = max(1, len(values) // SAMPLE)
    sample, weight = values[::step], counts[::step]
    if _share(_numbers_in(sample), weight) >= ALMOST:
        return _of_number_texts(name, part, sample)
    if order := scale_of(values):
        return Guess("ordinal", "a known order", SCALES[order], order in CYCLES)
    if ending := _ending(sample, weight):
        return Guess(*ending)
    if _share(_dates_in(sample), weight) >= ALMOST:
        return Guess("date")
    return _words(name, sample, len(values), present)


def _of_number_texts(name: str, part: Column, sample: Sequence[str]) -> Guess:
    """Texts that are numbers: what these numbers are."""
    if len(sample) > MOST and any(len(text) > 15 and text.strip().isdigit() for text in sample):
        return Guess("identifier", "numbers of more than 15 digits")
    texts, codes = used_texts(part.select(np.arange(0, len(part), max(1, len(part) // (4 * SAMPLE)))))
    unit = unit_of(sample)
    found = parse_numbers(texts, decimal_mark(without_unit(sample, unit)), unit)
    numbers = Column(name, np.append(found, np.nan)[codes])
    return _of_numbers(numbers, numbers, ~numbers.missing)


def _words(name: str, sample: Sequence[str], different: int, present: int) -> Guess:
    """Texts that are no numbers, dates or files: categories, identifiers or free text."""
    words = float(np.mean([len(text.split()) for text in sample]))
    if says_identifier(name):
        if different >= ALMOST * present and present >= 10:
            return Guess("identifier", "almost every value is different")
        if different > MOST:
            return Guess("identifier", f"{different} different, named as an identifier", repeats=True)
    if different >= ALMOST * present and present >= 10 and words < 1.5:
        return Guess("identifier", "almost every value is different")
    if different <= 20 and (present < 20 or different <= present / 2) and (words < 6 or different <= present / 5):
        return Guess("category")
    if different <= present / 2 and (words < 3 or different <= max(MOST, present / 20)):
        return Guess("category")
    return Guess("text")


def scale_of(values: Sequence[str]) -> str:
    """The name of the known scale to which three or more texts belong, or "".

    >>> scale_of(["High", "low", "medium"]), scale_of(["red", "low", "high"]), scale_of(["a", "b", "c"])
    ('levels', '', '')
    """
    if not 3 <= len(values) <= 13:
        return ""
    found = {value.strip().casefold() for value in values}
    for name, scale in SCALES.items():
        if found <= set(scale):
            signs = SIGNS.get(name)
            if signs is None or any(value.endswith(signs) for value in found):
                return name
    return ""


def _ending(sample: Sequence[str], weight: np.ndarray) -> tuple[str, str] | None:
    for kind, endings in (("image", IMAGES), ("sound", SOUNDS)):
        named = np.array([text.lower().endswith(endings) for text in sample])
        if _share(named, weight) >= ALMOST:
            return kind, f"names of {kind} files"
    return None


def _numbers_in(sample: Sequence[str]) -> np.ndarray:
    first = without_unit(sample[:50], unit_of(sample[:50]))
    if _share(~np.isnan(parse_numbers(first))) + _share(~np.isnan(parse_numbers(first, ","))) < 0.2:
        return np.zeros(len(sample), bool)  # words: no need to look at thousands
    bare = without_unit(sample, unit_of(sample))
    return ~np.isnan(parse_numbers(bare, decimal_mark(bare)))


def _dates_in(sample: Sequence[str]) -> np.ndarray:
    if _share(~np.isnat(parse_dates(sample[:50]))) + _share(~np.isnat(parse_dates(sample[:50], True))) < 0.2:
        return np.zeros(len(sample), bool)
    return ~np.isnat(parse_dates(sample, day_or_month_first(sample)[0]))


def _share(found: np.ndarray, weight: np.ndarray | None = None) -> float:
    if not len(found):
        return 0.0
    return float(np.average(found, weights=weight))
