"""Whether a graph is a template at some batch size, and with which numbers.

A function is traced at every new size, and most of its equations have nothing to do with the batch. So what is expected
is written down once, with sizes as extents, and a trace is held against it. One that is not as expected is compared
with the graph that the template was made of, which tells the reason.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core.primitive import Aval, Primitive
from ..core.trees import Static
from ..core.typing import Array
from ..primitives.structure import broadcast_to
from .graph import Atom, Equation, Graph, Literal, Var
from .sizes import Extent, Pair, Template, VaryingError, at, varying


@dataclass(eq=False)
class AtSize:
    """That a graph is a template at some batch size, with the numbers that depend on it."""

    template: Template
    n: int
    numbers: list[Array]


def at_size(outline: Outline, graph: Graph, n: int) -> AtSize | None:
    """The graph as its template at size n; None if it is something else."""
    try:
        numbers = outline.numbers(graph, n)
        return AtSize(outline.template, n, numbers_at(outline.template, graph, n) if numbers is None else numbers)
    except VaryingError:
        return None


def numbers_at(template: Template, graph: Graph, n: int) -> list[Array]:
    """The numbers that depend on the size, for a graph that is the template at size n. Raises if it is not."""
    pair = Pair(template.source, graph, (template.size, n), set(template.numbers))
    if pair.numbers != [*template.numbers]:
        raise VaryingError(f"a number depends on whether the batch is one of {template.size} or one of {n}")
    if n != template.size and pair.dims != template.dims:
        raise VaryingError(f"there are other sizes for a batch of {n} than for one of {template.size}")
    found = _Numbers()
    if not all(found.add(group, pair.values[place]) for place, group in template.numbers.items()):
        raise VaryingError(f"two numbers are the same for a batch of {template.size}, and not for one of {n}")
    return found.arrays()


class _Numbers:
    """Those that inputs of a template take, from all the places where they stand."""

    def __init__(self) -> None:
        self._known: dict[int, Array] = {}

    def add(self, position: int, number: Array) -> bool:
        """Whether it is the number that was found for this input before, if one was."""
        known = self._known.setdefault(position, number)
        return _equal(known, number)

    def arrays(self) -> list[Array]:
        return [np.array(self._known[i]) for i in range(len(self._known))]


class _Expected(NamedTuple):
    """An equation of a template, with its inputs by their places."""

    primitive: Primitive
    inputs: list[int | Literal]  # see `Outline._place`
    params: Mapping[str, object]
    outputs: int  # how many


class Outline:
    """What a graph that is a template at some size looks like."""

    def __init__(self, template: Template) -> None:
        self.template, graph = template, template.whole
        first = len(graph.inputs) - template.count
        self._dtypes = [v.dtype for v in graph.inputs[first:]]  # of the numbers
        self._numbers = {v: i - template.count for i, v in enumerate(graph.inputs[first:])}
        self._places = {v: i for i, v in enumerate(graph.inputs[:first])}
        self._avals = [v.aval for v in graph.inputs[:first]]
        self._equations = [self._expected(e) for e in graph.equations]
        self._outputs = [self._place(a) for a in graph.outputs]
        self._varying = [(i, a) for i, a in enumerate(self._avals) if varying(a.shape)]

    def _expected(self, e: Equation) -> _Expected:
        inputs = [self._place(a) for a in e.inputs]
        for v in e.outputs:
            self._places[v] = len(self._avals)
            self._avals.append(v.aval)
        return _Expected(e.primitive, inputs, e.params, len(e.outputs))

    def _place(self, a: Atom) -> int | Literal:
        """Where a variable stands among all; a negative place is that of a number among those of the size."""
        if isinstance(a, Literal):
            return a
        return self._places[a] if a in self._places else self._numbers[a]

    def numbers(self, graph: Graph, n: int) -> list[Array] | None:
        """The numbers that depend on the size, if the graph is the template at size n as far as can be seen at once."""
        if len(graph.equations) != len(self._equations) or len(graph.outputs) != len(self._outputs):
            return None
        seen, found = [*graph.inputs], _Numbers()
        same = functools.partial(self._same, seen, found)
        for wanted, e in zip(self._equations, graph.equations, strict=True):
            if e.primitive is wanted.primitive:
                if len(e.inputs) != len(wanted.inputs) or not all(map(same, wanted.inputs, e.inputs)):
                    return None
                if (wanted.params or e.params) and not _alike(wanted.params, e.params, n):
                    return None
            elif not self._filled(wanted, e, found):
                return None
            if len(e.outputs) != wanted.outputs:
                return None
            seen += e.outputs
        avals = [*self._avals]
        for i, aval in self._varying:
            avals[i] = Aval(tuple(at(size, n) for size in aval.shape), aval.dtype)
        if [v.aval for v in seen] != avals or not all(map(same, self._outputs, graph.outputs)):
            return None
        return found.arrays()

    def _same(self, seen: list[Var], found: _Numbers, wanted: int | Literal, atom: Atom) -> bool:
        """Whether an atom is what is expected in its place."""
        if isinstance(wanted, Literal):
            return isinstance(atom, Literal) and _equal(wanted.data, atom.data)
        if wanted >= 0:
            return wanted < len(seen) and seen[wanted] is atom
        return isinstance(atom, Literal) and self._found(found, wanted, atom.data)

    def _filled(self, wanted: _Expected, e: Equation, found: _Numbers) -> bool:
        """Whether an equation fills a tensor with a number that comes from the size."""
        (number, *_) = wanted.inputs or [0]
        if wanted.primitive is not broadcast_to or e.primitive.name != "full" or not isinstance(number, int):
            return False
        return number < 0 and self._found(found, number, np.asarray(e.params["value"], e.outputs[0].dtype))

    def _found(self, found: _Numbers, position: int, number: Array) -> bool:
        return number.dtype == self._dtypes[position] and found.add(position + len(self._dtypes), number)


def _equal(x: Array, y: Array) -> bool:
    return x is y or (x.dtype == y.dtype and x.tobytes() == y.tobytes())


def _alike(wanted: Mapping[str, object], params: Mapping[str, object], n: int) -> bool:
    """Whether parameters are those of a template at size n. Graphs among them are compared elsewhere."""
    return wanted.keys() == params.keys() and all(_same_value(value, params[key], n) for key, value in wanted.items())


def _same_value(wanted: object, value: object, n: int) -> bool:
    if wanted is value:
        return True
    if isinstance(wanted, Extent):
        return type(value) is int and wanted.at(n) == value
    if type(wanted) is not type(value):
        return False
    if isinstance(wanted, tuple) and isinstance(value, tuple):
        return len(wanted) == len(value) and all(_same_value(x, y, n) for x, y in zip(wanted, value, strict=True))
    return Static(wanted) == Static(value)
