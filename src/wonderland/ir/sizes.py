"""Sizes that vary: what graphs of one function at two batch sizes have in common, as one graph for all sizes.

Two traces of a function that treats an axis as a batch are the same but for sizes that are multiples of the batch size,
and for numbers that were computed from it, such as the 1/n of a mean. `generalised` compares them and makes a graph in
which the former are of type `Extent` and the latter are inputs. Whatever else differs is the reason why there is none.

Every new size is still traced, which takes a fraction of the time of compiling, and compared with the first graph: so
a function that does something else from 100 rows on gets a program of its own there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, Self

import numpy as np

from ..core.primitive import Aval
from ..core.trees import Static
from ..core.typing import Array
from ..primitives.structure import broadcast_to
from .graph import Atom, Equation, Graph, Literal, Typed, Var
from .simplify import simplify


class Range(NamedTuple):
    """Batches that one program serves: of at least and at most so many rows, and how many its choices are made for."""

    least: int
    most: int
    favoured: int


# sums over more than 1,024 rows are made in parts
RANGES = (Range(1, 1024, 128), Range(1025, 1 << 31, 4096))


def range_of(n: int) -> Range | None:
    """The range that a batch of n belongs to, if there is one."""
    return next((r for r in RANGES if r.least <= n <= r.most), None)


class VaryingError(Exception):
    """Why there is no graph, or no program, for all sizes."""


def _unknown(*_: object) -> NoReturn:
    raise VaryingError("something is computed from the size of the batch in a way that is not known")


class Extent(int):
    """A size that is known when a program runs: outer * ceil(inner * n / per) for a batch of n.

    As a number, `int(size)`, it is that of a batch of `hint` rows, by which choices are made. That is a prime that
    divides no other size of the graph. Extents can be multiplied and cut into `pieces`; other arithmetic raises, none
    equals a number (not even 1, whatever the hint), and their text is none: they cannot get into code unnoticed.
    """

    hint: int
    inner: int
    per: int
    outer: int
    most: int  # rows of a batch

    def __new__(cls, hint: int, most: int, inner: int = 1, per: int = 1, outer: int = 1) -> Self:
        made = super().__new__(cls, outer * -(-inner * hint // per))
        made.hint, made.most, made.inner, made.per, made.outer = hint, most, inner, per, outer
        return made

    def at(self, n: int) -> int:
        """The size for a batch of n."""
        return self.outer * -(-self.inner * n // self.per)

    def _times(self, other: int) -> int:
        if isinstance(other, Extent):
            raise VaryingError("two axes of one tensor have the size of the batch")
        if not isinstance(other, int):
            _unknown()
        return Extent(self.hint, self.most, self.inner, self.per, self.outer * other) if other else 0

    __mul__ = __rmul__ = _times
    __add__ = __radd__ = __sub__ = __rsub__ = __neg__ = __pow__ = __rpow__ = _unknown
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __divmod__ = _unknown

    def _form(self) -> tuple[int, int, int]:
        return (self.inner * self.outer, 1, 1) if self.per == 1 else (self.inner, self.per, self.outer)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extent) and self._form() == other._form()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._form())

    def __repr__(self) -> str:
        inside = "n" if self.inner == 1 else f"{self.inner}n"
        inside = inside if self.per == 1 else f"ceil({inside}/{self.per})"
        return inside if self.outer == 1 else f"{self.outer}{inside}"

    __str__ = __repr__


def pieces(size: int, step: int) -> int:
    """Into how many pieces of `step` an axis is cut."""
    if not isinstance(size, Extent):
        return -(-size // step)
    if size.per == 1:
        return Extent(size.hint, size.most, size.inner * size.outer, step)
    if size.outer == 1:
        return Extent(size.hint, size.most, size.inner, size.per * step)  # pieces of pieces
    raise VaryingError("pieces of many pieces of a batch")


def largest(size: int) -> int:
    """The size, or the largest that it may be."""
    return size.at(size.most) if isinstance(size, Extent) else size


def at(size: int, n: int) -> int:
    """The size for a batch of n."""
    return size.at(n) if isinstance(size, Extent) else size


def varying(shape: Sequence[int]) -> list[int]:
    """The axes whose sizes vary."""
    return [axis for axis, size in enumerate(shape) if isinstance(size, Extent)]


@dataclass(eq=False)
class Template:
    """A graph for all sizes of a range. Behind its inputs are numbers that depend on the size."""

    graph: Graph
    whole: Graph  # the same before anything was simplified
    source: Graph  # the graph that it was made of, and its batch size
    size: int
    range: Range
    dims: list[tuple[int, int]]  # where sizes vary, and how often they contain the batch
    numbers: dict[int, int]  # where numbers do, and which of the last inputs they are
    refused: str = ""  # why no program could be made of it
    named: bool = False  # whether the user asked for it, and should hear that there is none

    @property
    def count(self) -> int:
        """How many inputs depend on the size."""
        return len({*self.numbers.values()})


def generalised(a: Graph, b: Graph, sizes: tuple[int, int], serving: Range, named: bool = False) -> Template:
    """The graph for all sizes of a range, from those at two sizes."""
    pair = Pair(a, b, sizes)
    made = _Building(pair, _prime(serving.favoured, _fixed_sizes(pair)), serving.most)
    graph = simplify(made.graph)
    graph.states = a.states
    return Template(graph, made.graph, a, sizes[0], serving, pair.dims, made.groups, named=named)


def resized(graph: Graph, size: Callable[[Extent], int]) -> Graph:
    """A template's graph with other sizes in place of its extents."""
    names: dict[Var, Var] = {}

    def replaced(x: object) -> object:
        if isinstance(x, Extent):
            return size(x)
        return tuple(map(replaced, x)) if type(x) is tuple else x

    def of(given: list[Var]) -> list[Var]:
        for x in given:
            names[x] = Var(Aval(tuple(size(n) if isinstance(n, Extent) else n for n in x.shape), x.dtype))
        return [names[x] for x in given]

    def atom(x: Atom) -> Atom:
        return names[x] if isinstance(x, Var) else x

    inputs = of(graph.inputs)
    equations = [
        Equation(
            e.primitive,
            [atom(x) for x in e.inputs],
            {key: replaced(value) for key, value in e.params.items()},
            of(e.outputs),
            e.source,
            e.module,
            e.phase,
        )
        for e in graph.equations
    ]
    made = Graph(inputs, equations, [atom(x) for x in graph.outputs], graph.name)
    made.is_simple = True
    return made


