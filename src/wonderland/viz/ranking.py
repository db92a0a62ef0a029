"""Names with a bar each: the largest on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import InputError, ShapeError
from ..core.typing import ArrayLike
from .axes import Frame, numbers, ticks
from .extents import fitted, text_width
from .marks import Drawing, Mark, line, rect, text
from .plot import PALETTE

ROW, BAR = 24.0, 14.0
LONGEST = 190.0  # pixels of a name


@dataclass(frozen=True)
class Ranking:
    """Bars that begin at zero, one below the other, with names and error bars, and what they show in a line."""

    title: str
    names: Sequence[str]
    values: ArrayLike
    errors: ArrayLike | None = None  # half the length of the error bars
    x_label: str = ""
    width: int = 520

    def drawing(self, heading: str = "") -> Drawing:
        """The bars as marks; a heading stands inside, the title beside it."""
        values = np.asarray(self.values, np.float64)
        errors = np.zeros_like(values) if self.errors is None else np.asarray(self.errors, np.float64)
        if values.shape != (len(self.names),) or errors.shape != values.shape:
            raise ShapeError(
                f"ranking: {len(self.names)} names, values of shape {values.shape} and errors of shape {errors.shape}.",
                "one of each",
            )
        if not values.size or not np.isfinite(values).all() or not np.isfinite(errors).all():
            raise InputError("ranking: there are no values, or some are not finite.", "numbers for all names")
        words = [fitted(name, LONGEST) for name in self.names]
        frame = Frame((self.width, 300), (0.0, 1.0), (0.0, 1.0), heading)
        top = frame.sides[2] if heading else 12.0
        bottom = top + ROW * len(words) + 4
        left = 16 + max(text_width(word) for word in words)
        low, high = min(0.0, float((values - errors).min())), max(0.0, float((values + errors).max()))
        high = high if high > low else low + 1.0
        places = ticks(low, high, 4)
        shown = numbers(places)
        for count in (3, 2, 1):  # as many as have room beside each other
            if max(map(text_width, shown)) + 14 <= (self.width - left - 40) / max(len(places) - 1, 1):
                break
            places = ticks(low, high, count)
            shown = numbers(places)
        right = self.width - max(20.0, text_width(shown[-1]) / 2 + 5)

        def across(value: float) -> float:
            return left + (value - low) / (high - low) * (right - left)

        marks: list[Mark] = [
            text("title", self.width / 2, 28 + 19 * i, part) for i, part in enumerate(frame.heading if heading else ())
        ]
        for place, said in zip(places, shown, strict=True):
            x = across(place)
            marks += [line("grid" if place else "axis", x, top, x, bottom), text("x", x, bottom + 16, said)]
        for i, (word, value, error) in enumerate(zip(words, values.tolist(), errors.tolist(), strict=True)):
            middle = top + ROW * (i + 0.5) + 2
            start, end = sorted((across(0.0), across(value)))
            marks.append(text("y", left - 8, middle + 4, word))
            marks.append(
                rect("bar", start, middle - BAR / 2, end - start, BAR, f"{self.names[i]}: {value:.4g}", fill=PALETTE[0])
            )
            if error:
                ends = across(value - error), across(value + error)
                marks.append(line("", *(ends[0], middle), *(ends[1], middle), stroke="#475569", stroke_width=1.5))
        height = bottom + 26
        if self.x_label:
            middle = (left + right) / 2
            room = 2 * min(middle, self.width - middle) - 8
            marks.append(text("x", middle, height + 10, fitted(self.x_label, room)))
            height += 20
        return Drawing((float(self.width), height), marks, self.title)


def ranking(
    names: Sequence[str],
    values: ArrayLike,
    errors: ArrayLike | None = None,
    *,
    title: str = "",
    description: str = "",
    x_label: str = "",
    width: int = 520,
) -> str:
    """Names with a bar each, from top to bottom, as the text of an SVG picture.

    >>> ranking(["age", "city"], [0.3, 0.1], [0.02, 0.01], title="what matters").count('class="bar"')
    2

    `errors` are half the lengths of error bars. Long names are cut; the whole is said when a bar is pointed at.
    """
    shown = Ranking(description or title or "bars", names, values, errors, x_label, width)
    return shown.drawing(title).svg()
