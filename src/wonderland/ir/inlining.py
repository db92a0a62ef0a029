"""Calls as what they consist of: the graphs of `call`, and functions with derivatives of their own, in one graph.

Two graphs can be compared equation by equation (see sizes.py) where no equation carries a graph that a size goes
through.
"""

from __future__ import annotations

from collections.abc import Iterator

from .graph import Atom, Equation, Graph, Literal, Var
from .simplify import simplify


def inlined(graph: Graph) -> Graph:
    """The simplified graph without calls."""
    names: dict[Var, Atom] = {}
    equations = [*_flat(simplify(graph), names)]
    outputs = [_now(a, names) for a in simplify(graph).outputs]
    return simplify(Graph(graph.inputs, equations, outputs, graph.name))


def _now(atom: Atom, names: dict[Var, Atom]) -> Atom:
    return atom if isinstance(atom, Literal) else names.get(atom, atom)


def _flat(graph: Graph, names: dict[Var, Atom]) -> Iterator[Equation]:
    for e in graph.equations:
        inputs, inner = [_now(a, names) for a in e.inputs], _inside(e)
        if inner is None:
            outputs = [Var(v.aval) for v in e.outputs]  # a graph may be called twice
            names.update(zip(e.outputs, outputs, strict=True))
            yield Equation(e.primitive, inputs, e.params, outputs, e.source, e.module, e.phase)
            continue
        names.update(zip(inner.inputs, inputs, strict=True))
        yield from _flat(inner, names)
        names.update(zip(e.outputs, [_now(a, names) for a in inner.outputs], strict=True))


def _inside(e: Equation) -> Graph | None:
    """The graph that an equation is a call of."""
    if e.primitive.name == "call":
        return simplify(e.params["graph"])
    if e.primitive.name in ("custom_jvp", "custom_vjp"):
        staged = e.params["custom"].trace(tuple(a.aval for a in e.inputs))
        if not staged.read_cells and not staged.captured:
            return simplify(staged.graph)
    return None
