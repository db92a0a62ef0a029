"""What is going on right now: which interpreter runs, with which settings, inside which modules, in which pass.

It belongs to the context (`contextvars`): a thread begins with none of it, an asyncio task with what was there when it
was made, and what one of them changes the others never see. Only the modules are a thread's.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy

if TYPE_CHECKING:
    from .cell import Cell
    from .dtypes import DType
    from .primitive import Primitive
    from .tensor import Tensor
    from .typing import Array

PACKAGE = os.path.dirname(os.path.dirname(__file__))
# Files whose frames are not the user's: the package, and what stands between it and the user (decorators,
# `with`, and NumPy when its functions are called with tensors).
OURS = (PACKAGE + os.sep, contextlib.__file__, functools.__file__, "<frozen")
NUMPY = os.path.dirname(numpy.__file__) + os.sep
NOT_THE_USERS = (*OURS, NUMPY)
# What is computed; for a derivative followed by ", derivative of " and the name of the operation.
FORWARD, FORWARD_MODE, BACKWARD = "forward pass", "forward-mode pass", "backward pass"

P = ParamSpec("P")
Made = TypeVar("Made")

# Every recorded operation gets the next number: walking numbers downwards is a reverse topological order.
next_order = itertools.count().__next__


class Trace(Protocol):
    """An interpreter, see core/interpreter.py."""

    @property
    def parent(self) -> Trace | None: ...

    @property
    def staged(self) -> bool: ...

    @property
    def concrete(self) -> bool: ...

    def process(self, primitive: Primitive, args: Sequence[Tensor], params: dict[str, object], /) -> Any: ...
    def read(self, cell: Cell, value: Tensor, /) -> Tensor: ...
    def note_write(self, cell: Cell, /) -> None: ...
    def note_create(self, cell: Cell, /) -> None: ...


class Group(Protocol):
    """Processes that compute together, see distributed/group.py."""

    rank: int
    size: int

    def sum(self, x: Array, /) -> Array: ...


class Named(Protocol):
    """A module, for what it is called."""

    def named_modules(self) -> Iterable[tuple[str, object]]: ...


class Choice(NamedTuple):
    """A setting that was chosen: by a `with` block, or (owner None) until it is chosen anew."""

    owner: object
    name: str
    value: Any


class Settings:
    """What was chosen with `no_grad`, `using_backend` and relatives, see core/settings.py. The last choice counts."""

    __slots__ = (
        "autocast",
        "backend",
        "choices",
        "debug",
        "device",
        "fill",
        "grad_enabled",
        "group",
        "key",
        "strict_broadcast",
        "traced",
    )

    def __init__(self, choices: tuple[Choice, ...] = ()) -> None:
        chosen = {choice.name: choice.value for choice in choices}
        self.choices = choices
        self.key = tuple(chosen.items())  # the same for settings that are the same
        # whether tensors that require gradients record what happens to them
        self.grad_enabled: bool = chosen.get("grad_enabled", True)
        # the engine that runs graphs, see `wonderland.engines.choosing`; None: the default
        self.backend: str | None
        # where it runs them if it has devices, see `wonderland.engines.devices`; None: where their values are
        self.device: str | None
        self.backend, self.device = chosen.get("backend", (None, None))
        # whether accidental broadcasting is refused, see `wonderland.shape`
        self.strict_broadcast: bool = chosen.get("strict_broadcast", False)
        # a function called with every computed value, see `wonderland.debug`
        self.debug: Callable[..., None] | None = chosen.get("debug")
        # the byte that memory holds before a compiled program runs, see `wonderland.debug`
        self.fill: int | None = chosen.get("fill")
        # the type of low precision that products are computed in, see `wonderland.autocast`
        self.autocast: DType | None = chosen.get("autocast")
        # the processes of which each has a part of the batch, see `wonderland.distributed`
        self.group: Group | None = chosen.get("group")
        # what a traced function depends on
        self.traced = (self.strict_broadcast, self.autocast, self.group)


DEFAULTS = Settings()


class Scope:
    """Stands for an outermost transformation: what is put into cells inside it belongs to it, see `Cell`."""

    __slots__ = ()


class State:
    """What runs in a context. It is replaced and never changed, so a task that inherits it goes its own way."""

    __slots__ = ("key", "outside", "plain", "scope", "settings", "trace")

    def __init__(
        self,
        trace: Trace | None = None,  # the current interpreter; None means: compute at once with NumPy
        scope: Scope | None = None,  # None: outside of all transformations
        settings: Settings = DEFAULTS,
    ) -> None:
        self.trace = trace
        self.scope = scope
        self.settings = settings
        # whether operations on plain tensors may skip all bookkeeping
        self.plain: bool = (
            (trace is None or not trace.staged) and settings.debug is None and not settings.strict_broadcast
        )
        # outside of transformations the same for states that are the same, such as those in every `with wl.no_grad()`
        self.key = settings.key if trace is None and scope is None else None
        self.outside: State | None = None  # the same under the parent of the interpreter, see `step_out`


STATE: ContextVar[State] = ContextVar("wonderland", default=State())  # noqa: B039 - never changed
current = STATE.get  # as cheap as an attribute: every operation asks
_replace = STATE.set
_replace(current())  # Python finds what was set faster than a default


def enter(trace: Trace | None) -> State:
    """Begin a transformation, whose interpreter is `trace`. Returns the state before, for `leave`."""
    before = current()
    _replace(State(trace, before.scope or Scope(), before.settings))
    return before


def switch(trace: Trace | None) -> State:
    """Make `trace` the interpreter for a while. Returns the state before, for `leave`."""
    before = current()
    _replace(State(trace, before.scope, before.settings))
    return before


def step_out() -> State:
    """Make the parent of the current interpreter the current one: it runs the rules. For `leave`, the state before."""
    before = current()
    outside = before.outside
    if outside is None:  # remembered, as every operation inside a transformation goes this way
        assert before.trace is not None
        outside = before.outside = State(before.trace.parent, before.scope, before.settings)
    _replace(outside)
    return before


def leave(before: State) -> None:
    """Go back to the interpreter before. Settings that were chosen meanwhile stay."""
    settings = current().settings
    _replace(before if settings is before.settings else State(before.trace, before.scope, settings))


def choose(choices: tuple[Choice, ...]) -> None:
    """Other settings for this context."""
    now = current()
    _replace(State(now.trace, now.scope, Settings(choices) if choices else DEFAULTS))


class _Modules(threading.local):
    """The modules that a thread is calling, outermost first.

    Those of its tasks are never mixed up: what waits for another task is not inside the call of a module.
    """

    def __init__(self) -> None:
        self.called: list[Named] = []


modules = _Modules()


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


_users: dict[str, bool] = {}  # whether a file is the user's


def user_source(until: FrameType | None = None) -> Source | None:
    """The innermost line on the stack that is not ours; only those inside the frame `until` count."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not until:
        name = frame.f_code.co_filename
        users = _users.get(name)  # every traced operation asks
        if users is None:
            users = _users[name] = not name.startswith(NOT_THE_USERS)
        if users:
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
    stack = modules.called
    if not stack:
        return None
    root, current = stack[0], stack[-1]
    label = type(current).__name__
    name = "" if current is root else _path_in(root, current)
    return f"{name} ({label})" if name else label


