"""Which entries meet: at one place of a matrix, or in a product of two. Plain integers, worked out with NumPy."""

from __future__ import annotations

import numpy as np

from ..core.errors import SizeError
from ..core.typing import Array
from .patterns import Incidence, Pattern

MOST = 2**31 - 1  # pairs of entries of a product; more would fill memory before anybody sees why


def unique_places(rows: Array, cols: Array, shape: tuple[int, int]) -> tuple[Incidence, Pattern]:
    """The places at which there are entries, row by row, and which entries are at each."""
    keys = rows.astype(np.int64) * max(shape[1], 1) + cols
    places, number = np.unique(keys, return_inverse=True)
    width = max(shape[1], 1)
    return Incidence.of(number.reshape(-1), len(places)), Pattern.of(places // width, places % width, shape)


def pairs_of_product(
    left: tuple[Array, Array], right: tuple[Array, Array], shape: tuple[int, int, int], mine: int, others: int
) -> tuple[Incidence, Incidence, Incidence, Pattern]:
    """For A (n, k) times B (k, s): pairs of entries by those of A, by those of B, and by places of the result."""
    (rows, inner), (outer, cols), (n, k, s) = left, right, shape
    by_row = np.argsort(outer, kind="stable")
    degrees = np.bincount(outer, minlength=k)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    counts = degrees[inner]
    total = int(counts.sum())
    if total > MOST:
        raise SizeError(f"A @ B: {total:,} pairs of entries meet.", "matrices with fewer entries, or A @ (B @ x)")
    first = np.repeat(np.arange(len(inner)), counts)
    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    second = by_row[starts[inner[first]] + within]
    place, pattern = unique_places(rows[first], cols[second], (n, s))
    return Incidence.of(first, mine), Incidence.of(second, others), place, pattern
