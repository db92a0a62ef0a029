"""The primitive behind `scan`: from constants, the initial carry and sequences to the last carry and sequences.

The derivative of a scan is a scan, and its adjoint a scan that runs backwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..backends import run
from ..errors import GraphError
from ..graph.deriving import input_avals, once, output_avals, pure
from ..graph.evaluate import interpret
from ..graph.ir import Graph, Var
from ..graph.simplify import remove_dead
from ..interpreter import Tangent, bind
from ..primitives.primitive import Aval, Primitive, aval_of
from ..primitives.structure import broadcast_to, transpose
from .call import (
    Linearized,
    Mask,
    batch_graph,
    batch_size,
    check_operands,
    chosen,
    filled,
    is_recording,
    jvp_graph,
    linearize_graph,
    shared,
    spread,
    transpose_graph,
)


def _impl(*args: Any, body: Graph, consts: int, carry: int, length: int, reverse: bool) -> list[Any]:
    fixed, state, xs = list(args[:consts]), list(args[consts : consts + carry]), args[consts + carry :]
    ys = [np.empty((length, *a.shape), a.dtype) for a in output_avals(body)[carry:]]
    for i in range(length)[:: -1 if reverse else 1]:
        outs = run(body, [*fixed, *state, *[x[i] for x in xs]])
        state = outs[:carry]
        for y, out in zip(ys, outs[carry:], strict=True):
            y[i] = out
    return state + ys


def _abstract(*args: Any, body: Graph, consts: int, carry: int, length: int, reverse: bool) -> list[Aval]:
    first = consts + carry
    steps = [aval_of(a) for a in args[:first]] + [Aval(a.shape[1:], a.dtype) for a in args[first:]]
    check_operands("scan", body, steps)
    if any(a.shape[:1] != (length,) for a in args[first:]):
        raise GraphError(f"scan: {length} steps over sequences of shapes {[a.shape for a in args[first:]]}.")
    outs = output_avals(body)
    return outs[:carry] + [Aval((length, *a.shape), a.dtype) for a in outs[carry:]]


def settle(outs_of: Callable[[Mask], Mask], flags: Mask, first: int, carry: int) -> Mask:
    """Flags of a loop's inputs, grown until a step leaves those of the carry (from `first` on) as they are."""
    while True:
        outs = outs_of(flags)
        grown = tuple(on or (first <= i < first + carry and outs[i - first]) for i, on in enumerate(flags))
        if grown == flags:
            return flags
        flags = grown


def _interleaved(plain: list[Any], dots: list[Any], cuts: tuple[int, ...], dot_cuts: tuple[int, ...]) -> list[Any]:
    """Values and tangents in the order of a loop's operands: constants, carry and sequences, each with its tangents."""
    edges, dot_edges = [0, *cuts, len(plain)], [0, *dot_cuts, len(dots)]
    result: list[Any] = []
    for i in range(len(edges) - 1):
        result += plain[edges[i] : edges[i + 1]] + dots[dot_edges[i] : dot_edges[i + 1]]
    return result


# --- forward mode


class Forward(NamedTuple):
    """The body of a scan that carries tangents along: which operands have one, which results, and the graph."""

    flags: Mask
    outs: Mask
    graph: Graph


def _forward_body(body: Graph, active: Mask, consts: int, carry: int) -> Forward:
    def make() -> Forward:
        flags = settle(lambda f: jvp_graph(body, f).outs, active, consts, carry)
        n, m = len(body.inputs), len(body.outputs)
        step, outs = jvp_graph(body, flags, flags[consts : consts + carry] + (False,) * (m - carry))
        cuts, dot_cuts = (consts, consts + carry), (sum(flags[:consts]), sum(flags[: consts + carry]))
        inputs = _interleaved(step.inputs[:n], step.inputs[n:], cuts, dot_cuts)
        outputs = _interleaved(step.outputs[:m], step.outputs[m:], (carry,), (sum(outs[:carry]),))
        return Forward(flags, outs, Graph(inputs, step.equations, outputs, step.name))

    return once(body, ("scan forward", active, consts, carry), make)