# the root, the version, paths by id
_known_paths: tuple[Callable[[], object], int, dict[int, str]] = (lambda: None, 0, {})


def _path_in(root: Named, module: object) -> str:
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


class Pass(NamedTuple):
    """What is being computed, such as "backward pass, derivative of sqrt", and where that was written, if earlier."""

    phase: str = FORWARD
    origin: Origin | None = None


current_pass: ContextVar[Pass] = ContextVar("pass", default=Pass())  # noqa: B039 - a tuple


class at:  # noqa: N801 - reads as `with at(source, module, phase):`
    """Carries out what was written elsewhere: in a traced function, or before `backward()`.

    Inside, errors and debugging point to that place, unless the user's own code is called again.
    """

    __slots__ = ("before", "place")

    def __init__(self, source: Source | None, module: str | None, phase: str) -> None:
        self.place = (source, module, phase)

    def __enter__(self) -> None:
        source, module, phase = self.place
        self.before = current_pass.get()
        current_pass.set(Pass(phase, Origin(source, module, sys._getframe(1))))

    def __exit__(self, *exception: object) -> None:
        current_pass.set(self.before)


def place() -> Place:
    """The place of the operation that is being carried out."""
    phase, origin = current_pass.get()
    if origin is None:
        return Place(user_source(), module_path(), phase)
    source = user_source(until=origin.frame) or origin.source or user_source()
    return Place(source, origin.module or module_path(), phase)


def uncollected(f: Callable[..., Made], *args: object) -> Made:
    """f(*args) without garbage collection: while a function is traced and compiled, all that is made stays."""
    if not gc.isenabled():
        return f(*args)
    try:
        gc.disable()
        return f(*args)
    finally:
        gc.enable()


# Goes through an iterator in one call into C. If nothing written in Python is called on the way, all of it is done: it
# is between two instructions of Python that signals are heard and other threads take over.
exhaust = deque[Any](maxlen=0).extend
_VARIABLES: tuple[ContextVar[Any], ...] = (STATE, current_pass)


def restoring(f: Callable[P, Made]) -> Callable[P, Made]:
    """The function, after whose failure the context is as it was before.

    It has its own way to clean up behind itself. But an interrupt (Ctrl-C) may come in the middle of that, and what is
    left of a transformation that has ended would break all that follows.
    """

    @functools.wraps(f)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Made:
        back = map(ContextVar.set, _VARIABLES, [*map(ContextVar.get, _VARIABLES)])
        called = modules.called
        depth = len(called)
        try:
            return f(*args, **kwargs)
        except BaseException:
            del called[depth:]
            exhaust(back)  # nothing is called before this, so no signal is heard before it either
            raise

    return wrapper
