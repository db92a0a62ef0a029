"""The primitive behind `scan`: from constants, the initial carry and sequences to the last carry and sequences.

The derivative of a scan is a scan, and its adjoint a scan that runs backwards.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...core.errors import GraphError
from ...core.interpreter import Tangent, bind
from ...core.primitive import Aval, Primitive, aval_of
from ...core.tensor import Tensor
from ...core.typing import Array, Shaped, Tangents
from ...engines.choosing import run
from ...engines.numpy.evaluate import interpret
from ...ir.deriving import input_avals, once, output_avals, pure
from ...ir.graph import Graph, Var, has_effect
from ...ir.simplify import remove_dead
from ...primitives.structure import broadcast_to, transpose
from ..batching import Shared
from ..call import (
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
from .residuals import fewer, renamed
from .totals import Total, split

Item = TypeVar("Item")


def _impl(*args: Array, body: Graph, consts: int, carry: int, length: int, reverse: bool) -> list[Array]:
    fixed, state, xs = list(args[:consts]), list(args[consts : consts + carry]), args[consts + carry :]
    ys = [np.empty((length, *a.shape), a.dtype) for a in output_avals(body)[carry:]]
    for i in range(length)[:: -1 if reverse else 1]:
        outs = run(body, [*fixed, *state, *[x[i] for x in xs]])
        state = outs[:carry]
        for y, out in zip(ys, outs[carry:], strict=True):
            y[i] = out
    return state + ys


def _abstract(*args: Shaped, body: Graph, consts: int, carry: int, length: int, reverse: bool) -> list[Aval]:
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


def _interleaved(plain: list[Item], dots: list[Item], cuts: tuple[int, ...], dot_cuts: tuple[int, ...]) -> list[Item]:
    """Values and tangents in the order of a loop's operands: constants, carry and sequences, each with its tangents."""
    edges, dot_edges = [0, *cuts, len(plain)], [0, *dot_cuts, len(dots)]
    result: list[Item] = []
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
    primals: list[Tensor], tangents: Tangents, body: Graph, consts: int, carry: int, **params: Any
) -> tuple[list[Tensor], Tangents]:
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
    saved: list[int]  # where the residuals of every step are, among xs and results of the forward loop but the carry


def _reverse_body(body: Graph, active: Mask, consts: int, carry: int) -> Reverse:
    def make() -> Reverse:
        flags = settle(lambda f: linearize_graph(body, f).outs, active, consts, carry)
        m = len(body.outputs)
        parts: Linearized = linearize_graph(body, flags, flags[consts : consts + carry] + (False,) * (m - carry))
        forward, linear = parts.forward, parts.linear
        residuals = forward.outputs[m:]
        # a residual that follows from the loop's constants alone needs no copy per step
        constant = _following(forward, forward.inputs[:consts])
        xs, ys = forward.inputs[consts + carry :], forward.outputs[carry:m]
        there = [*xs, *[y for y in ys if isinstance(y, Var)]]
        kept = fewer(forward, residuals, constant, set(there))
        equations = [e for e in forward.equations if not has_effect(e) and e.outputs[0] in constant]
        invariant = remove_dead(Graph(forward.inputs[:consts], equations, list(kept.fixed), f"fixed_{body.name}"))
        saved = [var for var in kept.moving if var not in there]
        stepping = remove_dead(Graph(forward.inputs, forward.equations, [*forward.outputs[:m], *saved], forward.name))
        places = {var: i for i, var in reversed(list(enumerate([*xs, *ys, *saved]))) if isinstance(var, Var)}
        r_inputs, t_inputs = linear.inputs[: parts.residuals], linear.inputs[parts.residuals :]
        cut = sum(flags[: consts + carry])
        inputs = [*kept.fixed, *t_inputs[:cut], *kept.moving, *t_inputs[cut:]]
        names = dict(zip(r_inputs, residuals, strict=True))
        looping = remove_dead(renamed(linear, names, kept.again, inputs))
        return Reverse(flags, parts.outs, invariant, stepping, looping, [places[var] for var in kept.moving])

    return once(body, ("scan reverse", active, consts, carry), make)


def _following(graph: Graph, inputs: list[Var]) -> set[Var]:
    """The variables that follow from some inputs alone, without what has an effect in every step."""
    known = set(inputs)
    for equation in graph.equations:
        if not has_effect(equation) and all(a in known for a in equation.inputs if isinstance(a, Var)):
            known.update(equation.outputs)
    return known


def _linearize(primals: list[Tensor], tangents: Tangents, **params: Any) -> tuple[list[Tensor], Tangents]:
    if not is_recording(tangents):
        return _forward(primals, tangents, **params)
    return _reverse(primals, tangents, **params)


def _reverse(
    primals: list[Tensor], tangents: Tangents, body: Graph, consts: int, carry: int, **params: Any
) -> tuple[list[Tensor], Tangents]:
    parts = _reverse_body(body, tuple(t is not None for t in tangents), consts, carry)
    m = len(body.outputs)
    outs = bind(scan_primitive, *primals, body=parts.forward, consts=consts, carry=carry, **params)
    if not any(parts.outs):
        return outs[:m], [None] * m
    kept = interpret(parts.invariant, list(primals[:consts]))
    dots = filled(chosen(tangents, parts.flags), chosen(primals, parts.flags))
    n_const, n_carry = sum(parts.flags[:consts]), sum(parts.flags[consts : consts + carry])
    cut = n_const + n_carry
    sequences = [*primals[consts + carry :], *outs[carry:]]
    # the linear loop: constants = fixed residuals, tangents; carry = tangents; sequences = saved residuals, tangents
    made = bind(
        linear_scan,
        *kept,
        *dots[:cut],
        *[sequences[i] for i in parts.saved],
        *dots[cut:],
        body=parts.linear,
        consts=len(kept) + n_const,
        carry=n_carry,
        fixed=len(kept),
        saved=len(parts.saved),
        **params,
    )
    return outs[:m], spread(made, parts.outs)


