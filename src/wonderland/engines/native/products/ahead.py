"""What a product asks memory for before its turn comes, a few lines of the cache with every line's worth of terms.

While a block of the result is summed, it asks for the rows of x of the next block, for a part of what comes of y after
this panel, and for what its epilogue will read. So weights and the state of an optimizer, which come from memory, are
there when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....ir.sizes import Extent
from ..text.builder import STORED
from ..text.routine import Routine
from ..tuning import FETCHED_TERMS, LARGE
from ..values import Shape, View
from .blocks import Blocks, Place, difference, shifted
from .packing import Panels

LINE = 64  # bytes of the cache


class Ahead:
    """What is asked for, for blocks of so many rows and panels of such a width, with sums cut into parts.

    `below`: the steps of x, if its rows are asked for. `sources`: what the epilogue reads.
    """

    def __init__(
        self,
        y: View,
        panels: Panels | None,
        blocks: Blocks,
        cut: int,
        turn: int,
        below: Shape | None,
        sources: Sequence[View],
    ) -> None:
        self.panels, self.blocks, self.cut, self.below = panels, blocks, cut, below
        self.rows, self.width = blocks.steps
        self.size, self.scalar = y.dtype.itemsize, STORED[y.dtype]
        self.terms, self.step = int(y.shape[-2]), y.strides[-2]
        self.turn, line = turn, LINE // self.size  # terms after which something is asked for, elements of a line of y
        self.turns = max(1, cut // self.turn)  # of a block
        self.sources = [view for view in sources if _comes_from_memory(view)]
        # of y, what is asked for at a turn: places, and how far from it those of the next turn are
        turns = self.turns * -(-int(blocks.rows) // self.rows)
        self.places, self.next = list[int](), 0
        if isinstance(blocks.n, Extent) or not _comes_from_memory(y):
            return
        if panels:
            self.places = [line * i for i in range(-(-cut * self.width // (line * turns)))]
            self.next = line * len(self.places)
        else:
            each = -(-cut // turns)
            self.places = [a * self.step + c for a in range(each) for c in range(0, self.width, line)]
            self.next = each * self.step

    def of_panel(self, r: Routine, place: Place, y: str, j: str, k: str) -> str:
        """Where that begins which is needed after the panel at column j, for y from the term k on.

        After the last part of a chunk it is of the chunk after the next one, which another thread may be at.
        """
        if not self.places:
            return y
        b, column = r.b, self.terms if self.panels else 1  # how far a column is from the next
        beside = r.linear((column,), [shifted(r, j, self.width)])
        found = r.linear((column, -self.step), [shifted(r, place.column, 2 * self.blocks.columns), k])
        if self.cut < self.terms:
            lower = r.linear((column,), [place.column], self.cut * self.step)
            inside = b.emit(f"icmp slt i64 {shifted(r, k, self.cut)}, {self.terms}")
            found = b.emit(f"select i1 {inside}, i64 {lower}, i64 {found}")
        among = b.emit(f"icmp slt i64 {shifted(r, j, self.width)}, {place.column_end}")
        found = b.emit(f"select i1 {among}, i64 {beside}, i64 {found}")
        return r.at(y, self.scalar, [1], [found])

    def of_block(
        self, r: Routine, place: Place, i: str, j: str, below: str, following: str
    ) -> Callable[[str], None] | None:
        """What to ask for during the terms from k on, for the block at row i and column j."""
        if self.cut < FETCHED_TERMS or not (self.below or self.places or self.sources):
            return None
        block = r.b.emit(f"udiv i64 {difference(r, i, place.row)}, {self.rows}")

        def fetch(k: str) -> None:
            turn = r.b.emit(f"udiv i64 {k}, {self.turn}")
            if self.below:
                here = r.at(below, self.scalar, self.below[1:], [k])
                self._ask(r, here, [a * self.below[0] for a in range(self.rows)])
            there = r.at(following, self.scalar, [self.next * self.turns, self.next], [block, turn])
            self._ask(r, there, self.places, cache=2)
            self._ask_sources(r, [*place.lead, i, j], turn)

        return fetch

    def _ask(self, r: Routine, start: str, places: Sequence[int], cache: int = 1) -> None:
        for place in places:
            r.prefetch(r.at(start, self.scalar, [], [], place), cache)

    def _ask_sources(self, r: Routine, index: Sequence[str], turn: str) -> None:
        """Ask for a row of a block of them, or some if turns are few; the last one again where turns are many."""
        *lead, i, j = index
        each = -(-self.rows // self.turns)
        for a in range(each if self.sources else 0):
            row = r.b.intrinsic("smin", "i64", r.linear((each,), [turn], a), str(self.rows - 1))
            for view in self.sources:
                stored = STORED[view.dtype]
                start = r.at(r.pointer(view), stored, view.strides, [*lead, r.linear((1, 1), (i, row)), j])
                for column in range(0, self.width, LINE // view.dtype.itemsize):
                    r.prefetch(r.at(start, stored, [], [], column))


def _comes_from_memory(view: View) -> bool:
    """Whether it is a large matrix that is read along its rows, each of them once."""
    whole = int(view.shape[-1] * view.shape[-2]) * view.dtype.itemsize
    return view.strides[-1] == 1 and view.strides[-2] != 0 and whole >= LARGE
