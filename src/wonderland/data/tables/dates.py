"""Dates and times of a table: read from the usual ways of writing them, encoded as calendar and elapsed time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import ClassVar

import numpy as np

from ...core.errors import InputError
from .distinct import used_texts
from .numbers import LIMIT, Values, center_and_scale, unreadable
from .table import Column

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# fmt: off
_LONG = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
         "december")
# fmt: on
_MONTH = {name: i + 1 for names in (MONTHS, _LONG) for i, name in enumerate(names)} | {"sept": 9}
_DAY = 86_400_000_000  # microseconds

_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?"
)
_DATES = [
    r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})",
    r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<short>\d{4}|\d{2})",
    r"(?P<day>\d{1,2})(?:st|nd|rd|th)?[ -]+(?P<name>[A-Za-z]{3,9})\.?,?[ -]+(?P<short>\d{4}|\d{2})",
    r"(?P<name>[A-Za-z]{3,9})\.?[ -]+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?[ -]+(?P<short>\d{4})",
]
_WHOLE = [re.compile(rf"{date}(?:(?:T|,?\s+){_TIME})?") for date in _DATES]
_WHOLE += [
    re.compile(r"(?P<name>[A-Za-z]{3,9})\.?,?[ -]+(?P<short>\d{4})"),
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})"),
    re.compile(r"(?P<year>\d{4})[- ]?[Qq](?P<quarter>[1-4])"),
    re.compile(_TIME),
]
_WEEKDAY = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+", re.IGNORECASE)
_EITHER = re.compile(r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?:\d{4}|\d{2})(?:\D.*)?")


def parse_date(text: str, day_first: bool = False) -> datetime | None:
    """The moment that a text stands for, in UTC if it names a zone; None if it is none.

    >>> print(parse_date("2024-02-29"), parse_date("3/4/2024"), parse_date("3/4/2024", day_first=True))
    2024-02-29 00:00:00 2024-03-04 00:00:00 2024-04-03 00:00:00
    >>> print(parse_date("Tue, 5 Mar 2024 10:30:00 +0200"), parse_date("March 5th, 2024 1 pm"), parse_date("2024Q2"))
    2024-03-05 08:30:00 None 2024-04-01 00:00:00

    A time alone is one of the first of January 1970.
    """
    text = text.strip()
    if not text or not (text[0].isdigit() or text[-1].isdigit() or text[0].isalpha()):
        return None
    found = _match(text)
    if found is None:
        return None
    try:
        return _moment(found, day_first)
    except (ValueError, OverflowError):  # the 30th of February
        return None


def _match(text: str) -> dict[str, str | None] | None:
    weekday = _WEEKDAY.match(text)
    for whole in _WHOLE:
        found = whole.fullmatch(text) or (whole.fullmatch(text, weekday.end()) if weekday else None)
        if found:
            return found.groupdict()
    return None


def _moment(found: dict[str, str | None], day_first: bool) -> datetime:
    def number(name: str, otherwise: int) -> int:
        text = found.get(name)
        return int(text) if text else otherwise

    year, month, day = number("year", 1970), number("month", 1), number("day", 1)
    if short := found.get("short"):
        year = int(short) if len(short) == 4 else int(short) + (1900 if int(short) >= 70 else 2000)
    if found.get("a"):
        first, second = number("a", 1), number("b", 1)
        day, month = (first, second) if day_first else (second, first)
    if name := found.get("name"):
        month = _MONTH.get(name.lower(), 0)  # 0 is no month: a ValueError
    if found.get("quarter"):
        month = 3 * number("quarter", 1) - 2
    hour = number("hour", 0)
    if half := found.get("half"):
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + (12 if half[0] in "pP" else 0)
    part = int(((found.get("part") or "") + "000000")[:6])
    moment = datetime(year, month, day, hour, number("minute", 0), number("second", 0), part)
    zone = found.get("zone")
    if zone and zone[0] in "+-":
        digits = zone[1:].replace(":", "")
        away = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
        moment = moment - away if zone[0] == "+" else moment + away
    return moment


def parse_dates(texts: Sequence[str], day_first: bool = False) -> np.ndarray:
    """The moments of texts, datetime64[us]; NaT where one is none.

    >>> parse_dates(["2024-02-29", "no", "1/2/2024"]).astype("datetime64[D]").astype(str).tolist()
    ['2024-02-29', 'NaT', '2024-01-02']
    """
    found = np.full(len(texts), "NaT", "datetime64[us]")
    left = _iso(texts, found)
    for i in left:
        moment = parse_date(texts[i], day_first)
        if moment is not None:
            found[i] = moment
    return found


def _iso(texts: Sequence[str], found: np.ndarray) -> Iterable[int]:
    """Dates as ISO 8601 writes them, all at once: NumPy reads them; what is not so is left for the careful reader."""
    if len(texts) < 100 or max(map(len, texts)) > 40:
        return range(len(texts))
    table = np.array(texts)
    letters = table.view(np.uint32).reshape(len(texts), -1)
    sizes = np.char.str_len(table)
    done = np.zeros(len(texts), bool)
    for size, pattern in ((10, "0000-00-00"), (19, "0000-00-00T00:00:00"), (16, "0000-00-00T00:00")):
        rows = np.flatnonzero(sizes == size)
        if not len(rows):
            continue
        fits = np.ones(len(rows), bool)
        for place, letter in enumerate(pattern):
            here = letters[rows, place]
            if letter == "0":
                fits &= (here >= ord("0")) & (here <= ord("9"))
            elif letter == "T":
                fits &= (here == ord("T")) | (here == ord(" "))
            else:
                fits &= here == ord(letter)
        rows = rows[fits]
        try:
            found[rows] = table[rows].astype("datetime64[us]")
        except ValueError:  # the 30th of February is among them
            continue
        done[rows] = True
    found[found < np.datetime64("0001-01-01")] = np.datetime64("NaT")  # the year 0, which the careful reader refuses
    return np.flatnonzero(~done).tolist()


def day_or_month_first(texts: Iterable[str]) -> tuple[bool, bool]:
    """Whether days come before months in dates such as 3/4/2024, and whether this is certain.

    >>> day_or_month_first(["3/4/2024", "13/4/2024"]), day_or_month_first(["2024-04-03"])
    ((True, True), (False, True))
    >>> day_or_month_first(["3/4/2024"]), day_or_month_first(["3.4.2024"])
    ((False, False), (True, False))
    """
    day = month = slash = other = 0
    for text in islice(texts, 50_000):
        found = _EITHER.fullmatch(text.strip())
        if found:
            first, second = int(found["a"]), int(found["b"])
            day += first > 12 >= second
            month += second > 12 >= first
            slash += found["mark"] == "/"
            other += found["mark"] != "/"
    if day or month:
        return day > month, not (day and month)
    return other > slash, not (slash or other)


def read_dates(column: Column, form: str = "text", day_first: bool = False) -> tuple[np.ndarray, Values]:
    """The moments of any column, and the words that were none."""
    nothing = Values(np.empty(0), {}, {})
    if column.kind == "date":
        return column.values, nothing
    if column.kind == "number":
        return _of_numbers(column, form)
    texts, codes = used_texts(column)
    parsed = parse_dates(texts, day_first)
    strange = [texts[i] for i in np.flatnonzero(np.isnat(parsed)).tolist()]
    if form != "text" and strange:  # seconds that came as texts
        numbers = np.array([float(t) if t.strip().replace(".", "", 1).isdigit() else np.nan for t in texts])
        moments, _ = _of_numbers(Column(column.name, numbers), form)
        parsed = np.where(np.isnat(parsed), moments, parsed)
        strange = [texts[i] for i in np.flatnonzero(np.isnat(parsed)).tolist()]
    moments = np.append(parsed, np.datetime64("NaT"))[codes]
    if not strange:
        return moments, nothing
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    bad = np.isnan(np.where(np.isnat(parsed), np.nan, 0.0))
    rows, where = np.unique(codes, return_index=True)
    first = dict(zip(rows.tolist(), where.tolist(), strict=True))
    found = [i for i in np.flatnonzero(bad & (counts > 0)).tolist() if texts[i].strip()]
    return moments, Values(np.empty(0), {texts[i]: int(counts[i]) for i in found}, {texts[i]: first[i] for i in found})


FORMS = {"seconds": 1_000_000, "milliseconds": 1000}


def _of_numbers(column: Column, form: str) -> tuple[np.ndarray, Values]:
    x = column.values
    moments = np.full(len(x), "NaT", "datetime64[us]")
    if form in FORMS:
        fits = np.isfinite(x) & (np.abs(np.where(np.isfinite(x), x, 0)) < 2.5e11 * 1_000_000 / FORMS[form])
        moments[fits] = (x[fits] * FORMS[form]).astype(np.int64).astype("datetime64[us]")
    elif form == "digits":  # 20240229
        different, places = np.unique(x[np.isfinite(x)], return_inverse=True)
        texts = [f"{v:.0f}" if v == np.floor(v) and 0 <= v < 1e9 else "" for v in different.tolist()]
        parsed = parse_dates([f"{t[:4]}-{t[4:6]}-{t[6:]}" if len(t) == 8 else "no" for t in texts])
        moments[np.isfinite(x)] = parsed[places]
    rows = np.flatnonzero(np.isnat(moments) & ~np.isnan(x))
    words = {"a number": len(rows)} if len(rows) else {}
    return moments, Values(np.empty(0), words, {"a number": int(rows[0])} if len(rows) else {})


_PARTS = {  # what a part of a date is called, and how many features it has
    "elapsed": ("elapsed",),
    "progress": ("year progress",),
    "month": ("month sine", "month cosine"),
    "weekday": ("weekday sine", "weekday cosine"),
    "hour": ("hour sine", "hour cosine"),
}


@dataclass(frozen=True)
class DateEncoding:
    """A moment: the time since the first one of training, standardised, and where it stands in year, week and day.

    >>> import numpy as np
    >>> days = Column("day", np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]").astype("datetime64[us]"))
    >>> DateEncoding.fit(days).names("day")
    ['day elapsed', 'day year progress', 'day month sine', 'day month cosine', 'day weekday sine', 'day weekday cosine']

    `parts` are those that differ between training rows. A missing date has zeros, the middle of everything.
    """

    form: ClassVar[str] = "date"

    first: str
    center: float  # days since the first moment
    scale: float
    parts: tuple[str, ...] = ("elapsed",)
    source: str = "text"  # what numbers are: "seconds", "milliseconds", "digits"
    day_first: bool = False
    certain: bool = True
    indicator: bool = False
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.scale <= 0 or any(part not in _PARTS for part in self.parts) or parse_date(self.first) is None:
            raise InputError(
                "the parts, the scale or the first moment of a date are not what they should be.",
                "known parts, a scale above 0, a moment as 2024-01-31",
            )

    @classmethod
    def fit(
        cls, column: Column, source: str = "text", day_first: bool | None = None, texts: Iterable[str] = ()
    ) -> DateEncoding:
        """The encoding that suits the rows of a column; `texts` tell the order of days and months."""
        certain = True
        if day_first is None:
            day_first, certain = day_or_month_first(texts)
        moments, strange = read_dates(column, source, day_first)
        missing = np.isnat(moments)
        present = moments[~missing]
        if not len(present):
            raise InputError(f"column {column.name!r}: no value is a date.", "another kind, or 'ignore'")
        first = present.min()
        center, scale = center_and_scale((present - first).astype(np.int64) / _DAY)
        parts = ["elapsed", *(part for part in _PARTS if part != "elapsed" and _varies(present, part))]
        return cls(
            str(first),
            center,
            scale,
            tuple(parts),
            source,
            day_first,
            certain,
            bool(missing.any()),
            tuple(list(strange.words)[:20]),
        )

    def names(self, column: str) -> list[str]:
        """The names of the features."""
        names = [f"{column} {name}" for part in self.parts for name in _PARTS[part]]
        return names + [f"{column} is missing"] * self.indicator

    def encode(self, column: Column, out: np.ndarray, place: Callable[[int], str]) -> list[str]:
        """Write the features of a column to `out`; returns notes."""
        moments, strange = read_dates(column, self.source, self.day_first)
        there = len(column) - int(column.missing.sum())
        notes = unreadable(
            strange.words, strange.first, there, name=column.name, what="date", known=self.words, place=place
        )
        missing = np.isnat(moments)
        shown = np.where(missing, np.datetime64("1970-01-01", "us"), moments)
        at = 0
        for part in self.parts:
            for values in self._values(shown, part):
                out[:, at] = np.where(missing, 0.0, values)
                at += 1
        if self.indicator:
            out[:, at] = missing
        elif count := int(missing.sum()):
            notes.append(f"{column.name}: {count} missing, none in training; taken as the middle")
        return notes

    def _values(self, moments: np.ndarray, part: str) -> list[np.ndarray]:
        if part == "elapsed":
            days = (moments - np.datetime64(self.first, "us")).astype(np.int64) / _DAY
            return [np.clip((days - self.center) / self.scale, -LIMIT, LIMIT)]
        turn = _turn(moments, part)
        if part == "progress":
            return [(turn - 0.5) * np.sqrt(12.0)]  # a uniform distribution gets the deviation 1
        return [np.sin(2 * np.pi * turn), np.cos(2 * np.pi * turn)]

    def describe(self) -> str:
        """How the column is encoded, in a few words."""
        day = "" if self.certain else f"; {'day' if self.day_first else 'month'} first is a guess"
        calendar = f", calendar ({', '.join(self.parts[1:])})" if self.parts[1:] else ""
        words = f"; not dates: {', '.join(repr(w[:20]) for w in self.words[:2])}" if self.words else ""
        return f"elapsed{calendar}{', indicator' if self.indicator else ''}{day}{words}"


def _turn(moments: np.ndarray, part: str) -> np.ndarray:
    """How far a year, a week or a day has come, from 0 to 1. A Monday is the beginning of a week."""
    days = moments.astype("datetime64[D]")
    if part == "weekday":
        return ((days.astype(np.int64) + 3) % 7) / 7
    if part == "hour":
        return (moments - days).astype(np.int64) / _DAY
    years = moments.astype("datetime64[Y]")
    if part == "month":
        return (moments.astype("datetime64[M]") - years.astype("datetime64[M]")).astype(np.int64) / 12
    begin, end = years.astype("datetime64[us]"), (years + 1).astype("datetime64[us]")
    return (moments - begin).astype(np.int64) / (end - begin).astype(np.int64)


def _varies(moments: np.ndarray, part: str) -> bool:
    """Whether a part of the calendar tells rows apart; the weekdays of dates that all begin a month do not."""
    if part == "weekday":
        days = moments.astype("datetime64[D]") - moments.astype("datetime64[M]").astype("datetime64[D]")
        if bool((days == days[0]).all()):
            return False
    turn = _turn(moments, part)
    return bool((turn != turn[0]).any())
