"""Features made by hand, stages in a row, and features from inside a model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import preprocessing

import wonderland as wl
from wonderland import models
from wonderland.errors import InputError, ModuleError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))


@pytest.mark.book("A2-03", name="wl.models.PolynomialFeatures")
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("include_bias", [False, True])
def test_polynomial_features_against_scikit_learn(degree, interaction_only, include_bias):
    settings = {"degree": degree, "interaction_only": interaction_only, "include_bias": include_bias}
    theirs = preprocessing.PolynomialFeatures(**settings).fit_transform(X)
    ours = models.PolynomialFeatures(**settings)
    np.testing.assert_allclose(ours.transform(X), theirs, rtol=1e-12)
    assert ours(X.reshape(4, 5, 3)).shape == (4, 5, theirs.shape[1])


@pytest.mark.book("A2-03", name="wl.models.Pipeline")
def test_a_pipeline_fits_each_stage_to_training_data_alone():
    y = X[:, 0] ** 2 - X[:, 1] * X[:, 2]
    scaler = preprocessing.StandardScaler()
    model = models.Pipeline(scaler, models.PolynomialFeatures(2), models.LinearRegression()).fit(X, y)
    assert model.score(X, y) == pytest.approx(1)
    new = rng.normal(size=(5, 3)) + 10
    np.testing.assert_allclose(model.predict(new), new[:, 0] ** 2 - new[:, 1] * new[:, 2], rtol=1e-8)
    np.testing.assert_allclose(scaler.mean_, X.mean(0))
    np.testing.assert_allclose(model(new).detach(), model.predict(new), rtol=1e-12)
    classes = models.Pipeline(np.tanh, models.LogisticRegression(l2=0.1)).fit(X, (y > 0).astype(int))
    assert classes.predict_proba(X).shape == (20, 2)


@pytest.mark.book("B3-05", name="wl.models.extract_features")
def test_features_from_a_layer_inside():
    model = wl.nn.Sequential(wl.nn.Linear(3, 8), wl.nn.Tanh(), wl.nn.Linear(8, 2))
    x = wl.asarray(X.astype(np.float32))
    inside = models.extract_features(model, "1", x)
    np.testing.assert_allclose(inside.detach(), wl.tanh(model[0](x)).detach(), rtol=1e-6)
    assert not model[1]._hooks, "nothing is left behind"
    # they serve another model: here the model's own last layer is found again
    again = models.LinearRegression().fit(inside.detach(), model(x).detach())
    np.testing.assert_allclose(again.predict(inside.detach()), model(x).detach(), atol=1e-4)


def test_bad_arguments():
    with pytest.raises(InputError, match="degree"):
        models.PolynomialFeatures(0)
    with pytest.raises(ShapeError):
        models.PolynomialFeatures()(1.0)
    with pytest.raises(InputError, match="no stage"):
        models.Pipeline()
    with pytest.raises(InputError, match="a int is no stage"):
        models.Pipeline(3, models.LinearRegression())

    class Skips(wl.nn.Module):
        def __init__(self):
            self.used, self.unused = wl.nn.Linear(3, 1), wl.nn.Linear(3, 1)

        def forward(self, x):
            return self.used(x)

    with pytest.raises(ModuleError, match="did not call 'unused'"):
        models.extract_features(Skips(), "unused", wl.ones(3))
