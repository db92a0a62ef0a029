"""Models that remember: nearest neighbours and the look-up table. Book, sections 3.1.1, 3.2.1 and exercises of 4."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...nn.module.lazy import Lazy
from ...nn.module.module import Module
from ...nn.module.parameter import Buffer, Held
from .classifier import Classifier, Labels, encode_labels
from .linear_model import Regressor, as_examples, as_targets
from .neighbors import METRICS, similarities
from .points import fitted


class _Neighbors(Module):
    """The examples, and the k nearest of them with their weights."""

    examples: Held[Buffer]
    targets: Held[Buffer]

    def __init__(self, n_neighbors: int = 5, weights: str = "uniform", metric: str = "euclidean") -> None:
        name = type(self).__name__
        if weights not in ("uniform", "distance") or metric not in METRICS:
            raise InputError(
                f"{name}: weights={weights!r}, metric={metric!r}.",
                'weights "uniform" or "distance"; metric ' + ", ".join(map(repr, METRICS)),
            )
        if weights == "distance" and metric != "euclidean":
            raise InputError(f"{name}: {metric!r} similarities are no distances.", 'metric="euclidean"')
        self.n_neighbors = as_int(name, "n_neighbors", n_neighbors, least=1)
        self.weights = weights
        self.metric = metric
        self.examples = Lazy()
        self.targets = Lazy()

    def _remember(self, X: Tensor, targets: Tensor) -> None:
        if self.n_neighbors > X.shape[0]:
            raise InputError(
                f"{type(self).__name__}: n_neighbors={self.n_neighbors} of {X.shape[0]} examples.", "fewer neighbours"
            )
        self.examples, self.targets = Buffer(X), Buffer(targets)

    def kneighbors(self, X: ArrayLike) -> tuple[Tensor, Tensor]:
        """The similarities (minus the distances if "euclidean") and numbers (..., k) of the nearest examples."""
        examples = fitted(type(self).__name__, self.examples)
        return arrays.top_k(similarities(arrays.asarray(X), examples, self.metric), self.n_neighbors)

    def _average(self, X: ArrayLike, targets: Tensor) -> Tensor:
        """The mean of targets (n, m) over the neighbours, as (..., m)."""
        scores, numbers = self.kneighbors(X)
        chosen = arrays.take(targets, numbers, axis=0)  # (..., k, m)
        if self.weights == "uniform":
            return arrays.mean(chosen, axis=-2)
        distance = -scores
        same = distance == 0  # examples at the very place count alone
        nearer = arrays.where(same, 1.0, 0.0), 1 / arrays.where(same, 1.0, distance)
        share = arrays.where(arrays.any(same, axis=-1, keepdims=True), *nearer)
        return arrays.sum(chosen * (share / arrays.sum(share, axis=-1, keepdims=True))[..., None], axis=-2)


class KNeighborsClassifier(Classifier, _Neighbors):
    """The class that most of the k nearest examples have; of equals the first. Book, exercises of chapter 4.

    >>> model = KNeighborsClassifier(1).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    >>> model.predict([[4.0]]).tolist()
    ['b']

    With `weights="distance"` a neighbour counts one over its distance. With k = 1 the training examples are always
    right, and nothing follows from that.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, num_classes: int | None = None) -> Self:
        """Remember inputs (n, c) and labels (n,), integers or names."""
        X = as_examples("KNeighborsClassifier", X)
        indices, self.classes_ = encode_labels("KNeighborsClassifier", y, X.shape[0], num_classes, least=1)
        self._remember(X, indices)
        return self

    def predict_proba(self, X: ArrayLike) -> Tensor:
        """The share (..., m) of every class among the neighbours."""
        targets = fitted("KNeighborsClassifier", self.targets)
        return self._average(X, arrays.one_hot(targets, len(self.classes_), dtype=self.examples.dtype))


class KNeighborsRegressor(_Neighbors, Regressor):
    """The mean of the targets of the k nearest examples.

    >>> KNeighborsRegressor(2).fit([[0.0], [1.0], [5.0]], [1.0, 3.0, 9.0]).predict([[0.5]])
    tensor([2.])
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Remember inputs (n, c) and targets (n,) or (n, m)."""
        X = as_examples("KNeighborsRegressor", X)
        self._remember(X, as_targets("KNeighborsRegressor", y, X))
        return self

    def predict(self, X: ArrayLike) -> Tensor:
        targets = arrays.asarray(fitted("KNeighborsRegressor", self.targets))
        if targets.ndim == 2:
            return self._average(X, targets)
        return arrays.squeeze(self._average(X, targets[:, None]), -1)


class LookupModel:
    r"""Memory without learning: y for an x of the training set, \(\bar y\) for every other. Book, E.3.4.

    >>> model = LookupModel().fit([[0.0], [1.0]], [1.0, 3.0])
    >>> model.predict([[1.0], [1.001]]).tolist()
    [3.0, 2.0]

    Its empirical risk is 0 and its risk on new data that of a constant: training error alone says nothing. Integers
    and names are classes, whose default is the most frequent one; `default` sets another. Of an x that occurs twice
    the mean (or the most frequent class) is remembered.
    """

    def __init__(self, default: float | str | None = None) -> None:
        self.default = default
        self.table: dict[bytes, Any] | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> LookupModel:
        """Remember inputs (n, c) and targets or labels (n,)."""
        X = as_examples("LookupModel", X)
        targets = np.asarray(y)
        if targets.dtype.kind == "f":
            as_targets("LookupModel", targets, X)
        else:
            encode_labels("LookupModel", targets, X.shape[0], least=1)
        if targets.ndim != 1:
            raise InputError(f"LookupModel: targets of shape {targets.shape}.", "one target per example, (n,)")
        groups: dict[bytes, list[Any]] = {}
        for key, target in zip(_keys(X), targets, strict=True):
            groups.setdefault(key, []).append(target)
        self.dtype = targets.dtype
        self.table = {key: _typical(np.array(values)) for key, values in groups.items()}
        self.constant = _typical(targets) if self.default is None else self.default
        return self

    def predict(self, X: ArrayLike) -> Labels:
        """What is remembered of inputs (n, c): a tensor, or an array of names."""
        if self.table is None:
            raise InputError("LookupModel: it has not been fitted yet.", "fit(X, y) first")
        found = [self.table.get(key, self.constant) for key in _keys(as_examples("LookupModel", X))]
        values = np.array(found) if self.dtype.kind == "U" else np.array(found, self.dtype)
        return values if values.dtype.kind == "U" else arrays.asarray(values)


def _keys(X: Tensor) -> list[bytes]:
    return [row.tobytes() for row in X.numpy().astype(np.float64) + 0.0]  # -0 and 0 are one number


def _typical(values: Array) -> Any:
    if values.dtype.kind == "f":
        return values.mean()
    kinds, counts = np.unique(values, return_counts=True)
    return kinds[np.argmax(counts)]
