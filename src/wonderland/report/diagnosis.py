"""`wl.report.diagnose`: what is wrong with a model, or might be, from its predictions, its data and its training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import softmax
from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..data.tables import Table
from ..metrics.intervals import wilson_interval
from ..nn.module.module import Module
from ..train.evaluation import evaluating
from ..train.history import History
from ..transforms.jit.jit import jit
from . import found_in_data, found_in_history, found_in_outcomes
from .baselines import (
    Baselines,
    Measures,
    class_baselines,
    class_measures,
    flat_features,
    forecast_baselines,
    number_baselines,
    number_measures,
)
from .evidence import Evidence, Groups, Source, sources_of
from .findings import Finding, worst_first
from .importance import Dependence, Importance, Predict, partial_dependence, permutation_importance
from .outcomes import Classified, Estimated, read

BATCH = 256  # examples at a time
MOST_TEST = 20_000  # test rows that are looked at
ON_TRAINING = 2_000  # rows on which the model is measured once more
MOST_CURVES = 6  # columns whose dependence is drawn
MOST_NEAREST = 6  # mistakes whose neighbours are shown
NEIGHBOURS = 3

RULES: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    found_in_outcomes.worse_than_baselines,
    found_in_data.copies_in_training,
    found_in_data.one_column_alone,
    found_in_outcomes.better_on_training,
    found_in_history.course_of_training,
    found_in_outcomes.worse_groups,
    found_in_outcomes.worse_classes,
    found_in_data.drift,
    found_in_outcomes.poor_calibration,
    found_in_data.wrong_labels,
    found_in_outcomes.few_examples,
    found_in_outcomes.uncertain_accuracy,
)


@dataclass(frozen=True)
class Near:
    """The training examples nearest to a mistake: numbers of rows, what they are, and how far away."""

    example: int
    true: str
    predicted: str
    rows: list[int]
    labels: list[str]
    distances: list[float]


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What was found out about a model: findings, its measures beside those of baselines, columns, neighbours."""

    findings: list[Finding]
    measures: Measures
    baselines: Baselines
    interval: tuple[float, float] | None = None  # of the accuracy, with 95 % confidence
    importance: list[Importance] = field(default_factory=list)
    importance_note: str = ""
    dependence: list[Dependence] = field(default_factory=list)
    near: list[Near] = field(default_factory=list)
    rows: tuple[int, int] = (0, 0)  # test rows that were looked at, and how many there are

    def to_dict(self) -> dict[str, object]:
        """The baselines and the findings as plain data, for a file of results."""
        return {
            "baselines": {"model": self.measures, **self.baselines},
            "findings": [finding.to_dict() for finding in self.findings],
            "accuracy_interval": list(self.interval) if self.interval is not None else None,
            "importance": {one.column: one.loss for one in self.importance},
        }


def diagnose(
    model: Module | Predict,
    data: tuple[ArrayLike, ArrayLike],
    *,
    training: tuple[ArrayLike, ArrayLike] | None = None,
    history: History | None = None,
    class_names: Sequence[str] = (),
    feature_names: Sequence[str] | None = None,
    groups: Groups | None = None,
    table: Table | None = None,
) -> list[Finding]:
    """What should be known of a model before it is used, the worst first, each with a remedy.

    >>> import wonderland as wl
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(400, 3)), (rng.random(400) < 0.1).astype(int)
    >>> always = lambda x: np.tile([0.9, 0.1], (len(x), 1))
    >>> found = wl.report.diagnose(always, (x[200:], y[200:]), training=(x[:200], y[:200]), class_names=["no", "yes"])
    >>> print(found[0].text)
    The accuracy of 87 % is the share of the majority class: always saying 'no' has 87 %.

    - `model`: a module, or a function from inputs to outputs: scores or probabilities (n, classes), or numbers.
    - `data`: inputs and targets that it was not trained on; integers (n,) are classes.
    - `training`: what it was trained on: with it there are baselines, overfitting, leakage, drift and neighbours.
    - `history`: of `wl.train.fit`, for the course of the training.
    - `feature_names` of inputs (n, d); `groups`, the features of each column of a table, as `schema.groups` or tuples
      (name, start, stop); `table` with the test rows as they were, so that groups have the names that the user knows.
    """
    return examine(
        model,
        data,
        training=training,
        history=history,
        class_names=class_names,
        feature_names=feature_names,
        groups=groups,
        table=table,
        explained=False,
    ).findings


