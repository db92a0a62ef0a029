"""Loop kernels: everything elementwise, and reductions, over one iteration space.

The first axes of the space are the outer ones, the others are a row. For every row, a kernel goes through its items
in phases: a reduction of the row (the largest element, a sum) is a number that later phases use, so that softmax and
layer normalisation are one kernel that finds its row in the nearest cache. Sums over outer axes (the gradient of a
bias) are accumulated on the side; long ones, and those that chunks share, in parts that are added in order.

Axes that step evenly through all memory involved are merged. The last one is vectorised.
"""

from __future__ import annotations

import math

from ....core import dtypes
from ....ir.sizes import Extent, largest, pieces, varying
from ..labels import Work, names, operations
from ..processor import Processor
from ..text.describe import Description
from ..text.operations import cost_of
from ..text.routine import Routine, slots_of
from ..tuning import FUNCTION, GRAIN, HEAVIEST, INTERLEAVED, LONGEST, MOST_CHUNKS, MOST_ITEMS, PART, TOUCH, TURNED
from ..values import Buffer, Op, Shape, Together, View, accesses, leaves, may_refuse, parts, strides_of, whole
from . import alike
from .items import Accumulate, Item, Reduce, Store, rounds
from .squares import lies_across
from .text import Emitter


class Kernel:
    """Items over a space whose axes from `split` on are the row. Items are added until it is closed."""

    any_size = True  # see general.py

    def __init__(self, space: Shape, cpu: Processor, split: int | None = None) -> None:
        self.cpu = cpu
        self.space = space
        self.split = split  # None: nothing has been said yet, the row is what serves best
        self.items: list[Item] = []
        self.own: set[Buffer] = set()  # results of reductions, which later items find in registers
        self.silent: set[Buffer] = set()  # among them, those that nobody else reads
        self._values = Together()
        self.whole = False  # whether it must not be cut into chunks
        self.closed = False
        self.touched = 0  # when the last item was added
        self._known: tuple[list[Buffer], list[Buffer], list[View]] | None = None

    def add(self, item: Item) -> None:
        self.items.append(item)
        self._values.add(item.value)
        if isinstance(item, Reduce):
            self.own.add(item.target.buffer)

    @property
    def operations(self) -> int:
        """What is computed for a place of the space, in additions."""
        return 1 + self._values.operations

    @property
    def full(self) -> bool:
        """Whether another item would be too much for one loop."""
        return len(self.items) >= MOST_ITEMS or self.operations > 3 * HEAVIEST

    @property
    def outer(self) -> Shape:
        return self.space if self.split is None else self.space[: self.split]

    def in_line(self, view: View) -> bool:
        """Whether a view of a reduction's result reads, for every place, the number of its own row."""
        strides = [s for s, n in zip(view.strides, view.shape, strict=True) if n > 1]
        if view.offset:
            return False
        if view.shape == self.space:
            wanted = strides_of(self.outer) + (0,) * (len(self.space) - len(self.outer))
            return strides == [s for s, n in zip(wanted, self.space, strict=True) if n > 1]
        return math.prod(view.shape) == math.prod(self.outer) and strides == [
            s for s, n in zip(strides_of(view.shape), view.shape, strict=True) if n > 1
        ]

    # --- once all items are there

    def close(self) -> list[Kernel]:
        """Choose loops and chunks. Partial sums need a second kernel, which adds them."""
        split = len(self.space) if self.split is None else self.split
        kinds = [int(axis >= split) for axis in range(len(self.space))]
        self._all = [s for item in self.items for s in self._accesses(item)]
        self.groups = merged(self.space, self._all, kinds)
        self.sizes = [math.prod(self.space[a] for a in group) for group in self.groups]
        self.rows = sum(kinds[group[0]] == 0 for group in self.groups)  # how many groups are outer
        if self.split is None and self.groups:
            self.rows = len(self.groups) - 1
        self.row = self.sizes[self.rows :]
        values = [item.value for item in self.items]
        # 32-bit lanes fill a vector; wider types take several
        size = 8 if all(part.dtype.itemsize == 8 for part in parts(*values)) else 4
        self.width = self.cpu.lanes(size) * (INTERLEAVED if self._waits() else 1)
        if not self.row or (isinstance(self.row[-1], Extent) and largest(self.row[-1]) <= LONGEST):
            self.width = 1  # code for vectors and for what is left of them takes longer to compile than it ever saves
        while self.row and self.width > 1 and self.width // 2 >= self.row[-1]:
            self.width //= 2
        self.across = self._across()
        sums = {i: item for i, item in enumerate(self.items) if isinstance(item, Accumulate)}
        steps = {i: self._steps(item) for i, item in sums.items()}
        self._cut([step[0] for step in steps.values() if step and step[0]])
        if self.chunks == 1 and len(self.items) > 1 and math.prod(self.space) > 1:
            groups = alike.groups(self.items)
            if len(groups) > 1:
                return [kernel for items in groups for kernel in self._with(items).close()]
        extra = [self._shared(i, item, steps[i]) for i, item in sums.items()]
        self.closed = True
        return [self, *[kernel for kernels in extra for kernel in kernels]]

    def _with(self, items: list[Item]) -> Kernel:
        """A kernel over the same space that has some of the items."""
        made = Kernel(self.space, self.cpu, self.split)
        for item in items:
            made.add(item)
        made.silent = self.silent & made.own
        made.whole = self.whole
        return made

    def _waits(self) -> bool:
        """Whether it is functions that take the time: each of their operations waits for the one before, so several
        vectors are computed together. (Not where a row is reduced, as the order of the sum is that of the lanes.)"""
        if not self.row or isinstance(self.row[-1], Extent) or any(isinstance(item, Reduce) for item in self.items):
            return False
        found = parts(*[item.value for item in self.items])
        functions = any(isinstance(part, Op) and cost_of(part.name) >= FUNCTION for part in found)
        plain = not any(may_refuse(part) or part.dtype.itemsize > 4 for part in found)
        even = all(strides[self.groups[-1][-1]] in (0, 1) for strides in self._all)
        long = self.row[-1] >= 2 * INTERLEAVED * self.cpu.lanes(4)
        return functions and plain and even and long and self._amount() >= GRAIN

    def _across(self) -> int | None:
        """The outer axis of the squares by which views are read that lie across; None: rows are read as they come."""
        last, width = len(self.groups) - 1, self.width
        if last < 1 or self.rows != last or width == 1 or varying(tuple(self.sizes)):
            return None
        if width > self.sizes[last] or math.prod(self.space) < TURNED:
            return None
        if any(isinstance(item, Reduce) or item.value.shape != self.space for item in self.items):
            return None
        if any(may_refuse(part) for part in parts(*[item.value for item in self.items])):
            return None
        steps = [[strides[group[-1]] for group in self.groups] for strides in self._all]
        if any(item.target.strides[self.groups[-1][-1]] != 1 for item in self.items):
            return None
        found = (lies_across(step, tuple(self.sizes), width) for step in steps)
        return next((axis for axis in found if axis is not None), None)

    def _amount(self) -> int:
        """What the whole takes, in additions."""
        touched = sum(1 for strides in self._all if any(strides))
        return int(math.prod(self.space)) * (self.operations + TOUCH * touched)

    def _accesses(self, item: Item) -> list[Shape]:
        rank = len(self.space)
        split = rank if self.split is None else self.split
        target = item.target.strides
        if isinstance(item, Reduce) or item.value.shape != self.space:
            target = strides_of(self.outer) + (0,) * (rank - split)
        return [target, *[_padded(s, rank) for s in accesses(item.value)]]

    def _steps(self, item: Accumulate) -> list[int]:
        """For every group of axes, how many of its places belong to one part of a sum; 0: all of them."""
        steps, room = [0] * len(self.groups), PART
        summed = [i for i, group in enumerate(self.groups) if item.target.strides[group[-1]] == 0]
        if not rounds(item.name, item.target.dtype) or math.prod(largest(self.sizes[i]) for i in summed) <= LONGEST:
            return steps
        for i in reversed(summed):
            if largest(self.sizes[i]) <= room:
                room //= largest(self.sizes[i])
            else:
                steps[i], room = 1 << room.bit_length() - 1, 1  # powers of two, so that chunks consist of whole parts
        return steps

    def _cut(self, steps: list[int]) -> None:
        """How the first group of axes is shared out, if sums over it are made in parts of so many places.

        A 1-D space without reductions is cut along its row.
        """
        self.chunks, self.step, self.shared = 1, 0, False
        if self.whole or not self.sizes or (not self.rows and any(isinstance(i, Reduce) for i in self.items)):
            return
        unit = self.width if self.across == 0 else 1 if self.rows else self.width * 4
        units = -(-int(self.sizes[0]) // unit)
        wanted = max(1, min(MOST_CHUNKS, self._amount() // GRAIN, units))
        wanted = 1 << round(math.log2(wanted))  # so that threads have as many
        if wanted == 1 and isinstance(self.sizes[0], Extent) and self._sums_first():
            return  # a sum in one go is worth more than sharing out batches that are larger than others
        self.step = -(-units // wanted) * unit
        unit = max((step for step in steps if step <= self.step), default=1)
        self.step = -(-self.step // unit) * unit
        self.chunks = pieces(self.sizes[0], self.step)
        self.shared = self.chunks > 1 or isinstance(self.chunks, Extent)

    def _sums_first(self) -> bool:
        """Whether there is a sum over the first group of axes."""
        first = self.groups[0][-1]
        return any(isinstance(i, Accumulate) and i.target.strides[first] == 0 for i in self.items)

    def _shared(self, place: int, item: Accumulate, steps: list[int]) -> list[Kernel]:
        """Where a sum is long, shared by chunks, or a narrow float: parts, and a kernel that adds them."""
        target, value, name, _ = item
        narrow = dtypes.is_half(target.dtype)
        if self.shared and target.strides[self.groups[0][-1]] == 0:  # the axis that is cut is summed over
            steps[0] = min(steps[0] or self.step, self.step)
        parts = math.prod(pieces(n, step) for n, step in zip(self.sizes, steps, strict=True) if step)
        if not narrow and parts == 1 and not isinstance(parts, Extent):
            self.items[place] = item._replace(steps=tuple(steps))
            return []
        kept = tuple(n if s else 1 for s, n in zip(target.strides, self.space, strict=True))
        count = math.prod(kept)
        dtype = dtypes.float32 if narrow else target.dtype
        partial = Buffer("arena", parts * count, dtype)
        inside = tuple(s if n > 1 else 0 for s, n in zip(strides_of(kept), kept, strict=True))
        self.items[place] = Accumulate(View(partial, self.space, inside), value, name, tuple(steps))
        rounding = Kernel((count,), self.cpu)
        if parts == 1 and not isinstance(parts, Extent):
            rounding.add(_narrowed(target, partial, count))
            return rounding.close()
        wide = Buffer("arena", count, dtype) if narrow else target.buffer
        offset = 0 if narrow else target.offset
        # pieces of the sum in front, so that chunks can share them
        piece = 512 if count % 512 == 0 else count
        lead = (count // piece, parts, piece)
        total = Kernel(lead, self.cpu)
        total.whole = piece == count
        sums = View(partial, lead, (piece, count, 1))
        total.add(Accumulate(View(wide, lead, (piece, 0, 1), offset), sums, name))
        if not narrow:
            return total.close()
        rounding.add(_narrowed(target, wide, count))
        return [*total.close(), *rounding.close()]

    @property
    def reads(self) -> list[Buffer]:
        return self._touched()[0]

    @property
    def writes(self) -> list[Buffer]:
        return self._touched()[1]

    @property
    def views(self) -> list[View]:
        return self._touched()[2]

    def _touched(self) -> tuple[list[Buffer], list[Buffer], list[View]]:
        """The buffers that are read and written, and all views; what stays in registers is not among them."""
        if self._known is not None:
            return self._known
        read = [leaf for item in self.items for leaf in leaves(item.value) if leaf.buffer not in self.own]
        written = [item.target for item in self.items if item.target.buffer not in self.silent]
        reads, writes = (list(dict.fromkeys(v.buffer for v in views)) for views in (read, written))
        found = reads, writes, read + written
        if self.closed:
            self._known = found
        return found

    @property
    def work(self) -> Work:
        done = operations([item.value for item in self.items])
        found: dict[str, None] = {}
        for item in self.items:
            found |= dict.fromkeys(names([item.value]))
            if not isinstance(item, Store):
                found[item.name] = None
                done += int(math.prod(item.value.shape))
        return f"kernel over {self.space}: {', '.join(found) or 'copy'}", done

    def describe(self) -> str:
        d = Description(slots_of(self.views))
        lines = [f"kernel {self.space} {self.groups} {self.rows} {self.width} {self.chunks} {self.step} {self.across}"]
        for item in self.items:
            silent = item.target.buffer in self.silent
            name = "" if isinstance(item, Store) else item.name
            where = "-" if silent else d.view(item.target)
            own = d.own(item.target.buffer) if isinstance(item, Reduce) else ""
            lines.append(f"{type(item).__name__} {name} {where} {own} {d.value(item.value)}")
        return "\n".join([*lines, *d.lines])

    # --- text

    def emit(self, r: Routine) -> None:
        Emitter(self, r).emit()


def merged(shape: Shape, accesses: list[Shape], kinds: list[int]) -> list[list[int]]:
    """Groups of adjacent axes that can be walked as one. An axis whose size varies stays by itself."""
    groups: list[list[int]] = []
    alone = varying(shape)
    for axis, n in enumerate(shape):
        if n == 1 and axis not in alone:
            continue
        if groups and kinds[groups[-1][-1]] == kinds[axis] and not (axis in alone or groups[-1][-1] in alone):
            last = groups[-1][-1]
            if all(strides[last] == strides[axis] * n for strides in accesses):
                groups[-1].append(axis)
                continue
        groups.append([axis])
    return groups


def _narrowed(target: View, wide: Buffer, count: int) -> Store:
    """The rounding of sums that were made in float32."""
    narrow = Op("astype", [whole(wide, (count,))], (count,), target.dtype)
    return Store(View(target.buffer, (count,), (1,), target.offset), narrow)


def _padded(strides: Shape, rank: int) -> Shape:
    """Values of a row's own have no strides along the row."""
    return strides + (0,) * (rank - len(strides))
