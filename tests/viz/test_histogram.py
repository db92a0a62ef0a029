"""Histograms count what NumPy's do, and are drawn in proportion."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import wonderland as wl
from wonderland.viz import histogram
from wonderland.viz.histogram import binned

SVG = "{http://www.w3.org/2000/svg}"


def bars(svg):
    found = [rect for rect in ET.fromstring(svg).iter(f"{SVG}rect") if rect.get("class") == "bar"]
    return np.array([[float(rect.get(name)) for name in ("x", "y", "width", "height")] for rect in found])


def test_counts_are_those_of_numpy():
    values = np.random.default_rng(0).normal(size=(50, 20))
    counts, edges = binned(values, 17)
    expected, where = np.histogram(values, 17)
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_allclose(edges, where)


def test_bars_have_the_heights_of_the_counts_and_stand_on_one_line():
    drawn = bars(histogram(wl.tensor([0.0, 0.1, 0.2, 1.0, 2.0, 2.0]), bins=3))
    np.testing.assert_allclose(drawn[:, 3] / drawn[1, 3], [3, 1, 2], rtol=1e-3)
    np.testing.assert_allclose(drawn[:, 1] + drawn[:, 3], drawn[0, 1] + drawn[0, 3], atol=0.02)
    np.testing.assert_allclose(np.diff(drawn[:, 0]), drawn[:-1, 2], atol=0.02)


@given(arrays.arrays(np.float64, st.integers(1, 30), elements=st.floats()), st.integers(1, 40))
def test_any_numbers_can_be_shown(values, bins):
    finite = int(np.isfinite(values).sum())
    if not finite:
        with pytest.raises(wl.errors.InputError, match="no finite value"):
            histogram(values, bins)
        return
    counts, edges = binned(values, bins)
    assert counts.sum() == finite
    assert (np.diff(edges) > 0).all()
    assert np.isfinite(bars(histogram(values, bins))).all()


def test_text_is_escaped_and_spoken():
    root = ET.fromstring(histogram([1.0, 2.0], title="a < b", description="c & d", x_label="<x>", y_label="<y>"))
    assert root.get("aria-label") == root.find(f"{SVG}title").text == "c & d"
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert {"a < b", "<x>", "<y>"} <= set(texts)


@pytest.mark.parametrize("bins", [0, -1, 2.5, "ten"])
def test_the_number_of_bins_is_checked(bins):
    with pytest.raises(wl.errors.WonderlandError, match="bins"):
        histogram([1.0, 2.0], bins)
