"""Loops: `scan`, `map`, `while_loop`, `fori_loop`.

Eagerly (also inside `grad`, `vjp` and `jvp`) a loop is a Python loop over computed values. Traced, it is one equation with
its body as a graph: the derivative of a scan is a scan, and its adjoint a scan that runs backwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import array, trees
from ..context import state
from ..errors import GradientError, InputError, ShapeError, TraceError, TreeError
from ..graph.evaluate import evaluate, interpret
from ..graph.ir import Graph
from ..interpreter import Tangent, assign, bind
from ..primitives import reduction
from ..primitives.creation import zeros_like
from ..primitives.elementwise import where
from ..primitives.primitive import Aval, Primitive, aval_of
from ..primitives.structure import broadcast_to, reshape, transpose
from .bodies import Bodies, Body, check_same, tensors_of
from .call import (
    Mask,
    batch_graph,
    batch_size,
    inexact_mask,
    input_avals,
    instantiate,
    jvp_graph,
    linearize_graph,
    output_avals,
    pure,
    transpose_graph,
)


def runs_in_python() -> bool:
    """Whether values can be looked at, so that a Python loop or branch does the job."""
    return state.trace is None or state.trace.concrete


# --- scan: the primitive. Operands are constants, the initial carry, and sequences; results the last carry and sequences.


def _scan_impl(*args: Any, body: Graph, consts: int, carry: int, length: int, reverse: bool) -> list[Any]:
    fixed, state_, xs = list(args[:consts]), list(args[consts : consts + carry]), args[consts + carry :]
    avals = output_avals(body)[carry:]
    ys = [np.empty((length, *a.shape), a.dtype) for a in avals]
    for i in range(length)[:: -1 if reverse else 1]:
        outs = evaluate(body, [*fixed, *state_, *[x[i] for x in xs]])
        state_ = outs[:carry]
        for y, out in zip(ys, outs[carry:], strict=True):
            y[i] = out
    return state_ + ys


def _scan_abstract(*args: Any, body: Graph, consts: int, carry: int, length: int, reverse: bool) -> list[Aval]:
    outs = output_avals(body)
    return outs[:carry] + [Aval((length, *a.shape), a.dtype) for a in outs[carry:]]


def _step_avals(args: list[Any], consts: int, carry: int) -> list[Aval]:
    """The types that one step of the body sees."""
    first = consts + carry
    return [aval_of(a) for a in args[:first]] + [Aval(a.shape[1:], a.dtype) for a in args[first:]]


def _all_inexact(avals: list[Aval]) -> Mask:
    return inexact_mask(avals)


def _filled(primals: list[Any], tangents: list[Any], mask: Mask) -> list[Any]:
    """Tangents of all inexact operands, zeros where there is none: a carry may pick one up on the way."""
    return [zeros_like(p) if t is None else t for p, t, on in zip(primals, tangents, mask, strict=True) if on]


def _scan_jvp(
    primals: list[Any], tangents: list[Any], out: Any, body: Graph, consts: int, carry: int, length: int, reverse: bool
) -> list[Any]:
    mask = _all_inexact(_step_avals(primals, consts, carry))
    n_t = [sum(mask[:consts]), sum(mask[consts : consts + carry])]
    step = jvp_graph(body, mask)
    n_in, n_out = len(body.inputs), len(body.outputs)

    # bring (inputs, tangents) -> (outputs, tangents) to the order of a scan: constants, carry, sequences
    def order(plain: list[Any], dots: list[Any], cuts: tuple[int, int], dot_cuts: tuple[int, int]) -> list[Any]:
        a, b = cuts
        c, d = dot_cuts
        return [*plain[:a], *dots[:c], *plain[a:b], *dots[c:d], *plain[b:], *dots[d:]]

    cuts, dot_cuts = (consts, consts + carry), (n_t[0], n_t[0] + n_t[1])
    out_mask = inexact_mask(output_avals(body))
    inputs = order(step.inputs[:n_in], step.inputs[n_in:], cuts, dot_cuts)
    outputs = order(step.outputs[:n_out], step.outputs[n_out:], (0, carry), (0, sum(out_mask[:carry])))
    new = Graph(inputs, step.equations, outputs, step.name)
    operands = order(list(primals), _filled(primals, tangents, mask), cuts, dot_cuts)
    outs = bind(scan_primitive, *operands, body=new, consts=consts + n_t[0], carry=carry + n_t[1], length=length, reverse=reverse)
    dots = [*outs[carry : carry + n_t[1]], *outs[carry + n_t[1] + n_out - carry :]]
    made = iter(dots)
    return [next(made) if on else None for on in out_mask]


def _scan_linearize(
    primals: list[Any], tangents: list[Any], body: Graph, consts: int, carry: int, length: int, reverse: bool
) -> tuple[list[Any], list[Any]]:
    mask = _all_inexact(_step_avals(primals, consts, carry))
    parts = linearize_graph(body, mask)
    n_out = len(body.outputs)
    forward = parts.forward
    residuals = forward.outputs[n_out:]
    # a residual that is one of the loop's constants needs no copy per step
    constant = {v: i for i, v in enumerate(forward.inputs[:consts])}
    stacked = [i for i, r in enumerate(residuals) if r not in constant]
    fixed = [i for i, r in enumerate(residuals) if r in constant]
    stepping = Graph(forward.inputs, forward.equations, [*forward.outputs[:n_out], *[residuals[i] for i in stacked]], forward.name)
    outs = bind(scan_primitive, *primals, body=stepping, consts=consts, carry=carry, length=length, reverse=reverse)
    values, saved = outs[:n_out], outs[n_out:]
    # the linear loop: constants = fixed residuals, constants' tangents; carry = its tangents; sequences = saved residuals, tangents
    linear = parts.linear
    r_inputs, t_inputs = linear.inputs[: parts.residuals], linear.inputs[parts.residuals :]
    n_ct, n_st = sum(mask[:consts]), sum(mask[consts : consts + carry])
    out_mask = inexact_mask(output_avals(body))
    made_outputs = iter(linear.outputs)
    zero_filled = {i: next(made_outputs) for i, on in enumerate(parts.outs) if on}
    full = _linear_with_zeros(linear, [zero_filled.get(i) for i, on in enumerate(out_mask) if on], [a for a, on in zip(output_avals(body), out_mask, strict=True) if on])
    inputs = [
        *[r_inputs[i] for i in fixed],
        *t_inputs[: n_ct + n_st],
        *[r_inputs[i] for i in stacked],
        *t_inputs[n_ct + n_st :],
    ]
    new = Graph(inputs, full.equations, full.outputs, linear.name)
    dots = _filled(primals, tangents, mask)
    operands = [
        *[primals[constant[residuals[i]]] for i in fixed],
        *dots[: n_ct + n_st],
        *saved,
        *dots[n_ct + n_st :],
    ]
    made = iter(
        bind(
            linear_scan,
            *operands,
            body=new,
            consts=len(fixed) + n_ct,
            carry=n_st,
            length=length,
            reverse=reverse,
            fixed=len(fixed),
            saved=len(stacked),
        )
    )
    return values, [next(made) if on else None for on in out_mask]


def _linear_with_zeros(linear: Graph, outputs: list[Any], avals: list[Aval]) -> Graph:
    """The linear graph with zeros for the results that have no tangent."""
    from ..graph.ir import Equation, Var
    from ..primitives.primitive import TABLE

    equations, filled = list(linear.equations), []
    for out, aval in zip(outputs, avals, strict=True):
        if out is None:
            out = Var(aval)
            equations.append(Equation(TABLE["full"], [], {"shape": aval.shape, "value": 0, "dtype": aval.dtype}, [out]))
        filled.append(out)
    return Graph(linear.inputs, equations, filled, linear.name)


def _linear_scan_transpose(
    cts: Any, args: list[Any], body: Graph, consts: int, carry: int, length: int, reverse: bool, fixed: int, saved: int
) -> list[Any]:
    """The adjoint of a linear scan: a scan in the other direction that carries adjoints and sums those of the constants."""
    n_const, n_x = consts - fixed, len(args) - consts - carry - saved
    linear = (False,) * fixed + (True,) * (n_const + carry) + (False,) * saved + (True,) * n_x
    step = transpose_graph(body, linear)  # (fixed, saved, cts of carry and ys) -> (cts of constants, carry, xs)
    ct_const_avals = [v.aval for v in body.inputs[fixed:consts]]

    def f(*inputs: Any) -> list[Any]:
        keep, rest = inputs[:fixed], inputs[fixed:]
        sums, ct_carry, rest = rest[:n_const], rest[n_const : n_const + carry], rest[n_const + carry :]
        residuals, ct_ys = rest[:saved], rest[saved:]
        found = interpret(step, [*keep, *residuals, *ct_carry, *ct_ys])
        new_sums = [a + b for a, b in zip(sums, found[:n_const], strict=True)]
        return [*new_sums, *found[n_const:]]

    out = output_avals(body)
    avals = [v.aval for v in body.inputs[:fixed]] + ct_const_avals + out[:carry]
    avals += [v.aval for v in body.inputs[consts + carry : consts + carry + saved]] + out[carry:]
    key = ("adjoint", fixed, saved, consts, carry)
    if key not in body.derived:
        body.derived[key] = pure(f, avals, f"adjoint_{body.name}")
    full_cts = instantiate(cts, out[:carry] + [Aval((length, *a.shape), a.dtype) for a in out[carry:]])
    operands = [
        *args[:fixed],
        *[zeros_like(a) for a in ct_const_avals],
        *full_cts[:carry],
        *args[consts + carry : consts + carry + saved],
        *full_cts[carry:],
    ]
    outs = bind(
        scan_primitive, *operands, body=body.derived[key], consts=fixed, carry=n_const + carry, length=length, reverse=not reverse
    )
    result: list[Any] = [None] * fixed + list(outs[: n_const + carry]) + [None] * saved + list(outs[n_const + carry :])
    return [ct if type(arg) is Tangent else None for ct, arg in zip(result, args, strict=True)]


def _swap_first(x: Any) -> Any:
    return transpose(x, axes=(1, 0, *range(2, x.ndim)))


def _scan_batch(args: list[Any], batched: list[bool], body: Graph, consts: int, carry: int, length: int, reverse: bool) -> list[Any]:
    size = batch_size(args, batched)
    first = consts + carry
    flags = (*batched[:consts], *(True,) * carry, *batched[first:])
    new = batch_graph(body, tuple(flags), size)
    operands = list(args[:consts])
    operands += [a if on else broadcast_to(a, shape=(size, *a.shape)) for a, on in zip(args[consts:first], batched[consts:first], strict=True)]
    operands += [_swap_first(a) if on else a for a, on in zip(args[first:], batched[first:], strict=True)]
    outs = bind(scan_primitive, *operands, body=new, consts=consts, carry=carry, length=length, reverse=reverse)
    return [*outs[:carry], *[_swap_first(o) for o in outs[carry:]]]


scan_primitive = Primitive(
    "scan",
    _scan_impl,
    _scan_abstract,
    jvp=_scan_jvp,
    batch=_scan_batch,
    multiple=True,
    linearize=_scan_linearize,
)


def _as_scan(params: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in params.items() if k not in ("fixed", "saved")}


# A scan whose body is linear in all but `fixed` constants and `saved` sequences: what a derivative of a scan records.
linear_scan = Primitive(
    "linear_scan",
    lambda *args, **params: _scan_impl(*args, **_as_scan(params)),
    lambda *args, **params: _scan_abstract(*args, **_as_scan(params)),
    jvp=lambda primals, tangents, out, **params: _scan_jvp(primals, tangents, out, **_as_scan(params)),
    transpose=_linear_scan_transpose,
    batch=lambda args, batched, **params: _scan_batch(args, batched, **_as_scan(params)),
    multiple=True,
    linearize=lambda primals, tangents, **params: _scan_linearize(primals, tangents, **_as_scan(params)),
)


# --- scan: the function


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None, *, reverse: bool = False
) -> tuple[Any, Any]:
    r"""Run \(c_{t+1}, y_t = f(c_t, x_t)\) over the first axis of `xs`; return the last carry and the stacked results.

    >>> import wonderland as wl
    >>> total, sums = wl.scan(lambda c, x: (c + x, c + x), 0.0, wl.tensor([1.0, 2.0, 3.0]))
    >>> print(total, sums)
    tensor(6.) tensor([1., 3., 6.])

    The carry and the elements are trees of tensors; the carry keeps its structure, shapes and dtypes. Without `xs`, `length`
    says how often to run f(carry, None). With `reverse` the last element comes first, and results stay in their places.
    """
    carry, carry_structure = tensors_of("scan", init)
    sequences, xs_structure = tensors_of("scan", xs)
    lengths = {x.shape[0] if x.ndim else None for x in sequences} | ({length} if length is not None else set())
    if len(lengths) != 1 or None in lengths:
        raise ShapeError(
            f"scan: the sequences have lengths {sorted(map(str, lengths))}." if lengths else "scan: nothing says how long to run.",
            "xs whose leaves share the size of their first axis, or length=...",
        )
    (n,) = lengths
    before = [aval_of(c) for c in carry]
    if runs_in_python():
        return _scan_python(f, carry, carry_structure, sequences, xs_structure, n, reverse, before)
    body = Body("scan", _pair(f), [carry_structure, xs_structure], before + [Aval(x.shape[1:], x.dtype) for x in sequences])
    if body.structure.kind != "tuple" or len(body.structure.children) != 2:
        raise TreeError("scan: the function returns a pair (carry, y).", "return carry, y (y may be None)")
    after, ys_structure = body.structure.children
    count = after.count
    check_same("scan", "the carry before and after a step", (carry_structure, before), (after, body.results[:count]))
    bodies = Bodies([body])
    graph = bodies.graphs[0]
    n_fixed, n_state, n_y = len(bodies.fixed), len(bodies.written), len(body.results) - count
    # state that the body writes travels with the carry
    ordered = Graph(
        graph.inputs, graph.equations, [*graph.outputs[count + n_y :], *graph.outputs[:count], *graph.outputs[count : count + n_y]], graph.name
    )
    outs = bind(
        scan_primitive, *bodies.operands(), *carry, *sequences, body=ordered, consts=n_fixed, carry=n_state + count, length=n, reverse=reverse
    )
    for cell, value in zip(bodies.written, outs[:n_state], strict=True):
        assign(cell, value)
    outs = outs[n_state:]
    return trees.unflatten(carry_structure, outs[:count]), trees.unflatten(ys_structure, outs[count:])


def _pair(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def body(carry: Any, x: Any) -> Any:
        out = f(carry, x)
        if not isinstance(out, tuple) or len(out) != 2:
            raise TreeError(f"scan: the function returned a {type(out).__name__}.", "a pair (carry, y); y may be None")
        return out

    body.__name__ = getattr(f, "__name__", "body")
    return body


def _scan_python(
    f: Any, carry: list[Any], structure: Any, sequences: list[Any], xs_structure: Any, n: int, reverse: bool, before: list[Aval]
) -> tuple[Any, Any]:
    current = trees.unflatten(structure, carry)
    ys: list[Any] = []
    ys_structure: Any = None
    step = _pair(f)
    for i in range(n)[:: -1 if reverse else 1]:
        current, y = step(current, trees.unflatten(xs_structure, [x[i] for x in sequences]))
        leaves, after = tensors_of("scan", current)
        check_same("scan", "the carry before and after a step", (structure, before), (after, [aval_of(leaf) for leaf in leaves]))
        current = trees.unflatten(structure, leaves)
        y_leaves, ys_structure = tensors_of("scan", y)
        ys.append(y_leaves)
    if n == 0:
        shapes = eval_shape(step, current, trees.unflatten(xs_structure, [Aval(x.shape[1:], x.dtype) for x in sequences]))
        avals, ys_structure = trees.flatten(shapes[1])
        return current, trees.unflatten(ys_structure, [array.zeros((0, *a.shape), dtype=a.dtype) for a in avals])
    if reverse:
        ys.reverse()
    stacked = [array.stack(column) for column in zip(*ys, strict=True)]
    return current, trees.unflatten(ys_structure, stacked)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """f applied to each element along the first axis, one after another, and the results stacked.

    >>> import wonderland as wl
    >>> wl.map(lambda x: x.sum(), wl.ones((2, 3)))
    tensor([3., 3.])

    Like `vmap`, but without the memory of all elements at once.
    """
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


# --- while_loop


def _while_impl(*args: Any, cond: Graph, body: Graph, cond_consts: int, body_consts: int) -> list[Any]:
    tests, fixed, carry = list(args[:cond_consts]), list(args[cond_consts : cond_consts + body_consts]), list(args[cond_consts + body_consts :])
    while evaluate(cond, tests + carry)[0]:
        carry = evaluate(body, fixed + carry)
    return carry


def _while_jvp(primals: list[Any], tangents: list[Any], out: Any, cond: Graph, body: Graph, cond_consts: int, body_consts: int) -> list[Any]:
    first = cond_consts + body_consts
    operands, dots = primals[cond_consts:], tangents[cond_consts:]
    mask = inexact_mask(input_avals(body))
    step = jvp_graph(body, mask)
    n_ct = sum(mask[:body_consts])
    n, m = len(body.inputs), len(body.outputs)
    # (constants, their tangents, carry, its tangents) -> (carry, tangents)
    ins = [*step.inputs[:body_consts], *step.inputs[n : n + n_ct], *step.inputs[body_consts:n], *step.inputs[n + n_ct :]]
    new = Graph(ins, step.equations, step.outputs, step.name)
    n_dots = sum(mask[body_consts:])
    extended = _ignoring(cond, [v.aval for v in step.inputs[n + n_ct :]])
    filled = _filled(operands, dots, mask)
    outs = bind(
        while_primitive,
        *primals[:cond_consts],
        *primals[cond_consts:first],
        *filled[:n_ct],
        *primals[first:],
        *filled[n_ct:],
        cond=extended,
        body=new,
        cond_consts=cond_consts,
        body_consts=body_consts + n_ct,
    )
    assert len(outs) == m + n_dots
    made = iter(outs[m:])
    return [next(made) if on else None for on in inexact_mask(output_avals(body))]


def _ignoring(graph: Graph, extra: list[Aval]) -> Graph:
    from ..graph.ir import Var

    return Graph(graph.inputs + [Var(a) for a in extra], graph.equations, graph.outputs, graph.name)


def _while_linearize(primals: list[Any], tangents: list[Any], **params: Any) -> Any:
    raise GradientError(
        "while_loop: has no reverse-mode derivative when traced, because the number of steps is not known.",
        "wl.scan, or wl.fori_loop with Python integers as bounds; wl.jvp works; so does wl.grad outside jit",
    )


def _while_batch(args: list[Any], batched: list[bool], cond: Graph, body: Graph, cond_consts: int, body_consts: int) -> list[Any]:
    """Steps go on until all examples are done; those that are done keep their values."""
    size = batch_size(args, batched)
    first = cond_consts + body_consts
    n = len(args) - first
    test = batch_graph(cond, (*batched[:cond_consts], *(True,) * n), size)
    step = batch_graph(body, (*batched[cond_consts:first], *(True,) * n), size)

    def any_left(*inputs: Any) -> list[Any]:
        return [reduction.any_(interpret(test, list(inputs))[0], axes=(0,))]

    def masked(*inputs: Any) -> list[Any]:
        tests, fixed, carry = inputs[:cond_consts], inputs[cond_consts:first], inputs[first:]
        going = interpret(test, [*tests, *carry])[0]
        new = interpret(step, [*fixed, *carry])
        return [
            where(reshape(going, shape=(size,) + (1,) * (c.ndim - 1)), a, c) for a, c in zip(new, carry, strict=True)
        ]

    carry = [a if on else broadcast_to(a, shape=(size, *a.shape)) for a, on in zip(args[first:], batched[first:], strict=True)]
    avals = [aval_of(a) for a in args[:first]] + [aval_of(c) for c in carry]
    return bind(  # type: ignore[no-any-return]
        while_primitive,
        *args[:cond_consts],
        *args[:first],
        *carry,
        cond=pure(any_left, avals[:cond_consts] + avals[first:], "any_left"),
        body=pure(masked, avals, "masked_step"),
        cond_consts=cond_consts,
        body_consts=first,
    )


while_primitive = Primitive(
    "while",
    _while_impl,
    lambda *args, body, **params: output_avals(body),
    jvp=_while_jvp,
    batch=_while_batch,
    multiple=True,
    linearize=_while_linearize,
)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any) -> Any:
    """Repeat `carry = body_fun(carry)` while `cond_fun(carry)` holds.

    >>> import wonderland as wl
    >>> print(wl.while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    tensor(192)

    Differentiable in forward mode, and in reverse mode outside `jit`. Under `vmap` the loop runs until every example is done.
    """
    carry, structure = tensors_of("while_loop", init)
    before = [aval_of(c) for c in carry]
    if runs_in_python():
        current = trees.unflatten(structure, carry)
        while bool(cond_fun(current)):
            leaves, after = tensors_of("while_loop", body_fun(current))
            check_same("while_loop", "the value before and after a step", (structure, before), (after, [aval_of(leaf) for leaf in leaves]))
            current = trees.unflatten(structure, leaves)
        return current
    test = Body("while_loop", cond_fun, [structure], before)
    if test.structure.kind != "leaf" or test.results[0] != Aval((), np.dtype(bool)):
        raise InputError(f"while_loop: the condition gives {[str(a) for a in test.results]}, not one bool.", "a comparison of scalars")
    body = Body("while_loop", body_fun, [structure], before)
    check_same("while_loop", "the value before and after a step", (structure, before), (body.structure, body.results))
    tests, steps = Bodies([test]), Bodies([body])
    if tests.written:
        raise TraceError("while_loop: the condition changes state.", "a condition without random numbers or updates of buffers")
    written = {id(c) for c in steps.written}
    if any(id(v) in written for v in tests.fixed):
        raise TraceError("while_loop: the condition reads state that the body writes.", "carry that value in the loop instead")
    n_state = len(steps.written)
    graph = steps.graphs[0]
    n = len(before)
    looping = Graph(graph.inputs, graph.equations, [*graph.outputs[n:], *graph.outputs[:n]], graph.name)
    cond = tests.graphs[0]
    n_tests = len(tests.fixed)
    padded = _with_state(cond, n_tests, [aval_of(c) for c in steps.written])
    outs = bind(
        while_primitive,
        *tests.operands(),
        *steps.operands(),
        *carry,
        cond=padded,
        body=looping,
        cond_consts=n_tests,
        body_consts=len(steps.fixed),
    )
    for cell, value in zip(steps.written, outs[:n_state], strict=True):
        assign(cell, value)
    return trees.unflatten(structure, outs[n_state:])


def _with_state(graph: Graph, position: int, avals: list[Aval]) -> Graph:
    from ..graph.ir import Var

    inputs = [*graph.inputs[:position], *[Var(a) for a in avals], *graph.inputs[position:]]
    return Graph(inputs, graph.equations, graph.outputs, graph.name)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init: Any) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`.

    >>> import wonderland as wl
    >>> print(wl.fori_loop(0, 5, lambda i, x: x + i, 0))
    tensor(10)

    With Python integers as bounds it is differentiable in both modes; with traced bounds it is a `while_loop`.
    """
    if isinstance(lower, int) and isinstance(upper, int):
        counters = array.arange(lower, max(lower, upper))
        return scan(lambda value, i: (body_fun(i, value), None), init, counters)[0]
    start, stop = array.asarray(lower), array.asarray(upper)
    stop = stop.astype(start.dtype)
    return while_loop(lambda c: c[0] < stop, lambda c: (c[0] + 1, body_fun(c[0], c[1])), (start, init))[1]


from .jit import eval_shape  # noqa: E402 - only empty scans ask for shapes

