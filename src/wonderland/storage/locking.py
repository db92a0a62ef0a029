"""A folder that one run at a time may write to: a lock of the operating system, which ends with the process.

The lock is on a small file in the folder. It belongs to the open file, not to what the file says, so a process that is
killed leaves no lock behind, and a second thread of the same process is refused like another process. The file names
the holder for messages, and goes when the lock is given back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import warnings
from collections.abc import Iterator

from ..core.errors import FileError

NAME = ".lock"
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
# what file systems answer that have no locks: some network ones, and some of containers
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
_PLACE = 1 << 30  # the byte that Windows locks; it need not exist, and the holder's name stays readable
_held: set[int] = set()


class LockWarning(UserWarning):
    """A folder on a file system without locks: that another run writes to it cannot be noticed."""


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a folder, which is made if need be; `FileError` at once if another run holds it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(folder):
    ...     try:
    ...         with locked(folder):
    ...             pass
    ...     except FileError as error:
    ...         print("in use" in str(error))
    True

    On a file system that has no locks there is a `LockWarning`, and no protection: a run is worth more than the lock.
    """
    folder = os.fspath(folder)
    path = os.path.join(folder, NAME)
    descriptor = _open(folder, path)
    _held.add(descriptor)
    try:
        with contextlib.suppress(OSError):  # a full disk: the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield
    finally:
        if descriptor in _held:  # not in a forked child, which has let go
            _held.discard(descriptor)
            with contextlib.suppress(OSError):  # on Windows an open file stays
                os.remove(path)
            os.close(descriptor)


def _open(folder: str, path: str) -> int:
    """The descriptor of the lock file, locked."""
    while True:
        try:
            os.makedirs(folder, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror}.", "a folder that you may write to") from None
        try:
            _lock(descriptor)
        except OSError as error:
            if error.errno in _TAKEN:
                who = _name(descriptor)
                os.close(descriptor)
                raise FileError(
                    f"{folder} is in use by another run ({who}).", "wait until it ends, or take another folder"
                ) from None
            if error.errno not in _NO_LOCKS:
                os.close(descriptor)
                raise FileError(f"cannot lock {path}: {error.strerror}.", "a folder that you may write to") from None
            warnings.warn(
                f"{folder} is on a file system without locks ({error.strerror}): see to it that no other run uses it.",
                LockWarning,
                stacklevel=4,
            )
        # the one before may have removed the file between our opening and locking it; a lock on that is worth nothing
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)


def _name(descriptor: int) -> str:
    with contextlib.suppress(OSError, ValueError):
        os.lseek(descriptor, 0, os.SEEK_SET)
        if text := os.read(descriptor, 300).decode("utf-8").strip():
            return text.splitlines()[0]
    return "another process"


def _lock(descriptor: int) -> None:
    """Lock an open file or raise OSError, without waiting."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _PLACE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _let_go() -> None:
    """In a forked child, such as a worker that loads data: it must not keep the lock when the run is killed."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
