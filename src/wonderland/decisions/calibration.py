"""Whether probabilities mean what they say, and how to mend them. Book, sections 4.3.3 and 4.3.4."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np

from .. import arrays
from ..core import dtypes
from ..core.arguments import as_int
from ..core.context import user_level
from ..core.errors import DTypeError, InputError, ModuleError, ShapeError
from ..core.tensor import Tensor, Tracer
from ..core.typing import Array, ArrayLike
from ..metrics.calibration import by_confidence
from ..nn.module.module import Module
from ..nn.module.parameter import Buffer
from ..viz.plot import Curve, plot
from .thresholds import as_probabilities, as_unit_interval


class CalibrationWarning(UserWarning):
    """Scores that cannot be calibrated by the method asked for."""


# --- measures


class Reliability(NamedTuple):
    """By bin of confidence: how many examples, their mean confidence, and their accuracy (NaN where there are none)."""

    edges: Array
    counts: Array
    confidence: Array
    accuracy: Array


def reliability_curve(probs: ArrayLike, y: ArrayLike, bins: int = 10) -> Reliability:
    r"""Mean confidence \(p_i\) and accuracy \(a_i\) in `bins` equal bins of [0, 1]. Book, section 4.3.4, figure F.4.5.

    >>> curve = reliability_curve([0.95, 0.95, 0.55], [True, False, True], bins=10)
    >>> curve.counts.tolist(), curve.accuracy[[5, 9]].tolist()
    ([0, 0, 0, 0, 0, 1, 0, 0, 0, 2], [1.0, 0.5])

    `probs` are probabilities (n, m) and y the classes (n,), the confidence being that of the predicted class; or
    `probs` are confidences (n,) and y tells which predictions were correct. Bins are [a, b), and the last one has 1.
    Accuracy above confidence is under-confidence, below it over-confidence.
    """
    confidence, correct = _confidences("reliability_curve", probs, y)
    bins = as_int("reliability_curve", "bins", bins, least=1)
    counts, *sums = by_confidence(confidence, correct, bins)
    with np.errstate(invalid="ignore"):
        return Reliability(np.linspace(0.0, 1.0, bins + 1), counts, *(total / counts for total in sums))


def ece(probs: ArrayLike, y: ArrayLike, bins: int = 10) -> float:
    r"""The expected calibration error \(\sum_i \frac{|B_i|}n\,|a_i - p_i|\) over the bins. Book, E.4.21.

    >>> round(ece([0.8] * 5, [True] * 5), 6)  # always right, and never sure
    0.2

    Arguments as in `reliability_curve`. It depends on the bins, and 0 does not make a model useful: one that always
    gives the shares of the classes is calibrated.
    """
    gaps, counts = _gaps(probs, y, bins)
    return float(gaps @ counts / counts.sum())


def mce(probs: ArrayLike, y: ArrayLike, bins: int = 10) -> float:
    r"""The maximum calibration error \(\max_i |a_i - p_i|\) over the bins that are not empty.

    >>> round(mce([0.8, 0.8, 0.3], [True, True, False]), 6)
    0.3
    """
    return float(_gaps(probs, y, bins)[0].max())


def _gaps(probs: ArrayLike, y: ArrayLike, bins: int) -> tuple[Array, Array]:
    """How far accuracy and confidence are apart in the bins that are not empty, and their counts."""
    curve = reliability_curve(probs, y, bins)
    used = curve.counts > 0
    return np.abs(curve.accuracy[used] - curve.confidence[used]), curve.counts[used]


def brier_score(probs: ArrayLike, y: ArrayLike, reduction: str = "sum") -> Tensor:
    r"""\(\frac1n\sum_i \sum_j (p_{ij} - \mathbb 1[y_i = j])^2\), from 0 (sure and right) to 2. Book, section 4.2.

    >>> import wonderland as wl
    >>> print(brier_score(wl.tensor([[0.2, 0.05, 0.75]]), wl.tensor([2])))
    tensor(0.105)

    The squares are summed over the classes, as Brier did; `reduction="mean"` averages over them, too. For two classes
    and probabilities (n,) of class 1 it is the mean of \((p - y)^2\), half of the sum (as in scikit-learn).
    """
    if reduction not in ("sum", "mean"):
        raise InputError(f"brier_score: reduction={reduction!r} over the classes.", '"sum" or "mean"')
    probs, y = arrays.asarray(probs), arrays.asarray(y)
    if probs.ndim == 1:
        p = as_unit_interval("brier_score", probs)
        return arrays.mean(arrays.square(p - arrays.astype(as_correct("brier_score", y, p.shape), p.dtype)))
    p = as_probabilities("brier_score", probs)
    target = arrays.one_hot(as_classes("brier_score", y, p), p.shape[-1], dtype=p.dtype)
    squares = arrays.square(p - target)
    return arrays.mean(arrays.sum(squares, axis=-1) if reduction == "sum" else arrays.mean(squares, axis=-1))


def reliability_diagram(probs: ArrayLike, y: ArrayLike, bins: int = 10, title: str = "Reliability") -> str:
    """The accuracy by confidence as SVG text; bars that end above the diagonal are under-confidence. Book, F.4.5.

    >>> reliability_diagram([0.95, 0.95, 0.55], [True, False, True]).count("<polyline")
    3

    Arguments as in `reliability_curve`; empty bins are left out.
    """
    curve = reliability_curve(probs, y, bins)
    bars: list[tuple[float, float]] = []
    for low, high, accuracy in zip(curve.edges[:-1], curve.edges[1:], curve.accuracy, strict=True):
        if np.isfinite(accuracy):
            bars += [(low, 0.0), (low, accuracy), (high, accuracy), (high, 0.0), (np.nan, np.nan)]
    x, heights = np.array(bars).T
    error = ece(probs, y, bins)
    return plot(
        [Curve(x, heights, "accuracy"), Curve([0.0, 1.0], [0.0, 1.0], "calibrated", dashed=True)],
        title=f"{title} (ECE {error:.3f}, n = {int(curve.counts.sum())})",
        x_label="confidence",
        y_label="accuracy",
        size=(460, 460),
        y_range=(0.0, 1.02),
    )


# --- remedies: fitted on data that the model was not trained on


class TemperatureScaler(Module):
    r"""Logits divided by the one \(\tau\) that has the least cross-entropy on held-out data. Book, section 4.3.4.

    >>> import wonderland as wl
    >>> logits, y = wl.tensor([[6.0, 0.0], [6.0, 0.0], [6.0, 0.0], [0.0, 6.0]]), wl.tensor([0, 0, 1, 1])
    >>> scaler = TemperatureScaler().fit(logits, y)  # three of four right: confidence becomes 3/4
    >>> scaler(logits)[0].round(4), scaler.predict_proba(logits)[0].round(4)
    (tensor([1.0986, 0.    ]), tensor([0.75, 0.25]))

    The order of the classes and so the accuracy stay as they are. If the model is always right (or worse than chance)
    the best \(\tau\) is 0 (or infinite); then the nearest bound of `bounds` is taken, with a warning.
    """

    temperature: Any

    def __init__(self, bounds: tuple[float, float] = (1e-3, 1e3)) -> None:
        low, high = bounds
        if not 0 < low <= high < np.inf:
            raise InputError(f"TemperatureScaler: bounds={bounds}.", "0 < low <= high")
        self.bounds = (float(low), float(high))
        self.temperature = Buffer(1.0, dtypes.float64)

    def fit(self, logits: ArrayLike, y: ArrayLike, max_iter: int = 100) -> Self:
        """Find the temperature for logits (n, m) and classes (n,)."""
        z = np.asarray(logits, np.float64)
        if z.ndim != 2 or not z.size:
            raise ShapeError(f"TemperatureScaler: logits of shape {z.shape}.", "logits (n, m), not empty")
        if not np.isfinite(z).all():
            raise InputError("TemperatureScaler: some logits are not finite.", "logits without NaN and infinity")
        z = z - z.max(axis=1, keepdims=True)
        right = z[np.arange(len(z)), as_classes("TemperatureScaler", y, z)]
        # in the inverse temperature the loss is convex: the root of its slope, if there is one between the bounds
        low, high = 1 / self.bounds[1], 1 / self.bounds[0]
        at_low, at_high = _slope(low, z, right)[0], _slope(high, z, right)[0]
        if at_low == at_high == 0.0:
            beta = 1.0  # equal logits say nothing at any temperature
        elif at_high <= 0 or at_low >= 0:
            beta = high if at_high <= 0 else low
            bound = f"{1 / beta:g}"
            why = f"below {bound}: the model is always right" if beta == high else f"above {bound}: it is no use"
            warnings.warn(
                f"TemperatureScaler: the best temperature is {why} on these data. Try others, or more.",
                CalibrationWarning,
                stacklevel=user_level(),
            )
        else:
            beta = _root(z, right, low, high, as_int("TemperatureScaler", "max_iter", max_iter, least=1))
        self.temperature = 1 / beta
        return self

    def forward(self, logits: ArrayLike) -> Tensor:
        logits = arrays.asarray(logits)
        return logits / arrays.astype(self.temperature, logits.dtype)

    def predict_proba(self, logits: ArrayLike) -> Tensor:
        """Calibrated probabilities (..., m) for logits (..., m)."""
        return arrays.softmax(self(logits))


def _slope(beta: float, z: Array, right: Array) -> tuple[float, float]:
    """The first two derivatives of mean(logsumexp(beta z) - beta z_y)."""
    weights = np.exp(beta * z)
    p = weights / weights.sum(axis=1, keepdims=True)
    mean = (p * z).sum(axis=1)
    return float((mean - right).mean()), float(((p * z**2).sum(axis=1) - mean**2).mean())


def _root(z: Array, right: Array, low: float, high: float, max_iter: int) -> float:
    """The inverse temperature with slope 0: Newton's steps, and halves of the bracket where those are slow."""
    beta, last = min(max(1.0, low), high), np.inf
    for _ in range(max_iter):
        slope, curvature = _slope(beta, z, right)
        low, high = (beta, high) if slope < 0 else (low, beta)
        new = beta - slope / curvature if curvature > 0 else np.inf
        if not low <= new <= high or abs(new - beta) > 0.5 * last:
            new = float(np.sqrt(low * high))
        last, beta = abs(new - beta), new
        if last <= 1e-14 * beta:
            break
    return beta


