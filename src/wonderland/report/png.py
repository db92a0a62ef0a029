"""The pictures of a report as PNG files, drawn by matplotlib where it is installed."""

from __future__ import annotations

import importlib.util
import io
import math
import textwrap
import warnings
from collections.abc import Sequence

import numpy as np

from ..viz.marks import Looks, text
from ..viz.raster import PER_INCH, paint
from .pictures import SMALL, Image, Picture, Plot

DPI = 110
IMAGE = (150.0, 150.0)
ACROSS, DOWN = 20.0, 12.0  # between pictures
MOST_LINES = 3  # of a title


def available() -> bool:
    """Whether PNG files can be made; `pip install 'wonderland[png]'` makes it so."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(pictures: Sequence[Picture]) -> bytes:
    """Pictures side by side as the bytes of a PNG file, each with its title above.

    >>> from .pictures import histogram_of
    >>> draw([histogram_of("weights", [1.0, 2.0, 2.0])])[1:4]
    b'PNG'
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawings = [None if isinstance(picture, Image) else picture.drawing() for picture in pictures]
    sizes = [IMAGE if drawing is None else drawing.size for drawing in drawings]
    columns, letters, size = _arrangement(pictures[0])
    columns = min(columns, len(pictures))
    titles = [textwrap.wrap(picture.title, letters)[:MOST_LINES] for picture in pictures]
    looks: Looks = {"text": {"font-size": f"{size}px", "fill": "#0f172a", "text-anchor": "middle"}}
    line = 1.3 * size
    room = line * max(map(len, titles)) + size
    across = ACROSS + max(width for width, _ in sizes)
    down = DOWN + room + max(height for _, height in sizes)
    rows = math.ceil(len(pictures) / columns)
    # names of classes and paths are no formulas, and may have characters that the font lacks
    with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(across * columns / PER_INCH, down * rows / PER_INCH), dpi=DPI)
        canvas = FigureCanvasAgg(figure)
        for number, (picture, drawing, (width, height)) in enumerate(zip(pictures, drawings, sizes, strict=True)):
            row, column = divmod(number, columns)
            corner = x, y = across * column + (across - width) / 2, down * row + room
            title = [text("", width / 2, line * (i + 1) - room, part) for i, part in enumerate(titles[number])]
            paint(figure, title, [looks], corner)
            if drawing is not None:
                paint(figure, drawing.marks, drawing.looks.values(), corner)
            elif isinstance(picture, Image):
                place = x / across / columns, 1 - (y + height) / down / rows
                axes = figure.add_axes((*place, width / across / columns, height / down / rows))
                axes.imshow(np.broadcast_to(picture.pixels, (*picture.pixels.shape[:2], 3)))
                axes.set_axis_off()
        file = io.BytesIO()
        canvas.print_png(file)
    return file.getvalue()


def _arrangement(picture: Picture) -> tuple[int, int, float]:
    """How many pictures of a kind stand side by side, the letters in a line of their titles, and their size."""
    if isinstance(picture, Image):
        return 6, 24, 10.5
    if isinstance(picture, Plot) and picture.size == SMALL:
        return 4, 44, 10.5
    return 2, 50, 15.0
