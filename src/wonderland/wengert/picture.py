"""A trace as a picture of its graph."""

from __future__ import annotations

from typing import Any

from ..core.giving import given_to
from ..storage.svg import SVG
from ..viz.graph import Edge, Node, draw
from ..viz.marks import shortened
from .program import Trace
from .tables import result_name, tensor_text

WIDEST = 34  # characters of an expression


def draw_trace(trace: Trace, *, adjoints: bool, precision: int) -> SVG:
    """Inputs and steps as cards with value and adjoint; an arrow for every use of a value."""
    found = trace.adjoints() if adjoints and trace.scalar else {}

    def rows(name: str) -> list[tuple[str, str]]:
        lines = [("value", tensor_text(values[name], precision))]
        return [*lines, ("adjoint", tensor_text(found[name], precision))] if name in found else lines

    values = trace.values
    results = {o for o in trace.outputs if isinstance(o, str)}
    nodes = [Node(name, "", rows(name), "input", name) for name in trace.inputs]
    edges = []
    for step in trace.steps:
        for name in step.outputs:
            kind = "output" if name in results else "operation"
            nodes.append(Node(name, shortened(step.expression, WIDEST), rows(name), kind, name))
            edges += [Edge(use, name) for use in step.uses]
    title = f"{result_name(trace)} = {trace.title}" if trace.title else "evaluation trace"
    return draw(nodes, edges, title=title)


@given_to(Trace)
class Drawn:
    """Traces as pictures."""

    def svg(self: Any, *, adjoints: bool = True, precision: int = 4) -> SVG:
        """The graph as the text of an SVG picture: every operation with its value and its adjoint."""
        return draw_trace(self, adjoints=adjoints, precision=precision)
