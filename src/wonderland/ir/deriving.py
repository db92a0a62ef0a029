"""Graphs made from others: traced without their surroundings, and once for every question."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from ..core.errors import GradientError
from ..core.primitive import Aval, Primitive, aval_of
from ..core.tensor import Tensor
from .graph import Equation, Graph
from .simplify import remove_dead
from .stage import stage

Answer = TypeVar("Answer")
ANSWERS = 64  # that a graph remembers: batches of ever new sizes are ever new questions


def pure(f: Callable[..., Sequence[Tensor]], avals: list[Aval], name: str) -> Graph:
    """Trace a function that needs nothing but its arguments; constants that rules make stay constants."""
    staged = stage(f, avals, name=name, parent=None)
    if staged.read_cells or staged.written_cells or staged.made_cells:
        raise GradientError(
            f"{name}: the rule of a custom derivative reads or changes state.", "pass the state as an argument"
        )
    graph = staged.graph
    n = len(staged.captured)
    first = [
        Equation(constant, [], {"value": Constant(value)}, [var])
        for value, var in zip(staged.captured, graph.inputs[:n], strict=True)
    ]
    return remove_dead(Graph(graph.inputs[n:], first + graph.equations, graph.outputs, graph.name))


class Constant:
    """A tensor as a parameter, known by identity."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"<{self.tensor.dtype}{list(self.tensor.shape)}>"


constant: Primitive = Primitive(
    "constant",
    lambda value: value.tensor._data,
    lambda value: aval_of(value.tensor),
    batch=lambda *args, **params: None,  # never called: there is no argument
    free=True,
)


def once(graph: Graph, question: Hashable, make: Callable[[], Answer]) -> Answer:
    """The answer to a question about a graph, found once. Of many answers, those asked for last are remembered."""
    answers = graph.answers
    found = answers.pop(question, None)
    if found is None:
        found = make()
        asked = [known for known in list(answers) if type(known) is tuple]
        for old in asked[: len(asked) + 1 - ANSWERS]:
            answers.pop(old, None)
    answers[question] = found  # again at the end
    return found


def input_avals(graph: Graph) -> list[Aval]:
    return [v.aval for v in graph.inputs]


def output_avals(graph: Graph) -> list[Aval]:
    return [a.aval for a in graph.outputs]
