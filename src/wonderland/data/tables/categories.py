"""Categories of a table: one place for each, one for the rare and unseen, one for the missing; and ordered ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...core.errors import InputError
from .distinct import canonical, distinct
from .numbers import center_and_scale
from .table import Column

MOST = 50  # categories with a place of their own, unless the user says how many
KNOWN = 10_000  # categories that a schema remembers by name


def least_examples(rows: int) -> int:
    """How many examples a category needs for a place of its own.

    >>> [least_examples(n) for n in (10, 100, 300, 10_000)]
    [1, 2, 3, 5]
    """
    return 1 if rows < 50 else min(max(rows // 100, 2), 5)


def in_order(values: Sequence[str]) -> list[str]:
    """Categories sorted: as numbers if all are, else as texts.

    >>> in_order(["10", "9"]), in_order(["10", "9", "x"])
    (['9', '10'], ['10', '9', 'x'])
    """
    try:
        return sorted(values, key=lambda value: (float(value), value))
    except ValueError:
        return sorted(values)


@dataclass(frozen=True)
class CategoryEncoding:
    """One of several categories: one-hot.

    >>> import numpy as np
    >>> colour = Column("colour", np.array([0, 1, -1, 0], np.int32), ("red", "blue"))
    >>> encoding = CategoryEncoding.fit(colour)
    >>> encoding.names("colour")
    ['colour=blue', 'colour=red', 'colour is missing']
    >>> out = np.zeros((4, 3))
    >>> encoding.encode(colour, out, str), out.tolist()
    ([], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])

    Rare ones share a place, `other`, and so do those that training never saw. Without rare ones in training nothing
    is known of such a place: an unseen category then gets `shares`, the average of the training rows, and so does a
    missing one if none was missing. `rare` are the rare ones, by name. With very many categories there is one more
    feature: how frequent the category is.
    """

    form: ClassVar[str] = "category"

    categories: tuple[str, ...]
    shares: tuple[float, ...]
    rare: tuple[str, ...] = ()
    other: bool = False
    missing: bool = False
    counts: tuple[float, ...] = ()  # of the categories and the rare ones, if there are very many
    center: float = 0.0
    scale: float = 1.0
    complete: bool = True  # whether categories and rare ones are all that training saw

    def __post_init__(self) -> None:
        if len(self.shares) != len(self.categories) + self.other + self.missing or self.scale <= 0:
            raise InputError(
                "the shares of categories do not fit them, or the scale is zero.", "a share for each, a scale above 0"
            )
        if self.counts and len(self.counts) != len(self.categories) + len(self.rare):
            raise InputError("the counts of categories do not fit them.", "a count for each")

    @classmethod
    def fit(cls, column: Column, most: int = MOST) -> CategoryEncoding:
        """The encoding that suits the rows of a column."""
        values, codes = distinct(column)
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        missing = len(codes) - int(counts.sum())
        least = least_examples(len(codes))
        ranked = sorted(range(len(values)), key=lambda i: (-counts[i], values[i]))
        own = [i for i in ranked[:most] if counts[i] >= least] or ranked[:1]
        categories = in_order([values[i] for i in own])
        number = {values[i]: int(counts[i]) for i in ranked}
        chosen = set(categories)
        rare = [values[i] for i in ranked if values[i] not in chosen]
        seen = [number[c] for c in categories] + [sum(number[r] for r in rare)] * bool(rare) + [missing] * bool(missing)
        shares = tuple(float(n) / len(codes) for n in seen)
        common: dict[str, tuple[float, ...]] = {}
        center, scale = 0.0, 1.0
        if len(values) > most:
            center, scale = center_and_scale(np.log1p(np.append(counts, 0)[codes].astype(np.float64)))
            common = {"counts": tuple(float(number[c]) for c in [*categories, *rare[:KNOWN]])}
        kept = tuple(rare[:KNOWN])
        return cls(
            tuple(categories),
            shares,
            kept,
            bool(rare),
            missing > 0,
            center=center,
            scale=scale,
            complete=len(kept) == len(rare),
            **common,
        )

    def names(self, column: str) -> list[str]:
        """The names of the features."""
        names = [f"{column}={category}" for category in self.categories]
        names += [f"{column} is other"] * self.other + [f"{column} is missing"] * self.missing
        return names + [f"{column} frequency"] * bool(self.counts)

    def encode(self, column: Column, out: np.ndarray, place: Callable[[int], str]) -> list[str]:
        """Write the features of a column to `out`; returns notes."""
        values, codes = distinct(column)
        known = {canonical(text): i for i, text in enumerate((*self.categories, *self.rare))}
        own, average = len(self.categories), -1
        other = own if self.other else average
        places = np.full(len(values) + 1, other, np.int64)  # the last is for missing ones
        numbers = np.zeros(len(values) + 1)
        unseen: list[int] = []
        for code, value in enumerate(values):
            index = known.get(canonical(value), -1)
            if index < 0:
                index = known.get(_TRUTH.get(value, ""), -1)
            if index < 0:
                unseen.append(code)
            elif index < own:
                places[code] = index
            if self.counts:
                # one that is not remembered was seen once or never
                numbers[code] = self.counts[index] if index >= 0 else 1.0
        places[-1] = own + self.other if self.missing else average
        chosen = places[codes]
        width = len(self.shares)
        out[:, :width] = 0
        rows = np.flatnonzero(chosen >= 0)
        out[rows, chosen[rows]] = 1
        if len(rows) < len(chosen):
            out[chosen < 0, :width] = self.shares
        if self.counts:
            out[:, width] = np.clip((np.log1p(numbers[codes]) - self.center) / self.scale, -8, 8)
        return self._notes(column.name, values, codes, unseen)

    def _notes(self, name: str, values: Sequence[str], codes: np.ndarray, unseen: Sequence[int]) -> list[str]:
        notes = []
        if unseen and self.complete:
            counts = np.bincount(codes[codes >= 0], minlength=len(values))
            rows = int(counts[unseen].sum())
            named = sorted(unseen, key=lambda code: -counts[code])
            shown = ", ".join(f"{values[i]!r} ({counts[i]})" for i in named[:3]) + (", ..." if len(named) > 3 else "")
            as_what = "other" if self.other else "the average of training"
            notes.append(f"{name}: {rows} of {len(codes)} rows have unseen categories, {shown}; taken as {as_what}")
        if not self.missing and (gone := int((codes < 0).sum())):
            notes.append(f"{name}: {gone} missing, none in training; taken as the average of training")
        return notes

    def describe(self) -> str:
        """How the column is encoded, in a few words."""
        own = f"one-hot {len(self.categories)}"
        more = "+" if not self.complete else ""
        rest = f", other ({len(self.rare)}{more} rare)" if self.other else ""
        return own + rest + (", missing" if self.missing else "") + (", frequency" if self.counts else "")


_TRUTH = {"1": "True", "0": "False"}  # frames with gaps give flags as numbers


@dataclass(frozen=True)
class OrdinalEncoding:
    """Ordered categories: their place in the order, standardised; missing and unknown ones become the median.

    >>> import numpy as np
    >>> size = Column("size", np.array([0, 2, 1, -1], np.int32), ("s", "l", "m"))
    >>> encoding = OrdinalEncoding.fit(size, ("s", "m", "l"))
    >>> encoding.names("size"), encoding.fill
    (['size', 'size is missing'], 1.0)

    Orders that begin again, as months and weekdays do, also have a sine and a cosine.
    """

    form: ClassVar[str] = "ordinal"

    order: tuple[str, ...]
    fill: float
    center: float
    scale: float
    cyclic: bool = False
    indicator: bool = False

    def __post_init__(self) -> None:
        if len(self.order) < 2 or self.scale <= 0 or len({_level(o) for o in self.order}) < len(self.order):
            raise InputError("an order needs two levels or more, all different.", 'order=["low", "high"]')

    @classmethod
    def fit(cls, column: Column, order: Sequence[str], cyclic: bool = False) -> OrdinalEncoding:
        """The encoding that suits the rows of a column."""
        levels, _ = _levels(column, order)
        present = levels[levels >= 0]
        if not len(present):
            raise InputError(
                f"column {column.name!r}: no value is one of {', '.join(order)}.", "the order of the values"
            )
        fill = float(np.sort(present)[(len(present) - 1) // 2])
        center, scale = center_and_scale(np.where(levels < 0, fill, levels).astype(np.float64))
        return cls(tuple(order), fill, center, scale, cyclic, bool((levels < 0).any()))

    def names(self, column: str) -> list[str]:
        """The names of the features."""
        names = [column, f"{column} sine", f"{column} cosine"] if self.cyclic else [column]
        return names + [f"{column} is missing"] * self.indicator

    def encode(self, column: Column, out: np.ndarray, place: Callable[[int], str]) -> list[str]:
        """Write the features of a column to `out`; returns notes."""
        levels, unseen = _levels(column, self.order)
        gone = levels < 0
        out[:, 0] = (np.where(gone, self.fill, levels) - self.center) / self.scale
        if self.cyclic:
            angle = 2 * np.pi * levels / len(self.order)
            out[:, 1], out[:, 2] = np.where(gone, 0, np.sin(angle)), np.where(gone, 0, np.cos(angle))
        notes = []
        if unseen:
            named = [f"{value!r} ({n})" for value, n in unseen.items()]
            shown = ", ".join(named[:3]) + (", ..." if len(named) > 3 else "")
            notes.append(f"{column.name}: {sum(unseen.values())} rows have unknown levels, {shown}; taken as missing")
        if self.indicator:
            out[:, -1] = gone
        elif gone.any() and (empty := int(gone.sum()) - sum(unseen.values())):
            middle = self.order[int(self.fill)]
            notes.append(f"{column.name}: {empty} missing, none in training; {middle!r} is used")
        return notes

    def describe(self) -> str:
        """How the column is encoded, in a few words."""
        order = " < ".join(self.order if len(self.order) <= 5 else [*self.order[:2], "...", self.order[-1]])
        return order + (", sine and cosine" if self.cyclic else "") + (", indicator" if self.indicator else "")


def _level(text: str) -> str:
    return canonical(text).casefold()


def _levels(column: Column, order: Sequence[str]) -> tuple[np.ndarray, dict[str, int]]:
    """The place of every value in an order, -1 where there is none; values that are not in it, with their counts."""
    values, codes = distinct(column)
    known = {_level(text): i for i, text in enumerate(order)}
    places = np.array([*(known.get(_level(value), -1) for value in values), -1], np.int64)
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    unseen = {value: int(counts[i]) for i, value in enumerate(values) if places[i] < 0}
    return places[codes], unseen
