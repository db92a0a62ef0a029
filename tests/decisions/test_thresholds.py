"""From probabilities to classes: thresholds, ties, names, several labels."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import decisions
from wonderland.errors import InputError, ShapeError


@pytest.mark.book("4.52", "B4-27", name="wl.decisions.predict_binary")
@pytest.mark.parametrize("compiled", [False, True])
def test_ties_go_to_class_0_unless_told_otherwise(compiled):
    p = wl.tensor([0.0, 0.49, 0.5, 0.51, 1.0])
    run = wl.jit if compiled else lambda f: f
    assert run(lambda p: decisions.predict_binary(p))(p).tolist() == [0, 0, 0, 1, 1]
    assert run(lambda p: decisions.predict_binary(p, tie=1))(p).tolist() == [0, 0, 1, 1, 1]
    assert decisions.predict_binary(p, threshold=0.2).tolist() == [0, 1, 1, 1, 1]
    # as rounding half to even does
    np.testing.assert_array_equal(decisions.predict_binary(p), np.round(p.numpy()))


@pytest.mark.book("4.41", "B4-21", name="wl.decisions.predict_class")
def test_the_class_with_the_largest_probability():
    assert decisions.predict_class([0.2, 0.05, 0.75]).item() == 2
    # the notes' example is not on the simplex (it sums to .9), and has a largest entry all the same
    example = wl.tensor([0.2, 0.3, 0.4])
    assert not wl.is_simplex(example)
    assert decisions.predict_class(example, ["cat", "dog", "bird"]) == "bird"
    many = decisions.predict_class([[0.5, 0.5], [0.1, 0.9]], ["no", "yes"])
    assert many.tolist() == ["no", "yes"]


@pytest.mark.book("A2-28", name="wl.decisions.predict_labels")
def test_all_eight_answers_of_three_outputs():
    bits = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])
    scores = wl.asarray(np.where(bits, 0.9, 0.1))
    np.testing.assert_array_equal(decisions.predict_labels(scores), bits)
    assert len({tuple(row) for row in decisions.predict_labels(scores).tolist()}) == 8
    # the decision on one label does not see the others
    changed = wl.asarray(np.where(bits, 0.9, 0.1) * [1, 1, 0])
    np.testing.assert_array_equal(decisions.predict_labels(changed)[:, :2], bits[:, :2])


def test_bad_input():
    for bad in (1.5, -0.1, float("nan")):
        with pytest.raises(InputError, match=r"outside \[0, 1\]"):
            decisions.predict_binary(wl.tensor([0.5, bad]))
    for settings in ({"threshold": 2.0}, {"threshold": float("nan")}, {"tie": 2}):
        with pytest.raises(InputError):
            decisions.predict_binary(0.5, **settings)
    with pytest.raises(InputError, match="NaN"):
        decisions.predict_class([0.1, float("nan")])
    with pytest.raises(InputError, match="2 names for 3 classes"):
        decisions.predict_class([0.2, 0.3, 0.5], ["a", "b"])
    with pytest.raises(ShapeError):
        decisions.predict_class(0.5)
    with pytest.raises(ShapeError):
        decisions.predict_labels(0.5)
