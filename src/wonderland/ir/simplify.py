"""Passes that keep a graph's meaning: equal equations become one, and what nobody needs is removed.

Derivatives are taken of graphs in which nothing has been shared yet. So the adjoints of a value that the program
computes twice are added in the same order as without a graph, to the last bit; equations are shared when a graph is run
or shown.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..core.trees import Static
from .graph import Atom, Equation, Graph, Literal, Var, has_effect


def simplify(graph: Graph) -> Graph:
    """The graph, and the graphs inside it, without common subexpressions and dead code. Made once per graph."""
    if graph.is_simple:
        return graph
    if graph.simplified is None:
        graph.simplified = remove_dead(share_common(graph)[0])
        graph.simplified.is_simple = True
    return graph.simplified


def remove_dead(graph: Graph) -> Graph:
    """Without the equations whose results are never used, but for those that have an effect."""
    needed = {a for a in graph.outputs if isinstance(a, Var)}
    kept: list[Equation] = []
    for equation in reversed(graph.equations):
        if any(v in needed for v in equation.outputs) or has_effect(equation):
            kept.append(equation)
            needed.update(a for a in equation.inputs if isinstance(a, Var))
    return Graph(graph.inputs, kept[::-1], graph.outputs, graph.name)


def share_common(graph: Graph) -> tuple[Graph, dict[Var, Var]]:
    """Equations with the same primitive, parameters and inputs are computed once, unless they have an effect.

    Returned with the variables that others now stand for.
    """
    renamed: dict[Var, Var] = {}
    seen: dict[Hashable, Equation] = {}
    kept: list[Equation] = []

    def current(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else renamed.get(atom, atom)

    for equation in graph.equations:
        new = Equation(
            equation.primitive,
            [current(a) for a in equation.inputs],
            {name: _simplified(value) for name, value in equation.params.items()},
            equation.outputs,
            equation.source,
            equation.module,
            equation.phase,
        )
        first = new if has_effect(new) else seen.setdefault(_key(new), new)
        if first is new:
            kept.append(new)
        else:
            renamed.update(zip(equation.outputs, first.outputs, strict=True))
    return Graph(graph.inputs, kept, [current(a) for a in graph.outputs], graph.name), renamed


def _simplified(value: object) -> object:
    """A parameter, with the graphs in it simplified."""
    if isinstance(value, Graph):
        return simplify(value)
    if isinstance(value, tuple) and any(isinstance(v, Graph) for v in value):
        return tuple(_simplified(v) for v in value)
    return value


def _key(equation: Equation) -> Hashable:
    atoms = tuple((a.data.dtype, a.data.tobytes()) if isinstance(a, Literal) else a for a in equation.inputs)
    params = tuple((name, Static(value)) for name, value in sorted(equation.params.items()))
    return (equation.primitive, atoms, params)
