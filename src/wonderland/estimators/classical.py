"""The classical models of `wl.models` as estimators of scikit-learn's kind; `model_` is the model that was fitted."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..core.errors import InputError
from ..core.typing import Array, ArrayLike, Foreign
from ..models.classical import gaussian_mixture, kmeans, lasso, least_squares, logistic, nearest, pca
from ..nn.module.module import Module
from ..random.keys import key
from .bases import (
    BaseEstimator,
    ClassifierMixin,
    ClusterMixin,
    OutputNames,
    RegressorMixin,
    TransformerMixin,
    check_classes,
    check_is_fitted,
    seed_of,
    validate,
)


class _Estimator(BaseEstimator):
    """What the estimators below share: `_make` gives a model of ours for the parameters."""

    model_: Any

    def _least(self) -> int:
        """The least number of examples."""
        return 1

    def _make(self) -> Module:
        raise NotImplementedError

    def _inputs(self, X: object) -> Array:
        check_is_fitted(self)
        return validate(self, X, reset=False, dtype=np.float64)


class _Classifier(ClassifierMixin, _Estimator):
    def fit(self, X: object, y: object) -> Self:
        """Fit to inputs (n, features) and labels (n,), numbers or names."""
        x, labels = validate(self, X, y, dtype=np.float64, ensure_min_samples=self._least())
        check_classes(labels)
        self.classes_, places = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"{type(self).__name__}: the labels are all of one class, {self.classes_.tolist()}.",
                "examples of two or more classes",
            )
        self.model_ = self._make()
        self.model_.fit(x, places.reshape(-1))
        return self

    def predict_proba(self, X: object) -> Array:
        """The probabilities (n, classes)."""
        x = self._inputs(X)
        return np.asarray(self.model_.predict_proba(x))

    def predict(self, X: object) -> Array:
        """The most probable class of each example."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]


class _Regressor(RegressorMixin, _Estimator):
    _many_targets = True  # whether y may be (n, m)

    def __sklearn_tags__(self) -> Foreign:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._many_targets
        return tags

    def fit(self, X: object, y: object) -> Self:
        """Fit to inputs (n, features) and numbers (n,)."""
        x, targets = validate(
            self,
            X,
            y,
            dtype=np.float64,
            y_numeric=True,
            multi_output=self._many_targets,
            ensure_min_samples=self._least(),
        )
        self.model_ = self._make()
        self.model_.fit(x, np.asarray(targets, np.float64))
        return self

    def predict(self, X: object) -> Array:
        """The outputs for inputs (n, features)."""
        x = self._inputs(X)
        return np.asarray(self.model_.predict(x))


class _Linear(_Regressor):
    @property
    def coef_(self) -> Array:
        """The weights (features,), or (targets, features)."""
        return np.asarray(self.model_.coef_).T

    @property
    def intercept_(self) -> Array | float:
        """The bias."""
        return np.asarray(self.model_.intercept_)[()]


class LinearRegression(_Linear):
    """`wl.models.LinearRegression`: the least squared error.

    >>> import wonderland as wl
    >>> wl.estimators.LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
    array([7.])
    """

    def __init__(self, *, bias: bool = True) -> None:
        self.bias = bias

    def _make(self) -> Module:
        return least_squares.LinearRegression(self.bias)


class Ridge(_Linear):
    """`wl.models.Ridge`: least squares with a penalty `alpha` on the squared weights."""

    def __init__(self, alpha: float = 1.0, *, bias: bool = True) -> None:
        self.alpha = alpha
        self.bias = bias

    def _make(self) -> Module:
        return least_squares.Ridge(self.alpha, self.bias)


class ElasticNet(_Linear):
    """`wl.models.ElasticNet`: least squares with penalties on the squared and the absolute weights."""

    _many_targets = False

    def __init__(self, alpha: float = 1.0, *, l1_ratio: float = 0.5, bias: bool = True) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.bias = bias

    def _make(self) -> Module:
        return lasso.ElasticNet(self.alpha, self.l1_ratio, self.bias)


class Lasso(_Linear):
    """`wl.models.Lasso`: least squares with a penalty on the absolute weights, many of which become zero."""

    _many_targets = False

    def __init__(self, alpha: float = 1.0, *, bias: bool = True) -> None:
        self.alpha = alpha
        self.bias = bias

    def _make(self) -> Module:
        return lasso.Lasso(self.alpha, self.bias)


class LogisticRegression(_Classifier):
    """`wl.models.LogisticRegression`: a linear model of the logits.

    >>> import wonderland as wl
    >>> model = wl.estimators.LogisticRegression(l2=0.1).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.2], [2.9]]).tolist()
    ['a', 'b']

    `l2` is the penalty on the squared weights: without any, classes that a plane separates have no best weights.
    """

    def __init__(self, l2: float = 0.01, *, bias: bool = True) -> None:
        self.l2 = l2
        self.bias = bias

    def _make(self) -> Module:
        return logistic.LogisticRegression(self.l2, self.bias)

    @property
    def coef_(self) -> Array:
        """The weights (classes, features)."""
        return np.asarray(self.model_.coef_).T


class _Neighbors(_Estimator):
    def __init__(self, n_neighbors: int = 5, *, weights: str = "uniform", metric: str = "euclidean") -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric

    def _least(self) -> int:
        return self.n_neighbors


