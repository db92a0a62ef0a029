"""Findings from predictions beside what is true: worse than a baseline, too few examples, badly calibrated, unfair."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..core.typing import Array
from ..decisions.calibration import ece
from ..metrics.intervals import wilson_interval
from .evidence import Evidence
from .findings import Finding, listed, percent
from .outcomes import Classified, Estimated

WIDE = 0.1  # an interval of the accuracy that is wider than ten points does not tell good models from fair ones
FEW = 10  # examples of a class to learn from: with fewer, chance decides what it looks like
LINEAR_GAIN = 0.01  # points of accuracy, or of R², by which a linear model must be better to be worth a word
LEAST_EXPLAINED = 0.05  # of the variance: with less, the mean is about as good
POORLY_CALIBRATED = 0.05  # ECE: a confidence that is off by five points on average misleads decisions
DRAWS = 200  # of a calibrated model, to know how large its ECE is by chance
GROUP_ROWS = 20  # of a group, below which its accuracy says little
MOST_GROUPS = 30  # of one column that are compared
WORSE_BY = 0.1  # points of accuracy that a group or a class must lack
WORSE_TIMES = 1.5  # and how many times its absolute error must be larger
SURE = 0.01  # probability of one false alarm over all groups
GAP = 0.1  # points of accuracy or R² between training and test data that are overfitting and no accident


def worse_than_baselines(told: Evidence) -> Iterator[Finding]:
    """No better than always saying the same, or than a linear model."""
    yield from _classes_and_majority(told) if isinstance(told.outcome, Classified) else _numbers_and_mean(told)
    better = told.baselines.get("linear model")
    if better is None:
        return
    name = "accuracy" if isinstance(told.outcome, Classified) else "r2"
    mine, theirs = told.measures[name], better[name]
    if mine is None or theirs is None or theirs < mine + LINEAR_GAIN:
        return
    if isinstance(told.outcome, Classified) and not _surely_less(mine, theirs, len(told.outcome.true)):
        return
    shown = (
        ("accuracy", percent(theirs), percent(mine)) if name == "accuracy" else ("R²", f"{theirs:.3f}", f"{mine:.3f}")
    )
    yield Finding(
        "warning",
        f"A linear model is better: {shown[0]} {shown[1]} against {shown[2]}.",
        "train longer or with another learning rate, or take the linear model (--model linear).",
        "linear is better",
    )


def _surely_less(mine: float, theirs: float, n: int) -> bool:
    """Whether one accuracy is below another by more than one deviation of their difference."""
    return theirs - mine > math.sqrt((mine * (1 - mine) + theirs * (1 - theirs)) / n)


def _classes_and_majority(told: Evidence) -> Iterator[Finding]:
    found = told.outcome
    assert isinstance(found, Classified)
    if (majority := told.baselines.get("majority class")) is None or told.train_y is None:
        return
    accuracy, share, n = told.measures["accuracy"], majority["accuracy"], len(found.true)
    assert accuracy is not None
    assert share is not None
    name = found.names[int(np.bincount(told.train_y, minlength=len(found.names)).argmax())]
    remedy = (
        "judge by balanced accuracy or F1, weigh the classes, move the threshold (wl.decisions), "
        "and see which columns could tell the classes apart."
    )
    says = f"always saying {name!r} has {percent(share)}"
    if accuracy < share:
        text = f"Worse than the majority class: the accuracy is {percent(accuracy)}, {says}."
        yield Finding("serious", text, remedy, "majority")
    elif accuracy <= share + 1e-12:
        text = f"The accuracy of {percent(accuracy)} is the share of the majority class: {says}."
        yield Finding("serious", text, remedy, "majority")
    elif share < 1 and wilson_interval(round(accuracy * n), n)[0] <= share:
        text = f"The accuracy of {percent(accuracy)} is not clearly more than the share of the majority class: {says}."
        yield Finding("warning", text, remedy, "majority")


def _numbers_and_mean(told: Evidence) -> Iterator[Finding]:
    names = [name for name in told.baselines if name not in ("linear model", "median")]
    rmse = told.measures["rmse"]
    beaten = [(told.baselines[name]["rmse"], name) for name in names if told.baselines[name]["rmse"] is not None]
    if rmse is None or not beaten:
        return
    best, name = min(beaten, key=lambda pair: pair[0] or 0.0)
    assert best is not None
    explained = told.measures["r2"]
    remedy = (
        "look at the curves for a loss that does not fall, at outliers of the target, and try another learning rate."
    )
    if not rmse < best and best > 0:
        said = "the mean of the training targets" if name == "mean" else f"the {name}"
        text = f"Worse than {said}: RMSE {rmse:.4g} against {best:.4g}."
        yield Finding("serious", text, remedy, "mean")
    elif explained is not None and explained < LEAST_EXPLAINED and name == "mean":
        text = f"Hardly better than the mean: R² is {explained:.3f}."
        yield Finding("warning", text, "add columns that have to do with the target; check that rows match.", "mean")


def uncertain_accuracy(told: Evidence) -> Iterator[Finding]:
    """An accuracy of few examples."""
    if not isinstance(found := told.outcome, Classified):
        return
    n, right = len(found.true), int(np.count_nonzero(~found.wrong))
    low, high = wilson_interval(right, n)
    if high - low > WIDE:
        yield Finding(
            "note",
            f"The accuracy of {percent(right / n)} is of {n:,} examples: it lies between {percent(low)} and "
            f"{percent(high)} (95 % confidence).",
            "test on more examples, or cross-validate (wl.data.KFold), before comparing models by it.",
            "interval",
        )


def few_examples(told: Evidence) -> Iterator[Finding]:
    """Classes that there is little to learn from."""
    if not isinstance(found := told.outcome, Classified) or told.train_y is None:
        return
    counts = np.bincount(told.train_y, minlength=len(found.names))
    if len(few := np.flatnonzero(counts < FEW)):
        shown = [f"{found.names[k]!r} ({counts[k]})" for k in few[np.argsort(counts[few], kind="stable")]]
        many = f"{len(few)} classes have" if len(few) > 1 else "One class has"
        text = f"{many} fewer than {FEW} training examples: {listed(shown)}."
        yield Finding("warning", text, "collect more of them, or join them with another class.", "few examples")


def poor_calibration(told: Evidence) -> Iterator[Finding]:
    """A confidence that does not mean what it says, by more than chance explains."""
    if not isinstance(found := told.outcome, Classified) or len(found.names) < 2:
        return
    error = ece(found.confidence, ~found.wrong)
    if error <= POORLY_CALIBRATED:
        return
    rng = np.random.default_rng(0)
    chance = [ece(found.confidence, rng.random(len(found.true)) < found.confidence) for _ in range(DRAWS)]
    if error <= float(np.quantile(chance, 0.99)):
        return
    mean, accuracy = float(found.confidence.mean()), float(np.mean(~found.wrong))
    way = "over-confident" if mean > accuracy else "under-confident"
    yield Finding(
        "warning",
        f"The model is {way}: its mean confidence is {percent(mean)}, its accuracy {percent(accuracy)} "
        f"(ECE {error:.3f}).",
        "fit a temperature on validation data (wl.decisions.TemperatureScaler) before using probabilities.",
        "calibration",
    )


def worse_classes(told: Evidence) -> Iterator[Finding]:
    """Classes that are found far less often than the rest."""
    if not isinstance(found := told.outcome, Classified):
        return
    accuracy = float(np.mean(~found.wrong))
    worse = []
    for k, name in enumerate(found.names):
        own = found.true == k
        n, right = int(own.sum()), int(np.count_nonzero(own & ~found.wrong))
        if n >= FEW and wilson_interval(right, n)[1] < accuracy - WORSE_BY:
            worse.append((right / n, f"{right} of {n} of {name!r}"))
    if worse:
        names = [words for _, words in sorted(worse)]
        text = f"Some classes are seldom found: {listed(names, 3)}, where {percent(accuracy)} of all are right."
        yield Finding("warning", text, "weigh these classes, collect more of them, or move the threshold.", "class")


def worse_groups(told: Evidence) -> Iterator[Finding]:
    """Categories of a column for which the model is clearly worse than for the rest."""
    errors = _errors(told.outcome)
    kept = told.outcome.places if isinstance(told.outcome, Estimated) else np.arange(len(errors))
    tested = []
    for source in told.sources:
        if source.is_number:
            continue
        values = source.values[kept]
        kinds, counts = np.unique(values, return_counts=True)
        for kind in kinds[np.argsort(-counts, kind="stable")][:MOST_GROUPS]:
            inside = values == kind
            if GROUP_ROWS <= inside.sum() <= len(values) - GROUP_ROWS:
                tested.append((source.name, str(kind), inside))
    worse = []
    for column, kind, inside in tested:
        own, rest = errors[inside], errors[~inside]
        deviation = math.sqrt(own.var() / len(own) + rest.var() / len(rest)) or 1e-12
        if _tail((own.mean() - rest.mean()) / deviation) * len(tested) > SURE:
            continue
        if isinstance(told.outcome, Classified) and own.mean() - rest.mean() >= WORSE_BY:
            said = f"{column} = {kind}: {percent(1 - own.mean())} right of {len(own)}, else {percent(1 - rest.mean())}"
        elif isinstance(told.outcome, Estimated) and own.mean() >= WORSE_TIMES * rest.mean():
            said = f"{column} = {kind}: mean absolute error {own.mean():.4g} of {len(own)}, else {rest.mean():.4g}"
        else:
            continue
        worse.append((float(rest.mean() - own.mean()), said))
    if worse:
        texts = [said for _, said in sorted(worse)]
        more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
        yield Finding(
            "warning",
            f"Some groups do worse. {'; '.join(texts[:3])}{more}.",
            "collect more rows of them, add what sets them apart, and do not trust the mean for them.",
            "group",
        )


def _errors(found: Classified | Estimated) -> Array:
    """One number for each example."""
    if isinstance(found, Classified):
        return found.wrong.astype(np.float64)
    return np.abs(found.predicted - found.true).mean(axis=1)


def _tail(z: float) -> float:
    """P(Z >= z) of a normal variable."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def better_on_training(told: Evidence) -> Iterator[Finding]:
    """Much better on the data it has seen than on others."""
    seen, new = told.on_training, told.outcome
    remedy = "more data or augmentation, weight_decay, dropout, a smaller model, or patience=5 to stop earlier."
    if isinstance(seen, Classified) and isinstance(new, Classified):
        right = [int(np.count_nonzero(~part.wrong)) for part in (seen, new)]
        sizes = [len(part.true) for part in (seen, new)]
        first, second = right[0] / sizes[0], right[1] / sizes[1]
        apart = wilson_interval(right[0], sizes[0])[0] > wilson_interval(right[1], sizes[1])[1]
        if first - second >= GAP and apart:
            text = f"It overfits: the accuracy is {percent(first)} on training data and {percent(second)} on test data."
            yield Finding("warning", text, remedy, "overfitting")
    elif (
        isinstance(seen, Estimated) and isinstance(new, Estimated) and min(len(seen.true), len(new.true)) >= GROUP_ROWS
    ):
        # by the spread of the training targets, so that an odd test set alone is no gap
        spread = float(((seen.true - seen.true.mean(axis=0)) ** 2).mean()) or 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            squares = [np.mean((part.predicted - part.true) ** 2, axis=1) / spread for part in (seen, new)]
        first, second = (float(np.mean(part)) for part in squares)
        deviation = math.sqrt(sum(float(part.var()) / len(part) for part in squares))
        if second - first >= max(GAP, 3 * deviation) and second > 2 * first:
            text = (
                f"It overfits: the mean squared error is {second / max(first, 1e-12):.3g} times that on training data."
            )
            yield Finding("warning", text, remedy, "overfitting")
