"""What predictions and targets mean, and what is said when they do not belong together."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.report.outcomes import Classified, Estimated, read


@pytest.mark.parametrize(
    "p, y, names, kind",
    [
        (np.full((4, 3), 1 / 3), [0, 1, 2, 0], (), Classified),
        (np.full((4, 3), 1 / 3), [[0], [1], [2], [0]], (), Classified),
        (np.full((4, 3), 1 / 3), np.eye(3)[[0, 1, 2, 0]], (), Classified),
        ([0.2, 0.8], [False, True], (), Classified),
        ([[0.2], [0.8]], [0, 1], (), Classified),
        ([0.2, 0.8], [0.0, 1.0], ("no", "yes"), Classified),
        ([0.2, 0.8], [0.1, 0.9], (), Estimated),
        ([0.2, 1.8], [0, 1], (), Estimated),
        ([[0.2], [1.8]], [0.0, 1.0], (), Estimated),
        ([[0.2, 0.4], [1.8, 3.0]], [[0.0, 1.0], [2.0, 3.0]], (), Estimated),
        ([[0.2, 0.4]], wl.tensor([[0.5, 1.0]]), (), Estimated),
    ],
)
def test_kinds(p, y, names, kind):
    assert isinstance(read(p, y, names), kind)


def test_probabilities_of_the_second_class():
    found = read([0.2, 0.9], [0, 0], ["no", "yes"])
    np.testing.assert_allclose(found.probabilities, [[0.8, 0.2], [0.1, 0.9]])
    assert found.predicted.tolist() == [0, 1]
    assert found.wrong.tolist() == [False, True]
    np.testing.assert_allclose(found.confidence, [0.8, 0.9])


def test_numbers_that_are_not_finite_are_counted_and_left_out():
    found = read([1.0, np.nan, 3.0, 4.0], [1.5, 2.0, np.inf, 4.5])
    assert (found.places.tolist(), found.left_out) == ([0, 3], 2)


@pytest.mark.parametrize(
    "p, y, names, error, words",
    [
        (np.ones((4, 3)) / 3, [0, 1], (), wl.errors.ShapeError, r"\(4, 3\) do not belong to targets of shape \(2,\)"),
        ([0.1, 0.2], [0.1, 0.2, 0.3], (), wl.errors.ShapeError, "do not belong"),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), (), wl.errors.ShapeError, "do not belong"),
        (0.5, 1, (), wl.errors.ShapeError, "do not belong"),
        (np.ones((0, 3)), [], (), wl.errors.ShapeError, "at least one"),
        ([[2.0, -1.0]], [0], (), wl.errors.InputError, "not on the simplex"),
        ([[np.nan, 1.0]], [0], (), wl.errors.InputError, "not on the simplex"),
        ([[0.5, 0.5]], [2], (), wl.errors.InputError, "the target 2 with 2 classes"),
        ([[0.5, 0.5]], [-1], (), wl.errors.InputError, "the target -1"),
        ([[0.5, 0.5]], [0.5], (), wl.errors.InputError, "no whole numbers"),
        ([[0.5, 0.5]], ["cat"], (), wl.errors.InputError, "class_names"),
        ([["a", "b"]], [0], (), wl.errors.InputError, "predictions of type"),
        ([[0.5, 0.5]], [0], ("a", "b", "c"), wl.errors.ShapeError, "3 class_names for 2 classes"),
        ([np.nan], [1.0], (), wl.errors.InputError, "no prediction is finite"),
    ],
)
def test_what_does_not_fit_is_explained(p, y, names, error, words):
    with pytest.raises(error, match=words):
        read(p, y, names)
