"""Models that look at no input."""

from __future__ import annotations

import numpy as np
import pytest

from wonderland import models
from wonderland.errors import ModuleError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))


def test_the_most_frequent_class():
    y = np.array([0, 2, 2, 1] * 5)
    model = models.MajorityClassifier().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:2]), [[0.25, 0.25, 0.5]] * 2)
    assert model.score(X, y) == 0.5
    assert model.predict(X.reshape(4, 5, 3)).shape == (4, 5)
    with pytest.raises(ModuleError, match="not been fitted"):
        models.MajorityClassifier().predict(X)


def test_the_mean():
    y = rng.normal(size=(20, 2))
    model = models.MeanRegressor().fit(X, y)
    np.testing.assert_allclose(model.predict(X[:3]), np.tile(y.mean(0), (3, 1)))
    assert model.score(X, y) == pytest.approx(0, abs=1e-12)
    assert models.MeanRegressor().fit(X, y[:, 0]).predict(X).shape == (20,)
    with pytest.raises(ShapeError):
        model.fit(X, y[1:])
