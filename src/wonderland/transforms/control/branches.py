"""Branches: `cond` and `switch`.

Eagerly the chosen branch is called. Traced, all branches become graphs of one equation, and only the chosen one runs;
under `vmap` with a batched choice all run and the results are selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import NamedTuple, SupportsInt

from ... import arrays
from ...core import trees
from ...core.dtypes import bool_, is_integer
from ...core.errors import DTypeError, GraphError, InputError
from ...core.interpreter import Tangent, assign, bind
from ...core.primitive import Aval, Primitive, aval_of
from ...core.tensor import VALUES, Tensor
from ...core.typing import Array, ArrayLike, Shaped, Tangents
from ...engines.choosing import run
from ...engines.numpy.evaluate import interpret
from ...ir.deriving import input_avals, once, output_avals, pure
from ...ir.graph import Graph, Var
from ...primitives.creation import zeros_like
from ...primitives.elementwise import where
from ...primitives.structure import reshape
from ..batching import Shared
from ..call import (
    Linearized,
    Mask,
    batch_graph,
    batch_size,
    check_operands,
    either,
    filled,
    is_recording,
    jvp_graph,
    linearize_graph,
    shared,
    spread,
    transpose_graph,
)
from ..signatures import Result
from .bodies import Bodies, Body, check_same, tensors_of
from .loops import runs_in_python

Graphs = tuple[Graph, ...]


def _clip(index: SupportsInt, n: int) -> int:
    return min(max(int(index), 0), n - 1)


def _impl(index: Array, *args: Array, branches: Graphs) -> list[Array]:
    return run(branches[_clip(index, len(branches))], list(args))


def _abstract(index: Shaped, *args: Shaped, branches: Graphs) -> list[Aval]:
    outs = output_avals(branches[0])
    for graph in branches:
        check_operands("branch", graph, [aval_of(a) for a in args])
        if output_avals(graph) != outs:
            raise GraphError(f"branch: {branches[0].name} and {graph.name} give results of different types.")
    return outs


def _any(masks: Iterable[Mask]) -> Mask:
    return reduce(either, masks)


# --- derivatives


def _linearize(primals: list[Tensor], tangents: Tangents, branches: Graphs) -> tuple[list[Tensor], Tangents]:
    active = tuple(t is not None for t in tangents[1:])
    dots = [t for t in tangents[1:] if t is not None]
    n = len(branches[0].outputs)
    if not is_recording(tangents):
        has = _any(jvp_graph(b, active).outs for b in branches)
        both = tuple(jvp_graph(b, active, has).graph for b in branches)
        outs = bind(branch, *primals, *dots, branches=both)
        return outs[:n], spread(outs[n:], has)
    parts = _apart(branches, active)
    outs = bind(branch, *primals, branches=parts.forward)
    if not any(parts.outs):
        return outs[:n], [None] * n
    return outs[:n], spread(bind(branch, primals[0], *outs[n:], *dots, branches=parts.linear), parts.outs)


class Apart(NamedTuple):
    """Linearized branches of one type: each keeps its own residuals, and zeros at the places of the others'."""

    forward: Graphs
    linear: Graphs
    outs: Mask


def _apart(branches: Graphs, active: Mask) -> Apart:
    def make() -> Apart:
        has = _any(linearize_graph(b, active).outs for b in branches)
        parts = [linearize_graph(b, active, has) for b in branches]
        kept = [input_avals(p.linear)[: p.residuals] for p in parts]
        forward = tuple(_keeping(p.forward, len(branches[0].outputs), i, kept) for i, p in enumerate(parts))
        return Apart(forward, tuple(_taking(p, i, kept) for i, p in enumerate(parts)), has)

    return once(branches[0], ("branch apart", branches, active), make)


def _keeping(forward: Graph, n: int, own: int, kept: list[list[Aval]]) -> Graph:
    """A forward graph that returns a place for the residuals of every branch."""

    def f(*args: Tensor) -> list[Tensor]:
        outs = interpret(forward, list(args))
        residuals = [outs[n:] if i == own else [zeros_like(a) for a in avals] for i, avals in enumerate(kept)]
        return outs[:n] + [r for part in residuals for r in part]

    return pure(f, input_avals(forward), forward.name)


def _taking(part: Linearized, own: int, kept: list[list[Aval]]) -> Graph:
    """A linear graph that takes the residuals of every branch and uses its own."""
    linear, n = part.linear, part.residuals
    residuals = [linear.inputs[:n] if i == own else [Var(a) for a in avals] for i, avals in enumerate(kept)]
    inputs = [v for each in residuals for v in each] + linear.inputs[n:]
    return Graph(inputs, linear.equations, linear.outputs, linear.name)