class PlattScaler(Module):
    r"""\(\sigma(a s + b)\) of scores s of two classes, by maximum likelihood on held-out data.

    >>> import wonderland as wl
    >>> s = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]
    >>> scaler = PlattScaler().fit(s, [0, 0, 1, 0, 1, 1])
    >>> bool(0.49 < scaler(wl.tensor(0.0)) < 0.51)
    True

    Targets are \((n_1 + 1)/(n_1 + 2)\) and \(1/(n_0 + 2)\) instead of 1 and 0, as Platt proposed, so a and b are finite
    even where the scores separate the classes.
    """

    scale: Any
    offset: Any

    def __init__(self) -> None:
        self.scale = Buffer(1.0, dtypes.float64)
        self.offset = Buffer(0.0, dtypes.float64)

    def fit(self, scores: ArrayLike, y: ArrayLike, max_iter: int = 100) -> Self:
        """Find a and b for scores (n,) and labels 0 or 1 (n,)."""
        s, labels = _scored("PlattScaler", scores, y)
        positive = labels.sum()
        target = np.where(labels, (positive + 1) / (positive + 2), 1 / (len(s) - positive + 2))
        design = np.stack([s, np.ones_like(s)], axis=1)
        w = np.zeros(2)

        def loss(w: Array) -> float:
            return float(np.mean(np.logaddexp(0, design @ w) - target * (design @ w)))

        for _ in range(as_int("PlattScaler", "max_iter", max_iter, least=1)):
            p = 1 / (1 + np.exp(-design @ w))
            hessian = design.T @ (design * (p * (1 - p))[:, None]) + 1e-12 * np.eye(2)
            step = np.linalg.solve(hessian, design.T @ (p - target))
            while loss(w - step) > loss(w) and step @ step > 1e-20:
                step = step / 2
            w = w - step
            if step @ step < 1e-20:
                break
        self.scale, self.offset = float(w[0]), float(w[1])
        return self

    def forward(self, scores: ArrayLike) -> Tensor:
        s = arrays.asarray(scores)
        return arrays.sigmoid(s * arrays.astype(self.scale, s.dtype) + arrays.astype(self.offset, s.dtype))


