"""Passes that keep a graph's meaning: equal equations become one, and what nobody needs is removed."""

from __future__ import annotations

from typing import Any

from .ir import Atom, Equation, Graph, Literal, Var


def simplify(graph: Graph) -> Graph:
    """Common subexpressions, then dead code."""
    return remove_dead(share_common(graph))


def remove_dead(graph: Graph) -> Graph:
    """Without the equations whose results are never used."""
    needed = {a for a in graph.outputs if isinstance(a, Var)}
    kept: list[Equation] = []
    for equation in reversed(graph.equations):
        if any(v in needed for v in equation.outputs):
            kept.append(equation)
            needed.update(a for a in equation.inputs if isinstance(a, Var))
    return Graph(graph.inputs, kept[::-1], graph.outputs, graph.name)


def share_common(graph: Graph) -> Graph:
    """Equations with the same primitive, parameters and inputs are computed once (all primitives are pure)."""
    renamed: dict[Var, Var] = {}
    seen: dict[Any, Equation] = {}
    kept: list[Equation] = []

    def current(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else renamed.get(atom, atom)

    for equation in graph.equations:
        inputs = [current(a) for a in equation.inputs]
        key = _key(equation, inputs)
        first = None if key is None else seen.get(key)
        if first is not None:
            renamed.update(zip(equation.outputs, first.outputs, strict=True))
            continue
        new = Equation(
            equation.primitive, inputs, equation.params, equation.outputs, equation.source, equation.module, equation.phase
        )
        if key is not None:
            seen[key] = new
        kept.append(new)
    return Graph(graph.inputs, kept, [current(a) for a in graph.outputs], graph.name)


def _key(equation: Equation, inputs: list[Atom]) -> Any:
    atoms = tuple((a.data.dtype, a.data.tobytes()) if isinstance(a, Literal) else a for a in inputs)
    key = (equation.primitive, atoms, tuple(sorted(equation.params.items(), key=lambda item: item[0])))
    try:
        hash(key)
    except TypeError:
        return None
    return key
