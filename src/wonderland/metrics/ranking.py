"""Metrics of scores that rank examples: ROC curves and the areas below curves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..core.errors import InputError
from ..core.typing import ArrayLike
from .classes import whole
from .metric import Array, Metric, Sums, Value


class Ranking(Metric):
    """The base of metrics that need all scores; they are kept, eight bytes each."""

    scores: Array
    labels: Array

    def start(self) -> Sums:
        return {"scores": np.zeros(0), "labels": np.zeros(0)}

    def add(self, predictions: Array, targets: Array) -> None:
        if predictions.ndim == targets.ndim + 1 and predictions.shape[-1] in (1, 2):
            predictions = predictions[..., -1]  # the score of the positive class
        if predictions.shape != targets.shape:
            raise InputError(
                f"{self.name}: scores of shape {predictions.shape} for targets of shape {targets.shape}.",
                "one score per example, or two columns",
            )
        labels = whole(self.name, targets)
        if labels.max(initial=0) > 1:
            raise InputError(f"{self.name}: the class {labels.max()}.", "two classes, 0 and 1")
        self.scores = np.concatenate([self.scores, predictions.reshape(-1).astype(np.float64)])
        self.labels = np.concatenate([self.labels, labels.reshape(-1).astype(np.float64)])

    def combine(self, state: Mapping[str, Array]) -> None:
        self.scores = np.concatenate([self.scores, state["scores"]])
        self.labels = np.concatenate([self.labels, state["labels"]])

    def _both_classes(self) -> None:
        if not 0 < self.labels.sum() < len(self.labels):
            raise InputError(
                f"{self.name}: all {len(self.labels)} examples are of class {int(self.labels[0])}.",
                "examples of both classes",
            )


class AUC(Ranking):
    r"""The area under the ROC curve: the probability that a positive example scores higher than a negative one.

    >>> import wonderland as wl
    >>> wl.metrics.AUC()(wl.tensor([0.1, 0.4, 0.35, 0.8]), wl.tensor([0, 0, 1, 1]))
    0.75

    Ties count one half. Scores may be probabilities or logits: only their order matters.
    """

    name = "auc"

    def result(self) -> Value:
        self._both_classes()
        false, true, _ = _curve(self.scores, self.labels)
        return np.trapezoid(true, false)


class AveragePrecision(Ranking):
    r"""The area under the precision-recall curve, \(\sum_k (R_k - R_{k-1}) P_k\).

    >>> import wonderland as wl
    >>> print(f"{wl.metrics.AveragePrecision()(wl.tensor([0.1, 0.4, 0.35, 0.8]), wl.tensor([0, 0, 1, 1])):.4f}")
    0.8333
    """

    def result(self) -> Value:
        self._both_classes()
        false, true, _ = _curve(self.scores, self.labels)
        positives, negatives = self.labels.sum(), len(self.labels) - self.labels.sum()
        hits, wrong = true[1:] * positives, false[1:] * negatives
        return np.sum(np.diff(true) * hits / (hits + wrong))


def roc_curve(scores: ArrayLike, labels: ArrayLike) -> tuple[Array, Array, Array]:
    """False positive rates, true positive rates, and the thresholds at which they are reached, from strict to lax.

    >>> import wonderland as wl
    >>> false, true, thresholds = wl.metrics.roc_curve(wl.tensor([0.9, 0.2]), wl.tensor([1, 0]))
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    """
    metric = AUC()
    metric.update(scores, labels)
    metric._both_classes()
    return _curve(metric.scores, metric.labels)


def _curve(scores: Array, labels: Array) -> tuple[Array, Array, Array]:
    order = np.argsort(-scores, kind="stable")
    scores, labels = scores[order], labels[order]
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)  # the last example at each threshold
    hits, wrong = np.cumsum(labels)[last], np.cumsum(1.0 - labels)[last]
    start = np.zeros(1)
    rates = np.concatenate([start, wrong]) / wrong[-1], np.concatenate([start, hits]) / hits[-1]
    return *rates, np.concatenate([[np.inf], scores[last]])