class IsotonicScaler:
    """A rising step function of scores of two classes, nearest to the labels in squares; linear between the steps.

    >>> import numpy as np
    >>> scaler = IsotonicScaler().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> scaler(np.array([0.1, 0.2, 0.3, 0.4]))
    tensor([0. , 0.5, 0.5, 1. ], dtype=float64)

    Neighbours in the wrong order are pooled until none are left. It needs more data than the other scalers.
    """

    def __init__(self) -> None:
        self.x: Array | None = None

    def fit(self, scores: ArrayLike, y: ArrayLike) -> IsotonicScaler:
        """Find the steps for scores (n,) and labels 0 or 1 (n,)."""
        s, labels = _scored("IsotonicScaler", scores, y)
        x, place = np.unique(s, return_inverse=True)
        weight = np.bincount(place).astype(np.float64)
        value = np.bincount(place, weights=labels) / weight
        blocks: list[tuple[float, float, int]] = []  # mean, weight, length
        for v, w in zip(value, weight, strict=True):
            blocks.append((v, w, 1))
            while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
                (v1, w1, n1), (v2, w2, n2) = blocks[-2:]
                blocks[-2:] = [((v1 * w1 + v2 * w2) / (w1 + w2), w1 + w2, n1 + n2)]
        self.x, self.y = x, np.concatenate([np.full(n, v) for v, _, n in blocks])
        return self

    def __call__(self, scores: ArrayLike) -> Tensor:
        """Probabilities of scores of any shape; beyond the data those of its ends."""
        if self.x is None:
            raise ModuleError("IsotonicScaler: it has not been fitted yet.", "fit(scores, y) first")
        s = arrays.asarray(scores)
        return arrays.asarray(np.interp(np.asarray(s, np.float64), self.x, self.y), dtype=s.dtype)


