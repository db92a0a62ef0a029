"""What a metric is: sums that grow batch by batch, and a number that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike

Value: TypeAlias = Array | np.floating | float  # of a metric: a number, or several
Sums: TypeAlias = dict[str, Value]


class Metric:
    """The base of metrics: `update` with the predictions and targets of a batch, `compute`, `reset`.

    >>> import wonderland as wl
    >>> accuracy = wl.metrics.Accuracy()
    >>> accuracy.update(wl.tensor([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]), wl.tensor([0, 1, 1]))
    >>> accuracy.update(wl.tensor([[0.6, 0.4]]), wl.tensor([0]))  # batches may differ in size
    >>> accuracy.compute()
    0.75

    Metrics compute with NumPy in float64, whatever the model computes with, and every example counts once, however the
    batches are cut. A subclass says in `start` which sums it has, adds to them in `add`, and turns them into the result
    in `result`; the names of sums are attributes.
    """

    higher_is_better = True

    def __init__(self) -> None:
        self._names = tuple(self.start())
        self.reset()

    def start(self) -> Sums:
        """The sums before the first batch: arrays or numbers by name."""
        raise NotImplementedError

    def add(self, predictions: Array, targets: Array) -> None:
        """Add a batch to the sums."""
        raise NotImplementedError

    def result(self) -> Value:
        """What follows from the sums; at least one example has been seen."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The name in records: the class in small letters, as "accuracy"."""
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in type(self).__name__).lstrip("_")

    def reset(self) -> None:
        """Forget all batches."""
        self.seen = 0
        for name, value in self.start().items():
            setattr(self, name, np.array(value, np.float64))

    def update(self, predictions: ArrayLike, targets: ArrayLike) -> None:
        """Take a batch."""
        predictions, targets = np.asarray(predictions), np.asarray(targets)
        if predictions.ndim == 0 or targets.ndim == 0:
            raise ShapeError(f"{self.name}: predictions and targets are for batches.", "a first axis of examples")
        if len(predictions) != len(targets):
            raise ShapeError(
                f"{self.name}: {len(predictions)} predictions and {len(targets)} targets.",
                "as many of one as of the other",
            )
        if predictions.dtype.kind == "f" and np.isnan(predictions).any():
            raise InputError(
                f"{self.name}: the predictions have NaN.", "`with wl.debug.nans():` finds where it comes from"
            )
        self.add(predictions, targets)
        self.seen += len(targets)

    def compute(self) -> Any:
        """The metric over all that was seen since the last `reset`."""
        if not self.seen:
            raise InputError(f"{self.name}: there were no examples.", "update(predictions, targets) first")
        value = self.result()
        return float(value) if np.ndim(value) == 0 else value

    def __call__(self, predictions: ArrayLike, targets: ArrayLike) -> Any:
        """The metric of these predictions alone; what was seen before stays."""
        kept = self.state_dict()
        self.reset()
        try:
            self.update(predictions, targets)
            return self.compute()
        finally:
            self.load_state_dict(kept)

    def state_dict(self) -> dict[str, Array]:
        """The sums, for a checkpoint."""
        return {"seen": np.array(self.seen), **{name: np.array(getattr(self, name)) for name in self._names}}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take up what `state_dict` gave."""
        self.seen = int(state["seen"])
        for name in self._names:
            setattr(self, name, np.array(state[name], np.float64))

    def merge(self, state: Mapping[str, Array]) -> None:
        """Take what another metric of this kind has seen, as its `state_dict` tells.

        >>> import wonderland as wl
        >>> first, second = wl.metrics.Accuracy(), wl.metrics.Accuracy()
        >>> first.update(wl.tensor([0, 1]), wl.tensor([0, 1])), second.update(wl.tensor([0]), wl.tensor([1]))
        (None, None)
        >>> first.merge(second.state_dict())
        >>> print(f"{first.compute():.3f}")
        0.667
        """
        self.combine(state)
        self.seen += int(state["seen"])

    def combine(self, state: Mapping[str, Array]) -> None:
        """Add other sums to these; a metric whose parts are no sums says how they are put together."""
        for name in self._names:
            setattr(self, name, getattr(self, name) + state[name])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.compute() if self.seen else 'no examples yet'})"


class MeanMetric(Metric):
    """The base of metrics that are the mean of an error: `add` adds to its `total` and to the `count`."""

    higher_is_better = False
    total: Array
    count: Array

    def start(self) -> Sums:
        return {"total": 0.0, "count": 0.0}

    def result(self) -> Value:
        return self.total / self.count


def one_number_each(name: str, predictions: Array, targets: Array) -> tuple[Array, Array]:
    """Predictions and targets of a regression: the same shape, or (n, 1) beside (n,)."""
    if predictions.shape != targets.shape:
        if predictions.size != targets.size or np.squeeze(predictions).shape != np.squeeze(targets).shape:
            raise ShapeError(
                f"{name}: predictions of shape {predictions.shape} and targets of shape {targets.shape}.",
                "the same shape",
            )
        predictions = predictions.reshape(targets.shape)
    return predictions.astype(np.float64), targets.astype(np.float64)
