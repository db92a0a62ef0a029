"""Graphs without complex numbers: every complex value becomes two real ones, before anything is scheduled.

A complex array in memory is a real array with one more axis of size 2. That is how a program sees its inputs and
results. In between, real and imaginary parts go their own ways, so all that the compiler knows about real values
(views, fusion, contractions, loops) holds for complex ones. The arithmetic is in `formulas.py`; what has no
formula is computed by NumPy, which gets complex arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....core import dtypes
from ....core.context import at
from ....core.interpreter import bind
from ....core.primitive import TABLE, Aval
from ....core.settings import lenient
from ....core.tensor import Tensor, wrap
from ....core.typing import Array
from ....ir.deriving import once, pure
from ....ir.graph import Atom, Equation, Graph, Literal, Var, carried
from ....ir.simplify import simplify
from ...numpy.evaluate import run_equation
from .on_arrays import Numbers, on_arrays
from .pairs import Pair, apart, interleaved, together


def without_complex(graph: Graph) -> Graph:
    """The graph on real numbers: complex inputs and outputs of a shape are real ones of (*shape, 2)."""
    if not _has_complex(graph):
        return graph

    def f(*inputs: Tensor) -> list[Tensor]:
        args = [apart(x) if dtypes.is_complex(v.dtype) else x for x, v in zip(inputs, graph.inputs, strict=True)]
        return [together(out) for out in _interpret(graph, args)]

    with lenient():
        return simplify(_folded(pure(f, [interleaved(v.aval) for v in graph.inputs], graph.name)))


def _has_complex(graph: Graph) -> bool:
    def make() -> bool:
        atoms = [*graph.inputs, *graph.outputs]
        return any(dtypes.is_complex(a.dtype) for a in atoms) or any(map(_is_complex, graph.equations))

    return once(graph, "has complex", make)


def _is_complex(e: Equation) -> bool:
    """Whether an equation has to do with complex numbers, if only inside."""
    if any(dtypes.is_complex(a.dtype) for a in [*e.inputs, *e.outputs]):
        return True
    inside = list(carried(e))
    if e.primitive.name in ("custom_jvp", "custom_vjp"):
        inside.append(e.params["custom"].trace(tuple(a.aval for a in e.inputs)).graph)
    return any(map(_has_complex, inside))


# --- one value for two


def _flat(values: Sequence[Numbers]) -> list[Tensor]:
    return [part for x in values for part in ((x.real, x.imag) if isinstance(x, Pair) else (x,))]


def _paired(parts: Sequence[Tensor], atoms: Sequence[Atom]) -> list[Numbers]:
    """Parts as they stand in a flat list, as values of the types of the atoms."""
    rest = iter(parts)
    return [Pair(next(rest), next(rest)) if dtypes.is_complex(a.dtype) else next(rest) for a in atoms]


def _constant(data: Array) -> Numbers:
    if not dtypes.is_complex(data.dtype):
        return wrap(data)
    return Pair(wrap(np.array(data.real)), wrap(np.array(data.imag)))


# --- equations


def _interpret(graph: Graph, args: Sequence[Numbers]) -> list[Numbers]:
    """Every equation in order, on pairs where it is complex."""
    values: dict[Var, Numbers] = dict(zip(graph.inputs, args, strict=True))

    def value(atom: Atom) -> Numbers:
        return _constant(atom.data) if isinstance(atom, Literal) else values[atom]

    for equation in graph.equations:
        with at(equation.source, equation.module, equation.phase):
            values.update(zip(equation.outputs, _equation(equation, [value(a) for a in equation.inputs]), strict=True))
    return [value(a) for a in graph.outputs]


def _equation(e: Equation, args: list[Numbers]) -> list[Numbers]:
    if not _is_complex(e):
        made = bind(e.primitive, *_flat(args), **e.params)
        return made if e.primitive.multiple else [made]
    if e.primitive.name in CONTROL:
        return CONTROL[e.primitive.name](e, args)
    from .formulas import FORMULAS  # few programs need them

    formula = FORMULAS.get(e.primitive.name)
    found = None if formula is None else formula(*args, **e.params)
    return on_arrays(e, args) if found is None else [found]


def _folded(graph: Graph) -> Graph:
    """The graph with single numbers that follow from constants computed now: formulas make many of them."""
    known: dict[Atom, Atom] = {}
    equations = []
    for e in graph.equations:
        e.inputs = [known.get(a, a) for a in e.inputs]
        single = e.primitive.elementwise or e.primitive.name == "full"
        if single and e.outputs[0].shape == () and all(isinstance(a, Literal) for a in e.inputs):
            with np.errstate(all="ignore"):
                (data,) = run_equation(e, [a.data for a in e.inputs if isinstance(a, Literal)])
            known[e.outputs[0]] = Literal(np.asarray(data))
        elif e.primitive.name == "where" and (chosen := _chosen(e)) is not None:
            known[e.outputs[0]] = chosen
        else:
            equations.append(e)
    return Graph(graph.inputs, equations, [known.get(a, a) for a in graph.outputs], graph.name)


def _chosen(e: Equation) -> Atom | None:
    """The result of a choice that is known now."""
    condition, *both = e.inputs
    if not isinstance(condition, Literal):
        return None
    chosen = both[0] if condition.data else both[1]
    return chosen if chosen.shape == e.outputs[0].shape else None


# --- graphs inside of equations: parts are arguments and results of their own


def _in_parts(graph: Graph) -> Graph:
    def make() -> Graph:
        avals = [Aval(v.shape, dtypes.real_of(v.dtype)) for v in graph.inputs for _ in range(_count([v]))]
        return _folded(pure(lambda *xs: _flat(_interpret(graph, _paired(xs, graph.inputs))), avals, graph.name))

    return once(graph, "in parts", make)


def _count(atoms: Sequence[Atom]) -> int:
    return len(atoms) + sum(dtypes.is_complex(a.dtype) for a in atoms)


def _call(e: Equation, args: list[Numbers]) -> list[Numbers]:
    return _paired(bind(e.primitive, *_flat(args), graph=_in_parts(e.params["graph"])), e.outputs)


def _custom(e: Equation, args: list[Numbers]) -> list[Numbers]:
    staged = e.params["custom"].trace(tuple(a.aval for a in e.inputs))
    if staged.read_cells:
        return on_arrays(e, args)  # their values are known when the program runs
    return _interpret(simplify(staged.graph), [*[_constant(t._data) for t in staged.captured], *args])


def _scan(e: Equation, args: list[Numbers]) -> list[Numbers]:
    consts, carry = e.params["consts"], e.params["carry"]
    made = bind(
        TABLE["scan"],
        *_flat(args),
        body=_in_parts(e.params["body"]),
        consts=_count(e.inputs[:consts]),
        carry=_count(e.inputs[consts : consts + carry]),
        length=e.params["length"],
        reverse=e.params["reverse"],
    )
    return _paired(made, e.outputs)


def _while(e: Equation, args: list[Numbers]) -> list[Numbers]:
    cond, body = (_in_parts(e.params[name]) for name in ("cond", "body"))
    made = bind(e.primitive, *_flat(args), cond=cond, body=body, consts=_count(e.inputs[: e.params["consts"]]))
    return _paired(made, e.outputs)


def _branch(e: Equation, args: list[Numbers]) -> list[Numbers]:
    branches = tuple(_in_parts(graph) for graph in e.params["branches"])
    return _paired(bind(e.primitive, *_flat(args), branches=branches), e.outputs)


def _tensor(e: Equation, args: list[Numbers]) -> list[Numbers]:
    return [_constant(e.params["value"].tensor._data)]


CONTROL = {
    **dict.fromkeys(["call", "checkpoint"], _call),
    **dict.fromkeys(["custom_jvp", "custom_vjp"], _custom),
    **dict.fromkeys(["scan", "linear_scan"], _scan),
    "while": _while,
    "branch": _branch,
    "constant": _tensor,
}
