"""Regions of the plane that a classifier tells apart, with the data in them. Notes, section 2.1.1."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from ..arguments import as_int
from ..errors import InputError, ShapeError
from .plot import PALETTE, STYLE, number, rule, ticks


def decision_boundary(
    predict: Callable[[Any], Any],
    X: Any,
    y: Any = None,
    *,
    resolution: int = 80,
    title: str = "",
    labels: tuple[str, str] = ("x1", "x2"),
    size: tuple[int, int] = (480, 440),
) -> str:
    """The class that `predict` gives to every place around points (n, 2), as the text of an SVG picture.

    >>> svg = decision_boundary(lambda X: (X[:, 0] > X[:, 1]).astype(int), [[0.0, 1.0], [1.0, 0.0]], [0, 1])
    >>> svg.count("<circle")
    2

    `predict` takes an array (m, 2) and gives m classes: integers or names. The plane is sampled `resolution` times
    along each axis; runs of one class are drawn as one rectangle. Points whose label y (n,) is not
    the one predicted have a dark rim.
    """
    points = np.asarray(X, np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ShapeError(f"decision_boundary: points of shape {points.shape}.", "(n, 2), at least one")
    if not np.isfinite(points).all():
        raise InputError("decision_boundary: some points are not finite.", "points without NaN and infinity")
    truth = None if y is None else np.asarray(y)
    if truth is not None and truth.shape != (len(points),):
        raise ShapeError(f"decision_boundary: labels of shape {truth.shape}.", f"shape ({len(points)},)")
    resolution = as_int("decision_boundary", "resolution", resolution, least=2)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.where(high > low, 0.12 * (high - low), 0.5)
    low, high = low - margin, high + margin
    steps = (np.arange(resolution) + 0.5) / resolution
    grid = np.stack(np.meshgrid(*(low + steps[:, None] * (high - low)).T), axis=-1).reshape(-1, 2)
    regions = _classes(predict, grid).reshape(resolution, resolution)  # rows are the second coordinate, rising
    kinds = sorted({*regions.ravel().tolist(), *(truth.tolist() if truth is not None else [])}, key=str)
    colours = {kind: PALETTE[i % len(PALETTE)] for i, kind in enumerate(kinds)}

    width, height = size
    left, right, top, bottom = 62, width - 20, 46 if title else 20, height - 48
    across = lambda x: left + (x - low[0]) / (high[0] - low[0]) * (right - left)  # noqa: E731 - formulas
    down = lambda x: bottom - (x - low[1]) / (high[1] - low[1]) * (bottom - top)  # noqa: E731
    extent = f'width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wl-plot" viewBox="0 0 {width} {height}" {extent} '
        f'role="img" aria-label="{escape(title or "decision boundary")}">',
        f"<title>{escape(title or 'decision boundary')}</title><style>{escape(STYLE, quote=False)}</style>",
        f'<rect {extent} rx="8" fill="#ffffff"/>',
        f'<text class="title" x="{(left + right) / 2:g}" y="28">{escape(title)}</text>' if title else "",
    ]
    cell_w, cell_h = (right - left) / resolution, (bottom - top) / resolution
    lines.append('<g opacity="0.22">')  # as one layer, so that rectangles may overlap and leave no seams
    for row, line in enumerate(regions):
        cuts = [0, *(np.flatnonzero(line[1:] != line[:-1]) + 1).tolist(), resolution]
        for start, end in pairwise(cuts):
            place = f'x="{left + start * cell_w:.2f}" y="{bottom - (row + 1) * cell_h:.2f}"'
            lines.append(
                f'<rect class="region" {place} width="{(end - start) * cell_w:.2f}" height="{cell_h + 0.3:.2f}" '
                f'fill="{colours[line[start].item()]}"/>'
            )
    lines.append("</g>")
    for tick in ticks(low[0], high[0]):
        lines.append(rule("axis" if tick == 0 else "grid", across(tick), top, across(tick), bottom))
        lines.append(f'<text class="x" x="{across(tick):.1f}" y="{bottom + 18}">{number(tick)}</text>')
    for tick in ticks(low[1], high[1]):
        lines.append(rule("axis" if tick == 0 else "grid", left, down(tick), right, down(tick)))
        lines.append(f'<text class="y" x="{left - 9}" y="{down(tick) + 4:.1f}">{number(tick)}</text>')
    lines.append(f'<text class="x" x="{(left + right) / 2:g}" y="{height - 12}">{escape(labels[0])}</text>')
    place = f'transform="translate(17 {(top + bottom) / 2:g}) rotate(-90)"'
    lines.append(f'<text class="x" {place}>{escape(labels[1])}</text>')
    predicted = _classes(predict, points)
    for i, (a, b) in enumerate(points):
        kind = predicted[i].item() if truth is None else truth[i].item()
        wrong = truth is not None and predicted[i] != truth[i]
        rim = 'stroke="#0f172a" stroke-width="2"' if wrong else 'stroke="#ffffff"'
        place = f'cx="{across(a):.2f}" cy="{down(b):.2f}" r="4.5"'
        lines.append(f'<circle {place} fill="{colours[kind]}" {rim}><title>{escape(str(kind))}</title></circle>')
    return "\n".join(line for line in [*lines, "</svg>"] if line) + "\n"


def _classes(predict: Callable[[Any], Any], X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found = np.asarray(predict(X))
    if found.shape != (len(X),):
        raise ShapeError(
            f"decision_boundary: predict gives shape {found.shape} for {len(X)} points.", "one class per point"
        )
    return found
