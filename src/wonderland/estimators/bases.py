"""What estimators stand on: scikit-learn's bases and its checks of data, or plain ones where it is not installed."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Self

import numpy as np

from ..core.errors import InputError, ModuleError, ShapeError
from ..core.naming import near
from ..core.typing import Array, ArrayLike, DTypeLike, Foreign


class PlainEstimator:
    """Parameters as scikit-learn has them: the arguments of `__init__` are attributes of the same names.

    >>> class Model(PlainEstimator):
    ...     def __init__(self, size=3):
    ...         self.size = size
    >>> Model().set_params(size=4).get_params()
    {'size': 4}
    """

    n_features_in_: int
    feature_names_in_: Array

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The parameters by name; `deep` includes those of estimators among them, as `inner__name`."""
        found: dict[str, object] = {}
        for name in list(inspect.signature(type(self)).parameters):
            value = found[name] = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return found

    def set_params(self, **params: object) -> Self:
        """Change parameters. Returns the estimator."""
        known = self.get_params(deep=False)
        for name, value in params.items():
            outer, nested, inner = name.partition("__")
            if outer not in known:
                raise InputError(
                    f"{type(self).__name__}: there is no parameter {outer!r}.",
                    "one of " + ", ".join(near(outer, known) or known),
                )
            if nested:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, outer, value)
        return self

    def __repr__(self) -> str:
        changed = {
            name: getattr(self, name)
            for name, parameter in inspect.signature(type(self)).parameters.items()
            if getattr(self, name) is not parameter.default
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


class PlainClassifier:
    """Accuracy as the score."""

    predict: Callable[..., Array]

    def score(self, X: object, y: object, sample_weight: ArrayLike | None = None) -> float:
        right = np.asarray(self.predict(X)) == np.asarray(y)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(right, weights=weights))


class PlainRegressor:
    """R² as the score."""

    predict: Callable[..., Array]

    def score(self, X: object, y: object, sample_weight: ArrayLike | None = None) -> float:
        weights = None if sample_weight is None else np.asarray(sample_weight)
        targets = np.asarray(y, np.float64)
        error = (targets - np.asarray(self.predict(X), np.float64)) ** 2
        center = np.average(targets, axis=0, weights=weights)
        shares = [np.average(part, axis=0, weights=weights) for part in (error, (targets - center) ** 2)]
        return float(np.mean(1.0 - shares[0] / shares[1]))


class PlainClusters:
    """`fit_predict`, the labels of the data that a clustering was fitted to."""

    fit: Callable[..., PlainClusters]
    labels_: Array

    def fit_predict(self, X: object, y: object = None) -> Array:
        return self.fit(X).labels_


class PlainTransformer:
    """`fit_transform`."""

    fit: Callable[..., PlainTransformer]
    transform: Callable[..., Array]

    def fit_transform(self, X: object, y: object = None) -> Array:
        return self.fit(X, y).transform(X)


class PlainNames:
    """The names of what a transformer gives."""

    _n_features_out: int

    def get_feature_names_out(self, input_features: object = None) -> Array:
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self._n_features_out)], object)


def _validate_plainly(
    estimator: PlainEstimator,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    reset: bool = True,
    dtype: DTypeLike = np.float64,
    **settings: object,
) -> Array | tuple[Array, Array]:
    """Inputs (n, features) and targets as arrays, after a look at both."""
    name = type(estimator).__name__
    if reset:
        columns = getattr(X, "columns", None)
        if columns is not None and all(isinstance(column, str) for column in columns):
            estimator.feature_names_in_ = np.array(list(columns), object)
    x = np.asarray(X, dtype)
    if x.ndim < 2 or not x.size:
        raise ShapeError(f"{name}: inputs of shape {x.shape}.", "inputs of shape (examples, features)")
    if not np.isfinite(x).all():
        raise InputError(f"{name}: inputs with NaN or infinity.", "an imputer before it, or rows without them")
    if reset:
        estimator.n_features_in_ = x.shape[1]
    elif x.shape[1] != estimator.n_features_in_:
        raise ShapeError(
            f"{name}: {x.shape[1]} features, but it was fitted to {estimator.n_features_in_}.", "the same features"
        )
    if y is None:
        return x
    targets = np.asarray(y)
    if len(targets) != len(x):
        raise ShapeError(f"{name}: {len(x)} inputs and {len(targets)} targets.", "one target for each")
    return x, targets


def _check_plainly(estimator: object) -> None:
    if not any(name.endswith("_") and not name.startswith("_") for name in vars(estimator)):
        raise ModuleError(f"{type(estimator).__name__}: it has not been fitted.", "fit(X, y) first")


def _weights_plainly(weights: ArrayLike | None, X: Array, dtype: DTypeLike = np.float64) -> Array:
    found = np.ones(len(X), dtype) if weights is None else np.asarray(weights, dtype)
    if found.shape != (len(X),):
        raise ShapeError(f"sample_weight: shape {found.shape} for {len(X)} examples.", "one weight for each")
    return found


def _same(y: Array) -> None:
    """Without scikit-learn, targets are looked at by the losses."""


# Classes that may be another's: annotated so that type checkers leave them alone.
BaseEstimator: Foreign = PlainEstimator
ClassifierMixin: Foreign = PlainClassifier
RegressorMixin: Foreign = PlainRegressor
ClusterMixin: Foreign = PlainClusters
TransformerMixin: Foreign = PlainTransformer
OutputNames: Foreign = PlainNames
validate: Foreign = _validate_plainly
check_is_fitted: Foreign = _check_plainly
check_weights: Foreign = _weights_plainly
check_classes: Foreign = _same

try:
    _base = importlib.import_module("sklearn.base")
    _validation = importlib.import_module("sklearn.utils.validation")
    validate = _validation.validate_data  # from 1.6 on
except (ImportError, AttributeError):
    pass
else:
    BaseEstimator, ClassifierMixin, RegressorMixin = _base.BaseEstimator, _base.ClassifierMixin, _base.RegressorMixin
    ClusterMixin, TransformerMixin = _base.ClusterMixin, _base.TransformerMixin
    OutputNames = _base.ClassNamePrefixFeaturesOutMixin
    check_is_fitted = _validation.check_is_fitted
    check_weights = _validation._check_sample_weight
    check_classes = importlib.import_module("sklearn.utils.multiclass").check_classification_targets


def seed_of(random_state: object) -> int:
    """A seed from what scikit-learn calls a random state: a number, NumPy's generators, or None for another each time.

    >>> seed_of(3)
    3
    """
    if random_state is None:
        return int(np.random.randint(2**31))  # noqa: NPY002 - as scikit-learn: np.random.seed decides
    if hasattr(random_state, "integers"):
        return int(random_state.integers(2**31))
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**31))
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    raise InputError(f"random_state={random_state!r}.", "a number from 0 on, a NumPy generator, or None")
