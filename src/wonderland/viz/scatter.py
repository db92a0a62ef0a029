"""Points of the plane, coloured by what they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.errors import ShapeError
from ..core.typing import ArrayLike
from ..storage.svg import SVG
from .plot import Curve, plot


def scatter(
    points: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    size: tuple[int, int] = (560, 520),
) -> SVG:
    """Points (n, 2) as the text of an SVG picture, with a colour and a line of the legend per label.

    >>> import wonderland as wl
    >>> scatter(wl.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]]), [0, 1, 1]).count("<circle")
    5

    `labels` are n numbers or texts; `names` are what the legend calls them, in sorted order.
    """
    places = np.asarray(points, float)
    if places.ndim != 2 or places.shape[1] != 2:
        raise ShapeError(f"scatter: points of shape {places.shape}.", "(n, 2); of codes with more numbers two columns")
    if labels is None:
        curves = [Curve(places[:, 0], places[:, 1], dots=True)]
    else:
        kinds = np.asarray(labels)
        if kinds.shape != places.shape[:1]:
            raise ShapeError(f"scatter: labels of shape {kinds.shape} for {len(places)} points.", "a label per point")
        values = np.unique(kinds)
        shown = [str(v) for v in values] if names is None else list(names)
        if len(shown) != len(values):
            raise ShapeError(f"scatter: {len(shown)} names for {len(values)} labels.", "a name per label")
        groups = [places[kinds == value] for value in values]
        curves = [Curve(g[:, 0], g[:, 1], name, dots=True) for g, name in zip(groups, shown, strict=True)]
    return plot(curves, title=title, x_label=x_label, y_label=y_label, size=size)
