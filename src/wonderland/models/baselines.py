"""Models that look at no input: what any other has to beat. Book, section 3.2.1 and exercises of chapter 4."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..nn.lazy import Lazy
from ..nn.module import Module
from ..nn.parameter import Buffer
from ..tensor import Tensor
from .classifier import Classifier, encode_labels
from .linear_model import as_examples, as_targets, r2_score
from .points import fitted


class MajorityClassifier(Classifier):
    """The most frequent class for every input, with the shares of the classes as probabilities.

    >>> model = MajorityClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "b"])
    >>> model.predict([[7.0]]).tolist(), model.score([[0.0], [1.0]], ["a", "b"])
    (['b'], 0.5)
    """

    shares: Any

    def __init__(self) -> None:
        self.shares = Lazy()

    def fit(self, X: Any, y: Any, num_classes: int | None = None) -> Any:
        """Count labels (n,), integers or names."""
        X = as_examples("MajorityClassifier", X)
        indices, self.classes_ = encode_labels("MajorityClassifier", y, X.shape[0], num_classes, least=1)
        self.shares = Buffer(arrays.mean(arrays.one_hot(indices, len(self.classes_), dtype=X.dtype), axis=0))
        return self

    def predict_proba(self, X: Any) -> Tensor:
        shares = fitted("MajorityClassifier", self.shares)
        return arrays.broadcast_to(shares, (*arrays.asarray(X).shape[:-1], *shares.shape))


class MeanRegressor(Module):
    """The mean of the targets for every input: R² = 0 on the training data.

    >>> MeanRegressor().fit([[0.0], [1.0]], [1.0, 3.0]).predict([[7.0]])
    tensor([2.])
    """

    mean: Any

    def __init__(self) -> None:
        self.mean = Lazy()

    def fit(self, X: Any, y: Any) -> Any:
        """Average targets (n,) or (n, m)."""
        X = as_examples("MeanRegressor", X)
        self.mean = Buffer(arrays.mean(as_targets("MeanRegressor", y, X), axis=0))
        return self

    def predict(self, X: Any) -> Tensor:
        mean = fitted("MeanRegressor", self.mean)
        return arrays.broadcast_to(mean, (*arrays.asarray(X).shape[:-1], *mean.shape))

    def score(self, X: Any, y: Any) -> float:
        """R²."""
        return r2_score("MeanRegressor", self.predict(as_examples("MeanRegressor", X)), y)
