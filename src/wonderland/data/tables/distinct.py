"""The different values of a column as texts, so that work is done once per value and not once per row."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .table import Column

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_TRUTH = {"true": "True", "false": "False"}


def canonical(text: str) -> str:
    """The form by which equal values are known, from whatever source they come: a file, a frame, JSON.

    >>> [canonical(t) for t in ("Rome", " Rome ", "007", "7.0", "true", "1.50")]
    ['Rome', 'Rome', '7', '7', 'True', '1.5']
    """
    text = text.strip()
    if not text or text[0] not in "0123456789+-.tTfF":
        return text
    if (truth := _TRUTH.get(text.lower())) is not None:
        return truth
    if len(text) > 15 or not _PLAIN.fullmatch(text):  # longer numbers are not exact: they stay as they are written
        return text
    return number_text(float(text))


def number_text(value: float) -> str:
    """A number as people write it: 3 and not 3.0.

    >>> number_text(3.0), number_text(0.25), number_text(-0.0)
    ('3', '0.25', '0')
    """
    return f"{value + 0.0:.0f}" if value == np.floor(value) and abs(value) < 1e15 else repr(value)


def used_texts(column: Column) -> tuple[list[str], np.ndarray]:
    """The texts that occur in a column of texts, and the codes into them; -1 where one is missing.

    >>> texts, codes = used_texts(Column("x", np.array([2, -1, 0, 2], np.int32), ("a", "b", "c")))
    >>> texts, codes.tolist()
    (['a', 'c'], [1, -1, 0, 1])
    """
    assert column.texts is not None
    occurs = np.zeros(len(column.texts) + 1, bool)  # the last stands for the code -1
    occurs[column.values] = True
    occurs[-1] = False
    if occurs[:-1].all():
        return list(column.texts), column.values
    places = np.cumsum(occurs, dtype=np.int64).astype(np.int32) - 1
    places[-1] = -1
    return [column.texts[i] for i in np.flatnonzero(occurs)], places[column.values]


def distinct(column: Column) -> tuple[list[str], np.ndarray]:
    """The different values of any column as texts, and the codes into them; -1 where one is missing.

    >>> values, codes = distinct(Column("x", np.array([3.0, np.nan, 1.5, 3.0])))
    >>> values, codes.tolist()
    (['1.5', '3'], [1, -1, 0, 1])

    Texts that say the same thing (see `canonical`) are one value.
    """
    if column.kind == "text":
        texts, codes = used_texts(column)
    else:
        codes = np.full(len(column), -1, np.int32)
        there = ~column.missing
        values, codes[there] = np.unique(column.values[there], return_inverse=True)
        if column.kind == "date":
            return [_day(str(v)) for v in values], codes
        texts = [number_text(v) for v in values.tolist()]
    return _merged(texts, codes)


def _merged(texts: Sequence[str], codes: np.ndarray) -> tuple[list[str], np.ndarray]:
    places: dict[str, int] = {}
    shown: list[str] = []
    new = np.empty(len(texts) + 1, np.int32)
    for i, text in enumerate(texts):
        key = canonical(text)
        if key not in places:
            places[key] = len(shown) if key else -1
            if key:
                shown.append(text.strip())
        new[i] = places[key]
    new[-1] = -1
    if len(shown) == len(texts):
        return shown, codes
    return shown, new[codes]


def _day(text: str) -> str:
    return text.removesuffix("T00:00:00.000000")
