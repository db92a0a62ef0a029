"""From outputs to classes: the one rule by which all metrics of classification read them."""

from __future__ import annotations

import numpy as np

from ..core.errors import InputError, ShapeError
from .metric import Array


def predicted(name: str, predictions: Array, targets: Array, threshold: float = 0.5) -> tuple[Array, Array]:
    """The predicted and the true class of each example, both as integers of one shape.

    >>> import numpy as np
    >>> predicted("accuracy", np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    (array([1, 0]), array([1, 1]))

    Scores with an axis more than the targets are over classes: the largest wins, the first of equals. Scores of the
    shape of the targets are of the positive class: above the threshold is class 1 (for logits, `threshold=0`). Integers
    are classes already. Targets with an axis of classes are one-hot or probabilities: the largest counts.
    """
    if predictions.ndim == targets.ndim + 1 and predictions.shape[-1] == 1:
        predictions = predictions[..., 0]
    if (
        targets.shape == predictions.shape
        and targets.ndim > 1
        and targets.shape[-1] > 1
        and predictions.dtype.kind == "f"
    ):
        targets = targets.argmax(-1)
    if predictions.shape[:-1] == targets.shape and predictions.ndim == targets.ndim + 1:
        classes = predictions.shape[-1]
        if targets.size and targets.max() >= classes:
            raise InputError(
                f"{name}: the target {targets.max()} with scores of {classes} classes.",
                f"targets from 0 to {classes - 1}",
            )
        return predictions.argmax(-1), whole(name, targets)
    if predictions.shape != targets.shape:
        raise ShapeError(
            f"{name}: predictions of shape {predictions.shape} do not belong to targets of shape {targets.shape}.",
            "scores (n, classes), scores of the positive class (n,), or classes (n,), for targets (n,)",
        )
    if predictions.dtype.kind == "f":
        predictions = predictions > threshold
    return whole(name, predictions), whole(name, targets)


def whole(name: str, classes: Array) -> Array:
    """Classes as integers; anything else is refused."""
    if classes.dtype.kind == "f":
        if not (classes == np.round(classes)).all():
            raise InputError(f"{name}: targets such as {_example(classes)} are no classes.", "whole numbers from 0")
    elif classes.dtype.kind not in "iub":
        raise InputError(f"{name}: targets of type {classes.dtype} are no classes.", "whole numbers from 0")
    classes = classes.astype(np.int64)
    if classes.size and classes.min() < 0:
        raise InputError(f"{name}: the class {int(classes.min())}.", "whole numbers from 0")
    return classes


def _example(classes: Array) -> np.generic:
    return classes[classes != np.round(classes)].flat[0]


def count_pairs(predictions: Array, targets: Array, classes: int) -> Array:
    """The table [true, predicted] of how often each pair of classes comes."""
    pairs = targets.reshape(-1) * classes + predictions.reshape(-1)
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes).astype(np.float64)
