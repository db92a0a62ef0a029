"""Forecasts: a series in, the same series one step later out, at every step. Book, section 8.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import metrics, nn, series
from ...core.errors import InputError, ShapeError
from ...metrics.metric import Metric
from ..inputs import Options, kept, made_with, read, read_again, refuse_targets
from ..predictions import Predictions
from ..targets import number_loss, units_of
from .supervised import answers
from .task import Arrays, Known, Prepared, Task

SERIES: dict[str, Callable[..., np.ndarray]] = {
    "ar": series.make_ar,
    "lorenz": series.make_lorenz,
    "random_walk": series.make_random_walk,
    "seasonal": series.make_seasonal,
    "sines": series.make_sines,
}


class Forecasting(Task):
    """Windows of `context` steps; the last fifth of the time is for testing, and what is validated comes before it."""

    name = "forecasting"

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        options = dict(data)
        context, stride = options.pop("context", 64), options.pop("stride", 1)
        name, values, inputs = _series(options, run)
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
        about = {"context": context, "inputs": inputs, "units": units_of(values[:held])}
        return Prepared(name, cut[0], middle, cut[-1], (context, values.shape[1]), values.shape[1], about)

    def everything(self, data: Options, run: Options, sequences: bool) -> tuple[Arrays, int, list[str]]:
        options = dict(data)
        context, stride = options.pop("context", 64), options.pop("stride", 1)
        name, values, _ = _series(options, run)
        if len(values) <= context:
            raise InputError(f"{name}: {len(values)} steps are too few for a window of {context}.", "a longer series")
        return _windows(values, context, stride), 0, []

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        windows = ("context", "stride") if targets else ("steps",)
        mine = {name: value for name, value in settings.items() if name in windows}
        given = {name: value for name, value in data.items() if name in windows}
        rest = {name: value for name, value in data.items() if name not in windows}
        if rest.get("name") not in SERIES:
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

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, Any]:
        x, y = data.test
        return {"predictions": answers(model, x, ())[:, -1], "targets": y[:, -1]}

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        """The next steps of a series: `steps` of them, each from the ones before it."""
        options = dict(data)
        steps = options.pop("steps", shape[0])
        _, values, _ = _series(options, about)
        if values.shape[1] != shape[1]:
            raise ShapeError(f"a series of {values.shape[1]} channels for a model of {shape[1]}.", "the same columns")
        ahead = series.causal_rollout(model, values[None], steps)
        return Predictions.of(np.asarray(ahead)[0])


def _series(options: dict[str, Any], run: Known) -> tuple[str, np.ndarray, dict[str, object]]:
    """A series (time, channels), generated or the columns of a table in their order; and what a run keeps of it."""
    name = options.get("name")
    if name in SERIES:
        values = made_with(name, SERIES[name], {k: v for k, v in options.items() if k != "name"})
        inputs: dict[str, object] = {"schema": None}
    else:
        refuse_targets("every column is forecast", options)
        record = read(options) if run is None else read_again(options, run, targets=False)
        values, inputs = record.features, kept(record)
        name = record.name
    values = np.asarray(values, np.float32)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not np.isfinite(values).all():
        raise InputError(f"{name}: no series of finite numbers (shape {values.shape}).", "a table with a row per step")
    return str(name), values, inputs


def _windows(values: np.ndarray, context: int, stride: int) -> Arrays:
    both = series.sliding_windows(values, context + 1, stride)  # (n, context + 1, channels)
    return both[:, :-1], both[:, 1:]
