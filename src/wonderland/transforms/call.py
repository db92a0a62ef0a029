"""Graphs as values of primitives: their derivatives, transposes and batches, and the primitive `call`.

Each function below traces one transformation of a graph to another graph, once per question; loops and branches
(control.py) and checkpoints build on them.
"""

from __future__ import annotations

from typing import Any

from ..context import BACKWARD, at, state, switch
from ..dtypes import is_inexact
from ..errors import GradientError
from ..graph.evaluate import evaluate, interpret
from ..graph.ir import Graph
from ..graph.simplify import simplify
from ..graph.stage import GraphTracer, stage
from ..interpreter import Tangent, bind
from ..primitives.creation import zeros_like
from ..primitives.primitive import Aval, Primitive, aval_of
from ..primitives.structure import broadcast_to
from .batching import BatchTrace, BatchTracer
from .forward import JVPTrace, JVPTracer
from .reverse import pull_back, push_forward

Mask = tuple[bool, ...]


def pure(f: Any, avals: list[Aval], name: str) -> Graph:
    """Trace a function that needs nothing but its arguments."""
    staged = stage(f, avals, name=name, parent=None)
    if staged.captured or staged.read_cells or staged.written_cells:
        # constants made by rules (index grids, identity matrices) stay constants
        if staged.read_cells or staged.written_cells:
            raise GradientError(f"{name}: a rule touched state.")
        return simplify(_with_constants(staged.graph, staged.captured))
    return simplify(staged.graph)


def _with_constants(graph: Graph, values: list[Any]) -> Graph:
    """Bind the first inputs to constants, as equations without arguments."""
    from ..graph.ir import Equation

    first = [
        Equation(constant, [], {"value": Constant(v)}, [var]) for v, var in zip(values, graph.inputs, strict=False)
    ]
    return Graph(graph.inputs[len(values) :], first + graph.equations, graph.outputs, graph.name)


