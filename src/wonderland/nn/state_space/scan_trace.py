"""How `associative_scan` combines its elements: which with which, at which depth. Book, section 13.3.2 and F.13.3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import arrays
from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import Array
from ...transforms.control.associative import associative_scan

__all__ = ["ScanTrace", "scan_trace"]

Run = tuple[int, int]  # elements from the first to the second, counted from 1, combined


@dataclass(frozen=True)
class ScanTrace:
    """The applications of the operator, level by level: those of one level need none of the others of it.

    `levels` are lists of pairs of runs, ((1, 2), (3, 4)) for the product of elements 1 and 2 with that of 3 and 4.
    """

    n: int
    levels: tuple[tuple[tuple[Run, Run], ...], ...]

    @property
    def work(self) -> int:
        """How often the operator is applied."""
        return sum(map(len, self.levels))

    @property
    def depth(self) -> int:
        """How many applications wait for each other."""
        return len(self.levels)

    @property
    def threads(self) -> int:
        """How many applications of one level there are at most."""
        return max(map(len, self.levels), default=0)

    def __str__(self) -> str:
        lines = [f"{self.n} elements: {self.work} applications in {self.depth} levels"]
        for i, level in enumerate(self.levels, 1):
            lines.append(f"  {i}: " + ", ".join(f"{_shown(a)} * {_shown(b)}" for a, b in level))
        return "\n".join(lines)


def _shown(run: Run) -> str:
    return f"x{run[0]}" if run[0] == run[1] else f"x{run[0]}..{run[1]}"


def scan_trace(n: int) -> ScanTrace:
    r"""What `associative_scan` does with n elements. Book, F.13.3.

    >>> import wonderland as wl
    >>> print(wl.nn.scan_trace(6))
    6 elements: 7 applications in 3 levels
      1: x1 * x2, x3 * x4, x5 * x6
      2: x1..2 * x3, x1..2 * x3..4
      3: x1..4 * x5, x1..4 * x5..6

    The scan itself runs, on elements that know which of them they are made of and how many levels that took; a loop
    takes n - 1 applications, which all wait for each other. The work is below 2 n, and the depth about 2 log2(n) at
    most. An application that combines runs which are not neighbours is an error of the scan, and raised.
    """
    n = as_int("scan_trace", "n", n, 1)
    found: dict[int, list[tuple[Run, Run]]] = {}
    Element = tuple[Tensor, Tensor, Tensor]  # the first and last of a run, and its level

    def combine(a: Element, b: Element) -> Element:
        level = arrays.maximum(a[2], b[2]) + 1
        rows: list[Array] = [np.asarray(part) for part in (*a[:2], *b[:2], level)]
        for low, middle, next_one, high, depth in np.stack(rows, axis=-1).tolist():
            assert next_one == middle + 1, "runs that are not neighbours"
            found.setdefault(depth, []).append(((low, middle), (next_one, high)))
        return a[0], b[1], level

    places = arrays.arange(1, n + 1)
    first, last, _ = associative_scan(combine, (places, places, arrays.zeros_like(places)))
    assert (np.asarray(first) == 1).all(), "a result that is no prefix"
    assert (np.asarray(last) == np.arange(1, n + 1)).all(), "prefixes out of order"
    levels = tuple(tuple(sorted(found[depth], key=lambda pair: (pair[1][1], pair))) for depth in sorted(found))
    return ScanTrace(n, levels)
