"""Running a graph: with NumPy at once (the reference), or equation by equation under the current interpreter."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...core.context import BACKWARD, FORWARD_MODE, at, current, current_pass, exhaust
from ...core.errors import NonFiniteError, WonderlandError
from ...core.evaluation import explained
from ...core.handover import Delivery
from ...core.interpreter import bind
from ...core.tensor import Tensor, wrap
from ...core.typing import Array
from ...ir.graph import Atom, Equation, Graph, Literal, Var
from ...ir.simplify import simplify


class Plan:
    """How to run a graph: every value has a slot, and every equation says which slots are not needed after it."""

    def __init__(self, graph: Graph) -> None:
        self.slots: list[Array | None] = [None] * len(graph.inputs)  # what they hold before the run: constants
        places = {var: i for i, var in enumerate(graph.inputs)}

        def place(atom: Atom) -> int:
            if isinstance(atom, Var) and atom in places:
                return places[atom]
            self.slots.append(atom.data if isinstance(atom, Literal) else None)
            if isinstance(atom, Var):
                places[atom] = len(self.slots) - 1
            return len(self.slots) - 1

        self.steps: list[tuple[Equation, list[int], list[int], list[int]]] = []
        for equation in graph.equations:
            ins = [place(a) for a in equation.inputs]
            self.steps.append((equation, ins, [place(v) for v in equation.outputs], []))
        self.outputs = [place(a) for a in graph.outputs]
        kept = set(self.outputs)
        for _, ins, outs, done in reversed(self.steps):
            done.extend({*ins, *outs} - kept)
            kept.update(done)

    def __call__(
        self, arrays: list[Array], owned: Collection[int] = frozenset(), deliver: Delivery | None = None
    ) -> list[Array]:
        values: list[Any] = [*arrays, *self.slots[len(arrays) :]]
        debug = current().settings.debug
        with np.errstate(all="ignore"):
            for equation, ins, outs, done in self.steps:
                args = [values[i] for i in ins]
                value = None  # an equation may have no result
                for i, value in zip(outs, run_equation(equation, args), strict=True):
                    values[i] = value if type(value) is np.ndarray else np.asarray(value)
                if debug is not None:
                    debug(equation.primitive, [wrap(a) for a in args], [wrap(values[i]) for i in outs], equation)
                del args, value
                for i in done:
                    values[i] = None
        results = [values[i] for i in self.outputs]
        if deliver is not None:
            exhaust(deliver(results, {}))
        return results


def plan_of(graph: Graph) -> Plan:
    """How to run a graph, found once."""
    made = graph.programs.get("numpy")
    if made is None:
        made = graph.programs["numpy"] = Plan(simplify(graph))
    return made


def evaluate(graph: Graph, arrays: list[Array]) -> list[Array]:
    """The reference: every equation in order, with NumPy. Values are dropped after their last use."""
    return plan_of(graph)(arrays)


def run_equation(equation: Equation, args: list[Array]) -> Sequence[Array]:
    """The results of one equation, with NumPy; an error says where the equation was traced."""
    try:
        out = equation.primitive.impl(*args, **equation.params)
    except WonderlandError as error:
        located(equation, error)
        raise
    except Exception as error:
        if equation.primitive.foreign:
            raise
        raise located(equation, explained(equation.primitive, equation.inputs, error)) from error
    return out if equation.primitive.multiple else (out,)


def located(equation: Equation, error: WonderlandError) -> WonderlandError:
    """The error with the place where the equation was traced; of nested graphs the innermost counts."""
    text = str(error)
    if "traced at:" not in text and not isinstance(error, NonFiniteError):  # the latter knows its place
        if equation.module:
            text += f"\n  traced in module: {equation.module}"
        if equation.source:
            text += f"\n  traced at: {equation.source.text()}"
        error.args = (text,)
    return error


def interpret(graph: Graph, args: Sequence[Tensor]) -> list[Tensor]:
    """Every equation in order under the current interpreter: how transformations go through a graph."""
    values: dict[Var, Tensor] = dict(zip(graph.inputs, args, strict=True))

    def value(atom: Atom) -> Tensor:
        return wrap(atom.data) if isinstance(atom, Literal) else values[atom]

    backward = current_pass.get().phase.startswith(BACKWARD)  # then a derivative is computed in order to be transposed
    for equation in graph.equations:
        phase = equation.phase.replace(FORWARD_MODE, BACKWARD) if backward else equation.phase
        with at(equation.source, equation.module, phase):
            out = bind(equation.primitive, *[value(a) for a in equation.inputs], **equation.params)
        for var, result in zip(equation.outputs, out if equation.primitive.multiple else [out], strict=True):
            values[var] = result
    return [value(a) for a in graph.outputs]
