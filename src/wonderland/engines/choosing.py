"""Which engine runs graphs: NumPy, the reference, native code, or XLA. The results agree; only the speed differs.

    wl.set_backend("numpy")                  from now on
    wl.set_backend("xla", device="gpu:1")    on one of wl.devices(); else where the values are
    with wl.using_backend("numpy"): ...      for a while
    WONDERLAND_BACKEND=numpy                 for a whole program; WONDERLAND_DEVICE=gpu:1

Native code is the default. It needs llvmlite, on Linux or macOS; elsewhere NumPy runs graphs, and a warning says so
once. XLA also runs on accelerators; it needs `pip install wonderland[xla]`, see docs/scale.md. Outside `jit` operations
run with NumPy, but for what is compiled when it comes again (docs/compiler.md).
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Collection

from ..core.context import current
from ..core.errors import InputError, SizeError, WonderlandError
from ..core.handover import Delivery
from ..core.settings import set_from_now_on, setting
from ..ir.graph import Graph
from .engine import TABLE, Array, Program, engine, far_engine

QUICKEST = "native"


class CompileWarning(UserWarning):
    """A graph could not be compiled and runs with NumPy."""


def get_backend() -> str:
    """The engine that runs graphs, here and now.

    >>> import wonderland as wl
    >>> with wl.using_backend("native"):
    ...     wl.get_backend()
    'native'
    """
    return current().settings.backend or _default()


@functools.cache
def _default() -> str:
    asked = os.environ.get("WONDERLAND_BACKEND")
    if asked:
        return _checked(asked)
    if missing := TABLE[QUICKEST].missing:
        warnings.warn(f"there is no native code here: {missing}. NumPy runs graphs.", CompileWarning, stacklevel=2)
        return "numpy"
    return QUICKEST


def set_backend(name: str, device: str | None = None) -> None:
    """Choose the engine that runs graphs from now on, in this thread or task: "numpy", "native" or "xla".

    With "xla" also the device, one of `wl.devices()`: programs run there, and new state stays there.

    >>> import wonderland as wl
    >>> before = wl.get_backend()
    >>> wl.set_backend("native")
    >>> wl.set_backend(before)
    """
    set_from_now_on("backend", (_checked(name), _checked_device("set_backend", name, device)))


def _checked(name: str) -> str:
    if name not in TABLE:
        raise InputError(f"set_backend: there is no backend {name!r}.", " or ".join(map(repr, TABLE)))
    if missing := TABLE[name].missing:
        raise InputError(f"set_backend: {name!r} does not run here: {missing}.", 'install it, or "numpy"')
    return name


def _checked_device(what: str, name: str, device: str | None) -> str | None:
    if device is None or (device == "cpu" and not TABLE[name].distant):
        return None
    found = far_engine(name)
    if found is None:
        raise InputError(f"{what}: the engine {name!r} has no device {device!r}.", 'the engine "xla", or no device')
    found.check_device(device)
    return device


def require(name: str) -> None:
    """Raise unless an engine can run here; the error says what to install."""
    _checked(name)


def using_backend(name: str, device: str | None = None) -> setting:
    """Choose the engine, and its device, for the graphs that run inside; also usable as a decorator.

    >>> import wonderland as wl
    >>> f = wl.jit(lambda x: (wl.tanh(x) ** 2).sum())
    >>> with wl.using_backend("native"):
    ...     native = f(wl.ones(1000))
    >>> bool(abs(native - f(wl.ones(1000))) < 1e-3)
    True
    """
    return setting("backend", (_checked(name), _checked_device("using_backend", name, device)))


def device_name() -> str | None:
    """The device that was chosen, here and now, for engines that have some."""
    return current().settings.device or _default_device()


@functools.cache
def _default_device() -> str | None:
    return os.environ.get("WONDERLAND_DEVICE") or None


def engine_name() -> str:
    """The engine that runs graphs here and now. A debugger sees every operation, so it gets NumPy."""
    settings = current().settings
    return "numpy" if settings.debug is not None else settings.backend or _default()


def run(
    graph: Graph, arrays: list[Array], owned: Collection[int] = frozenset(), deliver: Delivery | None = None
) -> list[Array]:
    """The results of a graph, by the engine that is chosen.

    `owned`: positions of arrays that belong to the caller alone; `deliver` puts new state in place, see engine.py.
    """
    try:
        return program_of(engine_name(), graph)(arrays, owned, deliver)
    except MemoryError as error:  # others may need so much memory that there is none left for results
        if isinstance(error, WonderlandError):
            raise
        raise without_room(graph, error) from error


def without_room(graph: Graph, error: MemoryError) -> SizeError:
    """The error for a graph for whose results there is no memory."""
    return SizeError(f"{graph.name}: {error}.", "smaller shapes, or wl.map over parts of the data")


def program_of(name: str, graph: Graph) -> Program:
    """The program that an engine runs a graph by; NumPy's, with a warning, if it fails to make one."""
    known: Program | None = graph.programs.get(name)
    if known is not None:
        return known
    try:
        return engine(name).program(graph)
    except (WonderlandError, MemoryError):
        raise
    except Exception as error:
        # an unexpected failure of the compiler must not take the user's program down, nor go unnoticed
        warnings.warn(f"{graph.name}: {name} code failed ({error!r}); NumPy runs it.", CompileWarning, stacklevel=3)
        graph.programs[name] = engine("numpy").program(graph)
        return graph.programs[name]
