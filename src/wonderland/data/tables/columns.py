"""One column of a schema: its kind, its role, its encoding, and what the user says about it instead."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...core.arguments import shown
from ...core.errors import InputError
from .categories import MOST, CategoryEncoding, OrdinalEncoding
from .dates import DateEncoding, read_dates
from .distinct import distinct, used_texts
from .kinds import ENCODED, KINDS, Guess, guess_kind
from .numbers import NumberEncoding, read_numbers
from .stored import damaged, mapping, plain, restore
from .table import Column, Table
from .texts import TextEncoding

ROLES = ("feature", "target", "group", "time", "left out")
# What can be said about a column beside its kind.
SETTINGS = {"ordinal": ("order",), "date": ("day_first",), "category": ("most",), "text": ("buckets",)}
LEFT_OUT = {
    "image": "load a CSV of file names and labels as images to use the pictures",
    "sound": "load a CSV of file names and labels as sounds to use the recordings",
}


class Encoding(Protocol):
    """How a column becomes features: plain data, made by `fit` from the training rows."""

    @property
    def form(self) -> str: ...

    def names(self, column: str) -> list[str]: ...

    def encode(self, column: Column, out: np.ndarray, place: Callable[[int], str]) -> list[str]: ...

    def describe(self) -> str: ...


ENCODINGS: dict[str, type[Encoding]] = {
    "number": NumberEncoding,
    "category": CategoryEncoding,
    "ordinal": OrdinalEncoding,
    "date": DateEncoding,
    "text": TextEncoding,
}


@dataclass(frozen=True)
class ColumnSchema:
    """What is known of a column.

    - `kind`: one of KINDS; `role`: one of ROLES;
    - `missing`: how many of the `rows` training rows have no value;
    - `reason`: why it is left out, or seen as what it is;
    - `encoding`: how it becomes features; None if it becomes none.
    """

    name: str
    kind: str
    role: str = "feature"
    reason: str = ""
    missing: int = 0
    rows: int = 0
    repeats: bool = False
    encoding: Encoding | None = None

    def feature_names(self) -> list[str]:
        """The names of the features that the column gives."""
        return [] if self.encoding is None else self.encoding.names(self.name)

    def describe(self) -> str:
        """The encoding or the reason, in a few words."""
        if self.encoding is None:
            return f"left out: {self.reason}" if self.role == "left out" else f"{self.role} of rows: {self.reason}"
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.encoding.describe()}{', time' if self.role == 'time' else ''}{why}"

    def to_dict(self) -> dict[str, object]:
        """The column as plain data."""
        found = plain(self)
        if self.encoding is not None:
            found["encoding"] = {"form": self.encoding.form, **plain(self.encoding)}
        return found

    @classmethod
    def of_dict(cls, values: object) -> ColumnSchema:
        """The column of such plain data, checked."""
        table = dict(mapping(values, "a column"))
        where = f"column {table.get('name')!r}"
        stored = table.pop("encoding", None)
        bare = restore(_Bare, table, where)
        if bare.kind not in KINDS or bare.role not in ROLES:
            raise damaged(where, f"the kind {bare.kind!r} or the role {bare.role!r} is not known")
        encoding: Encoding | None = None
        if stored is not None:
            fields = dict(mapping(stored, where))
            form = fields.pop("form", None)
            if not isinstance(form, str) or form not in ENCODINGS:
                raise damaged(where, f"the encoding {shown(form)} is not known")
            encoding = restore(ENCODINGS[form], fields, where)
        return cls(bare.name, bare.kind, bare.role, bare.reason, bare.missing, bare.rows, bare.repeats, encoding)


@dataclass(frozen=True)
class _Bare:
    """A column without its encoding."""

    name: str
    kind: str
    role: str
    reason: str
    missing: int
    rows: int
    repeats: bool


def check_overrides(table: Table, columns: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """What the user says about columns, as a dict with "kind" and settings for each; mistakes are named.

    >>> table = Table("t", {"age": Column("age", np.zeros(3))})
    >>> check_overrides(table, {"age": "number"})
    {'age': {'kind': 'number'}}
    >>> check_overrides(table, {"agee": "number"})
    Traceback (most recent call last):
    wonderland.errors.InputError: columns: t has no column 'agee'...
    """
    if not isinstance(columns, Mapping):
        raise InputError(f"columns: {shown(columns)} is no mapping.", 'names and kinds, as {"age": "number"}')
    found: dict[str, dict[str, object]] = {}
    for name, said in columns.items():
        if name not in table.columns:
            raise InputError(f"columns: {table.name} has no column {name!r}.", near(str(name), table.names))
        given: dict[str, object] = dict(said) if isinstance(said, Mapping) else {"kind": said}
        kind = given.get("kind")
        if not isinstance(kind, str) or kind not in (*KINDS, "ignore"):
            raise InputError(
                f"columns: {name!r} cannot be {shown(kind)}.", near(str(kind), (*KINDS, "ignore"), everything=True)
            )
        for setting, value in given.items():
            _check_setting(name, kind, str(setting), value)
        if kind == "ordinal" and "order" not in given:
            raise InputError(
                f"columns: the order of {name!r} is not said.",
                f'{{"{name}": {{"kind": "ordinal", "order": ["low", "high"]}}}}',
            )
        found[name] = given
    return found


def near(name: str, names: Iterable[str], everything: bool = False) -> str:
    """The remedy for a name that is not known: those that look like it, or all."""
    known = list(names)
    close = [] if everything else difflib.get_close_matches(name, known, 3, 0.6)
    listed = close or known[:12]
    more = ", ..." if not close and len(known) > 12 else ""
    return ("one of " if len(listed) > 1 else "") + ", ".join(map(repr, listed)) + more


def _check_setting(column: str, kind: str, setting: str, value: object) -> None:
    if setting == "kind":
        return
    if setting not in SETTINGS.get(kind, ()):
        allowed = SETTINGS.get(kind, ())
        raise InputError(
            f"columns: {column!r} as {kind} has no setting {setting!r}.",
            f"kind{', ' if allowed else ''}{', '.join(allowed)}",
        )
    if setting == "order":
        levels = list(value) if isinstance(value, list | tuple) else []
        simple = all(isinstance(level, str | int | float) for level in levels)
        if len(levels) < 2 or not simple or len(set(map(str, levels))) < len(levels):
            raise InputError(
                f"columns: the order of {column!r} is {shown(value)}.",
                'two different levels or more, as ["low", "high"]',
            )
    elif setting == "day_first":
        if not isinstance(value, bool):
            raise InputError(f"columns: day_first of {column!r} is {shown(value)}.", "true or false")
    elif not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 100_000:
        raise InputError(f"columns: {setting} of {column!r} is {shown(value)}.", "a whole number from 1 to 100,000")


def column_schema(
    table: Table, name: str, rows: np.ndarray | None, said: Mapping[str, object] | None, role: str = "feature"
) -> ColumnSchema:
    """What is known of a column of a table, from the training rows."""
    column = table[name]
    part = column if rows is None else column.select(rows)
    missing, count = int(part.missing.sum()), len(part)
    if said is not None and said["kind"] == "ignore":
        guess = guess_kind(column, rows)
        return ColumnSchema(name, guess.kind, "left out", "as you say", missing, count)
    guess = guess_kind(column, rows) if said is None else _as_said(table, column, part, said)
    if role == "group":
        return ColumnSchema(name, guess.kind, "group", "rows that belong together", missing, count, guess.repeats)
    if guess.kind not in ENCODED:
        reason = guess.reason or "as you say"
        if guess.kind in LEFT_OUT:
            reason += f"; {LEFT_OUT[guess.kind]}"
        return ColumnSchema(name, guess.kind, "left out", reason, missing, count, guess.repeats)
    encoding = _fitted(column, part, guess, said or {})
    return ColumnSchema(name, guess.kind, role, guess.reason, missing, count, False, encoding)


def _fitted(column: Column, part: Column, guess: Guess, said: Mapping[str, object]) -> Encoding:
    if guess.kind in ("number", "count"):
        return NumberEncoding.fit(part, count=guess.kind == "count")
    if guess.kind == "category":
        most = said.get("most", MOST)
        return CategoryEncoding.fit(part, most if isinstance(most, int) else MOST)
    if guess.kind == "ordinal":
        return OrdinalEncoding.fit(part, _shown_as(part, guess.order), guess.cyclic)
    if guess.kind == "date":
        day_first = said.get("day_first")
        texts = column.texts or ()
        return DateEncoding.fit(part, guess.source, day_first if isinstance(day_first, bool) else None, texts)
    buckets = said.get("buckets")
    return TextEncoding.fit(part, buckets if isinstance(buckets, int) else None)


def _shown_as(part: Column, order: tuple[str, ...]) -> list[str]:
    """The levels of an order, as the column writes them."""
    written = {value.casefold(): value for value in distinct(part)[0]}
    style = next((s for s in (str.upper, str.title, str.capitalize) if all(v == s(v) for v in written.values())), str)
    return [written.get(level.casefold(), style(level)) for level in order]


def _as_said(table: Table, column: Column, part: Column, said: Mapping[str, object]) -> Guess:
    """The kind that the user names, if the values can be that."""
    kind = str(said["kind"])
    there = int((~part.missing).sum())
    if kind in ENCODED and not there:
        return Guess("constant", "everything is missing")
    if kind in ("number", "count"):
        found = guess_kind(column, None)
        fitted = NumberEncoding.fit(part) if found.kind in ("number", "count") else None
        form = (fitted.decimal, fitted.unit) if fitted else ()
        _check_kind(table, column, kind, read_numbers(part, *form).words, there)
        return Guess(kind)
    if kind == "date":
        own = guess_kind(column, None)
        source = own.source if own.kind == "date" else "seconds" if column.kind == "number" else "text"
        moments, strange = read_dates(part, source, bool(said.get("day_first")))
        if 2 * int(np.isnat(moments).sum() - part.missing.sum()) > there and not said.get("day_first"):
            moments, strange = read_dates(part, source, True)
        _check_kind(table, column, kind, strange.words, there)
        return Guess(kind, source=source)
    if kind == "ordinal":
        order = said["order"]
        assert isinstance(order, list | tuple)
        levels = tuple(str(level) for level in order)
        known = {level.casefold() for level in levels}
        if outside := [value for value in distinct(part)[0] if value.casefold() not in known]:
            _refuse(table, column, kind, outside[0], "an order that has it")
        return Guess(kind, "", levels)
    return Guess(kind)


def _check_kind(table: Table, column: Column, kind: str, words: Mapping[str, int], there: int) -> None:
    if 2 * sum(words.values()) > there:
        _refuse(table, column, kind, next(iter(words)), "another kind, or 'ignore'")


def _refuse(table: Table, column: Column, kind: str, word: str, remedy: str) -> None:
    row = 0
    if column.kind == "text":
        texts, codes = used_texts(column)
        row = int(np.argmax(codes == next(i for i, text in enumerate(texts) if text.strip() == word.strip())))
        word = repr(word)
    raise InputError(f"columns: {column.name!r} cannot be {kind}: {table.place(row)} has {word}.", remedy)
