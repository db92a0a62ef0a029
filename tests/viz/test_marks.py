"""Marks are data: the text of an SVG and the pixels of a PNG show the same."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from wonderland.viz.marks import PLOT_LOOKS, Drawing, circle, group, line, polyline, rect, text, window
from wonderland.viz.raster import PER_INCH, paint

SVG = "{http://www.w3.org/2000/svg}"
RED = (220, 38, 38)


def pixels(marks, size=(60, 40)):
    """Marks as an image of as many pixels as their drawing has."""
    figure = Figure(figsize=(size[0] / PER_INCH, size[1] / PER_INCH), dpi=PER_INCH)
    canvas = FigureCanvasAgg(figure)
    paint(figure, marks, [PLOT_LOOKS], (0.0, 0.0))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(int)


def red(image):
    rows, columns = np.nonzero((np.abs(image - RED) < 60).all(axis=-1))
    return columns.min(), columns.max(), rows.min(), rows.max()


@pytest.mark.parametrize(
    "mark",
    [
        rect("", 10, 5, 20, 12, fill="#dc2626"),
        polyline("curve", [(11, 11), (29, 11)], stroke="#dc2626", stroke_width=12),
        window(10, 5, 20, 12, [rect("", 0, 0, 60, 40, fill="#dc2626")]),
        group([rect("", 10, 5, 20, 12, fill="#dc2626")], "said"),
    ],
)
def test_marks_are_where_they_are_said_to_be(mark):
    x0, x1, y0, y1 = red(pixels([mark]))
    assert abs(x0 - 10) <= 1
    assert abs(x1 - 29) <= 1
    if mark.shape != "polyline":  # whose kind decides how wide it is
        assert (y0, y1) == (5, 16)


def test_what_comes_later_lies_above():
    below, above = circle(20, 20, 15, fill="#dc2626"), line("", 0, 20, 60, 20, stroke="#0000ff", stroke_width=9)
    assert tuple(pixels([below, above])[20, 20]) == (0, 0, 255)
    assert tuple(pixels([above, below])[20, 20]) == RED


def test_the_style_sheet_goes_before_attributes():
    bar = rect("bar", 10, 5, 20, 12, fill="#dc2626", fill_opacity="0.1")
    share = (255 - pixels([bar])[11, 20]) / (255 - np.array(RED))
    np.testing.assert_allclose(share[1:], 0.75, atol=0.01)


def test_text_is_escaped_turned_and_numbers_are_short():
    marks = [text("x", 17, 1 / 3, "a < b & c", turn=-90), circle(2.0, 1e-9, 4, "said <here>", fill="#fff")]
    root = ET.fromstring(Drawing((60, 40), marks, 'spoken "words"').svg())
    words, dot = root.find(f"{SVG}text"), root.find(f"{SVG}circle")
    assert root.get("aria-label") == root.find(f"{SVG}title").text == 'spoken "words"'
    assert (words.text, words.get("y"), words.get("transform")) == ("a < b & c", "0.33", "rotate(-90 17 0.33)")
    assert (dot.get("cx"), dot.get("cy"), dot.find(f"{SVG}title").text) == ("2", "0", "said <here>")
