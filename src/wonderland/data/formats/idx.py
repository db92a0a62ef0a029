"""IDX, the format of MNIST: two zero bytes, a type, the number of axes, the sizes, then the numbers, big-endian."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np

from ...core.errors import DTypeError, InputError
from ...core.typing import ArrayLike, PathLike
from ...storage.bounds import array_bytes
from .files import damaged, read_bytes

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CODES = {np.dtype(text).newbyteorder("="): code for code, text in TYPES.items()}


def is_idx(head: bytes) -> bool:
    """Whether bytes begin as an IDX file does."""
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in TYPES and head[3] >= 1


def read_idx(path: PathLike, *, expect_size: int | None = None, expect_sha256: str | None = None) -> np.ndarray:
    """The array in an IDX file, plain or gzipped. Its size must be exactly what its header says.

    >>> import os, tempfile, numpy as np, wonderland as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "labels.idx1-ubyte.gz")
    >>> wl.data.write_idx(path, np.array([5, 0, 4], np.uint8))
    >>> wl.data.read_idx(path)
    array([5, 0, 4], dtype=uint8)
    """
    data = read_bytes("read_idx", path, expect_size, expect_sha256, promised=lambda head: sum(_header(head)[2:]))
    try:
        dtype, shape, start, size = _header(data)
    except ValueError as error:
        raise damaged("read_idx", path, "an IDX file", error) from None
    if len(data) != start + size:
        expected = f"{start + size:,} bytes for {dtype.name} of shape {shape}, found {len(data):,}"
        raise damaged("read_idx", path, expected)
    values = np.frombuffer(data, dtype, size // dtype.itemsize, start) if size else np.empty(0, dtype)
    return values.reshape(shape).astype(dtype.newbyteorder("="))


def _header(data: bytes) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """(dtype, shape, bytes of the header, bytes of the numbers); ValueError if there is no header."""
    if not is_idx(data):
        raise ValueError(f"it begins with 00 00, a type and a rank, found {data[:4]!r}")
    dtype, rank = np.dtype(TYPES[data[2]]), data[3]
    start = 4 + 4 * rank
    if len(data) < start:
        raise ValueError(f"a header of {start} bytes for {rank} axes, found {len(data)} bytes")
    shape = struct.unpack(f">{rank}I", data[4:start])
    return dtype, shape, start, array_bytes(shape, dtype.itemsize)


def write_idx(path: PathLike, array: ArrayLike) -> None:
    """Write an array as an IDX file, gzipped when the name ends in `.gz`. See `read_idx`."""
    values = np.asarray(array)
    code = _CODES.get(values.dtype.newbyteorder("="))
    if code is None:
        names = ", ".join(dtype.name for dtype in _CODES)
        raise DTypeError(f"write_idx: IDX has no {values.dtype}.", f"array.astype of one of {names}")
    if not 1 <= values.ndim <= 255 or max(values.shape) >= 2**32:
        raise InputError(f"write_idx: IDX cannot hold an array of shape {values.shape}.", "one axis or more")
    head = struct.pack(f">4B{values.ndim}I", 0, 0, code, values.ndim, *values.shape)
    data = head + values.astype(TYPES[code]).tobytes()
    # mtime=0: the same array gives the same file
    Path(path).write_bytes(gzip.compress(data, mtime=0) if os.fspath(path).endswith(".gz") else data)
