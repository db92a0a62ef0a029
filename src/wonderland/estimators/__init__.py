"""Models with the face of scikit-learn's estimators: for its pipelines, grid searches and cross validation.

`Classifier` and `Regressor` train any module; the others are the classical models of `wl.models` under the same names.
They take and give NumPy arrays. With scikit-learn installed they are its estimators (tags, clones, metadata); without
it, they have parameters, `fit`, `predict` and `score` all the same.
"""

from .classical import (
    PCA,
    ElasticNet,
    GaussianMixture,
    KMeans,
    KNeighborsClassifier,
    KNeighborsRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
)
from .networks import EXPECTED_FAILED_CHECKS, Classifier, Regressor

# fmt: off
__all__ = [
    "Classifier", "Regressor", "LinearRegression", "Ridge", "Lasso", "ElasticNet", "LogisticRegression",
    "KNeighborsClassifier", "KNeighborsRegressor", "KMeans", "GaussianMixture", "PCA",
    "EXPECTED_FAILED_CHECKS",
]