# --- arguments


def as_classes(name: str, y: ArrayLike, scores: Array | Tensor) -> Any:
    """Classes (n,) for scores (n, m): integers from 0 to m - 1; NumPy for NumPy, a tensor for a tensor.

    >>> as_classes("f", [0, 1], np.zeros((2, 2))).tolist()
    [0, 1]
    """
    found = arrays.asarray(y)
    if found.dtype.kind not in "iu":
        raise DTypeError(f"{name}: classes of dtype {found.dtype}.", "integers")
    if found.shape != scores.shape[:-1] or not found.size:
        raise ShapeError(
            f"{name}: classes of shape {found.shape} for scores of shape {scores.shape}.", "(n,) and (n, m), n > 0"
        )
    if not isinstance(found, Tracer) and not (0 <= found.numpy().min() <= found.numpy().max() < scores.shape[-1]):
        raise InputError(f"{name}: a class is not among the {scores.shape[-1]}.", f"0 to {scores.shape[-1] - 1}")
    return found if isinstance(scores, Tensor) else found.numpy()


def as_correct(name: str, y: ArrayLike, shape: tuple[int, ...]) -> Tensor:
    """Zeros and ones, or truth values, of a shape.

    >>> as_correct("f", [True, False], (2,))
    tensor([ True, False])
    """
    found = arrays.asarray(y)
    if found.shape != shape or not found.size:
        raise ShapeError(f"{name}: labels of shape {found.shape} for numbers of shape {shape}.", "equal, not empty")
    if not isinstance(found, Tracer) and not arrays.is_binary(found):
        raise InputError(f"{name}: labels other than 0 and 1.", "0 and 1, or True and False")
    return found


def _confidences(name: str, probs: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """The confidence of every prediction, and whether it was correct, as float64."""
    p = np.asarray(probs, np.float64)
    if p.ndim == 1:
        as_unit_interval(name, p)
        return p, np.asarray(as_correct(name, y, p.shape), np.float64)
    if p.ndim != 2:
        raise ShapeError(f"{name}: probabilities of shape {p.shape}.", "(n, classes), or confidences (n,)")
    as_probabilities(name, p)
    correct = p.argmax(axis=1) == as_classes(name, y, p)
    return np.minimum(p.max(axis=1), 1.0), correct.astype(np.float64)


def _scored(name: str, scores: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    s = np.asarray(scores, np.float64)
    if s.ndim != 1 or not np.isfinite(s).all():
        raise InputError(f"{name}: scores of shape {s.shape}.", "finite scores (n,)")
    labels = np.asarray(as_correct(name, y, s.shape), bool)
    if labels.all() or not labels.any():
        raise InputError(f"{name}: all labels are the same.", "examples of both classes")
    return s, labels
