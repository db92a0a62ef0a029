"""What any model has to beat: the majority class, the mean, the last value, a linear model. Arrays in, numbers out."""

from __future__ import annotations

import numpy as np

from ..core.typing import Array

Measures = dict[str, float | None]  # by name; None where there is nothing to say
Baselines = dict[str, Measures]  # by the name of the baseline

MOST_ROWS = 3_000  # that a linear model is fitted to: more do not change what it can do
MOST_FEATURES = 2_000  # beyond, it is left out: solving takes the cube of them
STEPS = 100  # of the descent to the logistic regression
SETTLED = 1e-3  # the largest change of a weight at which it ends: predictions do not change any more
LEAST_PROBABILITY = 1e-12  # of a class that came, in a logarithm


def class_measures(probabilities: Array, true: Array) -> Measures:
    """Accuracy, the mean of the recalls of the classes that come, and the mean of -ln p of the true class.

    >>> class_measures(np.array([[0.5, 0.5], [0.25, 0.75], [0.25, 0.75]]), np.array([0, 1, 0]))["accuracy"]
    0.6666666666666666
    """
    right = probabilities.argmax(axis=1) == true
    came = np.unique(true)
    recalls = [float(right[true == k].mean()) for k in came]
    own = np.maximum(probabilities[np.arange(len(true)), true], LEAST_PROBABILITY)
    return {
        "accuracy": float(right.mean()),
        "balanced_accuracy": float(np.mean(recalls)),
        "log_loss": float(-np.log(own).mean()),
    }


def number_measures(predicted: Array, true: Array) -> Measures:
    """RMSE, the mean absolute error, and R², the share of the variance that is explained, over all outputs.

    >>> number_measures(np.array([[1.0], [3.0]]), np.array([[1.0], [5.0]]))["r2"]
    0.5
    """
    with np.errstate(over="ignore", invalid="ignore"):  # a model that diverged
        errors = predicted - true
        spread = ((true - true.mean(axis=0)) ** 2).sum(axis=0)
        rest = (errors**2).sum(axis=0)
        explained = [1.0 - float(r / s) for r, s in zip(rest, spread, strict=True) if s > 0]
        return {
            "rmse": float(np.sqrt(np.mean(errors**2))),
            "mae": float(np.abs(errors).mean()),
            "r2": float(np.mean(explained)) if explained else None,
        }


def class_baselines(
    train_y: Array, true: Array, classes: int, train_x: Array | None = None, test_x: Array | None = None
) -> Baselines:
    """The majority class, the shares of the classes, and logistic regression on features (n, d) if they are given.

    >>> found = class_baselines(np.array([0, 0, 1]), np.array([0, 1]), 2)
    >>> found["majority class"]["accuracy"], round(found["class shares"]["accuracy"], 3)
    (0.5, 0.5)
    """
    shares = np.bincount(train_y, minlength=classes) / len(train_y)
    certain = np.zeros((len(true), classes))
    certain[:, shares.argmax()] = 1.0
    majority = class_measures(certain, true)
    by_shares = class_measures(np.broadcast_to(shares, certain.shape), true)
    came = np.unique(true)
    found: Baselines = {
        "majority class": {**majority, "log_loss": None},  # it is certain, and sometimes wrong: infinite
        # classes drawn by their shares, on average
        "class shares": {
            **by_shares,
            "accuracy": float(shares[true].mean()),
            "balanced_accuracy": float(shares[came].mean()),
        },
    }
    if (pair := _features(train_x, test_x)) is not None and len(np.unique(train_y)) > 1:
        weights = logistic_weights(pair[0], train_y[_some(len(train_y))], classes)
        found["linear model"] = class_measures(_softmax(pair[1] @ weights), true)
    return found


def number_baselines(
    train_y: Array, true: Array, train_x: Array | None = None, test_x: Array | None = None
) -> Baselines:
    """The mean, the median, and ridge regression on features (n, d) if they are given; targets are (n, k).

    >>> round(number_baselines(np.array([[1.0], [2.0], [6.0]]), np.array([[2.0], [4.0]]))["mean"]["mae"], 3)
    1.0
    """
    found = {
        "mean": number_measures(np.broadcast_to(train_y.mean(axis=0), true.shape), true),
        "median": number_measures(np.broadcast_to(np.median(train_y, axis=0), true.shape), true),
    }
    if (pair := _features(train_x, test_x)) is not None:
        found["linear model"] = number_measures(pair[1] @ ridge_weights(pair[0], train_y[_some(len(train_y))]), true)
    return found


