"""What a thread is doing right now: which interpreter runs, inside which modules, in which pass."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

import numpy

# Files whose frames are not the user's: the package, and what stands between it and the user (decorators,
# `with`, and NumPy when its functions are called with tensors).
OURS = (os.path.dirname(__file__) + os.sep, contextlib.__file__, functools.__file__, "<frozen")
NUMPY = os.path.dirname(numpy.__file__) + os.sep
NOT_THE_USERS = (*OURS, NUMPY)
# What is computed; for a derivative followed by ", derivative of " and the name of the operation.
FORWARD, FORWARD_MODE, BACKWARD = "forward pass", "forward-mode pass", "backward pass"

# Every recorded operation gets the next number: walking numbers downwards is a reverse topological order.
next_order = itertools.count().__next__


class State(threading.local):
    """The state of one thread. `plain` is true when operations on plain tensors may skip all bookkeeping."""

    trace: Any = None  # the current interpreter; None means: compute at once with NumPy
    plain: bool = True
    debug: Any = None  # a function called with every computed value, see `wonderland.debug`
    grad_enabled: bool = True  # whether tensors that require gradients record what happens to them
    backend: str | None = None  # the engine that runs graphs, see `wonderland.backends`; None: the default
    strict_broadcast: bool = False  # whether accidental broadcasting is refused, see `wonderland.shape`
    fill: int | None = None  # the byte that memory holds before a compiled program runs, see `wonderland.debug`
    phase: str = FORWARD  # what is being computed, such as "backward pass, derivative of sqrt"
    origin: Origin | None = None  # where that was written, if it was earlier: see `at`

    def __init__(self) -> None:
        self.modules: list[Any] = []  # the modules being called, outermost first


state = State()


def switch(trace: Any) -> Any:
    """Make `trace` the current interpreter and return the previous one."""
    previous = state.trace
    state.trace = trace
    state.plain = (trace is None or not trace.staged) and state.debug is None and not state.strict_broadcast
    return previous


@contextlib.contextmanager
def lenient() -> Iterator[None]:
    """Inside, broadcasting is not checked: what is carried out is not as the user wrote it."""
    before, state.strict_broadcast = state.strict_broadcast, False
    switch(state.trace)
    try:
        yield
    finally:
        state.strict_broadcast = before
        switch(state.trace)


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


def user_source(until: FrameType | None = None) -> Source | None:
    """The innermost line on the stack that is not ours; only those inside the frame `until` count."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not until:
        name = frame.f_code.co_filename
        if not name.startswith(NOT_THE_USERS):
            return Source(name, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def user_call() -> str | None:
    """The name of our function that the user's line called; None for operators and the like."""
    frame: FrameType | None = sys._getframe(1)
    outermost = None
    while frame is not None and frame.f_code.co_filename.startswith(NOT_THE_USERS):
        if frame.f_code.co_filename.startswith(OURS[0]):
            outermost = frame.f_code
        frame = frame.f_back
    if outermost is None or outermost.co_name.startswith(("_", "<")) or "<locals>" in outermost.co_qualname:
        return None
    return outermost.co_name


def user_level() -> int:
    """The `stacklevel` with which the caller's `warnings.warn` points at the user's own line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(NOT_THE_USERS):
        level, frame = level + 1, frame.f_back
    return level


def module_path() -> str | None:
    """The path of the module being called, as `blocks.3.attention (SelfAttention)`; None outside modules."""
    stack = state.modules
    if not stack:
        return None
    root, current = stack[0], stack[-1]
    label = type(current).__name__
    name = "" if current is root else _path_in(root, current)
    return f"{name} ({label})" if name else label


_known_paths: tuple[Any, int, dict[int, str]] = (lambda: None, 0, {})  # the root, the version, paths by id


def _path_in(root: Any, module: Any) -> str:
    """The path of a module in another one; remembered, as every traced operation asks for it."""
    global _known_paths
    reference, version, paths = _known_paths
    if reference() is not root or version != structure_version() or id(module) not in paths:
        paths = {id(m): path for path, m in root.named_modules()}
        _known_paths = (weakref.ref(root), structure_version(), paths)
    return paths.get(id(module), "")


_next_version = itertools.count(1).__next__
_version = 0  # of all modules in all threads


def structure_version() -> int:
    """Grows whenever an attribute of some module is set, a mode is changed or a parameter is frozen.

    By it `jit` knows that a trace may be stale. A new value *in* a parameter or a buffer does not count: a trace reads
    cells when it runs.
    """
    return _version


def note_structure_change() -> None:
    """Some module has changed other than in its cells."""
    global _version
    _version = _next_version()


class Place(NamedTuple):
    """An operation as the user knows it: the line, the path of the module, and what was being computed."""

    source: Source | None
    module: str | None
    phase: str


class Origin(NamedTuple):
    """Where an operation was written, and the frame that carries it out."""

    source: Source | None
    module: str | None
    frame: FrameType


class at:  # noqa: N801 - reads as `with at(source, module, phase):`
    """Carries out what was written elsewhere: in a traced function, or before `backward()`.

    Inside, errors and debugging point to that place, unless the user's own code is called again.
    """

    __slots__ = ("before", "place")

    def __init__(self, source: Source | None, module: str | None, phase: str) -> None:
        self.place = (source, module, phase)

    def __enter__(self) -> None:
        source, module, phase = self.place
        self.before = (state.origin, state.phase)
        state.origin, state.phase = Origin(source, module, sys._getframe(1)), phase

    def __exit__(self, *exception: Any) -> None:
        state.origin, state.phase = self.before


def place() -> Place:
    """The place of the operation that is being carried out."""
    origin = state.origin
    if origin is None:
        return Place(user_source(), module_path(), state.phase)
    source = user_source(until=origin.frame) or origin.source or user_source()
    return Place(source, origin.module or module_path(), state.phase)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without garbage collection: while a function is traced and compiled, all that is made stays."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
