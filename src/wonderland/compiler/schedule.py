"""From a graph to steps: loop kernels with everything elementwise fused in, matrix products, and calls into NumPy."""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Collection
from typing import Any

import numpy as np

from .. import dtypes
from ..graph.ir import Atom, Equation, Graph, Literal, Var
from ..primitives.primitive import TABLE, Aval
from . import operations, values
from .kernels import Kernel
from .values import Buffer, Const, Counter, Op, Shape, Value, View, leaves, whole

REDUCTIONS = {"sum", "prod", "max", "min", "any", "all"}
VIEWS = {"reshape", "transpose", "broadcast_to", "slice"}
CHEAP = {"add", "subtract", "multiply", "negative", "astype", "where", "equal", "less", "greater", "stop_gradient"}
COPY = TABLE["stop_gradient"]  # its NumPy rule returns its argument
LARGEST = 48  # operations in one expression; beyond, registers run out


class MatMul:
    """out = x @ y on views with leading batch axes."""

    def __init__(self, x: View, y: View, out: View) -> None:
        self.x, self.y, self.out = x, y, out
        self.views = [x, y, out]
        self.reads, self.writes = [x.buffer, y.buffer], [out.buffer]


class Fallback:
    """An equation that NumPy computes."""

    def __init__(self, equation: Equation, inputs: list[View], outputs: list[View]) -> None:
        self.equation, self.inputs, self.outputs = equation, inputs, outputs
        self.reads = [v.buffer for v in inputs]
        self.writes = [v.buffer for v in outputs]


Step = Kernel | MatMul | Fallback


