"""Folders whose files may be executed: nobody but the effective user can have written them.

A folder is opened once and its files are reached through that descriptor, so what was checked is what is used, whatever
happens to the names meanwhile. It must be a real folder (no symbolic link) that belongs to the effective user and that
neither its group nor others may write to; the same holds for each file. The folders above it must belong to the
user or the administrator, and others may write to them only where the sticky bit keeps names in place, as in /tmp.
Windows has no such bits: there the access rights of the user's profile protect the folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import secrets
import stat
from collections.abc import Iterator
from typing import NamedTuple

_DESCRIPTORS = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
# a pipe must not make us wait; a child that another thread starts must not get the descriptor
_SAFE = _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
PART = ".part"  # how the names of files end that are being written


class Untrusted(Exception):  # noqa: N818 - says what the folder is
    """A folder or file that somebody else may have written. `remedy` is what the user can do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


class Entry(NamedTuple):
    """A file of a folder: its name, its size, and when it was last used."""

    name: str
    size: int
    used: float


class OwnFolder:
    """A folder of the user's own, as a context manager. Raises Untrusted, or OSError where there is none.

    `make`: where it is missing, it is made, for the user alone.
    """

    def __init__(self, path: str, *, make: bool = False) -> None:
        self.path = path
        self._handle: int | None = None
        if hasattr(os, "geteuid"):
            _check_above(path)
        if make:
            _make(path)
        if not _DESCRIPTORS:
            os.stat(path)
            return
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _SAFE)
        except OSError:
            if os.path.islink(path):
                raise Untrusted(f"{path} is a symbolic link", "name the folder that it leads to") from None
            raise
        try:
            _check(os.fstat(self._handle), path)
        except BaseException:
            os.close(self._handle)
            raise

    def __enter__(self) -> OwnFolder:
        return self

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def _at(self, name: str) -> str:
        return name if self._handle is not None else os.path.join(self.path, name)

    def read(self, name: str, most: int) -> bytes:
        """The contents of a file; OSError if it has more than `most` bytes."""
        with os.fdopen(os.open(self._at(name), os.O_RDONLY | _SAFE, dir_fd=self._handle), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise OSError(errno.EINVAL, "not a file", name)
            _check(about, name)
            if about.st_size > most:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), name)
            return file.read(most + 1)

    def write(self, name: str, contents: bytes) -> None:
        """Write a file whole or not at all: under a name of its own first, which no other writer has."""
        temporary = f"{name}.{secrets.token_hex(8)}{PART}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
        handle = os.open(self._at(temporary), flags, 0o600, dir_fd=self._handle)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(contents)
            os.replace(self._at(temporary), self._at(name), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            self.remove(temporary)
            raise

    def remove(self, name: str) -> None:
        """Remove a file; that somebody else has done so, or that it cannot be done, is no error."""
        with contextlib.suppress(OSError):
            os.remove(self._at(name), dir_fd=self._handle)

    def entries(self) -> Iterator[Entry]:
        """All files that are really here; links and folders are not."""
        with os.scandir(self.path if self._handle is None else self._handle) as found:
            for entry in found:
                with contextlib.suppress(OSError):  # another process may just have removed it
                    if entry.is_file(follow_symlinks=False):
                        about = entry.stat(follow_symlinks=False)
                        yield Entry(entry.name, about.st_size, max(about.st_mtime, about.st_atime))


def _check(about: os.stat_result, what: str) -> None:
    if not hasattr(os, "geteuid"):
        return
    if about.st_uid != os.geteuid():
        reason = f"{what} belongs to user {about.st_uid}, and this process is user {os.geteuid()}"
        raise Untrusted(reason, "choose a folder of your own")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        reason = f"others than its owner may write to {what} (mode {stat.S_IMODE(about.st_mode):04o})"
        raise Untrusted(reason, f"chmod go-w {what}")


def _check_above(path: str) -> None:
    """Who may rename a folder above could put another one, of the same owner, in the place of this."""
    trusted = {os.geteuid(), 0, os.stat(os.sep).st_uid}  # in a user namespace the administrator has another number
    parent = os.path.dirname(path)
    for start in {parent, os.path.realpath(parent)}:
        for above in (start, *map(str, pathlib.Path(start).parents)):
            with contextlib.suppress(FileNotFoundError):
                about = os.stat(above)
                if about.st_uid not in trusted:
                    reason = f"{above}, above {path}, belongs to user {about.st_uid}"
                    raise Untrusted(reason, "choose a folder below one of your own")
                if about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX:
                    raise Untrusted(f"everybody may write to {above}, above {path}", f"chmod o-w {above}")


def _make(path: str) -> None:
    """Make a folder and those above it; none of them is open to others, whatever the process's mask."""
    if os.path.lexists(path):
        return
    if (parent := os.path.dirname(path)) != path:
        _make(parent)
    with contextlib.suppress(FileExistsError):  # another process may have been faster
        os.mkdir(path, 0o700)
