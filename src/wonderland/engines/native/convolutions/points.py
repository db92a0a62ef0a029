"""The matrices of Winograd's method, which evaluate polynomials at points or go back from there (Toom and Cook).

    out = A [ (G w) * (B d) ]        d: size + taps - 1 places, w: taps, out: size places

This is a correlation in as many products as there are places in d, the transpose of a product of polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from ..text.builder import Builder, literal, splat, typed

# where polynomials are evaluated, beside infinity, by how many there are: exact in binary, and with the smallest errors
POINTS: dict[int, tuple[float, ...]] = {1: (), 4: (0, 1, -1), 6: (0, 5 / 8, -5 / 8, 3 / 2, -3 / 2)}


class Points:
    """The three matrices for lines: `taps` of a filter, `size` places of the result. Of one and one, they are 1."""

    def __init__(self, size: int, taps: int) -> None:
        self.size, self.taps, self.side = size, taps, size + taps - 1
        points = [Fraction(p) for p in POINTS[self.side]]
        others = [[q for q in points if q != p] for p in points]
        self.input = [_polynomial(rest, self.side) for rest in [*others, points]]
        scales = [math.prod([p - q for q in rest], start=Fraction(1)) for p, rest in zip(points, others, strict=True)]
        self.filter = [[p**k / s for k in range(taps)] for p, s in zip(points, scales, strict=True)]
        self.filter.append([Fraction(k == taps - 1) for k in range(taps)])
        self.output = [[*(p**i for p in points), Fraction(i == size - 1)] for i in range(size)]
        # a point and its negative: what they have in common is computed once
        self.pairs = [j for j, p in enumerate(points[:-1]) if p and points[j + 1] == -p]

    def of_input(self, lanes: Lanes, line: Sequence[str]) -> list[str]:
        return self._at_points(self.input, lanes, line)

    def of_filter(self, lanes: Lanes, line: Sequence[str]) -> list[str]:
        return self._at_points(self.filter, lanes, line)

    def _at_points(self, rows: list[list[Fraction]], lanes: Lanes, line: Sequence[str]) -> list[str]:
        made: dict[int, str] = {}
        for j in self.pairs:  # even and odd powers
            even, odd = (lanes.sum([*zip(rows[j], line, strict=True)][start::2]) for start in (0, 1))
            made[j], made[j + 1] = lanes.sum([(1, even), (1, odd)]), lanes.sum([(1, even), (-1, odd)])
        return [made.get(j) or lanes.sum([*zip(row, line, strict=True)]) for j, row in enumerate(rows)]

    def of_output(self, lanes: Lanes, line: Sequence[str]) -> list[str]:
        terms = [[(row[j], line[j]) for j in range(self.side)] for row in self.output]
        for j in self.pairs:
            both = [lanes.sum([(1, line[j]), (sign, line[j + 1])]) for sign in (1, -1)]
            for i, row in enumerate(terms):
                row[j : j + 2] = [(self.output[i][j], both[i % 2]), (Fraction(0), "")]
        return [lanes.sum(row) for row in terms]


def _polynomial(roots: Sequence[Fraction], count: int) -> list[Fraction]:
    """The coefficients of the product of x - root, from the lowest power on."""
    found = [Fraction(1)]
    for root in roots:
        found = [a - root * b for a, b in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return found + [Fraction(0)] * (count - len(found))


class Lanes(NamedTuple):
    """Vectors of channels."""

    b: Builder
    scalar: str
    width: int

    def sum(self, terms: Sequence[tuple[Fraction | int, str]]) -> str:
        """The sum of registers times numbers."""
        kind, total = typed(self.scalar, self.width), ""
        for factor, value in sorted(terms, key=lambda term: term[0] != 1):
            number = splat(literal(float(factor), self.scalar), self.scalar, self.width)
            if factor == 0:
                continue
            if factor == 1 or (factor == -1 and total):
                total = self.b.emit(f"{'fadd' if factor == 1 else 'fsub'} {kind} {total}, {value}") if total else value
            elif total:
                total = self.b.intrinsic("fmuladd", kind, value, number, total)
            else:
                total = self.b.emit(f"fmul {kind} {value}, {number}")
        return total


Line = Callable[[Lanes, Sequence[str]], list[str]]


class Method(NamedTuple):
    """What is done along both axes of tiles."""

    down: Points
    across: Points

    @property
    def places(self) -> int:
        return self.down.side * self.across.side

    @property
    def sizes(self) -> tuple[int, int]:
        return self.down.size, self.across.size

    @property
    def taps(self) -> tuple[int, int]:
        return self.down.taps, self.across.taps

    @property
    def sides(self) -> tuple[int, int]:
        return self.down.side, self.across.side

    def exchanged(self) -> Method:
        """With the filter in place of the result, and the result in place of the filter."""
        return method(self.taps, self.sizes)

    def of_input(self, lanes: Lanes, tile: list[list[str]]) -> list[str]:
        return _both(self.down.of_input, self.across.of_input, lanes, tile)

    def of_filter(self, lanes: Lanes, tile: list[list[str]]) -> list[str]:
        return _both(self.down.of_filter, self.across.of_filter, lanes, tile)

    def of_output(self, lanes: Lanes, tile: list[list[str]]) -> list[str]:
        return _both(self.down.of_output, self.across.of_output, lanes, tile)


def method(sizes: Sequence[int], taps: Sequence[int]) -> Method:
    return Method(*(Points(size, count) for size, count in zip(sizes, taps, strict=True)))


def _both(down: Line, across: Line, lanes: Lanes, tile: list[list[str]]) -> list[str]:
    """A matrix from both sides: along the columns, then along the rows of the result, which follow each other."""
    columns = [down(lanes, column) for column in zip(*tile, strict=True)]
    return [value for row in zip(*columns, strict=True) for value in across(lanes, row)]
