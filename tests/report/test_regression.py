"""The numbers of a regression's report, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from tests.report.reading import Reader
from wonderland.report.outcomes import read
from wonderland.report.regression import regression_section


def test_measures_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(200, 2))
    p = y + rng.normal(size=(200, 2)) * [0.1, 0.5]
    section = regression_section(read(p, y))
    rows = Reader(section.html).table("", "RMSE", "mean absolute error", "mean residual", "R²")
    for k, row in enumerate(rows):
        expected = [
            sk.root_mean_squared_error(y[:, k], p[:, k]),
            sk.mean_absolute_error(y[:, k], p[:, k]),
            (p[:, k] - y[:, k]).mean(),
            sk.r2_score(y[:, k], p[:, k]),
        ]
        assert row[0] == f"output {k}"
        np.testing.assert_allclose([float(cell) for cell in row[1:]], expected, rtol=1e-3)
    scatter, residuals, *_ = section.pictures["predictions"]
    np.testing.assert_allclose([scatter.shapes[0].x, scatter.shapes[0].y], [y[:, 0], p[:, 0]])
    bars = residuals.shapes[0]
    np.testing.assert_array_equal(bars.heights, np.histogram(p[:, 0] - y[:, 0], bars.edges)[0])


@pytest.mark.parametrize(
    "p, y",
    [
        ([1.0], [1.0]),
        ([1.0, 1.0], [2.0, 2.0]),
        ([1e308, -1e308], [-1e308, 1e308]),
        ([np.nan, 1.0], [0.5, 0.5]),
        (np.zeros((3, 9)), np.ones((3, 9)) * 0.5),
    ],
)
def test_small_and_wild_cases(p, y):
    page = Reader(regression_section(read(p, y)).html)
    drawn = [value for _, name, value in page.attributes if name in ("points", "cx", "cy", "x", "y", "width", "height")]
    assert not any(word in value for value in drawn for word in ("nan", "inf"))


def test_examples_without_finite_numbers_are_mentioned():
    html = regression_section(read([np.nan, 1.0], [0.5, 0.5])).html
    assert "1 examples whose numbers are not finite are left out" in html
