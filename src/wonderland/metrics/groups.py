"""A metric for each group of examples, to see whom a model serves badly. Book, section 3.1."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..core.errors import ShapeError
from ..core.typing import Array, ArrayLike
from .metric import Metric


def metric_by_group(
    metric: Metric | Callable[[Array, Array], object], predictions: ArrayLike, targets: ArrayLike, groups: ArrayLike
) -> dict[Hashable, Any]:
    """A metric, or a function of predictions and targets, for the examples of each group.

    >>> import wonderland as wl
    >>> predictions, targets = wl.tensor([1, 0, 1, 1]), wl.tensor([1, 0, 0, 1])
    >>> wl.metrics.metric_by_group(wl.metrics.accuracy, predictions, targets, ["a", "a", "b", "b"])
    {'a': 1.0, 'b': 0.5}

    Averaged with the sizes of the groups, accuracies give the accuracy of the whole.
    """
    predictions, targets, groups = np.asarray(predictions), np.asarray(targets), np.asarray(groups)
    if not len(predictions) == len(targets) == len(groups):
        raise ShapeError(
            f"metric_by_group: {len(predictions)} predictions, {len(targets)} targets, {len(groups)} groups.",
            "one of each for every example",
        )
    found = {}
    for group in np.unique(groups):
        chosen = groups == group
        found[group.item()] = metric(predictions[chosen], targets[chosen])
    return found
