"""The pictures of a report as PNG files, drawn by matplotlib where it is installed."""

from __future__ import annotations

import importlib.util
import io
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..viz.heatmap import shorten
from ..viz.plot import PALETTE, Bars
from .pictures import Heat, Image, Picture, Plot

DPI = 110
PER_INCH = 100.0  # units of a picture's size


def available() -> bool:
    """Whether PNG files can be made; `pip install 'wonderland[png]'` makes it so."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(pictures: Sequence[Picture]) -> bytes:
    """Pictures side by side as the bytes of a PNG file.

    >>> from .pictures import histogram_of
    >>> draw([histogram_of("weights", [1.0, 2.0, 2.0])])[1:4]
    b'PNG'
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(len(pictures), 6 if isinstance(pictures[0], Image) else 4 if _is_small(pictures[0]) else 2)
    rows = math.ceil(len(pictures) / columns)
    across, down = (max(side) / PER_INCH for side in zip(*(_size(p) for p in pictures), strict=True))
    # names of classes and paths are no formulas, and may have characters that the font lacks
    with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(across * columns, down * rows), dpi=DPI)
        canvas = FigureCanvasAgg(figure)
        for number, picture in enumerate(pictures):
            row, column = divmod(number, columns)
            left, right, top, bottom = _margins(picture)  # fixed: to let matplotlib find them takes half of the time
            corner = (column + left / across) / columns, (rows - 1 - row + bottom / down) / rows
            inner = (across - left - right) / across / columns, (down - top - bottom) / down / rows
            _draw(figure.add_axes((*corner, *inner)), picture)
        file = io.BytesIO()
        canvas.print_png(file)
    return file.getvalue()


def _draw(axes: Any, picture: Picture) -> None:
    small = _is_small(picture) or isinstance(picture, Image)
    axes.set_title(
        _wrapped(picture.title, 24 if isinstance(picture, Image) else 34 if small else 50),
        fontsize=7.5 if small else 11,
    )
    if isinstance(picture, Plot):
        _plot(axes, picture)
    elif isinstance(picture, Heat):
        _heat(axes, picture)
    else:
        axes.imshow(picture.pixels.squeeze(-1) if picture.pixels.shape[-1] == 1 else picture.pixels, cmap="gray")
        axes.set_axis_off()


def _plot(axes: Any, picture: Plot) -> None:
    shapes = sorted(picture.shapes, key=lambda shape: not isinstance(shape, Bars))
    for number, shape in enumerate(shapes):
        colour = shape.colour or PALETTE[number % len(PALETTE)]
        if isinstance(shape, Bars):
            edges, heights = np.asarray(shape.edges, float), np.nan_to_num(np.asarray(shape.heights, float))
            axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=colour, alpha=0.75, edgecolor="white")
            continue
        x, y = (np.clip(np.asarray(v, float), -1e300, 1e300) for v in (shape.x, shape.y))
        y = np.where(np.isfinite(np.asarray(shape.y, float)), y, np.nan)
        style = {"linestyle": "none", "marker": "o", "markersize": 4} if shape.dots else {}
        axes.plot(x, y, color=colour, **(style or {"linestyle": "--" if shape.dashed else "-"}))
    named = [(mark, shape.label) for mark, shape in zip(_marks(axes), shapes, strict=True) if shape.label]
    if named:
        axes.legend([mark for mark, _ in named], [text for _, text in named], fontsize=8)
    axes.grid(color="#e2e8f0", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(picture.x_label)
    axes.set_ylabel(picture.y_label)
    if picture.x_range is not None:
        axes.set_xlim(picture.x_range)
    if picture.y_range is not None:
        axes.set_ylim(picture.y_range)
    axes.tick_params(labelsize=7 if _is_small(picture) else 9)
    if _is_small(picture):
        axes.locator_params(nbins=4)


def _marks(axes: Any) -> list[Any]:
    """What was drawn, in order: bars came first."""
    return [*axes.containers, *axes.lines]


def _heat(axes: Any, picture: Heat) -> None:
    axes.imshow(picture.shares, cmap="Blues", vmin=0.0, vmax=1.0)
    many = len(picture.names)
    names = [shorten(name) for name in picture.names]
    axes.set_xticks(range(many), names, rotation=45 if max(map(len, names)) > 2 else 0, ha="right")
    axes.set_yticks(range(many), names)
    if max(map(len, names)) <= 2:
        for label in axes.get_xticklabels():
            label.set_ha("center")
    axes.set_xlabel(picture.x_label)
    axes.set_ylabel(picture.y_label)
    axes.tick_params(labelsize=8)
    for (i, j), count in np.ndenumerate(picture.counts):
        if count:
            ink = "white" if picture.shares[i, j] > 0.55 else "#334155"
            axes.text(j, i, str(count), ha="center", va="center", color=ink, fontsize=7)


def _is_small(picture: Picture) -> bool:
    return isinstance(picture, Plot) and picture.size[0] < 400


def _size(picture: Picture) -> tuple[float, float]:
    if isinstance(picture, Plot):
        return picture.size
    if isinstance(picture, Heat):
        side = 220.0 + 36.0 * len(picture.names)
        return side, side
    return 170.0, 200.0


def _margins(picture: Picture) -> tuple[float, float, float, float]:
    """Left, right, top and bottom in inches: room for names and titles."""
    if isinstance(picture, Image):
        return 0.05, 0.05, 0.5, 0.05
    if isinstance(picture, Heat):
        longest = max(len(shorten(name)) for name in picture.names)
        return 0.6 + 0.075 * longest, 0.2, 0.4, 0.55 + (0.055 * longest if longest > 2 else 0.0)
    if _is_small(picture):
        return 0.45, 0.12, 0.4, 0.42
    return 0.75, 0.2, 0.5, 0.5


def _wrapped(text: str, width: int) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width)[:3])
