"""What a dataset is when it is read: arrays, the names of columns and classes, a description, and a fixed split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..core.errors import InputError, ShapeError
from ..core.typing import ArrayLike
from .dataset import Dataset
from .formats.schema import TableSchema


@dataclass(frozen=True, eq=False)
class DatasetRecord(Dataset):
    """Features (n, ...), targets (n, ...) or None, and what is known about them. It is a dataset of pairs.

    >>> import wonderland as wl
    >>> iris = wl.data.iris()
    >>> iris
    DatasetRecord('iris', features (150, 4) float32, targets (150,) int64, 3 classes, train 120, test 30)
    >>> iris.target_names
    ('setosa', 'versicolor', 'virginica')
    >>> x, y = iris.arrays
    >>> len(iris.train), len(iris.test)
    (120, 30)

    `parts` maps names ("train", "test") to indices; `train` and `test` are records of those examples. `ids` name
    the examples, as files do; `form` is how files became arrays of one shape, and `notes` what was decided.
    """

    features: np.ndarray
    targets: np.ndarray | None = None
    name: str = "data"
    feature_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    description: str = ""
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    schema: TableSchema | None = None  # of a table that was read from a file
    ids: tuple[str, ...] = ()
    form: Mapping[str, object] | None = None  # plain data: see `ImageForm` and `SoundForm`
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.features)
        if self.targets is not None and len(self.targets) != n:
            raise ShapeError(
                f"{self.name}: {n} examples and {len(self.targets)} targets.", "one target for each example"
            )
        if self.ids and len(self.ids) != n:
            raise ShapeError(f"{self.name}: {n} examples and {len(self.ids)} names of them.", "one for each example")
        if self.feature_names and len(self.feature_names) != self.features.shape[-1]:
            raise ShapeError(
                f"{self.name}: {len(self.feature_names)} feature names for features of shape {self.features.shape}.",
                "one name for each column",
            )

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """(features, targets)."""
        if self.targets is None:
            raise InputError(f"{self.name}: this data has no targets.", "record.features")
        return self.features, self.targets

    @property
    def num_classes(self) -> int:
        """How many classes the targets have; 0 when they are not classes."""
        return len(self.target_names)

    @property
    def train(self) -> DatasetRecord:
        """The examples to learn from."""
        return self.part("train")

    @property
    def test(self) -> DatasetRecord:
        """The examples that are held out."""
        return self.part("test")

    def part(self, name: str) -> DatasetRecord:
        """The examples of one named part."""
        if name not in self.parts:
            found = ", ".join(self.parts) or "none"
            raise InputError(f"{self.name}: no part {name!r} in this data; parts: {found}.", "record.select(indices)")
        return replace(self.select(self.parts[name]), name=f"{self.name}.{name}")

    def select(self, indices: ArrayLike) -> DatasetRecord:
        """The record of the examples with these indices."""
        chosen = np.asarray(indices, np.int64)
        targets = None if self.targets is None else self.targets[chosen]
        ids = tuple(self.ids[i] for i in chosen.tolist()) if self.ids else ()
        return replace(self, features=self.features[chosen], targets=targets, parts={}, ids=ids)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, i: int) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        return self.__getitems__(self._place(i))

    def __getitems__(self, indices: int | Sequence[int] | np.ndarray) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        chosen = np.asarray(indices)
        features = self.features[chosen]
        return features if self.targets is None else (features, self.targets[chosen])

    def __repr__(self) -> str:
        parts = [repr(self.name), f"features {self.features.shape} {self.features.dtype}"]
        if self.targets is not None:
            parts.append(f"targets {self.targets.shape} {self.targets.dtype}")
        if self.target_names:
            parts.append(f"{len(self.target_names)} classes")
        parts.extend(f"{name} {len(indices)}" for name, indices in self.parts.items())
        return f"DatasetRecord({', '.join(parts)})"
