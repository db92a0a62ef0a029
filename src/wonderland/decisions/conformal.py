"""Sets and intervals that contain the truth as often as promised: conformal prediction. Book, section 4.3.4."""

from __future__ import annotations

import math

import numpy as np

from .. import arrays
from ..core.arguments import as_number
from ..core.errors import InputError, ModuleError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from .calibration import as_classes
from .thresholds import as_probabilities


def prediction_set(probs: ArrayLike, gamma: float, inclusive: bool = False) -> Tensor:
    r"""The classes \(\{i : p_i > \gamma\}\) as a mask (..., m). Book, E.4.22.

    >>> import wonderland as wl
    >>> prediction_set(wl.tensor([0.6, 0.3, 0.1]), 0.2)
    tensor([ True,  True, False])

    The set shrinks as gamma grows, and may be empty. With `inclusive`, \(p_i \ge \gamma\). A gamma that was not
    calibrated (`ConformalClassifier`) guarantees nothing about how often the truth is inside.
    """
    if not 0 <= as_number("prediction_set", "gamma", gamma) <= 1:
        raise InputError(f"prediction_set: gamma={gamma}.", "a threshold from 0 to 1")
    probs = as_probabilities("prediction_set", probs)
    return probs >= gamma if inclusive else probs > gamma


class ConformalClassifier:
    r"""Sets of classes with \(P(y \in C(x)) \ge 1 - \alpha\), whatever the model. Book, E.4.23.

    >>> import wonderland as wl
    >>> p = wl.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    >>> conformal = ConformalClassifier().calibrate(p, [0, 0, 1, 0], alpha=0.4)
    >>> round(conformal.gamma, 6), conformal.predict(wl.tensor([[0.75, 0.25]]))
    (0.7, tensor([[ True, False]]))

    `calibrate` takes n examples that the model was not trained on, and the *largest* gamma that keeps the promise: the
    k-th smallest of the probabilities of the true classes, \(k = \lfloor\alpha(n + 1)\rfloor\). The set is
    \(\{i : p_i \ge \gamma\}\); with > the tie would be lost. Gamma grows with alpha. With fewer than 1/alpha - 1
    examples no gamma above 0 keeps the promise, and all classes are in the set. The promise is one about the average
    over new data of the same distribution, not about every kind of input.
    """

    def __init__(self) -> None:
        self.gamma: float | None = None
        self.alpha: float | None = None

    def calibrate(self, probs: ArrayLike, y: ArrayLike, alpha: float = 0.1) -> ConformalClassifier:
        """Choose gamma from probabilities (n, m) and classes (n,)."""
        alpha = _level("ConformalClassifier", alpha)
        p = np.asarray(as_probabilities("ConformalClassifier", probs), np.float64)
        classes = as_classes("ConformalClassifier", y, p)
        k = math.floor(alpha * (len(p) + 1) + 1e-9)  # 0.1 * 30 is 3 in spite of rounding
        self.gamma = float(np.sort(p[np.arange(len(p)), classes])[k - 1]) if k else 0.0
        self.alpha = alpha
        return self

    def predict(self, probs: ArrayLike) -> Tensor:
        """The sets for probabilities (..., m), as masks."""
        if self.gamma is None:
            raise ModuleError("ConformalClassifier: it has not been calibrated yet.", "calibrate(probs, y, alpha)")
        return prediction_set(probs, self.gamma, inclusive=True)


class ConformalRegressor:
    r"""Intervals \([\hat y - q\,s, \hat y + q\,s]\) with \(P(y \in \cdot) \ge 1 - \alpha\), whatever the model.

    >>> conformal = ConformalRegressor().calibrate([0.0] * 9, [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0], 0.2)
    >>> conformal.predict([10.0])
    (tensor([2.]), tensor([18.]))

    q is the k-th smallest of the n scores \(|y - \hat y|/s\) of examples that the model was not trained on,
    \(k = \lceil(1 - \alpha)(n + 1)\rceil\), and infinite if there are too few. s is 1, or a `scale` that the model
    predicts for each input, which makes the intervals wider where it is less sure.
    """

    def __init__(self) -> None:
        self.quantile: float | None = None
        self.alpha: float | None = None

    def calibrate(
        self, predictions: ArrayLike, y: ArrayLike, alpha: float = 0.1, scale: ArrayLike | None = None
    ) -> ConformalRegressor:
        """Choose q from predictions and targets (n,)."""
        alpha = _level("ConformalRegressor", alpha)
        p, t = np.asarray(predictions, np.float64), np.asarray(y, np.float64)
        if p.ndim != 1 or p.shape != t.shape or not len(p):
            raise ShapeError(
                f"ConformalRegressor: predictions of shape {p.shape} and targets of shape {t.shape}.",
                "two vectors of one length, not empty",
            )
        scores = np.abs(t - p) / _scale(scale, p.shape)
        if not np.isfinite(scores).all():
            raise InputError("ConformalRegressor: some errors are not finite.", "data without NaN and infinity")
        k = math.ceil((1 - alpha) * (len(p) + 1) - 1e-9)
        self.quantile = float(np.sort(scores)[k - 1]) if k <= len(p) else math.inf
        self.alpha = alpha
        return self

    def predict(self, predictions: ArrayLike, scale: ArrayLike | None = None) -> tuple[Tensor, Tensor]:
        """The lower and upper ends for predictions (...)."""
        if self.quantile is None:
            raise ModuleError("ConformalRegressor: it has not been calibrated yet.", "calibrate(predictions, y, alpha)")
        centre = arrays.asarray(predictions)
        reach = self.quantile if scale is None else self.quantile * arrays.asarray(_scale(scale, centre.shape))
        return centre - reach, centre + reach


def coverage(sets: ArrayLike, y: ArrayLike) -> float:
    """The share of examples whose set, a row of a mask (n, m), contains the true class (n,).

    >>> coverage([[True, False], [True, True]], [1, 1])
    0.5
    """
    mask = np.asarray(sets)
    if mask.dtype != bool or mask.ndim != 2 or not len(mask):
        raise ShapeError(f"coverage: sets of shape {mask.shape} and dtype {mask.dtype}.", "a mask (n, m), not empty")
    return float(mask[np.arange(len(mask)), as_classes("coverage", y, mask)].mean())


def _level(name: str, alpha: float) -> float:
    if not 0 < as_number(name, "alpha", alpha) < 1:
        raise InputError(f"{name}: alpha={alpha}.", "a share of errors between 0 and 1, such as 0.1")
    return float(alpha)


def _scale(scale: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
    if scale is None:
        return np.ones(())
    found = np.asarray(scale)
    if found.shape != shape or not (found > 0).all():
        raise InputError(f"ConformalRegressor: a scale of shape {found.shape}.", f"numbers above 0 of shape {shape}")
    return found
