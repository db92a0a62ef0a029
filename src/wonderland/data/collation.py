"""From examples to a batch: equal arrays are stacked, sequences of different lengths padded.

A batch has the structure of an example (tuples, dicts, arrays, numbers) with a new first axis at every leaf. Everything
is NumPy here; the loader makes tensors of it.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..arrays.conversion import asarray
from ..core import dtypes, trees
from ..core.arguments import as_int
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array

Join: TypeAlias = Callable[[list[Any], tuple[object, ...]], object]  # the leaves at a path, to one


def collate(examples: Sequence[object]) -> Any:
    """The batch of some examples: each leaf is the stack of their leaves, (n, ...).

    >>> import numpy as np
    >>> x, y = collate([(np.array([1.0, 2.0]), 0), (np.array([3.0, 4.0]), 1)])
    >>> x.shape, y
    ((2, 2), array([0, 1]))

    Python's numbers take the default types of tensors (float32, int64); text stays a list. Book, box C.5.2.
    """
    return _joined("collate", list(examples), _stacked)


def _joined(name: str, examples: list[Any], join: Join) -> object:
    """One tree from many of the same structure; `join` is given the leaves at a path."""
    if not examples:
        raise InputError(f"{name}: there are no examples.", "one example or more")
    if type(examples[0]) is tuple and not any(isinstance(part, (tuple, list, dict)) for part in examples[0]):
        return _joined_tuples(name, examples, join)  # what most examples are: no tree has to be walked
    leaves, structure = trees.flatten_with_paths(examples[0])
    columns: list[list[object]] = [[leaf] for _, leaf in leaves]
    for number, example in enumerate(examples[1:], 1):
        more, other = trees.flatten(example)
        if other != structure:
            raise InputError(
                f"{name}: example {number} of the batch has the structure {other}, the first one {structure}.",
                "examples of one structure, or a collate_fn of your own",
            )
        for column, leaf in zip(columns, more, strict=True):
            column.append(leaf)
    joined = [join(column, path) for (path, _), column in zip(leaves, columns, strict=True)]
    return trees.unflatten(structure, joined)


def _joined_tuples(name: str, examples: list[Any], join: Join) -> tuple[object, ...]:
    width = len(examples[0])
    for number, example in enumerate(examples):
        if type(example) is not tuple or len(example) != width:
            raise InputError(
                f"{name}: example {number} of the batch is no tuple of {width} parts like the first one.",
                "examples of one structure, or a collate_fn of your own",
            )
    return tuple(
        None if column[0] is None else join(list(column), (place,))
        for place, column in enumerate(zip(*examples, strict=True))
    )


def as_array(leaf: object) -> Array | str | bytes:
    """A leaf of an example as NumPy; text stays text."""
    if isinstance(leaf, np.ndarray):
        return leaf
    if isinstance(leaf, (str, bytes)):
        return leaf
    if isinstance(leaf, Tensor):
        return leaf.numpy()
    if isinstance(leaf, (bool, int, float, complex)):
        return asarray(leaf).numpy()
    return np.asarray(leaf)


def as_tensors(batch: object) -> Any:
    """The batch with tensors over its arrays, without a copy; text and other objects stay as they are."""
    if type(batch) is tuple and all(type(part) is np.ndarray for part in batch):
        return tuple(map(_as_tensor, batch))
    return trees.map(_as_tensor, batch)


def _as_tensor(leaf: object) -> object:
    if isinstance(leaf, (np.ndarray, np.generic)):
        if leaf.dtype.kind in "OUS" and leaf.dtype not in dtypes.KIND:
            return leaf.tolist()
        return asarray(leaf)
    return asarray(leaf) if isinstance(leaf, (bool, int, float, complex)) else leaf


def _where(path: tuple[object, ...]) -> str:
    return f" of part {'.'.join(map(str, path))}" if path else ""


def _stacked(column: list[object], path: tuple[object, ...]) -> Array | list[object]:
    first = column[0]
    if isinstance(first, (bool, int, float)) and all(isinstance(leaf, (bool, int, float)) for leaf in column):
        return asarray(column).numpy()
    if isinstance(first, (str, bytes)):
        return list(column)
    arrays: list[Any] = [as_array(leaf) for leaf in column]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        odd = next(i for i, array in enumerate(arrays) if array.shape != arrays[0].shape)
        raise ShapeError(
            f"collate: the shapes{_where(path)} differ: {arrays[0].shape} of the first example, "
            f"{arrays[odd].shape} of example {odd} of the batch.",
            "pad_value=0 to pad sequences, or a transform that gives one shape",
        )
    if arrays[0].dtype.kind in "OV" and arrays[0].dtype not in dtypes.KIND:
        raise DTypeError(
            f"collate: a {type(first).__name__}{_where(path)} is not a number, an array or text.",
            "a transform that makes arrays of it, or a collate_fn of your own",
        )
    return np.stack(arrays)


def _with_arrays(example: object) -> object:
    """The example with arrays in the place of lists of numbers, which are sequences here and no structure."""
    if isinstance(example, list):
        if not any(isinstance(part, (str, bytes, dict, tuple)) for part in example):
            return asarray(example).numpy()
        return [_with_arrays(part) for part in example]
    if type(example) is tuple:
        return tuple(map(_with_arrays, example))
    if isinstance(example, dict):
        return {key: _with_arrays(part) for key, part in example.items()}
    return example


class Padded(NamedTuple):
    """Sequences of different lengths as one array, and the lengths. It is a tree, so it goes through `jit`.

    >>> import numpy as np
    >>> batch = PadCollate()([np.array([1, 2, 3]), np.array([4])])
    >>> batch.values
    array([[1, 2, 3],
           [4, 0, 0]])
    >>> batch.lengths, batch.mask
    (array([3, 1]), array([[ True,  True,  True],
           [ True, False, False]]))
    """

    values: Array | Tensor
    lengths: Array | Tensor

    @property
    def mask(self) -> Array | Tensor:
        """True at the elements, False at the padding: (batch, time)."""
        time = np.arange(self.values.shape[1])
        if isinstance(self.lengths, Tensor):
            return asarray(time) < self.lengths[:, None]
        return time < self.lengths[:, None]


class PadCollate:
    """Pads sequences (time, ...) of a batch to its longest and gives `Padded(values, lengths)` in their place.

    `value` is the number to pad with, for all arrays that have axes; or a tuple or dict like the example, with None
    where nothing is padded: `PadCollate((0, None))` pads inputs only, `PadCollate((0, -100))` also the targets, with
    what losses ignore. So that `jit` meets few shapes, `to` is a few lengths of which the next is taken, such as those
    of `bucket_lengths`; or `to_multiple` rounds the common length up, or `length` fixes it.

    >>> import numpy as np
    >>> examples = [(np.array([1, 2, 3]), 0), (np.array([4]), 1)]
    >>> inputs, labels = PadCollate(to=(4, 16))(examples)
    >>> inputs.values.shape, labels
    ((2, 4), array([0, 1]))
    """

    def __init__(
        self, value: object = 0, *, to: Sequence[int] = (), to_multiple: int = 1, length: int | None = None
    ) -> None:
        if to_multiple < 1:
            raise InputError(f"PadCollate: to_multiple={to_multiple} is not a length.", "1 or more")
        self.to = sorted(as_int("PadCollate", "a length of to", n, least=1) for n in to)
        if (bool(self.to), to_multiple > 1, length is not None).count(True) > 1:
            raise InputError("PadCollate: to, to_multiple and length all say how long batches are.", "one of them")
        self.value, self.to_multiple, self.length = value, to_multiple, length

    def __call__(self, examples: Sequence[object]) -> Any:
        return _joined("pad", [_with_arrays(example) for example in examples], self._padded)

    def _value_at(self, path: tuple[Any, ...]) -> Any:
        value = self.value
        for key in path:
            if not isinstance(value, (tuple, list, dict)):
                break
            try:
                value = value[key]
            except (IndexError, KeyError):
                raise InputError(
                    f"pad: pad_value={self.value!r} has nothing for part {'.'.join(map(str, path))} of an example.",
                    "a number, or a tuple or dict like the example with None where nothing is padded",
                ) from None
        return value

    def _padded(self, column: list[object], path: tuple[object, ...]) -> Array | list[object] | Padded:
        value = self._value_at(path)
        arrays: list[Any] = [as_array(leaf) for leaf in column]
        if value is None or isinstance(arrays[0], (str, bytes)) or arrays[0].ndim == 0:
            return _stacked(column, path)
        if len({array.shape[1:] for array in arrays}) > 1 or any(array.ndim == 0 for array in arrays):
            raise ShapeError(
                f"pad: the shapes{_where(path)} differ beyond the first axis: {sorted({a.shape for a in arrays})}.",
                "sequences (time, ...) that differ in time only",
            )
        lengths = np.array([len(array) for array in arrays], np.int64)
        longest = int(lengths.max())
        most = self.to[-1] if self.to else self.length
        if most is not None and longest > most:
            name = "to" if self.to else "length"
            raise ShapeError(
                f"pad: a sequence{_where(path)} has length {longest}, more than {name}={most}.",
                "a larger length, or shorter sequences",
            )
        if self.to:
            time = self.to[bisect.bisect_left(self.to, longest)]
        else:
            time = -(-longest // self.to_multiple) * self.to_multiple if self.length is None else self.length
        values = np.full((len(arrays), time, *arrays[0].shape[1:]), value, np.result_type(*arrays))
        for row, array in zip(values, arrays, strict=True):
            row[: len(array)] = array
        return Padded(values, lengths)