def _forward(
    primals: list[Any], tangents: list[Any], body: Graph, consts: int, carry: int, **params: Any
) -> tuple[list[Any], list[Any]]:
    flags, has, new = _forward_body(body, tuple(t is not None for t in tangents), consts, carry)
    cuts, dot_cuts = (consts, consts + carry), (sum(flags[:consts]), sum(flags[: consts + carry]))
    dots = filled(chosen(tangents, flags), chosen(primals, flags))
    operands = _interleaved(list(primals), dots, cuts, dot_cuts)
    n_carry = sum(has[:carry])
    outs = bind(scan_primitive, *operands, body=new, consts=consts + dot_cuts[0], carry=carry + n_carry, **params)
    n_y = len(body.outputs) - carry
    values = outs[:carry] + outs[carry + n_carry :][:n_y]
    return values, spread(outs[carry : carry + n_carry] + outs[carry + n_carry + n_y :], has)


# --- reverse mode


class Reverse(NamedTuple):
    """A scan taken apart: the forward loop with the residuals to keep, and the loop that is linear in the tangents."""

    flags: Mask
    outs: Mask
    invariant: Graph  # constants -> residuals that are the same in every step
    forward: Graph
    linear: Graph
    saved: int  # residuals of every step


def _reverse_body(body: Graph, active: Mask, consts: int, carry: int) -> Reverse:
    def make() -> Reverse:
        flags = settle(lambda f: linearize_graph(body, f).outs, active, consts, carry)
        m = len(body.outputs)
        parts: Linearized = linearize_graph(body, flags, flags[consts : consts + carry] + (False,) * (m - carry))
        forward, linear = parts.forward, parts.linear
        residuals = forward.outputs[m:]
        # a residual that follows from the loop's constants alone needs no copy per step
        constant = _following(forward, forward.inputs[:consts])
        same = tuple(r in constant for r in residuals)
        moving = tuple(not on for on in same)
        equations = [e for e in forward.equations if e.outputs[0] in constant]
        invariant = remove_dead(
            Graph(forward.inputs[:consts], equations, chosen(residuals, same), f"fixed_{body.name}")
        )
        outputs = forward.outputs[:m] + chosen(residuals, moving)
        stepping = remove_dead(Graph(forward.inputs, forward.equations, outputs, forward.name))
        r_inputs, t_inputs = linear.inputs[: parts.residuals], linear.inputs[parts.residuals :]
        cut = sum(flags[: consts + carry])
        inputs = chosen(r_inputs, same) + t_inputs[:cut] + chosen(r_inputs, moving) + t_inputs[cut:]
        looping = Graph(inputs, linear.equations, linear.outputs, linear.name)
        return Reverse(flags, parts.outs, invariant, stepping, looping, sum(moving))

    return once(body, ("scan reverse", active, consts, carry), make)


def _following(graph: Graph, inputs: list[Var]) -> set[Var]:
    """The variables that follow from some inputs alone."""
    known = set(inputs)
    for equation in graph.equations:
        if all(a in known for a in equation.inputs if isinstance(a, Var)):
            known.update(equation.outputs)
    return known


