"""The perceptron learns what a hyperplane can separate, and nothing else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import wonderland as wl
from wonderland import models
from wonderland.errors import InputError

CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
AND, OR, XOR = [0, 0, 0, 1], [0, 1, 1, 1], [0, 1, 1, 0]


@pytest.mark.book("A2-27", name="wl.models.Perceptron")
@pytest.mark.parametrize("labels", [AND, OR])
def test_it_converges_if_the_classes_can_be_separated(labels):
    model = models.Perceptron().fit(CORNERS, labels)
    assert model.predict(CORNERS).tolist() == labels
    mistakes = model.mistakes.numpy()
    assert mistakes[-1] == 0
    assert mistakes[0] > 0
    assert model.score(CORNERS, labels) == 1.0
    # every update adds or takes an example, so with lr = 1 the parameters are whole numbers
    np.testing.assert_array_equal(model.weight.detach(), np.round(model.weight.detach()))


@pytest.mark.book("A2-27", "A2-02", name=("wl.models.Perceptron", "wl.models.is_linearly_separable"))
def test_exclusive_or_is_beyond_it():
    model = models.Perceptron()
    with pytest.warns(models.ConvergenceWarning, match="mistakes in 4 examples"):
        model.fit(CORNERS, XOR, max_epochs=50)
    assert model.mistakes.numpy().min() >= 1
    # no linear model does better than 3 of 4: try a fine grid of them
    grid = np.linspace(-1.5, 1.5, 25)
    best = max(np.mean((CORNERS @ [a, b] + c >= 0) == XOR) for a, b, c in itertools.product(grid, grid, grid))
    assert best == 0.75
    assert not models.is_linearly_separable(CORNERS, XOR)


@pytest.mark.book("A2-03", name=("wl.models.PolynomialFeatures", "wl.models.Pipeline"))
def test_one_more_feature_makes_it_separable():
    features = models.PolynomialFeatures(2, interaction_only=True)
    np.testing.assert_array_equal(features(CORNERS)[:, 2], CORNERS[:, 0] * CORNERS[:, 1])
    assert models.is_linearly_separable(features(CORNERS), XOR)
    model = models.Pipeline(features, models.Perceptron()).fit(CORNERS, XOR)
    assert model.predict(CORNERS).tolist() == XOR
    assert model.score(CORNERS, XOR) == 1.0


def test_separability_against_a_linear_program():
    """w exists with y_i (w x_i + b) >= 1 exactly if the program has a solution."""
    r = np.random.default_rng(0)
    found = []
    for trial in range(40):
        n, c = int(r.integers(4, 12)), int(r.integers(1, 4))
        X = r.normal(size=(n, c)) * 10.0 ** r.integers(-2, 3) + 5 * (trial % 2)
        y = r.integers(0, 2, size=n)
        y[:2] = 0, 1
        signs = 2 * y - 1
        A = -signs[:, None] * np.c_[X, np.ones(n)]
        program = linprog(np.zeros(c + 1), A_ub=A, b_ub=-np.ones(n), bounds=(None, None))
        found.append(program.status == 0)
        assert models.is_linearly_separable(X, y) == found[-1]
    assert 5 < sum(found) < 35, "both cases were tried"
    big = r.normal(size=(200, 3))
    assert models.is_linearly_separable(big, (big @ [1, -2, 0.5] > 0.3).astype(int))


def test_order_names_and_scale():
    r = np.random.default_rng(1)
    X = r.normal(size=(40, 2))
    X = X[np.abs(X.sum(1)) > 0.2]
    y = np.where(X.sum(1) > 0, "up", "down")
    model = models.Perceptron(lr=0.1).fit(X, y, shuffle=True, seed=3)
    assert (model.predict(X) == y).all()
    assert model.classes_ == ("down", "up")
    flat = models.Perceptron(bias=False).fit(X, y)
    assert flat.bias is None
    assert (flat.predict(X) == y).all()
    p = flat.predict_proba(X)
    assert wl.is_simplex(p)


def test_bad_data():
    with pytest.raises(InputError, match="all of one class"):
        models.Perceptron().fit(CORNERS, [1, 1, 1, 1])
    with pytest.raises(InputError, match="3 classes"):
        models.Perceptron().fit(CORNERS, [0, 1, 2, 0])
    with pytest.raises(InputError, match="3 classes"):
        models.is_linearly_separable(CORNERS, [0, 1, 2, 0])
    with pytest.raises(InputError, match="lr=0"):
        models.Perceptron(lr=0)
    with pytest.raises(InputError, match="max_epochs"):
        models.Perceptron().fit(CORNERS, AND, max_epochs=0)
