"""A traced function: its graph, the state that it reads and writes, and how it is run."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter, is_, itemgetter
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays.conversion import asarray
from ...core import dtypes, trees
from ...core.arguments import as_function
from ...core.cell import Cell, Rest, rest
from ...core.context import current, exhaust, structure_version
from ...core.forking import open_after_fork
from ...core.handover import handing_over
from ...core.interpreter import assign, bind, read
from ...core.primitive import Primitive, aval_of
from ...core.tensor import VALUES, Far, Tensor, Tracer, wrap
from ...core.typing import Array, Shaped
from ...engines.choosing import engine_name, run
from ...engines.engine import TABLE
from ...ir.graph import Graph
from ...ir.simplify import remove_dead
from ...ir.stage import GraphTrace, Staged, stage
from ..call import call
from .arguments import Arguments
from .distant import Stay
from .ownership import InUse, unshared, unshared_far
from .records import CallRecord

if TYPE_CHECKING:
    from .recent import Recent

LOCK = open_after_fork(threading.RLock())  # tracing puts tracers into cells, so one thread at a time may look at them
WAIT = 1e-4  # seconds between two looks at whether another thread is done with state that we need
_TENSORS = {*VALUES}
_inside, _outside, _leaf, _node = map(attrgetter, ("_inside", "_outside", "_leaf", "_node"))
_NONE = {None}


def _unrecorded(cells: Sequence[Cell]) -> bool:
    """Whether no operation on these cells is recorded outside of transformations."""
    return current().trace is None and set(map(_leaf, cells)) <= _NONE


def _picker(which: list[Any]) -> Callable[[list[Cell]], Sequence[Cell]]:
    """Picks cells that are told by their position in a list, or themselves."""
    if len(which) > 1 and all(type(c) is int for c in which):
        return itemgetter(*which)  # one call into C
    return lambda cells: [cells[c] if type(c) is int else c for c in which]


def _tensor(made: Array | Tensor) -> Tensor:
    return made if isinstance(made, Tensor) else wrap(made)


class Traced:
    """A traced function and how to call it."""

    def __init__(
        self,
        f: Callable[..., object],
        arguments: Arguments,
        name: str,
        purpose: str,
        watched: AbstractSet[int] = frozenset(),
    ) -> None:
        as_function(purpose, f)
        self.version = structure_version()
        out: dict[str, Any] = {}

        def flat(*tracers: Tensor) -> list[Tensor]:
            args, kwargs = arguments.rebuilt(tracers)
            leaves, out["structure"] = trees.flatten(f(*args, **kwargs), open_objects=False)
            given = {id(leaf): i for i, leaf in enumerate(arguments.leaves) if trees.is_stateful(leaf)}
            out["places"] = []
            tensors: list[Tensor] = []
            for leaf in leaves:
                if isinstance(leaf, (Tensor, np.ndarray)):
                    out["places"].append(("tensor", len(tensors)))
                    tensors.append(read(leaf) if isinstance(leaf, Cell) else asarray(leaf))
                elif id(leaf) in given:
                    out["places"].append(("argument", given[id(leaf)]))
                else:
                    out["places"].append(("as is", leaf))
            return tensors

        avals = [aval_of(operand) for operand in arguments.operands]
        staged: Staged = stage(flat, avals, name=name, purpose=purpose, weak=arguments.weak)
        self.graph: Graph = remove_dead(staged.graph)
        self.captured = staged.captured
        self.structure: trees.Structure = out["structure"]
        self.places: list[tuple[str, Any]] = out["places"]
        self.count = sum(kind == "tensor" for kind, _ in self.places)
        self.brought: tuple[object, list[Far]] | None = None  # the captured constants on devices, see distant.py
        self.alone = self.structure is trees.LEAF and self.count == 1  # whether it returns a tensor
        position = {id(c): i for i, c in enumerate(arguments.cells)}
        # a cell of an argument is found by its position: another module of the same structure can take its place
        self.read_cells: list[Any] = [position.get(id(c), c) for c in staged.read_cells]
        self.written_cells: list[Any] = [position.get(id(c), c) for c in staged.written_cells]
        self.pick_read, self.pick_written = _picker(self.read_cells), _picker(self.written_cells)
        self.made_cells = staged.made_cells
        self.reaches_state = any(
            isinstance(c, Cell) and id(c) not in watched and not c.permanent
            for c in self.read_cells + self.written_cells
        )
        # cells that were made belong to this call alone; the next one makes its own or finds them
        self.reusable = not self.made_cells and not any(isinstance(v, Tracer) for v in self.captured)
        # the new value of a cell may be put where the old one was
        first = len(self.captured)
        places = {c if type(c) is int else id(c): first + i for i, c in enumerate(self.read_cells)}
        written = [c if type(c) is int else id(c) for c in self.written_cells]
        self.graph.states = {self.count + i: places[c] for i, c in enumerate(written) if c in places}
        self.graph.constants, self.graph.cells, self.graph.results = first, len(self.read_cells), self.count
        self.states = list(self.graph.states.values())
        self.changes = bool(self.written_cells or self.made_cells)
        # what may be differentiated later, imperatively; what a cell is given is not
        results = self.graph.outputs[: self.count]
        trains = any(getattr(c, "trainable", False) for c in staged.written_cells)
        self.recorded = not trains and any(dtypes.is_inexact(atom.dtype) for atom in results)
        if not trains:  # constants, and the parameters and running statistics of a forward pass
            self.graph.steady = frozenset(range(first + len(self.read_cells))) - frozenset(self.states)

    def stale(self) -> bool:
        """Whether a module may have changed its structure that was reached in a way that nobody watches."""
        return self.reaches_state and self.version != structure_version()

    def run(
        self, arguments: Arguments, primitive: Primitive = call, recent: Recent | None = None, version: int = -1
    ) -> Any:
        """Run it. `recent` can do so at once the next time, if nothing has moved and structures are of this version."""
        cells = arguments.cells
        readers = self.pick_read(cells)
        stateful = bool(readers) or self.changes
        state = current()
        plain = state.trace is None and not (self.recorded and state.settings.grad_enabled)
        operands: list[Tensor] = []
        owned: list[int] = []
        distant, far = TABLE[engine_name()].distant, None
        ours = state.trace is None and state.plain and not distant  # whether we make the record, if there is one
        record: CallRecord | None = None
        key = id(operands)
        try:
            if stateful and waiting:
                time.sleep(2 * WAIT)  # their turn
            while True:
                with LOCK:
                    others = [*runs.values()] if runs else ()
                    standing = [rest.begin()]
                    operands += self.captured
                    whole = self._read(readers, plain or ours, operands)
                    operands += arguments.operands
                    if whole and not (others and in_use.overwrote(operands, others)) and not self._in_the_way(cells):
                        simple = state.trace is None and set(map(type, operands)) <= _TENSORS
                        simple = simple and (plain or ours or all(o._node is None for o in operands))
                        if simple and ours and not plain:
                            record = self._record(primitive, operands, readers)
                        if simple and distant:
                            far = Stay(self, operands, readers)
                        alone = simple and record is None
                        owned = (unshared_far if distant else unshared)(operands, self.states) if alone else []
                        if owned and not self._still_there(readers, operands):
                            owned = []  # whoever else holds the old values, it is not their cells
                        if stateful:
                            runs[key] = (operands, owned, get_ident())
                        break
                operands.clear()  # when the other thread is done, the cells may hold others
                in_use.wait(key, WAIT)
            if simple:
                deliver = functools.partial(self._delivery, cells, operands, standing) if self.changes else None
                if far is not None and (stayed := far.run(operands, owned, deliver)) is not None:
                    rest.now = None
                    return self.result(arguments.leaves, stayed[: self.count])
                arrays = run(self.graph, record.arrays if record else [o._data for o in operands], owned, deliver)
                program = self.graph.programs.get(engine_name())
                if program is None or not hasattr(program, "bound"):
                    rest.now = None  # its results may be views of what cells hold
                elif recent is not None and len(owned) == len(self.written_cells) + len(self.made_cells):
                    recent.stand(standing[0], version, program, arguments, primitive, record.state if record else None)
                if record is None:
                    return self.result(arguments.leaves, [wrap(a) for a in arrays[: self.count]])
                record.outs = arrays
                return self.result(arguments.leaves, record.results(self.count))
        finally:
            if stateful:
                runs.pop(key, None)  # nothing is called before this, so no signal is heard before it either
        outs = bind(primitive, *operands, graph=self.graph)
        rest.now = None
        if self.changes:
            self._write(cells, outs[self.count :])
        return self.result(arguments.leaves, outs)

    def splice(self, arguments: Arguments, trace: GraphTrace) -> object:
        """What it returns as part of a graph that is being built."""
        cells = arguments.cells
        operands = [*self.captured, *map(read, self.pick_read(cells)), *arguments.operands]
        outs = trace.splice(self.graph, operands)
        for c, value in zip(self.written_cells, outs[self.count :], strict=True):
            assign(cells[c] if type(c) is int else c, value)
        return self.result(arguments.leaves, outs)

    def _read(self, cells: Sequence[Cell], plain: bool, operands: list[Tensor]) -> bool:
        """Add what cells hold to the operands. False: meanwhile another thread has changed them."""
        if (plain or _unrecorded(cells)) and not any(map(_inside, cells)):
            operands += map(_outside, cells)  # one call into C, between two changes by other threads
            return True
        before = [*map(_outside, cells)]
        operands += [cell.value if plain else read(cell) for cell in cells]
        return all(map(is_, before, map(_outside, cells)))

    def _record(self, primitive: Primitive, operands: list[Tensor], cells: Sequence[Cell]) -> CallRecord | None:
        """The record of a call outside of transformations, if something is recorded of what it is given."""
        leaves = [cell._node for cell in cells] if any(map(_inside, cells)) else [*map(_leaf, cells)]
        first = len(self.captured)
        nodes = [*map(_node, operands[:first]), *leaves, *map(_node, operands[first + len(cells) :])]
        if set(nodes) <= _NONE:
            return None
        return CallRecord.of(primitive, self.graph, [o._data for o in operands], nodes)

    def _in_the_way(self, cells: list[Cell]) -> bool:
        """Whether a call is going on at once, see recent.py, that overwrites what we read or reads what we replace."""
        if not rest.runs:
            return False
        mine = {id(cell) for cell in self._changed(cells)}
        wanted = mine | {id(cell) for cell in self.pick_read(cells)}
        for other in [*rest.runs]:
            read, written = other.touched()
            if mine.isdisjoint(map(id, read)) and wanted.isdisjoint(map(id, written)):
                continue
            if other.certain or (other.thread != get_ident() and in_use.goes_on(other.thread, "found", other)):
                return True
            rest.runs.discard(other)  # cut short
        return False

    def _still_there(self, cells: Sequence[Cell], operands: list[Tensor]) -> bool:
        """Whether cells hold what was read from them."""
        first = len(self.captured)
        return all(map(is_, operands[first : first + len(cells)], map(_outside, cells)))

    def _delivery(
        self,
        cells: list[Cell],
        operands: list[Tensor],
        standing: list[Rest],
        arrays: list[Array],
        given: Mapping[int, int],
    ) -> Iterable[object]:
        """New state into its cells, outside of all transformations.

        What is updated in place is handed over, too: meanwhile another thread may have put its own state in.
        """
        if len(given) == len(self.written_cells) + len(self.made_cells):
            tensors = [*map(operands.__getitem__, given.values())]  # all of it
        else:
            standing[0] = rest.renewed(standing[0])
            places = range(self.count, len(arrays))
            tensors = [operands[given[i]] if i in given else _tensor(arrays[i]) for i in places]
        return handing_over(self._changed(cells), tensors)

    def _changed(self, cells: list[Cell]) -> Sequence[Cell]:
        written = self.pick_written(cells)
        return [*written, *self.made_cells] if self.made_cells else written

    def result(self, given: Sequence[object], outs: Sequence[Shaped]) -> Any:
        """What the function returns, from the leaves of its arguments and the outputs of its graph."""
        if self.alone:
            return outs[0]
        leaves = [
            outs[what] if kind == "tensor" else given[what] if kind == "argument" else what
            for kind, what in self.places
        ]
        return trees.unflatten(self.structure, leaves)

    def _write(self, cells: list[Cell], values: list[Tensor]) -> None:
        if current().trace is None:
            changed = self._changed(cells)
            old = [*map(_outside, changed)]
            exhaust(handing_over(changed, [wrap(value._data) for value in values]))
            rest.replaced(changed, old)
            return
        with LOCK:
            for c, value in zip(self.written_cells, values, strict=False):
                assign(cells[c] if type(c) is int else c, value)
            for made, value in zip(self.made_cells, values[len(self.written_cells) :], strict=True):
                made.value = value
                if (trace := current().trace) is not None:
                    trace.note_create(made)


in_use = InUse(Traced.run.__code__)
runs, waiting = in_use.runs, in_use.waiting
