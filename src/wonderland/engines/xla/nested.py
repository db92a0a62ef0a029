"""Equations that carry graphs or Python functions: calls, loops, branches, rules of users, callbacks.

The status of a program goes through loops and branches with the values, so that what is refused inside is known
outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback

from ...core.context import Group
from ...core.primitive import Aval
from ...core.typing import Array
from ...ir.deriving import pure
from ...ir.graph import Graph
from ...primitives.host import Hosted, host_call
from .status import Status

if TYPE_CHECKING:
    from ...core.cell import Cell
    from ...transforms.custom import Backward, Custom
    from .lowering import Lowering

Values = Sequence[jax.Array]
State = tuple[Status, tuple[jax.Array, ...]]


def _inside(lowering: Lowering, graph: Graph, status: Status, args: Values) -> tuple[Status, list[jax.Array]]:
    """The results of a graph in a loop or a branch, with the status before and after it."""
    before, lowering.checks.status = lowering.checks.status, status
    try:
        outs = lowering.graph(graph, args)
        return lowering.checks.status, outs
    finally:
        lowering.checks.status = before


def _call(lowering: Lowering, *args: jax.Array, graph: Graph) -> list[jax.Array]:
    return lowering.graph(graph, args)


def _checkpoint(lowering: Lowering, *args: jax.Array, graph: Graph) -> list[jax.Array]:
    """Behind a barrier, so that XLA does not find out that the same was computed before, and keep that."""
    return lowering.graph(graph, lax.optimization_barrier(args))


def _scan(
    lowering: Lowering,
    *args: jax.Array,
    body: Graph,
    consts: int,
    carry: int,
    length: int,
    reverse: bool,
    **linear: int,
) -> list[jax.Array]:
    fixed, first, xs = args[:consts], args[consts : consts + carry], args[consts + carry :]

    def step(state: State, now: Values) -> tuple[State, tuple[jax.Array, ...]]:
        status, outs = _inside(lowering, body, state[0], [*fixed, *state[1], *now])
        return (status, tuple(outs[:carry])), tuple(outs[carry:])

    (status, last), ys = lax.scan(
        step, (lowering.checks.status, tuple(first)), tuple(xs), length=length, reverse=reverse
    )
    lowering.checks.status = status
    return [*last, *ys]


def _while(lowering: Lowering, *args: jax.Array, cond: Graph, body: Graph, consts: int) -> list[jax.Array]:
    """The condition is computed at the end of a step, where its status can be kept."""
    fixed = args[:consts]
    Going = tuple[jax.Array, Status, tuple[jax.Array, ...]]

    def tested(status: Status, values: Values) -> Going:
        status, (goes_on,) = _inside(lowering, cond, status, [*fixed, *values])
        return goes_on.reshape(()) & (status.check == 0), status, tuple(values)

    def step(state: Going) -> Going:
        return tested(*_inside(lowering, body, state[1], [*fixed, *state[2]]))

    start = tested(lowering.checks.status, args[consts:])
    _, lowering.checks.status, values = lax.while_loop(lambda state: state[0], step, start)
    return list(values)


def _branch(lowering: Lowering, index: jax.Array, *args: jax.Array, branches: tuple[Graph, ...]) -> list[jax.Array]:
    def chosen(graph: Graph) -> Callable[..., State]:
        def run(status: Status, *args: jax.Array) -> State:
            status, outs = _inside(lowering, graph, status, args)
            return status, tuple(outs)

        return run

    number = index.astype(jnp.int32) if index.dtype == bool else jnp.clip(index, 0, len(branches) - 1).astype(jnp.int32)
    status, outs = lax.switch(number.reshape(()), [chosen(b) for b in branches], lowering.checks.status, *args)
    lowering.checks.status = status
    return list(outs)


# --- functions with rules of the user's


def _avals(args: Values) -> tuple[Aval, ...]:
    return tuple(Aval(a.shape, np.dtype(a.dtype)) for a in args)


def _custom(lowering: Lowering, *args: jax.Array, custom: Custom) -> list[jax.Array]:
    staged = custom.trace(_avals(args))
    outside = [jnp.asarray(v._data) for v in staged.captured]
    return lowering.graph(staged.graph, [*outside, *[_now(lowering, cell) for cell in staged.read_cells], *args])


def _now(lowering: Lowering, cell: Cell) -> jax.Array:
    """What a cell holds whenever the program runs."""
    return _from_python(lowering, lambda: [cell.value._data], (Aval(cell.shape, cell.dtype),), ())[0]


def _custom_linear(lowering: Lowering, *args: jax.Array, backward: Backward) -> list[jax.Array]:
    n = backward.residuals
    graph = pure(lambda *xs: backward.push(list(xs[:n]), list(xs[n:])), list(_avals(args)), backward.custom.name)
    return lowering.graph(graph, args)


# --- functions of Python


def _from_python(
    lowering: Lowering,
    function: Callable[..., Sequence[Array]],
    avals: tuple[Aval, ...],
    args: Values,
    effect: bool = False,
) -> list[jax.Array]:
    """What a Python function gives. Its errors are kept, to be raised as they are when the program has ended."""
    lowering.calls_python = True

    def kept(*data: Array) -> tuple[Array, ...]:
        try:
            return tuple(function(*[np.asarray(d) for d in data]))
        except BaseException as error:
            lowering.raised.append(error)
            raise

    wanted = tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals)
    if effect:
        return list(io_callback(kept, wanted, *args, ordered=True))
    return list(jax.pure_callback(kept, wanted, *args))


def _observe(lowering: Lowering, *args: jax.Array, function: Hosted) -> jax.Array:
    def observed(*data: Array) -> list[Array]:
        function(*data)
        return [np.zeros((), bool)]

    return _from_python(lowering, observed, (Aval((), np.dtype(bool)),), args, effect=True)[0]


def _hosted(lowering: Lowering, *args: jax.Array, function: Hosted, avals: tuple[Aval, ...]) -> list[jax.Array]:
    return _from_python(lowering, lambda *data: host_call.impl(*data, function=function, avals=avals), avals, args)


def _all_sum(lowering: Lowering, x: jax.Array, *, group: Group) -> jax.Array:
    return _from_python(lowering, lambda data: [group.sum(data)], _avals((x,)), (x,), effect=True)[0]


RULES: dict[str, Callable[..., jax.Array | list[jax.Array]]] = {
    "call": _call,
    "checkpoint": _checkpoint,
    "scan": _scan,
    "linear_scan": _scan,
    "while": _while,
    "branch": _branch,
    "custom_jvp": _custom,
    "custom_vjp": _custom,
    "custom_linear": _custom_linear,
    "observe": _observe,
    "pure_callback": _hosted,
    "all_sum": _all_sum,
}
