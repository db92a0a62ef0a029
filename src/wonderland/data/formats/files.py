"""Files as checked bytes: that they exist, their size and hash when known, and gzip when it is gzip."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from ...core.errors import FileError, InputError, SizeError
from ...core.typing import PathLike
from ...storage.bounds import LEAST_ARRAY, gunzip, gunzip_head, unpacked_limit

GZIP = b"\x1f\x8b"
_HEAD = 1 << 14  # bytes in which a header says how many there should be


def as_path(name: str, path: PathLike) -> Path:
    """The path of something that exists."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{name}: a {type(path).__name__} is not a path.", "a string or a pathlib.Path")
    try:
        found = Path(path).expanduser()
        missing = not os.path.exists(found) and not found.exists()  # the second says why, if there is a reason
    except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, a home that is not known ...
        raise InputError(f"{name}: {os.fspath(path)!r} is no path ({error}).", "the path of a file") from None
    if missing:
        raise InputError(f"{name}: there is no {str(found)!r}.", f"a path as seen from {os.getcwd()}")
    return found


def read_bytes(
    name: str,
    path: PathLike,
    expect_size: int | None = None,
    expect_sha256: str | None = None,
    unpack: bool = True,
    *,
    promised: Callable[[bytes], int] | None = None,
    least: int = LEAST_ARRAY,
) -> bytes:
    """The content of a file, whose size and hash are those of the file as it lies on the disk. Gzip is undone.

    >>> read_bytes("demo", __file__)[:3]
    b'\"""'

    What is packed unpacks to no more than `promised` says from its first bytes (ValueError: its header makes no sense),
    and within the limits of `storage.bounds`, where `least` bytes are always allowed.
    """
    where = as_path(name, path)
    if where.is_dir():
        raise InputError(f"{name}: {str(where)!r} is a folder.", "the path of a file")
    try:
        data = where.read_bytes()
    except OSError as error:
        raise FileError(f"{name}: cannot read {str(where)!r}: {error.strerror}.", "a file that you may read") from None
    except MemoryError:
        raise SizeError(f"{name}: {str(where)!r} does not fit into memory.", "wl.data.memory_map, or parts") from None
    check_bytes(name, where, data, expect_size, expect_sha256)
    return _unpacked(name, where, data, promised, least) if unpack and data.startswith(GZIP) else data


def _unpacked(name: str, path: Path, data: bytes, promised: Callable[[bytes], int] | None, least: int) -> bytes:
    limit = unpacked_limit(len(data), least)
    try:
        size = limit if promised is None else promised(gunzip_head(data, _HEAD))
        if size > limit:
            raise ValueError(f"its header promises {size:,} bytes, more than {limit:,}")
        return gunzip(data, size)
    except ValueError as error:
        raise damaged(name, path, f"a whole gzip file within {limit:,} bytes", error) from None


def check_bytes(name: str, path: Path, data: bytes, expect_size: int | None, expect_sha256: str | None) -> None:
    """Refuse content that is not what the caller knows it to be."""
    if expect_size is not None and len(data) != expect_size:
        raise damaged(name, path, f"{expect_size:,} bytes, found {len(data):,}")
    if expect_sha256 is not None and (found := hashlib.sha256(data).hexdigest()) != expect_sha256.lower():
        raise damaged(name, path, f"sha256 {expect_sha256}, found {found}")


def damaged(name: str, path: PathLike, expected: str, error: Exception | None = None) -> InputError:
    """The error for a file that is not what it should be."""
    reason = f" ({error})" if error is not None and str(error) else ""
    return InputError(
        f"{name}: {str(path)!r} is damaged or of another kind: expected {expected}{reason}.", "a fresh copy of the file"
    )
