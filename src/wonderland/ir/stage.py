"""Tracing: run a function on values that have a type but no numbers, and write down what it does."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..arrays.conversion import SCALAR_DTYPE, from_scalar, scalar_kind
from ..core.cell import Cell
from ..core.context import Trace, current, enter, leave, place, restoring
from ..core.dtypes import DType, complex128, float64, int64
from ..core.errors import TraceError
from ..core.primitive import Aval, Primitive, aval_of
from ..core.tensor import Shape, Tensor, Tracer, noun, wrap
from ..core.typing import Array
from ..primitives.elementwise import astype
from .graph import Atom, Equation, Graph, Literal, Var

_SHAPES = "a graph needs shapes that do not depend on numbers"
EXACT = {1: int64, 2: float64, 3: complex128}  # Python's own precision, by the kind of a number


class GraphTracer(Tracer):
    """A variable of a graph that is being built.

    It may stand for a Python number of the kind `weak`. Then `exact` is the number as Python has it; the variable
    itself has the default dtype that functions give to such a number.
    """

    __slots__ = ("exact", "variable", "weak")  # not `var`: that is a method of tensors

    def __init__(self, trace: GraphTrace, var: Var, weak: int | None = None, exact: GraphTracer | None = None) -> None:
        self.trace = trace
        self.variable = var
        self.weak = weak
        self.exact = exact

    @property
    def shape(self) -> Shape:
        return self.variable.aval.shape

    @property
    def dtype(self) -> DType:
        return self.variable.aval.dtype

    def _concrete(self, what: str) -> Array:
        purpose = self.trace.purpose
        when = f"was traced for {purpose}, which has ended," if self.trace.ended else f"is being traced for {purpose}"
        hints = {
            "bool": "wl.cond or wl.where in place of `if`, wl.while_loop in place of `while`; "
            "or static_argnums for an argument that only chooses a path",
            "int": "static_argnums for an argument that is used as a size or a loop count",
            "float": "functions of wonderland in place of math",
            "a mask": f"wl.where(mask, x, 0) in place of x[mask]; {_SHAPES}",
            "a list of positions": f"wl.where in place of wl.nonzero; {_SHAPES}",
            "a set of distinct values": f"wl.sort in place of wl.unique; {_SHAPES}",
            "a number of segments": f"num_segments=n; {_SHAPES}",
        }
        hint = "functions of wonderland in place of NumPy; leave the computation outside"
        raise TraceError(
            f"{what}: a value of {self.dtype}{list(self.shape)} {when} and has no numbers yet, "
            f"so it cannot become {noun(what)}.",
            "return the value instead of storing it" if self.trace.ended else hints.get(what, hint),
        )

    def __repr__(self) -> str:
        return f"traced({self.variable.aval})"


class CellUse:
    """A cell that a traced function reads, writes or makes."""

    __slots__ = ("cell", "inside", "made", "original", "tracer")

    def __init__(self, cell: Cell, tracer: GraphTracer | None = None, made: bool = False) -> None:
        self.cell = cell
        self.original = cell.value
        self.inside = cell.inside
        self.tracer = tracer  # None: written before it was read
        self.made = made


class GraphTrace:
    """The interpreter that builds a graph."""

    staged = True
    concrete = False

    def __init__(self, parent: Trace | None, purpose: str = "jit") -> None:
        self.parent = parent
        self.purpose = purpose
        self.ended = False
        self.equations: list[Equation] = []
        self.captured: dict[int, tuple[Tensor, Var]] = {}  # constants and outer tracers, by identity
        self.cells: dict[int, CellUse] = {}

    def number(self, exact: GraphTracer, kind: int) -> GraphTracer:
        """A traced Python number, of which `exact` is the value."""
        dtype = SCALAR_DTYPE[kind]
        usual = exact if exact.dtype == dtype else self.process(astype, [exact], {"dtype": dtype})
        return GraphTracer(self, usual.variable, kind, exact)

    def process(self, primitive: Primitive, args: Sequence[Tensor], params: dict[str, Any]) -> Any:
        if self.ended:
            raise self._outlived(primitive.name)
        if primitive is astype:
            args = [_exact(args[0])]
        avals = primitive.abstract(*args, **params)
        atoms = [self.atom(arg) for arg in args]
        outputs = [Var(a) for a in (avals if primitive.multiple else [avals])]
        self.equations.append(Equation(primitive, atoms, params, outputs, *place()))
        if primitive.multiple:
            return [GraphTracer(self, v) for v in outputs]
        return GraphTracer(self, outputs[0])

    def splice(self, graph: Graph, args: Sequence[Tensor]) -> list[Tensor]:
        """What a graph that was traced before gives for arguments: its equations become some of this one."""
        if self.ended:
            raise self._outlived(graph.name)
        names: dict[Atom, Atom] = dict(zip(graph.inputs, map(self.atom, args), strict=True))
        source, module, phase = place()
        for e in graph.equations:
            outputs = [Var(v.aval) for v in e.outputs]
            inputs = [names.get(a, a) for a in e.inputs]
            self.equations.append(Equation(e.primitive, inputs, e.params, outputs, source, module, phase))
            names.update(zip(e.outputs, outputs, strict=True))
        return [self._value(names.get(a, a)) for a in graph.outputs]

    def _value(self, atom: Atom) -> Tensor:
        return GraphTracer(self, atom) if isinstance(atom, Var) else wrap(atom.data)

    def atom(self, value: Tensor) -> Atom:
        if isinstance(value, Tracer):
            if value.trace is self:
                return value.variable  # type: ignore[attr-defined]
            self._check_alive(value)
        elif value._data.ndim == 0 and value._node is None:
            return Literal(value._data)
        found = self.captured.get(id(value))
        if found is None:
            found = self.captured[id(value)] = (value, Var(aval_of(value)))
        return found[1]

    def _check_alive(self, value: Tracer) -> None:
        if not _inside(self.parent, value.trace):
            raise TraceError(
                f"{self.purpose}: a value of shape {value.shape} is used in another transformation than its own.",
                "return values from the transformed function instead of storing them",
            )

    def _outlived(self, what: str) -> TraceError:
        """The error for a task that inherited this trace and goes on without it."""
        return TraceError(
            f"{what}: a task or thread that began inside a function that was traced for {self.purpose} goes on after "
            "the tracing has ended.",
            "begin it outside that function, or in a context of its own: contextvars.Context().run(...)",
        )

    # --- cells

    def read(self, cell: Cell, value: Tensor) -> Tensor:
        """A cell that is met for the first time becomes an input of the graph."""
        if self.ended:
            raise self._outlived("read")
        if id(cell) in self.cells or (isinstance(value, Tracer) and _inside(value.trace, self)):
            return value
        tracer = GraphTracer(self, Var(aval_of(value)))
        self.cells[id(cell)] = CellUse(cell, tracer)
        cell.value = tracer
        return tracer

    def note_write(self, cell: Cell) -> None:
        if id(cell) not in self.cells:
            self.cells[id(cell)] = CellUse(cell)

    def note_create(self, cell: Cell) -> None:
        self.cells[id(cell)] = CellUse(cell, made=True)

    def finish(self) -> list[tuple[CellUse, Any]]:
        """Put the cells' values back; what was written is returned beside each cell (None: unchanged).

        A cell that was made here keeps its traced value, so that using it before it gets a computed one is an error.
        """
        self.ended = True
        results = []
        for use in self.cells.values():
            now = use.cell.value
            unchanged = now is use.tracer or (use.tracer is None and now is use.original)
            results.append((use, None if unchanged and not use.made else now))
            if use.made:
                use.cell.settle(now)
            else:
                use.cell.restore(use.inside)
        self.cells = {}
        return results


def _inside(trace: Trace | None, outer: Trace | None) -> bool:
    """Whether `outer` is the trace or one around it."""
    while trace is not None and trace is not outer:
        trace = trace.parent
    return trace is not None


def _exact(x: Tensor) -> Tensor:
    """A traced Python number in full precision; anything else as it is."""
    return x.exact if type(x) is GraphTracer and x.exact is not None else x


# --- Python's operators on traced Python numbers give Python numbers, as they would eagerly


def _on_numbers(name: str) -> Callable[..., Tensor]:
    on_tensors = getattr(Tensor, name)
    compares = name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")

    def operator(self: GraphTracer, *others: Any) -> Tensor:
        kinds = [scalar_kind(x) for x in (self, *others)]
        if None in kinds:
            return on_tensors(self, *others)
        kind = max(kinds)  # type: ignore[type-var]
        if "truediv" in name or (name == "__pow__" and type(others[0]) is int and others[0] < 0):
            kind = max(kind, 2)  # type: ignore[type-var]
        assert kind is not None
        out = on_tensors(*[_as_exact(x, EXACT[kind]) for x in (self, *others)])
        return out if compares else out.trace.number(out, kind)

    operator.__name__ = name
    return operator


def _as_exact(x: Tensor | complex, dtype: DType) -> Tensor:
    if not isinstance(x, Tensor):
        return from_scalar(x, dtype)
    return _exact(x) if _exact(x).dtype == dtype else astype(x, dtype=dtype)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(GraphTracer, f"__{_name}__", _on_numbers(f"__{_name}__"))
    setattr(GraphTracer, f"__r{_name}__", _on_numbers(f"__r{_name}__"))
for _name in ("neg", "pos", "abs", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(GraphTracer, f"__{_name}__", _on_numbers(f"__{_name}__"))


class Staged:
    """The outcome of tracing: the graph, and the values and cells that it needs besides its arguments.

    The graph's inputs are, in order: the captured values, the cells that are read, the arguments; its outputs: the
    results, then the new values of the cells that were written, then the values of those that were made and live on.
    """

    __slots__ = ("captured", "graph", "made_cells", "read_cells", "written_cells")

    def __init__(
        self,
        graph: Graph,
        captured: list[Tensor],
        read_cells: list[Cell],
        written_cells: list[Cell],
        made_cells: list[Cell],
    ) -> None:
        self.graph = graph
        self.captured = captured
        self.read_cells = read_cells
        self.written_cells = written_cells
        self.made_cells = made_cells


@restoring
def stage(
    f: Callable[..., Sequence[Tensor]],
    avals: list[Aval],
    *,
    name: str = "graph",
    purpose: str = "jit",
    weak: list[int | None] | None = None,
    parent: Any = ...,
) -> Staged:
    """Trace `f(*tracers)`, which returns a list of tensors, to a graph."""
    trace = GraphTrace(current().trace if parent is ... else parent, purpose)
    inputs = [GraphTracer(trace, Var(a)) for a in avals]
    kinds = weak or [None] * len(inputs)
    before = enter(trace)
    try:
        outs = f(*[t if kind is None else trace.number(t, kind) for t, kind in zip(inputs, kinds, strict=True)])
    finally:
        uses = trace.finish()
        leave(before)
    outputs = [trace.atom(out) for out in outs]
    read, written, made = [], [], []
    for use, value in uses:
        if use.made:
            made.append((weakref.ref(use.cell), value))
            continue
        if use.tracer is not None:
            read.append((use.cell, use.tracer.variable))
        if value is not None:
            written.append((use.cell, trace.atom(value)))
    use, uses, outs = None, [], None  # type: ignore[assignment]  # cells that the function only made for itself disappear here
    kept = [(cell, trace.atom(value)) for reference, value in made if (cell := reference()) is not None]
    captured = list(trace.captured.values())
    graph = Graph(
        [v for _, v in captured] + [v for _, v in read] + [t.variable for t in inputs],
        trace.equations,
        outputs + [a for _, a in written] + [a for _, a in kept],
        name,
    )
    return Staged(graph, [v for v, _ in captured], [c for c, _ in read], [c for c, _ in written], [c for c, _ in kept])
