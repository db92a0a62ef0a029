"""Findings from the course of a training: it stopped too early, went on too long, or never began to learn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.typing import Array
from ..train.history import History
from .evidence import Evidence
from .findings import Finding
from .outcomes import Classified

ENOUGH = 5  # epochs, below which curves say little
FALLEN = 0.02  # of the first loss, that a training should take off it
LATE = 0.2  # the last fifth of the epochs
STILL_FALLING = 0.05  # of the loss in that fifth: as much again would come of more epochs
EARLY = 0.5  # a best epoch in the first half
RISEN = 1.1  # times the best validation loss, at the end


def course_of_training(told: Evidence) -> Iterator[Finding]:
    """All that the curves say."""
    if told.history is None or not len(told.history):
        return
    losses, held = (_series(told.history, name) for name in ("loss", "validation_loss"))
    if len(losses) and not np.isfinite(losses).all():
        text = "The training loss is not finite."
        yield Finding("serious", text, "a smaller learning rate, clip_norm=1, and data without outliers.", "not finite")
        return
    risen = _overfitted(told.history, held)
    yield from risen
    if len(losses) >= ENOUGH and not risen:
        if _flat(losses) and not _beats_baseline(told):
            yield Finding(
                "serious",
                f"The training loss does not fall: {losses[0]:.4g} in the first epoch, {losses[-1]:.4g} in the last.",
                "another learning rate (ten times larger, ten times smaller; wl.train.find_lr), a larger model, and a "
                "look at whether inputs and targets belong together.",
                "underfitting",
            )
        else:
            yield from _unfinished(losses, held)


def _series(history: History, name: str) -> Array:
    values = [r[name] for r in history.records if isinstance(r.get(name), (int, float))]
    return np.array(values, np.float64)


def _flat(losses: Array) -> bool:
    """Whether a loss did not fall; one that begins at zero or below has no share to fall by."""
    return bool(losses[0] > 0 and losses[-1] > (1 - FALLEN) * losses[0])


def _beats_baseline(told: Evidence) -> bool:
    """Whether the model is good all the same: a large first epoch may have taught all that there is."""
    name, baseline = ("accuracy", "majority class") if isinstance(told.outcome, Classified) else ("r2", "mean")
    mine, theirs = told.measures[name], told.baselines.get(baseline, {}).get(name)
    return mine is not None and theirs is not None and mine > theirs + 0.05


def _overfitted(history: History, held: Array) -> list[Finding]:
    if len(held) < ENOUGH or history.stopped or not np.isfinite(held).all():
        return []  # early stopping has put the best weights back
    best = int(held.argmin())
    if best + 1 > EARLY * len(held) or held[best] <= 0 or held[-1] < RISEN * held[best]:
        return []
    return [
        Finding(
            "warning",
            f"It went on for too long: the validation loss was least, {held[best]:.4g}, after epoch {best + 1} of "
            f"{len(held)}, and is {held[-1]:.4g} at the end.",
            "stop at the best epoch (--set patience=5), more weight_decay or dropout, a smaller model, or more data.",
            "overfitting",
        )
    ]


def _unfinished(losses: Array, held: Array) -> Iterator[Finding]:
    watched = held if len(held) == len(losses) else losses
    late = max(1, round(LATE * len(watched)))
    before, after = float(watched[-late - 1]), float(watched[-1])
    if after > 0 and watched.argmin() >= len(watched) - max(1, late // 2) and before - after >= STILL_FALLING * before:
        yield Finding(
            "note",
            f"It was still learning: in the last {late} of {len(watched)} epochs the loss fell from {before:.4g} to "
            f"{after:.4g}.",
            f"more epochs (--set epochs={2 * len(watched)}).",
            "underfitting",
        )
