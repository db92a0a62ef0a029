"""Numbers of a table: read from texts such as "$1,234.50", completed by the median, standardised, tails tamed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import numpy as np

from ...core.errors import InputError
from .distinct import number_text, used_texts
from .table import Column

SAMPLE = 20_000  # texts that decide what a column means
LIMIT = 8.0  # standardised numbers end here: one wild value must not decide a prediction
HEAVY = 10.0  # excess kurtosis from which tails are tamed; that of an exponential distribution is 6
# what people write where a number is not known
WORDS = ("", "-", "--", "?", ".", "n/a", "na", "nan", "none", "null", "nil", "unknown", "missing", "not available")

_SIGNS = "$€£¥₹% \u00a0\u202f"
_CURRENCY = re.compile(r"^(?:USD|EUR|GBP|CHF|JPY)\b|\b(?:USD|EUR|GBP|CHF|JPY)$")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_COMMON = re.compile(r"[$€£¥₹]?\d{1,3}(?:,\d{3})*(?:\.\d+)?%?")
_GROUPS = {
    ".": re.compile(r"[+-]?\d{1,3}(?:[,'\u2019\u00a0\u202f ]\d{3})+(?:\.\d*)?"),
    ",": re.compile(r"[+-]?\d{1,3}(?:[.'\u2019\u00a0\u202f ]\d{3})+(?:,\d*)?"),
}
# a number, whose last character is a digit, and what stands behind it: letters, or a sign such as ° or '
_UNIT = re.compile(
    r"[+\-\u2212]?[\d.][^a-zA-Z]*?(?:[eE][+-]?\d{1,3})?(?<=\d)\s?"
    r"([^\W\d_][^\d\s,;:()+-]{0,9}|°[A-Z]?|['\"])"
)
_SPACES = re.compile(r"['\u2019\u00a0\u202f ]")
_COMMA = re.compile(r"[+-]?(?:\d*,(?:\d{1,2}|\d{4,})|\d{1,3}(?:\.\d{3})+,\d+|0,\d+)")
_POINT = re.compile(r"[+-]?(?:\d*\.(?:\d{1,2}|\d{4,})|\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:,\d{3}){2,})")


def parse_number(text: str, decimal: str = ".") -> float:
    """The number that a text stands for; NaN if it is none.

    >>> [parse_number(t) for t in ("1,234.5", "$5", "12 %", "1.5e3", "(3)", "ten")]
    [1234.5, 5.0, 12.0, 1500.0, -3.0, nan]
    >>> parse_number("1.234,5", decimal=",")
    1234.5
    """
    text = text.strip()
    if decimal == "." and _NUMBER.fullmatch(text):
        return float(text)
    if decimal == "." and _COMMON.fullmatch(text):
        return float(text.strip(_SIGNS).replace(",", ""))
    if not text or not any(letter in text for letter in "0123456789"):
        return math.nan
    bare = _bare(text)
    if bare.startswith("(") and bare.endswith(")") and len(bare) > 2:  # accountants write -3 so
        bare = "-" + _bare(bare[1:-1])
    if not bare.isdigit() and _GROUPS[decimal].fullmatch(bare):
        bare = bare.replace("," if decimal == "." else ".", "")
        bare = bare if bare.isdigit() else _SPACES.sub("", bare)
    if decimal == ",":
        bare = bare.replace(",", ".") if bare.count(",") <= 1 else "no"
    return float(bare) if _NUMBER.fullmatch(bare) else math.nan


def _bare(text: str) -> str:
    """A text without signs of currency, per cent, and the typographer's minus."""
    if text[:1].isdigit() and text[-1:].isdigit():
        return text
    sign = {"-": "-", "+": "", "\u2212": "-"}.get(text[:1])
    rest = (text if sign is None else text[1:]).strip(_SIGNS)
    if rest[:1].isalpha() or rest[-1:].isalpha():
        rest = _CURRENCY.sub("", rest).strip(_SIGNS)
    return (sign or "") + rest


