"""How each primitive becomes values and steps of a schedule. Elementwise ones are in operations.py.

A rule returns whether it could: what it declines is computed by NumPy.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..graph.expansion import expansion
from ..graph.ir import Equation, Graph, Var
from ..graph.simplify import simplify
from ..primitives.composed import Composed
from . import checked, loops, values, windows
from .complexes import pairs
from .contractions import Contraction
from .convolutions import steps as convolutions
from .direct.scatters import scatter, wrong_index
from .pieces import Pieces
from .products import steps as products
from .values import Buffer, Const, Counter, Hole, Op, Take, Value, View, leaves, parts, whole

if TYPE_CHECKING:
    from ..graph.stage import Staged
    from .schedule import Schedule

EASY = 16  # the weight of an expression that a convolution computes while it reads

Rule = Callable[["Schedule", Equation], bool]


# --- views


def _broadcast_to(s: Schedule, e: Equation) -> bool:
    s.values[e.outputs[0]] = s.broadcast(s.value(e.inputs[0]), e.outputs[0].shape)
    return True


def _transpose(s: Schedule, e: Equation) -> bool:
    axes, x = e.params["axes"], e.inputs[0]
    if isinstance(x, Var) and x in s.pieces:
        s.pieces[e.outputs[0]] = s.pieces[x].transposed(axes)
        return True
    s.values[e.outputs[0]] = values.transposed(s.elsewhere(x), axes)
    return True


def _slice(s: Schedule, e: Equation) -> bool:
    (x,), (out,) = e.inputs, e.outputs
    value = s.elsewhere(x)
    if out.aval.size < x.aval.size:
        value = s.answered_for(value)
    s.values[out] = values.sliced(value, e.params["index"], out.shape)
    return True


def _reshape(s: Schedule, e: Equation) -> bool:
    value, shape = s.elsewhere(e.inputs[0]), e.outputs[0].shape
    found = values.reshaped(value, shape)
    if found is None:
        found = values.reshaped(s.contiguous(value), shape)
    assert found is not None
    s.values[e.outputs[0]] = found
    return True


# --- values without arguments


def _full(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    s.values[out] = Const(e.params["value"], out.dtype, out.shape)
    return True


def _iota(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    s.values[out] = Counter(out.shape, (1,), 0, out.dtype)
    return True


def _constant(s: Schedule, e: Equation) -> bool:
    data = np.ascontiguousarray(e.params["value"].tensor._data)
    s.values[e.outputs[0]] = whole(Buffer("constant", data.size, data.dtype, data=data), data.shape)
    return True


# --- reductions


def _without_repeats(value: Value, axes: tuple[int, ...]) -> Value:
    """The value with size 1 along those axes where it is the same everywhere.

    Besides being less work, this keeps loops away from LLVM in which one number meets an accumulator again and again by
    `and` or `or`: its value numbering does not come to an end there, and then it ends the process.
    """
    if any(isinstance(part, Hole) for part in parts(value)):
        return value
    steps = values.accesses(value)
    same = [a for a in axes if value.shape[a] > 1 and not any(len(s) > a and s[a] for s in steps)]
    if not same:
        return value
    index = [(0, 1 if a in same else n, 1) for a, n in enumerate(value.shape)]
    return values.sliced(value, index, tuple(stop for _, stop, _ in index))


def _reduction(s: Schedule, e: Equation) -> bool:
    name, (out,) = e.primitive.name, e.outputs
    value, axes = s.value(e.inputs[0]), e.params["axes"]
    if not math.prod(value.shape):
        s.values[out] = Const(name in ("prod", "all"), out.dtype, out.shape)  # largest and smallest do not come here
        return True
    if name in ("any", "all") and value.dtype != dtypes.bool_:
        value = Op("not_equal", [value, Const(0, value.dtype, value.shape)], value.shape, dtypes.bool_)
    if value.dtype == dtypes.bool_:
        name = {"sum": "any", "prod": "all", "max": "any", "min": "all"}.get(name, name)  # as NumPy treats bools
    if name in ("any", "all", "max", "min"):
        value = _without_repeats(value, axes)
    if math.prod(value.shape) == math.prod(out.shape):
        found = values.reshaped(value, out.shape)
        if found is not None:
            s.values[out] = found
            return True
    target = s.target(out)
    s.reduce(name, value, axes, target)
    s.values[out] = target
    return True


# --- assembling: parts of a tensor are written to their places when it is needed


def _concatenate(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if not out.aval.size:
        return False
    axis, start, pieces = e.params["axis"], 0, []
    for atom in e.inputs:
        stop = start + atom.shape[axis]
        pieces.append(
            (tuple((start, stop, 1) if i == axis else (0, n, 1) for i, n in enumerate(out.shape)), s.value(atom))
        )
        start = stop
    s.pieces[out] = Pieces(out.shape, pieces)
    return True


def _place(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if not out.aval.size:
        return False
    s.pieces[out] = Pieces(out.shape, [(e.params["index"], s.value(e.inputs[0]))])
    return True


def _add(s: Schedule, e: Equation) -> bool:
    """The sum of tensors whose parts do not overlap has the parts of both."""
    x, y = e.inputs
    if not isinstance(x, Var) or not isinstance(y, Var) or x not in s.pieces or y not in s.pieces:
        return False
    both = s.pieces[x].and_those_of(s.pieces[y]) if x.shape == y.shape else None
    if both is not None:
        s.pieces[e.outputs[0]] = both
    return both is not None


# --- calls


def _call(s: Schedule, e: Equation) -> bool:
    inner: Graph = e.params["graph"]
    for var, atom in zip(inner.inputs, e.inputs, strict=True):
        s.values[var] = s.value(atom)
    s.run(inner)
    for out, atom in zip(e.outputs, inner.outputs, strict=True):
        s.values[out] = s.value(atom)
    return True


def _custom(s: Schedule, e: Equation) -> bool:
    """A function with a derivative of its own is the function."""
    staged = e.params["custom"].trace(tuple(a.aval for a in e.inputs))
    if staged.read_cells:
        return False  # their values are known when the program runs
    _inline(s, e, staged)
    return True


def composed(s: Schedule, e: Equation) -> bool:
    """A primitive that is a formula over others is the formula."""
    if not isinstance(e.primitive, Composed):
        return False
    _inline(s, e, expansion(e.primitive, tuple(a.aval for a in e.inputs), e.params))
    return True


def _inline(s: Schedule, e: Equation, staged: Staged) -> None:
    inner = simplify(staged.graph)
    fixed = len(staged.captured)
    for var, tensor in zip(inner.inputs[:fixed], staged.captured, strict=True):
        data = np.ascontiguousarray(tensor._data)
        s.values[var] = whole(Buffer("constant", data.size, data.dtype, data=data), data.shape)
    for var, atom in zip(inner.inputs[fixed:], e.inputs, strict=True):
        s.values[var] = s.value(atom)
    s.run(inner)
    for out, atom in zip(e.outputs, inner.outputs, strict=True):
        s.values[out] = s.value(atom)


# --- indexing


def _gather(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    x, axes = e.inputs[0], e.params["axes"]
    if not out.aval.size or not all(x.shape[a] for a in axes):
        return False
    view = s.in_memory(s.value(x))
    block = e.inputs[1].shape
    left = [a for a in range(len(x.shape)) if a not in axes]
    rest = (0,) * len(block) + tuple(view.strides[a] for a in left)
    indices = []
    for atom in e.inputs[1:]:
        index = s.value(atom)
        grown = values.reshaped(index, block + (1,) * len(left))
        if grown is None:
            grown = values.reshaped(s.contiguous(index), block + (1,) * len(left))
        assert grown is not None
        indices.append(s.broadcast(grown, out.shape))
    label = s.check(e, functools.partial(wrong_index, e))
    sizes, steps = tuple(x.shape[a] for a in axes), tuple(view.strides[a] for a in axes)
    take = Take(view, indices, steps, sizes, rest, out.shape, label)
    s.values[out] = Op("stop_gradient", [take], out.shape, out.dtype)
    return True


# --- products


def _matmul(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if out.dtype == dtypes.bool_:
        return False
    if not e.inputs[0].shape[-1]:
        s.values[out] = Const(0, out.dtype, out.shape)
        return True
    x, y = (s.in_memory(s.value(a)) for a in e.inputs)
    lead = out.shape[:-2]
    left, right = values.broadcast(x, lead + x.shape[-2:]), values.broadcast(y, lead + y.shape[-2:])
    assert isinstance(left, View)
    assert isinstance(right, View)
    if not dtypes.is_floating(out.dtype):
        return _integer_product(s, out, left, right)
    fixed = s.fixed
    contract(s, out, [left, right], lambda hole, stores: products.product_steps(left, right, hole, stores, fixed))
    return True


def _integer_product(s: Schedule, out: Var, x: View, y: View) -> bool:
    """A sum of products over the axis between rows and columns."""
    rank, shape = len(out.shape), (*x.shape, y.shape[-1])
    left = View(x.buffer, shape, (*x.strides, 0), x.offset)
    right = View(y.buffer, shape, (*y.strides[:-2], 0, *y.strides[-2:]), y.offset)
    target = s.new(out.shape, out.dtype)
    s.reduce("sum", Op("multiply", [left, right], shape, out.dtype), (rank - 1,), target)
    s.values[out] = target
    return True


def contract(s: Schedule, out: Var, operands: list[View], make: Any) -> None:
    target = s.target(out)
    s.wait(Contraction(target, operands, make))
    s.values[out] = target


def _convolution(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    steps: Any = {
        "convolution": convolutions.convolution_steps,
        "convolution_input": convolutions.convolution_input_steps,
        "convolution_weight": convolutions.convolution_weight_steps,
    }[e.primitive.name]
    left, right = e.inputs
    if not out.aval.size or not convolutions.supported(out.dtype, left.shape, right.shape, out.shape):
        return False
    x = _cheap(s, s.value(left)) if e.primitive.name != "convolution_input" else s.in_memory(s.value(left))
    y = s.in_memory(s.value(right))
    contract(s, out, [*leaves(x), y], lambda hole, stores: steps(x, y, hole, stores, **e.params))
    return True


def _cheap(s: Schedule, value: Value) -> Value:
    """An operand that its reader computes as it goes, if that takes less than a pass over memory."""
    if not isinstance(value, Op) or value.stored is not None or value.weight > EASY:
        return s.in_memory(value)
    large = [v for v in leaves(value) if 4 * v.buffer.size > math.prod(value.shape)]
    if len(large) > 1 or len(parts(value)) > 2 * EASY:
        return s.in_memory(value)
    s.available(*leaves(value))
    return s.settled(value)


def _later(module: str, name: str) -> Rule:
    """A rule from a module that few programs need; it is loaded when one does."""

    def rule(s: Schedule, e: Equation) -> bool:
        return getattr(importlib.import_module(f".{module}", __package__), name)(s, e)

    return rule


RULES: dict[str, Rule] = {
    "broadcast_to": _broadcast_to,
    "transpose": _transpose,
    "slice": _slice,
    "reshape": _reshape,
    "full": _full,
    "iota": _iota,
    "constant": _constant,
    **dict.fromkeys(["sum", "prod", "max", "min", "any", "all"], _reduction),
    "concatenate": _concatenate,
    "place": _place,
    "add": _add,
    "interleave": pairs.interleave,
    "call": _call,
    "checkpoint": _call,
    "custom_jvp": _custom,
    "custom_vjp": _custom,
    "gather": _gather,
    "scatter": scatter,
    **dict.fromkeys(["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"], _later("direct.cumulative", "running")),
    **dict.fromkeys(["argmax", "argmin"], _later("direct.cumulative", "where_extreme")),
    "random_bits": _later("direct.random_words", "random_bits"),
    **checked.RULES,
    "argsort": _later("direct.sorting", "argsort"),
    "searchsorted": _later("direct.sorting", "searchsorted"),
    "matmul": _matmul,
    **dict.fromkeys(["convolution", "convolution_input", "convolution_weight"], _convolution),
    "attention": _later("attention.forward", "attention"),
    "attention_backward": _later("attention.forward", "attention_backward"),
    **windows.RULES,
    "scan": loops.scan,
    "linear_scan": loops.scan,
    "while": loops.repeat,
    "branch": loops.branch,
}
