"""Tensors that are put together from parts: where each part goes; sums of such tensors may be just more parts."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator

from .tuning import PAIRS
from .values import Shape, Value, transposed

Place = tuple[tuple[int, int | None, int], ...]  # a slice along each axis
Piece = tuple[Place, Value]
Spans = list[tuple[int, int]]  # first and last places, in order


class Pieces:
    """Parts of a tensor that have no element in common; it is 0 elsewhere."""

    __slots__ = ("_spans", "pieces", "shape")

    def __init__(self, shape: Shape, pieces: list[Piece], spans: list[Spans | None] | None = None) -> None:
        self.shape = shape
        self.pieces = pieces
        self._spans = spans

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.pieces)

    def transposed(self, axes: tuple[int, ...]) -> Pieces:
        moved = [(tuple(place[a] for a in axes), transposed(part, axes)) for place, part in self.pieces]
        return Pieces(tuple(self.shape[a] for a in axes), moved)

    def and_those_of(self, other: Pieces) -> Pieces | None:
        """The sum of both as the parts of both, if they do not overlap."""
        many, few = (self, other) if len(self.pieces) >= len(other.pieces) else (other, self)
        spans = [_merged(a, b) for a, b in zip(many.spans(), few.spans(), strict=True)]
        if all(span is None for span in spans):  # not one axis keeps all of them apart
            if len(many.pieces) * len(few.pieces) > PAIRS:
                return None
            if not all(_apart(a, b, self.shape) for a, _ in many.pieces for b, _ in few.pieces):
                return None
        return Pieces(self.shape, self.pieces + other.pieces, spans)

    def spans(self) -> list[Spans | None]:
        """For each axis the ranges of the parts, if these keep the parts apart."""
        if self._spans is None:
            self._spans = []
            for axis, n in enumerate(self.shape):
                ranges = [range(n)[slice(*place[axis])] for place, _ in self.pieces]
                found = sorted((min(r), max(r)) for r in ranges if r)
                disjoint = all(a[1] < b[0] for a, b in itertools.pairwise(found))
                self._spans.append(found if disjoint else None)
        return self._spans


def _merged(many: Spans | None, few: Spans | None) -> Spans | None:
    """Ranges in order, if no two of them meet."""
    if many is None or few is None:
        return None
    found = list(many)
    for span in few:
        at = bisect.bisect(found, span)
        if (at and found[at - 1][1] >= span[0]) or (at < len(found) and found[at][0] <= span[1]):
            return None
        found.insert(at, span)
    return found


def _apart(a: Place, b: Place, shape: Shape) -> bool:
    """Whether two parts have no element in common: along some axis their ranges do not meet."""

    def meet(one: tuple[int, int | None, int], other: tuple[int, int | None, int], n: int) -> bool:
        first, second = range(n)[slice(*one)], range(n)[slice(*other)]
        if not first or not second:
            return False
        if first.step == second.step and (first[0] - second[0]) % first.step:
            return False
        return max(min(first), min(second)) <= min(max(first), max(second))

    return not all(meet(one, other, n) for one, other, n in zip(a, b, shape, strict=True))
