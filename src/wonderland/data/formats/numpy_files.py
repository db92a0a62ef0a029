"""NumPy's own files: `.npy` with one array and `.npz` with several. Nothing in them is executed."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

from ...core.errors import InputError
from ...core.typing import PathLike
from ...storage.bounds import drained, unpacked_limit
from ..record import DatasetRecord
from .files import as_path, damaged, read_bytes
from .npy_header import Header, read_header

# what `zipfile` and the decoders below it raise where a file is damaged
ZIP_ERRORS = (
    *(ValueError, EOFError, OSError, RuntimeError, NotImplementedError, struct.error, zlib.error),
    *(zipfile.BadZipFile, zipfile.LargeZipFile),
)

# the pairs of names that people give, and the four of a file that is split already
_PAIRS = (("x", "y"), ("X", "y"), ("features", "targets"), ("data", "target"), ("images", "labels"), ("data", "labels"))
_SPLIT = ("x_train", "y_train", "x_test", "y_test")


def read_npy(path: PathLike, *, expect_size: int | None = None, expect_sha256: str | None = None) -> np.ndarray:
    """The array in an `.npy` file. Arrays of Python objects are refused: reading them would run code.

    >>> import os, tempfile, numpy as np, wonderland as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npy")
    >>> np.save(path, np.arange(3))
    >>> wl.data.read_npy(path)
    array([0, 1, 2])
    """
    data = read_bytes("read_npy", path, expect_size, expect_sha256, promised=_promised)
    try:
        return array_of(data)
    except ValueError as error:
        raise damaged("read_npy", path, "one array of numbers", error) from None


def _promised(head: bytes) -> int:
    header = read_header(head)
    return header.start + header.size


def array_of(data: bytes) -> np.ndarray:
    """The array in the bytes of an `.npy` file; ValueError if they are not exactly one."""
    header = read_header(data)
    if len(data) != header.start + header.size:
        raise ValueError(f"{header.start + header.size:,} bytes for its shape {header.shape}, found {len(data):,}")
    if not header.size:
        return np.empty(header.shape, header.dtype, header.order)
    values = np.frombuffer(data, header.dtype, offset=header.start)
    if header.dtype == np.bool_ and values.view(np.uint8).max() > 1:
        raise ValueError("a truth value that is neither 0 nor 1")
    return values.reshape(header.shape, order=header.order).copy(order="K")


def read_npz(
    path: PathLike, *, expect_size: int | None = None, expect_sha256: str | None = None
) -> dict[str, np.ndarray]:
    """All arrays of an `.npz` file by name. Checksums must be right, and what is packed within `storage.bounds`."""
    data = read_bytes("read_npz", path, expect_size, expect_sha256)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = npz_members(archive, as_path("read_npz", path).stat().st_size)
            return {name: array_of(unpacked(archive, item)) for name, item in members.items()}
    except ZIP_ERRORS as error:
        raise damaged("read_npz", path, "a zip of arrays of numbers", error) from None


def npz_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive by name, together no more than a file of this size may promise; else ValueError."""
    members: dict[str, zipfile.ZipInfo] = {}
    for item in archive.infolist():
        name = item.filename.removesuffix(".npy")
        if name in members:
            raise ValueError(f"two arrays are called {name!r}")
        if item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name!r} is packed in a way that NumPy does not use")
        members[name] = item
    if members and min(item.header_offset for item in members.values()):
        raise ValueError("something stands before its arrays")
    if (count := _count_at_end(archive)) not in (len(members), 0xFFFF):  # the latter where it is counted elsewhere
        raise ValueError(f"{count} arrays, found {len(members)}")
    promised, limit = sum(item.file_size for item in members.values()), unpacked_limit(size)
    if promised > limit:
        raise ValueError(f"it promises {promised:,} bytes, more than {limit:,}; np.savez instead of savez_compressed")
    return members


def _count_at_end(archive: zipfile.ZipFile) -> int:
    """How many members the record at the end of an archive counts, which `zipfile` does not look at."""
    assert archive.fp is not None
    archive.fp.seek(-22, 2)
    record = archive.fp.read(22)
    if not record.startswith(b"PK\5\6"):
        raise ValueError("something stands behind its end")
    return int.from_bytes(record[10:12], "little")


def unpacked(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> bytes:
    """The bytes of a member, whose number and checksum are as promised."""
    with archive.open(item) as file:
        data = drained(file, item.file_size)
    if len(data) != item.file_size:
        raise ValueError(f"{item.file_size:,} bytes of {item.filename!r}, found {len(data):,}")
    return data


def member_header(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> Header:
    """The header of a member; it promises what the archive says that the member has."""
    with archive.open(item) as file:
        header = read_header(file.read(1 << 14))
    if header.start + header.size != item.file_size:
        raise ValueError(f"{header.start + header.size:,} bytes for {header.shape}, found {item.file_size:,}")
    return header


def npz_record(
    path: PathLike, *, features: str | None = None, targets: str | None = None, **checks: Any
) -> DatasetRecord:
    """The record of an `.npz` file, whose arrays are named as usual (x and y, x_train ...) or by the options."""
    arrays = read_npz(path, **checks)
    if features is None and targets is None and set(_SPLIT) <= set(arrays):
        x_train, y_train, x_test, y_test = (arrays[name] for name in _SPLIT)
        parts = {"train": np.arange(len(x_train)), "test": np.arange(len(x_train), len(x_train) + len(x_test))}
        x, y = np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test])
        return DatasetRecord(x, y, str(path), parts=parts)
    if features is None:
        known = [pair for pair in _PAIRS if set(pair) <= set(arrays)]
        if len(arrays) == 1:
            features = next(iter(arrays))
        elif known:
            features, targets = known[0][0], targets or known[0][1]
        else:
            raise InputError(
                f"load: {str(path)!r} holds {', '.join(map(repr, arrays)) or 'nothing'}; which are the features?",
                "load(path, features='name', targets='name')",
            )
    for name in (features, targets):
        if name is not None and name not in arrays:
            raise InputError(f"load: no array {name!r} in {str(path)!r}.", f"one of {', '.join(map(repr, arrays))}")
    return DatasetRecord(arrays[features], None if targets is None else arrays[targets], str(path))
