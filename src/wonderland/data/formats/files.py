"""Files as checked bytes: that they exist, their size and hash when known, and gzip when it is gzip."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path
from typing import Any

from ...errors import InputError

GZIP = b"\x1f\x8b"


def as_path(name: str, path: Any) -> Path:
    """The path of something that exists."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{name}: a {type(path).__name__} is not a path.", "a string or a pathlib.Path")
    found = Path(path).expanduser()
    if not found.exists():
        raise InputError(f"{name}: there is no {str(found)!r}.", f"a path as seen from {os.getcwd()}")
    return found


def read_bytes(
    name: str, path: Any, expect_size: int | None = None, expect_sha256: str | None = None, unpack: bool = True
) -> bytes:
    """The content of a file, whose size and hash are those of the file as it lies on the disk. Gzip is undone.

    >>> read_bytes("demo", __file__)[:3]
    b'\"""'
    """
    where = as_path(name, path)
    if where.is_dir():
        raise InputError(f"{name}: {str(where)!r} is a folder.", "the path of a file")
    data = where.read_bytes()
    check_bytes(name, where, data, expect_size, expect_sha256)
    if unpack and data.startswith(GZIP):
        try:
            return gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise damaged(name, where, f"a whole gzip file, found {len(data):,} bytes that break off", error) from None
    return data


def check_bytes(name: str, path: Path, data: bytes, expect_size: int | None, expect_sha256: str | None) -> None:
    """Refuse content that is not what the caller knows it to be."""
    if expect_size is not None and len(data) != expect_size:
        raise damaged(name, path, f"{expect_size:,} bytes, found {len(data):,}")
    if expect_sha256 is not None and (found := hashlib.sha256(data).hexdigest()) != expect_sha256.lower():
        raise damaged(name, path, f"sha256 {expect_sha256}, found {found}")


def damaged(name: str, path: Any, expected: str, error: Exception | None = None) -> InputError:
    """The error for a file that is not what it should be."""
    reason = f" ({error})" if error is not None and str(error) else ""
    return InputError(
        f"{name}: {str(path)!r} is damaged or of another kind: expected {expected}{reason}.", "a fresh copy of the file"
    )
