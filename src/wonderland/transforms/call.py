"""Graphs as values of primitives: their derivatives, transposes, batches; the primitives `call` and `checkpoint`.

Each function below traces one transformation of a graph to another graph, once per question. Results that the
transformation leaves alone (no tangent, the same for the whole batch) are left out of the new graph, unless they are
`wanted`; loops (loops.py) and branches (branches.py) ask for those that their other parts need.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from ..core.context import Trace, current, enter, leave
from ..core.errors import GraphError
from ..core.interpreter import Tangent, bind
from ..core.primitive import Aval, Primitive, aval_of
from ..core.tangents import JVPTrace, JVPTracer
from ..core.tensor import Tensor
from ..core.typing import Shaped, Tangents
from ..engines.choosing import run
from ..engines.numpy.evaluate import interpret
from ..ir.deriving import input_avals, once, output_avals, pure
from ..ir.graph import Graph
from ..ir.simplify import remove_dead, share_common
from ..ir.stage import GraphTracer
from ..primitives.creation import zeros_like
from ..primitives.structure import broadcast_to
from .batching import BatchTrace, BatchTracer, Shared
from .pulling import pull_back, push_forward, recorded

Mask = tuple[bool, ...]
Item = TypeVar("Item")


class Transformed(NamedTuple):
    """A graph made from another one, and which of that one's results (or inputs, if transposed) it gives."""

    graph: Graph
    outs: Mask


def chosen(items: Iterable[Item], mask: Mask) -> list[Item]:
    """The items where the mask is true."""
    return [item for item, on in zip(items, mask, strict=True) if on]


def spread(items: Iterable[Item], mask: Mask) -> list[Item | None]:
    """The items at the places where the mask is true, None elsewhere."""
    rest = iter(items)
    return [next(rest) if on else None for on in mask]


def filled(items: Iterable[Tensor | None], avals: Iterable[Shaped]) -> list[Tensor]:
    """The items, with zeros in place of None."""
    return [zeros_like(aval) if item is None else item for item, aval in zip(items, avals, strict=True)]


def either(a: Mask, b: Mask) -> Mask:
    return tuple(x or y for x, y in zip(a, b, strict=True))


def _nothing(graph: Graph) -> Mask:
    return (False,) * len(graph.outputs)


def _under(trace: Trace, graph: Graph, args: list[Tensor]) -> list[Any]:
    before = enter(trace)
    try:
        return interpret(graph, args)
    finally:
        leave(before)


# --- forward mode


def jvp_graph(graph: Graph, active: Mask, wanted: Mask | None = None) -> Transformed:
    """(inputs, tangents of the active inputs) -> (outputs, their tangents)."""
    need = wanted or _nothing(graph)

    def make() -> Transformed:
        n = len(graph.inputs)
        has: list[Mask] = []

        def f(*args: Tensor) -> list[Tensor]:
            trace = JVPTrace(current().trace)
            tangents = spread(args[n:], active)
            tracers = [a if t is None else JVPTracer(trace, a, t) for a, t in zip(args[:n], tangents, strict=True)]
            outs, dots = _split(trace, _under(trace, graph, tracers))
            has.append(either(need, tuple(t is not None for t in dots)))
            return outs + filled(chosen(dots, has[0]), chosen(outs, has[0]))

        avals = input_avals(graph)
        return Transformed(pure(f, avals + chosen(avals, active), f"jvp_{graph.name}"), has[0])

    return once(graph, ("jvp", active, need), make)


def _split(trace: JVPTrace, values: list[Tensor]) -> tuple[list[Tensor], Tangents]:
    pairs = [trace.split(v) for v in values]
    return [p for p, _ in pairs], [t for _, t in pairs]


# --- reverse mode


class Linearized(NamedTuple):
    """`forward`: inputs -> outputs and residuals; `linear`: (residuals, active tangents) -> tangents of `outs`."""

    forward: Graph
    linear: Graph
    residuals: int
    outs: Mask  # which outputs have a tangent


