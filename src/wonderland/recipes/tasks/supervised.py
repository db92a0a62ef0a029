"""Supervised learning: classes or numbers from tables, images and arrays. Book, chapters 3 to 5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ... import metrics, nn, train
from ...arrays import asarray, softmax
from ...core.arguments import shown
from ...core.errors import InputError, NonFiniteError
from ...data import DatasetRecord, train_test_split
from ...metrics.metric import Metric
from ..inputs import Options, check_alike, check_finite, check_type, kept, read, read_again
from ..media import leaks
from ..predictions import Predictions
from ..table_inputs import TableData, is_table, options_like, read_parts, read_whole, row_names, schema_of
from ..table_models import look_at
from ..targets import number_loss, restored, units_of
from .task import Arrays, Known, Prepared, Task, Whole

SHOWN = 20_000  # examples of the test part that a report looks at


class Supervised(Task):
    """Targets are classes, which get scores, or numbers, which are predicted."""

    name = "supervised"

    def has_classes(self, about: Options) -> bool:
        return bool(about["class_names"])

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        """The data by name or path.

        >>> data = Supervised().prepare({"name": "digits"}, validation=0.1, seed=0)
        >>> data.shape, data.outputs, len(data.train[0]), len(data.validation[0]), len(data.test[0])
        ((8, 8, 1), 10, 1293, 144, 360)
        """
        if is_table(data.get("name"), run):
            return _of_table(read_parts(data, validation, seed, run))
        record = read(data) if run is None else read_again(data, run, targets=True)
        x, y, names = checked(record, None if run is None else run["class_names"], sequences)
        if run is not None:
            check_type(record, run)
        rest, held, test = parts(record, y, names, validation, seed)
        if run is None and names and len(seen := np.unique(y[rest])) < 2:
            raise InputError(
                f"{record.name}: all examples to train on are of one class, {names[int(seen[0])]}.",
                "two classes or more",
            )
        outputs = len(names) or int(np.prod(y.shape[1:]))
        about: dict[str, object] = {"class_names": list(names), "inputs": kept(record)}
        if not names:
            about["units"] = units_of(y[rest])
        cut = rows_of(x, y, rest, held, test)
        notes = record.notes if not record.ids else (*record.notes, *leaks(x, record.ids, rest, test))
        ids = tuple(record.ids[i] for i in test) if record.ids else ()
        return Prepared(record.name, *cut, x.shape[1:], outputs, about, notes=notes, test_ids=ids)

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        if is_table(None, run):
            return options_like(settings, data, run)
        return super().like_those_of(settings, data, run, targets)

    def read_all(self, data: Options, run: Options, *, targets: bool, sequences: bool = False) -> Whole:
        """All examples, as inputs and targets of a run."""
        if is_table(None, run):
            return read_whole(data, run, targets)
        record = read_again(data, run, targets)
        check_type(record, run)
        if not targets:
            return Whole(as_inputs(record, sequences), ids=record.ids, notes=record.notes)
        x, y, _ = checked(record, run["class_names"], sequences, least=1)
        return Whole(x, y, ids=record.ids, notes=record.notes)

    def around(self, model: nn.Module, x: np.ndarray, about: Options) -> nn.Module:
        if is_table(None, about):  # whose schema has scaled the numbers, and left indicators as they are
            look_at(model, x)
            return nn.Sequential(*restored(model, about))
        # the pixels of an image share their mean and scale; columns of a table have their own
        first = nn.Standardize.of(x, axis=tuple(range(x.ndim)) if x.ndim == 4 else None)
        look_at(model, x, first)
        return nn.Sequential(first, *restored(model, about))

    def loss(self, smoothing: float, about: Options) -> nn.Module:
        return nn.CrossEntropyLoss(label_smoothing=smoothing) if about["class_names"] else number_loss(about)

    def metrics(self, about: Options) -> list[Metric]:
        return [metrics.Accuracy()] if about["class_names"] else [metrics.MeanAbsoluteError(), metrics.R2()]

    def measure(self, model: nn.Module, part: Arrays, about: Options) -> dict[str, Any]:
        outputs = train.predict(model, part[0], batch_size=self.batch)  # once for the loss and all metrics
        found = {"loss": float(self.loss(0.0, about)(outputs, asarray(part[1])))}
        if math.isnan(found["loss"]):
            raise NonFiniteError(
                "measure: the loss is nan.", "data and parameters without NaN; a smaller learning rate"
            )
        for name, metric in train.evaluation.named_metrics(self.metrics(about)).items():
            metric.update(outputs, part[1])
            found[name] = train.evaluation.plain(metric.compute())
        if names := about["class_names"]:
            probabilities = np.asarray(softmax(outputs))
            found["f1"] = metrics.F1(len(names), "macro")(probabilities, part[1])
            found["ece"] = metrics.CalibrationError()(probabilities, part[1])
        return found

    def everything(self, data: Options, run: Options, sequences: bool) -> tuple[Arrays, int, list[str]]:
        found = self.read_all(data, run, targets=True, sequences=sequences)
        assert found.y is not None
        return (found.x, found.y), found.left_out, list(found.notes)

    def answers(self, model: nn.Module, part: Arrays, about: Options) -> np.ndarray | None:
        return answers(model, part[0], about["class_names"])

    def shown(self, data: Prepared) -> Prepared:
        n = len(data.test[0])
        if n <= SHOWN:
            return data
        rows = np.sort(np.random.default_rng(0).choice(n, SHOWN, replace=False))
        ids = tuple(data.test_ids[i] for i in rows) if data.test_ids else ()
        table = None if data.test_table is None else data.test_table.select(rows)
        x, y = data.test
        return replace(data, test=(x[rows], y[rows]), test_ids=ids, test_table=table)

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, Any]:
        x, y = data.test
        names = data.about["class_names"]
        found = {"predictions": answers(model, x, names), "targets": y, "class_names": tuple(names), "examples": x}
        return {**found, "example_names": data.test_ids}

    def evidence(self, model: nn.Module, data: Prepared, outcome: Options) -> Options | None:
        told: dict[str, object] = {"model": model, "data": data.test, "training": data.train}
        told |= {name: outcome[name] for name in ("predictions", "class_names")}
        if is_table(None, data.about):
            schema = schema_of(data.about)
            told |= {"feature_names": schema.feature_names, "groups": schema.groups, "table": data.test_table}
        elif len(names := (data.about["inputs"].get("schema") or {}).get("features", ())) == data.shape[-1]:
            told["feature_names"] = list(names)
        return told

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        found = self.read_all(data, about, targets=False, sequences=len(shape) == 2)
        check_alike(found.x, shape)
        outputs, names = answers(model, found.x, about["class_names"]), about["class_names"]
        called, ids = "file", list(found.ids) or None
        if found.table is not None and is_table(None, about):
            called, ids = row_names(schema_of(about), found.table)
        return Predictions.of(outputs, names, ids=ids, id_name=called, notes=found.notes)


def _of_table(found: TableData) -> Prepared:
    target = found.schema.target
    assert target is not None
    about: dict[str, object] = {"class_names": list(target.classes or ()), "inputs": found.inputs}
    if target.classes is None:
        about["units"] = units_of(found.train[1])
    parts = (found.train, found.validation, found.test)
    shape, outputs = found.train[0].shape[1:], len(target.classes or (1,))
    notes, table = tuple(found.notes), found.test_table
    return Prepared(found.name, *parts, shape, outputs, about, plan=found.plan, notes=notes, test_table=table)


def answers(model: nn.Module, x: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Probabilities of the classes, or predicted numbers, as an array."""
    outputs = train.predict(model, x)
    return np.asarray(softmax(outputs) if names else outputs)


