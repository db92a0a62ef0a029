"""A plot of curves and bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ..errors import InputError, ShapeError

PALETTE = (
    "#0284c7", "#d97706", "#059669", "#db2777", "#7c3aed", "#475569", "#dc2626", "#84cc16", "#78350f", "#22d3ee",
)  # fmt: skip
STYLE = """
.wl-plot text { font: 12px system-ui, Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #334155; }
.wl-plot .title { font-size: 15px; font-weight: 600; fill: #0f172a; text-anchor: middle; }
.wl-plot .x { text-anchor: middle; } .wl-plot .y { text-anchor: end; }
.wl-plot .grid { stroke: #e2e8f0; } .wl-plot .axis { stroke: #94a3b8; }
.wl-plot .bar { fill-opacity: 0.75; stroke: #ffffff; stroke-width: 0.6; }
.wl-plot .curve { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
"""


@dataclass(frozen=True)
class Curve:
    """Points (x, y) joined by a line, or shown as dots. Not-finite points interrupt the line."""

    x: Any
    y: Any
    label: str = ""
    dashed: bool = False
    dots: bool = False
    colour: str = ""  # the next of the palette if empty


@dataclass(frozen=True)
class Bars:
    """Bars from 0 to n heights, between n + 1 edges. A height that is not finite has no bar."""

    edges: Any
    heights: Any
    label: str = ""
    colour: str = ""


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


def plot(
    curves: Iterable[Curve | Bars | tuple[Any, Any]],
    *,
    title: str = "",
    description: str = "",
    x_label: str = "x",
    y_label: str = "",
    size: tuple[int, int] = (640, 400),
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
) -> str:
    """Curves as the text of an SVG picture.

    >>> import wonderland as wl
    >>> x = wl.linspace(-1.0, 2.5, 50)
    >>> plot([Curve(x, x**2 - 1.5 * x, "f")], title="f(x) = x² - 1.5x").count("<polyline")
    1

    x and y are vectors of one length: lists, arrays or tensors. What leaves `x_range` or `y_range` is cut off.
    `description` is what a screen reader says where the title is not enough. Bars stand behind the curves.

    >>> plot([Bars([0, 1, 2], [3, 1])], title="counts").count('class="bar"')
    2
    """
    drawn = [curve if isinstance(curve, (Curve, Bars)) else Curve(*curve) for curve in curves]
    drawn.sort(key=lambda shape: isinstance(shape, Curve))
    points = [_points(curve) for curve in drawn]
    finite = [p[np.isfinite(p).all(axis=1)] for p in points]
    everything = np.concatenate([*finite, np.empty((0, 2))])
    if not len(everything):
        raise InputError("plot: there is no finite point to show.", "at least one curve with numbers")
    x_low, x_high = span(everything[:, 0], 0.0) if x_range is None else x_range
    y_low, y_high = span(everything[:, 1], 0.06) if y_range is None else y_range
    if y_range is None and y_low < 0 <= everything[:, 1].min() and any(isinstance(shape, Bars) for shape in drawn):
        y_low = 0.0  # bars stand on the axis
    width, height = size
    left, right, top, bottom = 62, width - 20, 46 if title else 20, height - (48 if x_label else 30)
    spoken = escape(description or title or "plot")

    def across(x: Any) -> Any:
        return left + (x - x_low) / (x_high - x_low) * (right - left)

    def down(y: Any) -> Any:
        return bottom - (y - y_low) / (y_high - y_low) * (bottom - top)

    extent = f'width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wl-plot" viewBox="0 0 {width} {height}" {extent} '
        f'role="img" aria-label="{spoken}">',
        f"<title>{spoken}</title><style>{escape(STYLE, quote=False)}</style>",
        f'<rect class="paper" {extent} rx="8" fill="#ffffff"/>',
        f'<text class="title" x="{(left + right) / 2:g}" y="28">{escape(title)}</text>' if title else "",
    ]
    for tick in ticks(x_low, x_high, 6 if width >= 400 else 4):
        lines.append(rule("axis" if tick == 0 else "grid", across(tick), top, across(tick), bottom))
        lines.append(f'<text class="x" x="{across(tick):.1f}" y="{bottom + 18}">{number(tick)}</text>')
    for tick in ticks(y_low, y_high, 6 if height >= 280 else 4):
        lines.append(rule("axis" if tick == 0 else "grid", left, down(tick), right, down(tick)))
        lines.append(f'<text class="y" x="{left - 9}" y="{down(tick) + 4:.1f}">{number(tick)}</text>')
    lines.append(f'<text class="x" x="{(left + right) / 2:g}" y="{height - 12}">{escape(x_label)}</text>')
    if y_label:
        place = f'transform="translate(17 {(top + bottom) / 2:g}) rotate(-90)"'
        lines.append(f'<text class="x" {place}>{escape(y_label)}</text>')
    frame = f'x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"'
    lines.append(f'<svg {frame} viewBox="{left} {top} {right - left} {bottom - top}">')  # cuts off what leaves it
    colours = [curve.colour or PALETTE[i % len(PALETTE)] for i, curve in enumerate(drawn)]
    with np.errstate(over="ignore", invalid="ignore"):  # what is too far away is not finite
        screens = [np.stack([across(xy[:, 0]), down(xy[:, 1])], axis=1) for xy in points]
    for curve, colour, screen in zip(drawn, colours, screens, strict=True):
        if isinstance(curve, Bars):
            lines += _bars(screen, colour, down(0.0))
            continue
        if curve.dots:
            lines += [
                f'<circle cx="{x:.2f}" cy="{y:.2f}" r="4" fill="{colour}"/>' for x, y in screen if np.isfinite(x + y)
            ]
            continue
        dash = ' stroke-dasharray="7 5"' if curve.dashed else ""
        for piece in _pieces(screen):
            path = " ".join(f"{x:.2f},{y:.2f}" for x, y in piece)
            lines.append(f'<polyline class="curve" points="{path}" stroke="{colour}"{dash}/>')
    lines.append("</svg>")
    entries = [(curve, colour) for curve, colour in zip(drawn, colours, strict=True) if curve.label]
    covers = [_cover(curve, screen) for curve, screen in zip(drawn, screens, strict=True)]
    lines += _legend(entries, np.concatenate(covers), (left, right, top, bottom))
    return "\n".join(line for line in [*lines, "</svg>"] if line) + "\n"


def _points(curve: Curve | Bars) -> np.ndarray[Any, Any]:
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


def span(values: np.ndarray[Any, Any], margin: float) -> tuple[float, float]:
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


def _pieces(screen: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The runs of finite points; far outside the picture is as good as at its rim."""
    finite = np.isfinite(screen).all(axis=1)
    cuts = np.flatnonzero(np.diff(finite)) + 1
    runs: Sequence[Any] = np.split(screen.clip(-1e5, 1e5), cuts)
    return [run for run, keep in zip(runs, np.split(finite, cuts), strict=True) if len(run) and keep[0]]


def _bars(screen: np.ndarray[Any, Any], colour: str, ground: float) -> list[str]:
    lines = []
    for (x, _), (end, y) in screen.reshape(-1, 2, 2).clip(-1e5, 1e5):
        if np.isfinite([x, end, y]).all() and y != ground:
            place = f'x="{min(x, end):.2f}" y="{min(y, ground):.2f}"'
            size = f'width="{abs(end - x):.2f}" height="{abs(ground - y):.2f}"'
            lines.append(f'<rect class="bar" {place} {size} fill="{colour}"/>')
    return lines


def rule(kind: str, x0: float, y0: float, x1: float, y1: float) -> str:
    """A straight line: "grid" or "axis"."""
    return f'<line class="{kind}" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>'


def number(tick: float) -> str:
    """A tick as text."""
    return f"{tick:.6g}".replace("-", "−")


def _cover(curve: Curve | Bars, screen: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Points all over what is drawn, which a legend had better not hide."""
    screen = np.nan_to_num(screen, nan=-1e5).clip(-1e5, 1e5)
    along = np.linspace(0.0, 1.0, 12)[:, None]
    if isinstance(curve, Bars):
        ground, corner = screen[0::2], screen[1::2]
        x = (ground[:, 0] + corner[:, 0]) / 2
        y = ground[:, 1] + along * (corner[:, 1] - ground[:, 1])
        return np.stack(np.broadcast_arrays(x, y), axis=-1).reshape(-1, 2)
    if curve.dots or len(screen) > 500:
        return screen
    start, end = screen[:-1, None], screen[1:, None]
    return np.concatenate([screen, (start + along * (end - start)).reshape(-1, 2)])


def _legend(
    entries: list[tuple[Curve | Bars, str]], points: np.ndarray[Any, Any], frame: tuple[float, ...]
) -> list[str]:
    """What the colours mean, in the corner where the fewest points are."""
    if not entries:
        return []
    left, right, top, bottom = frame
    width, height = 52 + 6.8 * max(len(curve.label) for curve, _ in entries), 20 * len(entries) + 8
    corners = [(x, y) for y in (top + 8, bottom - height - 8) for x in (right - width - 8, left + 8)]

    def covered(corner: tuple[float, float]) -> int:
        return int(((points > corner) & (points < np.add(corner, (width, height)))).all(axis=1).sum())

    x, y = min(corners, key=covered)
    box = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="5"'
    lines = [f'<rect class="paper legend" {box} fill="#ffffff" fill-opacity="0.88" stroke="#e2e8f0"/>']
    for number, (curve, colour) in enumerate(entries):
        middle = y + 14 + 20 * number
        if isinstance(curve, Bars):
            place = f'x="{x + 14:.1f}" y="{middle - 5}" width="16" height="10"'
            lines.append(f'<rect class="bar" {place} fill="{colour}"/>')
        elif curve.dots:
            lines.append(f'<circle cx="{x + 22:.1f}" cy="{middle}" r="4" fill="{colour}"/>')
        else:
            dash = ' stroke-dasharray="7 5"' if curve.dashed else ""
            lines.append(f'<path class="curve" d="M{x + 10:.1f},{middle} h24" stroke="{colour}"{dash}/>')
        lines.append(f'<text x="{x + 42:.1f}" y="{middle + 4}">{escape(curve.label)}</text>')
    return lines