def linearize_graph(graph: Graph, active: Mask, wanted: Mask | None = None) -> Linearized:
    """The graph taken apart into what depends on the inputs and what is linear in their tangents."""
    need = wanted or _nothing(graph)

    def make() -> Linearized:
        kept: dict[str, list[Any]] = {}

        def forward(*args: Tensor) -> list[Tensor]:
            here = current().trace
            trace = JVPTrace(here)
            kept["inputs"] = [Tangent(a.shape, a.dtype) for a in chosen(args, active)]
            tangents = spread(kept["inputs"], active)
            tracers = [a if t is None else JVPTracer(trace, a, t) for a, t in zip(args, tangents, strict=True)]
            outs, kept["outs"] = _split(trace, _under(trace, graph, tracers))
            kept["residuals"] = _residuals([t for t in kept["outs"] if t is not None], here)
            return outs + kept["residuals"]

        avals = input_avals(graph)
        every = pure(forward, avals, f"forward_{graph.name}")
        n = len(graph.outputs)
        # a value that the program computes several times is kept once
        same = share_common(every)[0].outputs[n:]
        first = {atom: i for i, atom in reversed(list(enumerate(same)))}
        unique = sorted(first.values())
        forward_graph = remove_dead(
            Graph(every.inputs, every.equations, every.outputs[:n] + [every.outputs[n + i] for i in unique], every.name)
        )
        has = either(need, tuple(t is not None for t in kept["outs"]))

        def linear(*args: Tensor) -> list[Tensor]:
            values = dict(zip(unique, args, strict=False))
            known = {id(r): values[first[atom]] for r, atom in zip(kept["residuals"], same, strict=True)}
            found = push_forward(chosen(kept["outs"], has), kept["inputs"], list(args[len(unique) :]), known)
            return filled(found, chosen(output_avals(graph), has))

        types = [aval_of(kept["residuals"][i]) for i in unique] + chosen(avals, active)
        return Linearized(forward_graph, pure(linear, types, f"linear_{graph.name}"), len(unique), has)

    return once(graph, ("linearize", active, need), make)


def tangent_graph(graph: Graph, active: Mask) -> Transformed:
    """(inputs, tangents of the active inputs) -> tangents: linear in the latter, equation by equation."""

    def make() -> Transformed:
        forward, linear, _, has = linearize_graph(graph, active)
        n, m = len(graph.inputs), len(graph.outputs)

        def f(*args: Tensor) -> list[Tensor]:
            return interpret(linear, interpret(forward, list(args[:n]))[m:] + list(args[n:]))

        avals = input_avals(graph)
        return Transformed(pure(f, avals + chosen(avals, active), f"tangent_{graph.name}"), has)

    return once(graph, ("tangent", active), make)


def _residuals(outs: list[Tangent], trace: Trace | None) -> list[Tensor]:
    """The traced values that the recording behind some tangents needs."""
    args = [arg for node in recorded(outs).values() for arg in node.args]
    return list({id(arg): arg for arg in args if isinstance(arg, GraphTracer) and arg.trace is trace}.values())


def transpose_graph(graph: Graph, linear: Mask) -> Transformed:
    """(other inputs, adjoints of the outputs) -> adjoints of the inputs in which the graph is linear."""

    def make() -> Transformed:
        avals = input_avals(graph)
        others = tuple(not on for on in linear)
        n = sum(others)
        has: list[Mask] = []

        def f(*args: Tensor) -> list[Tensor]:
            wanted = [Tangent(a.shape, a.dtype) for a in chosen(avals, linear)]
            fixed, moving = spread(args[:n], others), spread(wanted, linear)
            every = [a if t is None else t for a, t in zip(fixed, moving, strict=True)]
            outs = interpret(graph, [x for x in every if x is not None])  # one of both is there
            seeds = [(o, ct) for o, ct in zip(outs, args[n:], strict=True) if type(o) is Tangent]
            found = pull_back(seeds, wanted, free=True)
            has.append(tuple(ct is not None for ct in spread(found, linear)))
            return [ct for ct in found if ct is not None]

        name = f"transpose_{graph.name}"
        return Transformed(pure(f, chosen(avals, others) + output_avals(graph), name), has[0])

    return once(graph, ("transpose", linear), make)


# --- vmap


def batch_graph(graph: Graph, batched: Mask, size: int, wanted: Mask | None = None) -> Transformed:
    """The graph on a batch: the batched inputs, and the outputs that depend on them, carry it as axis 0."""
    need = wanted or _nothing(graph)

    def make() -> Transformed:
        avals = [
            Aval((size, *a.shape), a.dtype) if on else a for a, on in zip(input_avals(graph), batched, strict=True)
        ]
        has: list[Mask] = []

        def f(*args: Tensor) -> list[Tensor]:
            trace = BatchTrace(current().trace, size)
            outs = _under(
                trace, graph, [BatchTracer(trace, a) if on else a for a, on in zip(args, batched, strict=True)]
            )
            own = tuple(isinstance(o, BatchTracer) and o.trace is trace for o in outs)
            has.append(either(need, own))
            return [
                o.value if mine else broadcast_to(o, shape=(size, *o.shape)) if on else o
                for o, mine, on in zip(outs, own, has[0], strict=True)
            ]

        return Transformed(pure(f, avals, f"batched_{graph.name}"), has[0])

    return once(graph, ("batch", batched, size, need), make)


