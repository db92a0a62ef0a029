"""Metrics of classification. Book, sections 4.3.3 and 9.2.2."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import InputError, ShapeError
from ..core.typing import ArrayLike
from .classes import count_pairs, predicted
from .metric import Array, Metric, Sums, Value

AVERAGES = ("binary", "macro", "micro", "weighted", "none")


class Accuracy(Metric):
    r"""The share of examples whose class is predicted, \(\frac1n\sum_i [\hat y_i = y_i]\).

    >>> import wonderland as wl
    >>> wl.metrics.Accuracy()(wl.tensor([[0.1, 0.9], [0.8, 0.2]]), wl.tensor([1, 1]))
    0.5

    Predictions are scores over classes (logits or probabilities), scores of the positive class, or classes; see
    `threshold` for the second. With `top_k` an example counts if its class is among the k best. Book, section 9.1.
    """

    right: Array
    all: Array

    def __init__(self, top_k: int = 1, threshold: float = 0.5) -> None:
        if top_k < 1:
            raise InputError(f"accuracy: top_k={top_k}.", "1 or more")
        self.top_k, self.threshold = top_k, threshold
        super().__init__()

    @property
    def name(self) -> str:
        return "accuracy" if self.top_k == 1 else f"top_{self.top_k}_accuracy"

    def start(self) -> Sums:
        return {"right": 0.0, "all": 0.0}

    def add(self, predictions: Array, targets: Array) -> None:
        if self.top_k == 1:
            found, true = predicted(self.name, predictions, targets, self.threshold)
            self.right += np.count_nonzero(found == true)
        else:
            _, true = predicted(self.name, predictions, targets, self.threshold)
            if predictions.ndim != true.ndim + 1:
                raise ShapeError(f"{self.name}: predictions of shape {predictions.shape}.", "scores (n, classes)")
            k = min(self.top_k, predictions.shape[-1])
            best = np.argpartition(-predictions, k - 1, axis=-1)[..., :k]
            self.right += np.count_nonzero((best == true[..., None]).any(-1))
        self.all += true.size

    def result(self) -> Value:
        return self.right / self.all


class ConfusionMatrix(Metric):
    """How often class i was taken for class j: `[i, j]` counts true i and predicted j.

    >>> import wonderland as wl
    >>> print(wl.metrics.ConfusionMatrix(2)(wl.tensor([0, 1, 1]), wl.tensor([0, 0, 1])))
    [[1 1]
     [0 1]]

    `normalize="true"` gives shares of each true class. Book, section 4.3.3 (whose table has predictions in rows).
    """

    counts: Array

    def __init__(self, classes: int, normalize: str | None = None, threshold: float = 0.5) -> None:
        if classes < 2:
            raise InputError(f"confusion_matrix: classes={classes}.", "2 or more")
        if normalize not in (None, "true", "predicted", "all"):
            raise InputError(f"confusion_matrix: normalize={normalize!r}.", '"true", "predicted", "all" or None')
        self.classes, self.normalize, self.threshold = classes, normalize, threshold
        super().__init__()

    def start(self) -> Sums:
        return {"counts": np.zeros((self.classes, self.classes))}

    def add(self, predictions: Array, targets: Array) -> None:
        found, true = predicted(self.name, predictions, targets, self.threshold)
        largest = max(found.max(initial=0), true.max(initial=0))
        if largest >= self.classes:
            raise InputError(f"{self.name}: the class {largest} of {self.classes} classes.", "more `classes`")
        self.counts += count_pairs(found, true, self.classes)

    def result(self) -> Value:
        axes: dict[str, Any] = {"true": 1, "predicted": 0, "all": (0, 1)}
        if self.normalize is None:
            return self.counts.astype(np.int64)
        total = self.counts.sum(axis=axes[self.normalize], keepdims=True)
        return self.counts / np.where(total == 0, 1.0, total)


class FromCounts(ConfusionMatrix):
    """The base of metrics of true and false positives and negatives, class by class.

    `average` is "binary" (class 1 of two), "macro" (the mean over classes), "weighted" (weighted by how often a class
    comes), "micro" (all decisions together) or "none" (one number per class). Where nothing is to divide by, the
    result is `zero_division`.
    """

    def __init__(
        self, classes: int = 2, average: str | None = None, zero_division: float = 0.0, threshold: float = 0.5
    ):
        average = average or ("binary" if classes == 2 else "macro")
        if average not in AVERAGES or (average == "binary" and classes != 2):
            allowed = AVERAGES if classes == 2 else AVERAGES[1:]
            raise InputError(f"{self.name}: average={average!r} for {classes} classes.", f"one of {', '.join(allowed)}")
        self.average, self.zero_division = average, zero_division
        super().__init__(classes, threshold=threshold)

    def ratio(self, hit: Array, false_positive: Array, missed: Array) -> tuple[Array, Array]:
        """Numerator and denominator."""
        raise NotImplementedError

    def result(self) -> Value:
        hit = np.diagonal(self.counts)
        false_positive, missed = self.counts.sum(0) - hit, self.counts.sum(1) - hit
        if self.average == "micro":
            hit, false_positive, missed = hit.sum(), false_positive.sum(), missed.sum()
        above, below = self.ratio(hit, false_positive, missed)
        values = np.where(below > 0, above / np.where(below > 0, below, 1.0), self.zero_division)
        if self.average == "binary":
            return values[1]
        if self.average == "weighted":
            return np.average(values, weights=self.counts.sum(1))
        return values if self.average in ("none", "micro") else values.mean()


class Precision(FromCounts):
    r"""Of what was called positive, the share that is: \(TP / (TP + FP)\).

    >>> import wonderland as wl
    >>> wl.metrics.Precision()(wl.tensor([1, 1, 0]), wl.tensor([1, 0, 1]))
    0.5
    """

    def ratio(self, hit: Array, false_positive: Array, missed: Array) -> tuple[Array, Array]:
        return hit, hit + false_positive


class Recall(FromCounts):
    r"""Of what is positive, the share that was found: \(TP / (TP + FN)\).

    >>> import wonderland as wl
    >>> wl.metrics.Recall()(wl.tensor([1, 1, 0]), wl.tensor([1, 0, 0]))
    1.0
    """

    def ratio(self, hit: Array, false_positive: Array, missed: Array) -> tuple[Array, Array]:
        return hit, hit + missed


class F1(FromCounts):
    r"""The harmonic mean of precision and recall: \(2TP / (2TP + FP + FN)\). Book, section 9.2.2.

    >>> import wonderland as wl
    >>> wl.metrics.F1()(wl.tensor([1, 1, 0]), wl.tensor([1, 0, 1]))
    0.5
    """

    def ratio(self, hit: Array, false_positive: Array, missed: Array) -> tuple[Array, Array]:
        return 2.0 * hit, 2.0 * hit + false_positive + missed


def accuracy(predictions: ArrayLike, targets: ArrayLike, top_k: int = 1, threshold: float = 0.5) -> float:
    """`Accuracy` of one set of predictions.

    >>> import wonderland as wl
    >>> wl.metrics.accuracy(wl.tensor([[2.0, 1.0, 0.0]]), wl.tensor([1]), top_k=2)
    1.0
    """
    return Accuracy(top_k, threshold)(predictions, targets)


def topk_error(predictions: ArrayLike, targets: ArrayLike, k: int = 5) -> float:
    """The share of examples whose class is not among the k with the highest scores. Book, section 9.1.

    >>> import wonderland as wl
    >>> wl.metrics.topk_error(wl.tensor([[2.0, 1.0, 0.0]]), wl.tensor([1]), k=1)
    1.0
    """
    return 1.0 - accuracy(predictions, targets, top_k=k)


def confusion_matrix(predictions: ArrayLike, targets: ArrayLike, classes: int, normalize: str | None = None) -> Array:
    """`ConfusionMatrix` of one set of predictions: rows are true, columns predicted classes.

    >>> import wonderland as wl
    >>> wl.metrics.confusion_matrix(wl.tensor([1, 1]), wl.tensor([0, 1]), classes=2).tolist()
    [[0, 1], [0, 1]]
    """
    return ConfusionMatrix(classes, normalize)(predictions, targets)