def _linearize(primals: list[Any], tangents: list[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    if not is_recording(tangents):
        return _forward(primals, tangents, **params)
    return _reverse(primals, tangents, **params)


def _reverse(
    primals: list[Any], tangents: list[Any], body: Graph, consts: int, carry: int, **params: Any
) -> tuple[list[Any], list[Any]]:
    parts = _reverse_body(body, tuple(t is not None for t in tangents), consts, carry)
    m = len(body.outputs)
    outs = bind(scan_primitive, *primals, body=parts.forward, consts=consts, carry=carry, **params)
    if not any(parts.outs):
        return outs[:m], [None] * m
    kept = interpret(parts.invariant, list(primals[:consts]))
    dots = filled(chosen(tangents, parts.flags), chosen(primals, parts.flags))
    n_const, n_carry = sum(parts.flags[:consts]), sum(parts.flags[consts : consts + carry])
    cut = n_const + n_carry
    # the linear loop: constants = fixed residuals, tangents; carry = tangents; sequences = saved residuals, tangents
    made = bind(
        linear_scan,
        *kept,
        *dots[:cut],
        *outs[m:],
        *dots[cut:],
        body=parts.linear,
        consts=len(kept) + n_const,
        carry=n_carry,
        fixed=len(kept),
        saved=parts.saved,
        **params,
    )
    return outs[:m], spread(made, parts.outs)


def _adjoint_body(body: Graph, consts: int, carry: int, fixed: int, saved: int) -> tuple[Graph, Mask]:
    """A step of the loop that carries adjoints and adds up those of the constants, and which sequences get adjoints."""

    def make() -> tuple[Graph, Mask]:
        n_const, n_x = consts - fixed, len(body.inputs) - consts - carry - saved
        linear = (False,) * fixed + (True,) * (n_const + carry) + (False,) * saved + (True,) * n_x
        # (fixed, saved, adjoints of carry and ys) -> adjoints of constants, carry, xs
        step, has = transpose_graph(body, linear)
        xs = chosen(has, linear)[n_const + carry :]
        avals, outs = input_avals(body), output_avals(body)

        def f(*inputs: Any) -> list[Any]:
            keep, sums, rest = inputs[:fixed], inputs[fixed:consts], inputs[consts:]
            adjoints, residuals, ct_ys = rest[:carry], rest[carry : carry + saved], rest[carry + saved :]
            found = chosen(spread(interpret(step, [*keep, *residuals, *adjoints, *ct_ys]), has), linear)
            new = [s if ct is None else s + ct for s, ct in zip(sums, found[:n_const], strict=True)]
            new += filled(found[n_const : n_const + carry], avals[consts : consts + carry])
            return new + [ct for ct in found[n_const + carry :] if ct is not None]

        types = avals[:consts] + outs[:carry] + avals[consts + carry : consts + carry + saved] + outs[carry:]
        return pure(f, types, f"adjoint_{body.name}"), tuple(xs)

    return once(body, ("scan adjoint", consts, carry, fixed, saved), make)


def _linear_transpose(
    cts: Any, args: list[Any], body: Graph, consts: int, carry: int, length: int, reverse: bool, fixed: int, saved: int
) -> list[Any]:
    """The adjoint of a linear scan: a scan in the other direction."""
    step, has = _adjoint_body(body, consts, carry, fixed, saved)
    outs = output_avals(body)
    full = filled(cts, outs[:carry] + [Aval((length, *a.shape), a.dtype) for a in outs[carry:]])
    n_const = consts - fixed
    made = bind(
        scan_primitive,
        *args[:fixed],
        *filled([None] * n_const, args[fixed:consts]),
        *full[:carry],
        *args[consts + carry : consts + carry + saved],
        *full[carry:],
        body=step,
        consts=fixed,
        carry=n_const + carry,
        length=length,
        reverse=not reverse,
    )
    adjoints = [None] * fixed + made[: n_const + carry] + [None] * saved + spread(made[n_const + carry :], has)
    return [ct if type(arg) is Tangent else None for ct, arg in zip(adjoints, args, strict=True)]


# --- vmap


def _swap_first(x: Any) -> Any:
    return transpose(x, axes=(1, 0, *range(2, x.ndim)))


def _batch(args: list[Any], batched: list[bool], body: Graph, consts: int, carry: int, **params: Any) -> list[Any]:
    size, first = batch_size(args, batched), consts + carry
    flags = settle(lambda f: batch_graph(body, f, size).outs, tuple(batched), consts, carry)
    new, has = batch_graph(body, flags, size, flags[consts:first] + (False,) * (len(body.outputs) - carry))
    operands = [
        broadcast_to(a, shape=(size, *a.shape)) if wanted and not on else a
        for a, on, wanted in zip(args, batched, flags, strict=True)
    ]
    # the batch comes after the steps of a sequence
    operands[first:] = [_swap_first(a) if on else a for a, on in zip(args[first:], batched[first:], strict=True)]
    outs = bind(scan_primitive, *operands, body=new, consts=consts, carry=carry, **params)
    ys = [_swap_first(y) if on else y for y, on in zip(outs[carry:], has[carry:], strict=True)]
    return shared(outs[:carry] + ys, has)


scan_primitive: Primitive = Primitive("scan", _impl, _abstract, batch=_batch, multiple=True, linearize=_linearize)


def _plain(fixed: int, saved: int, **params: Any) -> dict[str, Any]:
    return params


# A scan whose body is linear in all but `fixed` constants and `saved` sequences: what a derivative of a scan records.
linear_scan: Primitive = Primitive(
    "linear_scan",
    lambda *args, **params: _impl(*args, **_plain(**params)),
    lambda *args, **params: _abstract(*args, **_plain(**params)),
    transpose=_linear_transpose,
    batch=lambda args, batched, **params: _batch(args, batched, **_plain(**params)),
    multiple=True,
    linearize=lambda primals, tangents, **params: _linearize(primals, tangents, **_plain(**params)),
)
