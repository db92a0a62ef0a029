"""Pictures of points."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from wonderland.errors import ShapeError
from wonderland.models import LinearAutoencoder
from wonderland.viz import scatter

POINTS = np.random.default_rng(0).normal(size=(12, 2))


@pytest.mark.book("A2-23", name="wl.viz.scatter")
def test_a_picture_of_codes_has_a_dot_per_point_and_a_colour_per_label():
    X = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    codes = LinearAutoencoder(4, 2).fit(X, method="closed").encode(X)
    labels = np.repeat(["a", "b", "c & d"], 4)
    root = ET.fromstring(scatter(codes, labels, title="Codes"))
    dots = [e for e in root.iter() if e.tag.endswith("circle")]
    assert len(dots) == 12 + 3  # and the legend's
    assert len({e.get("fill") for e in dots}) == 3
    assert any(e.text == "c & d" for e in root.iter())


def test_without_labels_and_with_names():
    assert scatter(POINTS).count("<circle") == 12
    assert "cats" in scatter(POINTS, [0, 1] * 6, names=["cats", "dogs"])


def test_bad_input():
    with pytest.raises(ShapeError, match="points of shape"):
        scatter(np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="for 12 points"):
        scatter(POINTS, [1, 2])
    with pytest.raises(ShapeError, match="1 names for 2 labels"):
        scatter(POINTS, [0, 1] * 6, names=["cats"])
