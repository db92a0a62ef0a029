"""From a graph to steps: kernels with everything elementwise fused in, contractions, control flow, calls into NumPy.

Values stay expressions until somebody needs them in memory. Then they are stored by a kernel that is still open: one
that runs over the same space, or the product or reduction whose result they are made of. A kernel is closed, and takes
its place among the steps, when its results are read in another way.
"""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import WonderlandError
from ..graph.ir import Atom, Equation, Graph, Literal, Var
from . import lowering, values
from .complexes.rules import without_complex
from .contractions import Contraction
from .finishing import finished, hoist
from .kernels.kernel import Accumulate, Item, Kernel, Reduce, Store
from .order import ordered
from .pieces import Pieces
from .steps import Fallback, Step
from .text import operations
from .values import (
    LARGEST,
    Buffer,
    Const,
    Op,
    Shape,
    Value,
    View,
    leaves,
    may_refuse,
    parts,
    replaced,
    strides_of,
    whole,
)

INDEXING = frozenset(["gather", "scatter"])  # they check their indices also where nothing is read or written
WAITING = 3  # contractions at a time
PATIENCE = 8  # how many other steps a kernel waits for more items: what it reads stays in memory
STORING, READING = 40, 13  # what it costs to write a value and read it again, and to read one, in additions

Check = tuple[
    Equation, Callable[[int, int], WonderlandError]
]  # an equation, and its error from the word that was noted


