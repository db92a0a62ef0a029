"""From a graph to steps: kernels with everything elementwise fused in, contractions, control flow, calls into NumPy.

A schedule has three parts, each with state that no other file touches: what variables are (bindings.py), which steps
are open and what is fused into them (fusion.py), and the steps in their order (emission.py). Here equations go through
them; what each primitive becomes is told by lowering.py.
"""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager

from ...ir.folding import steady_values
from ...ir.graph import Equation, Graph, Var, has_effect
from . import lowering
from .bindings import Bindings
from .complexes.rules import without_complex
from .order import ordered
from .processor import Processor
from .steps import Fallback
from .text import operations
from .tuning import HEAVIEST
from .values import Buffer, Earlier, Op, Value, View, whole


class Schedule(Bindings):
    """The steps of a graph in order, and its buffers."""

    def __init__(self, graph: Graph, cpu: Processor, steady: Collection[int] = frozenset()) -> None:
        super().__init__(cpu)
        self.inputs: list[Buffer] = []
        self.outputs: list[Buffer] = []
        graph = without_complex(graph)
        for i, var in enumerate(graph.inputs):
            buffer = Buffer("input", math.prod(var.shape), var.dtype, i)
            self.inputs.append(buffer)
            self.bind(var, whole(buffer, var.shape))
        # what is the same in every turn of the loop that is being scheduled, or in many calls
        self.fixed: Container[Buffer] = {self.inputs[i] for i in steady}
        self.steady = steady_values(graph, steady)
        self.run(graph)
        made = {var: equation for equation in graph.equations for var in equation.outputs}
        for i, atom in enumerate(graph.outputs):
            self.made_for(made.get(atom) if isinstance(atom, Var) else None)
            self.outputs.append(self._output(i, self.value(atom)))
        self.close_all()
        self.finish()

    def run(self, graph: Graph) -> None:
        """Schedule the equations of a graph, whose inputs have values."""
        uses = self.count_uses(graph)
        for equation in ordered(graph.equations):
            self._equation_steps(equation, uses)
            self.close_old()

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """Schedule the body of a loop: what exists already is the same in every turn."""
        outside, self.fixed = self.fixed, Earlier()
        yield
        self.fixed = outside

    def _equation_steps(self, equation: Equation, uses: Tally[Var]) -> None:
        self.made_for(equation)
        for var in equation.outputs:
            self.forget(var)
        before = len(self.steps)
        self._lowered(equation, uses)
        for step in self.steps[before:]:
            self.origins.setdefault(id(step), [equation])

    def _lowered(self, equation: Equation, uses: Tally[Var]) -> None:
        lowered = lowering.RULES.get(equation.primitive.name)
        idle = not any(v.aval.size for v in equation.outputs) and not has_effect(equation)
        if idle and not (lowered and lowered.always):
            for var in equation.outputs:  # there is nothing to compute
                self.bind(var, self.new(var.shape, var.dtype))
            return
        if lowered is not None and lowered.rule(self, equation):
            for var in equation.outputs:
                value = self.known(var)
                if isinstance(value, Op) and value.weight > HEAVIEST:
                    self.keep(value)
                elif value is not None and uses[var] > 1:
                    self.reused(value)
        elif not lowering.composed(self, equation) and not self._elementwise(equation, uses):
            self.fallback(equation)

    def _elementwise(self, equation: Equation, uses: Tally[Var]) -> bool:
        out = equation.outputs[0]
        dts = [a.dtype for a in equation.inputs]
        if not operations.supported(equation.primitive.name, dts, out.dtype) or not out.aval.size:
            return False
        args = [self.broadcast(self.value(a), out.shape) for a in equation.inputs]
        name = operations.OTHER_NAMES.get(equation.primitive.name, equation.primitive.name)
        op = Op(name, args, out.shape, out.dtype)
        op.wanted = self.place_for(out)
        self.bind(out, op)
        if op.weight > HEAVIEST:
            self.keep(op)
        elif uses[out] > 1:
            self.reused(op)
        return True

    def fallback(self, equation: Equation) -> None:
        inputs = [self.in_memory(self.value(a)) for a in equation.inputs]
        outputs = [self.target(v) for v in equation.outputs]
        self.emit(Fallback(equation, inputs, outputs))
        for var, view in zip(equation.outputs, outputs, strict=True):
            self.bind(var, view)

    def _output(self, position: int, value: Value) -> Buffer:
        value = self.settled(value)
        view = self.keep(value) if isinstance(value, Op) else value
        if isinstance(view, View) and view.buffer.kind == "arena" and view.is_contiguous():
            view.buffer.kind, view.buffer.position = "output", position
            return view.buffer
        buffer = Buffer("output", math.prod(value.shape), value.dtype, position)
        self.copy(view, whole(buffer, value.shape))
        return buffer