def examine(
    model: Module | Predict,
    data: tuple[ArrayLike, ArrayLike],
    *,
    training: tuple[ArrayLike, ArrayLike] | None = None,
    history: History | None = None,
    class_names: Sequence[str] = (),
    feature_names: Sequence[str] | None = None,
    groups: Groups | None = None,
    table: Table | None = None,
    predictions: ArrayLike | None = None,
    form: str = "features",
    explained: bool = True,
) -> Diagnosis:
    """All that `diagnose` finds, and with `explained` which columns matter and what is near to mistakes.

    `predictions` for the data, if they are known already: probabilities or numbers. `form` is what inputs are:
    "features", numbers of which each means something, as columns or pixels; "windows" (n, steps, channels) of series,
    whose targets follow them; or "codes", as tokens, which nothing can be computed with. Of very many test rows some
    are looked at.
    """
    if form not in ("features", "windows", "codes"):
        raise InputError(f"examine: form={form!r}.", '"features", "windows" or "codes"')
    x, y = _pair("data", data)
    everything = len(x)
    if everything > MOST_TEST:
        chosen = np.linspace(0, everything - 1, MOST_TEST).astype(np.int64)
        x, y = x[chosen], y[chosen]
        predictions = None if predictions is None else np.asarray(predictions)[chosen]
        table = table.select(chosen) if table is not None else None
    known = None if training is None else _pair("training", training)
    classes = bool(class_names) or _are_classes(y)
    predict = predictor(model, classes)
    found = read(predict(x) if predictions is None else predictions, y, class_names)
    if (isinstance(found, Classified)) != classes:
        raise InputError("diagnose: targets and predictions do not belong together.", "classes and scores, or numbers")
    train_x, train_y = (None, None) if known is None else (known[0], _targets(found, known[1]))
    on_training = None
    if known is not None:
        some = np.linspace(0, len(known[0]) - 1, min(len(known[0]), ON_TRAINING)).astype(np.int64)
        on_training = read(predict(known[0][some]), known[1][some], class_names)
    sources = _sources(x, feature_names, groups, table) if form == "features" else []
    flat = flat_features(x) if form == "features" else None
    told = Evidence(
        found,
        _measures(found),
        _baselines(found, x, train_x, train_y, form),
        on_training,
        flat,
        None if flat is None else flat_features(train_x),
        train_y,
        sources,
        history,
    )
    findings = worst_first(finding for rule in RULES for finding in rule(told))
    right = int(np.count_nonzero(~found.wrong)) if isinstance(found, Classified) else 0
    interval = wilson_interval(right, len(found.true)) if isinstance(found, Classified) else None
    if not explained:
        return Diagnosis(findings, told.measures, told.baselines, interval, rows=(len(x), everything))
    importance, note, dependence = _explained(predict, x, found, sources)
    near = _near(told)
    rows = len(x), everything
    return Diagnosis(findings, told.measures, told.baselines, interval, importance, note, dependence, near, rows)


def predictor(model: Module | Predict, classes: bool) -> Predict:
    """A function from inputs to probabilities or numbers: the model, compiled once, batch by batch."""
    if not isinstance(model, Module):
        plain = model
        return lambda x: _probabilities(np.asarray(plain(x)), classes)
    forward = jit(lambda model, x: model(x))

    def predict(x: Array) -> Array:
        parts = []
        with evaluating(model):
            for start in range(0, len(x), BATCH):
                part = x[start : start + BATCH]
                full = part if len(x) <= BATCH else x[np.arange(start, start + BATCH).clip(max=len(x) - 1)]
                parts.append(np.asarray(forward(model, full))[: len(part)])
        return _probabilities(np.concatenate(parts), classes)

    return predict


def _probabilities(outputs: Array, classes: bool) -> Array:
    """Scores (n, classes) as probabilities, unless they are."""
    if not classes or outputs.ndim != 2 or outputs.shape[1] < 2:
        return outputs
    if outputs.min() >= 0 and np.allclose(outputs.sum(axis=1), 1.0, atol=1e-3):
        return outputs
    return np.asarray(softmax(outputs.astype(np.float64)))


