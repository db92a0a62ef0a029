"""Regions of the plane that a classifier tells apart, with the data in them. Notes, section 2.1.1."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ..core.arguments import as_int
from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..storage.svg import SVG
from .axes import Frame
from .marks import Drawing, circle, group, rect
from .plot import PALETTE


def decision_boundary(
    predict: Callable[[Array], ArrayLike],
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    resolution: int = 80,
    title: str = "",
    labels: tuple[str, str] = ("x1", "x2"),
    size: tuple[int, int] = (480, 440),
) -> SVG:
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

    frame = Frame(size, (low[0], high[0]), (low[1], high[1]), title, *labels)
    left, right, top, bottom = frame.sides
    wide, tall = (right - left) / resolution, (bottom - top) / resolution
    shades = []
    for row, line in enumerate(regions):
        cuts = [0, *(np.flatnonzero(line[1:] != line[:-1]) + 1).tolist(), resolution]
        for start, end in pairwise(cuts):
            place = (left + start * wide, bottom - (row + 1) * tall, (end - start) * wide, tall + 0.3)
            shades.append(rect("region", *place, fill=colours[line[start].item()]))
    predicted = _classes(predict, points)
    dots = []
    for i, (a, b) in enumerate(points):
        kind = predicted[i].item() if truth is None else truth[i].item()
        wrong = truth is not None and predicted[i] != truth[i]
        rim = {"stroke": "#0f172a", "stroke_width": 2} if wrong else {"stroke": "#ffffff"}
        dots.append(circle(frame.across(a), frame.down(b), 4.5, str(kind), fill=colours[kind], **rim))
    # regions are one layer, so that rectangles may overlap and leave no seams
    marks = [group(shades, opacity="0.22"), *frame.marks(), *dots]
    return Drawing(size, marks, title or "decision boundary").svg()


def _classes(predict: Callable[[Array], ArrayLike], X: Array) -> Array:
    found = np.asarray(predict(X))
    if found.shape != (len(X),):
        raise ShapeError(
            f"decision_boundary: predict gives shape {found.shape} for {len(X)} points.", "one class per point"
        )
    return found
