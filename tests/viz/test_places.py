"""No text of a picture is cut off, and no two lie over each other, whatever the names and numbers are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

import wonderland as wl
from tests.viz.places import faults
from wonderland import viz
from wonderland.viz.extents import fitted, text_width, wrapped
from wonderland.viz.heatmap import Heat
from wonderland.viz.plot import Plot

LONG = "the mean of the squared distances between what was predicted and what is true, in units of the target"


def measured(words, size=12.0, weight=400):
    font = FontProperties(family="DejaVu Sans", weight=weight, size=size)
    return TextToPath().get_text_width_height_descent(words, font, ismath=False)[0]


def test_the_helper_sees_what_is_cut_off_and_what_overlaps():
    from wonderland.viz.marks import Drawing, text

    assert faults(Drawing((60, 40), [text("x", 30, 20, "inside")], "").svg()) == []
    assert "cut off" in faults(Drawing((60, 40), [text("", 30, 20, "not inside")], "").svg())[0]
    assert "cut off" in faults(Drawing((60, 40), [text("x", 50, 20, "turned so", turn=90)], "").svg())[0]
    assert "lies over" in faults(Drawing((90, 40), [text("", 5, 20, "one"), text("", 20, 24, "two")], "").svg())[0]
    beside = [text("", 5, 20, "one"), text("", 40, 20, "two"), text("", 5, 35, "three")]
    assert faults(Drawing((90, 40), beside, "").svg()) == []


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_widths_are_enough_and_not_much_more(words):
    for size, weight in ((12.0, 400), (15.0, 700)):
        found, real = text_width(words, size, bold=weight > 400), measured(words, size, weight)
        assert real - 0.06 * size * len(words) <= found <= 1.25 * real + size


def test_long_words_are_cut_or_wrapped_to_their_room():
    assert measured(fitted(LONG, 120.0)) <= 120
    assert fitted("short", 120.0) == "short"
    lines = wrapped(LONG, 150.0, lines=3)
    assert len(lines) == 3
    assert lines[-1].endswith("…")
    assert max(map(measured, lines)) <= 150


NUMBERS = {
    "one point": ([1.0], [0.5]),
    "tiny": (np.arange(5.0), np.array([1, 3, 2, 5, 4]) * 1e-12),
    "huge": (np.arange(5.0) * 1e9, np.array([1, 3, 2, 5, 4]) * 3.7e11),
    "astronomic": (np.arange(3.0), np.array([1e300, -1e300, 0.0])),
    "alike": (np.arange(5.0), 400_000 + np.arange(5.0) * 1e-4),
    "prices": (np.arange(5.0), np.array([120_000, 450_000, 380_000, 991_000, 5_000.0])),
    "negative": (np.arange(-5.0, 0.0) * 1e5, -np.arange(5.0) * 1e5),
    "of one size": (np.arange(5.0), np.full(5, 123456.789)),
}


@pytest.mark.parametrize("scale", ["plain", "log"])
@pytest.mark.parametrize("size", [(300, 170), (400, 370), (640, 400)])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_plots_of_all_numbers(numbers, size, scale):
    x, y = NUMBERS[numbers]
    y = np.abs(y) + 1e-300 if scale == "log" else y
    svg = viz.plot(
        [viz.Curve(x, y, "training"), viz.Curve(x, y, "validation")], title=LONG, x_label=LONG, y_label=LONG, size=size,
        y_scale=scale,
    )  # fmt: skip
    assert faults(svg) == []


@settings(max_examples=60, deadline=None)
@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e9), st.booleans(), st.booleans())
def test_axes_of_any_range(low, extent, upright, powers):
    ends = (low, low + max(extent, 1e-9 * abs(low)))
    if powers:
        ends = (10.0 ** (low / 1e11), 10.0 ** (low / 1e11 + extent / 1e8 + 0.01))
    other = (0.0, 1.0)
    ranges = {"x_range": other, "y_range": ends} if upright else {"x_range": ends, "y_range": other}
    scales = {"y_scale" if upright else "x_scale": "log"} if powers else {}
    svg = viz.plot([([0.5, 0.6], [0.5, 0.6])], title="t", x_label="x", y_label="y", size=(400, 280), **ranges, **scales)
    assert faults(svg) == []


@pytest.mark.parametrize("many", [1, 3, 12, 40])
def test_legends_with_many_and_long_names(many):
    curves = [viz.Curve([0.0, 1.0], [i, i + 1.0], f"run {i} {LONG[: 7 * i]}") for i in range(many)]
    for size in ((300, 170), (440, 280)):
        assert faults(Plot("t", curves, "epoch", "loss", size).drawing("a title").svg()) == []


@pytest.mark.parametrize(
    "names", [["cat", "dog"], ["no", LONG], [f"Ärger {i} über {LONG[: 3 * i]}" for i in range(20)]]
)
@pytest.mark.parametrize("largest", [1, 1_234_567])
def test_tables_of_shades(names, largest):
    counts = largest * np.eye(len(names), dtype=int) + 1
    for labels in (("", ""), ("predicted", "true"), (LONG[:40], LONG[:40])):
        svg = Heat("Confusion matrix", counts, None, names, *labels).drawing(LONG).svg()
        assert faults(svg) == []


def test_powers_of_ten_stand_on_a_logarithmic_axis():
    y = 10.0 ** np.array([-5.0, -2.0, 1.0])
    svg = viz.plot([viz.Curve([0, 1, 2], y)], y_scale="log")
    for words in ("10⁻⁵", "10⁻²", "10"):
        assert f">{words}<" in svg
    with pytest.raises(wl.errors.InputError, match="y_scale='logarithmic'"):
        viz.plot([([0], [1])], y_scale="logarithmic")
    with pytest.raises(wl.errors.InputError, match="positive"):
        viz.plot([([0], [1])], y_scale="log", y_range=(0.0, 1.0))
    with pytest.raises(wl.errors.InputError, match="no finite point"):
        viz.plot([([0, 1], [0.0, -1.0])], y_scale="log")


@pytest.mark.parametrize("values", [[0.3, 0.1, -0.05], [3.0e9, 1.0, 0.0], [2e-13, 1e-13, 0.0], [0.0, 0.0, 0.0]])
def test_bars_with_names(values):
    errors = 0.2 * np.abs(values)
    for names in (["age", "b", "c"], [LONG, "W" * 60, "ü"]):
        for width in (300, 520):
            svg = viz.ranking(names, values, errors, title=LONG, x_label=LONG, width=width)
            assert faults(svg) == []
    assert svg.count('class="bar"') == 3
    with pytest.raises(wl.errors.ShapeError, match="2 names"):
        viz.ranking(["a", "b"], values)
    with pytest.raises(wl.errors.InputError, match="not finite"):
        viz.ranking(["a"], [np.nan])
