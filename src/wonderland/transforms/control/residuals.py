"""What a loop keeps of every step for its way back: as little as possible.

A residual that is a few additions and products of others, as s (1 - s) is of a sigmoid s, is computed again from them.
One that is an element of a sequence, or among the results, is there already. So an LSTM keeps its gates and states,
and not the derivatives of its gates; a linear recurrence keeps its states.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from ...ir.graph import Atom, Equation, Graph, Var
from ...primitives.elementwise import add, astype, multiply, negative, subtract

CHEAP = (add, subtract, multiply, negative, astype)  # beside views, which cost nothing
MOST = 12  # equations that are computed again for one residual


class Kept(NamedTuple):
    """What must be there on the way back, and the equations that give all residuals of it."""

    fixed: list[Var]  # the same in all steps
    moving: list[Var]
    again: list[Equation]


def fewer(forward: Graph, residuals: Sequence[Atom], constant: Container[Var], there: Container[Var]) -> Kept:
    """What to keep for some residuals of a step; what is `constant` or `there` costs nothing."""
    made = {out: equation for equation in forward.equations for out in equation.outputs}
    kept = dict.fromkeys(a for a in residuals if isinstance(a, Var))
    needed: set[int] = set()
    for residual in reversed(kept):
        if residual in constant or residual in there:
            continue
        equations, leaves = _expanded(residual, made, kept, constant, there)
        new = [leaf for leaf in leaves if not (leaf in kept or leaf in constant or leaf in there)]
        if 0 < len(equations) <= MOST and sum(leaf.aval.nbytes for leaf in new) <= residual.aval.nbytes:
            kept = {var: None for var in kept if var is not residual} | dict.fromkeys(leaves)
            needed.update(id(equation) for equation in equations)
    again = [equation for equation in forward.equations if id(equation) in needed]
    fixed = [var for var in kept if var in constant]
    return Kept(fixed, [var for var in kept if var not in constant], again)


def _expanded(
    residual: Var, made: dict[Var, Equation], kept: Container[Var], constant: Container[Var], there: Container[Var]
) -> tuple[list[Equation], list[Var]]:
    """The cheap equations that a residual comes from, and what they begin with."""
    equations: dict[int, Equation] = {}
    leaves: dict[Var, None] = {}
    waiting = [residual]
    while waiting:
        var = waiting.pop()
        equation = made.get(var)
        known = var is not residual and (var in kept or var in constant or var in there)
        if known or equation is None or not _is_cheap(equation) or len(equations) > MOST:
            leaves[var] = None
        elif id(equation) not in equations:
            equations[id(equation)] = equation
            waiting += [a for a in equation.inputs if isinstance(a, Var)]
    return list(equations.values()), list(leaves)


def _is_cheap(equation: Equation) -> bool:
    return len(equation.outputs) == 1 and (equation.primitive.view or equation.primitive in CHEAP)


def renamed(graph: Graph, names: dict[Var, Atom], before: list[Equation], inputs: list[Var]) -> Graph:
    """The graph behind other equations, with some of its variables called by what these give."""

    def of(atom: Atom) -> Atom:
        return names.get(atom, atom) if isinstance(atom, Var) else atom

    equations = [
        Equation(e.primitive, [of(a) for a in e.inputs], e.params, e.outputs, e.source, e.module, e.phase)
        for e in graph.equations
    ]
    return Graph(inputs, before + equations, [of(a) for a in graph.outputs], graph.name)
