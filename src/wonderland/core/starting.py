"""Ctrl-C while the command `wonderland` starts or ends: one line and exit code 130, and no traceback of imports.

The package is imported before the command runs, and NumPy with it, which takes longer than a user may want to wait. An
exception in the middle of an import could be swallowed or reported by whatever is being imported, so the process ends
where it is: nothing is open yet, or all is closed again. While the command runs, Ctrl-C is Python's usual exception,
which it handles itself. A program that imports the package is left alone.
"""

from __future__ import annotations

import contextlib
import os
import sys
from types import FrameType, TracebackType

INTERRUPTED = 130  # the exit code of a program that Ctrl-C has ended: 128 and the number of the signal


def is_command() -> bool:
    """Whether this process is `wonderland ...` or `python -m wonderland ...`, rather than a program that imports it."""
    first = (getattr(sys, "argv", None) or [""])[0]
    if first == "-m":  # what it is while the package is being imported for that
        return "wonderland" in sys.orig_argv or "-mwonderland" in sys.orig_argv
    return os.path.splitext(os.path.basename(first))[0] == "wonderland"


def leave_at_once() -> None:
    """From now on Ctrl-C ends the process where it is. One that ignores Ctrl-C, in the background, goes on doing so."""
    import signal  # only the command pays for it

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, _leave)


def raise_again() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt."""
    import signal

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"\nwonderland: interrupted\n")
    os._exit(INTERRUPTED)


def _without_traceback(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Shows what nobody has caught, but for a Ctrl-C that came between two of the states above."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)


if is_command():
    leave_at_once()
    sys.excepthook = _without_traceback
