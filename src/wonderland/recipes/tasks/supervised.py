"""Supervised learning: classes or numbers from tables, images and arrays. Book, chapters 3 to 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import metrics, nn, train
from ...arrays import softmax
from ...data import DatasetRecord, load, train_test_split
from ...data.collation import collate
from ...errors import InputError, ShapeError
from .task import Arrays, Prepared, Task


class Supervised(Task):
    """Targets are classes, which get scores, or numbers, which are predicted."""

    name = "supervised"

    def prepare(self, data: Mapping[str, Any], validation: float, seed: int) -> Prepared:
        """The data by name or path.

        >>> data = Supervised().prepare({"name": "digits"}, validation=0.1, seed=0)
        >>> data.shape, data.outputs, len(data.train[0]), len(data.validation[0]), len(data.test[0])
        ((8, 8, 1), 10, 1293, 144, 360)
        """
        record = read(data)
        x, y, names = checked(record)
        rest, held, test = parts(record, y, names, validation, seed)
        if names and len(seen := np.unique(y[rest])) < 2:
            raise InputError(
                f"{record.name}: all examples to train on are of one class, {names[int(seen[0])]}.",
                "two classes or more",
            )
        outputs = len(names) or int(np.prod(y.shape[1:]))
        about = {"class_names": list(names)}
        return Prepared(record.name, *rows_of(x, y, rest, held, test), x.shape[1:], outputs, about)

    def around(self, model: nn.Module, x: Any) -> nn.Module:
        # the pixels of an image share their mean and scale; columns of a table have their own
        return nn.Sequential(nn.Standardize.of(x, axis=tuple(range(x.ndim)) if x.ndim == 4 else None), model)

    def loss(self, smoothing: float, about: Mapping[str, Any]) -> nn.Module:
        return nn.CrossEntropyLoss(label_smoothing=smoothing) if about["class_names"] else nn.MSELoss()

    def metrics(self, about: Mapping[str, Any]) -> list[Any]:
        return [metrics.Accuracy()] if about["class_names"] else [metrics.MeanAbsoluteError(), metrics.R2()]

    def measure(self, model: Any, part: Arrays, about: Mapping[str, Any]) -> dict[str, Any]:
        found = super().measure(model, part, about)
        if names := about["class_names"]:
            probabilities = answers(model, part[0], names)
            found["f1"] = metrics.F1(len(names), "macro")(probabilities, part[1])
            found["ece"] = metrics.CalibrationError()(probabilities, part[1])
        return found

    def outcome(self, model: Any, data: Prepared) -> dict[str, Any]:
        x, y = data.test
        names = data.about["class_names"]
        return {"predictions": answers(model, x, names), "targets": y, "class_names": tuple(names), "examples": x}

    def predict(self, model: Any, data: Mapping[str, Any], shape: tuple[int, ...], about: Mapping[str, Any]) -> Any:
        x = np.asarray(read(data).features)
        x = x[..., None] if x.ndim == len(shape) == 3 else x  # grey images
        check_shape(x, shape)
        return described(answers(model, x, about["class_names"]), about["class_names"])


def answers(model: Any, x: Any, names: Any) -> Any:
    """Probabilities of the classes, or predicted numbers, as an array."""
    outputs = train.predict(model, x.astype(np.float32) if x.dtype.kind == "f" else x)
    return np.asarray(softmax(outputs) if names else outputs)


def described(found: Any, names: Any) -> dict[str, Any]:
    """Classes with their probabilities, or numbers."""
    if not names:
        return {"predictions": found.tolist()}
    return {
        "predictions": [names[i] for i in found.argmax(-1)],
        "confidence": found.max(-1).tolist(),
        "probabilities": found.tolist(),
    }


def check_shape(x: Any, shape: tuple[int, ...]) -> None:
    """Refuse inputs that are not like those of the training."""
    if tuple(x.shape[1:]) != tuple(shape):
        raise ShapeError(
            f"the inputs have the shape {tuple(x.shape[1:])}, the model takes {tuple(shape)}.",
            "data like those that it was trained on",
        )
    if not len(x):
        raise InputError("there are no examples.", "data that are not empty")


def parts(record: DatasetRecord, y: Any, names: Any, validation: float, seed: int) -> tuple[Any, Any, Any]:
    """The rows to train on, to validate with (or None), and to test with: those of the record, or a split."""
    if {"train", "test"} <= record.parts.keys():
        rest, test = (record.parts[part] for part in ("train", "test"))
    else:
        rest, test = _split(np.arange(len(y)), y, names, 0.2, seed)
    held = None
    if validation:
        rest, held = _split(rest, y, names, validation, seed)
    return rest, held, test


def read(settings: Mapping[str, Any]) -> DatasetRecord:
    """The data by name or path, all in memory."""
    options = {name: value for name, value in settings.items() if name != "name"}
    name = settings.get("name")
    if not isinstance(name, str):
        raise InputError("the data have no name.", "--data with a name that `wonderland list` shows, or a path")
    try:
        found = load(name, **options)
    except TypeError as error:  # an option that the reader does not have
        raise InputError(f"data {name}: {error}.", "options of the reader, as in wl.data.load") from None
    if isinstance(found, DatasetRecord):
        return found
    if not len(found):
        raise InputError(f"{name}: there are no examples.", "data that are not empty")
    x, y = collate([found[i] for i in range(len(found))])  # a folder of images
    return DatasetRecord(np.asarray(x), np.asarray(y), name, target_names=tuple(getattr(found, "classes", ())))


def checked(record: DatasetRecord) -> tuple[Any, Any, tuple[str, ...]]:
    """Features, targets and the names of the classes; data that nothing can be learned from are refused."""
    if not len(record):
        raise InputError(f"{record.name}: there are no examples.", "data that are not empty")
    if record.targets is None:
        raise InputError(
            f"{record.name}: there is nothing to predict.", "--set data.target=COLUMN, or data with targets"
        )
    x, y = np.asarray(record.features), np.asarray(record.targets)
    if len(x) < 5:
        raise InputError(f"{record.name}: {len(x)} examples are too few to train and to test.", "five or more")
    for what, values in (("features", x), ("targets", y)):
        if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
            example, count = np.argwhere(~finite)[0][0], np.count_nonzero(~finite)
            raise InputError(
                f"{record.name}: {count} numbers of the {what} are NaN or infinite, the first in example {example}.",
                "data without them: fill or drop these examples",
            )
    x = x if x.dtype.kind != "f" else x.astype(np.float32)
    x = x[..., None] if x.ndim == 3 else x  # grey images
    x = x[:, None] if x.ndim == 1 else x
    if y.dtype.kind == "f":
        return x, y.astype(np.float32).reshape(len(y), -1), ()
    if y.dtype.kind not in "iub" or y.ndim != 1:
        raise InputError(f"{record.name}: targets of type {y.dtype} and shape {y.shape}.", "classes (n,) or numbers")
    y = y.astype(np.int64)
    if y.min() < 0:
        raise InputError(f"{record.name}: the class {y.min()}.", "classes from 0")
    names = record.target_names or tuple(str(i) for i in range(int(y.max()) + 1))
    if y.max() >= len(names):
        raise InputError(f"{record.name}: the class {y.max()} of {len(names)} classes.", f"classes below {len(names)}")
    if len(names) < 2:
        raise InputError(f"{record.name}: there is one class only, {names[0]}.", "two classes or more")
    return x, y, names


def rows_of(x: Any, y: Any, rest: Any, held: Any, test: Any) -> tuple[Arrays, Arrays | None, Arrays]:
    """The inputs and targets of the rows of each part."""
    return (x[rest], y[rest]), None if held is None else (x[held], y[held]), (x[test], y[test])


def _split(rows: Any, y: Any, names: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Two parts of the rows, with the same shares of the classes where there are enough of each."""
    labels = y[rows]
    balanced = bool(names) and np.bincount(labels)[np.unique(labels)].min() * min(share, 1 - share) >= 1
    first, second = train_test_split(rows, test_size=share, seed=seed, stratify=labels if balanced else None)
    return np.sort(np.asarray(first)), np.sort(np.asarray(second))