class Constant:
    """A tensor as a parameter, known by identity."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"<{self.tensor.dtype}{list(self.tensor.shape)}>"


constant = Primitive(
    "constant",
    lambda value: value.tensor._data,
    lambda value: aval_of(value.tensor),
    batch=lambda *args, **params: None,
)


def _once(graph: Graph, question: Any, make: Any) -> Any:
    if question not in graph.derived:
        graph.derived[question] = make()
    return graph.derived[question]


def input_avals(graph: Graph) -> list[Aval]:
    return [v.aval for v in graph.inputs]


def output_avals(graph: Graph) -> list[Aval]:
    return [a.aval for a in graph.outputs]


def inexact_mask(avals: list[Aval]) -> Mask:
    return tuple(is_inexact(a.dtype) for a in avals)


# --- forward mode


def jvp_graph(graph: Graph, active: Mask) -> Graph:
    """(inputs, tangents of the active inputs) -> (outputs, tangents of the inexact outputs)."""

    def make() -> Graph:
        n = len(graph.inputs)

        def f(*args: Any) -> list[Any]:
            trace = JVPTrace(state.trace)
            tangents = iter(args[n:])
            tracers = [JVPTracer(trace, a, next(tangents)) if on else a for a, on in zip(args[:n], active, strict=True)]
            outs = _run(trace, graph, tracers)
            pairs = [trace.split(o) for o in outs]
            return [p for p, _ in pairs] + [
                zeros_like(p) if t is None else t for p, t in pairs if is_inexact(p.dtype)
            ]

        avals = input_avals(graph)
        return pure(f, avals + [a for a, on in zip(avals, active, strict=True) if on], f"jvp_{graph.name}")

    return _once(graph, ("jvp", active), make)  # type: ignore[no-any-return]


def tangent_graph(graph: Graph, active: Mask) -> Graph:
    """Only the tangents of `jvp_graph`: a graph that is linear in its last inputs."""

    def make() -> Graph:
        both = jvp_graph(graph, active)
        only = Graph(both.inputs, both.equations, both.outputs[len(graph.outputs) :], f"tangent_{graph.name}")
        return simplify(only)

    return _once(graph, ("tangent", active), make)  # type: ignore[no-any-return]


def _run(trace: Any, graph: Graph, args: list[Any]) -> list[Any]:
    previous = switch(trace)
    try:
        return interpret(graph, args)
    finally:
        switch(previous)


# --- reverse mode


class Linearized:
    """`forward`: inputs -> outputs and residuals; `linear`: (residuals, active tangents) -> tangents of `outs`."""

    def __init__(self, forward: Graph, linear: Graph, residuals: int, outs: Mask) -> None:
        self.forward = forward
        self.linear = linear
        self.residuals = residuals
        self.outs = outs  # which outputs have a tangent


def linearize_graph(graph: Graph, active: Mask) -> Linearized:
    def make() -> Linearized:
        kept: dict[str, Any] = {}

        def forward(*args: Any) -> list[Any]:
            here = state.trace
            trace = JVPTrace(here)
            tangents = [Tangent(a.shape, a.dtype) for a, on in zip(args, active, strict=True) if on]
            waiting = iter(tangents)
            tracers = [JVPTracer(trace, a, next(waiting)) if on else a for a, on in zip(args, active, strict=True)]
            pairs = [trace.split(o) for o in _run(trace, graph, tracers)]
            outs = [t for _, t in pairs]
            residuals = _residuals([t for t in outs if t is not None], here)
            kept.update(tangents=tangents, outs=outs, residuals=residuals)
            return [p for p, _ in pairs] + residuals

        avals = input_avals(graph)
        forward_graph = pure(forward, avals, f"forward_{graph.name}")
        residuals, outs = kept["residuals"], [t for t in kept["outs"] if t is not None]

        def linear(*args: Any) -> list[Any]:
            known = {id(r): a for r, a in zip(residuals, args, strict=False)}
            return push_forward(outs, kept["tangents"], list(args[len(residuals) :]), known)

        tangent_avals = [a for a, on in zip(avals, active, strict=True) if on]
        linear_graph = pure(linear, [aval_of(r) for r in residuals] + tangent_avals, f"linear_{graph.name}")
        return Linearized(forward_graph, linear_graph, len(residuals), tuple(t is not None for t in kept["outs"]))

    return _once(graph, ("linearize", active), make)  # type: ignore[no-any-return]


def _residuals(outs: list[Tangent], trace: Any) -> list[Any]:
    """The traced values that the recording behind some tangents needs."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    stack = list(outs)
    while stack:
        t = stack.pop()
        if t.node is None or t.order in seen:
            continue
        seen.add(t.order)
        for arg in t.node.args:
            if type(arg) is Tangent:
                stack.append(arg)
            elif isinstance(arg, GraphTracer) and arg.trace is trace:
                found[id(arg)] = arg
    return list(found.values())


def transpose_graph(graph: Graph, linear: Mask) -> Graph:
    """(other inputs, adjoints of the outputs) -> adjoints of the inputs in which the graph is linear."""

    def make() -> Graph:
        avals = input_avals(graph)
        fixed = [a for a, on in zip(avals, linear, strict=True) if not on]

        def f(*args: Any) -> list[Any]:
            others, cts = iter(args[: len(fixed)]), args[len(fixed) :]
            inputs = [Tangent(a.shape, a.dtype) if on else next(others) for a, on in zip(avals, linear, strict=True)]
            with at(None, None, BACKWARD):
                outs = interpret(graph, inputs)
            seeds = [(o, ct) for o, ct in zip(outs, cts, strict=True) if type(o) is Tangent]
            wanted = [i for i in inputs if type(i) is Tangent]
            found = pull_back(seeds, wanted, free=True)
            return [zeros_like(t) if ct is None else ct for t, ct in zip(wanted, found, strict=True)]

        return pure(f, fixed + output_avals(graph), f"transpose_{graph.name}")

    return _once(graph, ("transpose", linear), make)  # type: ignore[no-any-return]


# --- vmap


