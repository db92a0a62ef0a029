"""Findings from the data behind predictions: leakage, labels that look wrong, drift."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.typing import Array
from ..data.drift import classifier_test, ks_test
from .baselines import standardised
from .evidence import Evidence, Source
from .findings import Finding, listed, percent
from .outcomes import Classified

MOST_ROWS = 5_000  # training rows among which neighbours are looked for
MOST_SUSPECTS = 200  # mistakes whose neighbours are looked at
NEIGHBOURS = 5
AGREEING = 4  # of these, which must have the predicted class
CONFIDENT = 0.98  # a mistake that the model would bet fifty to one on
SURPRISING = 2.0  # times as many such mistakes as its confidence foresees
MANY_LABELS = 0.02  # of the test rows: so many wrong labels spoil what is measured
COPIES = 0.01  # of the test rows that are training rows, too
MANY_COPIES = 0.1
ROOM = 100  # times as many different rows as there are: with less, rows are equal by chance
ALONE = 0.995  # share of right answers, or correlation, from which one column gives the target away
ENOUGH = 40  # rows, below which nothing is said about leakage and drift
MOST_COLUMNS = 200
DRIFT_ROWS = 1_000  # of both parts
DRIFT_SURE = 1e-3  # probability of a false alarm
MOVED = 0.15  # Kolmogorov's distance from which a change matters: of many rows any change is certain
TOLD_APART = 0.65  # accuracy of a classifier that tells new rows from old ones; 0.5 is chance


def copies_in_training(told: Evidence) -> Iterator[Finding]:
    """Test rows that are also training rows."""
    if told.test_x is None or told.train_x is None or told.test_x.shape[1] != told.train_x.shape[1]:
        return
    if _room(told.train_x) < ROOM * len(told.train_x):
        return
    known, asked = row_hashes(told.train_x), row_hashes(told.test_x)
    copies = int(np.isin(asked, known).sum())
    if copies < 2 or copies < COPIES * len(asked):
        return
    share = copies / len(asked)
    yield Finding(
        "serious" if share >= MANY_COPIES else "warning",
        f"Leakage suspected: {copies:,} of {len(asked):,} test rows ({percent(share)}) are in the training data, too.",
        "remove copies before the data are split, or split by what they have in common (data.group).",
        "copies",
    )


def _room(x: Array) -> float:
    """How many different rows the values of the features could make."""
    room, some = 1.0, x[:MOST_ROWS]
    for part in some.T:
        room *= len(np.unique(part))
        if room > 1e12:
            break
    return room


def row_hashes(x: Array) -> Array:
    """A number (n,) for each row of numbers; equal rows have equal ones.

    >>> a, b, c = row_hashes(np.array([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]]))
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    factors = np.random.default_rng(0).integers(1, 2**63, x.shape[1], np.uint64) | np.uint64(1)
    found = np.empty(len(x), np.uint64)
    for start in range(0, len(x), 4096):
        bits = (x[start : start + 4096].astype(np.float64) + 0.0).view(np.uint64)
        # round numbers have zeros in all low bits, and products modulo 2^64 never move high bits down
        bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        found[start : start + 4096] = ((bits ^ (bits >> np.uint64(29))) * factors).sum(axis=1)
    return found


def one_column_alone(told: Evidence) -> Iterator[Finding]:
    """Columns that give the target away."""
    found = told.outcome
    if len(found.true) < ENOUGH or len(told.sources) < 2:
        return
    leaking = []
    for source in told.sources[:MOST_COLUMNS]:
        if isinstance(found, Classified):
            enough = class_by_column(source, found.true, len(found.names))
        else:
            enough = _correlation(source.values[found.places], found.true) >= ALONE
        if enough:
            leaking.append(repr(source.name))
    if leaking:
        many = len(leaking) > 1
        yield Finding(
            "warning",
            f"Leakage suspected: the column{'s' if many else ''} {listed(leaking)} alone "
            f"{'predict' if many else 'predicts'} the target almost without error.",
            "unless it will be known when predictions are made, leave it out (--set data.columns.NAME=ignore).",
            "leakage",
        )


def class_by_column(source: Source, true: Array, classes: int) -> bool:
    """Whether one column is enough to tell the classes: half of the rows say those of the others.

    A number has the class of the nearest one, a category the one that is most frequent with it. One mistake is
    forgiven, where two ranges meet.
    """
    half = len(true) // 2
    order = np.random.default_rng(0).permutation(len(true))
    first, second = order[:half], order[half:]
    if source.is_number:
        values = np.nan_to_num(source.values, nan=np.inf)
        known = first[np.argsort(values[first], kind="stable")]
        after = np.searchsorted(values[known], values[second]).clip(1, half - 1)
        with np.errstate(invalid="ignore"):  # two missing ones
            nearer = np.abs(values[known[after]] - values[second]) < np.abs(values[known[after - 1]] - values[second])
        guess = true[known[np.where(nearer | (values[known[after]] == values[second]), after, after - 1)]]
    else:
        codes = np.unique(source.values, return_inverse=True)[1]
        if codes.max() + 1 > len(true) / 4:
            return False
        counts = np.zeros((int(codes.max()) + 1, classes), np.int64)
        np.add.at(counts, (codes[first], true[first]), 1)
        guess = counts.argmax(axis=1)[codes[second]]
    usual = int(np.bincount(true[first]).argmax())
    wrong, plain = (int(np.count_nonzero(answer != true[second])) for answer in (guess, usual))
    return plain > 0 and wrong <= max(1.0, (1 - ALONE) * len(second)) and wrong <= 0.05 * plain


