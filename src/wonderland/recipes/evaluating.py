"""A trained run, as its folder has it or as training gives it: measured on data, and asked."""

from __future__ import annotations

import html
import os

import numpy as np

from .. import nn, train
from ..core.arguments import shown
from ..core.errors import FileError, InputError
from ..data.tables.schema import Schema
from ..primitives.creation import at_most
from ..storage.bounds import LEAST_ARRAY
from ..storage.safetensors import load
from .catalogue import build
from .inputs import Options, own, same_source
from .intervals import with_intervals, with_sets
from .kept import described, model_file, read_findings, read_history, read_results, read_settings, recipe_of
from .predictions import Predictions, Row
from .table_inputs import is_table, schema_of
from .tasks import TASKS, Task


class Run:
    """A trained model, what it was made for, and what its run left in a folder.

    >>> import tempfile
    >>> from wonderland import recipes
    >>> settings = recipes.Settings.of(model="linear", data="iris", changes=["epochs=60"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = recipes.run(settings, folder, progress=False, png=False)
    ...     run = open_run(folder)
    ...     run.predict([[5.1, 3.5, 1.4, 0.2]]).predictions, run.evaluate()["examples"], len(run.history)
    (['setosa'], 30, 60)

    `recipes.run` returns one, and `wl.runs.open` opens one. `model` is the network, `task` says how it is used, `shape`
    is that of one input, `about` what is known of the data, as the names of classes, and `data` the data themselves.
    """

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        shape: tuple[int, ...],
        about: Options,
        data: Options,
        path: str,
        *,
        history: train.History | None = None,
        results: Options | None = None,
        files: tuple[str, ...] = (),
    ) -> None:
        self.model, self.task, self.shape, self.about, self.data = model, task, shape, about, data
        self.path, self.files = path, files  # of the weights; that were written
        self._history, self._results = history, results

    # --- what is in the folder

    @property
    def folder(self) -> str:
        """Where the run left its files."""
        return os.path.dirname(self.path)

    @property
    def settings(self) -> dict[str, Options]:
        """The sections `model`, `data` and `train`, as they were asked for and completed."""
        return read_settings(self._file("settings.json"))

    @property
    def results(self) -> Row:
        """Loss and metrics on the test data, when the run ended."""
        if self._results is None:
            self._results = read_results(self._file("results.json"))
        return dict(self._results)

    @property
    def findings(self) -> list[dict[str, str]]:
        """What should be known of the model before it is used, the worst first: severity, text, remedy and kind."""
        return read_findings(self._file("results.json"))

    @property
    def history(self) -> train.History:
        """A record for every epoch."""
        if self._history is None:
            self._history = read_history(self._file("history.jsonl"))
        return self._history

    @property
    def schema(self) -> Schema | None:
        """What the columns of the table are and how they become numbers; None if the data were no table."""
        with described(self.path):
            return schema_of(self.about) if is_table(None, self.about) else None

    def _file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    # --- measured and asked

    def evaluate(self, source: object = None, part: str | None = None, **options: object) -> Row:
        """Loss and metrics on a part of the run's own data ("test", if nothing is said), or on all of other data.

        `source` is anything that `predict` takes, with targets; `options` are those of its reader. The dict has the
        number of `examples`, how many were `left_out` because their target is missing, and `notes` about what was odd.
        """
        sequences = len(self.shape) == 2
        seed, share = self._split()
        notes: list[str] = []
        with described(self.path):
            if source is None:
                if options:
                    raise InputError(f"evaluate: {next(iter(options))} is an option of other data.", "evaluate(source)")
                data = self._read_alike(None, True)
                prepared = self.task.prepare(data, share, seed, run=self.about, sequences=sequences)
                chosen, left_out = prepared.part(part or "test"), 0
            else:
                if part is not None:
                    raise InputError(
                        f"evaluate: part={part!r} of other data, all of which are measured.", "evaluate(part=...) alone"
                    )
                data = self._read_alike({**options, "name": _path(source)}, True)
                chosen, left_out, notes = self.task.everything(data, self.about, sequences)
                if same_source(data, self.data):
                    notes.append("most of these trained the run; without data its test part is measured")
            self.task.check_alike(chosen, self.shape)
            found = self.task.measure(self.model, chosen, self.about)
            found |= baselines(chosen, self.about)
        return {**found, "examples": len(chosen[0]), "left_out": left_out, "notes": notes}

    def predict(
        self,
        source: object,
        *,
        interval: float | None = None,
        sets: float | None = None,
        threshold: float | None = None,
        **options: object,
    ) -> Predictions:
        """What the model says about inputs: classes with their probabilities, numbers, or texts.

        `source` is a path (a table, arrays, an image, a sound, a folder), "-" for standard input, a DataFrame, an Arrow
        table, a dict of columns, one row or a list of rows as dicts, an array, a tensor or a record of data. Columns
        are taken by their names, and a target is not looked at. `options` are those of the reader, such as `delimiter`,
        or the `steps` of a forecast.

        With `interval=0.9` every number comes with the ends of an interval that has the truth nine times of ten, with
        `sets=0.9` every class with a set of classes that has; both are calibrated on validation data of the run, and
        hold on average over new data like those. `threshold` is the probability from which on the second of two classes
        is predicted.
        """
        if interval is not None and sets is not None:
            raise InputError("predict: interval and sets.", "interval for numbers, or sets for classes")
        with described(self.path):
            data = self._read_alike({**options, "name": _path(source)}, False)
            found = self.task.predict(self.model, data, self.shape, self.about)
            if threshold is not None:
                found = found.decided(threshold)
            if interval is not None:
                found = with_intervals(found, interval, self.about)
            if sets is not None:
                found = with_sets(found, sets, self.about)
        return found

    def _split(self) -> tuple[int, float]:
        """The seed and the share of validation, by which the run's data were cut into parts."""
        path = self._file("settings.json")
        if not os.path.exists(path):
            return 0, 0.1
        how = read_settings(path).get("train", {})
        seed, share = how.get("seed"), how.get("validation")
        if type(seed) is not int or type(share) is not float or not 0 <= share < 1:
            raise FileError(f"{path} has seed={shown(seed)}, validation={shown(share)}.", "the file of a run")
        return seed, share

    def _read_alike(self, data: Options | None, targets: bool) -> Options:
        """The run's own data, or others, with the options that make them be read as those of the training."""
        if self.task.needs not in self.about and data is not None:
            raise FileError(
                f"{self.path} is of an earlier version, which did not keep what its inputs were; "
                f"other data may have another order of columns or other categories.",
                "`wonderland train` with the same settings and --fresh",
            )
        return self.task.like_those_of(self.data, own(self.data) if data is None else data, self.about, targets)

    # --- shown

    def __repr__(self) -> str:
        return f"Run({self.folder!r}, {', '.join(self._facts())})"

    def _repr_html_(self) -> str:
        rows = (fact.partition(" ") for fact in self._facts())
        body = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, _, b in rows)
        return f"<table><caption>{html.escape(self.folder)}</caption>{body}</table>"

    def _facts(self) -> list[str]:
        recipe = recipe_of(self.path) if os.path.exists(self.path) else {"model": {"name": type(self.model).__name__}}
        known = self._results is not None or os.path.exists(self._file("results.json"))
        results = self.results if known else {}
        measured = [f"{name} {value:.4g}" for name, value in results.items() if type(value) is float]
        name = self.data.get("name")
        return [
            f"model {recipe['model']['name']}",
            f"data {name if isinstance(name, str) else type(name).__name__}",
            *measured,
        ]


