"""A compiled graph: native routines and their order as data, over one arena of memory."""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from ...arrays.assignment import overwriting
from ...core.context import current, exhaust
from ...core.forking import open_after_fork
from ...core.handover import Delivery
from ...core.room import check_room
from ...core.typing import Array
from ...ir.graph import Atom, Graph
from ...ir.sizes import shape_at
from ...primitives.creation import check_size
from ..numpy.evaluate import located, run_equation
from . import entry, runtime, threads
from .bound import Bound
from .donation import donations
from .keeping import kept
from .lasting import Lasting, prologue
from .machine import machine
from .memory import ALIGN, PLANNED, plan
from .processor import Processor
from .renaming import rename_copies
from .schedule import Schedule
from .steps import Control, Fallback, Label, Native
from .text.routine import Routine, slots_of
from .tuning import COPIED_STATE, KEPT_RESULT
from .values import SIZE, Buffer, View, as_array

_ARRAYS = {np.ndarray}
STRAIGHT = {getattr(runtime.Op, name) for name in ("RUN", "STOP", "SET", "CHECK", "SAME")}


def _unheld() -> int:
    """What the reference count of an array is that only a dictionary and a variable hold."""
    holder = {0: np.empty(0)}
    kept = holder.get(0)
    return sys.getrefcount(kept)


_UNHELD = _unheld()


