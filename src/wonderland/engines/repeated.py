"""Graphs without state that run again and again on arrays of the same kinds, with little around the run itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from ..core.context import STATE, State, current
from ..core.forking import open_after_fork
from ..core.tensor import Tensor, wrap
from ..core.typing import Array
from ..ir.graph import Graph
from .choosing import engine_name, run

if TYPE_CHECKING:
    from .native.bound import Bound
    from .native.entry import Entry
    from .native.program import Program

Enter: TypeAlias = "Callable[..., tuple[Tensor, ...] | None]"
_TUPLE = 2  # the form of the results, see native/entry_text.py
_lock = open_after_fork(threading.RLock())  # entries are made by one thread at a time


class _Made(NamedTuple):
    """A function of C, and what it is made of."""

    bound: Bound
    crew: object
    entry: Entry
    outside: int  # its guard of the context
    function: Enter


class Repeated:
    """A graph as a function of arrays. Who calls it sees to it that nobody debugs or records what it does."""

    def __init__(self, graph: Graph) -> None:
        # the same as a function of C, if there is one. It gives None where something (a shape, a setting, the program)
        # is not as it was at the last call; then the object itself is to be called
        self.enter: Enter | None = None
        self._graph = graph
        self._made: _Made | None = None

    def __call__(self, *arrays: Array) -> tuple[Tensor, ...]:
        """The results."""
        outs = run(self._graph, [*arrays])
        state = current()
        if state.key is not None:  # outside of all transformations
            program = self._graph.programs.get(engine_name())
            with _lock:
                self.enter = None
                if program is not None and hasattr(program, "bound"):
                    self._prepare(program, state)
        return tuple([wrap(out) for out in outs])

    def _prepare(self, program: Program, state: State) -> None:
        """Let the next call of a program under such settings be one of a function of C, if that can be."""
        made = self._made
        if made is None or made.bound.program() is not program or made.crew != made.bound.crew():
            made = self._made = self._new(program, state)
        if made is not None and made.bound.hold(self, []):
            made.entry.renew(self)
            made.entry.outside(made.outside, state)
            self.enter = made.function

    def _new(self, program: Program, state: State) -> _Made | None:
        bound = program.bound(0)
        guards = None if bound is None else bound.guards(len(self._graph.inputs))
        if bound is None or guards is None or state.settings.fill is not None:
            return None
        for i, (var, place) in enumerate(zip(self._graph.inputs, bound.moving, strict=True)):
            guards.array(i, var.shape, var.dtype, place)
        outside = guards.context(STATE, state)
        entry = bound.entry(guards, _TUPLE, None, _lock, None, set())
        return None if entry is None else _Made(bound, bound.crew(), entry, outside, cast(Enter, entry.function()))