def batch_graph(graph: Graph, batched: Mask, size: int) -> Graph:
    """The graph on a batch: batched inputs and all outputs carry it as axis 0."""

    def make() -> Graph:
        avals = [
            Aval((size, *a.shape), a.dtype) if on else a for a, on in zip(input_avals(graph), batched, strict=True)
        ]

        def f(*args: Any) -> list[Any]:
            trace = BatchTrace(state.trace, size)
            outs = _run(trace, graph, [BatchTracer(trace, a) if on else a for a, on in zip(args, batched, strict=True)])
            return [
                o.value
                if isinstance(o, BatchTracer) and o.trace is trace
                else broadcast_to(o, shape=(size, *o.shape))
                for o in outs
            ]

        return pure(f, avals, f"batched_{graph.name}")

    return _once(graph, ("batch", batched, size), make)  # type: ignore[no-any-return]


def batch_size(args: list[Any], batched: list[bool]) -> int:
    return next(a.shape[0] for a, on in zip(args, batched, strict=True) if on)  # type: ignore[no-any-return]


# --- the primitive: a graph applied to arguments


def instantiate(cts: Any, avals: list[Aval]) -> list[Any]:
    """Adjoints with zeros in place of None."""
    return [zeros_like(a) if ct is None else ct for ct, a in zip(cts, avals, strict=True)]


def _call_jvp(primitive_name: str) -> Any:
    def jvp(primals: list[Any], tangents: list[Any], out: Any, graph: Graph) -> list[Any]:
        from ..primitives.primitive import TABLE

        active = tuple(t is not None for t in tangents)
        made = iter(bind(TABLE[primitive_name], *primals, *[t for t in tangents if t is not None], graph=tangent_graph(graph, active)))
        return [next(made) if on else None for on in inexact_mask(output_avals(graph))]

    return jvp


def _call_linearize(primals: list[Any], tangents: list[Any], graph: Graph) -> tuple[list[Any], list[Any]]:
    parts = linearize_graph(graph, tuple(t is not None for t in tangents))
    outs = bind(call, *primals, graph=parts.forward)
    n = len(graph.outputs)
    residuals = outs[n:]
    made = iter(bind(call, *residuals, *[t for t in tangents if t is not None], graph=parts.linear)) if any(parts.outs) else iter(())
    return outs[:n], [next(made) if on else None for on in parts.outs]


def _call_transpose(cts: Any, args: list[Any], graph: Graph) -> list[Any]:
    linear = tuple(type(a) is Tangent for a in args)
    made = iter(
        bind(
            call,
            *[a for a, on in zip(args, linear, strict=True) if not on],
            *instantiate(cts, output_avals(graph)),
            graph=transpose_graph(graph, linear),
        )
    )
    return [next(made) if on else None for on in linear]


def _call_batch(primitive_name: str) -> Any:
    def batch(args: list[Any], batched: list[bool], graph: Graph) -> Any:
        from ..primitives.primitive import TABLE

        new = batch_graph(graph, tuple(batched), batch_size(args, batched))
        return bind(TABLE[primitive_name], *args, graph=new)

    return batch


call = Primitive(
    "call",
    lambda *args, graph: evaluate(graph, list(args)),
    lambda *args, graph: output_avals(graph),
    jvp=_call_jvp("call"),
    transpose=_call_transpose,
    batch=_call_batch("call"),
    multiple=True,
    linearize=_call_linearize,
)


# --- checkpoint: the same, but nothing except the arguments is kept for the backward pass


def _checkpoint_linearize(primals: list[Any], tangents: list[Any], graph: Graph) -> tuple[list[Any], list[Any]]:
    active = tuple(t is not None for t in tangents)
    outs = bind(call, *primals, graph=graph)
    # recorded as a map that is linear in the tangents; its transpose computes the residuals again
    made = iter(bind(checkpointed, *primals, *[t for t in tangents if t is not None], graph=tangent_graph(graph, active)))
    return outs, [next(made) if on else None for on in inexact_mask(output_avals(graph))]


checkpointed = Primitive(
    "checkpoint",
    lambda *args, graph: evaluate(graph, list(args)),
    lambda *args, graph: output_avals(graph),
    jvp=_call_jvp("checkpoint"),
    transpose=_call_transpose,
    batch=_call_batch("checkpoint"),
    multiple=True,
    linearize=_checkpoint_linearize,
)
