"""The frame of a plot: where numbers lie on the screen, and the ticks that say so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..core.typing import Array
from .marks import Mark, line, text

Place = TypeVar("Place", float, Array)


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """About `count` round numbers (1, 2 or 5 times a power of ten apart) from low to high.

    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [round(n * step, 12 - math.floor(math.log10(step))) + 0.0 for n in numbers]


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


def number(tick: float) -> str:
    """A tick as text."""
    return f"{tick:.6g}".replace("-", "−")


def horizontal_ticks(
    numbers: Iterable[float], across: Callable[[float], float], top: float, bottom: float, below: float
) -> list[Mark]:
    """A vertical rule from top to bottom at each number, which is written below it."""
    marks = []
    for tick in numbers:
        x = across(tick)
        marks += [line("grid" if tick else "axis", x, top, x, bottom), text("x", x, bottom + below, number(tick))]
    return marks


@dataclass(frozen=True)
class Frame:
    """The rectangle inside a drawing in which data are shown, between the ends of two ranges, and its labels."""

    size: tuple[int, int]  # of the drawing
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    title: str = ""
    x_label: str = ""
    y_label: str = ""

    @property
    def sides(self) -> tuple[float, float, float, float]:
        """Left, right, top and bottom, in pixels."""
        width, height = self.size
        return 62, width - 20, 46 if self.title else 20, height - (48 if self.x_label else 30)

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
        middle = (left + right) / 2
        marks = [text("title", middle, 28, self.title)] if self.title else []
        marks += horizontal_ticks(ticks(*self.x_range, 6 if width >= 400 else 4), self.across, top, bottom, 18)
        for tick in ticks(*self.y_range, 6 if height >= 280 else 4):
            y = self.down(tick)
            marks += [line("grid" if tick else "axis", left, y, right, y), text("y", left - 9, y + 4, number(tick))]
        if self.x_label:
            marks.append(text("x", middle, height - 12, self.x_label))
        if self.y_label:
            marks.append(text("x", 17, (top + bottom) / 2, self.y_label, turn=-90))
        return marks
