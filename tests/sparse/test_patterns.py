"""Patterns: what they hold, what they refuse, and that they pass through transformations as trees."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError, TraceError
from wonderland.sparse import Incidence, Pattern

places = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=20)


@given(places)
def test_every_entry_is_in_its_row_and_in_its_column(found: list[tuple[int, int]]) -> None:
    rows, cols = ([p[k] for p in found] for k in (0, 1))
    pattern = Pattern.of(rows, cols, (5, 7))
    assert (pattern.nnz, pattern.shape) == (len(found), (5, 7))
    for lines, own, other in ((pattern.rows, rows, cols), (pattern.cols, cols, rows)):
        ptr, order = np.asarray(lines.ptr), np.asarray(lines.order)
        assert sorted(order) == list(range(len(found)))
        for i in range(lines.lines):
            here = order[ptr[i] : ptr[i + 1]]
            assert list(here) == [e for e in range(len(found)) if own[e] == i]  # in the order in which they came
            assert list(np.asarray(lines.other)[ptr[i] : ptr[i + 1]]) == [other[e] for e in here]
        np.testing.assert_array_equal(lines.owner, own)
        np.testing.assert_array_equal(lines.counts, np.bincount(np.array(own, int), minlength=lines.lines))
        if lines.sorted:
            assert list(order) == list(range(len(found)))
    assert pattern.rows.sorted == (rows == sorted(rows))
    assert not (pattern.rows.sorted and pattern.cols.sorted)


def test_the_transpose_swaps_the_two() -> None:
    pattern = Pattern.of([0, 1], [2, 0], (2, 3))
    assert pattern.T.shape == (3, 2)
    assert pattern.T.rows is pattern.cols
    assert pattern.transpose().T.rows is pattern.rows


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: Pattern.of([0, 5, 1, 9], [0, 0, 0, 0], (3, 3)), IndexOutOfRange, "of 4 rows, 2 are out of range"),
        (lambda: Pattern.of([0, 5, 1, 9], [0, 0, 0, 0], (3, 3)), IndexOutOfRange, "entry 1 is 5, entry 3 is 9"),
        (lambda: Pattern.of([0, 1], [0, -1], (3, 3)), IndexOutOfRange, "of 2 columns, 1 is out of range for size 3"),
        (lambda: Pattern.of([7] * 9, [0] * 9, (3, 3)), IndexOutOfRange, "entry 2 is 7, .."),
        (lambda: Pattern.of([0], [0], (0, 3)), IndexOutOfRange, "size 0"),
        (lambda: Pattern.of([0, 1], [0], (3, 3)), ShapeError, "2 rows and 1 columns"),
        (lambda: Pattern.of([0.5], [0], (3, 3)), DTypeError, "rows are float64"),
        (lambda: Pattern.of([True], [0], (3, 3)), DTypeError, "rows are bool"),
        (lambda: Pattern.of([[0]], [[0]], (3, 3)), ShapeError, "one axis"),
        (lambda: Pattern.of([0], [0], (3,)), ShapeError, "two sizes"),  # type: ignore[arg-type]  # on purpose
        (lambda: Pattern.of([0], [0], (3, -1)), InputError, "a size is -1"),
        (lambda: Pattern.of([0], [0], (3, 2.0)), InputError, "a size is 2.0"),  # type: ignore[arg-type]  # as above
        (lambda: Incidence.of([0, 3], 3), IndexOutOfRange, "of 2 ids, 1 is out of range"),
        (lambda: wl.jit(lambda i: Incidence.of(i, 3).ptr)(wl.tensor([0, 1])), TraceError, "indices of a pattern"),
    ],
)
def test_what_is_wrong_is_told_with_examples(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_lines_of_ids() -> None:
    lines = Incidence.of(wl.tensor([2, 0, 2]))
    assert (lines.lines, lines.entries, lines.sorted) == (3, 3, False)
    assert Incidence.of([], 4).counts.tolist() == [0, 0, 0, 0]
    assert Incidence.of([]).lines == 0


def test_a_pattern_is_an_argument_like_others() -> None:
    """One trace serves all patterns of a size, in order or not as the first was."""
    traces = itertools.count()  # not a list: a trace is made anew where what its function refers to changes

    @wl.jit
    def f(pattern: Pattern, x: wl.Tensor) -> wl.Tensor:
        next(traces)
        return wl.sparse.matmul(None, pattern, x)

    x = wl.asarray(np.arange(3.0))
    np.testing.assert_array_equal(f(Pattern.of([0, 1], [2, 0], (3, 3)), x), [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(f(Pattern.of([1, 2], [2, 1], (3, 3)), x), [0.0, 2.0, 1.0])
    np.testing.assert_array_equal(f(Pattern.of([2, 1], [1, 2], (3, 3)), x), [0.0, 2.0, 1.0])
    assert next(traces) == 2


def test_vmap_over_patterns() -> None:
    patterns = [Pattern.of(r, c, (3, 4)) for r, c in (([2, 0, 0], [1, 3, 0]), ([1, 1, 0], [2, 0, 1]))]
    x = wl.asarray(np.random.default_rng(0).normal(size=(2, 4, 2)))
    stacked = wl.tree.map(lambda *leaves: wl.stack(leaves), *patterns)
    found = wl.vmap(lambda p, x: wl.sparse.matmul(None, p, x))(stacked, x)
    for got, pattern, one in zip(found, patterns, x, strict=True):
        np.testing.assert_allclose(got, wl.sparse.matmul(None, pattern, one), rtol=1e-12)