def forecast_baselines(train_x: Array, train_y: Array, x: Array, true: Array) -> Baselines:
    """The last value, the value a season ago, and a linear model, for windows (n, steps, channels) and what follows.

    >>> wave = np.tile([0.0, 1.0, 2.0, 3.0], 8)[:, None]
    >>> windows = np.stack([wave[i : i + 9] for i in range(20)])
    >>> found = forecast_baselines(windows[:, :-1], windows[:, -1], windows[:, :-1], windows[:, -1])
    >>> found["seasonal naive, 4 steps"]["mae"], found["last value"]["mae"]
    (0.0, 1.5)

    The season is the number of steps after which training windows repeat themselves best.
    """
    found = {"last value": number_measures(x[:, -1], true)}
    some = _some(len(train_y))
    errors = [float(np.abs(train_x[some, -lag] - train_y[some]).mean()) for lag in range(1, train_x.shape[1] + 1)]
    season = int(np.argmin(errors)) + 1
    if season > 1:
        found[f"seasonal naive, {season} steps"] = number_measures(x[:, -season], true)
    linear = number_baselines(train_y, true, train_x.reshape(len(train_x), -1), x.reshape(len(x), -1))
    return {**found, **{name: linear[name] for name in ("mean", "linear model") if name in linear}}


def ridge_weights(x: Array, y: Array, penalty: float = 1e-3) -> Array:
    """Weights (d, k) with the least squared errors of features whose last is always 1, and a small penalty."""
    gram = x.T @ x
    ridge = penalty * len(x) * np.eye(len(gram))
    ridge[-1, -1] = 0.0
    return np.linalg.solve(gram + ridge, x.T @ y)


def logistic_weights(x: Array, y: Array, classes: int) -> Array:
    r"""Weights (d, k) of a logistic regression with the penalty \(\frac1{2n}\|W\|^2\), as scikit-learn's default.

    The Hessian is at most \(\frac12 X^\top X/n\) (Böhning, 1992), so steps by the inverse of that never overshoot;
    with Nesterov's momentum, some hundred come close enough for a baseline, whatever the scales of the features.
    """
    n, d = x.shape
    x = x.astype(np.float32)  # half the time, and digits enough
    target = np.eye(classes, dtype=np.float32)[y]
    penalty = np.full((d, 1), 1.0 / n, np.float32)
    penalty[-1] = 0.0
    bound = 0.5 * (x.T @ x).astype(np.float64) / n + np.diag(penalty[:, 0] + 1e-6)
    inverse = np.linalg.inv(bound).astype(np.float32)
    weights = ahead = np.zeros((d, classes), np.float32)
    for step in range(STEPS):
        slope = x.T @ (_softmax(x @ ahead) - target) / n + penalty * ahead
        moved = ahead - inverse @ slope
        ahead = moved + np.float32(step / (step + 3)) * (moved - weights)
        if np.abs(moved - weights).max() < SETTLED:
            return moved
        weights = moved
    return weights


def standardised(rows: Array, others: Array) -> tuple[Array, Array]:
    """Features (n, d) in units of their deviations on the first rows, finite ones only, within eight of them."""
    numbers = rows.astype(np.float64)
    finite = np.isfinite(numbers)
    count = np.maximum(finite.sum(axis=0), 1)
    centre = np.where(finite, numbers, 0.0).sum(axis=0) / count
    scale = np.sqrt((np.where(finite, numbers - centre, 0.0) ** 2).sum(axis=0) / count)
    scale = np.where(scale > 1e-12 * (1 + np.abs(centre)), scale, np.inf)  # what never changes says nothing
    with np.errstate(invalid="ignore", over="ignore"):
        both = [np.nan_to_num((part - centre) / scale) for part in (numbers, others)]
    return both[0].clip(-8, 8), both[1].clip(-8, 8)


def flat_features(x: Array | None) -> Array | None:
    """Inputs as numbers (n, d), or None if they are none."""
    if x is None or x.ndim < 2 or x.dtype.kind not in "fiub" or not x.size:
        return None
    return x.reshape(len(x), -1)


def _features(train_x: Array | None, test_x: Array | None) -> tuple[Array, Array] | None:
    """Standardised features with a 1 behind them, of some training rows and of all test rows."""
    first, second = flat_features(train_x), flat_features(test_x)
    if first is None or second is None or first.shape[1] != second.shape[1] or first.shape[1] > MOST_FEATURES:
        return None
    both = standardised(first[_some(len(first))], second)
    return np.insert(both[0], first.shape[1], 1.0, axis=1), np.insert(both[1], first.shape[1], 1.0, axis=1)


def _some(n: int) -> Array:
    """Rows all over the data."""
    return np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.int64)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
