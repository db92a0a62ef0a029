"""Prediction intervals and sets of a run: calibrated on its validation data when it ends. Book, section 4.3.4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .. import nn
from ..core.arguments import as_number, shown
from ..core.errors import FileError, InputError
from ..decisions.conformal import ConformalClassifier, ConformalRegressor
from .inputs import Options
from .predictions import Predictions
from .tasks import Prepared, Task

# How often the truth is to be inside. A level in between is served by the next one, which promises more.
LEVELS = (*(round(0.05 * i, 2) for i in range(1, 20)), 0.98, 0.99, 0.995)


def calibrated(answers: np.ndarray, targets: np.ndarray, class_names: Sequence[str]) -> Options:
    """What a run keeps to give intervals or sets: how far off it was on data that it was not trained on.

    >>> found = calibrated(np.zeros((9, 1)), np.arange(1.0, 10.0)[:, None], ())
    >>> found["examples"], found["bounds"][0][LEVELS.index(0.8)], found["bounds"][0][LEVELS.index(0.95)]
    (9, 8.0, None)

    `answers` are probabilities of classes (n, m) with targets (n,), or numbers with targets of their shape (n, k). For
    numbers `bounds` has, for each of them and each level, how far from a prediction the interval reaches; for classes
    the probability that a class needs to be in the set. None where so few examples promise nothing.
    """
    if class_names:
        score = ConformalClassifier()
        gammas = [score.calibrate(answers, targets, 1 - level).gamma for level in LEVELS]
        enough = [(1 - level) * (len(answers) + 1) >= 1 - 1e-9 for level in LEVELS]
        return {"examples": len(answers), "bounds": [[g if e else None for g, e in zip(gammas, enough, strict=True)]]}
    p, y = answers.reshape(len(answers), -1), targets.reshape(len(targets), -1)
    return {"examples": len(p), "bounds": [_reaches(p[:, i], y[:, i]) for i in range(p.shape[1])]}


def _reaches(p: np.ndarray, y: np.ndarray) -> list[float | None]:
    """How far the intervals of a number reach, for each level; targets that are not known are passed over."""
    known = ~np.isnan(y)
    if not known.any():
        return [None] * len(LEVELS)
    found = [ConformalRegressor().calibrate(p[known], y[known], 1 - level).quantile for level in LEVELS]
    return [q if q is not None and math.isfinite(q) else None for q in found]


def of_run(task: Task, model: nn.Module, data: Prepared) -> Options:
    """What a run adds to what it keeps when it ends: nothing without validation data, or with nothing to bound."""
    found = task.held_out(model, data)
    return {} if found is None else {"intervals": calibrated(*found, data.about.get("class_names", ()))}


def with_intervals(found: Predictions, level: float, about: Options) -> Predictions:
    """Predictions of numbers with the ends of intervals that have the truth with the probability `level`."""
    if found.probabilities is not None:
        raise InputError("predict: the model gives classes, which have no intervals.", f"sets={level} (--sets {level})")
    centre = np.asarray(found.predictions, np.float64).reshape(len(found), -1)
    promised, reach = _bounds(level, about, "intervals", centre.size if "context" in about else centre.shape[1])
    lower, upper = centre - reach.reshape(-1, centre.shape[1]), centre + reach.reshape(-1, centre.shape[1])
    if centre.shape[1] == 1:
        lower, upper = lower[:, 0], upper[:, 0]
    return replace(found, lower=lower, upper=upper, level=promised)


def with_sets(found: Predictions, level: float, about: Options) -> Predictions:
    """Predictions of classes with sets that have the true one with the probability `level`."""
    if found.probabilities is None:
        raise InputError(
            "predict: the model gives no classes, and only they have sets.", f"interval={level} (--interval {level})"
        )
    promised, (gamma,) = _bounds(level, about, "sets", 1)
    names = list(found.probabilities)
    chances = np.stack([found.probabilities[name] for name in names], -1)
    # the likeliest class is never left out: an empty set helps nobody, and a larger one keeps the promise
    inside = (chances >= gamma) | (chances == chances.max(-1, keepdims=True))
    return replace(found, sets=[tuple(names[i] for i in np.flatnonzero(row)) for row in inside], level=promised)


def _bounds(level: float, about: Options, what: str, count: int) -> tuple[float, np.ndarray]:
    """The level that is kept, and the bound for it of each of so many outputs: of an input, or of all steps ahead."""
    if not 0 < as_number("predict", "level", level) < 1:
        raise InputError(f"predict: {what} of the level {level}.", "a probability between 0 and 1, such as 0.9")
    known = about.get("intervals")
    if known is None:
        raise InputError(
            f"predict: the run has no {what}, which are made with validation data when it ends.",
            "a run of classes or numbers with validation data (--set validation=0.1) of this version",
        )
    promised = next((i for i, kept in enumerate(LEVELS) if kept >= level - 1e-9), None)
    bounds = _checked(known)
    if len(bounds) < count:
        raise InputError(
            f"predict: {what} of {count} numbers, and the run knows those of {len(bounds)}.",
            "fewer steps, or data as those of the run",
        )
    chosen = [None if promised is None else row[promised] for row in bounds[:count]]
    if promised is None or None in chosen:
        few = f", and the run had {known['examples']} validation examples" if promised is not None else ""
        raise InputError(f"predict: {what} of the level {level} cannot be promised{few}.", _remedy(promised))
    return LEVELS[promised], np.array(chosen, np.float64)


def _remedy(promised: int | None) -> str:
    if promised is None:
        return f"{LEVELS[-1]} or less"
    return f"a lower level, or a run with {math.ceil(1 / (1 - LEVELS[promised]) - 1e-9) - 1} of them or more"


def _checked(known: Options) -> list[list[float | None]]:
    """The bounds that a run kept; a file may say anything."""
    bounds = known.get("bounds") if isinstance(known, dict) else None
    sound = (
        isinstance(bounds, list)
        and type(known.get("examples")) is int
        and all(isinstance(row, list) and len(row) == len(LEVELS) for row in bounds)
        and all(type(q) in (float, int, type(None)) for row in bounds for q in row)
    )
    if not sound:
        raise FileError(f"predict: the run has odd intervals ({shown(known)}).", "a file that `wonderland train` wrote")
    return bounds  # type: ignore[return-value]
