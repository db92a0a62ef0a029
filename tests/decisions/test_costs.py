"""Decisions of least expected cost: the book's table, both orientations, and ties with the most probable class."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import wonderland as wl
from wonderland import decisions
from wonderland.errors import InputError, ShapeError

C = np.array([[0.0, 10.0], [1.0, 0.0]])  # rows predicted, columns true
rng = np.random.default_rng(0)


@pytest.mark.book("4.65", name="wl.decisions.expected_cost")
def test_the_books_table():
    """A false negative costs ten times a false positive."""
    certain = np.eye(2)  # the true class is 0, or 1
    np.testing.assert_array_equal(decisions.expected_cost(certain, C), C.T)
    np.testing.assert_allclose(decisions.expected_cost([0.7, 0.3], C), [3.0, 0.7], rtol=1e-6)
    probs = special.softmax(rng.normal(size=(4, 5, 3)), -1)
    costs = rng.random((6, 3))
    expected = [[[sum(costs[i, j] * p[j] for j in range(3)) for i in range(6)] for p in row] for row in probs]
    np.testing.assert_allclose(decisions.expected_cost(probs, costs), expected, rtol=1e-12)


@pytest.mark.book("4.66", "B4-33", "B4-34", name=("wl.decisions.decide", "wl.decisions.cost_threshold"))
@pytest.mark.parametrize("compiled", [False, True])
def test_the_threshold_is_one_eleventh_and_not_ten(compiled):
    p1 = np.array([0.0, 0.09, 1 / 11 - 1e-9, 1 / 11 + 1e-9, 0.5, 10 / 11 - 1e-9, 10 / 11 + 1e-9, 1.0])
    probs = wl.asarray(np.stack([1 - p1, p1], 1))
    decide = lambda rows: lambda p, C: decisions.decide(p, C, rows=rows)
    run = wl.jit if compiled else lambda f: f
    found = run(decide("predicted"))(probs, wl.asarray(C))
    np.testing.assert_array_equal(found, p1 > 1 / 11)
    # the same matrix read as (true, predicted) flips only above 10/11
    np.testing.assert_array_equal(run(decide("true"))(probs, wl.asarray(C)), p1 > 10 / 11)
    np.testing.assert_array_equal(run(decide("true"))(probs, wl.asarray(C.T)), found)
    assert decisions.cost_threshold(C) == pytest.approx(1 / 11)
    assert decisions.cost_threshold(C, rows="true") == pytest.approx(10 / 11)


@pytest.mark.book("4.66", name="wl.decisions.decide")
def test_equal_costs_choose_the_most_probable_class():
    probs = special.softmax(rng.normal(size=(50, 4)), -1)
    np.testing.assert_array_equal(decisions.decide(probs, 1 - np.eye(4)), probs.argmax(1))
    np.testing.assert_array_equal(decisions.decide(probs), probs.argmax(1))


def test_a_third_decision_and_the_real_costs():
    with_doubt = np.r_[1 - np.eye(2), [[0.2, 0.2]]]  # not to decide costs a fifth of a mistake
    assert decisions.decide([[0.9, 0.1], [0.7, 0.3], [0.1, 0.9]], with_doubt).tolist() == [0, 2, 1]
    # with calibrated probabilities nothing is cheaper in the long run
    p1 = rng.random(5000)
    truth = (rng.random(5000) < p1).astype(int)
    mean_cost = lambda predicted: C[predicted, truth].mean()
    best = mean_cost(decisions.decide(np.stack([1 - p1, p1], 1), C).numpy())
    assert best < min(mean_cost((p1 > t).astype(int)) for t in (0.0, 0.3, 0.5, 10 / 11))


def test_bad_input():
    with pytest.raises(InputError, match="simplex"):
        decisions.decide([0.5, 0.6], C)
    with pytest.raises(InputError, match="simplex"):
        decisions.expected_cost([np.nan, 1.0], C)
    with pytest.raises(ShapeError, match="3 classes"):
        decisions.decide([0.2, 0.3, 0.5], C)
    with pytest.raises(ShapeError):
        decisions.decide([0.5, 0.5], C[0])
    with pytest.raises(InputError, match="not finite"):
        decisions.decide([0.5, 0.5], C + np.inf)
    with pytest.raises(InputError, match="rows="):
        decisions.decide([0.5, 0.5], C, rows="columns")
    with pytest.raises(InputError, match="no more than the right"):
        decisions.cost_threshold([[1.0, 1.0], [0.0, 0.0]])
    with pytest.raises(ShapeError, match="two decisions"):
        decisions.cost_threshold(np.ones((3, 2)))
    with pytest.raises(ShapeError):
        decisions.decide(1.0, C)
