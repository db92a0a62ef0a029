"""Principal components: against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import decomposition

import wonderland as wl
from wonderland.errors import InputError, ModuleError, ShapeError
from wonderland.models import PCA

X = np.random.default_rng(0).normal(size=(30, 5)) @ np.diag([5.0, 3.0, 1.0, 0.5, 0.1]) + 2.0


@pytest.mark.parametrize("n", [2, None])
def test_it_is_scikit_learns(n):
    model, reference = PCA(n).fit(X), decomposition.PCA(n).fit(X)
    np.testing.assert_allclose(model.singular_values_, reference.singular_values_)
    np.testing.assert_allclose(model.explained_variance_, reference.explained_variance_)
    np.testing.assert_allclose(model.explained_variance_ratio_, reference.explained_variance_ratio_)
    signs = np.sign((model.components_.numpy() * reference.components_).sum(1))
    np.testing.assert_allclose(model.components_, signs[:, None] * reference.components_, atol=1e-10)
    np.testing.assert_allclose(model.transform(X), signs * reference.transform(X), atol=1e-10)
    back = model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(back, reference.inverse_transform(reference.transform(X)), atol=1e-10)
    np.testing.assert_allclose(wl.jit(model)(wl.asarray(X)), model.fit_transform(X), atol=1e-12)


def test_bad_input():
    with pytest.raises(ModuleError, match="not been fitted"):
        PCA(2).transform(X)
    with pytest.raises(InputError, match="7 components"):
        PCA(7).fit(X)
    with pytest.raises(ShapeError, match="coordinates of shape"):
        PCA(2).fit(X).inverse_transform(X)
