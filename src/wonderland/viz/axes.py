"""The frame of a plot: where numbers lie on the screen, and the ticks that say so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from ..core.errors import InputError
from ..core.typing import Array
from .extents import fitted, text_width, wrapped
from .marks import Mark, line, text

Place = TypeVar("Place", float, Array)

SCALES = ("plain", "whole", "log")  # of an axis: numbers, whole numbers such as epochs, powers of ten
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
LARGE, SMALL = 1e6, 1e-4  # from here on, and below, numbers are written with a power of ten
APART = 12.0  # pixels between the texts of two ticks
TITLE = 15.0  # pixels of its letters
TITLE_LINE = 19.0


class Tick(NamedTuple):
    """A place on an axis, and what stands there."""

    place: float
    words: str


def ticks(low: float, high: float, count: int = 6, least: float = 0.0) -> list[float]:
    """About `count` round numbers (1, 2 or 5 times a power of ten apart, and at least `least`) from low to high.

    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    raw = max((high - low) / count, least)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [round(n * step, 12 - math.floor(math.log10(step))) + 0.0 for n in numbers]


def power_ticks(low: float, high: float, count: int = 6) -> list[Tick]:
    """Powers of ten between 10^low and 10^high; of a short stretch also 2 and 5 times one.

    >>> [tick.words for tick in power_ticks(-4.2, -1.0)], [tick.words for tick in power_ticks(-3.0, -2.2)]
    (['10⁻⁴', '10⁻³', '10⁻²', '10⁻¹'], ['10⁻³', '2×10⁻³', '5×10⁻³'])
    """
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last - first >= 2 or high - low > 2:
        step = max(1, math.ceil((last - first) / count))
        return [Tick(float(n), power_of_ten(n)) for n in range(first, last + 1) if (n - first) % step == 0]
    found = []
    for n in range(first - 1, last + 1):
        for m in (1, 2, 5):
            if low - 1e-9 <= (place := n + math.log10(m)) <= high + 1e-9:
                found.append(Tick(place, power_of_ten(n) if m == 1 else f"{m}×{power_of_ten(n)}"))
    if len(found) >= 2:
        return found
    values = ticks(10.0**low, 10.0**high, max(count // 2, 1))  # so short that it is as good as straight
    return [Tick(math.log10(v), words) for v, words in zip(values, numbers(values), strict=True) if v > 0]


def power_of_ten(n: int) -> str:
    """
    >>> power_of_ten(-3), power_of_ten(0)
    ('10⁻³', '1')
    """
    return "1" if n == 0 else "10" if n == 1 else "10" + str(n).translate(SUPERSCRIPTS)


def span(values: Array, margin: float) -> tuple[float, float]:
    """A range that holds finite values, with a margin in shares of its size; it is never empty.

    >>> span(np.array([0.0, 10.0]), 0.1), span(np.array([4.0]), 0.1)
    ((-1.0, 11.0), (2.0, 6.0))
    """
    low, high = (float(end) for end in np.clip([values.min(), values.max()], -1e300, 1e300))
    size = max(abs(low), abs(high))
    if high - low <= max(1e-14 * size, 1e-300):  # no ticks would fit in between
        pad = 0.5 * size or 0.5
        return low - pad, high + pad
    return low - margin * (high - low), high + margin * (high - low)


def numbers(values: Sequence[float]) -> list[str]:
    """Ticks as texts, with as many digits as they need to differ.

    >>> numbers([0.0, 0.5, 1.0]), numbers([-2e-7, 4e-7]), numbers([400_000.5, 400_000.6])
    (['0', '0.5', '1.0'], ['−2×10⁻⁷', '4×10⁻⁷'], ['400000.5', '400000.6'])
    """
    largest = max((abs(value) for value in values), default=0.0)
    steps = [abs(b - a) for a, b in pairwise(values)]
    step = min(steps, default=0.0) or largest
    if not largest:
        return ["0"] * len(values)
    power = math.floor(math.log10(min(abs(value) for value in values if value)) + 1e-9)
    scaled = not SMALL <= largest < LARGE
    if scaled and not -300 < power < 308:  # 10^power has too few digits itself
        return [f"{value:.2g}".replace("-", "−") if value else "0" for value in values]
    unit = 10.0**power if scaled else 1.0  # one for all of them
    digits = _decimals(step / unit) if len(values) > 1 else _digits(largest / unit)
    tail = f"×{power_of_ten(power)}" if unit != 1.0 else ""
    return [f"{value / unit:.{digits}f}{tail}".replace("-", "−") if value else "0" for value in values]


def _decimals(step: float) -> int:
    """Digits behind the point that tell numbers apart which are so far from each other."""
    return int(np.clip(-math.floor(math.log10(step) + 1e-9), 0, 12))


def _digits(value: float) -> int:
    """Digits behind the point that a number has, of at most six that matter."""
    return max(0, len(f"{value:.6g}".partition("e")[0].partition(".")[2]))


def horizontal_ticks(
    places: Iterable[float], across: Callable[[float], float], top: float, bottom: float, below: float
) -> list[Mark]:
    """A vertical rule from top to bottom at each number, which is written below it."""
    found = list(places)
    return _vertical_rules(list(map(Tick, found, numbers(found))), across, top, bottom, below)


def _vertical_rules(
    found: Iterable[Tick], across: Callable[[float], float], top: float, bottom: float, below: float
) -> list[Mark]:
    marks = []
    for tick, words in found:
        x = across(tick)
        marks += [line(_rule(words), x, top, x, bottom), text("x", x, bottom + below, words)]
    return marks


def _rule(words: str) -> str:
    """The kind of a line: that of zero is an axis."""
    return "axis" if words == "0" else "grid"


def check_scale(name: str, scale: str) -> str:
    """One of the scales that an axis may have."""
    if scale not in SCALES:
        raise InputError(f"plot: {name}={scale!r}.", f"one of {', '.join(SCALES)}")
    return scale


def ticks_of(scale: str, ends: tuple[float, float], count: int) -> list[Tick]:
    """The ticks of an axis; the ends of one of powers of ten are exponents."""
    if scale == "log":
        return power_ticks(*ends, count)
    found = ticks(*ends, count, least=1.0 if scale == "whole" else 0.0)
    return list(map(Tick, found, numbers(found)))


def _aside(found: Sequence[Tick]) -> float:
    """The room on the right for the half of the last tick's text."""
    return max(20.0, text_width(found[-1].words) / 2 + 5) if found else 20.0


@dataclass(frozen=True)
class Frame:
    """The rectangle inside a drawing in which data are shown, between the ends of two ranges, and its labels.

    Where a scale is "log", range and data are the exponents of ten.
    """

    size: tuple[float, float]  # of the drawing
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_scale: str = "plain"
    y_scale: str = "plain"

    @cached_property
    def x_ticks(self) -> list[Tick]:
        """As many as have room beside each other."""
        low, high = self.x_range
        for count in range(6 if self.size[0] >= 400 else 4, 0, -1):
            found = ticks_of(self.x_scale, self.x_range, count)
            widest = max((text_width(words) for _, words in found), default=0.0)
            closest = min((b.place - a.place for a, b in pairwise(found)), default=high - low)
            if closest / (high - low) * (self.size[0] - self._left - _aside(found)) >= widest + APART:
                return found
        return found[:1]

    @cached_property
    def y_ticks(self) -> list[Tick]:
        """As many as have room above each other."""
        top, bottom = self._upright
        return ticks_of(self.y_scale, self.y_range, int(np.clip((bottom - top) / 30, 1, 6)))

    @property
    def _upright(self) -> tuple[float, float]:
        """Top and bottom."""
        top = 27 + TITLE_LINE * len(self.heading) if self.heading else 20.0
        return top, self.size[1] - (48 if self.x_label else 30)

    @cached_property
    def heading(self) -> list[str]:
        """The title in lines."""
        return wrapped(self.title, self.size[0] - 24, TITLE, bold=True, lines=1 if self.size[1] < 220 else 3)

    @cached_property
    def sides(self) -> tuple[float, float, float, float]:
        """Left, right, top and bottom, in pixels: what is written beside them has room."""
        top, bottom = self._upright
        return self._left, self.size[0] - _aside(self.x_ticks), top, bottom

    @property
    def _left(self) -> float:
        """The room for the numbers on the left."""
        widest = max((text_width(words) for _, words in self.y_ticks), default=0.0)
        return max(62.0, 9 + widest + (28 if self.y_label else 6))

    def across(self, x: Place) -> Place:
        left, right, _, _ = self.sides
        return left + (x - self.x_range[0]) / (self.x_range[1] - self.x_range[0]) * (right - left)

    def down(self, y: Place) -> Place:
        _, _, top, bottom = self.sides
        return bottom - (y - self.y_range[0]) / (self.y_range[1] - self.y_range[0]) * (bottom - top)

    def marks(self) -> list[Mark]:
        """The title, rules with their numbers, and the labels."""
        left, right, top, bottom = self.sides
        width, height = self.size
        middle, centre = (left + right) / 2, (top + bottom) / 2
        marks = [text("title", width / 2, 28 + TITLE_LINE * i, part) for i, part in enumerate(self.heading)]
        marks += _vertical_rules(self.x_ticks, self.across, top, bottom, 18)
        for tick, words in self.y_ticks:
            y = self.down(tick)
            marks += [line(_rule(words), left, y, right, y), text("y", left - 9, y + 4, words)]
        if self.x_label:
            room = 2 * min(middle, width - middle) - 8
            marks.append(text("x", middle, height - 12, fitted(self.x_label, room)))
        if self.y_label:
            room = 2 * min(centre, height - centre) - 8
            marks.append(text("x", 17, centre, fitted(self.y_label, room), turn=-90))
        return marks
