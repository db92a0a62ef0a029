"""A table of shades: every number in its cell, dark where it is large."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import wonderland as wl
from wonderland.viz import heatmap

SVG = "{http://www.w3.org/2000/svg}"


def cells(svg):
    """x, y, opacity and text of each cell."""
    found = []
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        found.append((float(rect.get("x")), float(rect.get("y")), float(rect.get("fill-opacity")), text.text or ""))
    return found


def texts(svg):
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_numbers_and_shades_stand_in_rows_and_columns():
    found = cells(heatmap([[8, 0, 2], [4, 6, 1]]))
    assert [text for *_, text in found] == ["8", "", "2", "4", "6", "1"], "zeros are left white"
    np.testing.assert_allclose([shade for _, _, shade, _ in found], np.array([8, 0, 2, 4, 6, 1]) / 8, atol=1e-3)
    assert len({x for x, *_ in found}) == 3
    assert len({y for _, y, *_ in found}) == 2
    assert found[0][0] == found[3][0]
    assert found[0][1] == found[2][1] < found[3][1]


def test_shares_decide_how_dark():
    found = cells(heatmap([[90, 10], [1, 1]], shares=[[0.9, 0.1], [0.5, 0.5]]))
    np.testing.assert_allclose([shade for _, _, shade, _ in found], [0.9, 0.1, 0.5, 0.5])


def test_names_are_escaped_and_long_ones_cut():
    long = "a very long name of a class"
    svg = heatmap(np.eye(2, dtype=int), rows=["<a>", long], columns=["<a>", long], title="T", x_label="p", y_label="t")
    found = texts(svg)
    assert found.count("<a>") == 2
    assert long not in found
    assert found.count(long[:17] + "…") == 2
    assert {"T", "p", "t"} <= set(found)
    titles = [title.text for title in ET.fromstring(svg).iter(f"{SVG}title")]
    assert f"<a> → {long}: 0" in titles, "whole names are said when a cell is pointed at"


def test_all_kinds_of_numbers():
    for values in ([[0.0]], [[np.nan, np.inf]], [[-1.5, 1e-9]], np.zeros((3, 3), int), wl.ones((2, 2))):
        svg = heatmap(values)
        assert all(0 <= shade <= 1 for _, _, shade, _ in cells(svg))


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"values": [1, 2]}, r"values of shape \(2,\)"),
        ({"values": np.zeros((0, 3))}, "not empty"),
        ({"values": np.eye(2), "shares": np.eye(3)}, "shares of shape"),
        ({"values": np.eye(2), "rows": ["a"]}, "1 names of 2 rows"),
        ({"values": np.eye(2), "columns": ["a"] * 3}, "3 names of 2 columns"),
    ],
)
def test_what_does_not_fit_is_explained(arguments, words):
    with pytest.raises(wl.errors.ShapeError, match=words):
        heatmap(**arguments)
