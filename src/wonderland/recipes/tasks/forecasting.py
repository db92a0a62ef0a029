"""Forecasts: a series in, the same series one step later out, at every step. Book, section 8.3."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import metrics, nn, series
from ...core.errors import InputError, ShapeError
from ...metrics.metric import Metric
from ..inputs import Options, same_source
from ..predictions import Predictions
from ..series_inputs import OF_FILES, SERIES, continued, is_series, read_series
from ..targets import number_loss, units_of
from .supervised import answers
from .task import Arrays, Known, Prepared, Task

ORIGINS, AHEAD = 100, 64  # times from which forecasts are made to learn how far off they are, and the most steps


class Forecasting(Task):
    """Windows of `context` steps; the last fifth of the time is for testing, and what is validated comes before it."""

    name = "forecasting"

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        options = dict(data)
        context, stride = options.pop("context", 64), options.pop("stride", 1)
        found = read_series(options, run)
        name, values = found.name, found.values
        n = len(values)
        test = n - max(n // 5, context + 1)
        held = test - max(round(test * validation), context + 1) if validation else test
        if held < context + 1:
            raise InputError(
                f"{name}: {n} steps are too few for windows of {context} to train, validate and test.",
                "a longer series, or --set data.context=16",
            )
        cut = [_windows(values[a:b], context, stride) for a, b in ((0, held), (held, test), (test, n)) if b > a]
        middle = cut[1] if validation else None
        about = {"context": context, "inputs": found.inputs, "units": units_of(values[:held])}
        width = values.shape[1]
        return Prepared(name, cut[0], middle, cut[-1], (context, width), width, about, notes=found.notes)

    def everything(self, data: Options, run: Options, sequences: bool) -> tuple[Arrays, int, list[str]]:
        options = dict(data)
        context, stride = options.pop("context", 64), options.pop("stride", 1)
        found = read_series(options, run)
        if (n := len(found.values)) <= context:
            raise InputError(f"{found.name}: {n} steps are too few for a window of {context}.", "a longer series")
        return _windows(found.values, context, stride), 0, list(found.notes)

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        windows = ("context", "stride") if targets else ("steps",)
        mine = {name: value for name, value in settings.items() if name in windows}
        given = {name: value for name, value in data.items() if name in windows}
        rest = {name: value for name, value in data.items() if name not in windows}
        if not isinstance(rest.get("name"), str) or rest["name"] not in SERIES:
            if is_series(run):
                same = same_source(rest, settings)
                mine |= {name: settings[name] for name in OF_FILES if same and name in settings}
                return {**mine, **rest, **given}
            return {**mine, **super().like_those_of(settings, rest, run, targets=False), **given}
        same = rest["name"] == settings["name"]
        made = {name: value for name, value in settings.items() if name not in ("context", "stride")} if same else {}
        return {**mine, **made, **rest, **given}

    def around(self, model: nn.Module, x: np.ndarray, about: Options) -> nn.Module:
        first = nn.Standardize.of(x)
        return nn.Sequential(first, model, first.inverse())

    def loss(self, smoothing: float, about: Options) -> nn.Module:
        return number_loss(about)

    def metrics(self, about: Options) -> list[Metric]:
        return [metrics.MeanAbsoluteError()]

    def measure(self, model: nn.Module, part: Arrays, about: Options) -> dict[str, Any]:
        found = super().measure(model, part, about)
        found["naive_mae"] = float(np.mean(np.abs(part[1] - part[0])))  # of the forecast that nothing changes
        return found

    def held_out(self, model: nn.Module, data: Prepared) -> Arrays | None:
        """Forecasts of one step to as many as a window has, from some times of the validation data: (times, steps, c).

        They overlap, so intervals that are calibrated with them promise a little less than those of other tasks.
        """
        if data.validation is None:
            return None
        x, y = data.validation
        values = np.concatenate([x[0], y[:, -1]]) if len(x) == 1 or (x[1, :-1] == x[0, 1:]).all() else x[0]
        context, width = data.shape
        starts = np.arange(context, len(values))
        if not len(starts):
            return None  # with a stride the windows do not follow each other
        starts = starts[:: -(-len(starts) // ORIGINS)]
        past = np.stack([values[t - context : t] for t in starts])
        steps = min(context, AHEAD)
        ahead = np.asarray(series.causal_rollout(model, past, steps))
        after = np.concatenate([values, np.full((steps, width), np.nan, np.float32)])
        return ahead, np.stack([after[t : t + steps] for t in starts])

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, Any]:
        x, y = data.test
        return {"predictions": answers(model, x, ())[:, -1], "targets": y[:, -1]}

    def evidence(self, model: nn.Module, data: Prepared, outcome: Options) -> Options | None:
        (x, y), (seen, known) = data.test, data.train
        return {
            "model": lambda windows: answers(model, windows, ())[:, -1],
            "data": (x, y[:, -1]),
            "training": (seen, known[:, -1]),
            "predictions": outcome["predictions"],
            "form": "windows",
        }

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        """The next steps of a series: `steps` of them, each from the ones before it."""
        options = dict(data)
        steps = options.pop("steps", shape[0])
        found = read_series(options, about)
        values, notes = found.values, list(found.notes)
        if values.shape[1] != shape[1]:
            raise ShapeError(f"a series of {values.shape[1]} channels for a model of {shape[1]}.", "the same columns")
        ahead = np.asarray(series.causal_rollout(model, values[None], steps))[0]
        dates = None
        if found.dates is not None:
            dates, more = continued(found.dates, steps)
            notes += more
        return Predictions.of(ahead, ids=dates, id_name="date", outputs=found.channels, notes=notes)


def _windows(values: np.ndarray, context: int, stride: int) -> Arrays:
    both = series.sliding_windows(values, context + 1, stride)  # (n, context + 1, channels)
    return both[:, :-1], both[:, 1:]