class KNeighborsClassifier(_Neighbors, _Classifier):
    """`wl.models.KNeighborsClassifier`: the share of each class among the nearest examples."""

    def _make(self) -> Module:
        return nearest.KNeighborsClassifier(self.n_neighbors, self.weights, self.metric)


class KNeighborsRegressor(_Neighbors, _Regressor):
    """`wl.models.KNeighborsRegressor`: the mean of the nearest examples."""

    def _make(self) -> Module:
        return nearest.KNeighborsRegressor(self.n_neighbors, self.weights, self.metric)


class KMeans(OutputNames, TransformerMixin, ClusterMixin, _Estimator):
    """`wl.models.KMeans`: centres of clusters, and the distances from them.

    >>> import wonderland as wl
    >>> model = wl.estimators.KMeans(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
    >>> sorted(model.cluster_centers_.ravel().round(2).tolist())
    [0.05, 5.05]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: object = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _make(self) -> Module:
        drawn = key(seed_of(self.random_state))
        return kmeans.KMeans(self.n_clusters, self.init, self.n_init, self.max_iter, self.tol, drawn)

    def fit(self, X: object, y: object = None) -> Self:
        """Find the centres of points (n, features)."""
        self.model_ = self._make()
        self.model_.fit(validate(self, X, dtype=np.float64))
        self.labels_ = np.asarray(self.model_.labels_)
        self.cluster_centers_ = np.asarray(self.model_.cluster_centers_)
        self.inertia_, self.n_iter_ = self.model_.inertia_, max(1, self.model_.n_iter_)
        self._n_features_out = len(self.cluster_centers_)
        return self

    def predict(self, X: object) -> Array:
        """The numbers (n,) of the nearest centres."""
        x = self._inputs(X)
        return np.asarray(self.model_.predict(x))

    def transform(self, X: object) -> Array:
        """The distances (n, clusters) from the centres."""
        x = self._inputs(X)
        return np.asarray(self.model_.transform(x))

    def score(self, X: object, y: object = None) -> float:
        """Minus the sum of the squared distances from the nearest centres."""
        x = self._inputs(X)
        return float(self.model_.score(x))


class GaussianMixture(_Estimator):
    """`wl.models.GaussianMixture`: a density that is a sum of Gaussians.

    >>> import wonderland as wl
    >>> model = wl.estimators.GaussianMixture(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
    >>> sorted(model.means_.ravel().round(2).tolist())
    [0.05, 5.05]
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        random_state: object = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def _make(self) -> Module:
        return gaussian_mixture.GaussianMixture(
            self.n_components,
            self.covariance_type,
            self.tol,
            self.reg_covar,
            self.max_iter,
            self.n_init,
            key(seed_of(self.random_state)),
        )

    def fit(self, X: object, y: object = None) -> Self:
        """Find the weights, means and covariances for points (n, features)."""
        self.model_ = self._make()
        self.model_.fit(validate(self, X, dtype=np.float64, ensure_min_samples=2))
        return self

    @property
    def weights_(self) -> Array:
        """The shares (components,)."""
        return np.asarray(self.model_.weights_)

    @property
    def means_(self) -> Array:
        """The means (components, features)."""
        return np.asarray(self.model_.means_)

    @property
    def covariances_(self) -> Array:
        """The covariances, in the form of `covariance_type`."""
        return np.asarray(self.model_.covariances_)

    def fit_predict(self, X: object, y: object = None) -> Array:
        """`fit`, then the components of the same points."""
        return self.fit(X).predict(X)

    def predict(self, X: object) -> Array:
        """The most probable component of each point."""
        x = self._inputs(X)
        return np.asarray(self.model_.predict(x))

    def predict_proba(self, X: object) -> Array:
        """The probabilities (n, components)."""
        x = self._inputs(X)
        return np.asarray(self.model_.predict_proba(x))

    def score_samples(self, X: object) -> Array:
        """The logarithm of the density at each point."""
        x = self._inputs(X)
        return np.asarray(self.model_.score_samples(x))

    def score(self, X: object, y: object = None) -> float:
        """The mean logarithm of the density."""
        return float(self.score_samples(X).mean())


class PCA(OutputNames, TransformerMixin, _Estimator):
    """`wl.models.PCA`: coordinates along the directions in which points differ most.

    >>> import wonderland as wl
    >>> wl.estimators.PCA(1).fit_transform([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]).round(3).ravel().tolist()
    [-1.414, 0.0, 1.414]
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _make(self) -> Module:
        return pca.PCA(self.n_components)

    def fit(self, X: object, y: object = None) -> Self:
        """Find the directions of points (n, features)."""
        self.model_ = self._make()
        self.model_.fit(validate(self, X, dtype=np.float64, ensure_min_samples=2))
        self.components_ = np.asarray(self.model_.components_)
        self.explained_variance_ratio_ = np.asarray(self.model_.explained_variance_ratio_)
        self._n_features_out = len(self.components_)
        return self

    def transform(self, X: object) -> Array:
        """The coordinates (n, components) of points."""
        x = self._inputs(X)
        return np.asarray(self.model_.transform(x))

    def inverse_transform(self, Z: object) -> Array:
        """The points (n, features) with these coordinates."""
        check_is_fitted(self)
        return np.asarray(self.model_.inverse_transform(np.asarray(Z, np.float64)))