def _correlation(values: Array, true: Array) -> float:
    """The largest correlation of numbers, or of their ranks, with an output."""
    if values.dtype.kind != "f" or not np.isfinite(values).all() or np.ptp(values) == 0:
        return 0.0
    found = 0.0
    for output in true.T:
        if np.ptp(output) > 0:
            pairs = ((values, output), (_ranks(values), _ranks(output)))
            found = max(found, *(abs(float(np.corrcoef(a, b)[0, 1])) for a, b in pairs))
    return found


def _ranks(x: Array) -> Array:
    """Ranks; equal values have the mean of theirs."""
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def wrong_labels(told: Evidence) -> Iterator[Finding]:
    """Confident mistakes whose neighbours in the training data are of the predicted class."""
    found = told.outcome
    if not isinstance(found, Classified) or told.test_x is None or told.train_x is None or told.train_y is None:
        return
    wrong = np.flatnonzero(found.wrong & (found.confidence >= CONFIDENT))
    wrong = wrong[np.argsort(-found.confidence[wrong], kind="stable")][:MOST_SUSPECTS]
    if not len(wrong) or len(told.train_x) < NEIGHBOURS:
        return
    _, near = nearest(told.train_x, told.test_x[wrong], NEIGHBOURS)
    agree = (told.train_y[near] == found.predicted[wrong, None]).sum(axis=1)
    suspects = wrong[agree >= AGREEING]
    foreseen = float((1 - found.confidence[found.confidence >= CONFIDENT]).sum())
    if not len(suspects) or len(suspects) < SURPRISING * foreseen:
        return
    shown = [f"{i} ({found.names[found.true[i]]}, rather {found.names[found.predicted[i]]})" for i in suspects[:3]]
    more = f" and {len(suspects) - 3} more" if len(suspects) > 3 else ""
    many = len(suspects) > 1
    yield Finding(
        "warning" if len(suspects) >= MANY_LABELS * len(found.true) else "note",
        f"{len(suspects):,} label{'s look' if many else ' looks'} wrong: the model is sure of another class, and so "
        f"are the nearest training examples: test example{'s' if many else ''} {', '.join(shown)}{more}.",
        "look at them, and correct the labels.",
        "labels",
    )


def nearest(train_x: Array, x: Array, k: int) -> tuple[Array, Array]:
    """The distances (n, k) and numbers of the nearest of some training rows, in units of the features' deviations.

    >>> nearest(np.array([[0.0], [1.0], [9.0]]), np.array([[1.2]]), 2)[1].tolist()
    [[1, 0]]
    """
    some = np.linspace(0, len(train_x) - 1, min(len(train_x), MOST_ROWS)).astype(np.int64)
    rows, asked = standardised(train_x[some], x)
    squares = (rows**2).sum(axis=1)
    distances = np.maximum(squares + (asked**2).sum(axis=1)[:, None] - 2 * asked @ rows.T, 0.0)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.sqrt(np.take_along_axis(distances, order, axis=1)), some[order]


def drift(told: Evidence) -> Iterator[Finding]:
    """Test rows of another distribution than the training rows."""
    if told.test_x is None or told.train_x is None or min(len(told.test_x), len(told.train_x)) < ENOUGH:
        return
    rng = np.random.default_rng(0)
    both = [
        part[np.sort(rng.permutation(len(part))[:DRIFT_ROWS])].astype(np.float64)
        for part in (told.train_x, told.test_x)
    ]
    names = [source.name for source in told.sources[:MOST_COLUMNS] for _ in range(source.start, source.stop)]
    if names and len(names) == both[0].shape[1] <= MOST_COLUMNS:
        what = "columns"
    else:  # of images and the like: how bright they are, and how varied
        both = [np.stack([part.mean(axis=1), part.std(axis=1)], axis=1) for part in both]
        names, what = ["mean of an example", "spread of an example"], "measures"
    first, second = (np.nan_to_num(part) for part in both)
    found = ks_test(first, second)
    moved = np.flatnonzero((found.pvalue < DRIFT_SURE / len(names)) & (found.statistic >= MOVED))
    if len(moved):
        spread = first.std(axis=0)
        shifts = (second.mean(axis=0) - first.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        order = moved[np.argsort(-found.statistic[moved], kind="stable")]
        shown = {names[k]: f"{names[k]!r} (mean {shifts[k]:+.1f} deviations)" for k in order[::-1]}
        text = f"The test data differ from the training data in some {what}: {listed(list(shown.values())[::-1], 3)}."
    else:  # two columns may move together, which none shows alone
        rule = classifier_test(first, second)
        if rule.pvalue >= DRIFT_SURE or rule.statistic < TOLD_APART:
            return
        share = percent(float(rule.statistic))
        text = f"The test data differ from the training data: a simple rule tells them apart in {share} of the cases."
    remedy = "train on data like those to be predicted; if time or place has changed, the accuracy will change with it."
    yield Finding("warning", text, remedy, "drift")