class Adjoint(NamedTuple):
    """The loop that carries adjoints backwards, and what is done with its sequences afterwards."""

    graph: Graph
    xs: Mask  # which sequences get adjoints
    kept: Mask  # the adjoints of which constants are added up in the loop
    totals: tuple[tuple[Total, ...], ...]  # for every constant, what is added after it
    places: dict[Var, int]  # of the operands of totals among residuals, adjoints of ys and sequences of the loop


def _adjoint_body(body: Graph, consts: int, carry: int, fixed: int, saved: int) -> Adjoint:
    """A step of the loop that carries adjoints and adds up those of the constants, as far as totals do not."""

    def make() -> Adjoint:
        n_const, n_x = consts - fixed, len(body.inputs) - consts - carry - saved
        linear = (False,) * fixed + (True,) * (n_const + carry) + (False,) * saved + (True,) * n_x
        # (fixed, saved, adjoints of carry and ys) -> adjoints of constants, carry, xs
        step, has = transpose_graph(body, linear)
        found = chosen(spread(step.outputs, has), linear)
        sums, backwards, last = found[:n_const], found[n_const : n_const + carry], found[n_const + carry :]
        xs = [atom for atom in last if atom is not None]
        others = [atom for atom in backwards if atom is not None] + xs
        before, after = step.inputs[fixed : fixed + saved], step.inputs[fixed + saved + carry :]
        room = sum(var.aval.size for var in before)  # so backwards takes at most twice the memory
        parts = split(step, [a for a in sums if a is not None], others, [*before, *after, *xs], room)
        counts = iter(zip(parts.left, parts.totals, strict=True))
        left, totals = zip(*[(0, ()) if a is None else next(counts) for a in sums], strict=True) if sums else ((), ())
        avals, outs = input_avals(body), output_avals(body)
        kept = tuple(count > 0 for count in left)

        def f(*inputs: Tensor) -> list[Tensor]:
            keep, added, rest = inputs[:fixed], inputs[fixed : fixed + sum(kept)], inputs[fixed + sum(kept) :]
            adjoints, residuals, ct_ys = rest[:carry], rest[carry : carry + saved], rest[carry + saved :]
            made = iter(interpret(parts.graph, [*keep, *residuals, *adjoints, *ct_ys]))
            new = []
            for total, count in zip(added, chosen(left, kept), strict=True):
                terms = [next(made) for _ in range(count)]
                new.append(total + functools.reduce(operator.add, terms))
            new += filled([a if a is None else next(made) for a in backwards], avals[consts : consts + carry])
            return new + list(made)

        types = avals[:fixed] + chosen(avals[fixed:consts], kept) + outs[:carry]
        types += avals[consts + carry : consts + carry + saved] + outs[carry:]
        sequences = [*before, *after, *xs, *parts.handed]
        places = {atom: i for i, atom in reversed(list(enumerate(sequences))) if isinstance(atom, Var)}
        has_xs = tuple(atom is not None for atom in last)
        return Adjoint(pure(f, types, f"adjoint_{body.name}"), has_xs, kept, totals, places)

    return once(body, ("scan adjoint", consts, carry, fixed, saved), make)


def _linear_transpose(
    cts: Tangents,
    args: list[Tensor],
    body: Graph,
    consts: int,
    carry: int,
    length: int,
    reverse: bool,
    fixed: int,
    saved: int,
) -> Tangents:
    """The adjoint of a linear scan: a scan in the other direction, and products of its sequences."""
    step, has, kept, totals, places = _adjoint_body(body, consts, carry, fixed, saved)
    outs = output_avals(body)
    full = filled(cts, outs[:carry] + [Aval((length, *a.shape), a.dtype) for a in outs[carry:]])
    sums, residuals = chosen(args[fixed:consts], kept), args[consts + carry : consts + carry + saved]
    made = bind(
        scan_primitive,
        *args[:fixed],
        *filled([None] * len(sums), sums),
        *full[:carry],
        *residuals,
        *full[carry:],
        body=step,
        consts=fixed,
        carry=len(sums) + carry,
        length=length,
        reverse=not reverse,
    )
    ys = made[len(sums) + carry :]
    sequences = [*residuals, *full[carry:], *ys]
    constants = spread(made[: len(sums)], kept)
    for i, some in enumerate(totals):
        for total in some:
            part = total.of([sequences[places[operand.root]] for operand in total.operands])
            before = constants[i]
            constants[i] = part if before is None else before + part
    backwards = made[len(sums) : len(sums) + carry]
    adjoints = [None] * fixed + constants + backwards + [None] * saved + spread(ys[: sum(has)], has)
    return [ct if type(arg) is Tangent else None for ct, arg in zip(adjoints, args, strict=True)]


# --- vmap


def _swap_first(x: Tensor) -> Tensor:
    return transpose(x, axes=(1, 0, *range(2, x.ndim)))


def _batch(
    args: list[Tensor], batched: list[bool], body: Graph, consts: int, carry: int, **params: Any
) -> list[Tensor | Shared]:
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
