"""Batches from whatever a user has: arrays, datasets, loaders, lists of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..core import trees
from ..core.arguments import as_int
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Array
from ..data.dataset import Examples, TensorDataset
from ..data.loader import DataLoader, rows_of, share_of
from ..data.splits import train_test_split
from ..data.tables.matrix import as_matrix, has_columns, is_list_of_numbers, split_off
from ..data.tables.table import Table


class Batches:
    """Batches that come from an iterable without a position of its own, such as a list of them.

    After a resume the batches that were used before are skipped, so the iterable has to give the same ones again.
    """

    def __init__(self, source: Iterable[object]) -> None:
        if isinstance(source, Iterator):
            raise InputError(
                f"data: a {type(source).__name__} can be walked through only once.",
                "a list of batches, a wl.data.DataLoader, or an object whose __iter__ starts anew",
            )
        self.source = source
        self.epoch = self.position = 0
        self._share, self.part = (0, 1, 1), (0, 0)

    def share(self, rank: int, size: int, parts: int = 1) -> None:
        """Hand out one of `size` parts of every batch; `part` says how many rows of how many the last one has.

        A batch whose rows do not divide into `parts` is handed out whole.
        """
        self._share = (rank, size, parts)

    def __iter__(self) -> Iterator[Any]:
        skip = self.position
        for i, batch in enumerate(self.source):
            if i >= skip:
                self.position = i + 1
                yield batch if self._share[1] == 1 else self._part_of(batch)
        self.epoch, self.position = self.epoch + 1, 0

    def _part_of(self, batch: object) -> object:
        n = size_of(batch)
        part, self.part = share_of(self._share, n)
        if any(getattr(leaf, "ndim", 0) and leaf.shape[0] != n for leaf in trees.leaves(batch)):
            raise InputError(
                "data: the tensors of a batch differ in their first axis, so processes cannot have rows of it.",
                "batches whose first axis is the examples, or fit(..., distributed=False)",
            )
        return trees.map(lambda leaf: rows_of(leaf, part), batch)

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]  # TypeError for streams, as for any iterable

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        if missing := {"epoch", "position"} - state.keys():
            raise InputError(f"data: the state has no {min(missing)!r}.", "the result of state_dict()")
        epoch, position = (as_int("data", key, state[key], least=0) for key in ("epoch", "position"))
        self.epoch, self.position = epoch, position


Loader: TypeAlias = DataLoader | Batches
Data: TypeAlias = Loader | Tensor | Array | Table | Examples[object] | Iterable[object]


def as_arrays(data: Any) -> Any:
    """Data with frames, dicts of columns and lists of numbers as arrays; everything else as it is.

    >>> as_arrays(({"age": [31, 42], "ill": [0, 1]}, "ill"))
    (array([[31.],
           [42.]], dtype=float32), array([0, 1]))

    `(x, y)` may be a table and a column, or a table and the name of its column for the targets.
    """
    if has_columns(data):
        return as_matrix("data", data)
    if not isinstance(data, tuple) or not data:
        return data
    if len(data) == 2 and isinstance(data[1], str) and has_columns(data[0]):
        return split_off("data", *data)
    known = [has_columns(part) or is_list_of_numbers(part) for part in data]
    if not any(known) or not all(k or isinstance(p, (Tensor, np.ndarray)) for k, p in zip(known, data, strict=True)):
        return data
    return tuple(
        as_matrix("data", part, targets=place > 0) if convert else part
        for place, (part, convert) in enumerate(zip(data, known, strict=True))
    )


def as_loader(data: Any, batch_size: int, *, shuffle: bool, seed: int) -> Loader:
    """A loader of batches from a loader, a dataset, arrays or tables (one, or a tuple of them), or batches."""
    data = as_arrays(data)
    if isinstance(data, (DataLoader, Batches)):
        return data
    if isinstance(data, (Tensor, np.ndarray)):
        data = TensorDataset(data)
    elif isinstance(data, tuple) and data and all(isinstance(part, (Tensor, np.ndarray)) for part in data):
        data = TensorDataset(*data)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, (list, tuple, dict, str)):
        return DataLoader(data, batch_size=batch_size, shuffle=shuffle, seed=seed)
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict)):
        return Batches(data)
    raise InputError(
        f"data: a {type(data).__name__} has no batches.",
        "a tuple of arrays or tables (x, y), a dataset, a wl.data.DataLoader, or a list of batches",
    )


def hold_out(data: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Part of the data for validation."""
    data = as_arrays(data)
    if isinstance(data, (DataLoader, Batches)) or not 0 < share < 1:
        raise InputError(
            f"validation={share}: a share between 0 and 1 is taken from arrays or a dataset.",
            "validation=(x, y), or another loader",
        )
    if isinstance(data, tuple):
        parts = train_test_split(*data, test_size=share, seed=seed)
        return tuple(parts[::2]), tuple(parts[1::2])
    first, second = train_test_split(data, test_size=share, seed=seed)
    return first, second


def size_of(batch: object) -> int:
    """The number of examples in a batch: the size of the first axis of its first tensor."""
    if type(batch) is tuple and batch and type(batch[0]) is Tensor and batch[0].shape:  # nearly always
        return batch[0].shape[0]
    for leaf in trees.leaves(batch):
        if getattr(leaf, "shape", ()):
            return int(leaf.shape[0])
    raise InputError(
        "data: a batch without a tensor that has a first axis.", "batches whose first axis is the examples"
    )
