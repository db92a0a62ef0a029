"""A program whose state stays where it is from call to call: only arguments and results are bound anew."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ...arrays.assignment import overwriting
from ...core.context import exhaust
from ...core.typing import Array
from . import runtime, threads
from .entry import Entry, Guards, is_possible
from .keeping import kept

if TYPE_CHECKING:
    from threading import RLock

    from ...core.cell import Run
    from .lasting import Kept
    from .program import Program


class Bound:
    """A program with a table of its own, in which the addresses of the first `staying` inputs stay.

    It does not keep the program: one that is given up (keeping.py) is found or compiled again in the usual way.
    """

    binding: object = None  # tells for which inputs the table is
    overwritten: frozenset[int] = frozenset()  # the arrays of state that it writes to, by identity
    lasting: weakref.ref[Kept] | None = None  # what was computed before from the inputs that stay, see lasting.py

    def __init__(self, program: Program, staying: int) -> None:
        self.program = weakref.ref(program)
        self._table = program.table.copy()
        self.start = self._table.ctypes.data
        places, outs = program.input_places, program.output_places
        self._staying = runtime.Binder(places[:staying], self._table)
        self.moving = places[staying:]
        self._moving = runtime.Binder(self.moving, self._table)
        # new state goes to the memory of the old one, at once or at the end; other results get memory of their own
        pairs = [(outs[out], places[source]) for out, source in program.donations.items()]
        self._given = np.array([source for _, source in pairs], np.int64), np.array([out for out, _ in pairs], np.int64)
        self._sources = np.array([*program.states.values()], np.int64)
        self.fresh = [i for i in range(len(outs)) if i not in program.states]
        self._results = runtime.Binder([outs[i] for i in self.fresh], self._table)
        self._begun = program.begun
        self._spare: list[Array] = []
        self.code = self._completed(program)

    def _completed(self, program: Program) -> Array:
        """The program's code, which checks at its end that nothing went wrong, and copies the state that could not be
        written where it belongs."""
        rows = []
        if program.schedule.checks:
            rows.append([runtime.Op.CHECK, program.place(program.schedule.status), 2 * len(program.schedule.checks), 0])
        copied = [(out, source) for out, source in program.states.items() if out not in program.donations]
        if copied:
            rows.append([runtime.Op.SET, self._begun, 1, 0])
        for out, source in copied:
            shape, dtype, _ = program.results[out]
            made = np.empty(shape, dtype)
            self._spare.append(made)
            self._table[program.output_places[out]] = made.ctypes.data
            rows.append([runtime.Op.COPY, program.input_places[source], program.output_places[out], made.nbytes])
        code = np.zeros((len(rows), runtime.WORDS), np.int64)
        code[:, :4] = np.reshape(rows, (len(rows), 4))
        return np.concatenate([program.code[:-1], code, program.code[-1:]])

    def hold(self, binding: object, arrays: list[Array]) -> bool:
        """Note where the inputs are that stay. False: they are not as they have to be."""
        program = self.program()
        if program is None:
            return False
        with program.lock:  # a call may be going on in another thread
            self.binding = None
            flags = self._staying(arrays)
            own = self._staying.flags[self._sources]
            if not flags & runtime.CONTIGUOUS or not np.all(own & runtime.OWN == runtime.OWN):
                return False
            self._table[self._given[1]] = self._table[self._given[0]]
            self.overwritten = frozenset(id(arrays[i]) for i in program.states.values())
            if program.lasting:
                found = program.lasting.found(arrays)
                if found is None:
                    return False
                program.lasting.place(found, self._table)
                self.lasting = weakref.ref(found)
            self.binding = binding
        return True

    def __call__(self, binding: object, arrays: list[Array], delivery: Iterable[object]) -> list[Array] | None:
        """The results that are not new state, from the inputs that do not stay; None: this cannot be done so."""
        program = self.program()
        if program is None:
            return None
        program.used = kept.turn
        with program.lock:
            if self.binding is not binding:
                return None
            lasting = self.lasting and self.lasting()  # held while it is read
            if program.lasting and lasting is None:
                return None
            if not self._moving(arrays) & runtime.CONTIGUOUS:
                arrays = program.in_one_piece(arrays)
                self._moving(arrays)
            outs = [program.fresh(i) for i in self.fresh]
            self._results(outs)
            program.prepare(self._table)
            overwriting(self.overwritten)
            start = program.lasting.steps if program.lasting else 0
            try:
                program.execute(self._table, self.start, self.code.ctypes.data, start)
            finally:
                if self._table[self._begun]:
                    exhaust(delivery)  # nothing is called before this, so no signal is heard before it either
        return outs

    # --- as a function of C, see entry.py

    def guards(self, arguments: int) -> Guards | None:
        """For a function of so many arguments; None: the program takes long, or needs Python."""
        program = self.program()
        return Guards(arguments) if program is not None and program.straight and is_possible() else None

    def entry(
        self, guards: Guards, form: int, missed: object, lock: RLock, run: Run | None, runs: set[Run]
    ) -> Entry | None:
        program = self.program()
        return None if program is None else Entry(program, self, guards, form, missed, lock, run, runs)

    @staticmethod
    def crew() -> object:
        """An entry is for the threads that there were when it was made."""
        return threads.crew()

    def make(self, position: int) -> Array:
        """The array for a result, while the program is there."""
        program = self.program()
        assert program is not None
        return program.fresh(position)

    def complain(self) -> None:
        """Raise the error that the program has found, while it is there."""
        program = self.program()
        assert program is not None
        program.complain()
