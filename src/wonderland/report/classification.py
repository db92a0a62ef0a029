"""How good a classifier is: which classes it takes for which, and whether its confidence can be trusted.

Book, sections 4.3.3 and 4.3.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..decisions.calibration import ece, reliability_curve
from ..metrics.classes import count_pairs
from ..viz.plot import Bars, Curve
from .outcomes import Array, Classified
from .page import details, facts, figure, figures, paragraph, table
from .pictures import SQUARE, Heat, Plot, Section

MOST_CLASSES = 20  # of a confusion matrix that can be read
LONG_TABLE = 30
BESIDE = 12
BINS = 10
GREY = "#94a3b8"


def classification_section(found: Classified) -> list[Section]:
    """Two sections: the classes, and the confidence."""
    return [_classes(found), _confidence(found)]


def _classes(found: Classified) -> Section:
    counts = count_pairs(found.predicted, found.true, len(found.names)).astype(np.int64)
    heat, note = confusion_picture(counts, found.names)
    rows = class_table(counts, found.names)
    correct = int(np.count_nonzero(~found.wrong))
    means = [_mean([row[i] for row in rows]) for i in (1, 2, 3)]
    headline = facts(
        [
            ("accuracy", correct / len(found.true)),
            ("right", f"{correct:,} of {len(found.true):,}"),
            ("mean precision", means[0]),
            ("mean recall", means[1]),
            ("mean F1", means[2]),
        ]
    )
    listing = table(["class", "precision", "recall", "F1", "support"], rows, caption="Class by class")
    if len(rows) > LONG_TABLE:
        listing = details(f"All {len(rows):,} classes", listing)
    drawn = figure(heat, heat.title + note)
    # a small matrix has room for the table beside it
    html = headline + (f'<div class="figures">{drawn}{listing}</div>' if len(rows) <= BESIDE else drawn + listing)
    return Section("Predictions", html, {"confusion": [heat]})


def confusion_picture(counts: Array, names: list[str]) -> tuple[Heat, str]:
    """The confusion matrix, of the most confused classes if there are too many, and what to say of that."""
    mistakes = counts - np.diag(np.diagonal(counts))
    chosen = np.arange(len(counts))
    note = ". Rows are true, columns predicted classes; the darker, the larger the share of the true class."
    if len(counts) > MOST_CLASSES:
        confused = mistakes.sum(axis=0) + mistakes.sum(axis=1)
        chosen = np.sort(np.argsort(-confused, kind="stable")[:MOST_CLASSES])
        note += f" These are the {MOST_CLASSES} of {len(counts):,} classes with the most mistakes."
    support = counts.sum(axis=1, keepdims=True)[chosen]
    part = counts[np.ix_(chosen, chosen)]
    shares = part / np.where(support == 0, 1, support)
    shown = [names[i] for i in chosen]
    return Heat("Confusion matrix", part, shares, shown, x_label="predicted", y_label="true"), note


def class_table(counts: Array, names: list[str]) -> list[list[Any]]:
    """Name, precision, recall, F1 and support of each class; a ratio without anything to divide by is None.

    >>> class_table(np.array([[3, 1], [0, 0]]), ["cat", "dog"])
    [['cat', 1.0, 0.75, 0.8571428571428571, 4], ['dog', 0.0, None, 0.0, 0]]
    """
    hit, taken, support = np.diagonal(counts), counts.sum(axis=0), counts.sum(axis=1)
    rows: list[list[Any]] = []
    for i, name in enumerate(names):
        above = (hit[i], hit[i], 2 * hit[i])
        below = (taken[i], support[i], taken[i] + support[i])
        ratios = [float(a / b) if b else None for a, b in zip(above, below, strict=True)]
        rows.append([name, *ratios, int(support[i])])
    return rows


def _mean(values: list[float | None]) -> float | None:
    """Over the classes that have a value."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _confidence(found: Classified) -> Section:
    # whether each prediction was right, by its confidence
    pair = (found.confidence, ~found.wrong)
    curve = reliability_curve(*pair, bins=BINS)
    error = ece(*pair, bins=BINS)
    mean, accuracy = float(found.confidence.mean()), float(np.mean(~found.wrong))
    way = "over-confident" if mean > accuracy else "under-confident"
    diagonal = Curve([0.0, 1.0], [0.0, 1.0], dashed=True, colour=GREY)
    reliability = Plot(
        f"Reliability diagram, ECE {error:.4f}; calibrated predictions lie on the dashed line",
        [Bars(curve.edges, curve.accuracy), diagonal],
        x_label="confidence",
        y_label="accuracy",
        size=SQUARE,
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
    )
    edges = np.linspace(0.0, 1.0, 2 * BINS + 1)
    place = np.minimum((found.confidence * 2 * BINS).astype(np.int64), 2 * BINS - 1)
    all_counts, wrong = (np.bincount(place[mask], minlength=2 * BINS) for mask in (place >= 0, found.wrong))
    spread = Plot(
        "Confidence of the predictions",
        [Bars(edges, all_counts, "all"), Bars(edges, wrong, "wrong", colour="#dc2626")],
        x_label="confidence",
        y_label="examples",
        size=SQUARE,
        x_range=(0.0, 1.0),
    )
    rows = [
        [f"{low:.1f} to {high:.1f}", int(n), float(c), float(a)]
        for low, high, n, c, a in zip(
            curve.edges[:-1], curve.edges[1:], curve.counts, curve.confidence, curve.accuracy, strict=True
        )
        if n
    ]
    html = (
        facts([("ECE", error), ("mean confidence", mean), ("accuracy", accuracy)])
        + paragraph(f"On the whole {way}: the mean confidence is {mean:.4f}, the accuracy {accuracy:.4f}.")
        + figures([reliability, spread])
        + details("The bins", table(["confidence", "examples", "mean confidence", "accuracy"], rows))
    )
    return Section("Confidence", html, {"reliability": [reliability, spread]})
