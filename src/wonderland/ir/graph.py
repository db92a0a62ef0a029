"""The records of a graph: variables with a type, equations that define them once, inputs and outputs.

Shapes are static, every variable is assigned once and before it is used, and an equation whose primitive carries
graphs (a loop, a branch, a call) holds them among its parameters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.context import FORWARD, Source
from ..core.dtypes import DType
from ..core.primitive import Aval, Primitive
from ..core.typing import Array

if TYPE_CHECKING:
    from .at_size import AtSize


class Typed:
    """What has a shape and a dtype."""

    __slots__ = ("aval",)
    aval: Aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)


class Var(Typed):
    """A value of the graph, known by identity."""

    __slots__ = ()

    def __init__(self, aval: Aval) -> None:
        self.aval = aval


class Literal(Typed):
    """A constant scalar written into the graph."""

    __slots__ = ("data",)

    def __init__(self, data: Array) -> None:
        self.data = data
        self.aval = Aval((), data.dtype)


Atom = Var | Literal


@dataclass(slots=True)
class Equation:
    """outputs = primitive(inputs, params), and where the user wrote it."""

    primitive: Primitive
    inputs: list[Atom]
    params: dict[str, Any]
    outputs: list[Var]
    source: Source | None = None
    module: str | None = None  # the path of the module that was being called
    phase: str = FORWARD  # or "backward pass, derivative of sqrt": what the equation computes


@dataclass(eq=False, slots=True, weakref_slot=True)
class Graph:
    """A traced function. Graphs are compared by identity."""

    inputs: list[Var]
    equations: list[Equation]
    outputs: list[Atom]
    name: str = "graph"
    states: Mapping[int, int] = field(default_factory=dict)  # the outputs that are new values of inputs, and of which
    constants: int = 0  # how many inputs are constants of the trace; they come first
    cells: int = 0  # and how many are state, which comes next
    results: int = 0  # how many outputs are results; the others are new state
    steady: frozenset[int] = frozenset()  # inputs that are likely to be the same at the next call: state, read only
    programs: dict[str, Any] = field(default_factory=dict)  # what runs it, by the engine's name
    answers: dict[Hashable, Any] = field(
        default_factory=dict
    )  # what was made of it, by what was asked, see deriving.py
    at_size: AtSize | None = None  # the graph for all sizes that it is one of, see at_size.py
    simplified: Graph | None = None  # see simplify.py
    is_simple: bool = False  # whether it is its own simplified form

    def subgraphs(self) -> Iterator[Graph]:
        """The graphs that equations of this one carry."""
        for equation in self.equations:
            yield from carried(equation)


def carried(equation: Equation) -> Iterator[Graph]:
    """The graphs among an equation's parameters."""
    for value in equation.params.values():
        if isinstance(value, Graph):
            yield value
        elif isinstance(value, tuple):
            yield from (v for v in value if isinstance(v, Graph))


def has_effect(equation: Equation) -> bool:
    """Whether an equation does something besides giving results, itself or in a graph that it carries."""
    return equation.primitive.effect or any(_has_effects(graph) for graph in carried(equation))


def _has_effects(graph: Graph) -> bool:
    if "effects" not in graph.answers:
        graph.answers["effects"] = any(map(has_effect, graph.equations))
    return graph.answers["effects"]