class Pair:
    """Goes through two graphs side by side. Places are numbered as they are met."""

    def __init__(self, a: Graph, b: Graph, sizes: tuple[int, int], wanted: set[int] | None = None) -> None:
        self.a, self.sizes = a, sizes
        self._wanted = wanted or set()  # places of numbers that count as different
        self.place = 0
        self.dims: list[tuple[int, int]] = []
        self.numbers: list[int] = []
        self.values: dict[int, Array] = {}  # the numbers of b
        self.seen: list[int] = []  # sizes that do not vary
        self._names: dict[Var, Var] = {}
        if len(a.equations) != len(b.equations) or len(a.outputs) != len(b.outputs) or len(a.inputs) != len(b.inputs):
            raise VaryingError(f"the function does something else for a batch of {sizes[1]} than for one of {sizes[0]}")
        self._vars(a.inputs, b.inputs, "an argument")
        for one, other in zip(a.equations, b.equations, strict=True):
            self._equation(one, other)
        for x, y in zip(a.outputs, b.outputs, strict=True):
            self._atom(x, y, "the result")

    def _equation(self, one: Equation, other: Equation) -> None:
        name = one.primitive.name
        if one.primitive is not other.primitive or len(one.inputs) != len(other.inputs):
            raise VaryingError(f"there is {name} for a batch of {self.sizes[0]} and {other.primitive.name} for another")
        for x, y in zip(one.inputs, other.inputs, strict=True):
            self._atom(x, y, name)
        if one.params.keys() != other.params.keys():
            raise VaryingError(f"{name} has other settings for other sizes")
        for key, value in one.params.items():
            if name == "full" and key == "value":
                dtype = one.outputs[0].dtype
                self._number(np.asarray(value, dtype), np.asarray(other.params[key], dtype))
            else:
                self._param(value, other.params[key], f"{key} of {name}")
        self._vars(one.outputs, other.outputs, name)

    def _vars(self, one: list[Var], other: list[Var], what: str) -> None:
        for x, y in zip(one, other, strict=True):
            self._names[x] = y
            if x.dtype != y.dtype or len(x.shape) != len(y.shape):
                raise VaryingError(f"{what} is {x.aval} for one batch and {y.aval} for another")
            for m, n in zip(x.shape, y.shape, strict=True):
                self._dim(m, n, what)

    def _atom(self, x: Atom, y: Atom, what: str) -> None:
        if isinstance(x, Literal) and isinstance(y, Literal) and x.dtype == y.dtype:
            self._number(x.data, y.data)
        elif isinstance(x, Literal) or self._names.get(x) is not y:
            raise VaryingError(f"{what} takes another value for another size")

    def _number(self, x: Array, y: Array) -> None:
        self.place += 1
        self.values[self.place] = y
        if self.place in self._wanted or x.dtype != y.dtype or x.tobytes() != y.tobytes():
            self.numbers.append(self.place)

    def _dim(self, x: int, y: int, what: str) -> None:
        self.place += 1
        if x == y:
            self.seen.append(x)
            return
        times, rest = divmod(x, self.sizes[0])
        if rest or times * self.sizes[1] != y:
            raise VaryingError(
                f"{what} has a size of {x} for a batch of {self.sizes[0]} and of {y} for one of {self.sizes[1]}"
            )
        self.dims.append((self.place, times))

    def _param(self, x: object, y: object, what: str) -> None:
        if type(x) is not type(y):
            raise VaryingError(f"{what} is {x!r} for one size and {y!r} for another")
        if type(x) is int and type(y) is int:
            self._dim(x, y, what)
        elif type(x) is tuple and type(y) is tuple:
            if len(x) != len(y):
                raise VaryingError(f"{what} is {x!r} for one size and {y!r} for another")
            for one, other in zip(x, y, strict=True):
                self._param(one, other, what)
        elif isinstance(x, Graph) and isinstance(y, Graph):
            if x is not y and (found := Pair(x, y, self.sizes)) and (found.dims or found.numbers):
                raise VaryingError(f"the batch goes through {what}, a loop, a branch or a call")
        elif x is not y and Static(x) != Static(y):
            raise VaryingError(f"{what} is {x!r} for one size and {y!r} for another")


