"""Which columns of a table a model uses, and how its answers change with them. Book, section 4.3."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.typing import Array
from .baselines import Measures
from .evidence import Source, category_counts

Predict = Callable[[Array], Array]  # from features to probabilities or numbers

ROWS = 1_000  # of the test data that are permuted
REPEATS = 5
SECONDS = 8.0  # after which no further repetition begins
MOST_COLUMNS = 200
DEPENDENCE_ROWS = 300
PLACES = 15  # of a curve
MOST_CATEGORIES = 12
WITHOUT_ORDER = ("text", "image", "sound")  # kinds whose values are all different


@dataclass(frozen=True)
class Importance:
    """How much worse a model is if the values of a column are shuffled: the mean, and its standard error."""

    column: str
    loss: float  # more log loss, or more of the variance that is not explained
    error: float
    accuracy: float | None  # less of it


@dataclass(frozen=True, eq=False)
class Dependence:
    """The mean answer (places, outputs) if a column had each of some values in all rows."""

    column: str
    values: Array  # numbers or texts (places,)
    answers: Array


def permutation_importance(
    predict: Predict,
    x: Array,
    measure: Callable[[Array, Array], Measures],
    true: Array,
    sources: Sequence[Source],
    *,
    repeats: int = REPEATS,
    seed: int = 0,
) -> tuple[list[Importance], str]:
    """The importance of columns, the largest first, and how it was measured. The features of a column move together.

    A column whose values another one has, too, seems unimportant: the model takes the other.
    """
    rng = np.random.default_rng(seed)
    rows = _some(len(x), ROWS, rng)
    x, true = x[rows], true[rows]
    before = _losses(measure(predict(x), true), true)
    chosen = sources[:MOST_COLUMNS]
    found: list[Array] = []
    begin = time.perf_counter()
    for _ in range(repeats):
        found.append(np.array([_shuffled(predict, x, measure, true, source, rng) for source in chosen]) - before)
        if time.perf_counter() - begin > SECONDS:
            break
    drops = np.stack(found)  # (repeats, columns, 2)
    mean = drops.mean(axis=0)
    error = drops[..., 0].std(axis=0, ddof=1) / np.sqrt(len(drops)) if len(drops) > 1 else np.zeros(len(chosen))
    classes = true.dtype.kind in "iu"
    told = [
        Importance(s.name, float(m[0]), float(e), float(m[1]) if classes else None)
        for s, m, e in zip(chosen, mean, error, strict=True)
    ]
    note = f"{len(rows):,} test rows, {len(drops)} shuffles of each column"
    if len(sources) > len(chosen):
        note += f", the first {len(chosen)} of {len(sources):,} columns"
    return sorted(told, key=lambda one: -one.loss), note


def _shuffled(
    predict: Predict,
    x: Array,
    measure: Callable[[Array, Array], Measures],
    true: Array,
    source: Source,
    rng: np.random.Generator,
) -> tuple[float, float]:
    other = x.copy()
    other[:, source.start : source.stop] = x[rng.permutation(len(x)), source.start : source.stop]
    return _losses(measure(predict(other), true), true)


def _losses(found: Measures, true: Array) -> tuple[float, float]:
    """What grows when a model gets worse: log loss and the share of errors, or the share of the variance left."""
    if true.dtype.kind in "iu":
        return found["log_loss"] or 0.0, 1.0 - (found["accuracy"] or 0.0)
    explained = found["r2"]
    return (0.0 if explained is None else 1.0 - explained), 0.0


def partial_dependence(predict: Predict, x: Array, source: Source, *, seed: int = 0) -> Dependence | None:
    """The mean answer over some rows, for values of one column; None if it has one value, or texts and the like.

    The features that stand for a value are those of a row that has it, so encodings need not be known.
    """
    rng = np.random.default_rng(seed)
    rows = _some(len(x), DEPENDENCE_ROWS, rng)
    if source.kind in WITHOUT_ORDER:
        return None
    if source.is_number:
        finite = np.flatnonzero(np.isfinite(source.values))
        if not len(finite):
            return None
        order = finite[np.argsort(source.values[finite], kind="stable")]
        low, high = int(0.01 * len(order)), int(0.99 * (len(order) - 1))  # not the strangest values
        wanted = np.linspace(source.values[order[low]], source.values[order[high]], PLACES)
        ends = np.searchsorted(source.values[order], wanted).clip(0, len(order) - 1)
        places = np.unique(order[ends])
        places = places[np.argsort(source.values[places], kind="stable")]
        _, first = np.unique(source.values[places], return_index=True)
        places = places[first]
    else:
        common = list(category_counts(source.values))[:MOST_CATEGORIES]
        places = np.array([int(np.argmax(source.values == kind)) for kind in common])
    if len(places) < 2:
        return None
    answers = []
    for place in places:
        other = x[rows].copy()
        other[:, source.start : source.stop] = x[place, source.start : source.stop]
        answers.append(predict(other).mean(axis=0))
    return Dependence(source.name, source.values[places], np.stack(answers))


def _some(n: int, most: int, rng: np.random.Generator) -> Array:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
