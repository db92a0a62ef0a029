"""Which engine runs graphs: NumPy, the reference, or native code. The results agree; only the speed differs.

    wl.set_backend("numpy")                  from now on
    with wl.using_backend("numpy"): ...      for a while
    WONDERLAND_BACKEND=numpy                 for a whole program

Native code is the default. It needs llvmlite; where that is missing, NumPy runs graphs. Outside `jit` operations always
run with NumPy.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
import weakref
from collections.abc import Collection
from typing import Any

import numpy as np

from .context import current, exhaust, uncollected
from .errors import InputError, SizeError, WonderlandError
from .graph.evaluate import evaluate
from .graph.ir import Graph
from .handover import Delivery
from .settings import set_from_now_on, setting

Array = np.ndarray[Any, Any]
NAMES = ("numpy", "native")


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
    return _checked(asked) if asked else "native" if _has_llvm() else "numpy"


def _has_llvm() -> bool:
    return importlib.util.find_spec("llvmlite") is not None


def set_backend(name: str) -> None:
    """Choose the engine that runs graphs from now on, in this thread or task: "numpy" or "native".

    >>> import wonderland as wl
    >>> before = wl.get_backend()
    >>> wl.set_backend("native")
    >>> wl.set_backend(before)
    """
    set_from_now_on("backend", _checked(name))


def _checked(name: str) -> str:
    if name not in NAMES:
        raise InputError(f"set_backend: there is no backend {name!r}.", " or ".join(map(repr, NAMES)))
    if name == "native" and not _has_llvm():
        raise InputError("set_backend: native code needs llvmlite.", "pip install llvmlite")
    return name


def using_backend(name: str) -> setting:
    """Choose the engine for the graphs that run inside; also usable as a decorator.

    >>> import wonderland as wl
    >>> f = wl.jit(lambda x: (wl.tanh(x) ** 2).sum())
    >>> with wl.using_backend("native"):
    ...     native = f(wl.ones(1000))
    >>> bool(abs(native - f(wl.ones(1000))) < 1e-3)
    True
    """
    return setting("backend", _checked(name))


def run(
    graph: Graph, arrays: list[Array], owned: Collection[int] = frozenset(), deliver: Delivery | None = None
) -> list[Array]:
    """The results of a graph, by the engine that is chosen. A debugger sees every operation, so it gets NumPy.

    `owned`: positions of arrays that belong to the caller alone. A result that is the new value of such an input (see
    `Traced`) may be returned in its memory; from then on all results are delivered, even if the run is interrupted.
    """
    if get_backend() == "numpy" or current().settings.debug is not None:
        return _evaluated(graph, arrays, deliver)
    program = graph.derived.get("native")
    if program is None:
        program = _compiled(graph)
    try:
        return program(arrays, owned, deliver)
    except MemoryError as error:  # others may need so much memory that there is none left for results
        if isinstance(error, WonderlandError):
            raise
        raise SizeError(f"{graph.name}: {error}.", "smaller shapes, or wl.map over parts of the data") from error


def _evaluated(graph: Graph, arrays: list[Array], deliver: Delivery | None) -> list[Array]:
    outs = evaluate(graph, arrays)
    if deliver is not None:
        exhaust(deliver(outs, {}))
    return outs


class _Replacement:
    """Stands for a program that could not be compiled. The graph holds it, so it does not hold the graph."""

    def __init__(self, graph: weakref.ref[Graph]) -> None:
        self._graph = graph

    def __call__(self, arrays: list[Array], owned: Collection[int], deliver: Delivery | None) -> list[Array]:
        graph = self._graph()
        assert graph is not None
        return _evaluated(graph, arrays, deliver)


def _compiled(graph: Graph) -> Any:
    from .compiler import Program
    from .compiler.keeping import kept
    from .graph.simplify import simplify

    try:
        program = uncollected(Program, simplify(graph), graph.derived.get("states"))
        kept.add(program, graph)
        return program
    except WonderlandError:
        raise
    except MemoryError as error:
        raise SizeError(f"{graph.name}: {error}.", "smaller shapes, or wl.map over parts of the data") from error
    except Exception as error:
        # an unexpected failure of the compiler must not take the user's program down, nor go unnoticed
        warnings.warn(f"{graph.name}: native code failed ({error!r}); NumPy runs it.", CompileWarning, stacklevel=2)
        graph.derived["native"] = replacement = _Replacement(weakref.ref(graph))
        return replacement
