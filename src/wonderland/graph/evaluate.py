"""Running a graph: with NumPy at once (the reference), or equation by equation under the current interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..context import state
from ..errors import WonderlandError
from ..interpreter import bind, explained
from ..tensor import wrap
from .ir import Atom, Equation, Graph, Literal, Var

Array = np.ndarray[Any, Any]


def last_uses(graph: Graph) -> list[list[Var]]:
    """For every equation, the variables that are not needed after it."""
    kept = {a for a in graph.outputs if isinstance(a, Var)}
    result: list[list[Var]] = []
    for equation in reversed(graph.equations):
        done = []
        for atom in [*equation.inputs, *equation.outputs]:
            if isinstance(atom, Var) and atom not in kept:
                kept.add(atom)
                done.append(atom)
        result.append(done)
    return result[::-1]


def evaluate(graph: Graph, arrays: list[Array]) -> list[Array]:
    """The reference: every equation in order, with NumPy. Values are dropped after their last use."""
    if "last_uses" not in graph.derived:
        graph.derived["last_uses"] = last_uses(graph)
    values: dict[Var, Array] = dict(zip(graph.inputs, arrays, strict=True))
    debug = state.debug
    with np.errstate(all="ignore"):
        for equation, done in zip(graph.equations, graph.derived["last_uses"], strict=True):
            args = [a.data if isinstance(a, Literal) else values[a] for a in equation.inputs]
            try:
                out = equation.primitive.impl(*args, **equation.params)
            except WonderlandError:
                raise
            except Exception as error:
                raise _explain(equation, error) from error
            outs = out if equation.primitive.multiple else [out]
            for var, value in zip(equation.outputs, outs, strict=True):
                values[var] = value if type(value) is np.ndarray else np.asarray(value)
            if debug is not None:
                debug(
                    equation.primitive,
                    [wrap(a) for a in args],
                    [wrap(values[v]) for v in equation.outputs],
                    equation,
                )
            for var in done:
                values.pop(var, None)
    return [a.data if isinstance(a, Literal) else values[a] for a in graph.outputs]


def _explain(equation: Equation, error: Exception) -> WonderlandError:
    made = explained(equation.primitive, equation.inputs, error)
    where = ""
    if equation.module:
        where += f"\n  traced in module: {equation.module}"
    if equation.source:
        where += f"\n  traced at: {equation.source.text()}"
    made.args = (made.args[0] + where,)
    return made


def interpret(graph: Graph, args: list[Any]) -> list[Any]:
    """Every equation in order under the current interpreter: how transformations go through a graph."""
    values: dict[Var, Any] = dict(zip(graph.inputs, args, strict=True))

    def value(atom: Atom) -> Any:
        return wrap(atom.data) if isinstance(atom, Literal) else values[atom]

    for equation in graph.equations:
        out = bind(equation.primitive, *[value(a) for a in equation.inputs], **equation.params)
        for var, result in zip(equation.outputs, out if equation.primitive.multiple else [out], strict=True):
            values[var] = result
    return [value(a) for a in graph.outputs]
