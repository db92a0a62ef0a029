"""Compiled code kept on disk, so that a program that ran before starts at once.

    wl.cache.folder()     where it is: WONDERLAND_CACHE, or the user's cache folder; WONDERLAND_CACHE=off keeps nothing
    wl.cache.clear()      remove all of it

A file is named by everything that the code depends on (its LLVM text, the processor, the compiler's version) and begins
with a checksum of its contents; one that is damaged, foreign or unreadable is compiled anew. Files are written under
another name and then renamed, so two processes never see half of one. The oldest go when the folder grows beyond LIMIT.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile

__all__ = ["clear", "folder", "read", "size", "write"]

LIMIT = 256 * 2**20  # bytes
SUFFIX = ".wlc"
_CHECKSUM = hashlib.sha256().digest_size


def folder() -> str | None:
    """Where compiled code is kept; None if it is not kept.

    >>> import os, wonderland as wl
    >>> wl.cache.folder() is None or os.path.isabs(wl.cache.folder())
    True
    """
    chosen = os.environ.get("WONDERLAND_CACHE", "")
    if chosen.lower() == "off":
        return None
    if chosen:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(base), "wonderland")


def _path(name: str) -> str | None:
    where = folder()
    return None if where is None else os.path.join(where, name + SUFFIX)


def read(name: str) -> bytes | None:
    """The contents stored under a name; None if there are none, or they are damaged."""
    path = _path(name)
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            stored = file.read()
    except OSError:
        return None
    checksum, contents = stored[:_CHECKSUM], stored[_CHECKSUM:]
    if hashlib.sha256(contents).digest() != checksum:
        with contextlib.suppress(OSError):  # someone else may have removed it, or the folder is read-only
            os.remove(path)
        return None
    return contents


def write(name: str, contents: bytes) -> None:
    """Store contents under a name. A folder that cannot be written to is no error: the cache only saves time."""
    path = _path(name)
    if path is None:
        return
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(contents).digest() + contents)
            os.replace(temporary, path)
        except BaseException:
            os.remove(temporary)
            raise
    except OSError:
        return
    _prune()


def _entries() -> list[tuple[float, int, str]]:
    """(time, size, path) of every file, oldest first."""
    where = folder()
    found = []
    if not where:
        return []
    with contextlib.suppress(OSError), os.scandir(where) as entries:
        for entry in entries:
            if entry.name.endswith((SUFFIX, ".part")):
                with contextlib.suppress(OSError):  # another process may just have removed it
                    about = entry.stat()
                    found.append((about.st_mtime, about.st_size, entry.path))
    return sorted(found)


def size() -> int:
    """How many bytes the cache takes."""
    return sum(n for _, n, _ in _entries())


def _prune() -> None:
    entries = _entries()
    total = sum(n for _, n, _ in entries)
    for _, n, path in entries:
        if total <= LIMIT:
            break
        with contextlib.suppress(OSError):
            os.remove(path)
            total -= n


def clear() -> None:
    """Remove all compiled code from disk."""
    for _, _, path in _entries():
        with contextlib.suppress(OSError):
            os.remove(path)