class _Building:
    """Makes the general graph: the same walk once more."""

    def __init__(self, pair: Pair, hint: int, most: int) -> None:
        a = pair.a
        self._dims, self._pair = dict(pair.dims), pair
        self._hint, self._most, self._place = hint, most, 0
        self._names: dict[Var, Var] = {}
        self._added: list[Var] = []
        self._known: dict[Hashable, int] = {}
        self.groups: dict[int, int] = dict.fromkeys(pair.numbers, -1)
        inputs = self._vars(a.inputs)
        equations = [self._equation(e) for e in a.equations]
        outputs = [self._atom(x) for x in a.outputs]
        self.graph = Graph([*inputs, *self._added], equations, outputs, a.name)

    def _equation(self, e: Equation) -> Equation:
        inputs = [self._atom(x) for x in e.inputs]
        params: dict[str, object] = {}
        number: Var | None = None
        for key, value in e.params.items():
            if e.primitive.name == "full" and key == "value":
                number, params[key] = self._number(np.asarray(value, e.outputs[0].dtype)), value
            else:
                params[key] = self._param(value)
        outputs = self._vars(e.outputs)
        if number is not None:
            return Equation(broadcast_to, [number], {"shape": outputs[0].shape}, outputs, e.source, e.module, e.phase)
        return Equation(e.primitive, inputs, params, outputs, e.source, e.module, e.phase)

    def _vars(self, given: list[Var]) -> list[Var]:
        for x in given:
            self._names[x] = Var(Aval(tuple(map(self._dim, x.shape)), x.dtype))
        return [self._names[x] for x in given]

    def _atom(self, x: Atom) -> Atom:
        return self._names[x] if isinstance(x, Var) else self._number(x.data) or x

    def _number(self, data: Array) -> Var | None:
        """The input that stands for a number that depends on the size; one for all that are the same at both sizes."""
        self._place += 1
        if self._place not in self.groups:
            return None
        both = data.dtype, data.tobytes(), self._pair.values[self._place].tobytes()
        group = self.groups[self._place] = self._known.setdefault(both, len(self._known))
        if group == len(self._added):
            self._added.append(Var(Aval((), data.dtype)))
        return self._added[group]

    def _dim(self, x: int) -> int:
        self._place += 1
        times = self._dims.get(self._place)
        return x if times is None else Extent(self._hint, self._most, outer=times)

    def _param(self, x: object) -> object:
        if type(x) is int:
            return self._dim(x)
        return tuple(map(self._param, x)) if type(x) is tuple else x


def _fixed_sizes(pair: Pair) -> Iterator[int]:
    yield from pair.seen
    for _, times in pair.dims:
        yield times


def _prime(least: int, others: Iterator[int]) -> int:
    """A prime that divides none of the others."""
    taken = {abs(n) for n in others if n}
    n = least
    while not (all(n % d for d in range(2, int(n**0.5) + 1)) and all(m % n for m in taken)):
        n += 1
    return n


def shape_at(value: Typed, n: int) -> tuple[int, ...]:
    """The shape for a batch of n."""
    return tuple(at(size, n) for size in value.shape)