def parse_numbers(texts: Sequence[str], decimal: str = ".", unit: str = "") -> np.ndarray:
    """The numbers of texts, which may end with a unit; NaN where one is none."""
    found = np.array([parse_number(text, decimal) for text in without_unit(texts, unit)], np.float64)
    found[np.isinf(found)] = np.nan  # 1e999
    return found


def unit_of(texts: Iterable[str]) -> str:
    """The unit that almost all texts have behind their number; "" if there is none, or several.

    >>> unit_of(["12 mm", "3.5 mm", "7mm"]), unit_of(["12 mm", "3 cm"]), unit_of(["12", "3"]), unit_of(["A1", "B7"])
    ('mm', '', '', '')

    Units of currency, and per cent, may differ from row to row as they always could; others are one for a column,
    because 3 cm and 3 mm are not the same.
    """
    some = [text.strip() for text in islice((text for text in texts if text.strip()), SAMPLE)]
    ends = Counter(found.group(1) for text in some if (found := _UNIT.fullmatch(text)))
    unit, count = ends.most_common(1)[0] if ends else ("", 0)
    return unit if count >= 0.95 * len(some) and math.isnan(parse_number(f"1 {unit}")) else ""


def without_unit(texts: Sequence[str], unit: str) -> Sequence[str]:
    """The texts without the unit at their ends."""
    return [text.strip().removesuffix(unit).rstrip() for text in texts] if unit else texts


def decimal_mark(texts: Iterable[str]) -> str:
    """ "," if texts write one half as 0,5, else ".". One that can be either, as 1,234, says nothing.

    >>> decimal_mark(["1,234", "3,5"]), decimal_mark(["1,234", "3.5"]), decimal_mark(["1,234"])
    (',', '.', '.')
    """
    comma = point = 0
    for text in islice((text for text in texts if "," in text), SAMPLE):
        bare = _bare(text.strip())
        comma += bool(_COMMA.fullmatch(bare))
        point += bool(_POINT.fullmatch(bare))
    return "," if comma > point else "."


@dataclass(frozen=True)
class Values:
    """Numbers read from a column: `numbers` (NaN where there is none), and the words that were none, with rows."""

    numbers: np.ndarray
    words: dict[str, int]  # how often
    first: dict[str, int]  # the row of the first


def read_numbers(column: Column, decimal: str = ".", unit: str = "") -> Values:
    """The numbers of any column.

    >>> found = read_numbers(Column("x", np.array([0, 1, -1, 1], np.int32), ("1,000", "many")))
    >>> found.numbers.tolist(), found.words, found.first
    ([1000.0, nan, nan, nan], {'many': 2}, {'many': 1})
    """
    if column.kind == "number":
        numbers = column.values
        wild = np.isinf(numbers)
        if not wild.any():
            return Values(numbers, {}, {})
        return Values(np.where(wild, np.nan, numbers), {"inf": int(wild.sum())}, {"inf": int(np.argmax(wild))})
    if column.kind == "date":
        there = np.flatnonzero(~column.missing)
        words = {"a date": len(there)} if len(there) else {}
        return Values(np.full(len(column), np.nan), words, {"a date": int(there[0])} if len(there) else {})
    texts, codes = used_texts(column)
    parsed = parse_numbers(texts, decimal, unit)
    return Values(np.append(parsed, np.nan)[codes], *_words(texts, codes, np.isnan(parsed)))


def _words(texts: Sequence[str], codes: np.ndarray, strange: np.ndarray) -> tuple[dict[str, int], dict[str, int]]:
    """The texts that could not be read: how often each occurs, and where first."""
    words: dict[str, int] = {}
    first: dict[str, int] = {}
    if strange.any():
        counts = np.bincount(codes[codes >= 0], minlength=len(texts))
        rows, where = np.unique(codes, return_index=True)
        places = dict(zip(rows.tolist(), where.tolist(), strict=True))
        for code in np.flatnonzero(strange & (counts > 0)).tolist():
            if texts[code].strip():
                words[texts[code]] = int(counts[code])
                first[texts[code]] = places[code]
    return words, first


