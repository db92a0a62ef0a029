"""Metrics of forecasts that do not depend on the unit of the series."""

from __future__ import annotations

import numpy as np

from ..core.arguments import as_int
from ..core.errors import InputError, ShapeError
from ..core.typing import ArrayLike
from .metric import Array, MeanMetric, one_number_each


class SymmetricMAPE(MeanMetric):
    r"""\(\frac{100}{n}\sum_i \frac{2\,|\hat y_i - y_i|}{|\hat y_i| + |y_i|}\), from 0 to 200 percent.

    >>> import wonderland as wl
    >>> wl.metrics.SymmetricMAPE()(wl.tensor([1.0, 3.0]), wl.tensor([1.0, 1.0]))
    50.0

    Where prediction and target are both 0 there is no error.
    """

    name = "smape"

    def add(self, predictions: Array, targets: Array) -> None:
        predictions, targets = one_number_each(self.name, predictions, targets)
        size = np.abs(predictions) + np.abs(targets)
        self.total += np.sum(200 * np.abs(predictions - targets) / np.where(size == 0, 1.0, size))
        self.count += targets.size


class MeanAbsoluteScaledError(MeanMetric):
    r"""The mean absolute error divided by that of the seasonal naive forecast on the training series.

    >>> import numpy as np, wonderland as wl
    >>> mase = wl.metrics.MeanAbsoluteScaledError(np.array([0.0, 2.0, 4.0]))  # steps of 2
    >>> mase(wl.tensor([7.0]), wl.tensor([6.0]))
    0.5

    \(\frac1n\sum_i|\hat y_i - y_i| \,/\, \frac{1}{N-p}\sum_{t>p} |x_t - x_{t-p}|\): below 1 a forecast is better than
    repeating the value of a `period` ago. `series` is (time,) or (time, channels), which are scaled one by one and
    are then the last axis of predictions and targets.
    """

    name = "mase"

    def __init__(self, series: ArrayLike, period: int = 1) -> None:
        x = np.asarray(series, np.float64)
        self.period = as_int("mase", "period", period, least=1)
        if x.ndim not in (1, 2) or len(x) <= self.period:
            raise ShapeError(
                f"mase: a series of shape {x.shape}, period={period}.", "(time, ...), longer than the period"
            )
        self.scale = np.abs(x[self.period :] - x[: -self.period]).mean(axis=0)
        if not np.all(self.scale > 0):
            raise InputError(
                "mase: the series repeats itself exactly, or has NaN.", "another period, or another metric"
            )
        super().__init__()

    def add(self, predictions: Array, targets: Array) -> None:
        predictions, targets = one_number_each(self.name, predictions, targets)
        if np.ndim(self.scale) and targets.shape[-1] != len(self.scale):
            raise ShapeError(
                f"mase: targets of shape {targets.shape} for a series of {len(self.scale)} channels.", "channels last"
            )
        self.total += np.sum(np.abs(predictions - targets) / self.scale)
        self.count += targets.size
