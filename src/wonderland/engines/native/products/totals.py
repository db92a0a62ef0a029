"""Sums of the partial results of products with very long sums, always in the same order."""

from __future__ import annotations

import math

from ..labels import Work
from ..processor import Processor
from ..text.builder import computed, typed
from ..text.routine import Routine
from ..tuning import NEAR_BYTES
from ..values import View
from .blocks import Blocks, stepped
from .epilogue import Epilogue, WithEpilogue


class Total(WithEpilogue):
    """out[..., i, j] = sum_p parts[..., p, i, j], then an epilogue."""

    any_size = True  # see general.py

    def __init__(self, cpu: Processor, parts: View, epilogue: Epilogue) -> None:
        super().__init__([parts], epilogue)
        self.parts = parts
        *lead, self.count, m, self.n = parts.shape
        self.w = cpu.lanes(parts.dtype.itemsize)
        moved = int(math.prod(parts.shape)) * parts.dtype.itemsize / NEAR_BYTES
        self.blocks = Blocks(tuple(lead), m, self.n, 1, self.w, moved)
        self.chunks = self.blocks.chunks

    @property
    def work(self) -> Work:
        return self.followed(f"sum of {self.count} parts {self.epilogue.hole.shape}", math.prod(self.parts.shape))

    def emit(self, r: Routine) -> None:
        kind = typed(computed(self.parts.dtype), self.w)

        def rectangle(lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
            def line(i: str) -> None:
                def columns(j: str, width: int) -> None:
                    def more(p: str, sums: list[str]) -> list[str]:
                        part = r.load(self.parts, [*lead, p, i, j], self.w, width)
                        return [r.b.emit(f"fadd {kind} {sums[0]}, {part}")]

                    first = r.load(self.parts, [*lead, "0", i, j], self.w, width)
                    [total] = r.b.loop_with([(kind, first)], self.count, 1, more, 1)
                    self.epilogue.emit(r, [*lead, i, j], total, self.w, width)

                stepped(r, column, column_end, self.w, self.n, columns)

            r.b.loop(row_end, 1, line, row)

        self.blocks.each(r, rectangle)
