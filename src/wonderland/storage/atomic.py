"""Writing a file so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterable

from ..core.errors import FileError


def write_atomically(path: str | os.PathLike[str], parts: bytes | str | Iterable[bytes]) -> None:
    """Write bytes (or several pieces of them, or text) to `path`; until all of it is on the disk, the old file stays.

    >>> import os, tempfile
    >>> from wonderland.storage import write_atomically
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "note.txt")
    ...     write_atomically(path, "first")
    ...     write_atomically(path, "second")
    ...     os.path.getsize(path), os.listdir(folder)
    (6, ['note.txt'])

    The pieces go to a file beside it, which is flushed to the disk and then renamed; a crash at any moment leaves the
    old file or the new one. A disk that is full or a folder that is read-only raises `FileError`, and nothing changes.
    """
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    if isinstance(parts, str):
        parts = parts.encode("utf-8")
    pieces = [parts] if isinstance(parts, bytes) else parts
    temporary = None
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.", suffix=".part")
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # a temporary file is private, this one is meant to be read
        os.replace(temporary, path)
        temporary = None
        _flush_folder(folder)
    except OSError as error:
        what = f"cannot write {path}: {_reason(error)}. What was there before is unchanged."
        raise FileError(what, _remedy(error)) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):  # the reason for being here is already on its way to the caller
                os.remove(temporary)


def _flush_folder(folder: str) -> None:
    """Put the renaming itself on the disk, where the system lets a folder be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _reason(error: OSError) -> str:
    return "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some space, or choose a folder on another disk"
    return "a folder that exists and that you may write to"