def _pair(name: str, given: tuple[ArrayLike, ArrayLike]) -> tuple[Array, Array]:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InputError(f"diagnose: {name} of type {type(given).__name__}.", "a pair (inputs, targets)")
    x, y = np.asarray(given[0]), np.asarray(given[1])
    if x.ndim == 0 or y.ndim == 0 or len(x) != len(y) or not len(x):
        raise ShapeError(f"diagnose: {name} of shapes {x.shape} and {y.shape}.", "inputs (n, ...) and n targets")
    return x, y


def _are_classes(y: Array) -> bool:
    return y.ndim == 1 and y.dtype.kind in "iub"


def _targets(found: Classified | Estimated, y: Array) -> Array:
    """Training targets as those of the outcome: classes (n,), or numbers (n, k)."""
    if isinstance(found, Estimated):
        return y.astype(np.float64).reshape(len(y), -1)
    return (y.argmax(axis=1) if y.ndim == 2 and y.shape[1] > 1 else y.reshape(-1)).astype(np.int64)


def _measures(found: Classified | Estimated) -> Measures:
    if isinstance(found, Classified):
        return class_measures(found.probabilities, found.true)
    return number_measures(found.predicted, found.true)


def _baselines(
    found: Classified | Estimated, x: Array, train_x: Array | None, train_y: Array | None, form: str
) -> Baselines:
    if train_x is None or train_y is None:
        return {}
    if isinstance(found, Classified):
        pair = (train_x, x) if form == "features" else (None, None)
        return class_baselines(train_y, found.true, len(found.names), *pair)
    if form == "windows":
        return forecast_baselines(train_x, train_y, x[found.places], found.true)
    if form == "codes":
        return number_baselines(train_y, found.true)
    return number_baselines(train_y, found.true, train_x, x[found.places])


def _sources(x: Array, names: Sequence[str] | None, groups: Groups | None, table: Table | None) -> list[Source]:
    """The columns of a table; inputs that are no table have none."""
    if x.ndim != 2 or x.dtype.kind not in "fiub" or (x.dtype.kind != "f" and names is None and groups is None):
        return []
    return sources_of(x, names, groups, table)


def _explained(
    predict: Predict, x: Array, found: Classified | Estimated, sources: Sequence[Source]
) -> tuple[list[Importance], str, list[Dependence]]:
    if not sources:
        return [], "", []
    if isinstance(found, Estimated):
        rows = x[found.places]
        importance, note = permutation_importance(predict, rows, _as_columns, found.true, sources)
    else:
        importance, note = permutation_importance(predict, x, class_measures, found.true, sources)
    by_name = {source.name: source for source in sources}
    top = [by_name[one.column] for one in importance[:MOST_CURVES] if one.loss > 0]
    curves = [partial_dependence(predict, x, source) for source in top]
    return importance, note, [curve for curve in curves if curve is not None]


def _as_columns(predicted: Array, true: Array) -> Measures:
    return number_measures(predicted.astype(np.float64).reshape(true.shape), true)


def _near(told: Evidence) -> list[Near]:
    """The nearest training examples of the worst mistakes."""
    found = told.outcome
    if told.test_x is None or told.train_x is None or told.train_y is None or not told.test_x.shape[1]:
        return []
    if isinstance(found, Classified):
        wrong = np.flatnonzero(found.wrong)
        places = wrong[np.argsort(-found.confidence[wrong], kind="stable")][:MOST_NEAREST]
        examples = places
    else:
        places = np.argsort(-np.abs(found.predicted - found.true).mean(axis=1), kind="stable")[:MOST_NEAREST]
        examples = found.places[places]
    if not len(places):
        return []
    distances, rows = found_in_data.nearest(told.train_x, told.test_x[examples], NEIGHBOURS)

    def name(value: Array) -> str:
        if isinstance(found, Classified):
            return found.names[int(value)]
        return ", ".join(f"{number:.4g}" for number in np.ravel(value)[:6])

    return [
        Near(
            int(example),
            name(found.true[place]),
            name(found.predicted[place]),
            near.tolist(),
            [name(told.train_y[row]) for row in near],
            far.tolist(),
        )
        for place, example, near, far in zip(places, examples, rows, distances, strict=True)
    ]
