"""Cases of the primitives of sparse matrices: patterns with empty lines, in order and not, with repeated places."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.makers import Case, Maker, complexes, distinct, fixed, integers, real

ROWS, COLUMNS, SHAPE = [0, 0, 3, 3, 3, 4], [1, 2, 2, 0, 2, 1], (5, 3)  # (3, 2) is there twice, row 1 and 2 are empty
MIXED = [3, 0, 4, 3, 0, 3]


def incidence(owner: list[int], other: list[int], lines: int) -> list[np.ndarray[Any, Any]]:
    """(ptr, owner, order, other), as the primitives take them."""
    own = np.array(owner, np.int32)
    order = np.argsort(own, kind="stable").astype(np.int32)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=lines))]).astype(np.int32)
    return [ptr, own, order, np.array(other, np.int32)[order]]


def lines(owner: list[int], count: int) -> tuple[Maker, ...]:
    return tuple(fixed(a) for a in incidence(owner, list(range(len(owner))), count)[:3])


def pattern(rows: list[int], columns: list[int], shape: tuple[int, int]) -> tuple[Maker, ...]:
    made = incidence(rows, columns, shape[0]) + incidence(columns, rows, shape[1])
    return tuple(fixed(a) for a in made)


def flags(order: bool) -> dict[str, bool]:
    return {"in_order": order}


def extremes() -> list[Case]:
    """Without empty lines, whose results are infinite: differences do not show those."""
    return [
        Case("in order", (distinct(6, 2), *lines([0, 0, 1, 2, 2, 2], 3)), flags(True)),
        Case("numbers", (distinct(6), *lines([0, 0, 1, 2, 2, 2], 3)), flags(True)),
        Case("mixed", (distinct(6, 2, 3), *lines([2, 1, 0, 0, 2, 1], 3)), flags(False)),
        Case("no lines", (distinct(0, 2), *lines([], 0)), flags(True)),
        Case("empty lines", (distinct(6, 2), *lines(MIXED, 5)), flags(False), wrt=()),
        Case("no entries", (distinct(0, 2), *lines([], 3)), flags(True), wrt=()),
        Case("integer", (integers(6, 2), *lines(MIXED, 5)), flags(False)),
    ]


def sums() -> list[Case]:
    return [
        Case("in order", (real(6, 2), *lines(ROWS, 5)), flags(True)),
        Case("numbers", (real(6), *lines(ROWS, 5)), flags(True)),
        Case("mixed", (real(6, 2, 3), *lines(MIXED, 5)), flags(False)),
        Case("no lines", (real(0, 2), *lines([], 0)), flags(True)),
        Case("no entries", (real(0, 2), *lines([], 3)), flags(True)),
        Case("no features", (real(6, 0), *lines(ROWS, 5)), flags(True)),
        Case("integer", (integers(6, 2), *lines(MIXED, 5)), flags(False)),
    ]


def products() -> list[Case]:
    order, mixed = {"in_order": (True, False)}, {"in_order": (False, False)}
    return [
        Case("in order", (real(6), real(3, 2), *pattern(ROWS, COLUMNS, SHAPE)), order),
        Case("mixed, heads", (real(6, 2), real(3, 2, 2), *pattern(MIXED, COLUMNS, SHAPE)), mixed),
        Case("vector", (real(6), real(3), *pattern(MIXED, COLUMNS, SHAPE)), mixed),
        Case("no entries", (real(0), real(3, 2), *pattern([], [], SHAPE)), {"in_order": (True, True)}),
        Case("complex", (complexes(6), complexes(3, 2), *pattern(ROWS, COLUMNS, SHAPE)), order),
    ]


def samples() -> list[Case]:
    order, mixed = {"in_order": (True, False)}, {"in_order": (False, False)}
    return [
        Case("in order", (real(5, 2), real(3, 2), *pattern(ROWS, COLUMNS, SHAPE)), {"heads": 0, **order}),
        Case("mixed, heads", (real(5, 2, 2), real(3, 2, 2), *pattern(MIXED, COLUMNS, SHAPE)), {"heads": 1, **mixed}),
        Case("no entries", (real(5, 2), real(3, 2), *pattern([], [], SHAPE)), {"heads": 0, "in_order": (True, True)}),
        Case("no features", (real(5, 0), real(3, 0), *pattern(ROWS, COLUMNS, SHAPE)), {"heads": 0, **order}),
        Case("complex", (complexes(5, 2), complexes(3, 2), *pattern(ROWS, COLUMNS, SHAPE)), {"heads": 0, **order}),
    ]


CASES: dict[str, list[Case]] = {
    "segment_sum": [*sums(), Case("complex", (complexes(6, 2), *lines(MIXED, 5)), flags(False))],
    "segment_max": extremes(),
    "segment_min": extremes(),
    "take_lines": [
        Case("in order", (real(5, 2), *lines(ROWS, 5)), flags(True)),
        Case("mixed", (real(5), *lines(MIXED, 5)), flags(False)),
        Case("no entries", (real(3, 2), *lines([], 3)), flags(True)),
        Case("complex", (complexes(5, 2), *lines(MIXED, 5)), flags(False)),
        Case("integer", (integers(5), *lines(MIXED, 5)), flags(False)),
    ],
    "sparse_matmul": products(),
    "sampled_matmul": samples(),
}