class Schedule:
    """The steps of a graph in order, and its buffers."""

    def __init__(self, graph: Graph, products: Collection[Any]) -> None:
        self.products = products  # the dtypes for which there is a matrix product to call
        self.steps: list[Step] = []
        self.values: dict[Var, Value] = {}
        self.open: dict[Shape, Kernel] = {}  # kernels that may still take stores
        self.writer: dict[Buffer, Kernel] = {}  # the open kernel that will fill a buffer
        self.inputs: list[Buffer] = []
        for i, var in enumerate(graph.inputs):
            buffer = Buffer("input", math.prod(var.shape), var.dtype, i)
            self.inputs.append(buffer)
            self.values[var] = whole(buffer, var.shape)
        self._run(graph)
        self.outputs = [self._output(i, self._value(a)) for i, a in enumerate(graph.outputs)]
        self._close_all()
        self._drop_unread_stores()

    def _run(self, graph: Graph) -> None:
        uses = Tally(a for e in graph.equations for a in e.inputs if isinstance(a, Var))
        uses.update(a for a in graph.outputs if isinstance(a, Var))
        for equation in graph.equations:
            self._equation(equation, uses)

    # --- equations

    def _value(self, atom: Atom) -> Value:
        if isinstance(atom, Literal):
            if dtypes.is_complex(atom.dtype):
                return whole(Buffer("constant", 1, atom.dtype, data=atom.data.reshape(1)), ())
            return Const(atom.data.item(), atom.dtype, ())
        return self._settled(self.values[atom])

    def _settled(self, value: Value, done: dict[int, Value] | None = None) -> Value:
        """The value, with everything that a finished kernel has stored read from memory."""
        if not isinstance(value, Op):
            return value
        if value.stored is not None and value.stored.buffer not in self.writer:
            return value.stored
        done = {} if done is None else done
        if id(value) not in done:  # shared parts stay shared
            args = [self._settled(a, done) for a in value.args]
            new = value
            if any(a is not b for a, b in zip(args, value.args, strict=True)):
                new = Op(value.name, args, value.shape, value.dtype)
                new.stored = value.stored
            done[id(value)] = new
        return done[id(value)]

    def _equation(self, equation: Equation, uses: Tally[Var]) -> None:
        name, params = equation.primitive.name, equation.params
        outs = equation.outputs
        if name in ("call", "checkpoint"):
            self._inline(equation, uses)
            return
        if name in VIEWS:
            self.values[outs[0]] = self._view(name, self._value(equation.inputs[0]), params, outs[0].shape)
            return
        if name == "full" and not dtypes.is_complex(outs[0].dtype):
            self.values[outs[0]] = Const(params["value"], outs[0].dtype, outs[0].shape)
            return
        if name == "iota" and not dtypes.is_complex(outs[0].dtype):
            self.values[outs[0]] = Counter(outs[0].shape, (1,), 0, outs[0].dtype)
            return
        if name == "constant":
            data = np.ascontiguousarray(params["value"].tensor._data)
            self.values[outs[0]] = whole(Buffer("constant", data.size, data.dtype, data=data), data.shape)
            return
        dts = [a.dtype for a in equation.inputs]
        if operations.supported(name, dts, outs[0].dtype) and outs[0].aval.size:
            self._elementwise(equation, uses)
        elif name in REDUCTIONS and _reducible(name, equation):
            self._reduce(name, equation)
        elif name == "matmul" and dts[0] in self.products and outs[0].aval.size and equation.inputs[0].shape[-1]:
            self._matmul(equation)
        elif name in ("concatenate", "place") and not dtypes.is_complex(dts[0]) and outs[0].aval.size:
            self._assemble(name, equation)
        else:
            self._fallback(equation)

    def _inline(self, equation: Equation, uses: Tally[Var]) -> None:
        inner: Graph = equation.params["graph"]
        for var, atom in zip(inner.inputs, equation.inputs, strict=True):
            self.values[var] = self._value(atom)
        self._run(inner)
        for var, atom in zip(equation.outputs, inner.outputs, strict=True):
            self.values[var] = self._value(atom)
            if uses[var] > 1:
                self._keep(self.values[var])

    def _view(self, name: str, value: Value, params: dict[str, Any], shape: Shape) -> Value:
        if name == "broadcast_to":
            return values.broadcast(self._small(value, shape), shape)
        if name == "transpose":
            return values.transposed(value, params["axes"])
        if name == "slice":
            return values.sliced(value, params["index"], shape)
        found = values.reshaped(value, shape)
        if found is None:
            found = values.reshaped(self._contiguous(value), shape)
        assert found is not None
        return found

    def _small(self, value: Value, shape: Shape) -> Value:
        """Before it is repeated, an expression is computed once."""
        if isinstance(value, Op) and math.prod(value.shape) < math.prod(shape):
            return self._in_memory(value)
        return value

    def _elementwise(self, equation: Equation, uses: Tally[Var]) -> None:
        out = equation.outputs[0]
        args = [values.broadcast(self._small(self._value(a), out.shape), out.shape) for a in equation.inputs]
        op = Op(equation.primitive.name, args, out.shape, out.dtype)
        self.values[out] = op
        if op.weight > LARGEST or (uses[out] > 1 and not (op.weight == 1 and op.name in CHEAP)):
            self._keep(op)

    def _keep(self, value: Value) -> None:
        """Store an expression with the other stores over its shape."""
        if not isinstance(value, Op) or value.stored is not None:
            return
        target = self._new(value.shape, value.dtype)
        self._add_store(target, value)
        value.stored = target

    def _add_store(self, target: View, value: Value) -> None:
        value = self._settled(value)
        for leaf in leaves(value):
            kernel = self.writer.get(leaf.buffer)
            if kernel is not None:
                self._close(kernel)
        value = self._settled(value)
        kernel = self.open.get(value.shape)
        if kernel is None:
            kernel = self.open[value.shape] = Kernel(value.shape, [])
        kernel.stores.append((target, value))
        self.writer[target.buffer] = kernel
        if len(kernel.stores) >= 16:
            self._close(kernel)

    def _close(self, kernel: Kernel) -> None:
        """A kernel takes its place among the steps; what it reads must be there before it."""
        if self.open.get(kernel.shape) is not kernel:
            return
        del self.open[kernel.shape]
        for buffer in kernel.writes:
            self.writer.pop(buffer, None)
        self.steps.append(kernel)

    def _close_all(self) -> None:
        for kernel in list(self.open.values()):
            self._close(kernel)

    def _available(self, *views: View) -> None:
        for view in views:
            if view.buffer in self.writer:
                self._close(self.writer[view.buffer])

    # --- values in memory

    def _in_memory(self, value: Value) -> View:
        """The value as a view whose memory is filled when the next step runs."""
        value = self._settled(value)
        if isinstance(value, View):
            self._available(value)
            return value
        if not isinstance(value, Op):
            value = Op("stop_gradient", [value], value.shape, value.dtype)
        self._keep(value)
        assert value.stored is not None
        self._available(value.stored)
        return value.stored

    def _contiguous(self, value: Value) -> View:
        view = self._in_memory(value)
        if view.strides == values.contiguous_strides(view.shape) and 0 not in view.shape:
            return view
        target = self._new(view.shape, view.dtype)
        self._copy(view, target)
        return target

    def _new(self, shape: Shape, dtype: Any) -> View:
        return whole(Buffer("arena", math.prod(shape), dtype), shape)

    def _reduce(self, name: str, equation: Equation) -> None:
        (out,) = equation.outputs
        value = self._value(equation.inputs[0])
        for leaf in leaves(value):
            self._available(leaf)
        value = self._settled(value)
        if name in ("any", "all") and value.dtype != dtypes.bool_:
            value = Op("not_equal", [value, Const(0, value.dtype, value.shape)], value.shape, dtypes.bool_)
        if value.dtype == dtypes.bool_:
            name = {"sum": "any", "prod": "all"}.get(name, name)  # as NumPy adds and multiplies bools
        target = self._new(out.shape, out.dtype)
        self.steps.append(Kernel(value.shape, [(target, value)], name, equation.params["axes"]))
        self.values[out] = target

    def _matmul(self, equation: Equation) -> None:
        (out,) = equation.outputs
        x, y = (self._matrix(self._value(a)) for a in equation.inputs)
        target = self._new(out.shape, out.dtype)
        lead = out.shape[:-2]
        x2 = values.broadcast(x, lead + x.shape[-2:])
        y2 = values.broadcast(y, lead + y.shape[-2:])
        assert isinstance(x2, View)
        assert isinstance(y2, View)
        self.steps.append(MatMul(x2, y2, target))
        self.values[out] = target

    def _matrix(self, value: Value) -> View:
        """The value in memory such that one of the last two axes is contiguous."""
        view = self._in_memory(value)
        (n, m), (a, b) = view.shape[-2:], view.strides[-2:]
        row = (b == 1 or m == 1) and (a >= m or n == 1)
        column = (a == 1 or n == 1) and (b >= n or m == 1)
        return view if row or column else self._contiguous(view)

    def _assemble(self, name: str, equation: Equation) -> None:
        """Concatenate and place: write the parts into their places of a new buffer."""
        (out,) = equation.outputs
        target = self._new(out.shape, out.dtype)
        parts = [self._value(a) for a in equation.inputs]
        for part in parts:
            for leaf in leaves(part):
                self._available(leaf)
        if name == "place":
            self.steps.append(Kernel(out.shape, [(target, Const(0, out.dtype, out.shape))]))
            place = values.sliced(target, equation.params["index"], parts[0].shape)
            assert isinstance(place, View)
            if math.prod(place.shape):
                self.steps.append(Kernel(place.shape, [(place, self._settled(parts[0]))]))
        else:
            axis, start = equation.params["axis"], 0
            for part in parts:
                index = [(0, n, 1) for n in out.shape]
                index[axis] = (start, start + part.shape[axis], 1)
                start += part.shape[axis]
                place = values.sliced(target, tuple(index), part.shape)
                assert isinstance(place, View)
                if math.prod(part.shape):
                    self.steps.append(Kernel(part.shape, [(place, self._settled(part))]))
        self.values[out] = target

    def _fallback(self, equation: Equation) -> None:
        inputs = [self._in_memory(self._value(a)) for a in equation.inputs]
        outputs = [self._new(v.shape, v.dtype) for v in equation.outputs]
        self.steps.append(Fallback(equation, inputs, outputs))
        for var, view in zip(equation.outputs, outputs, strict=True):
            self.values[var] = view

    # --- results

    def _output(self, position: int, value: Value) -> Buffer:
        value = self._settled(value)
        if isinstance(value, Op) and value.stored is None:
            self._keep(value)
        view: Value = value.stored or value if isinstance(value, Op) else value
        if isinstance(view, View) and view.buffer.kind == "arena" and view.is_contiguous():
            view.buffer.kind, view.buffer.position = "output", position
            return view.buffer
        buffer = Buffer("output", math.prod(value.shape), value.dtype, position)
        self._copy(view, whole(buffer, value.shape))
        return buffer

    def _copy(self, source: Value, target: View) -> None:
        self._available(*leaves(source))
        if not target.buffer.size:
            return
        if isinstance(source, View) and dtypes.is_complex(source.dtype):
            aval = Aval(source.shape, source.dtype)
            self.steps.append(Fallback(Equation(COPY, [Var(aval)], {}, [Var(aval)]), [source], [target]))
        else:
            self.steps.append(Kernel(target.shape, [(target, self._settled(source))]))

    def _drop_unread_stores(self) -> None:
        """A store whose uses were all in its own kernel needs no memory."""
        read = {b for step in self.steps for b in step.reads}
        for step in self.steps:
            if isinstance(step, Kernel) and step.reduce is None:
                step.stores = [
                    (view, value) for view, value in step.stores if view.buffer.kind == "output" or view.buffer in read
                ]
        self.steps = [s for s in self.steps if not isinstance(s, Kernel) or s.stores]


def _reducible(name: str, equation: Equation) -> bool:
    dtype = equation.inputs[0].dtype
    half = dtype in (dtypes.float16, dtypes.bfloat16)
    return bool(equation.inputs[0].aval.size) and not dtypes.is_complex(dtype) and not half
