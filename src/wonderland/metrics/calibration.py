"""Metrics of probabilities: whether they mean what they say. Book, section 4.3.4."""

from __future__ import annotations

import numpy as np

from ..core.errors import InputError
from .classes import predicted
from .metric import Array, MeanMetric, Metric, Sums, Value


class CalibrationError(Metric):
    r"""The expected calibration error, \(\sum_i \frac{|B_i|}{n} |a_i - p_i|\) over bins of equal width.

    >>> import wonderland as wl
    >>> probabilities = wl.tensor([[0.2, 0.8]] * 4)
    >>> print(f"{wl.metrics.CalibrationError()(probabilities, wl.tensor([1, 1, 1, 1])):.2f}")
    0.20

    \(p_i\) is the mean confidence in a bin, the probability of the predicted class, and \(a_i\) the accuracy there.
    `maximum=True` gives the largest difference instead of the mean one. Book, section 4.3.4.
    """

    higher_is_better = False
    count: Array
    confidence: Array
    right: Array

    def __init__(self, bins: int = 10, maximum: bool = False) -> None:
        if bins < 1:
            raise InputError(f"calibration error: bins={bins}.", "1 or more")
        self.bins, self.maximum = bins, maximum
        super().__init__()

    @property
    def name(self) -> str:
        return "mce" if self.maximum else "ece"

    def start(self) -> Sums:
        return {part: np.zeros(self.bins) for part in ("count", "confidence", "right")}

    def add(self, predictions: Array, targets: Array) -> None:
        probabilities = probabilities_of(self.name, predictions, targets)
        found, true = predicted(self.name, probabilities, targets)
        count, confidence, right = by_confidence(probabilities.max(-1), found == true, self.bins)
        self.count += count
        self.confidence += confidence
        self.right += right

    def result(self) -> Value:
        gaps = np.abs(self.right - self.confidence)
        if self.maximum:
            return np.max(gaps / np.where(self.count == 0, 1.0, self.count))
        return gaps.sum() / self.count.sum()


def by_confidence(confidence: Array, correct: Array, bins: int) -> tuple[Array, ...]:
    """How many examples are in each of `bins` equal bins of [0, 1], and the sums of confidence and of correctness.

    >>> by_confidence(np.array([0.2, 0.9, 1.0]), np.array([True, True, False]), 2)
    (array([1, 2]), array([0.2, 1.9]), array([1., 1.]))
    """
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)  # 1.0 is in the last one
    return tuple(np.bincount(place, weights, bins) for weights in (None, confidence, correct))


class BrierScore(MeanMetric):
    r"""The squared distance of the probabilities to the one-hot target, \(\sum_c (p_c - y_c)^2\), on average.

    >>> import wonderland as wl
    >>> print(f"{wl.metrics.BrierScore()(wl.tensor([[0.2, 0.05, 0.75]]), wl.tensor([2])):.3f}")
    0.105

    Classes are summed; some divide by their number. Book, section 4.2.
    """

    name = "brier"

    def add(self, predictions: Array, targets: Array) -> None:
        probabilities = probabilities_of(self.name, predictions, targets)
        _, true = predicted(self.name, probabilities, targets)
        self.total += np.sum((probabilities - np.eye(probabilities.shape[-1])[true]) ** 2)
        self.count += len(true)


def probabilities_of(name: str, predictions: Array, targets: Array) -> Array:
    """Probabilities (n, classes), also from those of the positive class; anything else is refused."""
    values = predictions.astype(np.float64)
    if values.ndim == targets.ndim and (values.ndim == 1 or values.shape[-1] == 1):
        values = values.reshape(len(values), 1)
    if values.ndim == 2 and values.shape[-1] == 1:
        values = np.concatenate([1.0 - values, values], axis=1)
    if values.ndim != 2 or values.min(initial=0.0) < -1e-6 or not np.allclose(values.sum(-1), 1.0, atol=1e-3):
        raise InputError(f"{name}: the predictions are no probabilities.", "wl.softmax(logits) first")
    return np.clip(values, 0.0, 1.0)
