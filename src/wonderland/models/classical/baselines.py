"""Models that look at no input: what any other has to beat. Book, section 3.2.1 and exercises of chapter 4."""

from __future__ import annotations

from typing import Self

from ... import arrays
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.module.lazy import Lazy
from ...nn.module.parameter import Buffer, Held
from .classifier import Classifier, encode_labels
from .linear_model import Regressor, as_examples, as_targets
from .points import fitted


class MajorityClassifier(Classifier):
    """The most frequent class for every input, with the shares of the classes as probabilities.

    >>> model = MajorityClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "b"])
    >>> model.predict([[7.0]]).tolist(), model.score([[0.0], [1.0]], ["a", "b"])
    (['b'], 0.5)
    """

    shares: Held[Buffer]

    def __init__(self) -> None:
        self.shares = Lazy()

    def fit(self, X: ArrayLike, y: ArrayLike, num_classes: int | None = None) -> Self:
        """Count labels (n,), integers or names."""
        X = as_examples("MajorityClassifier", X)
        indices, self.classes_ = encode_labels("MajorityClassifier", y, X.shape[0], num_classes, least=1)
        self.shares = Buffer(arrays.mean(arrays.one_hot(indices, len(self.classes_), dtype=X.dtype), axis=0))
        return self

    def predict_proba(self, X: ArrayLike) -> Tensor:
        shares = fitted("MajorityClassifier", self.shares)
        return arrays.broadcast_to(shares, (*arrays.asarray(X).shape[:-1], *shares.shape))


class MeanRegressor(Regressor):
    """The mean of the targets for every input: R² = 0 on the training data.

    >>> MeanRegressor().fit([[0.0], [1.0]], [1.0, 3.0]).predict([[7.0]])
    tensor([2.])
    """

    mean: Held[Buffer]

    def __init__(self) -> None:
        self.mean = Lazy()

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Average targets (n,) or (n, m)."""
        X = as_examples("MeanRegressor", X)
        self.mean = Buffer(arrays.mean(as_targets("MeanRegressor", y, X), axis=0))
        return self

    def predict(self, X: ArrayLike) -> Tensor:
        mean = fitted("MeanRegressor", self.mean)
        return arrays.broadcast_to(mean, (*arrays.asarray(X).shape[:-1], *mean.shape))
