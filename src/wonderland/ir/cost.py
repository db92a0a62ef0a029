"""What a graph costs, without running it: operations, multiply-adds, bytes, peak memory.

Loops count their body as often as it runs (a `while` loop once), branches their dearest side. Book, 2.1.2, 6.2, 6.3.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from .graph import Equation, Graph, Var, carried


@dataclass
class Cost:
    """The cost of one evaluation."""

    operations: Counter[str] = field(default_factory=Counter)
    multiply_adds: int = 0
    bytes: int = 0  # read and written by all operations
    peak_bytes: int = 0  # held at one time, arguments included

    @property
    def total_operations(self) -> int:
        return sum(self.operations.values())

    @property
    def intensity(self) -> float:
        """Multiply-adds per byte moved: low means that memory is the limit."""
        return self.multiply_adds / self.bytes if self.bytes else 0.0

    def __str__(self) -> str:
        names = ", ".join(f"{name} {n}" for name, n in self.operations.most_common())
        return (
            f"operations     {self.total_operations:>14,}  ({names})\n"
            f"multiply-adds  {self.multiply_adds:>14,}\n"
            f"bytes moved    {self.bytes:>14,}\n"
            f"peak bytes     {self.peak_bytes:>14,}"
        )


def cost_of(graph: Graph) -> Cost:
    """The cost of a graph."""
    return _cost(graph, {})


def _cost(graph: Graph, known: dict[Graph, Cost]) -> Cost:
    """The cost of a graph; one that is carried by several equations is counted through once."""
    if graph in known:
        return known[graph]
    cost = known[graph] = Cost()
    for equation in graph.equations:
        inner = [_cost(g, known) for g in carried(equation)]
        if not inner:
            cost.operations[equation.primitive.name] += 1
            cost.multiply_adds += multiply_adds(equation)
            if not equation.primitive.view:
                cost.bytes += sum(a.aval.nbytes for a in [*equation.inputs, *equation.outputs])
            continue
        if equation.primitive.alternatives:
            inner = [max(inner, key=lambda c: (c.multiply_adds, c.bytes))]
        times = equation.params.get("length", 1)
        for part in inner:
            cost.operations.update({name: n * times for name, n in part.operations.items()})
            cost.multiply_adds += part.multiply_adds * times
            cost.bytes += part.bytes * times
    cost.peak_bytes = _peak(graph, known)
    return cost


def multiply_adds(equation: Equation) -> int:
    """The multiply-adds (or comparable operations) of one equation."""
    primitive = equation.primitive
    if primitive.cost is not None:
        return int(primitive.cost(*equation.inputs, **equation.params))
    if primitive.free:
        return 0
    return sum(math.prod(v.shape) for v in equation.outputs)


def _peak(graph: Graph, known: dict[Graph, Cost]) -> int:
    """The most bytes alive at once when equations run in order and values are dropped after their last use."""
    base: dict[Var, Var] = {}  # a view keeps the value that it looks at, perhaps through others, alive

    def owner(var: Var) -> Var:
        return base.get(var, var)

    for equation in graph.equations:
        source = equation.inputs[0] if equation.primitive.view else None
        if isinstance(source, Var):
            base[equation.outputs[0]] = owner(source)
    last: dict[Var, int] = {}
    for i, equation in enumerate(graph.equations):
        for atom in [*equation.inputs, *equation.outputs]:
            if isinstance(atom, Var):
                last[owner(atom)] = i
    end = len(graph.equations)
    for atom in [*graph.outputs, *graph.inputs]:
        if isinstance(atom, Var):
            last[owner(atom)] = end
    live = sum(v.aval.nbytes for v in graph.inputs)
    peak = live
    dying: dict[int, int] = {}
    for i, equation in enumerate(graph.equations):
        made = [v for v in equation.outputs if v not in base]
        live += sum(v.aval.nbytes for v in made)
        for v in made:
            dying[last[v]] = dying.get(last[v], 0) + v.aval.nbytes
        graphs = carried(equation)
        inside = max((known[g].peak_bytes - sum(v.aval.nbytes for v in g.inputs) for g in graphs), default=0)
        peak = max(peak, live + inside)
        live -= dying.get(i, 0)
    return peak
