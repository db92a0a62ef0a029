"""How each primitive becomes values and steps of a schedule. Elementwise ones are in operations.py.

A rule returns whether it could: what it declines is computed by NumPy.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...ir.expansion import expansion
from ...ir.graph import Equation, Graph, Var
from ...ir.simplify import simplify
from ...ir.sizes import varying
from ...primitives.composed import Composed
from . import checked, loops, values, windows
from .complexes import pairs
from .contractions import Contraction, Make
from .convolutions import steps as convolutions
from .direct.scatters import scatter, wrong_index
from .pieces import Pieces
from .products import steps as products
from .tuning import EASY
from .values import Buffer, Const, Counter, Op, Shape, Take, Value, View, leaves, parts, whole

if TYPE_CHECKING:
    from ...ir.stage import Staged
    from .schedule import Schedule


Rule = Callable[["Schedule", Equation], bool]


# --- views


def _broadcast_to(s: Schedule, e: Equation) -> bool:
    s.bind(e.outputs[0], s.broadcast(s.value(e.inputs[0]), e.outputs[0].shape))
    return True


def _transpose(s: Schedule, e: Equation) -> bool:
    axes, x = e.params["axes"], e.inputs[0]
    if (pieces := s.pieces(x)) is not None:
        s.assemble(e.outputs[0], pieces.transposed(axes))
        return True
    # a batch is in memory with its axis in front, so that no distance there depends on its size
    value = s.in_memory(s.value(x)) if varying(x.shape) else s.elsewhere(x)
    s.bind(e.outputs[0], values.transposed(value, axes))
    return True


def _slice(s: Schedule, e: Equation) -> bool:
    (x,), (out,) = e.inputs, e.outputs
    value = s.elsewhere(x)
    if out.aval.size < x.aval.size:
        value = s.answered_for(value)
    s.bind(out, values.sliced(value, e.params["index"], out.shape))
    return True


def _reshape(s: Schedule, e: Equation) -> bool:
    value, shape = s.elsewhere(e.inputs[0]), e.outputs[0].shape
    found = values.reshaped(value, shape)
    if found is None:
        found = values.reshaped(s.contiguous(value), shape)
    assert found is not None
    s.bind(e.outputs[0], found)
    return True


# --- values without arguments


def _full(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    s.bind(out, Const(e.params["value"], out.dtype, out.shape))
    return True


def _iota(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    s.bind(out, Counter(out.shape, (1,), 0, out.dtype))
    return True


def _constant(s: Schedule, e: Equation) -> bool:
    data = np.ascontiguousarray(e.params["value"].tensor._data)
    s.bind(e.outputs[0], whole(Buffer("constant", data.size, data.dtype, data=data), data.shape))
    return True


# --- reductions


def _reduction(s: Schedule, e: Equation) -> bool:
    name, (out,) = e.primitive.name, e.outputs
    value, axes = s.value(e.inputs[0]), e.params["axes"]
    if not math.prod(value.shape):
        s.bind(out, Const(name in ("prod", "all"), out.dtype, out.shape))  # largest and smallest do not come here
        return True
    if name in ("any", "all") and value.dtype != dtypes.bool_:
        value = Op("not_equal", [value, Const(0, value.dtype, value.shape)], value.shape, dtypes.bool_)
    if value.dtype == dtypes.bool_:
        name = {"sum": "any", "prod": "all", "max": "any", "min": "all"}.get(name, name)  # as NumPy treats bools
    if name in ("any", "all", "max", "min"):
        value = values.without_repeats(value, axes)
    if math.prod(value.shape) == math.prod(out.shape):
        found = values.reshaped(value, out.shape)
        if found is not None:
            s.bind(out, found)
            return True
    target = s.target(out)
    s.reduce(name, value, axes, target)
    s.bind(out, target)
    return True


# --- assembling: parts of a tensor are written to their places when it is needed


def _concatenate(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if not out.aval.size:
        return False
    axis, start, pieces = e.params["axis"], 0, []
    found = [s.value(atom) for atom in e.inputs]
    if (view := _in_a_line(found, axis, out.shape)) is not None:
        s.bind(out, view)
        return True
    for value in found:
        stop = start + value.shape[axis]
        pieces.append((tuple((start, stop, 1) if i == axis else (0, n, 1) for i, n in enumerate(out.shape)), value))
        start = stop
    s.assemble(out, Pieces(out.shape, pieces))
    return True


def _in_a_line(parts: Sequence[Value], axis: int, shape: Shape) -> View | None:
    """Views of one buffer of which each begins where the one before it ends, as one: overlapping frames of a signal."""
    first = parts[0]
    place: int | None = None
    for part in parts:
        if not isinstance(part, View) or not isinstance(first, View) or part.buffer is not first.buffer:
            return None
        if part.strides != first.strides or place not in (None, part.offset):
            return None
        place = part.offset + part.shape[axis] * part.strides[axis]
    assert isinstance(first, View)
    return View(first.buffer, shape, first.strides, first.offset)


def _place(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if not out.aval.size:
        return False
    s.assemble(out, Pieces(out.shape, [(e.params["index"], s.value(e.inputs[0]))]))
    return True


def _add(s: Schedule, e: Equation) -> bool:
    """The sum of tensors whose parts do not overlap has the parts of both."""
    x, y = e.inputs
    mine, others = s.pieces(x), s.pieces(y)
    if mine is None or others is None:
        return False
    both = mine.and_those_of(others) if x.shape == y.shape else None
    if both is not None:
        s.assemble(e.outputs[0], both)
    return both is not None


# --- calls


def _call(s: Schedule, e: Equation) -> bool:
    inner: Graph = e.params["graph"]
    for var, atom in zip(inner.inputs, e.inputs, strict=True):
        s.bind(var, s.value(atom))
    s.run(inner)
    for out, atom in zip(e.outputs, inner.outputs, strict=True):
        s.bind(out, s.value(atom))
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
        s.bind(var, whole(Buffer("constant", data.size, data.dtype, data=data), data.shape))
    for var, atom in zip(inner.inputs[fixed:], e.inputs, strict=True):
        s.bind(var, s.value(atom))
    s.run(inner)
    for out, atom in zip(e.outputs, inner.outputs, strict=True):
        s.bind(out, s.value(atom))


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
    s.bind(out, Op("copy", [take], out.shape, out.dtype))
    return True


# --- products


def _matmul(s: Schedule, e: Equation) -> bool:
    (out,) = e.outputs
    if out.dtype == dtypes.bool_:
        return False
    if not e.inputs[0].shape[-1]:
        s.bind(out, Const(0, out.dtype, out.shape))
        return True
    x, y = (s.in_memory(s.value(a)) for a in e.inputs)
    lead = out.shape[:-2]
    left, right = values.broadcast(x, lead + x.shape[-2:]), values.broadcast(y, lead + y.shape[-2:])
    assert isinstance(left, View)
    assert isinstance(right, View)
    if not dtypes.is_floating(out.dtype):
        return _integer_product(s, out, left, right)
    cpu, fixed = s.cpu, s.fixed
    contract(s, out, [left, right], lambda hole, stores: products.product_steps(cpu, left, right, hole, stores, fixed))
    return True


def _integer_product(s: Schedule, out: Var, x: View, y: View) -> bool:
    """A sum of products over the axis between rows and columns."""
    rank, shape = len(out.shape), (*x.shape, y.shape[-1])
    left = View(x.buffer, shape, (*x.strides, 0), x.offset)
    right = View(y.buffer, shape, (*y.strides[:-2], 0, *y.strides[-2:]), y.offset)
    target = s.new(out.shape, out.dtype)
    s.reduce("sum", Op("multiply", [left, right], shape, out.dtype), (rank - 1,), target)
    s.bind(out, target)
    return True


def contract(s: Schedule, out: Var, operands: list[View], make: Make) -> None:
    target = s.target(out)
    s.wait(Contraction(target, operands, make))
    s.bind(out, target)


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
    params = dict(e.params)
    if e.primitive.name == "convolution":
        params["fixed"] = [y.buffer] if right in s.steady or y.buffer in s.fixed else []
    contract(s, out, [*leaves(x), y], lambda hole, stores: steps(s.cpu, x, y, hole, stores, **params))
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


class Lowering(NamedTuple):
    """What the engine knows of a primitive that is not elementwise."""

    rule: Rule
    alone: bool = False  # it is a step, or steps, of its own, at which work before and work after it part
    reduction: bool = False
    always: bool = False  # it looks at its arguments also where nothing is read or written


RULES: dict[str, Lowering] = {
    "broadcast_to": Lowering(_broadcast_to),
    "transpose": Lowering(_transpose),
    "slice": Lowering(_slice),
    "reshape": Lowering(_reshape),
    "full": Lowering(_full),
    "iota": Lowering(_iota),
    "constant": Lowering(_constant),
    **dict.fromkeys(["sum", "prod", "max", "min", "any", "all"], Lowering(_reduction, reduction=True)),
    "concatenate": Lowering(_concatenate),
    "place": Lowering(_place),
    "add": Lowering(_add),
    "interleave": Lowering(pairs.interleave),
    "call": Lowering(_call, alone=True),
    "checkpoint": Lowering(_call, alone=True),
    "custom_jvp": Lowering(_custom),
    "custom_vjp": Lowering(_custom),
    "gather": Lowering(_gather, always=True),
    "scatter": Lowering(scatter, always=True),
    **dict.fromkeys(
        ["segment_sum", "segment_max", "segment_min"], Lowering(_later("direct.segments", "segments"), always=True)
    ),
    **{
        name: Lowering(_later("direct.segments", name), always=True)
        for name in ("take_lines", "sparse_matmul", "sampled_matmul")
    },
    **dict.fromkeys(
        ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"], Lowering(_later("direct.cumulative", "running"))
    ),
    **dict.fromkeys(["argmax", "argmin"], Lowering(_later("direct.cumulative", "where_extreme"))),
    "random_bits": Lowering(_later("direct.random_words", "random_bits")),
    **{name: Lowering(rule) for name, rule in checked.RULES.items()},
    "argsort": Lowering(_later("direct.sorting", "argsort")),
    "searchsorted": Lowering(_later("direct.sorting", "searchsorted")),
    "matmul": Lowering(_matmul, alone=True),
    "quantized_matmul": Lowering(_later("products.quantized", "quantized_matmul"), alone=True),
    "rounded_matmul": Lowering(_later("products.integers", "rounded_matmul"), alone=True),
    "dequantize": Lowering(_later("products.quantized", "dequantize"), alone=True),
    **dict.fromkeys(["convolution", "convolution_input", "convolution_weight"], Lowering(_convolution, alone=True)),
    "attention": Lowering(_later("attention.forward", "attention"), alone=True),
    "attention_backward": Lowering(_later("attention.forward", "attention_backward"), alone=True),
    **{name: Lowering(rule) for name, rule in windows.RULES.items()},
    **dict.fromkeys(["complex_fft", "complex_rfft", "complex_irfft"], Lowering(_later("fourier.steps", "fourier"))),
    "scan": Lowering(loops.scan, alone=True),
    "linear_scan": Lowering(loops.scan, alone=True),
    "while": Lowering(loops.repeat, alone=True),
    "branch": Lowering(loops.branch, alone=True),
}
