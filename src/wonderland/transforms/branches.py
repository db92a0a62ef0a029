"""Branches: `cond` and `switch`.

Eagerly the chosen branch is called. Traced, all branches become graphs of one equation, and only the chosen one runs;
under `vmap` with a batched choice all run and the results are selected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import array, trees
from ..dtypes import bool_, int64, is_integer
from ..errors import DTypeError, InputError
from ..graph.evaluate import evaluate, interpret
from ..graph.ir import Equation, Graph, Var
from ..interpreter import Tangent, assign, bind
from ..primitives.elementwise import where
from ..primitives.primitive import TABLE, Aval, Primitive, aval_of
from ..primitives.structure import broadcast_to, reshape
from .bodies import Bodies, Body, check_same, tensors_of
from .call import (
    batch_graph,
    batch_size,
    inexact_mask,
    instantiate,
    linearize_graph,
    output_avals,
    tangent_graph,
    transpose_graph,
)
from .loops import runs_in_python

Graphs = tuple[Graph, ...]


def _clip(index: Any, n: int) -> int:
    return min(max(int(index), 0), n - 1)


def _impl(index: Any, *args: Any, branches: Graphs) -> list[Any]:
    return evaluate(branches[_clip(index, len(branches))], list(args))


def _jvp(primals: list[Any], tangents: list[Any], out: Any, branches: Graphs) -> list[Any]:
    active = tuple(t is not None for t in tangents[1:])
    made = iter(
        bind(branch, *primals, *[t for t in tangents[1:] if t is not None], branches=tuple(tangent_graph(b, active) for b in branches))
    )
    return [next(made) if on else None for on in inexact_mask(output_avals(branches[0]))]


def _with_outputs(graph: Graph, outputs: list[Any], avals: list[Aval]) -> Graph:
    """The graph with these outputs, zeros where one is None."""
    equations, filled = list(graph.equations), []
    for out, aval in zip(outputs, avals, strict=True):
        if out is None:
            out = Var(aval)
            equations.append(Equation(TABLE["full"], [], {"shape": aval.shape, "value": 0, "dtype": aval.dtype}, [out]))
        filled.append(out)
    return Graph(graph.inputs, equations, filled, graph.name)


def _linearize(primals: list[Any], tangents: list[Any], branches: Graphs) -> tuple[list[Any], list[Any]]:
    """Every branch keeps its own residuals; the others' places hold zeros."""
    active = tuple(t is not None for t in tangents[1:])
    parts = [linearize_graph(b, active) for b in branches]
    n = len(branches[0].outputs)
    residual_avals = [[a.aval for a in p.forward.outputs[n:]] for p in parts]
    every = [aval for avals in residual_avals for aval in avals]
    out_avals = output_avals(branches[0])
    out_mask = inexact_mask(out_avals)
    forwards, linears, start = [], [], 0
    for p, avals in zip(parts, residual_avals, strict=True):
        own = list(p.forward.outputs[n:])
        residuals: list[Any] = [None] * start + own + [None] * (len(every) - start - len(own))
        forwards.append(_with_outputs(p.forward, list(p.forward.outputs[:n]) + residuals, out_avals + every))
        inputs = [Var(a) for a in every]
        inputs[start : start + len(own)] = p.linear.inputs[: len(own)]
        start += len(avals)
        made = iter(p.linear.outputs)
        outputs = [next(made) if has else None for has in p.outs]
        linear = Graph(inputs + p.linear.inputs[len(own) :], p.linear.equations, [], p.linear.name)
        linears.append(
            _with_outputs(
                linear,
                [o for o, on in zip(outputs, out_mask, strict=True) if on],
                [a for a, on in zip(out_avals, out_mask, strict=True) if on],
            )
        )
    outs = bind(branch, *primals, branches=tuple(forwards))
    dots = [t for t in tangents[1:] if t is not None]
    made_tangents = iter(bind(branch, primals[0], *outs[n:], *dots, branches=tuple(linears)))
    return outs[:n], [next(made_tangents) if on else None for on in out_mask]


def _transpose(cts: Any, args: list[Any], branches: Graphs) -> list[Any]:
    linear = tuple(type(a) is Tangent for a in args[1:])
    made = iter(
        bind(
            branch,
            args[0],
            *[a for a, on in zip(args[1:], linear, strict=True) if not on],
            *instantiate(cts, output_avals(branches[0])),
            branches=tuple(transpose_graph(b, linear) for b in branches),
        )
    )
    return [None] + [next(made) if on else None for on in linear]


def _batch(args: list[Any], batched: list[bool], branches: Graphs) -> list[Any]:
    size = batch_size(args, batched)
    if not batched[0]:
        return bind(branch, *args, branches=tuple(batch_graph(b, tuple(batched[1:]), size) for b in branches))  # type: ignore[no-any-return]
    operands = [a if on else broadcast_to(a, shape=(size, *a.shape)) for a, on in zip(args[1:], batched[1:], strict=True)]
    index = args[0]
    results = [interpret(batch_graph(b, (True,) * len(operands), size), operands) for b in branches]
    chosen = results[-1]
    for i in range(len(branches) - 2, -1, -1):
        this = index <= i
        chosen = [
            where(reshape(this, shape=(size,) + (1,) * (a.ndim - 1)), a, b) for a, b in zip(results[i], chosen, strict=True)
        ]
    return chosen


branch = Primitive(
    "branch",
    _impl,
    lambda index, *args, branches: output_avals(branches[0]),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    multiple=True,
    linearize=_linearize,
)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Call the branch number `index` (moved into range) with the operands.

    >>> import wonderland as wl
    >>> print(wl.switch(1, [lambda x: x, lambda x: 10 * x], wl.tensor(2.0)))
    tensor(20.)

    All branches return trees of one structure, with equal shapes and dtypes.
    """
    if not branches:
        raise InputError("switch: there is no branch.", "at least one function")
    index = array.asarray(index)
    if index.shape != () or not is_integer(index.dtype):
        raise DTypeError(f"switch: the index is {index.dtype}{list(index.shape)}.", "one integer")
    return _choose("switch", index, list(branches), operands)


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """`true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`.

    >>> import wonderland as wl
    >>> f = wl.jit(lambda x: wl.cond(x > 0, wl.sqrt, lambda x: -x, x))
    >>> print(f(4.0), f(-3.0))
    tensor(2.) tensor(3.)
    """
    pred = array.asarray(pred)
    if pred.shape != () or not (pred.dtype == bool_ or is_integer(pred.dtype)):
        raise DTypeError(f"cond: the predicate is {pred.dtype}{list(pred.shape)}.", "one bool; wl.where chooses element by element")
    if pred.dtype != bool_:
        pred = pred != 0
    return _choose("cond", pred.astype(int64), [false_fun, true_fun], operands)


def _choose(name: str, index: Any, functions: list[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    if runs_in_python():
        return functions[_clip(index, len(functions))](*operands)
    leaves, structure = tensors_of(name, operands)
    structures = list(structure.children)
    avals = [aval_of(leaf) for leaf in leaves]
    bodies = [Body(name, f, structures, avals) for f in functions]
    for body in bodies[1:]:
        check_same(name, "the results of two branches", (bodies[0].structure, bodies[0].results), (body.structure, body.results))
    shared = Bodies(bodies)
    outs = bind(branch, index, *shared.operands(), *leaves, branches=tuple(shared.graphs))
    count = len(bodies[0].results)
    for cell, value in zip(shared.written, outs[count:], strict=True):
        assign(cell, value)
    return trees.unflatten(bodies[0].structure, outs[:count])


