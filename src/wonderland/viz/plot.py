"""A plot of curves and bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..storage.svg import SVG
from .axes import Frame, check_scale, span
from .extents import fitted, text_width
from .marks import Drawing, Mark, circle, line, polyline, rect, text, window

PALETTE = (
    "#0284c7", "#d97706", "#059669", "#db2777", "#7c3aed", "#475569", "#dc2626", "#84cc16", "#78350f", "#22d3ee",
)  # fmt: skip

KEY, LINE = 52.0, 20.0  # pixels of a legend's signs and margins, and of its lines
WIDEST, HIGHEST = 0.62, 0.5  # shares of a frame that a legend inside may have


@dataclass(frozen=True)
class Curve:
    """Points (x, y) joined by a line, or shown as dots. Not-finite points interrupt the line."""

    x: ArrayLike
    y: ArrayLike
    label: str = ""
    dashed: bool = False
    dots: bool = False
    colour: str = ""  # the next of the palette if empty


@dataclass(frozen=True)
class Bars:
    """Bars from 0 to n heights, between n + 1 edges. A height that is not finite has no bar."""

    edges: ArrayLike
    heights: ArrayLike
    label: str = ""
    colour: str = ""


def plot(
    curves: Iterable[Curve | Bars | tuple[ArrayLike, ArrayLike]],
    *,
    title: str = "",
    description: str = "",
    x_label: str = "x",
    y_label: str = "",
    size: tuple[int, int] = (640, 400),
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    x_scale: str = "plain",
    y_scale: str = "plain",
) -> SVG:
    """Curves as the text of an SVG picture.

    >>> import wonderland as wl
    >>> x = wl.linspace(-1.0, 2.5, 50)
    >>> plot([Curve(x, x**2 - 1.5 * x, "f")], title="f(x) = x² - 1.5x").count("<polyline")
    1

    x and y are vectors of one length: lists, arrays or tensors. What leaves `x_range` or `y_range` is cut off.
    `description` is what a screen reader says where the title is not enough. Bars stand behind the curves. A scale is
    "plain", "whole" (ticks at whole numbers only) or "log" (powers of ten; numbers that are not positive are left out).

    >>> plot([Bars([0, 1, 2], [3, 1])], title="counts").count('class="bar"')
    2
    """
    spoken = description or title or "plot"
    shown = Plot(spoken, list(curves), x_label, y_label, size, x_range, y_range, x_scale, y_scale)
    return shown.drawing(title).svg()


@dataclass(frozen=True)
class Plot:
    """Curves and bars in one frame, and what they show in a line."""

    title: str
    shapes: Sequence[Curve | Bars | tuple[ArrayLike, ArrayLike]]
    x_label: str = ""
    y_label: str = ""
    size: tuple[int, int] = (440, 280)
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    x_scale: str = "plain"
    y_scale: str = "plain"

    def drawing(self, heading: str = "") -> Drawing:
        """The plot as marks; a heading stands inside, the title beside it."""
        drawn = [curve if isinstance(curve, (Curve, Bars)) else Curve(*curve) for curve in self.shapes]
        drawn.sort(key=lambda shape: isinstance(shape, Curve))
        points = [self._scaled(_points(curve)) for curve in drawn]
        finite = [p[np.isfinite(p).all(axis=1)] for p in points]
        everything = np.concatenate([*finite, np.empty((0, 2))])
        if not len(everything):
            raise InputError("plot: there is no finite point to show.", "at least one curve with numbers")
        x_low, x_high = _ends(self.x_range, self.x_scale) or _around(everything[:, 0], 0.0, self.x_scale)
        y_low, y_high = _ends(self.y_range, self.y_scale) or _around(everything[:, 1], 0.06, self.y_scale)
        if self.y_range is None and y_low < 0 <= everything[:, 1].min() and isinstance(drawn[0], Bars):
            y_low = 0.0  # bars stand on the axis
        labels = heading, self.x_label, self.y_label
        frame = Frame(self.size, (x_low, x_high), (y_low, y_high), *labels, self.x_scale, self.y_scale)
        left, right, top, bottom = frame.sides
        colours = [curve.colour or PALETTE[i % len(PALETTE)] for i, curve in enumerate(drawn)]
        with np.errstate(over="ignore", invalid="ignore"):  # what is too far away is not finite
            screens = [np.stack([frame.across(xy[:, 0]), frame.down(xy[:, 1])], axis=1) for xy in points]
        shapes = [
            mark
            for curve, colour, screen in zip(drawn, colours, screens, strict=True)
            for mark in _shapes(curve, colour, screen, frame.down(0.0))
        ]
        entries = [(curve, colour) for curve, colour in zip(drawn, colours, strict=True) if curve.label]
        covers = [_cover(curve, screen) for curve, screen in zip(drawn, screens, strict=True)]
        legend, below = _legend(entries, np.concatenate(covers), frame)
        marks = [*frame.marks(), window(left, top, right - left, bottom - top, shapes), *legend]
        return Drawing((self.size[0], self.size[1] + below), marks, self.title)

    def _scaled(self, points: Array) -> Array:
        """Points (n, 2) as they lie on the axes: by their exponents where an axis has powers of ten."""
        for k, (name, scale) in enumerate((("x_scale", self.x_scale), ("y_scale", self.y_scale))):
            if check_scale(name, scale) == "log":
                with np.errstate(divide="ignore", invalid="ignore"):
                    points[:, k] = np.log10(points[:, k])
        return points


def _ends(given: tuple[float, float] | None, scale: str) -> tuple[float, float] | None:
    if given is None or scale != "log":
        return given
    if not 0 < given[0] < given[1]:
        raise InputError(f"plot: the range {given} on an axis of powers of ten.", "two positive numbers, rising")
    return float(np.log10(given[0])), float(np.log10(given[1]))


def _around(values: Array, margin: float, scale: str) -> tuple[float, float]:
    """The range of an axis: all values, and a margin; of one whole number or power of ten half a step around it."""
    if scale != "plain" and np.ptp(values) == 0:
        return float(values[0]) - 0.5, float(values[0]) + 0.5
    return span(values, margin)


def _points(curve: Curve | Bars) -> Array:
    if isinstance(curve, Bars):
        edges, heights = np.asarray(curve.edges, float), np.asarray(curve.heights, float)
        if heights.ndim != 1 or edges.shape != (len(heights) + 1,):
            raise ShapeError(
                f"plot: bars have edges of shape {edges.shape} and heights of shape {heights.shape}.",
                "n heights between n + 1 edges",
            )
        # for each bar its left end on the axis and its right upper corner
        ends = np.stack([edges[:-1], np.zeros_like(heights), edges[1:], heights], axis=1)
        return ends.reshape(-1, 2)
    x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(
            f"plot: a curve has x of shape {x.shape} and y of shape {y.shape}.", "two vectors of one length"
        )
    return np.stack([x, y], axis=1)


def _shapes(curve: Curve | Bars, colour: str, screen: Array, ground: float) -> list[Mark]:
    if isinstance(curve, Bars):
        return [
            rect("bar", min(x, end), min(y, ground), abs(end - x), abs(ground - y), fill=colour)
            for (x, _), (end, y) in screen.reshape(-1, 2, 2).clip(-1e5, 1e5)
            if np.isfinite([x, end, y]).all() and y != ground
        ]
    if curve.dots:
        return [circle(x, y, 4, fill=colour) for x, y in screen if np.isfinite(x + y)]
    return [
        polyline("curve", piece, stroke=colour, **_dash(curve))
        if len(piece) > 1
        else circle(float(piece[0, 0]), float(piece[0, 1]), 3, fill=colour)  # a line of one point would not be seen
        for piece in _pieces(screen)
    ]


def _dash(curve: Curve) -> dict[str, str]:
    return {"stroke_dasharray": "7 5"} if curve.dashed else {}


def _pieces(screen: Array) -> list[Array]:
    """The runs of finite points; far outside the picture is as good as at its rim."""
    finite = np.isfinite(screen).all(axis=1)
    cuts = np.flatnonzero(np.diff(finite)) + 1
    runs: Sequence[Array] = np.split(screen.clip(-1e5, 1e5), cuts)
    return [run for run, keep in zip(runs, np.split(finite, cuts), strict=True) if len(run) and keep[0]]


def _cover(curve: Curve | Bars, screen: Array) -> Array:
    """Points all over what is drawn, which a legend had better not hide."""
    screen = np.nan_to_num(screen, nan=-1e5).clip(-1e5, 1e5)
    along = np.linspace(0.0, 1.0, 12)[:, None]
    if isinstance(curve, Bars):
        ground, corner = screen[0::2], screen[1::2]
        y = ground[:, 1] + along * (corner[:, 1] - ground[:, 1])
        sides = [ground[:, 0] + share * (corner[:, 0] - ground[:, 0]) for share in (0.1, 0.5, 0.9)]
        return np.concatenate([np.stack(np.broadcast_arrays(x, y), axis=-1).reshape(-1, 2) for x in sides])
    if curve.dots or len(screen) > 500:
        return screen
    start, end = screen[:-1, None], screen[1:, None]
    return np.concatenate([screen, (start + along * (end - start)).reshape(-1, 2)])


def _legend(entries: list[tuple[Curve | Bars, str]], points: Array, frame: Frame) -> tuple[list[Mark], float]:
    """What the colours mean, in the corner where the fewest points are; and how much room below the frame it needs,
    where it goes if it is too large for a corner."""
    if not entries:
        return [], 0.0
    left, right, top, bottom = frame.sides
    width, height = KEY + max(text_width(curve.label) for curve, _ in entries), LINE * len(entries) + 8
    if width > WIDEST * (right - left) or height > HIGHEST * (bottom - top):
        return _legend_below(entries, width, frame)
    corners = [(x, y) for y in (top + 8, bottom - height - 8) for x in (right - width - 8, left + 8)]

    def covered(corner: tuple[float, float]) -> int:
        return int(((points > corner) & (points < np.add(corner, (width, height)))).all(axis=1).sum())

    x, y = min(corners, key=covered)
    marks = [rect("paper legend", x, y, width, height, rx=5, fill="#ffffff", fill_opacity="0.88", stroke="#e2e8f0")]
    for number, (curve, colour) in enumerate(entries):
        marks += _entry(curve, colour, x, y + 14 + LINE * number, curve.label)
    return marks, 0.0


def _legend_below(entries: list[tuple[Curve | Bars, str]], width: float, frame: Frame) -> tuple[list[Mark], float]:
    """The legend in columns under the picture."""
    room = frame.size[0] - 16
    columns = max(1, int(room // width))
    width = min(width, room)
    marks: list[Mark] = []
    for number, (curve, colour) in enumerate(entries):
        row, column = divmod(number, columns)
        middle = frame.size[1] + 12 + LINE * row
        marks += _entry(curve, colour, 8 + width * column, middle, fitted(curve.label, width - KEY))
    return marks, 8 + LINE * -(-len(entries) // columns)


def _entry(curve: Curve | Bars, colour: str, x: float, middle: float, words: str) -> list[Mark]:
    """A line of the legend."""
    if isinstance(curve, Bars):
        sign = rect("bar", x + 14, middle - 5, 16, 10, fill=colour)
    elif curve.dots:
        sign = circle(x + 22, middle, 4, fill=colour)
    else:
        sign = line("curve", x + 10, middle, x + 34, middle, stroke=colour, **_dash(curve))
    return [sign, text("", x + 42, middle + 4, words)]