def _path(source: object) -> object:
    return os.fspath(source) if isinstance(source, os.PathLike) else source


def baselines(part: tuple[np.ndarray, np.ndarray], about: Options) -> dict[str, float]:
    """What those reach who know no inputs: the share of the commonest class, or the error of the training's mean."""
    if about.get("class_names"):
        return {"baseline_accuracy": float(np.bincount(part[1]).max() / len(part[1]))}
    if "units" in about and part[1].ndim == 2:
        return {"baseline_mae": float(np.abs(part[1] - np.asarray(about["units"]["center"])).mean())}
    return {}


def open_run(path: str | os.PathLike[str]) -> Run:
    """The run of a folder, or of its `model.safetensors`. Nothing in the file is executed."""
    path = model_file(path)
    recipe = recipe_of(path)
    task, shape, about = TASKS[recipe["task"]], tuple(recipe["shape"]), recipe["about"]
    state = load(path)
    # what is drawn at first is of the size of what is there; some of it is made in several steps
    most = 16 * sum(np.asarray(value).nbytes for value in state.values()) + LEAST_ARRAY
    with described(path), at_most(most, 16 * len(state) + 1000):
        built = build(recipe["model"], shape, recipe["outputs"], {**about, "task": task.name})
        model = task.around(built, np.zeros((2, *shape), np.float32), about)
    model.load_state_dict(state)
    return Run(model.eval(), task, shape, about, recipe["data"], path)


def evaluate(path: str | os.PathLike[str], data: Options | None = None, part: str | None = None) -> Row:
    """`Run.evaluate` of the run of a folder, with data as settings have them: a `name` and options."""
    options = dict(data or {})
    return open_run(path).evaluate(options.pop("name", None), part, **options)


def predict(path: str | os.PathLike[str], data: Options, **settings: float | None) -> Predictions:
    """`Run.predict` of the run of a folder, with data as settings have them: a `name` and options."""
    options = dict(data)
    return open_run(path).predict(options.pop("name", None), **settings, **options)
