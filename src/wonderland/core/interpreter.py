"""How an operation is carried out: `bind` hands it to the current interpreter, or to NumPy at once.

An interpreter (a *trace*) has `staged` (does it build a graph?), `parent` (the interpreter outside it) and
`process(primitive, args, params)`. It treats values that are not its own tracers as constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy import asarray, ndarray

from . import tape
from .broadcasting import check_no_outer
from .cell import Cell
from .context import current, next_order, place
from .dtypes import DType, is_inexact
from .errors import ShapeError, TraceError
from .evaluation import SMALL, compute, evaluate, recover
from .settings import lenient
from .tensor import Shape, Tensor, Tracer, alias, new, unrecorded, wrap
from .typing import Shaped, Tangents

if TYPE_CHECKING:
    from .primitive import Primitive

__all__ = ["Tangent", "assign", "bind", "read"]


def bind(primitive: Primitive, *args: Tensor, **params: object) -> Any:
    """Apply a primitive to tensors under the current interpreter."""
    data = []
    for arg in args:
        if type(arg) is not Tensor or arg._node is not None:
            break
        data.append(arg._data)
    else:
        if current().plain:
            try:
                if primitive.single and (data[0].size > SMALL or data[-1].size > SMALL):
                    out = compute(primitive, data, params)
                else:
                    out = primitive.impl(*data, **params)
            except Exception as error:
                out = recover(primitive, args, params, error)
            if primitive.multiple:
                return [wrap(o) for o in out]
            result = new(Tensor)  # as `wrap` does, without a call
            result._data = out if type(out) is ndarray else asarray(out)
            result._node = None
            return result
    return _bind(primitive, args, params)


def _bind(primitive: Primitive, args: tuple[Tensor, ...], params: dict[str, object]) -> Any:
    """The general case: cells, tangents, tracers, recorded tensors, checks."""
    state = current()
    if state.settings.strict_broadcast and primitive.elementwise:
        return _bind_strictly(primitive, args, params)
    values = []
    for arg in args:
        if type(arg) is not Tensor:
            if isinstance(arg, Cell):
                arg = read(arg)
            if type(arg) is Tangent:
                return record(primitive, [read(a) if isinstance(a, Cell) else a for a in args], params)
        values.append(arg)
    if state.trace is not None:
        return state.trace.process(primitive, values, params)
    recorded = False
    for value in values:
        if isinstance(value, Tracer):
            raise leaked(primitive, value)
        recorded = recorded or value._node is not None
    if recorded and state.settings.grad_enabled:
        return tape.record(primitive, values, params)
    return evaluate(primitive, values, params)


def _bind_strictly(primitive: Primitive, args: tuple[Tensor, ...], params: dict[str, object]) -> Any:
    """Check the operation as the user wrote it, not what its rules make of it: under vmap they add a batch axis."""
    check_no_outer(primitive.name, [arg.shape for arg in args])
    with lenient():
        return _bind(primitive, args, params)


def leaked(primitive: Primitive, tracer: Tracer) -> TraceError:
    """The error for a traced value that outlived its transformation."""
    kind = getattr(tracer.trace, "purpose", None) or type(tracer.trace).__name__.removesuffix("Trace")
    return TraceError(
        f"{primitive.name}: a value of shape {tracer.shape} is used outside the {kind} transformation that traced it.",
        "return the value from the transformed function instead of storing it; "
        "state belongs in a module's buffers, which transformations write back",
    )


# --- cells: parameters, buffers, random streams


def read(cell: Cell) -> Tensor:
    """The value that a cell has under the current interpreter."""
    value = cell.value
    state = current()
    trace = state.trace
    if trace is None:
        if cell._leaf is not None and state.settings.grad_enabled and not isinstance(value, Tracer) and cell._node:
            leaf = alias(value)
            leaf._node = cell._leaf
            return leaf
        return alias(value)
    return trace.read(cell, value) if trace.staged else value


def assign(cell: Cell, value: Tensor) -> None:
    """Put a new value into a cell and tell the interpreter, which cleans up or writes back when it ends."""
    if type(value) is not Tensor and isinstance(value, Cell):
        value = read(value)
    if value._node is not None:
        value = unrecorded(value)
    held = cell._held
    if value.shape != held.shape or value.dtype != held.dtype:
        raise ShapeError(
            f"assign: a {type(cell).__name__} of {cell.dtype}{list(cell.shape)} cannot take a value of "
            f"{value.dtype}{list(value.shape)}.",
            f"reshape or astype the value, or replace the whole attribute by a new {type(cell).__name__}",
        )
    trace = current().trace
    if trace is not None:
        trace.note_write(cell)
    cell.value = value


# --- tangents that record themselves: the tape of reverse mode


class Tangent(Tracer):
    """A tangent whose number is not known yet: linear operations on it are recorded, to be transposed later.

    A tangent is the output number `index` of `node`, and `node` is the linear operation that made it (None: an input).
    """

    __slots__ = ("dtype", "index", "node", "order", "shape")

    def __init__(
        self, shape: Shape, dtype: DType, node: Node | None = None, index: int = 0, order: int | None = None
    ) -> None:
        # properties of Tensor, here slots
        self.shape = shape  # type: ignore[misc]
        self.dtype = dtype  # type: ignore[misc]
        self.node = node
        self.index = index
        self.order = next_order() if order is None else order

    def __repr__(self) -> str:
        return f"Tangent({self.dtype}{list(self.shape)})"


class Node:
    """A recorded linear operation."""

    __slots__ = ("args", "outs", "params", "place", "primitive")

    def __init__(self, primitive: Primitive, args: Sequence[Tensor | None], params: dict[str, object]) -> None:
        self.primitive = primitive
        self.args: Any = args
        self.params = params
        self.outs: list[tuple[Shape, DType]] | None = None
        # where errors and NaNs of the backward pass should point to; not noted in the fast, plain case
        self.place = None if current().plain else place()


class Later(Node):
    """The derivative of an operation of one result that is not worked out before it is transposed.

    `args` are the tangents, None where an argument has none.
    """

    __slots__ = ("out", "primals")

    def __init__(
        self, primitive: Primitive, args: Tangents, params: dict[str, object], primals: list[Tensor], out: Tensor
    ) -> None:
        super().__init__(primitive, args, params)
        self.primals = primals
        self.out = out


def apply_linear(
    primitive: Primitive, args: list[Tensor], params: dict[str, object], tangent: Tensor, like: Shaped
) -> Tensor:
    """Apply a primitive of one result that is linear in `tangent` and whose result is known to be typed as `like`."""
    if type(tangent) is Tangent:
        return Tangent(like.shape, like.dtype, Node(primitive, args, params))
    return bind(primitive, *args, **params)


def record(primitive: Primitive, args: list[Tensor], params: dict[str, object]) -> Tensor | list[Tensor | None]:
    """Note a linear operation on tangents."""
    node = Node(primitive, args, params)
    aval = primitive.abstract(*args, **params)
    if primitive.multiple:
        node.outs = [(a.shape, a.dtype) for a in aval]
        order = next_order()
        return [Tangent(a.shape, a.dtype, node, i, order) if is_inexact(a.dtype) else None for i, a in enumerate(aval)]
    return Tangent(aval.shape, aval.dtype, node)
