"""Tracing: run a function on values that have a type but no numbers, and write down what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..context import module_path, state, switch, user_source
from ..dtypes import DType
from ..errors import TraceError
from ..primitives.primitive import Aval, Primitive, aval_of
from ..tensor import Cell, Shape, Tensor, Tracer
from .ir import Atom, Equation, Graph, Literal, Var


class GraphTracer(Tracer):
    """A variable of a graph that is being built. `weak` is the kind of a Python number that it stands for."""

    __slots__ = ("var", "weak")

    def __init__(self, trace: GraphTrace, var: Var, weak: int | None = None) -> None:
        self.trace = trace
        self.var = var
        self.weak = weak

    @property
    def shape(self) -> Shape:
        return self.var.aval.shape

    @property
    def dtype(self) -> DType:
        return self.var.aval.dtype

    def _concrete(self, what: str) -> np.ndarray[Any, Any]:
        hints = {
            "bool": "wl.cond or wl.where in place of `if`, wl.while_loop in place of `while`; "
            "or static_argnums for an argument that only chooses a path",
            "int": "static_argnums for an argument that is used as a size or a loop count",
            "float": "functions of wonderland in place of math",
        }
        raise TraceError(
            f"{what}: a value of {self.dtype}{list(self.shape)} is being traced for {self.trace.purpose} and has no numbers yet, "
            f"so it cannot become {what if what.startswith('a ') else 'a Python ' + what}.",
            hints.get(what, "functions of wonderland in place of NumPy; leave the computation outside"),
        )

    def __repr__(self) -> str:
        return f"traced({self.var.aval})"


class CellUse:
    """A cell that a traced function reads or writes."""

    __slots__ = ("cell", "original", "tracer")

    def __init__(self, cell: Cell, original: Any, tracer: Any) -> None:
        self.cell = cell
        self.original = original
        self.tracer = tracer  # None: written before it was read


class GraphTrace:
    """The interpreter that builds a graph."""

    staged = True
    concrete = False

    def __init__(self, parent: Any, purpose: str = "jit") -> None:
        self.parent = parent
        self.purpose = purpose
        self.equations: list[Equation] = []
        self.captured: dict[int, tuple[Any, Var]] = {}  # constants and outer tracers, by identity
        self.cells: dict[int, CellUse] = {}

    def input(self, aval: Aval, weak: int | None = None) -> GraphTracer:
        return GraphTracer(self, Var(aval), weak)

    def process(self, primitive: Primitive, args: Any, params: dict[str, Any]) -> Any:
        avals = primitive.abstract(*args, **params)
        atoms = [self.atom(arg) for arg in args]
        outputs = [Var(a) for a in (avals if primitive.multiple else [avals])]
        phase = "backward" if state.backward else (f"derivative of {state.rule}" if state.rule else "forward")
        self.equations.append(
            Equation(primitive, atoms, params, outputs, user_source(), module_path(), phase)
        )
        if primitive.multiple:
            return [GraphTracer(self, v) for v in outputs]
        weak = None
        if args and all(type(a) is GraphTracer and a.weak is not None or a.shape == () for a in args):
            kinds = [a.weak for a in args if type(a) is GraphTracer and a.trace is self]
            weak = max(kinds) if kinds and None not in kinds and primitive.name in _WEAK else None  # type: ignore[type-var]
        return GraphTracer(self, outputs[0], weak)

    def atom(self, value: Any) -> Atom:
        if type(value) is GraphTracer:
            if value.trace is self:
                return value.var
            self._check_alive(value)
        elif isinstance(value, Tracer):
            self._check_alive(value)
        elif value._data.ndim == 0:
            return Literal(value._data)
        found = self.captured.get(id(value))
        if found is None:
            found = self.captured[id(value)] = (value, Var(aval_of(value)))
        return found[1]

    def _check_alive(self, value: Any) -> None:
        trace = self.parent
        while trace is not None and trace is not value.trace:
            trace = trace.parent
        if trace is None:
            raise TraceError(
                f"jit: a value of shape {value.shape} from a transformation that has ended is used in another one.",
                "return values from the transformed function instead of storing them",
            )

    # --- cells

    def read(self, cell: Cell, value: Tensor) -> Tensor:
        """A cell that is met for the first time becomes an input of the graph."""
        use = self.cells.get(id(cell))
        if use is not None:
            return value
        tracer = self.input(aval_of(value))
        self.cells[id(cell)] = CellUse(cell, value, tracer)
        cell.value = tracer
        return tracer

    def note_write(self, cell: Cell) -> None:
        if id(cell) not in self.cells:
            self.cells[id(cell)] = CellUse(cell, cell.value, None)

    def note_create(self, cell: Cell) -> None:
        self.cells[id(cell)] = CellUse(cell, None, None)

    def finish(self) -> list[tuple[CellUse, Any]]:
        """Put the cells' values back; what was written is returned beside each cell (None: unchanged)."""
        written = []
        for use in self.cells.values():
            now = use.cell.value
            changed = now is not use.tracer and not (use.tracer is None and now is use.original)
            written.append((use, now if changed else None))
            use.cell.value = use.original
        return written


# operations on traced Python numbers alone give Python numbers, as they would eagerly
_WEAK = {"add", "subtract", "multiply", "divide", "power", "square", "negative", "floor_divide", "remainder", "abs"}


class Staged:
    """The outcome of tracing: the graph, and the values and cells that it needs besides its arguments.

    The graph's inputs are, in order: the captured values, the cells that are read, the arguments; its outputs: the
    results, then the new values of the cells that were written.
    """

    __slots__ = ("captured", "graph", "read_cells", "written_cells")

    def __init__(self, graph: Graph, captured: list[Any], read_cells: list[Cell], written_cells: list[Cell]) -> None:
        self.graph = graph
        self.captured = captured
        self.read_cells = read_cells
        self.written_cells = written_cells


def stage(
    f: Callable[..., Any],
    avals: list[Aval],
    *,
    name: str = "graph",
    purpose: str = "jit",
    weak: list[int | None] | None = None,
    parent: Any = ...,
) -> Staged:
    """Trace `f(*tracers)`, which returns a list of tensors, to a graph."""
    trace = GraphTrace(state.trace if parent is ... else parent, purpose)
    inputs = [trace.input(a, None if weak is None else weak[i]) for i, a in enumerate(avals)]
    previous = switch(trace)
    uses: list[tuple[CellUse, Any]] = []
    try:
        outs = f(*inputs)
    finally:
        uses = trace.finish()
        switch(previous)
    written = [(use.cell, value) for use, value in uses if value is not None]
    outputs = [trace.atom(out) for out in outs] + [trace.atom(value) for _, value in written]
    cells = [(use.cell, use.tracer.var) for use, _ in uses if use.tracer is not None]
    captured = list(trace.captured.values())
    graph = Graph(
        [v for _, v in captured] + [v for _, v in cells] + [t.var for t in inputs], trace.equations, outputs, name
    )
    return Staged(graph, [v for v, _ in captured], [c for c, _ in cells], [c for c, _ in written])
