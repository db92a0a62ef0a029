"""Regions of a classifier: the picture shows the predicted class at every place."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from wonderland import models, viz
from wonderland.errors import InputError, ShapeError

SVG = "{http://www.w3.org/2000/svg}"
CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)


def colours(svg):
    """The colour at every place of the picture, and the circles."""
    root = ET.fromstring(svg)
    regions = [r for r in root.iter(f"{SVG}rect") if r.get("class") == "region"]
    return regions, list(root.iter(f"{SVG}circle"))


@pytest.mark.book("A2-02", name="wl.viz.decision_boundary")
def test_a_linear_model_has_one_straight_boundary():
    model = models.Perceptron().fit(CORNERS, [0, 0, 0, 1])
    regions, points = colours(viz.decision_boundary(model.predict, CORNERS, [0, 0, 0, 1], resolution=40))
    assert len(points) == 4
    rows: dict[str, list[ET.Element]] = {}
    for region in regions:
        rows.setdefault(region.get("y"), []).append(region)
    assert len(rows) == 40
    assert max(map(len, rows.values())) == 2, "a line cuts each row once"
    # the cut moves evenly from row to row
    w, b = model.weight.detach().numpy(), model.bias.item()
    cuts = [float(r[1].get("x")) for _, r in sorted(rows.items(), key=lambda kv: float(kv[0])) if len(r) == 2]
    left, right, low, high = 62, 460, -0.12, 1.12
    heights = [float(y) for y, r in sorted(rows.items(), key=lambda kv: float(kv[0])) if len(r) == 2]
    cell = (392 - 20) / 40
    x2 = [low + (392 - (y + cell / 2)) / (392 - 20) * (high - low) for y in heights]
    x1 = [low + (x - left) / (right - left) * (high - low) for x in cuts]
    np.testing.assert_allclose(np.array(x1) * w[0] + np.array(x2) * w[1] + b, 0, atol=abs(w[0]) * (high - low) / 40)


def test_mistakes_have_a_rim_and_names_are_shown():
    y = np.array(["a", "b", "b", "a"])
    svg = viz.decision_boundary(lambda X: np.full(len(X), "a"), CORNERS, y, title="<xor>", resolution=5)
    regions, points = colours(svg)
    assert len(regions) == 5, "one rectangle per row"
    assert sum(p.get("stroke-width") == "2" for p in points) == 2
    assert "&lt;xor&gt;" in svg
    assert len({p.get("fill") for p in points}) == 2
    one = viz.decision_boundary(lambda X: np.zeros(len(X), int), [[1.0, 1.0]], resolution=3)
    assert len(colours(one)[1]) == 1


def test_bad_arguments():
    same = lambda X: np.zeros(len(X), int)
    with pytest.raises(ShapeError, match=r"\(4, 1\)"):
        viz.decision_boundary(same, CORNERS[:, :1])
    with pytest.raises(ShapeError, match="labels"):
        viz.decision_boundary(same, CORNERS, [0, 1])
    with pytest.raises(InputError, match="not finite"):
        viz.decision_boundary(same, CORNERS * np.nan)
    with pytest.raises(InputError, match="resolution"):
        viz.decision_boundary(same, CORNERS, resolution=1)
    with pytest.raises(ShapeError, match="one class per point"):
        viz.decision_boundary(lambda X: X, CORNERS)
