"""The safetensors format: a header in JSON, then the bytes of the tensors; reading one cannot execute anything.

    8 bytes     the length of the header, a little-endian integer
    header      {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, "__metadata__": {...}}
    the rest    the tensors in order, without gaps; offsets count from here

Everything that a reader could trip over is checked before a tensor is made: lengths, names that come twice, offsets
that overlap or leave gaps, sizes that do not fit shapes.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..arrays import asarray
from ..core import dtypes
from ..core.errors import DTypeError, FileError, InputError, SizeError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike, Shaped
from .atomic import write_atomically
from .bounds import array_bytes
from .nested import KEY, is_nested, put_together, taken_apart
from .parsing import parse_json

CODES = {
    "BOOL": dtypes.bool_,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "U16": dtypes.uint16,
    "I16": dtypes.int16,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "U32": dtypes.uint32,
    "I32": dtypes.int32,
    "F32": dtypes.float32,
    "U64": dtypes.uint64,
    "I64": dtypes.int64,
    "F64": dtypes.float64,
    "C64": dtypes.complex64,
}
_NAMES = {np.dtype(dtype): code for code, dtype in CODES.items()}
_LONGEST_HEADER = 100_000_000  # as other readers of the format demand
_METADATA = "__metadata__"


@runtime_checkable
class HasState(Protocol):
    """A module, an optimizer."""

    def state_dict(self) -> Mapping[str, ArrayLike]: ...


def save(values: Any, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors, the state of a module, or dicts and lists of these, as a safetensors file.

    >>> import os, tempfile, wonderland as wl
    >>> model = wl.nn.Linear(2, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     wl.save(model, path)
    ...     state = wl.load(path)
    >>> list(state), model.load_state_dict(state)
    (['bias', 'weight'], Loaded(missing=[], unexpected=[]))

    `values` is a module or an optimizer (anything with `state_dict()`), a dict from names to tensors, arrays or
    numbers, which all become tensors, or dicts, lists and tuples in each other with such things in them:

        wl.save({"model": model, "optimizer": optimizer, "epoch": 3, "name": "first"}, path)

    There, numbers, texts and None come back as they are, and a tensor has its path as its name in the file
    ("model.weight"), where other readers find it. `metadata` are texts that travel along. The file appears whole or not
    at all.
    """
    if isinstance(values, HasState):
        values = values.state_dict()
    if is_nested(values):
        if metadata and KEY in metadata:
            raise InputError(
                f"save: the metadata have the name {KEY!r}, which describes nested values.", "another name"
            )
        values, structure = taken_apart(values)
        metadata = {**(metadata or {}), KEY: structure}
    write_atomically(path, encode(_named(values), metadata))


def load(path: str | os.PathLike[str]) -> Any:
    """What `save` wrote: the tensors of a safetensors file by name, or the dicts and lists that were saved.

    `metadata(path)` has its texts. A file that is truncated, tampered with or of another format raises `FileError`,
    which says what is wrong with it.
    """
    tensors, texts = decode(_read(path), name := os.fspath(path))
    if KEY not in texts:
        return tensors
    try:
        return put_together(tensors, texts[KEY])
    except ValueError as error:
        raise _damaged(name, str(error)) from None


