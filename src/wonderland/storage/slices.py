"""One set of tensors in several files: each process writes the slices that it holds, and anybody reads what they need.

A file is an ordinary safetensors file whose tensors are slices: "weight[0:2,0:6]" are the first rows of "weight", and
what lies whole in one file has its own name. The index says where everything is, as that of Hugging Face's sets does:

    {"files": {"step-7-00000.safetensors": 4096},
     "tensors": {"weight": {"dtype": "F32", "shape": [4, 6], "slices": [
         {"file": "step-7-00000.safetensors", "start": [0, 0], "shape": [2, 6], "sha256": "..."}, ...]}}}

Slices are known by their own checksums, so that a part of a tensor is read, and found sound, without the rest.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.arguments import shown
from ..core.dtypes import DType
from ..core.errors import FileError, InputError
from ..core.primitive import Shape
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .atomic import write_atomically
from .bounds import array_bytes
from .safetensors import CODES, code_of, head, load_mapped

Json = dict[str, Any]
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.safetensors")


class Shard(Protocol):
    """What one device has of an array; several may have the same part, and the first of these has the number 0."""

    @property
    def index(self) -> tuple[slice, ...]: ...
    @property
    def data(self) -> Shaped: ...
    @property
    def replica_id(self) -> int: ...


class OnMesh(Protocol):
    """An array on several devices, as JAX has it."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def addressable_shards(self) -> Sequence[Shard]: ...


class Slice(NamedTuple):
    """Where a part of a tensor begins, and its numbers: an array, or what becomes one when it is written."""

    start: Shape
    values: Shaped


class Sliced(NamedTuple):
    """A tensor of which a process holds some slices, or none; the shape is that of the whole."""

    shape: Shape
    dtype: DType
    slices: Sequence[Slice]

    @staticmethod
    def whole(x: Array) -> Sliced:
        return Sliced(x.shape, x.dtype, [Slice((0,) * x.ndim, x)])

    @staticmethod
    def of_shards(x: OnMesh) -> Sliced:
        """What the devices of this process have of an array, without what others write: no replica comes twice."""
        own = [shard for shard in x.addressable_shards if shard.replica_id == 0]
        return Sliced(x.shape, x.dtype, [Slice(tuple(s.start or 0 for s in one.index), one.data) for one in own])


def write_slices(folder: str | os.PathLike[str], stem: str, rank: int, tensors: Mapping[str, Sliced]) -> Json:
    """Write what a process holds as `stem-rank.safetensors`; its part of the index, see `joined`.

    >>> import tempfile, numpy as np
    >>> w = np.arange(8.0).reshape(4, 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = [  # two processes, with two rows each
    ...         write_slices(folder, "model", rank, {"w": Sliced((4, 2), w.dtype, [Slice((row, 0), w[row : row + 2])])})
    ...         for rank, row in enumerate((0, 2))
    ...     ]
    ...     found = SlicedSet(folder, joined(parts))
    ...     found.read("w", (slice(1, 3), slice(0, 1)))  # from both files
    array([[2.],
           [4.]])

    The file appears whole or not at all. A process that holds nothing writes none. Arrays are asked for their bytes one
    after the other, so that those of other devices need not be here all at once.
    """
    keys: dict[str, tuple[str, Slice]] = {}
    part: Json = {"files": {}, "tensors": {}}
    file = f"{stem}-{rank:05}.safetensors"
    for name, tensor in tensors.items():
        code = code_of(name, tensor.dtype)
        part["tensors"][name] = {"dtype": code, "shape": list(tensor.shape), "slices": []}
        for piece in tensor.slices:
            keys[_key(name, tensor.shape, piece.start, piece.values.shape)] = name, piece
    if not keys:
        return part
    beginning, order = head({key: piece.values for key, (_, piece) in keys.items()})
    written = 0

    def pieces() -> Iterator[bytes]:
        nonlocal written
        yield from beginning
        written = sum(map(len, beginning))
        for key in order:
            name, piece = keys[key]
            contents = np.asarray(piece.values).tobytes()
            written += len(contents)
            where = {"file": file, "start": list(piece.start), "shape": list(piece.values.shape)}
            part["tensors"][name]["slices"].append({**where, "sha256": hashlib.sha256(contents).hexdigest()})
            yield contents

    write_atomically(os.path.join(folder, file), pieces())
    part["files"][file] = written
    return part


def joined(parts: Iterable[Json]) -> Json:
    """The index of a set, from what the processes have written; `InputError` if that is not each number once."""
    index: Json = {"files": {}, "tensors": {}}
    for part in parts:
        index["files"] |= part["files"]
        for name, entry in part["tensors"].items():
            known = index["tensors"].setdefault(name, {**entry, "slices": []})
            if (known["dtype"], known["shape"]) != (entry["dtype"], entry["shape"]):
                raise InputError(
                    f"save: processes disagree on {name!r}: {known['dtype']}{known['shape']} and "
                    f"{entry['dtype']}{entry['shape']}.",
                    "the same model in all of them",
                )
            known["slices"] += entry["slices"]
    for name, entry in index["tensors"].items():
        if wrong := _uncovered(entry):
            raise InputError(f"save: the slices of {name!r} {wrong}.", "each of its numbers in one slice")
    return index


