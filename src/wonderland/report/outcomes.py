"""Predictions beside what is true, read once for all sections that need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.dtypes import is_real
from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..decisions.thresholds import as_probabilities

FITTING = "probabilities (n, classes) for classes (n,), or numbers for numbers of the same shape, (n,) or (n, k)"


@dataclass(frozen=True)
class Classified:
    """Probabilities (n, classes), true and predicted classes (n,), the confidence of each prediction, class names."""

    probabilities: Array
    true: Array
    predicted: Array
    names: list[str]

    @property
    def confidence(self) -> Array:
        return np.minimum(self.probabilities.max(axis=1), 1.0)

    @property
    def wrong(self) -> Array:
        return self.predicted != self.true


@dataclass(frozen=True)
class Estimated:
    """True and predicted numbers (n, k), all finite, and which of the examples given they belong to."""

    true: Array
    predicted: Array
    places: Array
    left_out: int


def read(predictions: ArrayLike, targets: ArrayLike, class_names: Sequence[str] = ()) -> Classified | Estimated:
    """What predictions and targets mean, by their shapes and values.

    >>> type(read([[0.2, 0.8]], [1])).__name__, type(read([0.2], [0.3])).__name__
    ('Classified', 'Estimated')

    Scores of the shape of the targets are classes if names are given, if targets are one-hot rows, or if they are the
    integers 0 and 1 and the scores probabilities; otherwise this is regression.
    """
    p, y = np.asarray(predictions), np.asarray(targets)
    names = [str(name) for name in class_names]
    if not is_real(p.dtype):
        raise InputError(f"report: predictions of type {p.dtype}.", FITTING)
    if not is_real(y.dtype):
        raise InputError(
            f"report: targets of type {y.dtype}.", "the numbers of the classes; class_names has their names"
        )
    p = p.astype(np.float64)
    if not p.size or not y.size:
        raise ShapeError(f"report: predictions of shape {p.shape} and targets of shape {y.shape}.", "at least one")
    if p.ndim == 2 and p.shape[1] > 1 and y.shape in ((len(p),), (len(p), 1)):
        return _classified(p, y.reshape(-1), names)
    if p.ndim == 2 and y.shape == p.shape and p.shape[1] > 1:
        one_hot = bool(((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all())
        return _classified(p, y.argmax(axis=1), names) if one_hot or names else _estimated(p, y)
    if p.ndim in (1, 2) and y.ndim in (1, 2) and p.size == len(p) == len(y) == y.size:
        p, y = p.reshape(-1), y.reshape(-1)
        if len(names) == 1:
            return _classified(p[:, None], y, names)
        binary = y.dtype.kind in "iub" and ((y == 0) | (y == 1)).all() and ((p >= 0) & (p <= 1)).all()
        return _classified(np.stack([1 - p, p], axis=1), y, names) if names or binary else _estimated(p, y)
    raise ShapeError(
        f"report: predictions of shape {np.shape(predictions)} do not belong to targets of shape {y.shape}.", FITTING
    )


def _classified(p: Array, y: Array, names: list[str]) -> Classified:
    classes = p.shape[1]
    as_probabilities("report", p, tolerance=1e-3)
    if y.dtype.kind not in "iub" and not (y == np.round(y)).all():
        raise InputError("report: some targets are no whole numbers.", f"classes from 0 to {classes - 1}")
    true = y.astype(np.int64)
    if true.min() < 0 or true.max() >= classes:
        wrong = int(true.min() if true.min() < 0 else true.max())
        raise InputError(f"report: the target {wrong} with {classes} classes.", f"classes from 0 to {classes - 1}")
    if names and len(names) != classes:
        raise ShapeError(f"report: {len(names)} class_names for {classes} classes.", f"{classes} names, or none")
    return Classified(p, true, p.argmax(axis=1), names or [str(i) for i in range(classes)])


def _estimated(p: Array, y: Array) -> Estimated:
    p, y = p.reshape(len(p), -1), y.astype(np.float64).reshape(len(y), -1)
    finite = (np.isfinite(p) & np.isfinite(y)).all(axis=1)
    if not finite.any():
        raise InputError("report: no prediction is finite.", "predictions without NaN and infinity")
    return Estimated(y[finite], p[finite], np.flatnonzero(finite), int(np.count_nonzero(~finite)))
