"""Plots: the curves are where the numbers say, and the book's figures can be drawn from derivatives."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland import viz
from wonderland.viz.axes import ticks
from wonderland.viz.plot import PALETTE

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg):
    """The points of every line in the coordinates of the picture."""
    lines = ET.fromstring(svg).iter(f"{SVG}polyline")
    return [np.array([pair.split(",") for pair in line.get("points").split()], float) for line in lines]


def test_points_are_an_affine_image_of_the_data():
    x = np.linspace(-1, 3, 20)
    y = x**3
    (points,) = drawn(viz.plot([(x, y)]))
    for data, screen in ((x, points[:, 0]), (y, points[:, 1])):
        slope, offset = np.polyfit(data, screen, 1)
        np.testing.assert_allclose(slope * data + offset, screen, atol=0.02)
    assert points[0, 0] < points[-1, 0]
    assert points[0, 1] > points[-1, 1], "y grows upwards"


@pytest.mark.book("6-71", name=["wl.viz.plot", "wl.vmap(wl.grad(f))"])
def test_activations_and_their_derivatives_as_in_the_books_figure():
    x = wl.linspace(-5.0, 5.0, 101, dtype=wl.float64)
    s = 1 / (1 + np.exp(-x.numpy()))
    cases = [(wl.sigmoid, s, s * (1 - s)), (wl.relu, np.maximum(x, 0), (x.numpy() > 0).astype(float))]
    for f, value, slope in cases:
        curves = [
            viz.Curve(x, f(x), "f"),
            viz.Curve(x, wl.vmap(wl.grad(f))(x), "its derivative", dashed=True),
        ]
        np.testing.assert_allclose(curves[0].y, value, atol=1e-12)
        np.testing.assert_allclose(curves[1].y, slope, atol=1e-12)
        assert len(drawn(viz.plot(curves, title=f.__name__))) == 2


@pytest.mark.book("2.45", "2.56", name=["wl.viz.plot", "wl.linearize"])
def test_a_function_with_tangents_that_touch_it():
    f = lambda x: x**2 - 1.5 * x
    at = wl.tensor(0.5, dtype=wl.float64)
    assert wl.grad(f)(at).item() == -0.5
    assert (wl.grad(f)(0.75).item(), f(0.75)) == (0.0, -0.5625), "the minimum"
    value, slope = wl.linearize(f, at)
    x = wl.linspace(0.0, 1.0, 101, dtype=wl.float64)
    tangent = wl.vmap(lambda t: value + slope(t - at))(x)
    gap = (f(x) - tangent).numpy()
    np.testing.assert_allclose(gap, (x.numpy() - 0.5) ** 2, atol=1e-12)  # zero with slope zero at 0.5
    curve, line = drawn(viz.plot([viz.Curve(x, f(x)), viz.Curve(x, tangent, dashed=True)]))
    assert np.abs(curve[50] - line[50]).max() < 0.02
    assert (curve[:, 1] <= line[:, 1] + 0.02).all(), "the parabola is above its tangent"


def test_gaps_interrupt_the_line_and_the_range_can_be_cut():
    x = np.linspace(-1, 1, 201)
    y = np.divide(1, x, out=np.full_like(x, np.inf), where=np.abs(x) > 1e-9)
    svg = viz.plot([viz.Curve(x, y, "1/x")], y_range=(-20, 20))
    assert [len(line) for line in drawn(svg)] == [100, 100]


def test_dots_titles_and_labels():
    svg = viz.plot(
        [viz.Curve([1, 2, 3], [1, np.nan, 2], "a & b", dots=True)],
        title="<t>",
        x_label="time",
        y_label="loss",
    )
    root = ET.fromstring(svg)
    assert len(list(root.iter(f"{SVG}circle"))) == 3, "two points and the one in the legend"
    found = {"".join(t.itertext()) for t in root.iter(f"{SVG}text")}
    assert {"<t>", "time", "loss", "a & b"} <= found


@pytest.mark.parametrize("y", [[2.0, 2.0], [0.0, 0.0]])
def test_constant_curves_have_a_range(y):
    assert len(drawn(viz.plot([([0.0, 1.0], y)]))) == 1


def test_bad_curves_are_refused():
    with pytest.raises(wl.errors.ShapeError, match=r"\(3,\) and y of shape \(2,\)"):
        viz.plot([([1, 2, 3], [1, 2])])
    with pytest.raises(wl.errors.InputError, match="no finite point"):
        viz.plot([([np.nan], [1.0])])
    with pytest.raises(wl.errors.InputError, match="no finite point"):
        viz.plot([])


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_round_evenly_spaced_and_inside(low, relative):
    extent = relative * max(1.0, abs(low))  # of a smaller one rounding leaves no even steps
    found = ticks(low, low + extent)
    steps = np.diff(found)
    assert 2 <= len(found) <= 8
    assert np.allclose(steps, steps[0], rtol=1e-6)
    mantissa = float(f"{steps[0]:.6e}".split("e")[0])
    assert min(abs(mantissa - m) for m in (1, 2, 5, 10)) < 1e-3
    assert low - 1e-6 * extent <= found[0]
    assert found[-1] <= low + extent * (1 + 1e-6)


def test_bars_go_from_zero_to_their_heights_behind_the_curves():
    svg = viz.plot([viz.Curve([0.0, 3.0], [0.0, 2.0]), viz.Bars([0.0, 1.0, 2.0, 3.0], [2.0, np.nan, -1.0], "bars")])
    places = [element.get("class") for element in ET.fromstring(svg).iter() if element.get("class") in ("bar", "curve")]
    assert places == ["bar", "bar", "curve", "bar"], "the last one is the legend's"
    rects = [r for r in ET.fromstring(svg).iter(f"{SVG}rect") if r.get("class") == "bar"][:2]
    (up_top, up), (down_top, down) = [(float(r.get("y")), float(r.get("height"))) for r in rects]
    assert up == pytest.approx(2 * down, abs=0.05)
    assert up_top + up == pytest.approx(down_top, abs=0.05), "both begin at zero"


def test_bars_need_an_edge_more_than_heights():
    with pytest.raises(wl.errors.ShapeError, match="n heights between n"):
        viz.plot([viz.Bars([0.0, 1.0], [1.0, 2.0])])


def test_a_description_is_spoken_in_the_place_of_the_title():
    root = ET.fromstring(viz.plot([([0.0, 1.0], [0.0, 1.0])], title="t", description="a < rising > line"))
    assert root.get("aria-label") == root.find(f"{SVG}title").text == "a < rising > line"


@given(st.lists(st.floats(allow_nan=True), min_size=1, max_size=6))
def test_any_numbers_can_be_drawn(values):
    if not np.isfinite(values).any():
        return
    svg = viz.plot([viz.Curve(range(len(values)), values, "v")])
    for points in drawn(svg):
        assert np.isfinite(points).all()


def test_the_colours_of_the_palette_can_be_told_apart():
    # distances in CIELAB, where 2.3 is just noticeable
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in PALETTE]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ matrix.T / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=-1) + 1e3 * np.eye(len(PALETTE))
    assert len(PALETTE) == 10
    assert apart.min() > 25
