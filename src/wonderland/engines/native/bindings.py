"""What every variable of a graph is: a value, or a tensor of parts that nobody has needed whole yet."""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Sequence
from typing import TypeGuard

from ...core.dtypes import is_half, is_inexact
from ...ir.graph import Atom, Graph, Literal, Var
from . import values
from .fusion import Fusion
from .pieces import Pieces
from .processor import Processor
from .text import operations
from .tuning import READING, STORING
from .values import Const, Op, Shape, Take, Value, View, may_refuse, parts, replaced


class Bindings(Fusion):
    """The third part of a schedule: variables and their values, and how often they are used."""

    def __init__(self, cpu: Processor) -> None:
        super().__init__(cpu)
        self._values: dict[Var, Value] = {}
        self._pieces: dict[Var, Pieces] = {}
        self._wanted: dict[Var, View] = {}  # where results should be put
        self._uses: Tally[Var] = Tally()
        self._largest: dict[tuple[Atom, Var], Value] = {}

    # --- to bind

    def bind(self, var: Var, value: Value) -> None:
        """The variable is a value."""
        self._values[var] = value

    def assemble(self, var: Var, pieces: Pieces) -> None:
        """The variable is a tensor of parts."""
        self._pieces[var] = pieces

    def forget(self, var: Var) -> None:
        """A graph that is called again computes its variables anew."""
        self._values.pop(var, None)
        self._pieces.pop(var, None)

    def want(self, var: Var, place: View) -> None:
        """Let a variable be computed in a place, unless there is one for it already."""
        self._wanted.setdefault(var, place)

    def bind_largest(self, x: Atom, index: Var, value: Value) -> None:
        """The elements that positions in windows were found for."""
        self._largest[(x, index)] = value

    def count_uses(self, graph: Graph) -> Tally[Var]:
        """How often a graph uses its variables."""
        uses = Tally(a for e in graph.equations for a in e.inputs if isinstance(a, Var))
        uses.update(a for a in graph.outputs if isinstance(a, Var))
        self._uses.update(uses)
        return uses

    # --- to read

    def known(self, var: Var) -> Value | None:
        """The value of a variable, as far as it has one."""
        return self._values.get(var)

    def pieces(self, atom: Atom) -> Pieces | None:
        """The parts that a tensor consists of, if nobody has needed it whole yet."""
        return self._pieces.get(atom) if isinstance(atom, Var) else None

    def largest(self, x: Atom, index: Atom) -> Value | None:
        """The elements that these positions were found for, if that is known."""
        return self._largest.get((x, index)) if isinstance(index, Var) else None

    def place_for(self, var: Var) -> View | None:
        """Where a result should be put, if that matters."""
        return self._wanted.get(var)

    def value(self, atom: Atom) -> Value:
        if isinstance(atom, Literal):
            return Const(atom.data.item(), atom.dtype, ())
        if atom not in self._values:
            self._values[atom] = self._assembled(atom)
        return self.settled(self._values[atom])

    def elsewhere(self, atom: Atom) -> Value:
        """The value as it is seen in another shape: what is going to be in memory is read and not computed again.

        What a contraction that is still open can compute is stored by it, rather than its plain result.
        """
        value = self.value(atom)
        if isinstance(value, Op) and value.stored is None:
            waiting = self.waiting_for(value)
            several = isinstance(atom, Var) and self._uses[atom] > 1 and value.weight > 1
            if several or (waiting and waiting[-1].accepts(value)):
                return self.keep(value)
        return replaced(value, lambda part: part.stored if isinstance(part, Op) else None)

    def answered_for(self, value: Value) -> Value:
        """The value, of which a part is going to be taken. What may refuse a place is computed whole before."""
        return self.in_memory(value) if any(map(may_refuse, parts(value))) else value

    def often(self, atom: Atom) -> Value:
        """The value as it is seen by many places of another shape: computed once, unless that takes longer."""
        self.reused(self.value(atom))
        return self.elsewhere(atom)

    def broadcast(self, value: Value, shape: Shape) -> Value:
        """Before it is repeated, an expression is computed once."""
        grows = math.prod(value.shape) < math.prod(shape)
        if grows and isinstance(value, (Op, Take)) and not self.own_row(value, shape):
            value = self.in_memory(value)
        return values.broadcast(value, shape)

    def reused(self, value: Value) -> None:
        """An expression with several uses is stored, unless computing it again is cheaper than memory.

        Of what is made from a contraction that is still open, the first such value is stored: it stands for the plain
        result from then on. Half precision is stored as it is, and widened wherever it is read.
        """
        value = self.narrowest(value)
        if isinstance(value, Op) and value.stored is None:
            work, sources, waits = 0, 0, False
            for part in parts(value, within=_to_compute):
                if isinstance(part, Op) and part.stored is None:
                    work += operations.cost_of(part.name)
                    continue
                sources += isinstance(part, Take) or (isinstance(part, (View, Op)) and _is_large(part))
                waits |= isinstance(part, View) and bool(self.waiting_for(part))
            if waits or work + READING * sources > STORING:
                self.keep(value)

    def narrowest(self, value: Value) -> Value:
        """The value before it was converted from half precision, if it was."""
        while _widens(value):
            value = value.args[0]
        return value

    def _assembled(self, var: Var) -> View:
        """A tensor of parts, in memory: zeros where there is no part."""
        pieces = self._pieces.pop(var)
        target = self.target(var)
        if sum(int(math.prod(part.shape)) for _, part in pieces) < var.aval.size:
            self.copy(Const(0, var.dtype, var.shape), target)
        for index, part in pieces:
            if math.prod(part.shape):
                place = values.sliced(target, index, part.shape)
                assert isinstance(place, View)
                self.store(place, part)
        self.close_writers(target.buffer)
        return target

    def target(self, var: Var) -> View:
        """The memory for a result."""
        return self._wanted.get(var) or self.new(var.shape, var.dtype)


def _widens(value: Value) -> TypeGuard[Op]:
    """Whether an expression is another one of half precision, converted."""
    if not isinstance(value, Op) or value.name != "astype" or value.stored is not None or value.wanted is not None:
        return False
    return is_half(value.args[0].dtype) and not is_half(value.dtype) and is_inexact(value.dtype)


def _to_compute(value: Value) -> Sequence[Value]:
    """The arguments of an operation that is not going to be in memory."""
    return value.args if isinstance(value, Op) and value.stored is None else ()


def _is_large(value: View | Op) -> bool:
    """Whether reading a value takes a read for most places: it is not one number for many."""
    if isinstance(value, Op):
        return True
    distinct = math.prod(n for n, step in zip(value.shape, value.strides, strict=True) if step)
    return 4 * distinct > math.prod(value.shape)
