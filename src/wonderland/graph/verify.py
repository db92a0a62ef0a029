"""The rules that every graph keeps, checked: single assignment, definition before use, and types that agree."""

from __future__ import annotations

from ..errors import GraphError
from .ir import Graph, Literal, Var, carried


def verify(graph: Graph) -> None:
    """Raise `GraphError` if the graph breaks a rule."""
    defined: set[Var] = set()
    for var in graph.inputs:
        if var in defined:
            raise GraphError(f"{graph.name}: an input appears twice.")
        defined.add(var)
    for i, equation in enumerate(graph.equations):
        place = f"{graph.name}, equation {i} ({equation.primitive.name})"
        for atom in equation.inputs:
            if isinstance(atom, Var) and atom not in defined:
                raise GraphError(f"{place}: uses a variable of {atom.aval} before it is defined.")
        avals = equation.primitive.abstract(*equation.inputs, **equation.params)
        expected = list(avals) if equation.primitive.multiple else [avals]
        if [tuple(a) for a in expected] != [tuple(v.aval) for v in equation.outputs]:
            raise GraphError(
                f"{place}: results are typed {[str(v.aval) for v in equation.outputs]}, "
                f"but the primitive gives {[str(a) for a in expected]}."
            )
        for var in equation.outputs:
            if var in defined:
                raise GraphError(f"{place}: assigns a variable twice.")
            defined.add(var)
        for inner in carried(equation):
            verify(inner)
    for atom in graph.outputs:
        if not isinstance(atom, Literal) and atom not in defined:
            raise GraphError(f"{graph.name}: returns a variable of {atom.aval} that is not defined.")