def unreadable(
    words: dict[str, int],
    first: dict[str, int],
    there: int,
    *,
    name: str,
    what: str,
    known: Iterable[str] = (),
    place: Callable[[int], str],
) -> list[str]:
    """What to say about texts where `what` belongs: notes if they are few, an error if they are most of `there` values.

    Words known from training, and words that mean nothing, are not spoken of.
    """
    usual = {*WORDS, *(word.strip().lower() for word in known)}
    strange = {word: n for word, n in words.items() if word.strip().lower() not in usual}
    count = sum(strange.values())
    if not count:
        return []
    row = min(first[word] for word in strange)
    shown = next(word for word in strange if first[word] == row)
    if 2 * count > there:
        raise InputError(
            f"column {name!r}: {count} of {there} values are no {what}s; {place(row)} has {_short(shown)}.",
            f"{what}s, or leave the values empty where they are not known",
        )
    named = ", ".join(_short(word) for word in list(strange)[:3]) + (", ..." if len(strange) > 3 else "")
    return [f"{name}: {count} value{'s are' if count > 1 else ' is'} no {what} ({named}) and counted as missing"]


def _short(text: str) -> str:
    return repr(text if len(text) <= 24 else text[:21] + "...")


@dataclass(frozen=True)
class NumberEncoding:
    r"""A number: missing ones become the median, then \((x - \text{center}) / \text{scale}\), at most ±8.

    >>> import numpy as np
    >>> x = Column("age", np.array([20.0, 30.0, np.nan, 40.0]))
    >>> encoding = NumberEncoding.fit(x)
    >>> encoding.names("age"), encoding.fill, encoding.indicator
    (['age', 'age is missing'], 30.0, True)

    Where a few values are far from all others the rest would look alike. Such a column also has a feature that is bent:
    `shape` is "log", log(1 + x), for counts, or "tails", asinh of the distance from the median in units of `spread`,
    half the range of the middle half: linear near the median, a logarithm far away. What is proportional to x and what
    is proportional to its logarithm can both be learned. "linear" stands for no such feature.
    `words` are texts of the training rows that were no numbers and count as missing; `decimal` is the mark in texts,
    and `unit` what stands behind their numbers.
    """

    form: ClassVar[str] = "number"

    fill: float
    center: float
    scale: float
    shape: str = "linear"
    spread: float = 1.0
    bent_center: float = 0.0
    bent_scale: float = 1.0
    indicator: bool = False
    decimal: str = "."
    words: tuple[str, ...] = ()
    unit: str = ""

    def __post_init__(self) -> None:
        if min(self.scale, self.spread, self.bent_scale) <= 0:
            raise InputError("the scale of a number is not more than zero.", "a scale above 0")
        if self.shape not in ("linear", "log", "tails") or self.decimal not in (".", ","):
            raise InputError(
                f"the shape {self.shape!r} or the decimal mark {self.decimal!r} is not known.",
                "linear, log or tails; a point or a comma",
            )

    @classmethod
    def fit(cls, column: Column, count: bool = False, decimal: str | None = None) -> NumberEncoding:
        """The encoding that suits the rows of a column."""
        texts = used_texts(column)[0] if column.kind == "text" else []
        unit = unit_of(texts)
        if decimal is None:
            decimal = decimal_mark(without_unit(texts, unit))
        found = read_numbers(column, decimal, unit)
        missing, numbers = np.isnan(found.numbers), bounded(found.numbers)
        present = numbers[~missing]
        if not len(present):
            raise InputError(f"column {column.name!r}: no value is a number.", "another kind, or 'ignore'")
        fill = float(np.median(present))
        shape, spread = ("log", 1.0) if count else _shape_of(present)
        x = np.where(missing, fill, numbers)
        center, scale = center_and_scale(x)
        rough = cls(fill, center, scale, shape, spread)
        bent_center, bent_scale = center_and_scale(rough._bent(x))
        return replace(
            rough,
            bent_center=bent_center,
            bent_scale=bent_scale,
            indicator=bool(missing.any()),
            decimal=decimal,
            words=tuple(list(found.words)[:20]),
            unit=unit,
        )

    def names(self, column: str) -> list[str]:
        """The names of the features."""
        bent = {"linear": [], "log": [f"{column} log"], "tails": [f"{column} tamed"]}[self.shape]
        return [column, *bent] + [f"{column} is missing"] * self.indicator

    def encode(self, column: Column, out: np.ndarray, place: Callable[[int], str]) -> list[str]:
        """Write the features of a column to `out`; returns notes."""
        found = read_numbers(column, self.decimal, self.unit)
        there = len(column) - int(column.missing.sum())
        notes = unreadable(
            found.words, found.first, there, name=column.name, what="number", known=self.words, place=place
        )
        missing = np.isnan(found.numbers)
        x = np.where(missing, self.fill, bounded(found.numbers))
        with np.errstate(over="ignore"):  # what is infinitely far is at the limit
            out[:, 0] = np.clip((x - self.center) / self.scale, -LIMIT, LIMIT)
            if self.shape != "linear":
                out[:, 1] = np.clip((self._bent(x) - self.bent_center) / self.bent_scale, -LIMIT, LIMIT)
        if self.indicator:
            out[:, -1] = missing
        elif count := int(missing.sum()):
            notes.append(f"{column.name}: {count} missing, none in training; the median {_figure(self.fill)} is used")
        return notes

    def _bent(self, x: np.ndarray) -> np.ndarray:
        if self.shape == "log":
            return np.sign(x) * np.log1p(np.abs(x))  # a negative count in new data stays finite
        return np.arcsinh((x - self.fill) / self.spread) if self.shape == "tails" else x

    def describe(self) -> str:
        """How the column is encoded, in a few words."""
        how = {"linear": "", "log": "also log, ", "tails": "also tails tamed, "}[self.shape]
        words = f"; words count as missing: {', '.join(map(_short, self.words[:3]))}" if self.words else ""
        unit = f" {self.unit}" if self.unit else ""
        return f"{how}median {_figure(self.fill)}{unit}{', indicator' if self.indicator else ''}{words}"