def _transpose(cts: Tangents, args: list[Tensor], branches: Graphs) -> Tangents:
    linear = tuple(type(a) is Tangent for a in args[1:])
    others = [a for a in args[1:] if type(a) is not Tangent]

    def make() -> tuple[Graphs, Mask]:
        found = [transpose_graph(b, linear) for b in branches]
        has = _any(outs for _, outs in found)
        return tuple(_completed(graph, outs, has, input_avals(branches[0])) for graph, outs in found), has

    graphs, has = once(branches[0], ("branch transpose", branches, linear), make)
    made = bind(branch, args[0], *others, *filled(cts, output_avals(branches[0])), branches=graphs)
    return [None, *spread(made, has)]


def _completed(graph: Graph, outs: Mask, has: Mask, avals: list[Aval]) -> Graph:
    """The graph with zeros for the results that other branches give and it does not."""
    if outs == has:
        return graph

    def f(*args: Tensor) -> list[Tensor]:
        found = spread(interpret(graph, list(args)), outs)
        return [zeros_like(a) if r is None else r for r, a, on in zip(found, avals, has, strict=True) if on]

    return pure(f, input_avals(graph), graph.name)


# --- vmap


def _batch(args: list[Tensor], batched: list[bool], branches: Graphs) -> list[Tensor | Shared]:
    size = batch_size(args, batched)
    flags = tuple(batched[1:])
    if not batched[0]:
        has = _any(batch_graph(b, flags, size).outs for b in branches)
        outs = bind(branch, *args, branches=tuple(batch_graph(b, flags, size, has).graph for b in branches))
        return shared(outs, has)
    every = (True,) * len(branches[0].outputs)
    results = [interpret(batch_graph(b, flags, size, every).graph, list(args[1:])) for b in branches]
    selected = results[-1]
    for i in range(len(branches) - 2, -1, -1):
        this = args[0] <= i
        selected = [
            where(reshape(this, shape=(size,) + (1,) * (a.ndim - 1)), a, b)
            for a, b in zip(results[i], selected, strict=True)
        ]
    return list(selected)


branch: Primitive = Primitive(
    "branch",
    _impl,
    _abstract,
    transpose=_transpose,
    batch=_batch,
    multiple=True,
    linearize=_linearize,
    alternatives=True,
)


# --- the functions


def switch(index: ArrayLike, branches: Sequence[Callable[..., Result]], *operands: object) -> Result:
    """Call the branch number `index` (moved into range) with the operands.

    >>> import wonderland as wl
    >>> print(wl.switch(1, [lambda x: x, lambda x: 10 * x], wl.tensor(2.0)))
    tensor(20.)

    All branches return trees of one structure, with equal shapes and dtypes.
    """
    if not branches:
        raise InputError("switch: there is no branch.", "at least one function")
    index = arrays.asarray(index)
    if index.shape != () or not is_integer(index.dtype):
        raise DTypeError(f"switch: the index is {index.dtype}{list(index.shape)}.", "one integer")
    return _choose("switch", index, list(branches), operands)


def cond(
    pred: ArrayLike, true_fun: Callable[..., Result], false_fun: Callable[..., Result], *operands: object
) -> Result:
    """`true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`.

    >>> import wonderland as wl
    >>> f = wl.jit(lambda x: wl.cond(x > 0, wl.sqrt, lambda x: -x, x))
    >>> print(f(4.0), f(-3.0))
    tensor(2.) tensor(3.)
    """
    pred = arrays.asarray(pred)
    if pred.shape != () or not (pred.dtype == bool_ or is_integer(pred.dtype)):
        raise DTypeError(
            f"cond: the predicate is {pred.dtype}{list(pred.shape)}.", "one bool; wl.where chooses element by element"
        )
    if pred.dtype != bool_:
        pred = pred != 0
    return _choose("cond", pred, [false_fun, true_fun], operands)


def _choose(name: str, index: Tensor, functions: list[Callable[..., Result]], operands: tuple[object, ...]) -> Result:
    leaves, structure = tensors_of(name, operands)
    if runs_in_python() or type(index) in VALUES:  # the choice is known
        results, out = tensors_of(name, functions[_clip(index, len(functions))](*trees.unflatten(structure, leaves)))
        return trees.unflatten(out, results)
    avals = [aval_of(leaf) for leaf in leaves]
    bodies = [Body(name, f, list(structure.children), avals) for f in functions]
    for body in bodies[1:]:
        check_same(
            name,
            "the results of two branches",
            (bodies[0].structure, bodies[0].results),
            (body.structure, body.results),
        )
    together = Bodies(bodies)
    outs = bind(branch, index, *together.operands(), *leaves, branches=tuple(together.graphs))
    count = len(bodies[0].results)
    for cell, value in zip(together.written, outs[count:], strict=True):
        assign(cell, value)
    return trees.unflatten(bodies[0].structure, outs[:count])
