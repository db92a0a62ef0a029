"""Level lines and the paths over them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from wonderland import viz
from wonderland.errors import InputError, ShapeError


def test_a_circle_is_one_closed_line():
    x, y = np.linspace(-2, 2, 41), np.linspace(-2, 2, 51)
    z = x[None, :] ** 2 + y[:, None] ** 2
    (line,) = viz.level_lines(x, y, z, 1.0)
    np.testing.assert_array_equal(line[0], line[-1])
    np.testing.assert_allclose(np.hypot(*line.T), 1.0, atol=5e-3)
    length = np.linalg.norm(np.diff(line, axis=0), axis=1).sum()
    np.testing.assert_allclose(length, 2 * np.pi, rtol=1e-2)


def test_open_lines_and_several_pieces():
    x = np.linspace(-2, 2, 41)
    lines = viz.level_lines(x, x, x[None, :] ** 2 + 0 * x[:, None], 1.0)
    assert len(lines) == 2  # x = 1 and x = -1, from border to border
    assert sorted(round(float(line[0, 0]), 2) for line in lines) == [-1.0, 1.0]
    assert all(len(line) == 41 for line in lines)
    assert viz.level_lines(x, x, np.zeros((41, 41)), 1.0) == []
    saddle = viz.level_lines(x, x, x[None, :] * x[:, None] + 1e-9, 0.5)
    assert len(saddle) == 2


def test_the_picture_holds_paths_and_lines():
    path = np.array([[2.0, 1.0], [1.0, 0.5], [0.0, 0.0], [np.inf, 0.0]])
    many = np.stack([path[:3], path[:3] + 0.1], axis=1)
    picture = viz.plot_paths(
        lambda x, y: x**2 + y**2, [path[:3], many], (-3, 3), (-2, 2), resolution=21, labels=["a & b"], title="way"
    )
    root = ElementTree.fromstring(picture)
    assert root.tag.endswith("svg")
    assert "a &amp; b" in picture
    assert sum(e.tag.endswith("circle") for e in root.iter()) == 3
    assert sum(e.get("stroke") == "#cbd5e1" for e in root.iter()) >= 10
    viz.plot_paths(lambda x, y: x + np.where(y > 0, np.nan, y), [path], (-3, 3), (-2, 2), resolution=11)


def test_bad_input():
    with pytest.raises(ShapeError, match="a path has shape"):
        viz.plot_paths(lambda x, y: x, [np.zeros((3, 3))], (0, 1), (0, 1))
    with pytest.raises(InputError, match="the ranges"):
        viz.plot_paths(lambda x, y: x, [], (1, 0), (0, 1))
    with pytest.raises(ShapeError, match="z has shape"):
        viz.level_lines([0, 1], [0, 1, 2], np.zeros((2, 2)), 0.5)