def bounded(x: np.ndarray) -> np.ndarray:
    """Numbers whose squares do not overflow."""
    return np.clip(x, -1e150, 1e150)


def center_and_scale(x: np.ndarray) -> tuple[float, float]:
    """The mean and the deviation of numbers; the deviation is 1 where it is rounding alone."""
    largest = float(np.abs(x).max())
    if largest > 1e100 or 0 < largest < 1e-100:  # squares would overflow, or vanish
        center, scale = center_and_scale(x / largest)
        return center * largest, max(scale * largest, 1e-300)
    center, scale = float(x.mean()), float(x.std())
    return center, scale if scale > 10 * np.finfo(np.float64).eps * largest else 1.0


def _shape_of(x: np.ndarray) -> tuple[str, float]:
    """Whether tails are heavy, and the unit in which distances from the median are then measured."""
    x = _even(x)
    low, high = np.quantile(x, [0.25, 0.75])
    center, scale = center_and_scale(x)
    squares = np.square((x - center) / scale)
    if len(x) < 20 or float((squares * squares).mean()) - 3.0 < HEAVY:
        return "linear", 1.0
    spread = max(float(high - low) / 2, 1e-12 * scale)
    if spread <= 1e-3 * scale:  # half of the values are the same: most of the rest has to say what is far
        away = np.abs(x - np.median(x))
        spread = float(np.median(away[away > 0]))
    return "tails", spread


def skewness(x: np.ndarray) -> float:
    """How much longer the right tail is: the mean third power of standardised numbers."""
    x = bounded(_even(x))
    center, scale = center_and_scale(x)
    z = (x - center) / scale
    return float((z * z * z).mean())


def _even(x: np.ndarray) -> np.ndarray:
    """An even choice of numbers, enough to judge their distribution."""
    return x[:: max(1, len(x) // (5 * SAMPLE))]


def _figure(x: float) -> str:
    return number_text(x) if abs(x) < 1e6 and x == round(x, 0) else f"{x:.4g}"
