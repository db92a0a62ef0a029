"""The pictures of a report as data: each can be drawn as SVG for the page, and by `png.py` as a PNG file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..viz.heatmap import heatmap
from ..viz.histogram import binned
from ..viz.plot import Bars, Curve, plot

WIDE = (440, 280)
SQUARE = (400, 370)
SMALL = (300, 170)


@dataclass(frozen=True)
class Plot:
    """Curves and bars in one frame."""

    title: str
    shapes: Sequence[Curve | Bars]
    x_label: str = ""
    y_label: str = ""
    size: tuple[int, int] = WIDE
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None

    def svg(self) -> str:
        return plot(
            self.shapes,
            description=self.title,
            x_label=self.x_label,
            y_label=self.y_label,
            size=self.size,
            x_range=self.x_range,
            y_range=self.y_range,
        )


@dataclass(frozen=True)
class Heat:
    """Counts on shades, with the same names for rows and columns."""

    title: str
    counts: np.ndarray[Any, Any]
    shares: np.ndarray[Any, Any]
    names: Sequence[str]
    x_label: str = ""
    y_label: str = ""

    def svg(self) -> str:
        return heatmap(
            self.counts,
            shares=self.shares,
            rows=self.names,
            columns=self.names,
            description=self.title,
            x_label=self.x_label,
            y_label=self.y_label,
        )


@dataclass(frozen=True)
class Image:
    """Pixels (h, w, 1 or 3), bytes, with what is to be said of them."""

    title: str
    pixels: np.ndarray[Any, Any]


Picture = Plot | Heat | Image


@dataclass
class Section:
    """A part of the page: its heading, its HTML, and pictures by the name of the PNG file that shows them."""

    title: str
    html: str
    pictures: dict[str, list[Picture]] = field(default_factory=dict)


def histogram_of(title: str, values: Any, *, size: tuple[int, int] = SMALL, x_label: str = "") -> Plot:
    """A histogram of the finite ones of some values, of which there must be one; few values have few bins.

    >>> histogram_of("weights", [1.0, 2.0, 2.0]).shapes[0].heights.tolist()
    [1, 0, 0, 0, 2]
    """
    counts, edges = binned(values, int(np.clip(2 * np.sqrt(np.size(values)), 5, 30)))
    return Plot(title, [Bars(edges, counts)], x_label=x_label, size=size)
