"""The primitive behind `while_loop`. Operands are constants, which condition and body share, and the initial carry."""

from __future__ import annotations

from typing import NamedTuple

from ...core.errors import GradientError
from ...core.interpreter import bind
from ...core.primitive import Aval, Primitive, aval_of
from ...core.tensor import Tensor
from ...core.typing import Array, Shaped, Tangents
from ...engines.choosing import run
from ...engines.numpy.evaluate import interpret
from ...ir.deriving import input_avals, once, output_avals, pure
from ...ir.graph import Graph, Var
from ...primitives import reduction
from ...primitives.elementwise import where
from ...primitives.structure import broadcast_to, reshape
from ..batching import Shared
from ..call import (
    Mask,
    batch_graph,
    batch_size,
    check_operands,
    chosen,
    filled,
    is_recording,
    jvp_graph,
    shared,
    spread,
)
from .scanning import settle


def _impl(*args: Array, cond: Graph, body: Graph, consts: int) -> list[Array]:
    fixed, carry = list(args[:consts]), list(args[consts:])
    while run(cond, fixed + carry)[0]:
        carry = run(body, fixed + carry)
    return carry


def _abstract(*args: Shaped, cond: Graph, body: Graph, consts: int) -> list[Aval]:
    avals = [aval_of(a) for a in args]
    check_operands("while", cond, avals)
    check_operands("while", body, avals)
    check_operands("while", body, avals[:consts] + output_avals(body))
    return output_avals(body)


# --- forward mode


class Forward(NamedTuple):
    """A loop that carries tangents along: which operands have one, and the graphs."""

    flags: Mask
    cond: Graph
    body: Graph


def _forward_loop(cond: Graph, body: Graph, active: Mask, consts: int) -> Forward:
    def make() -> Forward:
        n = len(body.inputs)
        flags = settle(lambda f: jvp_graph(body, f).outs, active, consts, n - consts)
        step, _ = jvp_graph(body, flags, flags[consts:])
        cut = n + sum(flags[:consts])
        # (constants, their tangents, carry, its tangents) -> (carry, tangents)
        inputs = step.inputs[:consts] + step.inputs[n:cut] + step.inputs[consts:n] + step.inputs[cut:]
        unused = [Var(a) for a in chosen(input_avals(body), flags)]
        n_const = cut - n
        tested = cond.inputs[:consts] + unused[:n_const] + cond.inputs[consts:] + unused[n_const:]
        return Forward(
            flags,
            Graph(tested, cond.equations, cond.outputs, cond.name),
            Graph(inputs, step.equations, step.outputs, step.name),
        )

    return once(body, ("while forward", cond, active, consts), make)


def _linearize(
    primals: list[Tensor], tangents: Tangents, cond: Graph, body: Graph, consts: int
) -> tuple[list[Tensor], Tangents]:
    active = tuple(t is not None for t in tangents)
    flags, test, step = _forward_loop(cond, body, active, consts)
    has = flags[consts:]
    if not any(has):
        return bind(while_primitive, *primals, cond=cond, body=body, consts=consts), [None] * len(has)
    if is_recording(tangents):
        raise GradientError(
            "while_loop: has no reverse-mode derivative when traced, because the number of steps is not known.",
            "wl.scan, or wl.fori_loop with Python integers as bounds; wl.jvp works; so does wl.grad outside jit",
        )
    dots = filled(chosen(tangents, flags), chosen(primals, flags))
    cut = sum(flags[:consts])
    operands = [*primals[:consts], *dots[:cut], *primals[consts:], *dots[cut:]]
    outs = bind(while_primitive, *operands, cond=test, body=step, consts=consts + cut)
    return outs[: len(has)], spread(outs[len(has) :], has)


# --- vmap


def _batch(args: list[Tensor], batched: list[bool], cond: Graph, body: Graph, consts: int) -> list[Tensor | Shared]:
    size, n = batch_size(args, batched), len(args) - consts
    flags = settle(lambda f: batch_graph(body, f, size).outs, tuple(batched), consts, n)
    together = not batch_graph(cond, flags, size).outs[0]
    if not together:  # examples stop at different times, so that all of their values differ
        flags = flags[:consts] + (True,) * n
    operands = [
        broadcast_to(a, shape=(size, *a.shape)) if wanted and not on else a
        for a, on, wanted in zip(args, batched, flags, strict=True)
    ]
    test, step = batch_graph(cond, flags, size).graph, batch_graph(body, flags, size, flags[consts:]).graph
    if not together:
        test, step = once(body, ("while batch", cond, flags, size, consts), lambda: _masked(test, step, consts, size))
    return shared(bind(while_primitive, *operands, cond=test, body=step, consts=consts), flags[consts:])


def _masked(test: Graph, step: Graph, consts: int, size: int) -> tuple[Graph, Graph]:
    """Steps go on until all examples are done; those that are done keep their values."""

    def any_left(*inputs: Tensor) -> list[Tensor]:
        return [reduction.any_(interpret(test, list(inputs))[0], axes=(0,))]

    def masked(*inputs: Tensor) -> list[Tensor]:
        going = interpret(test, list(inputs))[0]
        return [
            where(reshape(going, shape=(size,) + (1,) * (new.ndim - 1)), new, old)
            for new, old in zip(interpret(step, list(inputs)), inputs[consts:], strict=True)
        ]

    avals = input_avals(test)
    return pure(any_left, avals, "any_left"), pure(masked, avals, "masked_step")


while_primitive: Primitive = Primitive("while", _impl, _abstract, batch=_batch, multiple=True, linearize=_linearize)
