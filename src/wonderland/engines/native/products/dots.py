"""Products whose sums run along memory in both factors: dot products, and matrices times one or a few vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..labels import Work
from ..processor import Processor
from ..text.builder import STORED, computed, typed, widen
from ..text.routine import Routine
from ..text.sums import sum_with
from ..tuning import CYCLES, NEAR_BYTES
from ..values import View
from .blocks import Blocks, shifted, stepped
from .epilogue import Epilogue, WithEpilogue
from .packing import shuffle


class Dots(WithEpilogue):
    """out[..., i, j] = sum_k x[..., i, k] y[..., k, j], then an epilogue; x and y both step through memory along k.

    y may be of a half type, x not.

    The lanes of a register hold parts of one sum. When the sums of some columns are done, their registers are added up
    into one.
    """

    any_size = True  # see general.py

    def __init__(self, cpu: Processor, x: View, y: View, epilogue: Epilogue) -> None:
        super().__init__([x, y], epilogue)
        self.x, self.y = x, y
        self.w = cpu.lanes(x.dtype.itemsize)
        *lead, self.m, self.k = x.shape
        self.n = y.shape[-1]
        self.rows, self.columns = block(cpu.registers, self.m, self.n, self.w)
        count, size = int(math.prod(lead)), x.dtype.itemsize
        moved = count * (size * self.m * self.k + y.dtype.itemsize * self.k * self.n) / NEAR_BYTES
        computing = count * cost(cpu.registers, self.m, self.n, self.k, self.w) / CYCLES
        step = math.lcm(self.columns, self.w)
        self.blocks = Blocks(tuple(lead), self.m, self.n, self.rows, step, max(moved, computing))
        self.chunks = self.blocks.chunks

    @property
    def work(self) -> Work:
        return self.followed(f"matmul {self.x.shape} @ {self.y.shape}", math.prod(self.x.shape) * self.n)

    def emit(self, r: Routine) -> None:
        scalar = computed(self.x.dtype)

        def rectangle(lead: list[str], row: str, row_end: str, column: str, column_end: str) -> None:
            x = r.at(r.pointer(self.x), scalar, self.x.strides[:-2], lead)
            y = r.at(r.pointer(self.y), STORED[self.y.dtype], self.y.strides[:-2], lead)

            def columns(j: str, width: int) -> None:
                right = r.at(y, STORED[self.y.dtype], self.y.strides[-1:], [j])

                def rows(i: str, height: int) -> None:
                    left = r.at(x, scalar, self.x.strides[-2:-1], [i])
                    sums = self._sums(r, left, right, height, width, scalar)
                    for a in range(height):
                        mine = [*sums[a * width : (a + 1) * width], *[None] * (self.w - width)]
                        self.epilogue.emit(r, [*lead, shifted(r, i, a), j], gathered(r, mine, scalar), self.w, width)

                stepped(r, row, row_end, self.rows, self.m, rows)

            stepped(r, column, column_end, self.columns, self.n, columns)

        self.blocks.each(r, rectangle)

    def _sums(self, r: Routine, x: str, y: str, height: int, width: int, scalar: str) -> list[str]:
        """A register of partial sums for each row and column."""
        w, kind, size = self.w, typed(scalar, self.w), self.x.dtype.itemsize
        stored, item = STORED[self.y.dtype], self.y.dtype.itemsize
        count = height * width
        # few sums need several registers each; those at the edge have as many as the others
        ways = max(1, min(8 // (self.rows * min(self.columns, self.n)), self.k // w))

        def terms(k: str, sums: list[str], lanes: int) -> list[str]:
            left = [
                r.load_vector(r.at(x, scalar, (1,), [k], a * self.x.strides[-2]), scalar, size, w, lanes)
                for a in range(height)
            ]
            made = list(sums)
            for j in range(width):
                place = r.at(y, stored, (1,), [k], j * self.y.strides[-1])
                right = widen(r.b, r.load_vector(place, stored, item, w, lanes), self.y.dtype, w)
                for a in range(height):
                    t = a * width + j
                    made[t] = r.b.intrinsic("fmuladd", kind, left[a], right, sums[t])
            return made

        def step(k: str, sums: list[str]) -> list[str]:
            made: list[str] = []
            for way in range(ways):
                made += terms(shifted(r, k, way * w), sums[way * count : (way + 1) * count], w)
            return made

        whole = self.k - self.k % (ways * w)
        names = ["zeroinitializer"] * (ways * count)
        if whole:
            names = sum_with(r.b, kind, names, whole, ways * w, step, turns=self.k // (ways * w))
        sums = names[:count]
        for way in range(1, ways):
            more = names[way * count : (way + 1) * count]
            sums = [r.b.emit(f"fadd {kind} {s}, {t}") for s, t in zip(sums, more, strict=True)]
        for k in range(whole, self.k, w):
            sums = terms(str(k), sums, min(w, self.k - k))
        return sums


def block(registers: int, m: int, n: int, w: int) -> tuple[int, int]:
    """Rows and columns whose sums are made together: as many as the registers hold beside what is read."""
    if m == 1:
        return 1, w
    columns = min(4, n, w)
    return min(m, (registers - 1) // (columns + 1), registers // 4), columns


def gathered(r: Routine, vectors: Sequence[str | None], scalar: str) -> str:
    """A vector with the sum of each of w vectors: halve their number until one is left."""
    w = len(vectors)
    kind, add = typed(scalar, w), "add" if scalar.startswith("i") else "fadd"
    distance = w // 2
    while distance:
        made: list[str | None] = []
        for a, b in zip(vectors[:distance], vectors[distance : 2 * distance], strict=True):
            if a is None:
                made.append(None)
                continue
            other = b or "zeroinitializer"
            mine = shuffle(r, a, other, [w + t if t & distance else t for t in range(w)], scalar)
            across = shuffle(r, a, other, [(w + t if t & distance else t) ^ distance for t in range(w)], scalar)
            made.append(r.b.emit(f"{add} {kind} {mine}, {across}"))
        vectors = made
        distance //= 2
    assert vectors[0] is not None
    return vectors[0]


def cost(registers: int, m: int, n: int, k: int, w: int) -> float:
    """Cycles of a product, roughly: two multiply-adds or two loads in one, and adding up the lanes."""
    rows, columns = block(registers, m, n, w)
    loads = 0.6 * (1 / rows + 1 / min(columns, n))
    return m * n * -(-k // w) * max(0.5, loads) + m * -(-n // columns) * 5.0 * min(columns, n)
