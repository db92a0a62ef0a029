"""Data for a run: read, checked, split, and described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import DatasetRecord, load, train_test_split
from ..data.collation import collate
from ..errors import InputError

Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Prepared:
    """The parts of the data, and what kind of problem they pose."""

    name: str
    train: Arrays
    validation: Arrays | None
    test: Arrays
    class_names: tuple[str, ...]  # empty for a regression

    @property
    def classifies(self) -> bool:
        return bool(self.class_names)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input."""
        return self.train[0].shape[1:]

    @property
    def outputs(self) -> int:
        """How many numbers a model gives for an input: a score per class, or the numbers to predict."""
        return len(self.class_names) or int(np.prod(self.train[1].shape[1:]))

    @property
    def is_image(self) -> bool:
        return len(self.shape) == 3


def prepare(settings: Mapping[str, Any], validation: float, seed: int) -> Prepared:
    """Read the data of the settings `{"name": ..., option: value, ...}` and split them.

    >>> data = prepare({"name": "digits"}, validation=0.1, seed=0)
    >>> data.shape, data.outputs, len(data.train[0]), len(data.validation[0]), len(data.test[0])
    ((8, 8, 1), 10, 1293, 144, 360)
    """
    record = read(settings)
    x, y, names = checked(record)
    if {"train", "test"} <= record.parts.keys():
        rest, test = (record.parts[part] for part in ("train", "test"))
    else:
        rest, test = _split(np.arange(len(x)), y, names, 0.2, seed)
    held = None
    if validation:
        rest, held = _split(rest, y, names, validation, seed)
    if names:
        seen = np.unique(y[rest])
        if len(seen) < 2:
            raise InputError(
                f"{record.name}: all examples to train on are of one class, {names[int(seen[0])]}.",
                "two classes or more",
            )
    held_out = None if held is None else (x[held], y[held])
    return Prepared(record.name, (x[rest], y[rest]), held_out, (x[test], y[test]), names)


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


def _split(rows: Any, y: Any, names: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Two parts of the rows, with the same shares of the classes where there are enough of each."""
    labels = y[rows]
    balanced = bool(names) and np.bincount(labels)[np.unique(labels)].min() * min(share, 1 - share) >= 1
    first, second = train_test_split(rows, test_size=share, seed=seed, stratify=labels if balanced else None)
    return np.sort(np.asarray(first)), np.sort(np.asarray(second))