class Schedule:
    """The steps of a graph in order, and its buffers."""

    def __init__(self, graph: Graph) -> None:
        self.steps: list[Step] = []
        self.values: dict[Var, Value] = {}
        self.open: dict[Shape, Kernel] = {}  # kernels over a space that may still take items
        self.writer: dict[Buffer, Kernel | Contraction] = {}  # what will fill a buffer and is not closed yet
        self.status = Buffer("status", 0, np.dtype(np.int64))
        self.begun = Buffer("word", 1, np.dtype(np.int64))  # whether state is being overwritten
        self.checks: list[Check] = []  # what may be found wrong while the program runs; two words of status each
        self.uses: Tally[Var] = Tally()
        self.fixed: Container[Buffer] = ()  # what is the same in every turn of the loop that is being scheduled
        self.loops: list[Any] = []
        self.closings = 0  # how many kernels have been closed
        self.wanted: dict[Var, View] = {}  # where results should be put
        self.largest: dict[tuple[Any, Var], Value] = {}  # the elements that positions in windows were found for
        self.pieces: dict[Var, Pieces] = {}  # tensors put together from parts, which nobody has needed whole yet
        self.origins: dict[int, list[Equation]] = {}  # the equations that a step was made for, by its id
        self.equation: Equation | None = None  # the one that is being scheduled
        self.inputs: list[Buffer] = []
        graph = without_complex(graph)
        for i, var in enumerate(graph.inputs):
            buffer = Buffer("input", math.prod(var.shape), var.dtype, i)
            self.inputs.append(buffer)
            self.values[var] = whole(buffer, var.shape)
        self.run(graph)
        made = {var: equation for equation in graph.equations for var in equation.outputs}
        self.outputs: list[Buffer] = []
        for i, atom in enumerate(graph.outputs):
            self.equation = made.get(atom) if isinstance(atom, Var) else None
            self.outputs.append(self._output(i, self.value(atom)))
        self.close_all()
        self.steps = finished(self.steps, self.origins)
        hoist(self.steps, self.loops)
        self.status.size = 2 * len(self.checks)

    def run(self, graph: Graph) -> None:
        """Schedule the equations of a graph, whose inputs have values."""
        uses = Tally(a for e in graph.equations for a in e.inputs if isinstance(a, Var))
        uses.update(a for a in graph.outputs if isinstance(a, Var))
        self.uses.update(uses)
        for equation in ordered(graph.equations):
            self._equation(equation, uses)
            for old in [k for k in self.open.values() if self.closings - k.touched > PATIENCE]:
                self.close(old)

    def check(self, equation: Equation, error: Callable[[int, int], WonderlandError]) -> View:
        """Where routines note what they find wrong: a mark, not 0, and a word; `error(word, mark)` is made of them."""
        self.checks.append((equation, error))
        return View(self.status, (2,), (1,), 2 * len(self.checks) - 2)

    # --- values

    def value(self, atom: Atom) -> Value:
        if isinstance(atom, Literal):
            return Const(atom.data.item(), atom.dtype, ())
        if atom not in self.values:
            self.values[atom] = self._assembled(atom)
        return self.settled(self.values[atom])

    def elsewhere(self, atom: Atom) -> Value:
        """The value as it is seen in another shape: what is going to be in memory is read and not computed again.

        What a contraction that is still open can compute is stored by it, rather than its plain result.
        """
        value = self.value(atom)
        if isinstance(value, Op) and value.stored is None:
            waiting = [w for v in leaves(value) if isinstance(w := self.writer.get(v.buffer), Contraction)]
            several = isinstance(atom, Var) and self.uses[atom] > 1 and value.weight > 1
            if several or (waiting and waiting[-1].accepts(value)):
                return self.keep(value)
        return replaced(value, lambda part: part.stored if isinstance(part, Op) else None)

    def answered_for(self, value: Value) -> Value:
        """The value, of which a part is going to be taken. What may refuse a place is computed whole before."""
        return self.in_memory(value) if any(map(may_refuse, parts(value))) else value

    def often(self, atom: Atom) -> Value:
        """The value as it is seen by many places of another shape: computed once, unless that takes longer."""
        self._reused(self.value(atom))
        return self.elsewhere(atom)

    def settled(self, value: Value) -> Value:
        """The value, with everything that a closed kernel has stored read from memory."""

        def stored(part: Value) -> Value | None:
            if isinstance(part, Op) and part.stored is not None and part.stored.buffer not in self.writer:
                return part.stored
            return None

        if isinstance(value, Op):
            if value.visited == self.closings:  # nothing was stored since
                return value
            value = replaced(value, stored)
            if isinstance(value, Op):
                value.visited = self.closings
            return value
        return replaced(value, stored) if isinstance(value, values.Take) else value

    def _assembled(self, var: Var) -> View:
        """A tensor of parts, in memory: zeros where there is no part."""
        pieces = self.pieces.pop(var)
        target = self.target(var)
        if sum(math.prod(part.shape) for _, part in pieces) < var.aval.size:
            self.copy(Const(0, var.dtype, var.shape), target)
        for index, part in pieces:
            if math.prod(part.shape):
                place = values.sliced(target, index, part.shape)
                assert isinstance(place, View)
                self.store(place, part)
        self.close_writers(target.buffer)
        return target

    def target(self, var: Var) -> View:
        """The memory for a result."""
        return self.wanted.get(var) or self.new(var.shape, var.dtype)

    def put(self, target: View, value: Value) -> None:
        """See to it that a value is in a given place."""
        value = self.settled(value)
        if isinstance(value, Op) and value.stored is None and value.wanted is target:
            self.keep(value)
        place = value.stored if isinstance(value, Op) else value
        there = isinstance(place, View) and place.buffer is target.buffer and place.strides == target.strides
        if not there and 0 not in target.shape:
            self.store(target, value)

    def new(self, shape: Shape, dtype: Any) -> View:
        return whole(Buffer("arena", math.prod(shape), dtype), shape)

    # --- equations

    def _equation(self, equation: Equation, uses: Tally[Var]) -> None:
        self.equation = equation
        for var in equation.outputs:  # a graph that is called again computes its variables anew
            self.values.pop(var, None)
            self.pieces.pop(var, None)
        before = len(self.steps)
        self._lowered(equation, uses)
        for step in self.steps[before:]:
            self.origins.setdefault(id(step), [equation])

    def _lowered(self, equation: Equation, uses: Tally[Var]) -> None:
        if not any(v.aval.size for v in equation.outputs) and equation.primitive.name not in INDEXING:
            self.values.update((v, self.new(v.shape, v.dtype)) for v in equation.outputs)  # there is nothing to compute
            return
        rule = lowering.RULES.get(equation.primitive.name)
        if rule is not None and rule(self, equation):
            for var in equation.outputs:
                value = self.values.get(var)
                if isinstance(value, Op) and value.weight > LARGEST:
                    self.keep(value)
                elif value is not None and uses[var] > 1:
                    self._reused(value)
        elif not lowering.composed(self, equation) and not self._elementwise(equation, uses):
            self.fallback(equation)

    def _elementwise(self, equation: Equation, uses: Tally[Var]) -> bool:
        out = equation.outputs[0]
        dts = [a.dtype for a in equation.inputs]
        if not operations.supported(equation.primitive.name, dts, out.dtype) or not out.aval.size:
            return False
        args = [self.broadcast(self.value(a), out.shape) for a in equation.inputs]
        op = Op(equation.primitive.name, args, out.shape, out.dtype)
        op.wanted = self.wanted.get(out)
        self.values[out] = op
        if op.weight > LARGEST:
            self.keep(op)
        elif uses[out] > 1:
            self._reused(op)
        return True

    def _reused(self, value: Value) -> None:
        """An expression with several uses is stored, unless computing it again is cheaper than memory.

        Of what is made from a contraction that is still open, the first such value is stored: it stands for the plain
        result from then on.
        """
        if isinstance(value, Op) and value.stored is None:
            work, sources, waits = 0, 0, False
            for part in parts(value, within=_to_compute):
                if isinstance(part, Op) and part.stored is None:
                    work += values.COSTS.get(part.name, 1)
                    continue
                sources += isinstance(part, values.Take) or (isinstance(part, (View, Op)) and _is_large(part))
                waits |= isinstance(part, View) and isinstance(self.writer.get(part.buffer), Contraction)
            if waits or work + READING * sources > STORING:
                self.keep(value)

    def broadcast(self, value: Value, shape: Shape) -> Value:
        """Before it is repeated, an expression is computed once."""
        grows = math.prod(value.shape) < math.prod(shape)
        if grows and isinstance(value, (Op, values.Take)) and not self._in_row(value, shape):
            value = self.in_memory(value)
        return values.broadcast(value, shape)

    def _in_row(self, value: Value, shape: Shape) -> bool:
        """Whether an expression of rows' reductions can stay in the kernel of these rows."""
        for leaf in leaves(value):
            kernel = self.writer.get(leaf.buffer)
            if isinstance(kernel, Kernel) and leaf.buffer in kernel.own and kernel.space == shape:
                wide = values.broadcast(value, shape)
                return all(kernel.in_line(v) for v in leaves(wide) if v.buffer in kernel.own)
        return False

    # --- stores

    def keep(self, value: Value) -> View:
        """Let an expression be stored; its memory is filled when the kernel that does it is closed."""
        if isinstance(value, View):
            return value
        if not isinstance(value, Op):
            value = Op("stop_gradient", [value], value.shape, value.dtype)
        if value.stored is None:
            target = value.wanted or self.new(value.shape, value.dtype)
            self.store(target, value)
            value.stored = target
        return value.stored

    def store(self, target: View, value: Value) -> None:
        """Store an expression in a kernel that is open, or in a new one."""
        value = self.settled(value)
        owner = self._home(value)
        if isinstance(owner, Contraction):
            owner.add(target, value)
            self._note(owner)
            self.writer[target.buffer] = owner
            if owner.full:
                self.close(owner)
            return
        if owner is not None and owner.split is not None and value.shape != owner.space:
            if values.dense(target.shape, target.strides):
                flat = values.reshaped(value, owner.outer)
                assert flat is not None
                self._add(owner, Store(View(target.buffer, owner.outer, strides_of(owner.outer), target.offset), flat))
                return
            self.close(owner)  # numbers of rows are written one after the other, not to places that are apart
            owner = None
        self._add(owner or self._kernel(value.shape), Store(target, value))

    def _home(self, value: Value) -> Kernel | Contraction | None:
        """The open step that a value is made of and that can go on to compute it; others that it needs are closed."""
        owners = dict.fromkeys(self.writer[v.buffer] for v in leaves(value) if v.buffer in self.writer)
        home: Kernel | Contraction | None = None
        for owner in owners:
            if home is None and self._accepts(owner, value):
                home = owner
            else:
                self.close(owner)
        return home

    def _accepts(self, owner: Kernel | Contraction, value: Value) -> bool:
        if isinstance(owner, Contraction):
            return owner.accepts(value)
        read = [v for v in leaves(value) if self.writer.get(v.buffer) is owner]
        if any(v.buffer not in owner.own for v in read):
            return False
        if value.shape == owner.space:
            return all(owner.in_line(v) for v in read)
        if owner.split is None or math.prod(value.shape) != math.prod(owner.outer):
            return False
        flat = values.reshaped(value, owner.outer)
        return flat is not None and all(owner.in_line(v) for v in leaves(flat) if v.buffer in owner.own)

    def _kernel(self, space: Shape) -> Kernel:
        if space not in self.open:
            self.open[space] = Kernel(space)
        return self.open[space]

    def _add(self, kernel: Kernel, item: Item) -> None:
        kernel.add(item)
        kernel.touched = self.closings
        self._note(kernel)
        self.writer[item.target.buffer] = kernel
        if kernel.full:
            self.close(kernel)

    def _note(self, step: Kernel | Contraction) -> None:
        noted = self.origins.setdefault(id(step), [])
        if self.equation is not None:
            noted.append(self.equation)

    def close(self, step: Kernel | Contraction) -> None:
        """A kernel takes its place among the steps; what it reads is there before it."""
        self.closings += 1
        if isinstance(step, Kernel):
            if self.open.get(step.space) is not step:
                return
            del self.open[step.space]
        for buffer in [b for b, w in self.writer.items() if w is step]:
            del self.writer[buffer]
        self.steps.append(step)  # type: ignore[arg-type]  # it becomes native steps when all is known

    def wait(self, contraction: Contraction) -> None:
        """Let a contraction wait for work on its result; but not for long, since its operands stay in memory."""
        waiting = [w for w in dict.fromkeys(self.writer.values()) if isinstance(w, Contraction)]
        if len(waiting) >= WAITING:
            self.close(waiting[0])
        self.writer[contraction.target.buffer] = contraction
        self._note(contraction)

    def close_all(self) -> None:
        for step in [*dict.fromkeys(self.writer.values()), *self.open.values()]:
            self.close(step)

    def available(self, *views: View) -> None:
        for view in views:
            if view.buffer in self.writer:
                self.close(self.writer[view.buffer])

    def ready(self, value: Value) -> Value:
        """The value, such that everything it reads is in memory when the next step runs."""
        self.available(*leaves(self.settled(value)))
        return self.settled(value)

    def close_writers(self, buffer: Buffer) -> None:
        """Close every kernel that writes a part of a buffer."""
        for kernel in [*self.open.values(), *dict.fromkeys(self.writer.values())]:
            if buffer in kernel.writes:
                self.close(kernel)

    def in_memory(self, value: Value) -> View:
        """The value as a view whose memory is filled when the next step runs."""
        view = self.keep(self.settled(value))
        self.available(view)
        return view

    def contiguous(self, value: Value) -> View:
        view = self.in_memory(value)
        if view.strides == strides_of(view.shape) and 0 not in view.shape:
            return view
        target = self.new(view.shape, view.dtype)
        self.copy(view, target)
        return target

    def copy(self, source: Value, target: View) -> None:
        if target.buffer.size:
            self.store(target, source)
            self.available(target)

    # --- reductions

    def reduce(self, name: str, value: Value, axes: tuple[int, ...], target: View) -> None:
        """target = the reduction of value over axes."""
        shape = value.shape
        gone = [i for i, n in enumerate(shape) if i in axes and n > 1]
        kept = [i for i, n in enumerate(shape) if i not in axes and n > 1]
        split = gone[0] if gone else len(shape)
        if not any(i > split for i in kept):
            self._reduce_rows(name, value, split, target)
        elif gone[-1] < kept[-1]:
            self._accumulate(name, value, axes, target)
        else:  # the row first, then the axes before it
            row = tuple(i for i in axes if i > kept[-1])
            partial = self.new(tuple(n for i, n in enumerate(shape) if i not in row), _wide(target.dtype))
            self.reduce(name, value, row, partial)
            self.reduce(name, partial, tuple(i for i in axes if i not in row), target)

    def _reduce_rows(self, name: str, value: Value, split: int, target: View) -> None:
        total = math.prod(value.shape)
        if split == 0 and total > 1 << 15:
            # one long row: pieces first, so that they can be shared out
            pieces = next((p for p in (64, 48, 32, 24, 16, 12, 8, 6, 4, 2) if total % p == 0), 0)
            cut = values.reshaped(value, (pieces, total // pieces)) if pieces else None
            if cut is None and len(value.shape) > 1:
                cut = value
            if cut is not None:
                partial = self.new(cut.shape[:1], _wide(target.dtype))
                self._reduce_rows(name, cut, 1, partial)
                value, split = partial, 0
        value = self.settled(value)
        home = self._home_of_rows(value, split)
        self._add(home, Reduce(target, value, name))

    def _home_of_rows(self, value: Value, split: int) -> Kernel:
        home = self._home(value)
        if isinstance(home, Contraction):
            self.close(home)
            home = None
        if home is not None and home.space == value.shape and home.split in (None, split):
            home.split = split
            return home
        if home is not None:
            self.close(home)
        kernel = self._kernel(value.shape)
        if kernel.split not in (None, split):
            self.close(kernel)
            kernel = self._kernel(value.shape)
        kernel.split = split
        return kernel

    def _accumulate(self, name: str, value: Value, axes: tuple[int, ...], target: View) -> None:
        value = self.settled(value)
        strides = iter(target.strides)
        spread = tuple(0 if i in axes else next(strides) for i in range(len(value.shape)))
        home = self._home(value)
        if isinstance(home, Contraction):
            self.close(home)
            home = None
        if home is not None and home.space != value.shape:
            self.close(home)
            home = None
        kernel = home or self._kernel(value.shape)
        place = View(target.buffer, value.shape, spread, target.offset)
        self._add(kernel, Accumulate(place, self.settled(value), name))

    # --- NumPy

    def fallback(self, equation: Equation) -> None:
        inputs = [self.in_memory(self.value(a)) for a in equation.inputs]
        outputs = [self.target(v) for v in equation.outputs]
        self.steps.append(Fallback(equation, inputs, outputs))
        for var, view in zip(equation.outputs, outputs, strict=True):
            self.values[var] = view

    # --- results

    def _output(self, position: int, value: Value) -> Buffer:
        value = self.settled(value)
        view = self.keep(value) if isinstance(value, Op) else value
        if isinstance(view, View) and view.buffer.kind == "arena" and view.is_contiguous():
            view.buffer.kind, view.buffer.position = "output", position
            return view.buffer
        buffer = Buffer("output", math.prod(value.shape), value.dtype, position)
        self.copy(view, whole(buffer, value.shape))
        return buffer


def _to_compute(value: Value) -> Sequence[Value]:
    """The arguments of an operation that is not going to be in memory."""
    return value.args if isinstance(value, Op) and value.stored is None else ()


def _is_large(value: View | Op) -> bool:
    """Whether reading a value takes a read for most places: it is not one number for many."""
    if isinstance(value, Op):
        return True
    distinct = math.prod(n for n, step in zip(value.shape, value.strides, strict=True) if step)
    return 4 * distinct > math.prod(value.shape)


def _wide(dtype: Any) -> Any:
    return dtypes.float32 if dtypes.is_half(dtype) else dtype
