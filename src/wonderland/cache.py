"""Compiled code kept on disk, so that a program that ran before starts at once.

    wl.cache.folder()     where it is: WONDERLAND_CACHE, or the user's cache folder; WONDERLAND_CACHE=off keeps nothing
    wl.cache.info()       how much there is, and why nothing is kept if that is so
    wl.cache.clear()      remove all of it

What is read here is executed, so it is trusted only where nobody else can have written it (`core/own_folders.py`): a
folder or file of another user, or that others may write to, is not used. A file is named by all that it depends on
(what it computes, the processor, the versions of the compiler) and begins with a checksum of name and contents; one
that is damaged, exchanged or unreadable is compiled anew. Files are written under another name and then renamed, so
two processes never see half of one. Where a file cannot be written (the disk is full, say), things go on without. The
files that nobody used for longest go when the folder grows beyond LIMIT.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from typing import NamedTuple

from .core.context import user_level
from .core.own_folders import PART, Entry, OwnFolder, Untrusted

__all__ = ["CacheWarning", "Info", "clear", "folder", "info", "read", "size", "write"]

LIMIT = 256 * 2**20  # bytes of all files together
SLACK = 16  # a process looks at the size of the folder when it has written this part of the limit
BLOCK = 4096  # bytes: what a file takes at least
STALE = 3600  # seconds after which a file that is still being written is one that a dead process left
SUFFIX = ".wlc"
_CHECKSUM = hashlib.sha256().digest_size

_warned: set[str] = set()  # the folders that the user has been told about
_unwatched = 0  # bytes that may still be written until the size of the folder is looked at
_failure = ""  # why the last file could not be written


class CacheWarning(UserWarning):
    """A folder of compiled code that is not used, because somebody else could have put something there."""


class Info(NamedTuple):
    """The cache: its folder (None if nothing is kept), its files, and what stands in the way, if something does."""

    folder: str | None
    files: int
    bytes: int
    limit: int
    problem: str | None


def folder() -> str | None:
    """Where compiled code is kept; None if it is not kept (`wl.cache.info().problem` says why).

    >>> import os, wonderland as wl
    >>> wl.cache.folder() is None or os.path.isabs(wl.cache.folder())
    True
    """
    return info().folder


def info() -> Info:
    """What is kept, and why nothing is if that is so.

    >>> import wonderland as wl
    >>> wl.cache.info().bytes <= wl.cache.info().limit
    True
    """
    path, problem = _wanted()
    entries: list[Entry] = []
    if path is not None:
        try:
            with OwnFolder(path) as own:
                entries = _entries(own)
        except Untrusted as error:
            path, problem = None, f"{error}; {error.remedy}"
        except FileNotFoundError:
            problem = _failure or None  # it is made when there is something to keep
        except OSError as error:
            path, problem = None, str(error)
        else:
            problem = _failure or None
    return Info(path, len(entries), sum(_taken(e.size) for e in entries), LIMIT, problem)


def size() -> int:
    """How many bytes the cache takes on disk."""
    return info().bytes


def clear() -> None:
    """Remove all compiled code from disk."""
    own = _open()
    if own is not None:
        with own:
            for entry in _entries(own):
                own.remove(entry.name)


def read(name: str) -> bytes | None:
    """The contents stored under a name; None if there are none, or they are damaged or not to be trusted."""
    own = _open()
    if own is None:
        return None
    with own:
        try:
            stored = own.read(name + SUFFIX, LIMIT)
        except (OSError, Untrusted):  # a file that is not trusted is replaced by the next that is written
            return None
        checksum, contents = stored[:_CHECKSUM], stored[_CHECKSUM:]
        if not contents or _digest(name, contents) != checksum:
            own.remove(name + SUFFIX)
            return None
        return contents


def write(name: str, contents: bytes) -> None:
    """Store contents under a name. A folder that cannot be written to is no error: the cache only saves time."""
    global _unwatched, _failure
    if not contents or len(contents) > LIMIT // SLACK:  # one file does not push all others out
        return
    own = _open(make=True)
    if own is None:
        return
    with own:
        try:
            own.write(name + SUFFIX, _digest(name, contents) + contents)
            _failure = ""
        except OSError as error:
            _failure = f"the last file could not be written: {error.strerror}"
            return
        # looking at all files for each that is written would take quadratic time
        _unwatched -= _taken(_CHECKSUM + len(contents))
        if _unwatched < 0:
            _unwatched = LIMIT // SLACK
            _prune(own, LIMIT - _unwatched)


def _wanted() -> tuple[str | None, str | None]:
    """The folder that the environment asks for, or why there is none."""
    chosen = os.environ.get("WONDERLAND_CACHE", "")
    if chosen.lower() == "off":
        return None, "WONDERLAND_CACHE is off"
    if chosen:
        path, source = os.path.expanduser(chosen), f"WONDERLAND_CACHE is {chosen!r}"
    elif base := os.environ.get("XDG_CACHE_HOME"):
        path, source = os.path.join(base, "wonderland"), f"XDG_CACHE_HOME is {base!r}"
    else:
        home = os.path.expanduser("~")
        path, source = os.path.join(home, ".cache", "wonderland"), f"the home folder is {home!r}"
    if not os.path.isabs(path):  # the current folder may be anybody's
        return None, f"{source}, which is no absolute path"
    return os.path.normpath(path), None


def _open(make: bool = False) -> OwnFolder | None:
    """The folder, if there is one that can be used."""
    global _failure
    path, problem = _wanted()
    if path is None:
        if os.environ.get("WONDERLAND_CACHE", "off").lower() not in ("off", ""):  # the user asked for it
            _warn(os.environ["WONDERLAND_CACHE"], str(problem), "WONDERLAND_CACHE with an absolute path, or off")
        return None
    try:
        return OwnFolder(path, make=make)
    except Untrusted as error:
        _warn(path, str(error), f"{error.remedy}, or set WONDERLAND_CACHE to another folder or to off")
    except OSError as error:
        if make:
            _failure = f"{path} cannot be made or opened: {error.strerror}"
    return None


def _warn(path: str, problem: str, remedy: str) -> None:
    """Once for each folder: what is asked for every routine would otherwise be said for every routine."""
    if path not in _warned:
        _warned.add(path)
        text = f"compiled code is executed, so {path} is not used as its cache: {problem}.\n  try: {remedy}"
        warnings.warn(text, CacheWarning, stacklevel=user_level())


def _digest(name: str, contents: bytes) -> bytes:
    """The checksum of a file: of its name, too, so that one cannot stand in for another."""
    return hashlib.sha256(f"wonderland cache\n{len(name)} {name}\n".encode() + contents).digest()


def _taken(size: int) -> int:
    """Bytes on disk."""
    return -(-size // BLOCK) * BLOCK


def _entries(own: OwnFolder) -> list[Entry]:
    """Our files, the one that was not used for longest first."""
    return sorted((e for e in own.entries() if e.name.endswith(SUFFIX) or _partial(e)), key=lambda e: e.used)


def _partial(entry: Entry) -> bool:
    """Whether a file is still being written, or was when its process died."""
    return entry.name.endswith(PART) and f"{SUFFIX}." in entry.name


def _prune(own: OwnFolder, most: int) -> None:
    """Remove what dead processes left, and the files that nobody used for longest, until `most` bytes are left."""
    entries = _entries(own)
    total = sum(_taken(entry.size) for entry in entries)
    now = time.time()
    for entry in entries:
        if total > most or (_partial(entry) and now - entry.used > STALE):
            own.remove(entry.name)
            total -= _taken(entry.size)
