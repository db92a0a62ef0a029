"""How often values come, as bars."""

from __future__ import annotations

import numpy as np

from ..core.arguments import as_int
from ..core.errors import InputError
from ..core.typing import ArrayLike
from ..storage.svg import SVG
from .plot import Bars, plot


def histogram(
    values: ArrayLike,
    bins: int = 30,
    *,
    title: str = "",
    description: str = "",
    x_label: str = "",
    y_label: str = "",
    size: tuple[int, int] = (480, 320),
) -> SVG:
    """The numbers of values in `bins` equal bins between the smallest and the largest, as the text of an SVG picture.

    >>> histogram([0.0, 0.1, 1.0], bins=2, title="two and one").count('class="bar"')
    2

    Values of any shape; those that are not finite are left out.
    """
    counts, edges = binned(values, bins)
    return plot(
        [Bars(edges, counts)], title=title, description=description, x_label=x_label, y_label=y_label, size=size
    )


def binned(values: ArrayLike, bins: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """The counts of finite values in equal bins, and the edges of the bins.

    >>> [part.tolist() for part in binned([0.0, 0.1, 1.0, np.nan], 2)]
    [[2, 1], [0.0, 0.5, 1.0]]
    """
    flat = np.asarray(values, np.float64).ravel()
    finite = np.clip(flat[np.isfinite(flat)], -1e300, 1e300)
    if not finite.size:
        raise InputError("histogram: there is no finite value to show.", "at least one number")
    low, high = float(finite.min()), float(finite.max())
    bins = as_int("histogram", "bins", bins, least=1)
    size = max(abs(low), abs(high))
    if high - low <= max(1e-12 * size, 1e-290):  # equal but for rounding: one bar in the middle
        pad = 0.5 * size or 0.5
        return np.array([finite.size]), np.array([low - pad, high + pad])
    place = np.minimum(((finite - low) / (high - low) * bins).astype(np.int64), bins - 1)
    return np.bincount(place, minlength=bins), np.linspace(low, high, bins + 1)