def parts(
    record: DatasetRecord, y: np.ndarray, names: Sequence[str], validation: float, seed: int
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """The rows to train on, to validate with (or None), and to test with: those of the record, or a split."""
    held = None
    if {"train", "test"} <= record.parts.keys():
        rest, test = (record.parts[part] for part in ("train", "test"))
        held = record.parts.get("validation")
    else:
        rest, test = _split(np.arange(len(y)), y, names, 0.2, seed)
    if validation and held is None:
        rest, held = _split(rest, y, names, validation, seed)
    return rest, held, test


def checked(
    record: DatasetRecord, known: Sequence[str] | None = None, sequences: bool = False, least: int = 5
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Features, targets and the names of the classes; data that nothing can be learned from are refused.

    With the classes that are `known` to a run (none for numbers), targets are of these or refused.
    """
    if not len(record):
        raise InputError(f"{record.name}: there are no examples.", "data that are not empty")
    if record.targets is None:
        raise InputError(
            f"{record.name}: there is nothing to predict.", "--set data.target=COLUMN, or data.targets=FILE of an array"
        )
    x, y = as_inputs(record, sequences), np.asarray(record.targets)
    if len(x) < least:
        raise InputError(f"{record.name}: {len(x)} examples are too few to train and to test.", "five or more")
    for what, values in (("features", x), ("targets", y)):
        check_finite(record.name, what, values)
    if y.dtype.kind not in "iubf" or (y.dtype.kind != "f" and y.ndim != 1):
        raise InputError(f"{record.name}: targets of type {y.dtype} and shape {y.shape}.", "classes (n,) or numbers")
    if (y.dtype.kind == "f" and not known) or known == []:
        return x, y.astype(np.float32).reshape(len(y), -1), ()
    if y.dtype.kind == "f":
        raise InputError(f"{record.name}: the targets are numbers, the run's are classes.", f"one of {shown(known)}")
    return x, *_classes(record, y.astype(np.int64), known)


def _classes(record: DatasetRecord, y: np.ndarray, known: Sequence[str] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """The numbers of the classes among those that are known, or else among the record's; and their names."""
    if y.min() < 0:
        raise InputError(f"{record.name}: the class {y.min()}.", "classes from 0")
    names = record.target_names or tuple(known or (str(i) for i in range(int(y.max()) + 1)))
    if y.max() >= len(names):
        raise InputError(f"{record.name}: the class {y.max()} of {len(names)} classes.", f"classes below {len(names)}")
    if known is not None:
        present = [names[i] for i in np.unique(y)]
        if strange := [name for name in present if name not in known]:
            raise InputError(f"{record.name}: the class {strange[0]!r} is new to the run.", f"one of {shown(known)}")
        place = {name: i for i, name in enumerate(known)}
        return np.array([place.get(name, -1) for name in names], np.int64)[y], tuple(known)
    if len(names) < 2:
        raise InputError(f"{record.name}: there is one class only, {names[0]}.", "two classes or more")
    return y, names


def as_inputs(record: DatasetRecord, sequences: bool) -> np.ndarray:
    """The features as a model takes them: bytes as they are, all else as float32; grey images with their channel."""
    x = np.asarray(record.features)
    if x.dtype.kind not in "iubf":
        raise InputError(f"{record.name}: features of type {x.dtype}.", "numbers")
    x = x if x.dtype == np.uint8 else x.astype(np.float32)
    return x[..., None] if x.ndim == 3 and not sequences else x[:, None] if x.ndim == 1 else x


def rows_of(
    x: np.ndarray, y: np.ndarray, rest: np.ndarray, held: np.ndarray | None, test: np.ndarray
) -> tuple[Arrays, Arrays | None, Arrays]:
    """The inputs and targets of the rows of each part."""
    return (x[rest], y[rest]), None if held is None else (x[held], y[held]), (x[test], y[test])


def _split(
    rows: np.ndarray, y: np.ndarray, names: Sequence[str], share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two parts of the rows, with the same shares of the classes where there are enough of each."""
    labels = y[rows]
    balanced = bool(names) and np.bincount(labels)[np.unique(labels)].min() * min(share, 1 - share) >= 1
    first, second = train_test_split(rows, test_size=share, seed=seed, stratify=labels if balanced else None)
    return np.sort(np.asarray(first)), np.sort(np.asarray(second))