def load_mapped(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a file as views of it on the disk: nothing is read before it is used.

    They are for copying, so that large weights are never in memory twice. What somebody writes into the file is seen in
    them, so they should not be kept. Otherwise it is `load`.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            few = os.fstat(file.fileno()).st_size < 8  # an empty file cannot be mapped, and the error says why
            contents = file.read() if few else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {name}: {error}.", "the path of a file that exists") from None
    return decode(contents, name)[0]


def metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The texts that were saved with the tensors."""
    return {key: text for key, text in decode(_read(path), os.fspath(path))[1].items() if key != KEY}


def encode(values: Mapping[str, ArrayLike], metadata: Mapping[str, str] | None = None) -> list[bytes]:
    """The pieces of a file: its head and the bytes of each tensor."""
    arrays = {name: np.asarray(value) for name, value in values.items()}
    beginning, order = head(arrays, metadata)
    return [*beginning, *(arrays[name].tobytes() for name in order)]


def head(values: Mapping[str, Shaped], metadata: Mapping[str, str] | None = None) -> tuple[list[bytes], list[str]]:
    """The head of a file, and the order in which the bytes of its tensors follow."""
    header: dict[str, object] = {}
    if metadata:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise InputError("save: metadata are texts by name.", "json.dumps(...) for anything else")
        header[_METADATA] = dict(metadata)
    end = 0
    # wide elements first, so that every tensor starts at a multiple of its element's size
    order = sorted(values, key=lambda name: (-values[name].dtype.itemsize, name))
    for name in order:
        shape, dtype = values[name].shape, values[name].dtype
        if name == _METADATA:
            raise DTypeError(f"save: a tensor with the name {name!r}, which a file keeps for texts.", "another name")
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": code_of(name, dtype), "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [struct.pack("<Q", len(text)), text], order


def code_of(name: str, dtype: dtypes.DType) -> str:
    """What the format calls a dtype; `name` is for messages."""
    code = _NAMES.get(np.dtype(dtype))
    if code is None:
        raise DTypeError(
            f"save: the tensor {name!r} of type {dtype} has no place in a safetensors file.",
            "real and imaginary parts apart, or another dtype",
        )
    return code


def decode(contents: bytes | mmap.mmap, name: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and texts in the bytes of a file; `name` is for messages."""
    header, start = _header(contents, name)
    texts = header.pop(_METADATA, {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise _damaged(name, "its metadata are not texts")
    size = len(contents) - start
    tensors: dict[str, Tensor] = {}
    position = 0
    for key, entry in sorted(header.items(), key=lambda pair: _offsets(name, *pair)):
        begin, end = _offsets(name, key, entry)
        dtype, shape = np.dtype(CODES[entry["dtype"]]), tuple(entry["shape"])
        if begin != position:
            raise _damaged(name, f"the tensor {key!r} does not start where the one before it ends")
        try:
            wanted = array_bytes(shape, dtype.itemsize)
        except ValueError as error:
            raise _damaged(name, f"the tensor {key!r} has {error}") from None
        if end - begin != wanted:
            raise _damaged(name, f"the tensor {key!r} has {end - begin} bytes for {dtype}{list(shape)}")
        if end > size:
            raise _damaged(name, f"{key!r} ends at byte {end} of the tensors, the file at {size}; it is truncated")
        array = np.frombuffer(contents, dtype, wanted // dtype.itemsize, start + begin)
        if dtype == dtypes.bool_ and wanted and array.view(np.uint8).max() > 1:
            raise _damaged(name, f"the tensor {key!r} has a truth value that is neither 0 nor 1")
        if dtype.itemsize > 1 and (start + begin) % dtype.itemsize:
            array = array.copy()
        tensors[key] = wrap(array.reshape(shape))
        position = end
    if position != size:
        raise _damaged(name, f"{size - position} bytes at its end belong to no tensor")
    return dict(sorted(tensors.items())), texts


def _named(values: object) -> Mapping[str, Tensor]:
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise InputError(
            f"save: received a {type(values).__name__}, which has no named tensors.",
            "a module, an optimizer, or a dict such as {'weights': w}",
        )
    return {name: asarray(value) for name, value in values.items()}


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise FileError(f"cannot read {os.fspath(path)}: {error.strerror}.", "the path of a file that exists") from None
    except MemoryError:
        raise SizeError(f"{os.fspath(path)} does not fit into memory.", "a machine with more of it") from None


def _header(contents: bytes | mmap.mmap, name: str) -> tuple[dict[str, Any], int]:
    if len(contents) < 8:
        raise _damaged(name, f"it has {len(contents)} bytes")
    length = struct.unpack("<Q", contents[:8])[0]
    if length > _LONGEST_HEADER:
        raise _damaged(name, "its first eight bytes are not the length of a header")
    if 8 + length > len(contents):
        raise _damaged(name, f"its header should have {length} bytes, of which {len(contents) - 8} are there")
    try:
        header = parse_json(contents[8 : 8 + length])
    except ValueError as error:
        raise _damaged(name, f"its header is not valid JSON ({error})") from None
    if not isinstance(header, dict):
        raise _damaged(name, "its header is not a table")
    return header, 8 + length


def _offsets(name: str, key: str, entry: object) -> tuple[int, int]:
    """Where a tensor lies, after a look at the form of its entry."""
    whole = lambda values: isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)  # noqa: E731
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("dtype"), str)
        or entry["dtype"] not in CODES
        or not whole(entry.get("shape"))
        or not whole(entry.get("data_offsets"))
        or len(entry["data_offsets"]) != 2
        or entry["data_offsets"][0] > entry["data_offsets"][1]
    ):
        raise _damaged(name, f"the entry of {key!r} in its header makes no sense")
    return entry["data_offsets"][0], entry["data_offsets"][1]


def _damaged(name: str, what: str) -> FileError:
    return FileError(f"{name} is not a sound safetensors file: {what}.", "another copy of the file")
