"""Fusion: expressions are stored by steps that are still open, so that what belongs together becomes one loop.

A value stays an expression until somebody needs it in memory. Then it is stored by a kernel that is still open: one
that runs over the same space, or the contraction or reduction whose result it is made of. A step is closed, and takes
its place among the others, when its results are read in another way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core import dtypes
from ...core.dtypes import DType
from ...ir.sizes import varying
from . import values
from .contractions import Contraction
from .emission import Emission
from .kernels.kernel import Accumulate, Item, Kernel, Reduce, Store
from .processor import Processor
from .tuning import LONG_ROW, OPEN_CONTRACTIONS, PATIENCE
from .values import Buffer, Op, Shape, Value, View, inside, leaves, parts, rebuilt, strides_of, whole


class Fusion(Emission):
    """The second part of a schedule: which steps are open, and what they are going to write."""

    def __init__(self, cpu: Processor) -> None:
        super().__init__()
        self.cpu = cpu
        self._open: dict[Shape, Kernel] = {}  # kernels over a space that may still take items
        self._writer: dict[Buffer, Kernel | Contraction] = {}  # what will fill a buffer and is not closed yet
        self._closings = 0  # how many steps have been closed

    # --- values in memory

    def settled(self, value: Value) -> Value:
        """The value, with everything that a closed kernel has stored read from memory."""

        if not isinstance(value, (Op, values.Take)):
            return value
        now = self._closings

        def changing(part: Value) -> Sequence[Value]:
            """What is inside a part, unless it is read from memory or nothing was stored since it was looked at."""
            return () if isinstance(part, Op) and (part.visited == now or self._filled(part)) else inside(part)

        done: dict[int, Value] = {}
        for part in parts(value, within=changing):
            made = part
            if isinstance(part, Op) and part.stored is not None and self._filled(part):
                made = part.stored
            elif args := changing(part):
                made = rebuilt(part, [done[id(a)] for a in args])
            if isinstance(made, Op):
                made.visited = now
            done[id(part)] = made
        return done[id(value)]

    def _filled(self, op: Op) -> bool:
        """Whether a kernel that is closed has stored it."""
        return op.stored is not None and op.stored.buffer not in self._writer

    def put(self, target: View, value: Value) -> None:
        """See to it that a value is in a given place."""
        value = self.settled(value)
        if isinstance(value, Op) and value.stored is None and value.wanted is target:
            self.keep(value)
        place = value.stored if isinstance(value, Op) else value
        there = isinstance(place, View) and place.buffer is target.buffer and place.strides == target.strides
        if not there and 0 not in target.shape:
            self.store(target, value)

    def new(self, shape: Shape, dtype: DType) -> View:
        return whole(Buffer("arena", math.prod(shape), dtype), shape)

    def keep(self, value: Value) -> View:
        """Let an expression be stored; its memory is filled when the kernel that does it is closed."""
        if isinstance(value, View):
            return value
        if not isinstance(value, Op):
            value = Op("copy", [value], value.shape, value.dtype)
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
            self.note(owner)
            self._writer[target.buffer] = owner
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

    def waiting_for(self, value: Value) -> list[Contraction]:
        """The open contractions whose results a value is made of."""
        return [w for v in leaves(value) if isinstance(w := self._writer.get(v.buffer), Contraction)]

    def own_row(self, value: Value, shape: Shape) -> bool:
        """Whether an expression of rows' reductions can stay in the kernel of these rows."""
        for leaf in leaves(value):
            kernel = self._writer.get(leaf.buffer)
            if isinstance(kernel, Kernel) and leaf.buffer in kernel.own and kernel.space == shape:
                wide = values.broadcast(value, shape)
                return all(kernel.in_line(v) for v in leaves(wide) if v.buffer in kernel.own)
        return False

    # --- open steps

    def _home(self, value: Value) -> Kernel | Contraction | None:
        """The open step that a value is made of and that can go on to compute it; others that it needs are closed."""
        owners = dict.fromkeys(self._writer[v.buffer] for v in leaves(value) if v.buffer in self._writer)
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
        read = [v for v in leaves(value) if self._writer.get(v.buffer) is owner]
        if any(v.buffer not in owner.own for v in read):
            return False
        if value.shape == owner.space:
            return all(owner.in_line(v) for v in read)
        if owner.split is None or math.prod(value.shape) != math.prod(owner.outer):
            return False
        flat = values.reshaped(value, owner.outer)
        return flat is not None and all(owner.in_line(v) for v in leaves(flat) if v.buffer in owner.own)

    def _kernel(self, space: Shape) -> Kernel:
        if space not in self._open:
            self._open[space] = Kernel(space, self.cpu)
        return self._open[space]

    def _add(self, kernel: Kernel, item: Item) -> None:
        kernel.add(item)
        kernel.touched = self._closings
        self.note(kernel)
        self._writer[item.target.buffer] = kernel
        if kernel.full:
            self.close(kernel)

    def close(self, step: Kernel | Contraction) -> None:
        """A kernel takes its place among the steps; what it reads is there before it."""
        self._closings += 1
        if isinstance(step, Kernel):
            if self._open.get(step.space) is not step:
                return
            del self._open[step.space]
        for buffer in [b for b, w in self._writer.items() if w is step]:
            del self._writer[buffer]
        self.emit(step)

    def wait(self, contraction: Contraction) -> None:
        """Let a contraction wait for work on its result; but not for long, since its operands stay in memory."""
        waiting = [w for w in dict.fromkeys(self._writer.values()) if isinstance(w, Contraction)]
        if len(waiting) >= OPEN_CONTRACTIONS:
            self.close(waiting[0])
        self._writer[contraction.target.buffer] = contraction
        self.note(contraction)

    def close_all(self) -> None:
        for step in [*dict.fromkeys(self._writer.values()), *self._open.values()]:
            self.close(step)

    def available(self, *views: View) -> None:
        for view in views:
            if view.buffer in self._writer:
                self.close(self._writer[view.buffer])

    def ready(self, value: Value) -> Value:
        """The value, such that everything it reads is in memory when the next step runs."""
        self.available(*leaves(self.settled(value)))
        return self.settled(value)

    def writers(self, buffer: Buffer) -> int:
        """How many open steps write a part of a buffer."""
        return sum(buffer in step.writes for step in {*self._open.values(), *self._writer.values()})

    def close_writers(self, buffer: Buffer) -> None:
        """Close every kernel that writes a part of a buffer."""
        for kernel in [*self._open.values(), *dict.fromkeys(self._writer.values())]:
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

    def copy_alone(self, source: View, target: View) -> None:
        """Copy in a kernel that does nothing else, so that it may be left out."""
        if target.shape in self._open:
            self.close(self._open[target.shape])
        self.copy(source, target)

    def close_old(self) -> None:
        """Close kernels that have waited long for more: what they read stays in memory meanwhile."""
        for old in [k for k in self._open.values() if self._closings - k.touched > PATIENCE]:
            self.close(old)

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
        if split == 0 and total > LONG_ROW:
            # one long row: pieces first, so that they can be shared out
            even = (p for p in (64, 48, 32, 24, 16, 12, 8, 6, 4, 2) if total % p == 0)
            pieces = 0 if varying(value.shape) else next(even, 0)
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


def _wide(dtype: DType) -> DType:
    return dtypes.float32 if dtypes.is_half(dtype) else dtype
