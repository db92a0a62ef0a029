"""Sources of examples outside of memory: files mapped into it, Arrow tables, Hugging Face datasets, anything indexable.

x = wl.data.memory_map("x.npy")                              # pages are read when they are touched
dataset = wl.data.TensorDataset(x, wl.data.memory_map("y.npy"))
dataset = wl.data.as_dataset(load_dataset("mnist")["train"]) # of the library `datasets`, if installed
"""

from __future__ import annotations

import importlib
import math
import os
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.arguments import shown
from ..core.errors import DTypeError, InputError, ShapeError, WonderlandError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike, DTypeLike
from .dataset import Dataset, Examples, SequenceDataset, TensorDataset
from .formats.npy_header import read_header
from .formats.numpy_files import ZIP_ERRORS, array_of, member_header, npz_members, unpacked
from .streams import GeneratorDataset, IterableDataset


def memory_map(
    path: str | os.PathLike[str],
    key: str | None = None,
    *,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
    offset: int = 0,
) -> Array:
    """The array of a file, read-only, whose pages are read when they are touched.

    `.npy` files, the array `key` of an `.npz` file (mapped if it is not compressed, else read), and raw files with
    `dtype` and `shape` (one size may be -1) from a byte `offset` on.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
    >>> np.save(path, np.arange(6).reshape(3, 2))
    >>> memory_map(path)[1]
    memmap([2, 3])
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise InputError(f"memory_map: there is no file {name}.", "the path of a .npy, .npz or raw file")
    try:
        if name.endswith(".npz"):
            return _member(name, key)
        if dtype is None:
            return _whole(name)
    except WonderlandError:
        raise
    except ZIP_ERRORS as error:
        raise _no_array_file("memory_map", name, error) from None
    return _raw(name, np.dtype(dtype), shape, offset)


def _no_array_file(who: str, name: str, error: Exception) -> InputError:
    return InputError(f"{who}: {name} is not an array file ({error}).", "a file of np.save or np.savez")


def _whole(name: str) -> Array:
    with open(name, "rb") as file:
        header = read_header(file.read(1 << 14))
    if header.start + header.size != (found := os.path.getsize(name)):
        raise ValueError(f"{header.start + header.size:,} bytes for its shape {header.shape}, found {found:,}")
    return np.memmap(name, header.dtype, "r", header.start, header.shape, header.order)


def _raw(name: str, dtype: np.dtype, shape: Sequence[int] | None, offset: int) -> Array:
    available = os.path.getsize(name) - offset
    sizes = tuple(shape) if shape is not None else (-1,)
    known = math.prod(size for size in sizes if size != -1) * dtype.itemsize
    if -1 in sizes and known and available >= 0 and available % known == 0:
        sizes = tuple(available // known if size == -1 else size for size in sizes)
    if min(sizes, default=0) < 0 or math.prod(sizes) * dtype.itemsize != available or available <= 0 or offset < 0:
        raise ShapeError(
            f"memory_map: {name} has {available} bytes after offset {offset}, which is not {dtype}{list(sizes)}.",
            "the dtype and shape that the file was written with",
        )
    return np.memmap(name, dtype, "r", offset, sizes)


def _member(name: str, key: str | None) -> Array:
    """An array of an .npz file: a zip archive of .npy files."""
    with zipfile.ZipFile(name) as archive:
        members = npz_members(archive, os.path.getsize(name))
        if key is None and len(members) == 1:
            key = next(iter(members))
        if key not in members:
            raise InputError(f"memory_map: {name} has no array {key!r}.", f"key= one of {sorted(members)}")
        item = members[key]
        if item.compress_type != zipfile.ZIP_STORED:
            return array_of(unpacked(archive, item))
        header = member_header(archive, item)
    with open(name, "rb") as whole:
        whole.seek(item.header_offset + 26)  # where a local header has the lengths of its name and its extra field
        lengths = struct.unpack("<2H", whole.read(4))
    start = item.header_offset + 30 + sum(lengths) + header.start
    return np.memmap(name, header.dtype, "r", start, header.shape, header.order)


def read_shard(path: str | os.PathLike[str]) -> Iterator[Array | dict[str, Array]]:
    """The examples of a `.npy` file (its rows) or an `.npz` file (dicts of rows), for `ShardedDataset`.

    >>> import os, tempfile, wonderland as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "shard.npz")
    >>> np.savez(path, x=np.zeros((2, 3)), y=np.arange(2))
    >>> [int(example["y"]) for example in wl.data.ShardedDataset([path], read=wl.data.read_shard)]
    [0, 1]
    """
    name = os.fspath(path)
    if not name.endswith(".npz"):
        rows = memory_map(name)
        if not rows.ndim:
            raise ShapeError(f"read_shard: the array of {name} has no axis.", "one row per example")
        yield from rows
        return
    try:
        with zipfile.ZipFile(name) as archive:
            keys = list(npz_members(archive, os.path.getsize(name)))
    except ZIP_ERRORS as error:
        raise _no_array_file("read_shard", name, error) from None
    arrays = {key: memory_map(name, key) for key in keys}
    lengths = {len(array) if array.ndim else -1 for array in arrays.values()}
    if len(lengths) != 1 or -1 in lengths:
        raise ShapeError(f"read_shard: the arrays of {name} have lengths {sorted(lengths)}.", "one row per example")
    for row in range(lengths.pop()):
        yield {key: array[row] for key, array in arrays.items()}


# --- tables


class _Columns(Dataset):
    """A source of columns: example i is a dict, or `(inputs, target)` if columns are named for them.

    A single input column keeps its shape; several columns of numbers are put side by side as features.
    """

    def __init__(
        self,
        columns: Sequence[str] | None,
        inputs: str | Sequence[str] | None,
        target: str | None,
        available: Sequence[str],
    ) -> None:
        if (inputs is None) != (target is None) or (inputs is not None and columns is not None):
            raise InputError(f"{type(self).__name__}: inputs and target go together, without columns.", "both or none")
        self.inputs = [inputs] if isinstance(inputs, str) else inputs
        self.target = target
        if self.inputs is not None and target is not None:
            wanted = [*self.inputs, target]
        else:
            wanted = list(available if columns is None else columns)
        if missing := [name for name in wanted if name not in available]:
            raise InputError(
                f"{type(self).__name__}: there is no column {missing[0]!r}.", f"some of {shown(list(available))}"
            )
        self.columns = wanted

    def arranged(self, columns: Mapping[str, object], batched: bool) -> object:
        if self.inputs is None or self.target is None:
            return columns
        target = columns[self.target]
        if len(self.inputs) == 1:
            return columns[self.inputs[0]], target
        parts = [np.asarray(columns[name]) for name in self.inputs]
        if any(part.ndim != int(batched) or part.dtype.kind not in "biuf" for part in parts):
            raise DTypeError(
                f"{type(self).__name__}: the inputs {self.inputs} are not all columns of numbers.",
                "columns with one number per row, or a single column",
            )
        dtype = np.result_type(*parts)
        features = np.stack(parts, axis=-1)
        return features.astype(np.float32 if dtype.kind != "f" else dtype, copy=False), target

    def batch(self, indices: Array) -> dict[str, Array | list[object]]:
        """The columns at some rows."""
        raise NotImplementedError

    def __getitems__(self, indices: Sequence[int] | Array) -> object:
        return self.arranged(self.batch(np.asarray(indices, np.int64)), batched=True)

    def __getitem__(self, index: int) -> Any:
        rows = self.batch(np.array([self._place(index)]))
        return self.arranged({name: column[0] for name, column in rows.items()}, batched=False)


class ArrowDataset(_Columns):
    """The rows of an Arrow table (`pip install 'wonderland[arrow]'`), as dicts or as `(inputs, target)`.

    >>> import pyarrow as pa
    >>> table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [0, 1]})
    >>> x, y = ArrowDataset(table, inputs=["a", "b"], target="y")[1]
    >>> x, int(y)
    (array([2., 4.]), 1)

    Columns are numbers, text, or lists of one length. A table may be mapped from a file:
    `ArrowDataset.open("data.arrow")`.
    """

    def __init__(
        self,
        table: Any,
        columns: Sequence[str] | None = None,
        *,
        inputs: str | Sequence[str] | None = None,
        target: str | None = None,
    ) -> None:
        super().__init__(columns, inputs, target, list(table.column_names))
        self.table = table.select(self.columns)
        for name in self.columns:
            if self.table.column(name).null_count:
                raise InputError(
                    f"ArrowDataset: column {name!r} has {self.table.column(name).null_count} missing values.",
                    "table.drop_null(), or fill them",
                )

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        *,
        inputs: str | Sequence[str] | None = None,
        target: str | None = None,
    ) -> ArrowDataset:
        """The table of an Arrow file (stream or file format), mapped into memory."""
        arrow = _pyarrow("ArrowDataset.open")
        try:
            source = arrow.memory_map(os.fspath(path))
            try:
                table = arrow.ipc.open_file(source).read_all()
            except arrow.ArrowInvalid:
                source.seek(0)
                table = arrow.ipc.open_stream(source).read_all()
            table.validate(full=True)  # offsets that point out of the file would be followed blindly
        except Exception as error:  # what a damaged file takes the library to is its own affair
            raise InputError(f"ArrowDataset: {os.fspath(path)} is no Arrow file ({error}).", "an IPC file") from error
        return cls(table, columns, inputs=inputs, target=target)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def batch(self, indices: Array) -> dict[str, Array | list[object]]:
        rows = self.table.take(indices)
        return {name: _as_numpy(name, rows.column(name)) for name in self.columns}


def _pyarrow(name: str) -> Any:
    try:
        importlib.import_module("pyarrow.ipc")
        return importlib.import_module("pyarrow")
    except ImportError:
        raise InputError(f"{name}: pyarrow is not installed.", "pip install 'wonderland[arrow]'") from None


def _as_numpy(name: str, column: Any) -> Any:
    """A chunked Arrow column as an array, lists of one length as further axes; text as a list."""
    types = _pyarrow("ArrowDataset").types
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(array, "chunks"):  # no chunk at all, or several that were too large to combine
        array = _pyarrow("ArrowDataset").concat_arrays(array.chunks) if array.num_chunks else array
    kind = array.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind):
        return array.to_pylist()
    if types.is_dictionary(kind):
        return _as_numpy(name, array.dictionary_decode())
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = _as_numpy(name, array.flatten())
        rows = len(array)
        lengths = set(array.value_lengths().to_pylist()) if not types.is_fixed_size_list(kind) else {kind.list_size}
        if len(lengths) > 1:
            raise ShapeError(f"ArrowDataset: the lists of column {name!r} differ in length.", "lists of one length")
        return inner.reshape(rows, lengths.pop() if lengths else 0, *inner.shape[1:])
    return array.to_numpy(zero_copy_only=False)


class HuggingFaceDataset(_Columns):
    """A dataset of the library `datasets` (or with its interface: `column_names`, and `source[i]` as a dict).

    Rows are dicts of NumPy arrays, or `(inputs, target)`; the source's own NumPy format is used where it has one.
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None = None,
        *,
        inputs: str | Sequence[str] | None = None,
        target: str | None = None,
    ) -> None:
        super().__init__(columns, inputs, target, list(source.column_names))
        self.source = source.with_format("numpy") if hasattr(source, "with_format") else source

    def __len__(self) -> int:
        return len(self.source)

    def batch(self, indices: Array) -> dict[str, Array | list[object]]:
        rows = self.source[indices.tolist()]  # a dict of columns
        return {name: _as_batch(rows[name]) for name in self.columns}