class SlicedSet:
    """The tensors of an index, to be read whole or in part; only files with a part of what is asked for are opened."""

    def __init__(self, folder: str | os.PathLike[str], index: object, name: str = "the index") -> None:
        self.folder, self.name = os.fspath(folder), name
        self._files: dict[str, dict[str, Tensor]] = {}
        self.index = self._checked(index)

    def __iter__(self) -> Iterator[str]:
        return iter(self.index["tensors"])

    def shape(self, name: str) -> Shape:
        return tuple(self._entry(name)["shape"])

    def dtype(self, name: str) -> DType:
        return np.dtype(CODES[self._entry(name)["dtype"]])

    def read(self, name: str, window: Sequence[slice] | None = None) -> Array:
        """A tensor, or the part of it in a window: a slice for each axis, with steps of 1."""
        shape = self.shape(name)
        low, size = _bounds(name, shape, [slice(None)] * len(shape) if window is None else window)
        out = np.empty(size, self.dtype(name))
        for piece in self._entry(name)["slices"]:
            first = np.maximum(low, piece["start"])
            last = np.minimum(np.add(low, size), np.add(piece["start"], piece["shape"]))
            if (last > first).all():
                here, there = (
                    [slice(*ends) for ends in zip(first - o, last - o, strict=True)] for o in (low, piece["start"])
                )
                out[tuple(here)] = self._slice(name, shape, piece)[tuple(there)]
        return out

    def files(self) -> list[str]:
        return list(self.index["files"])

    def _entry(self, name: str) -> Json:
        found: Json | None = self.index["tensors"].get(name)
        if found is None:
            raise FileError(f"{self.name} has no tensor {name!r}.", "a set of the same model")
        return found

    def _slice(self, name: str, shape: Shape, piece: Json) -> Array:
        file, key = piece["file"], _key(name, shape, piece["start"], piece["shape"])
        path = os.path.join(self.folder, file)
        if file not in self._files:
            if not os.path.isfile(path):
                raise FileError(f"{self.name} has lost its tensors: {path} is missing.", "another copy of the set")
            if (size := os.path.getsize(path)) != self.index["files"][file]:
                raise FileError(
                    f"{path} has {size} bytes instead of {self.index['files'][file]}; the set is not used.",
                    "another copy of it",
                )
            self._files[file] = load_mapped(path)
        found = self._files[file].get(key)
        if found is None or found.shape != tuple(piece["shape"]) or found.dtype != self.dtype(name):
            raise FileError(f"{path} does not have {key!r} as {self.name} says.", "files of the same set")
        array = np.asarray(found)
        if hashlib.sha256(array.tobytes()).hexdigest() != piece["sha256"]:
            raise FileError(f"{path} was changed after it was written; {key!r} is not used.", "another copy of the set")
        return array

    def _checked(self, index: object) -> Json:
        """The index, if it has the form of one and its slices are each number once."""
        if not isinstance(index, dict) or not all(isinstance(index.get(key), dict) for key in ("files", "tensors")):
            raise self._odd("files and tensors")
        for file, size in index["files"].items():
            if not _FILE.fullmatch(file) or type(size) is not int:  # a name and no path: it must not lead elsewhere
                raise self._odd(f"the file {shown(file)}")
        for name, entry in index["tensors"].items():
            if not _has_form(entry, index["files"]):
                raise self._odd(f"the tensor {shown(name)}")
            if wrong := _uncovered(entry):
                raise FileError(f"{self.name}: the slices of {name!r} {wrong}.", "another copy of the set")
        return index

    def _odd(self, what: str) -> FileError:
        return FileError(f"{self.name} makes no sense of {what}; the set is not used.", "another copy of it")


def _key(name: str, shape: Sequence[int], start: Sequence[int], size: Sequence[int]) -> str:
    """What a file calls a slice."""
    if tuple(size) == tuple(shape):
        return name
    return f"{name}[{','.join(f'{i}:{i + n}' for i, n in zip(start, size, strict=True))}]"


def _uncovered(entry: Json) -> str | None:
    """What is wrong with slices that are not each number of a tensor once."""
    shape, slices = entry["shape"], entry["slices"]
    starts = np.array([s["start"] for s in slices], np.int64).reshape(len(slices), len(shape))
    sizes = np.array([s["shape"] for s in slices], np.int64).reshape(len(slices), len(shape))
    ends = starts + sizes
    if (ends > np.array(shape, np.int64)).any():
        return f"reach beyond its shape {tuple(shape)}"
    meet = (starts[:, None] < ends[None]).all(axis=-1) & (starts[None] < ends[:, None]).all(axis=-1)
    if np.triu(meet, 1).any():
        return "overlap"
    there, wanted = int(sizes.prod(axis=1).sum()), math.prod(shape)
    return None if there == wanted else f"have {there} of its {wanted} numbers"


def _has_form(entry: object, files: Mapping[str, int]) -> bool:
    def sizes(values: object, count: int | None = None) -> bool:
        right = isinstance(values, list) and all(type(v) is int and 0 <= v < 2**62 for v in values)
        return right and (count is None or len(values) == count)  # type: ignore[arg-type]  # a list

    if not isinstance(entry, dict) or entry.get("dtype") not in CODES or not sizes(entry.get("shape")):
        return False
    try:
        array_bytes(entry["shape"], np.dtype(CODES[entry["dtype"]]).itemsize)
    except ValueError:
        return False
    axes, slices = len(entry["shape"]), entry.get("slices")
    return isinstance(slices, list) and all(
        isinstance(s, dict)
        and s.get("file") in files
        and sizes(s.get("start"), axes)
        and sizes(s.get("shape"), axes)
        and isinstance(s.get("sha256"), str)
        for s in slices
    )


def _bounds(name: str, shape: Shape, window: Sequence[slice]) -> tuple[Shape, Shape]:
    if len(window) != len(shape) or any(s.step not in (None, 1) for s in window):
        raise InputError(
            f"read: the window {window} of {name!r}, which has the shape {shape}.", "a slice for each axis"
        )
    ends = [s.indices(n)[:2] for s, n in zip(window, shape, strict=True)]
    return tuple(low for low, _ in ends), tuple(max(high - low, 0) for low, high in ends)