def batch_size(args: list[Tensor], batched: list[bool]) -> int:
    return next(a.shape[0] for a, on in zip(args, batched, strict=True) if on)


def shared(outs: list[Tensor], batched: Mask) -> list[Tensor | Shared]:
    """Results of a batching rule, of which some are the same for all examples."""
    return [o if on else Shared(o) for o, on in zip(outs, batched, strict=True)]


# --- the primitives: a graph applied to arguments


def check_operands(name: str, graph: Graph, avals: list[Aval]) -> None:
    """Refuse operands that are not of the types for which a graph was made."""
    expected = input_avals(graph)
    if avals != expected:
        raise GraphError(
            f"{name}: {graph.name} takes {', '.join(map(str, expected))}, received {', '.join(map(str, avals))}."
        )


def _abstract(*args: Shaped, graph: Graph) -> list[Aval]:
    check_operands("call", graph, [aval_of(a) for a in args])
    return output_avals(graph)


def is_recording(tangents: Tangents) -> bool:
    """Whether tangents are being recorded for reverse mode, rather than computed."""
    return any(type(t) is Tangent for t in tangents)


def _forward(
    primitive: Primitive, primals: list[Tensor], tangents: Tangents, graph: Graph
) -> tuple[list[Tensor], Tangents]:
    """Values and tangents of a graph at once, in forward mode."""
    both, has = jvp_graph(graph, tuple(t is not None for t in tangents))
    outs = bind(primitive, *primals, *[t for t in tangents if t is not None], graph=both)
    n = len(graph.outputs)
    return outs[:n], spread(outs[n:], has)


def _call_linearize(primals: list[Tensor], tangents: Tangents, graph: Graph) -> tuple[list[Tensor], Tangents]:
    if not is_recording(tangents):
        return _forward(call, primals, tangents, graph)
    forward, linear, _, has = linearize_graph(graph, tuple(t is not None for t in tangents))
    outs = bind(call, *primals, graph=forward)
    n = len(graph.outputs)
    if not any(has):
        return outs[:n], [None] * n
    return outs[:n], spread(bind(call, *outs[n:], *[t for t in tangents if t is not None], graph=linear), has)


def _checkpoint_linearize(primals: list[Tensor], tangents: Tangents, graph: Graph) -> tuple[list[Tensor], Tangents]:
    if not is_recording(tangents):
        return _forward(checkpointed, primals, tangents, graph)
    outs = bind(checkpointed, *primals, graph=graph)
    only, has = tangent_graph(graph, tuple(t is not None for t in tangents))
    if not any(has):
        return outs, [None] * len(outs)
    # recorded as a map that is linear in the tangents and keeps the arguments alone; its transpose recomputes the rest
    return outs, spread(bind(checkpointed, *primals, *[t for t in tangents if t is not None], graph=only), has)


def _transpose(primitive: Primitive, cts: Tangents, args: list[Tensor], graph: Graph) -> Tangents:
    linear = tuple(type(a) is Tangent for a in args)
    transposed, has = transpose_graph(graph, linear)
    others = [a for a, on in zip(args, linear, strict=True) if not on]
    return spread(bind(primitive, *others, *filled(cts, output_avals(graph)), graph=transposed), has)


def _batch(primitive: Primitive, args: list[Tensor], batched: list[bool], graph: Graph) -> list[Tensor | Shared]:
    new, has = batch_graph(graph, tuple(batched), batch_size(args, batched))
    return shared(bind(primitive, *args, graph=new), has)


call: Primitive = Primitive(
    "call",
    lambda *args, graph: run(graph, list(args)),
    _abstract,
    transpose=lambda cts, args, graph: _transpose(call, cts, args, graph),
    batch=lambda args, batched, graph: _batch(call, args, batched, graph),
    multiple=True,
    linearize=_call_linearize,
)

# the same, but nothing except the arguments is kept for the backward pass
checkpointed: Primitive = Primitive(
    "checkpoint",
    lambda *args, graph: run(graph, list(args)),
    _abstract,
    transpose=lambda cts, args, graph: _transpose(checkpointed, cts, args, graph),
    batch=lambda args, batched, graph: _batch(checkpointed, args, batched, graph),
    multiple=True,
    linearize=_checkpoint_linearize,
)