def _as_batch(column: Iterable[object]) -> Array | list[object]:
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column.tolist() if column.dtype.kind in "US" else column
    values = list(column)
    if values and isinstance(values[0], (str, bytes)):
        return values
    arrays = [np.asarray(value) for value in values]
    if len({array.shape for array in arrays}) > 1:
        raise ShapeError(
            f"HuggingFaceDataset: the rows have the shapes {sorted({array.shape for array in arrays})}.",
            "a map that gives rows of one shape, or DataLoader(SequenceDataset(source), pad_value=0)",
        )
    return np.stack(arrays)


class _HuggingFaceStream(IterableDataset):
    """A stream of the library `datasets`, which has its own way to learn of the epoch."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def examples(self, seed: int = 0, epoch: int = 0) -> Iterator[Any]:
        if hasattr(self.source, "set_epoch"):
            self.source.set_epoch(epoch)
        return iter(self.source)


def as_dataset(source: object, **options: Any) -> Dataset | IterableDataset:
    """A dataset from whatever there is: arrays, columns by name, a table, a list, a function that gives an iterator.

    `options` are those of `ArrowDataset` and `HuggingFaceDataset`: columns, or inputs and target.

    >>> import numpy as np
    >>> as_dataset((np.zeros((4, 2)), np.arange(4)))
    TensorDataset(4 examples)
    >>> as_dataset(["some", "texts"])[1]
    'texts'
    """
    if not options and isinstance(source, (Dataset, IterableDataset)):
        return source
    module = type(source).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(source, "column_names"):
        return ArrowDataset(source, **options)
    if isinstance(source, Mapping) and not hasattr(source, "column_names"):
        if source and all(hasattr(part, "column_names") for part in source.values()):
            raise InputError(f"as_dataset: the source has the splits {sorted(source)}.", 'one of them: source["train"]')
        return _MappingDataset(source, **options)
    if hasattr(source, "column_names") and hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        return HuggingFaceDataset(source, **options)
    if options:
        raise InputError(f"as_dataset: a {type(source).__name__} has no columns to choose.", "no options")
    if isinstance(source, (np.ndarray, Tensor)):
        return TensorDataset(source)
    if isinstance(source, tuple) and source and all(hasattr(part, "shape") for part in source):
        return TensorDataset(*source)
    if isinstance(source, Examples):
        return SequenceDataset(source)
    if callable(source):
        return GeneratorDataset(source)
    if hasattr(source, "__iter__") and not isinstance(source, Iterator):
        return _HuggingFaceStream(source)
    raise InputError(
        f"as_dataset: a {type(source).__name__} is no source of examples that can be read twice.",
        "arrays, a table, an object with __len__ and __getitem__, or a function that gives an iterator",
    )


class _MappingDataset(_Columns):
    """Columns in memory by name."""

    def __init__(
        self,
        source: Mapping[str, ArrayLike],
        columns: Sequence[str] | None = None,
        *,
        inputs: str | Sequence[str] | None = None,
        target: str | None = None,
    ) -> None:
        super().__init__(columns, inputs, target, list(source))
        self.arrays = TensorDataset(*(source[name] for name in self.columns))

    def __len__(self) -> int:
        return len(self.arrays)

    def batch(self, indices: Array) -> dict[str, Array | list[object]]:
        return dict(zip(self.columns, self.arrays.__getitems__(indices), strict=True))
