"""Tracebacks that end in the user's own line: frames inside the package are left out when an error is shown.

Only what is printed for an exception that nobody caught changes (`sys.excepthook`, `threading.excepthook`,
IPython's handler); `pdb`, test runners and `except` see every frame. WONDERLAND_TRACEBACK=full shows all.
"""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import Any

from .advice import advise
from .context import NOT_THE_USERS, NUMPY, OURS
from .errors import WonderlandError

NOTE = "  (frames inside wonderland are hidden; set WONDERLAND_TRACEBACK=full to see them)"


def install() -> None:
    """Put the filter in front of the hooks that show exceptions; a second time changes nothing."""
    if getattr(sys.excepthook, "shortens", False):
        return
    before, before_in_threads = sys.excepthook, threading.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        advise(error)
        shorten(error)
        before(kind, error, error.__traceback__)

    def show_in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            advise(args.exc_value)
            shorten(args.exc_value)
            args = threading.ExceptHookArgs((args.exc_type, args.exc_value, args.exc_value.__traceback__, args.thread))
        before_in_threads(args)

    show.shortens = True  # type: ignore[attr-defined]  # functions take attributes
    sys.excepthook = show
    threading.excepthook = show_in_thread
    # IPython catches exceptions itself; its function is in the builtins while it runs
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) is not None:
        shell.set_custom_exc((WonderlandError, TypeError, ImportError), _show_in_ipython)


def _show_in_ipython(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    advise(error)
    shorten(error)
    shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)


def shorten(error: BaseException) -> None:
    """Leave the package's frames out of the tracebacks of an error and of those that it came from."""
    if os.environ.get("WONDERLAND_TRACEBACK") == "full":
        return
    current: BaseException | None = error
    seen: set[int] = set()
    hidden = False
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = _frames(current.__traceback__)
        hide = NOT_THE_USERS if isinstance(current, WonderlandError) else OURS
        kept = [f for f in frames if not _file(f).startswith(hide)]
        if len(kept) < len(frames) and _meant_for_the_user(current, frames):
            current.__traceback__ = _linked(kept)
            hidden = True
        cause = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        if isinstance(current, WonderlandError) and cause is not None and _only_ours(cause):
            # NumPy's own complaint, which the message has already explained
            current.__cause__, current.__suppress_context__ = None, True
            hidden, cause = True, None
        current = cause
    if hidden and NOTE not in getattr(error, "__notes__", ()):
        error.add_note(NOTE)


def _meant_for_the_user(error: BaseException, frames: list[TracebackType]) -> bool:
    """Whether the error is about the user's program.

    One that our own code (or NumPy, called by it) ran into is a defect of the package, and then its frames
    are what a report needs.
    """
    if isinstance(error, WonderlandError):
        return True
    inner = len(frames) - 1
    while inner >= 0 and not _file(frames[inner]).startswith(OURS):
        inner -= 1
    return inner + 1 < len(frames) and not _file(frames[inner + 1]).startswith(NUMPY)


def _only_ours(error: BaseException) -> bool:
    """Whether an error was raised and caught inside the package."""
    return all(_file(f).startswith(NOT_THE_USERS) for f in _frames(error.__traceback__))


def _file(traceback: TracebackType) -> str:
    return traceback.tb_frame.f_code.co_filename


def _frames(traceback: TracebackType | None) -> list[TracebackType]:
    found = []
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found


def _linked(frames: list[TracebackType]) -> TracebackType | None:
    result: TracebackType | None = None
    for f in reversed(frames):
        result = TracebackType(result, f.tb_frame, f.tb_lasti, f.tb_lineno)
    return result
