"""The records of a graph: variables with a type, equations that define them once, inputs and outputs.

Shapes are static, every variable is assigned once and before it is used, and an equation whose primitive carries
graphs (a loop, a branch, a call) holds them among its parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..context import FORWARD, Source
from ..primitives.primitive import Aval, Primitive


class Typed:
    """What has a shape and a dtype."""

    __slots__ = ("aval",)
    aval: Aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
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

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
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
    derived: dict[Any, Any] = field(default_factory=dict)  # graphs made from this one, by what was asked

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
