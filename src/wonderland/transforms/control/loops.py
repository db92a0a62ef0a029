"""Loops: `scan`, `map`, `while_loop`, `fori_loop`.

Eagerly (also inside `grad`, `vjp` and `jvp`) a loop is a Python loop over computed values. Traced, it is one equation
with its body as a graph (scanning.py, repeating.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import arrays
from ...core import trees
from ...core.context import current
from ...core.dtypes import bool_, is_integer, promote_types
from ...core.errors import DTypeError, InputError, ShapeError, TraceError, TreeError
from ...core.interpreter import assign, bind
from ...core.primitive import Aval, aval_of
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...ir.graph import Graph
from ..signatures import Result
from .bodies import Bodies, Body, check_same, tensors_of
from .repeating import while_primitive
from .scanning import scan_primitive

Step = Callable[[Any, Any], tuple[Any, Any]]  # from the carry and an element to the next carry and a result
Flat = tuple[list[Tensor], trees.Structure]


def runs_in_python() -> bool:
    """Whether values can be looked at, so that a Python loop or branch does the job."""
    trace = current().trace
    return trace is None or trace.concrete


def scan(
    f: Step,
    init: object,
    xs: object = None,
    length: int | None = None,
    *,
    reverse: bool = False,
) -> tuple[Any, Any]:
    r"""Run \(c_{t+1}, y_t = f(c_t, x_t)\) over the first axis of `xs`; return the last carry and the stacked results.

    >>> import wonderland as wl
    >>> total, sums = wl.scan(lambda c, x: (c + x, c + x), 0.0, wl.tensor([1.0, 2.0, 3.0]))
    >>> print(total, sums)
    tensor(6.) tensor([1., 3., 6.])

    The carry and the elements are trees of tensors; the carry keeps its structure, shapes and dtypes. Without `xs`,
    `length` says how often to run f(carry, None). With `reverse` the last element comes first, and results stay in
    their places.
    """
    carry, carry_structure = tensors_of("scan", init)
    sequences, xs_structure = tensors_of("scan", xs)
    n = scan_length(sequences, length)
    before = [aval_of(c) for c in carry]
    step = _pair(f)
    if runs_in_python():
        return _scan_python(step, (carry, carry_structure), (sequences, xs_structure), n, reverse, before)
    elements = [Aval(x.shape[1:], x.dtype) for x in sequences]
    body = Body("scan", step, [carry_structure, xs_structure], before + elements)
    after, ys_structure = body.structure.children
    count = after.leaf_count
    check_same("scan", "the carry before and after a step", (carry_structure, before), (after, body.results[:count]))
    bodies = Bodies([body])
    graph = bodies.graphs[0]
    n_state, n_y = len(bodies.written), len(body.results) - count
    # state that the body writes travels with the carry
    results, states = graph.outputs[: count + n_y], graph.outputs[count + n_y :]
    outs = bind(
        scan_primitive,
        *bodies.operands(),
        *carry,
        *sequences,
        body=Graph(graph.inputs, graph.equations, states + results, graph.name),
        consts=len(bodies.fixed),
        carry=n_state + count,
        length=n,
        reverse=reverse,
    )
    for cell, value in zip(bodies.written, outs[:n_state], strict=True):
        assign(cell, value)
    outs = outs[n_state:]
    return trees.unflatten(carry_structure, outs[:count]), trees.unflatten(ys_structure, outs[count:])


def scan_length(sequences: list[Tensor], length: int | None) -> int:
    """How many steps a scan takes."""
    lengths = {x.shape[0] if x.ndim else None for x in sequences}
    if length is not None:
        lengths.add(operator.index(length))
    if len(lengths) != 1 or None in lengths:
        found = (
            f"the sequences have lengths {', '.join(sorted(str(n) for n in lengths))}"
            if lengths
            else "nothing says how long to run"
        )
        raise ShapeError(f"scan: {found}.", "xs whose leaves share the size of their first axis, or length=...")
    (n,) = lengths
    if n < 0:  # type: ignore[operator]
        raise InputError(f"scan: length={n}.", "a number of steps, 0 or more")
    return n  # type: ignore[return-value]


def _pair(f: Step) -> Step:
    def body(carry: object, x: object) -> tuple[Any, Any]:
        out = f(carry, x)
        if not isinstance(out, tuple) or len(out) != 2:
            raise TreeError(f"scan: the function returned a {type(out).__name__}.", "a pair (carry, y); y may be None")
        return tuple(out)

    body.__name__ = getattr(f, "__name__", "body")
    return body


def _scan_python(step: Step, init: Flat, xs: Flat, n: int, reverse: bool, before: list[Aval]) -> tuple[Any, Any]:
    (carry, structure), (sequences, xs_structure) = init, xs
    ys: list[tuple[trees.Structure, list[Tensor]]] = []
    for i in range(n)[:: -1 if reverse else 1]:
        after, y = step(trees.unflatten(structure, carry), trees.unflatten(xs_structure, [x[i] for x in sequences]))
        carry, after_structure = tensors_of("scan", after)
        y_leaves, y_structure = tensors_of("scan", y)
        ys.append((y_structure, y_leaves))
        types = [aval_of(c) for c in carry]
        check_same("scan", "the carry before and after a step", (structure, before), (after_structure, types))
        if y_structure != ys[0][0]:
            raise TreeError(
                f"scan: two steps gave results {ys[0][0]} and {y_structure}.", "the same tree from every step"
            )
    if n == 0:
        elements = [Aval(x.shape[1:], x.dtype) for x in sequences]
        body = Body("scan", step, [structure, xs_structure], before + elements)
        y_structure = body.structure.children[1]
        avals = body.results[body.structure.children[0].leaf_count :]
        stacked = [arrays.zeros((0, *a.shape), dtype=a.dtype) for a in avals]
    else:
        y_structure = ys[0][0]
        columns = zip(*[leaves for _, leaves in (reversed(ys) if reverse else ys)], strict=True)
        stacked = [arrays.stack(column) for column in columns]
    return trees.unflatten(structure, carry), trees.unflatten(y_structure, stacked)


def map(f: Callable[[Any], Result], xs: object) -> Result:
    """f applied to each element along the first axis, one after another, and the results stacked.

    >>> import wonderland as wl
    >>> wl.map(lambda x: x.sum(), wl.ones((2, 3)))
    tensor([3., 3.])

    Like `vmap`, but without the memory of all elements at once.
    """
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


def while_loop(cond_fun: Callable[[Any], ArrayLike], body_fun: Callable[[Any], object], init: object) -> Any:
    """Repeat `carry = body_fun(carry)` while `cond_fun(carry)` holds.

    >>> import wonderland as wl
    >>> print(wl.while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    tensor(192)

    Differentiable in forward mode, and in reverse mode outside `jit`. Under `vmap` the loop runs until every example is
    done.
    """
    carry, structure = tensors_of("while_loop", init)
    before = [aval_of(c) for c in carry]
    what = "the value before and after a step"
    if runs_in_python():
        while _condition(cond_fun(trees.unflatten(structure, carry))):
            carry, after = tensors_of("while_loop", body_fun(trees.unflatten(structure, carry)))
            check_same("while_loop", what, (structure, before), (after, [aval_of(c) for c in carry]))
        return trees.unflatten(structure, carry)
    test = Body("while_loop", lambda value: _condition(cond_fun(value)), [structure], before)
    body = Body("while_loop", body_fun, [structure], before)
    check_same("while_loop", what, (structure, before), (body.structure, body.results))
    if test.staged.written_cells:
        raise TraceError(
            "while_loop: the condition changes state.", "a condition without random numbers or updates of buffers"
        )
    both = Bodies([test, body])
    cond, graph = both.graphs
    n, n_state = len(before), len(both.written)
    # state that the body writes travels with the carry
    outs = bind(
        while_primitive,
        *both.operands(),
        *carry,
        cond=Graph(cond.inputs, cond.equations, cond.outputs[:1], cond.name),
        body=Graph(graph.inputs, graph.equations, graph.outputs[n:] + graph.outputs[:n], graph.name),
        consts=len(both.fixed),
    )
    for cell, value in zip(both.written, outs[:n_state], strict=True):
        assign(cell, value)
    return trees.unflatten(structure, outs[n_state:])


def _condition(value: object) -> Tensor:
    """The result of a condition, which is one bool."""
    found = arrays.asarray(value) if arrays.is_operand(value) else None
    if found is None or found.shape != () or found.dtype != bool_:
        kind = type(value).__name__ if found is None else f"{found.dtype}{list(found.shape)}"
        raise DTypeError(f"while_loop: the condition gives {kind}, not one bool.", "a comparison of scalars")
    return found


def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Any], object], init: object) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`.

    >>> import wonderland as wl
    >>> print(wl.fori_loop(0, 5, lambda i, x: x + i, 0))
    tensor(10)

    With Python integers as bounds it is differentiable in both modes; with traced bounds it is a `while_loop`.
    """
    if isinstance(lower, int) and isinstance(upper, int):
        counters = arrays.arange(lower, max(lower, upper))
        return scan(lambda value, i: (body_fun(i, value), None), init, counters)[0]
    start, stop = arrays.asarray(lower), arrays.asarray(upper)
    for bound in (start, stop):
        if bound.shape != () or not is_integer(bound.dtype):
            raise DTypeError(f"fori_loop: a bound is {bound.dtype}{list(bound.shape)}.", "two integers")
    dtype = promote_types(start.dtype, stop.dtype)
    start, stop = start.astype(dtype), stop.astype(dtype)
    return while_loop(lambda c: c[0] < stop, lambda c: (c[0] + 1, body_fun(c[0], c[1])), (start, init))[1]
