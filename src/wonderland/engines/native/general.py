"""One program for all sizes of a batch: bounds of loops and numbers of chunks are known when it runs.

A batch is the first axis of what is in memory, so no stride and no offset depends on its size. Routines find the size
in memory (`SIZE`) wherever a loop runs along an axis of type `Extent`; the program sets it before it runs, with the
numbers of chunks, and has an arena for the largest batch that it has met. What is not written for such axes is refused
here, in equations first and then in steps, and the graph is compiled for its own sizes as if nobody had asked.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Collection, Iterator

import numpy as np

from ...core import dtypes
from ...core.context import uncollected
from ...core.errors import WonderlandError
from ...core.forking import open_after_fork
from ...core.handover import Delivery
from ...core.typing import Array
from ...ir.at_size import AtSize
from ...ir.graph import Equation, Graph
from ...ir.sizes import Extent, Template, VaryingError, shape_at, varying
from ..numpy.engine import ENGINE as NUMPY
from . import checked, windows
from .direct.scatters import Scatter
from .direct.step import Direct
from .keeping import kept
from .kernels.kernel import Kernel
from .memory import plan
from .products.epilogue import WithEpilogue
from .program import Program
from .schedule import Schedule
from .steps import Control, Label, Native, Step
from .text import operations
from .tuning import KEPT_RESULT, STEADY
from .values import SIZE, Counter, Shape, Take, Value, parts

GROWTH = 1.5  # of the room for batches when one is larger than those before
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")
VIEWS = ("broadcast_to", "transpose", "reshape", "slice", "place", "concatenate")
OTHERS = ("full", "iota", "gather", "scatter", "argmax", "argmin", "random_bits")
CONTRACTIONS = (
    "matmul",
    "convolution",
    "convolution_input",
    "convolution_weight",
    "attention",
    "attention_backward",
)
KNOWN = {*REDUCTIONS, *VIEWS, *OTHERS, *CONTRACTIONS, *checked.RULES, *windows.RULES}


class General(Program):
    """A program of a template. Call `run` with a size; at first there is room for a batch of n."""

    def __init__(self, template: Template, n: int) -> None:
        self._check_equations(template.graph)
        hint = _hint(template.graph)
        self._n = self._capacity = n
        self._choices = f"\nfor {hint} rows, at most {template.range.most}"
        self._turns = open_after_fork(threading.Lock())  # one size at a time
        self._size = np.zeros(1, np.int64)
        self.in_a_row = 0  # calls of the size that it is set to
        super().__init__(template.graph, template.graph.states)
        self._open = [(at, step.chunks) for at, step in self.routines if isinstance(step.chunks, Extent)]
        self.shares = self.shares or bool(self._open)

    def _compile(self) -> None:
        _check_steps(self.schedule, _hint(self.graph))
        super()._compile()

    def _described(self, step: Native) -> str:
        """What the code depends on: choices are made for the hint, and sums are cut for the largest size."""
        varies = any(varying(view.shape) for view in step.views)
        return f"{super()._described(step)}{self._choices if varies else ''}"

    def _lay_out(self) -> None:
        super()._lay_out()
        self.table[self.places[SIZE]] = self._size.ctypes.data

    def run(
        self,
        size: AtSize,
        arrays: list[Array],
        owned: Collection[int] = frozenset(),
        deliver: Delivery | None = None,
        profile: bool = False,
    ) -> list[Array]:
        """The results for a batch of some size."""
        with self._turns:
            if size.n != self._n or not self._size[0]:
                self.set_size(size.n)
            self.in_a_row += 1
            return self([*arrays, *size.numbers], owned, deliver, profile)

    def set_size(self, n: int) -> None:
        """Let the next batch have n rows."""
        if n > self._capacity:
            self._capacity = max(n, int(GROWTH * self._capacity))
            self.arena_bytes = plan(self.schedule, self._capacity)
            self._lay_out()
        self._n = self._size[0] = n
        self.in_a_row = 0
        for place, chunks in self._open:
            self.code[place, 3] = chunks.at(n)
        self._kept.clear()
        self.results = [self._result(i, shape_at(a, n), a.dtype) for i, a in enumerate(self.graph.outputs)]

    def bound(self, staying: int) -> None:
        """Its table and its results are for one size at a time."""

    def _result(self, position: int, shape: Shape, dtype: dtypes.DType) -> tuple[Shape, dtypes.DType, bool]:
        """Shape and type of a result, and whether its memory is kept, see `Program`."""
        large = math.prod(shape) * dtype.itemsize >= KEPT_RESULT
        return shape, dtype, large and position not in self.states

    # --- what is refused

    @staticmethod
    def _check_equations(graph: Graph) -> None:
        transposed = set()
        for e in graph.equations:
            if e.primitive.name == "transpose":
                transposed.update(e.outputs)
            try:
                _check_equation(e)
            except VaryingError as reason:
                where = f" ({os.path.basename(e.source.file)}:{e.source.line})" if e.source else ""
                raise VaryingError(f"{e.primitive.name}{where}: {reason}") from None
        for atom in graph.outputs:
            if atom in transposed and varying(atom.shape):
                raise VaryingError("the batch is not the first axis of a result")


def _check_equation(e: Equation) -> None:
    name, (first, *_) = e.primitive.name, [*e.outputs]
    touched = [a for a in [*e.inputs, *e.outputs] if varying(a.shape)]
    if not touched:
        return
    elementwise = operations.supported(name, [a.dtype for a in e.inputs], first.dtype)
    if name not in KNOWN and not elementwise:
        raise VaryingError("there is no code for a batch whose size varies")
    if name in ("slice", "place"):
        for axis in varying(e.inputs[0].shape):
            start, _, step = e.params["index"][axis]
            if start or step not in (None, 1):
                raise VaryingError("it takes some rows of the batch")
    if name in ("argmax", "argmin") and e.params["axis"] in varying(e.inputs[0].shape):
        raise VaryingError("it looks for a row of the batch")
    if name == "concatenate" and e.params["axis"] in varying(first.shape):
        raise VaryingError("it puts batches behind each other")
    for atom in touched:
        if dtypes.is_complex(atom.dtype):
            raise VaryingError("complex numbers are computed for fixed sizes")
        if len(varying(atom.shape)) > 1:
            raise VaryingError("two axes of one tensor have the size of the batch")


def _hint(graph: Graph) -> int:
    """The size that choices are made for."""
    sizes = [n for e in [*graph.inputs, *(v for q in graph.equations for v in q.outputs)] for n in e.shape]
    return next(n.hint for n in sizes if isinstance(n, Extent))


def _check_steps(schedule: Schedule, hint: int) -> None:
    for step in schedule.steps:
        if isinstance(step, (Control, Label)):
            continue
        general = getattr(step, "any_size", False)
        views = getattr(step, "views", None) or [*step.inputs, *step.outputs]  # type: ignore[union-attr]
        if not general and any(varying(v.shape) or isinstance(v.buffer.size, Extent) for v in views):
            raise VaryingError(f"{type(step).__name__.lower()} is computed for fixed sizes")
        for view in views:
            _check_numbers(hint, (*view.strides, view.offset), (*view.shape, view.buffer.size))
        for part in parts(*_expressions(step)):
            if isinstance(part, Counter):
                _check_numbers(hint, (*part.scales, part.start), part.shape)
            elif isinstance(part, Take):
                _check_numbers(hint, (*part.steps, *part.rest), part.sizes)
        if isinstance(step, Scatter) and varying(step.space[step.block :]):
            raise VaryingError("scatter along a batch is computed for fixed sizes")


def _expressions(step: Step) -> Iterator[Value]:
    if isinstance(step, Kernel):
        yield from (item.value for item in step.items)
    elif isinstance(step, WithEpilogue):
        yield from (value for _, value in step.epilogue.stores)
    elif isinstance(step, Direct):
        yield from step.values


def _check_numbers(hint: int, steps: Collection[int], sizes: Collection[int]) -> None:
    """Nothing that is fixed may come from a size that varies: the hint divides no other size."""
    if any(isinstance(n, Extent) or (n and n % hint == 0) for n in steps):
        raise VaryingError("where values are in memory depends on the size of the batch")
    if any(not isinstance(n, Extent) and n and n % hint == 0 for n in sizes):
        raise VaryingError("a size depends on that of the batch in a way that is not understood")


class Sized:
    """The program of a graph that is a template at some size."""

    def __init__(self, size: AtSize, graph: Graph) -> None:
        self._size, self._graph = size, graph

    @property
    def program(self) -> General:
        """The one for all sizes, made again if it was given up meanwhile."""
        found = program_for(self._size.template, self._size.n)
        assert found is not None
        return found

    def prepared(self) -> tuple[General, list[Array]]:
        """The program for all sizes, set to this one, and what it takes besides the arguments; to look at."""
        program = self.program
        program.set_size(self._size.n)
        return program, self._size.numbers

    def __call__(
        self, arrays: list[Array], owned: Collection[int] = frozenset(), deliver: Delivery | None = None
    ) -> list[Array]:
        program = self.program
        try:
            made = program.run(self._size, arrays, owned, deliver)
        except WonderlandError:
            NUMPY.program(self._graph)(arrays, frozenset(), None)  # the same error, with the sizes of this batch
            raise
        if program.in_a_row >= STEADY and not self._size.template.named:
            self._graph.at_size = None  # the next call compiles one of its own
            self._graph.programs.pop("native", None)
        return made


def program_for(template: Template, n: int) -> General | None:
    """The program for all sizes, made for one at first; None if there is none, and then the template knows why."""
    found = template.graph.programs.get("native")
    if found is None and not template.refused:
        try:
            found = uncollected(General, template, n)
            kept.add(found, template.graph)
        except VaryingError as reason:
            template.refused = str(reason)
    return found