class Program:
    """Call it with the arrays of the graph's inputs; it returns those of its outputs."""

    used = 0  # when it was used last, see keeping.py
    _capacity = 0  # the largest batch that there is room for, if its size varies

    def __init__(
        self, graph: Graph, states: Mapping[int, int] | None = None, steady: Collection[int] = frozenset()
    ) -> None:
        """`states`: which outputs are the new values of which inputs, and could take their place in memory; `steady`:
        which inputs are likely to be the same ones at the next call."""
        for atom in graph.outputs:
            check_size(graph.name, atom.shape, atom.dtype)
        self.graph = graph
        self.schedule = Schedule(graph, machine().cpu, steady)
        self.states = states or {}
        rename_copies(self.schedule)
        first = prologue(self.schedule, steady)
        self.donations = donations(self.schedule, self.states)  # which changes the order of steps
        self.arena_bytes = plan(self.schedule, self._capacity)
        results = sum(self._bytes_of(a) for i, a in enumerate(graph.outputs) if i not in self.donations)
        what = "its results and intermediate values need"
        check_room(graph.name, self.arena_bytes + results, what, "smaller shapes, or wl.map over parts of the data")
        buffers = [b for step in self.schedule.steps for b in [*step.reads, *step.writes]]
        self.places = {b: i for i, b in enumerate(dict.fromkeys([*buffers, *self.schedule.outputs]))}
        self.places.setdefault(self.schedule.status, len(self.places))
        self.places.setdefault(self.schedule.begun, len(self.places))
        self.places.setdefault(SIZE, len(self.places))
        self.lock = open_after_fork(threading.Lock())  # calls share the table and the arena
        self._compile()
        self.lasting = Lasting(first, self.places) if first.steps else None
        self._lay_out()

    def _bytes_of(self, result: Atom) -> int:
        return math.prod(shape_at(result, self._capacity)) * result.dtype.itemsize

    # --- code

    def _compile(self) -> None:
        """The instructions: one for every step."""
        steps = self.schedule.steps
        position: dict[int, int] = {}
        count = 0
        for step in steps:
            position[id(step)] = count
            count += not isinstance(step, Label)
        self.code = np.zeros((count + 1, runtime.WORDS), np.int64)
        self.code[count, 0] = runtime.Op.STOP
        self.routines: list[tuple[int, Native]] = []  # native steps with their positions
        self._fallbacks: dict[int, Fallback] = {}
        slots: list[int] = []
        for step in steps:
            at = position[id(step)]
            if isinstance(step, Control):
                args = [position[id(a)] if isinstance(a, Label) else self.place(a) for a in step.args]
                self.code[at, : 1 + len(args)] = [step.code, *args]
            elif isinstance(step, Fallback):
                self.code[at, 0] = runtime.Op.PYTHON
                self._fallbacks[at] = step
            elif not isinstance(step, Label):
                self.routines.append((at, step))
                self.code[at, :4] = [runtime.Op.RUN, 0, len(slots), step.chunks]
                slots += [n for buffer, offset in slots_of(step.views) for n in (self.places[buffer], offset)]
        # nothing but routines and checks, one after the other: it comes to its end without Python, and soon
        self.straight = all(code in STRAIGHT for code in self.code[:, 0].tolist())
        self._find_code()
        self._slots = np.array(slots, np.int64)
        native = [at for at, _ in self.routines]
        self.code[native, 2] = self._slots.ctypes.data + 8 * self.code[native, 2]
        self.shares = any(step.chunks > 1 for _, step in self.routines)

    def _find_code(self) -> None:
        """The addresses of the routines: equal ones are compiled once."""
        wanted: dict[str, Callable[[str], str]] = {}
        described = [self._described(step) for _, step in self.routines]
        for text, (_, step) in zip(described, self.routines, strict=True):
            wanted.setdefault(text, functools.partial(text_of, step, self.schedule.cpu))
        beside = [runtime.module(self.schedule.cpu)]
        if self.straight and entry.is_possible():
            beside.append(entry.MODULE)  # the calls that come will want it
        self._addresses = machine().routines(wanted, self.graph.name, beside)  # held: the code stays
        for text, (at, _) in zip(described, self.routines, strict=True):
            self.code[at, 1] = self._addresses[text]

    def _described(self, step: Native) -> str:
        return str(step.describe())

    def place(self, what: Buffer | int) -> int:
        return self.places[what] if isinstance(what, Buffer) else what

    def _lay_out(self) -> None:
        """Allocate the arena and fill the table with what does not change from call to call."""
        self._arena = np.empty(self.arena_bytes + ALIGN, np.uint8)
        base = -(-self._arena.ctypes.data // ALIGN) * ALIGN
        self.table = np.zeros(len(self.places) + 1, np.int64)
        self.status = np.zeros(max(2, self.schedule.status.size), np.int64)
        self._constants = [b.data for b in self.places if b.kind == "constant"]
        for buffer, place in self.places.items():
            if buffer.kind in PLANNED:
                self.table[place] = base + buffer.offset
            elif buffer.kind == "constant":
                self.table[place] = buffer.data.ctypes.data
            elif buffer.kind == "status":
                self.table[place] = self.status.ctypes.data
        carried = [(place, int(self.table[place])) for b, place in self.places.items() if b.kind == "carry"]
        self._carried = np.array([place for place, _ in carried], np.int64), np.array([a for _, a in carried], np.int64)
        spare = len(self.table) - 1  # where inputs go that no step reads
        self.input_places = [self.places.get(b, spare) for b in self.schedule.inputs]
        self.output_places = [self.places[b] for b in self.schedule.outputs]
        self._inputs = runtime.Binder(self.input_places, self.table)
        self._outputs = runtime.Binder(self.output_places, self.table)
        # a large result is kept for the next call, unless it becomes state: that belongs to its cell alone
        self.results = [
            (a.shape, a.dtype, a.aval.nbytes >= KEPT_RESULT and i not in self.states)
            for i, a in enumerate(self.graph.outputs)
        ]
        self._kept: dict[int, Array] = {}
        self._asked: tuple[object, ...] = ()  # by `_given`
        self._answer: Mapping[int, int] = {}
        large = sum(
            self._bytes_of(a) for a, (_, _, stays) in zip(self.graph.outputs, self.results, strict=True) if stays
        )
        lasting = self.lasting.bytes if self.lasting else 0
        self.bytes = self.arena_bytes + large + lasting  # what it keeps between calls
        self.begun = self.places[self.schedule.begun]
        self._start = self.table.ctypes.data, self.code.ctypes.data

    # --- calls

    def __call__(
        self,
        arrays: list[Array],
        owned: Collection[int] = frozenset(),
        deliver: Delivery | None = None,
        profile: bool = False,
    ) -> list[Array]:
        """The results. Inputs at the positions `owned` belong to the caller alone: results may take their memory.

        From the first that is overwritten on, the results are delivered even if an interrupt (Ctrl-C) comes: what
        belongs to state that is new already must not be lost. Before, an interrupt leaves all state as it was.
        """
        self.used = kept.turn
        if set(map(type, arrays)) != _ARRAYS:
            arrays = [np.asarray(a) for a in arrays]  # NumPy's scalars
        with self.lock:
            flags, passed = self._inputs(arrays), arrays
            if not flags & runtime.CONTIGUOUS:
                arrays = self.in_one_piece(arrays)
                flags = self._inputs(arrays)
            given = self._given(owned, flags) if owned else {}
            outs = [arrays[given[i]] if i in given else self.fresh(i) for i in range(len(self.results))]
            self._outputs(outs)
            start = self.lasting.start(passed, self.table) if self.lasting else 0
            if (fill := current().settings.fill) is not None:
                lasting = [self.lasting.memory] if self.lasting and not start else []
                self._fill(fill, [*lasting, *[out for i, out in enumerate(outs) if i not in given]])
            if given:
                overwriting({id(arrays[i]) for i in given.values()})
            delivery = () if deliver is None else deliver(outs, given)
            self.prepare(self.table)
            try:
                self.execute(self.table, *self._start, start, profile)
            finally:
                if given and self.table[self.begun]:
                    exhaust(delivery)  # nothing is called before this, so no signal is heard before it either
            exhaust(delivery)
            if self.lasting and not start:
                self.lasting.remember(passed)
        return outs

    def in_one_piece(self, arrays: list[Array]) -> list[Array]:
        """Copies of the arrays that are not. The others stay, as results may take the memory that they own."""
        for a in arrays:
            check_size(self.graph.name, a.shape, a.dtype)  # of the copy, should it be a broadcast view
        return [a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in arrays]

    def prepare(self, table: Array) -> None:
        """What a table has to hold when a run begins."""
        if len(self._carried[0]):
            table[self._carried[0]] = self._carried[1]
        table[self.begun] = 0
        if self.schedule.checks:
            self.status[:] = 0

    def execute(self, table: Array, address: int, code: int, start: int, profile: bool = False) -> None:
        """Run code from an instruction on with the buffers of a table, its own or another's, which is at an address."""
        pool = threads.pool() if self.shares else 0
        begun, run = address + 8 * self.begun, runtime.functions().run
        at = run(address, code, start, pool, profile, begun)
        while at >= 0 or at <= runtime.PAUSED:
            if at < 0:
                at = run(address, code, runtime.PAUSED - at, pool, profile, begun)
                continue
            started = time.perf_counter_ns()
            try:
                self._in_numpy(self._fallbacks[at], table)
            except Exception:
                self.complain()  # what went wrong before is the reason
                raise
            self.code[at, 7] += time.perf_counter_ns() - started
            at = run(address, code, at + 1, pool, profile, begun)
        self.complain()

    def bound(self, staying: int) -> Bound | None:
        """The program for calls in which the first inputs, so many, stay where they are; None: some state cannot."""
        apart = [(out, source) for out, source in self.states.items() if out not in self.donations]
        unread = any(self.input_places[source] == len(self.table) - 1 for _, source in apart)
        large = sum(self.graph.outputs[out].aval.nbytes for out, _ in apart) > COPIED_STATE
        return None if unread or large else Bound(self, staying)

    def _given(self, owned: Collection[int], flags: int) -> Mapping[int, int]:
        """The results that take the memory of the inputs that they replace."""
        if len(owned) == len(self.states) and flags & runtime.OWN == runtime.OWN:
            return self.donations
        asked = (*owned, self._inputs.flags.tobytes())  # most calls are like the last one
        if asked != self._asked:
            mine, each = set(owned), self._inputs.flags.tolist()
            found = {out: i for out, i in self.donations.items() if i in mine and each[i] & runtime.OWN == runtime.OWN}
            self._asked, self._answer = asked, found
        return self._answer

    def fresh(self, position: int) -> Array:
        """An array for a result. Large ones are used again when nobody holds them: new memory is slow to touch."""
        shape, dtype, large = self.results[position]
        if not large:
            return np.empty(shape, dtype)
        kept = self._kept.get(position)
        if kept is None or sys.getrefcount(kept) > _UNHELD:
            kept = self._kept[position] = np.empty(shape, dtype)
        return kept

    def _fill(self, byte: int, fresh: list[Array]) -> None:
        """Fill all memory that nobody has written to yet: what a routine reads before it is written is seen then."""
        self._arena.fill(byte)
        for out in fresh:
            ctypes.memset(out.ctypes.data, byte, out.nbytes)

    def complain(self) -> None:
        """Raise the error of the first equation that found something wrong, if one did."""
        if self.schedule.checks and self.status.any():
            found = int(np.flatnonzero(self.status[::2])[0])
            equation, error = self.schedule.checks[found]
            mark, word = self.status[2 * found : 2 * found + 2].tolist()
            raise located(equation, error(word, mark)) from None

    def _in_numpy(self, step: Fallback, table: Array) -> None:
        def array(view: View) -> Array:
            size = 1 + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
            if 0 in view.shape:
                return np.empty(view.shape, view.dtype)
            item = view.dtype.itemsize
            start = int(table[self.places[view.buffer]])
            low = sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True) if s < 0)
            memory: Any = (ctypes.c_char * ((abs(size) + abs(low) + view.offset) * item)).from_address(start)
            return as_array(view, np.ndarray((len(memory) // item,), view.dtype, buffer=memory))

        with np.errstate(all="ignore"):
            made = run_equation(step.equation, [array(v) for v in step.inputs])
        for view, value in zip(step.outputs, made, strict=True):
            array(view)[...] = value


def text_of(step: Native, cpu: Processor, name: str) -> str:
    r = Routine(slots_of(step.views), cpu)
    step.emit(r)
    return r.text(name)
