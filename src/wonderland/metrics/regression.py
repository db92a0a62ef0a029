"""Metrics of regression."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .metric import Array, MeanMetric, Metric, Sums, Value, one_number_each


class MeanSquaredError(MeanMetric):
    r"""\(\frac1n\sum_i (\hat y_i - y_i)^2\); with `squared=False` its root.

    >>> import wonderland as wl
    >>> wl.metrics.MeanSquaredError()(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0]))
    2.0
    """

    def __init__(self, squared: bool = True) -> None:
        self.squared = squared
        super().__init__()

    @property
    def name(self) -> str:
        return "mse" if self.squared else "rmse"

    def add(self, predictions: Array, targets: Array) -> None:
        predictions, targets = one_number_each(self.name, predictions, targets)
        self.total += self.error(predictions - targets)
        self.count += targets.size

    def error(self, difference: Array) -> Array:
        return np.sum(difference**2)

    def result(self) -> Value:
        mean = super().result()
        return mean if self.squared else np.sqrt(mean)


class MeanAbsoluteError(MeanSquaredError):
    r"""\(\frac1n\sum_i |\hat y_i - y_i|\).

    >>> import wonderland as wl
    >>> wl.metrics.MeanAbsoluteError()(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0]))
    1.0
    """

    name = "mae"

    def __init__(self) -> None:
        super().__init__()

    def error(self, difference: Array) -> Array:
        return np.abs(difference).sum()


class R2(Metric):
    r"""The share of the targets' variance that is explained: \(1 - \sum_i(\hat y_i-y_i)^2 / \sum_i (y_i-\bar y)^2\).

    >>> import wonderland as wl
    >>> wl.metrics.R2()(wl.tensor([1.0, 2.0, 3.0]), wl.tensor([1.0, 2.0, 3.0]))
    1.0

    Several outputs are averaged. Targets that are all equal leave nothing to explain: 1 for exact predictions, else 0.
    """

    count: Array
    mean: Array
    spread: Array
    residual: Array
    name = "r2"

    def start(self) -> Sums:
        return {"count": 0.0, "mean": 0.0, "spread": 0.0, "residual": 0.0}

    def add(self, predictions: Array, targets: Array) -> None:
        predictions, targets = one_number_each(self.name, predictions, targets)
        residual = np.sum((predictions - targets) ** 2, axis=0)
        mean, spread = targets.mean(0), np.sum((targets - targets.mean(0)) ** 2, axis=0)
        self.combine({"count": np.array(len(targets)), "mean": mean, "spread": spread, "residual": residual})

    def combine(self, state: Mapping[str, Array]) -> None:
        # means and sums of squares of two parts combine without cancellation
        n, mean = float(state["count"]), state["mean"]
        total = self.count + n
        if not total:
            return
        self.residual = self.residual + state["residual"]
        self.spread = self.spread + state["spread"] + (mean - self.mean) ** 2 * self.count * n / total
        self.mean = self.mean + (mean - self.mean) * n / total
        self.count = total

    def result(self) -> Value:
        constant = self.spread == 0
        explained = 1.0 - self.residual / np.where(constant, 1.0, self.spread)
        return np.mean(np.where(constant, np.where(self.residual == 0, 1.0, 0.0), explained))
