"""What a thread is doing right now: which interpreter runs, inside which modules, in which pass."""

from __future__ import annotations

import itertools
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = str(Path(__file__).parent)

# Every recorded operation gets the next number, so that walking numbers downwards is a reverse topological order.
next_order = itertools.count().__next__


class State(threading.local):
    """The state of one thread. `plain` is true when operations on plain tensors may skip all bookkeeping."""

    trace: Any = None  # the current interpreter; None means: compute at once with NumPy
    plain: bool = True
    debug: Any = None  # a function called with every computed value, see `wonderland.debug`
    grad_enabled: bool = True  # whether tensors that require gradients record what happens to them
    strict_broadcast: bool = False
    rule: str | None = None  # the primitive whose derivative is being computed
    backward: str | None = None  # the primitive whose adjoint is being computed

    def __init__(self) -> None:
        self.modules: list[Any] = []  # the modules being called, outermost first


state = State()


def switch(trace: Any) -> Any:
    """Make `trace` the current interpreter and return the previous one."""
    previous = state.trace
    state.trace = trace
    state.plain = (trace is None or not trace.staged) and state.debug is None
    return previous


class Source(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    def text(self) -> str:
        import linecache

        code = linecache.getline(self.file, self.line).strip()
        place = f"{self.file}:{self.line} in {self.function}"
        return f"{place}: {code}" if code else place


def user_source() -> Source | None:
    """The innermost line on the stack that is not ours."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) and not name.startswith("<frozen"):
            return Source(name, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def user_level() -> int:
    """The `stacklevel` with which the caller's `warnings.warn` points at the user's own line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def module_path() -> str | None:
    """The path of the module being called, as `blocks.3.attention (SelfAttention)`; None outside modules."""
    stack = state.modules
    if not stack:
        return None
    root, current = stack[0], stack[-1]
    names = [name for name, module in root.named_modules() if module is current]
    label = type(current).__name__
    if current is root or not names:
        return label
    return f"{names[0]} ({label})"
