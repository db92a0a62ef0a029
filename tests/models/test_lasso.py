"""The lasso and the elastic net against scikit-learn and their optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import linear_model as sk

from wonderland import models
from wonderland.errors import InputError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 6)) * [1, 2, 0.5, 1, 1, 3]
Y = X @ [1.0, 0.0, -2.0, 0.0, 0.3, 0.0] + 0.1 * rng.normal(size=40) + 2


@pytest.mark.parametrize("alpha", [0.01, 0.3])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("bias", [True, False])
def test_against_scikit_learn(alpha, ratio, bias):
    ours = models.ElasticNet(alpha, ratio, bias=bias).fit(X, Y)
    if ratio:
        theirs = sk.ElasticNet(alpha=alpha, l1_ratio=ratio, fit_intercept=bias, tol=1e-12, max_iter=100_000).fit(X, Y)
    else:
        theirs = sk.Ridge(alpha=alpha * 40, fit_intercept=bias).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_array_equal(ours.coef_.numpy() == 0, theirs.coef_ == 0)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)


def test_the_lasso_selects():
    model = models.Lasso(alpha=0.2).fit(X, Y)
    w = model.coef_.numpy()
    assert 0 < (w == 0).sum() < 6
    # at the minimum the slope of the error balances the penalty, or is too small to leave 0
    slope = (X - X.mean(0)).T @ (Y - model.predict(X).numpy()) / 40
    np.testing.assert_allclose(slope[w != 0], 0.2 * np.sign(w[w != 0]), atol=1e-6)
    assert np.all(np.abs(slope[w == 0]) <= 0.2)
    assert (models.Lasso(alpha=100.0).fit(X, Y).coef_.numpy() == 0).all()
    np.testing.assert_allclose(
        models.Lasso(alpha=0.0).fit(X, Y).coef_, models.LinearRegression().fit(X, Y).coef_, atol=1e-6
    )
    assert model.losses.numpy()[-1] < model.losses.numpy()[0]


def test_bad_arguments():
    for bad in ({"alpha": -1.0}, {"l1_ratio": 1.5}):
        with pytest.raises(InputError):
            models.ElasticNet(**bad)
    with pytest.raises(ShapeError):
        models.Lasso().fit(X, Y[:, None])
    with pytest.warns(models.ConvergenceWarning, match="after 2 steps"):
        models.Lasso(0.01).fit(X, Y, max_iter=2)
