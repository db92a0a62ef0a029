"""The course of a run: losses, metrics and the learning rate over the epochs. Notes, section 3.4.3."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.errors import InputError
from ..core.typing import Array
from ..train.history import History, mode_of
from ..viz.axes import span
from ..viz.marks import shortened
from ..viz.plot import Curve
from .page import facts, figures, is_number, paragraph, table
from .pictures import Picture, Plot, Section

MOST_POINTS = 1000  # of a drawn curve
VALIDATION = "validation_"
EVENT, BEST = "#dc2626", "#059669"
DECADES = 1e3  # numbers of such different sizes are drawn on an axis of powers of ten
RATE_DECADES = 10.0  # and learning rates, which schedules multiply, from here on
MOST_EVENTS = 30  # in the table


def curves_section(history: History) -> Section:
    """Curves with events and the best epoch marked, and a table of the first, last and best epochs."""
    pictures = curve_pictures(history)
    best = best_epoch(history)
    parts = [_headline(history, best), figures(pictures), _epochs(history, best), _events(history)]
    if history.stopped:
        parts.insert(1, paragraph(f"The run stopped early: {history.stopped}."))
    return Section("Training", "\n".join(part for part in parts if part), {"curves": pictures} if pictures else {})


def best_epoch(history: History) -> dict[str, Any] | None:
    """The record with the least validation loss, or training loss if there is no other."""
    for name in (f"{VALIDATION}loss", "loss"):
        losses = [(r[name], i) for i, r in enumerate(history.records) if is_number(r.get(name))]
        if finite := [pair for pair in losses if math.isfinite(pair[0])]:
            return history.records[min(finite)[1]]
    return None


def curve_pictures(history: History) -> list[Picture]:
    """One picture for each thing measured, with the values on training and validation data together."""
    best = best_epoch(history)
    pictures: list[Picture] = []
    for base, names in groups(history).items():
        data = {name: series(history, name) for name in names}
        data = {name: xy for name, xy in data.items() if np.isfinite(xy[1]).any()}
        if not data:
            continue
        scale = scale_of(base, [y for _, y in data.values()])
        shapes: list[Curve] = []
        dots: list[Curve] = []
        for name, (x, y) in data.items():
            label = "" if len(data) == 1 else "validation" if name.startswith(VALIDATION) else "training"
            shapes.append(Curve(*thin(x, y), label))
            usable = np.isfinite(y)
            places = event_epochs(history)
            places = places[(places >= x[usable].min()) & (places <= x[usable].max())]
            if len(places) and name != "lr":
                dots.append(Curve(places, between(places, x[usable], y[usable], scale), dots=True, colour=EVENT))
            if best is not None and name in best and name.endswith("loss"):
                at = x == best.get("epoch", 0)
                if at.any() and name == (f"{VALIDATION}loss" if f"{VALIDATION}loss" in data else "loss"):
                    dots.append(Curve(x[at], y[at], f"best, epoch {int(x[at][0])}", dots=True, colour=BEST))
        first_event = next((i for i, dot in enumerate(dots) if dot.colour == EVENT), None)
        if first_event is not None:  # named once in the legend
            dot = dots[first_event]
            dots[first_event] = Curve(dot.x, dot.y, "event", dots=True, colour=EVENT)
        pictures.append(over_epochs(title_of(base), [*shapes, *dots], shapes, scale))
    return pictures


def over_epochs(title: str, shapes: list[Curve], curves: list[Curve], scale: str) -> Plot:
    """A plot over the epochs of some of the curves."""
    return Plot(title, shapes, x_label="epoch", x_range=epoch_range(curves), x_scale="whole", y_scale=scale)


def scale_of(base: str, values: list[Any]) -> str:
    """The axis for numbers of which some are finite: powers of ten if they are of very different sizes.

    >>> scale_of("loss", [np.array([1.0, 0.1])]), scale_of("lr", [np.array([1e-2, 1e-4])])
    ('plain', 'log')
    """
    everything = np.concatenate(values)
    finite = everything[np.isfinite(everything)]
    most = RATE_DECADES if base == "lr" else DECADES
    return "log" if finite.min() > 0 and finite.max() / most > finite.min() else "plain"


def between(places: Array, x: Array, y: Array, scale: str) -> Array:
    """Where a curve is at places between its points, as it is drawn."""
    if scale != "log":
        return np.interp(places, x, y)
    return np.asarray(10.0 ** np.interp(places, x, np.log10(y)))


def title_of(base: str) -> str:
    """What a picture of something measured is called.

    >>> title_of("lr"), title_of("validation_loss")
    ('Learning rate', 'Validation loss')
    """
    title = "learning rate" if base == "lr" else base.replace("_", " ")
    return title[:1].upper() + title[1:]


def groups(history: History) -> dict[str, list[str]]:
    """The names of what was measured, those of training and validation together; losses first, the rate last.

    >>> groups(History([{"epoch": 1, "lr": 0.1, "accuracy": 0.5, "loss": 1.0, "validation_loss": 1.1}]))
    {'loss': ['loss', 'validation_loss'], 'accuracy': ['accuracy'], 'lr': ['lr']}
    """
    found: dict[str, list[str]] = {}
    for name in history.names():
        found.setdefault(name.removeprefix(VALIDATION), []).append(name)
    order = sorted(found, key=lambda base: (not base.endswith("loss"), base in ("gradient_norm", "lr"), base == "lr"))
    return {base: sorted(found[base], key=lambda name: name.startswith(VALIDATION)) for base in order}


def series(history: History, name: str) -> tuple[Array, Array]:
    """The epochs that have a number of this name, and the numbers, which may be NaN."""
    pairs = [
        (float(record.get("epoch", i + 1)), float(record[name]))
        for i, record in enumerate(history.records)
        if is_number(record.get(name))
    ]
    x, y = np.array(pairs, np.float64).reshape(-1, 2).T
    return x, y


def event_epochs(history: History) -> Array:
    """Where the events stand on the axis of epochs; those with a step are placed between the epochs by it."""
    known = [(r["step"], r["epoch"]) for r in history.records if "step" in r and "epoch" in r]
    steps, epochs = np.array([(0, 0), *known], np.float64).T
    places = [
        float(np.interp(event["step"], steps, epochs)) if "step" in event and known else event.get("epoch", math.nan)
        for event in history.events
    ]
    found = np.array(places, np.float64)
    return found[np.isfinite(found)]


def epoch_range(curves: list[Curve]) -> tuple[float, float]:
    """From the first to the last epoch, and a little more, so that dots at the ends are whole."""
    epochs = np.concatenate([np.asarray(curve.x) for curve in curves])
    return span(epochs, 0.02) if np.ptp(epochs) else (float(epochs[0]) - 0.5, float(epochs[0]) + 0.5)


def thin(x: Array, y: Array) -> tuple[Array, Array]:
    """At most about `MOST_POINTS` of the points: of each stretch the lowest and the highest, so peaks stay.

    >>> x = np.arange(10_000.0)
    >>> kept = thin(x, np.where(x == 5_555, 9.0, 0.0))
    >>> len(kept[0]) <= 1000, float(kept[1].max())
    (True, 9.0)
    """
    if len(x) <= MOST_POINTS:
        return x, y
    keep = {0, len(x) - 1}
    for piece in np.array_split(np.arange(len(x)), MOST_POINTS // 4):
        values = y[piece]
        finite = np.isfinite(values)
        if not finite.all():
            keep.add(int(piece[np.argmin(finite)]))  # the gap stays visible
        if finite.any():
            keep.add(int(piece[np.argmin(np.where(finite, values, np.inf))]))
            keep.add(int(piece[np.argmax(np.where(finite, values, -np.inf))]))
    places = sorted(keep)
    return x[places], y[places]


def _headline(history: History, best: dict[str, Any] | None) -> str:
    pairs: list[tuple[str, object]] = [("epochs", len(history))]
    if history.records and "step" in history.records[-1]:
        pairs.append(("steps", history.records[-1]["step"]))
    seconds = [r["seconds"] for r in history.records if is_number(r.get("seconds"))]
    if seconds:
        pairs.append(("time", duration(sum(seconds))))
    if best is not None and "epoch" in best:
        pairs.append(("best epoch", best["epoch"]))
    for name in history.names():
        if not name.startswith(VALIDATION) or name.endswith("loss"):
            continue
        try:
            pairs.append((f"best {name.replace('_', ' ')}", history.best(name, mode_of(name))[name]))
        except (InputError, TypeError):  # never a number
            continue
    return facts(pairs)


def _epochs(history: History, best: dict[str, Any] | None) -> str:
    if not history.records:
        return paragraph("No epoch was finished.")
    chosen = [("first", history.records[0]), ("last", history.records[-1])]
    if best is not None:
        chosen.insert(1, ("best", best))
    names = [name for name in ("epoch", "step", *history.names(), "seconds") if any(name in r for _, r in chosen)]
    rows = [[name.replace("_", " "), *(_short(record.get(name)) for _, record in chosen)] for name in names]
    return table(["", *(title for title, _ in chosen)], rows, caption="Epochs")


def _events(history: History) -> str:
    if not history.events:
        return ""
    rows = [[e.get("epoch", "–"), e.get("step", "–"), e.get("text", "")] for e in history.events[:MOST_EVENTS]]
    more = len(history.events) - MOST_EVENTS
    note = paragraph(f"And {more:,} more events.") if more > 0 else ""
    return "<h3>Events</h3>" + table(["epoch", "step", "what happened"], rows) + note


def duration(seconds: float) -> str:
    """
    >>> duration(75), duration(7384)
    ('1 min 15 s', '2 h 3 min')
    """
    if not math.isfinite(seconds) or seconds < 60:
        return f"{seconds:.3g}\N{NO-BREAK SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _short(value: object) -> object:
    return value if value is None or is_number(value) else shortened(str(value), 60)
