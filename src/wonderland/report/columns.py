"""The sections of a diagnosis: the model beside baselines, which columns matter, and what is near to mistakes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.typing import Array
from ..viz.plot import Curve
from ..viz.ranking import Ranking
from .baselines import Measures
from .diagnosis import Diagnosis
from .findings import percent
from .importance import Dependence
from .mistakes import as_bytes
from .page import details, figure, figures, paragraph, table
from .pictures import SQUARE, Image, Picture, Plot, Section

MOST_BARS = 20
MOST_CLASSES = 4  # with a curve each
NAMES = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "log_loss": "log loss", "rmse": "RMSE",
    "mae": "mean absolute error", "r2": "R²",
}  # fmt: skip


def baselines_section(found: Diagnosis) -> Section | None:
    """A table: the model, and what it has to beat."""
    if not found.baselines:
        return None
    names = [name for name in found.measures if name in NAMES]
    rows = [["model", *_cells(found.measures, names)]]
    rows += [[baseline, *_cells(measures, names)] for baseline, measures in found.baselines.items()]
    html = table(["", *(NAMES[name] for name in names)], rows, caption=_caption(*found.rows))
    if found.interval is not None:
        low, high = found.interval
        html += paragraph(f"With 95 % confidence the accuracy lies between {percent(low)} and {percent(high)}.")
    return Section("Beside baselines", html)


def _caption(looked_at: int, there: int) -> str:
    return "On the test data" if looked_at == there else f"On {looked_at:,} of {there:,} rows of the test data"


def _cells(measures: Measures, names: Sequence[str]) -> list[object]:
    return [measures.get(name) for name in names]


def columns_section(found: Diagnosis, class_names: Sequence[str]) -> Section | None:
    """Importance of the columns, and how predictions depend on the first of them."""
    if not found.importance:
        return None
    top = found.importance[:MOST_BARS]
    classes = top[0].accuracy is not None
    said = "more log loss" if classes else "less R²"
    bars = Ranking(
        f"Permutation importance: {said} if a column is shuffled",
        [one.column for one in top],
        [one.loss for one in top],
        [one.error for one in top],
        x_label=said,
    )
    rows = [[one.column, one.loss, one.error, *([one.accuracy] if classes else [])] for one in found.importance]
    head = ["column", said, "standard error", *(["less accuracy"] if classes else [])]
    note = paragraph(
        f"How much worse the model is without what a column says ({found.importance_note}). Of columns that say the "
        "same, the model may use one, and the others seem unimportant."
    )
    parts = [note, figures([bars]), details(f"All {len(rows):,} columns", table(head, rows))]
    pictures: dict[str, list[Picture]] = {"importance": [bars]}
    if found.dependence:
        drawn = [dependence_picture(one, class_names) for one in found.dependence]
        parts += [
            "<h3>Partial dependence</h3>",
            paragraph("The mean prediction if a column had this value in every row and all else stayed."),
            figures(drawn),
        ]
        pictures["dependence"] = drawn
    return Section("Columns that matter", "\n".join(parts), pictures)


def dependence_picture(one: Dependence, class_names: Sequence[str]) -> Picture:
    """Curves over numbers, bars for categories; of several classes those that change most."""
    answers, names = _answers(one.answers, class_names)
    what = "mean probability" if class_names else "mean prediction"
    if one.values.dtype.kind == "f":
        curves = [Curve(one.values, column, name) for column, name in zip(answers.T, names, strict=True)]
        title = one.column if len(names) > 1 or not names[0] else f"{one.column}: {what} of {names[0]}"
        curves = [Curve(c.x, c.y, "" if len(curves) == 1 else c.label) for c in curves]
        return Plot(title, curves, one.column, what, SQUARE)
    best = int(np.ptp(answers, axis=0).argmax())
    order = np.argsort(-answers[:, best], kind="stable")
    of = f" of {names[best]}" if names[best] else ""
    return Ranking(
        f"{one.column}: {what}{of}", one.values[order].tolist(), answers[order, best], x_label=what + of, width=400
    )


def _answers(answers: Array, class_names: Sequence[str]) -> tuple[Array, list[str]]:
    answers = answers.reshape(len(answers), -1)
    if not class_names:
        several = answers.shape[1] > 1
        names = [f"output {k}" if several else "" for k in range(answers.shape[1])]
    else:
        names = list(class_names)
        if len(names) == 2:  # one is what the other leaves
            return answers[:, 1:], names[1:]
    chosen = np.sort(np.argsort(-np.ptp(answers, axis=0), kind="stable")[:MOST_CLASSES])
    return answers[:, chosen], [names[k] for k in chosen]


def nearest_section(found: Diagnosis, examples: Array | None, training: Array | None) -> Section | None:
    """The training examples nearest to the worst mistakes: images side by side, else rows of a table."""
    if not found.near:
        return None
    text = paragraph(
        "The training examples nearest to the worst mistakes, by the distance of their standardised features. "
        "Neighbours of the predicted class say that the label may be wrong, or that nothing in the features tells "
        "the two apart."
    )
    images = examples is not None and training is not None and examples.ndim == 4 and examples.shape[-1] in (1, 3)
    if not images:
        rows = [
            [one.example, one.true, one.predicted, _neighbours(one.rows, one.labels), one.distances[0]]
            for one in found.near
        ]
        head = ["example", "true", "predicted", "nearest training examples", "distance of the nearest"]
        return Section("Nearest to mistakes", text + table(head, rows))
    assert examples is not None
    assert training is not None
    cards, pictures = [], []
    for one in found.near:
        pixels = as_bytes(np.concatenate([examples[[one.example]], training[one.rows]]))
        words = [f"{one.true}, taken for {one.predicted}", *(f"training: {label}" for label in one.labels)]
        drawn = [Image(said, part) for said, part in zip(words, pixels, strict=True)]
        pictures += drawn
        cards.append(f'<div class="images">{"".join(figure(picture) for picture in drawn)}</div>')
    return Section("Nearest to mistakes", text + "".join(cards), {"nearest": [*pictures]})


def _neighbours(rows: Sequence[int], labels: Sequence[str]) -> str:
    return ", ".join(f"{label} (row {row})" for row, label in zip(rows, labels, strict=True))
