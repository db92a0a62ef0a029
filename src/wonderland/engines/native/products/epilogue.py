"""What happens to the elements of a product before they are stored."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import cast

from ....core import dtypes
from ..labels import Work, fused, operations
from ..text.describe import Description
from ..text.operations import cost_of, rounded
from ..text.routine import Routine, slots_of
from ..values import Buffer, Hole, Op, Take, Value, View, accesses, leaves, parts, regrouped, transposed
from .blocks import Place, stepped

Stores = list[tuple[View, Value]]


class Epilogue:
    """Values of shape lead + (m, n) to store, in which a hole stands for the product."""

    def __init__(self, hole: Hole, stores: Stores) -> None:
        self.hole, self.stores = hole, stores
        inside = parts(*[value for _, value in stores])
        # instructions, roughly: an elementary function takes some forty
        costs = [cost_of(p.name) for p in inside if isinstance(p, Op)]
        self.weight = sum(4 * cost if cost > 1 else 1 for cost in costs)
        self.weight += sum(40 if isinstance(p, Take) else isinstance(p, View) for p in inside)
        self.sources = [leaf for _, value in stores for leaf in leaves(value)]
        self.targets = [target for target, _ in stores]
        self.views = self.sources + self.targets
        self.weight += 16 * self.strided()

    def strided(self) -> int:
        """How many views do not run along the last axis."""
        return sum(v.strides[-1] not in (0, 1) for v in self.views if v.shape[-1] > 1)

    def emit(self, r: Routine, index: Sequence[str], product: str, w: int, n: int) -> None:
        """Store what follows from a register of the product at an index."""
        if dtypes.is_half(self.hole.dtype):
            product = rounded(r.b, product, self.hole.dtype, w)
        memo = {id(self.hole.source): product}
        made = [r.value(value, index, w, n, memo) for _, value in self.stores]
        for target, register in zip(self.targets, made, strict=True):
            r.store(target, register, index, w, n)

    def transposed(self) -> Epilogue:
        """The same for the transposed product."""
        rank = len(self.hole.shape)
        axes = (*range(rank - 2), rank - 1, rank - 2)
        stores = [(cast(View, transposed(t, axes)), transposed(v, axes)) for t, v in self.stores]
        return Epilogue(cast(Hole, transposed(self.hole, axes)), stores)

    def merged(self) -> Epilogue | None:
        """The same with the leading axes merged into the rows, if everything steps evenly through them."""
        shape = self.hole.shape
        rows = [axis for axis in range(len(shape) - 1) if shape[axis] != 1]
        for strides in [s for _, value in self.stores for s in accesses(value)] + [t.strides for t in self.targets]:
            if any(strides[a] != strides[b] * shape[b] for a, b in itertools.pairwise(rows)):
                return None
        empty = [axis for axis in range(len(shape) - 1) if shape[axis] == 1]
        groups, done = [[*empty, *rows], [len(shape) - 1]], dict[int, Value]()
        stores = [(cast(View, regrouped(t, groups, done)), regrouped(v, groups, done)) for t, v in self.stores]
        return Epilogue(cast(Hole, regrouped(self.hole, groups, done)), stores)


class WithEpilogue:
    """What steps with an epilogue have in common."""

    def __init__(self, factors: list[View], epilogue: Epilogue) -> None:
        self.factors, self.epilogue = factors, epilogue
        self.views = [*factors, *epilogue.views]
        self.reads: list[Buffer] = [v.buffer for v in [*factors, *epilogue.sources]]
        self.writes: list[Buffer] = [v.buffer for v in epilogue.targets]

    def followed(self, label: str, multiply_adds: int) -> Work:
        """The work of a step, with that of its epilogue."""
        values = [value for _, value in self.epilogue.stores]
        return label + fused(values), int(multiply_adds) + operations(values)

    def describe(self) -> str:
        description = Description(slots_of(self.views))
        factors = [description.view(v) for v in self.factors]
        stores = [f"{description.view(t)} = {description.value(v)}" for t, v in self.epilogue.stores]
        return "\n".join([f"{type(self).__name__} {self.epilogue.hole.dtype}", *factors, *stores, *description.lines])


def finish(r: Routine, epilogue: Epilogue, place: Place, n: int, w: int, load: Callable[[str, str], str]) -> None:
    """The epilogue of a rectangle of a matrix of n columns whose sums wait: `load` gets a vector of them."""

    def line(i: str) -> None:
        def one(j: str, count: int) -> None:
            epilogue.emit(r, [*place.lead, i, j], load(i, j), w, count)

        stepped(r, place.column, place.column_end, w, n, one)

    r.b.loop(place.row_end, 1, line, place.row)
