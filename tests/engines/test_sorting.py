"""Sorting and searching in native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from tests.engines.engines import chunks, native, same
from wonderland.core.primitive import TABLE
from wonderland.engines.native.direct.sorting import network
from wonderland.engines.native.program import text_of

argsort, searchsorted = TABLE["argsort"], TABLE["searchsorted"]
DTYPES = [np.float32, np.float64, np.float16, wl.bfloat16, np.int8, np.int64, np.uint8, np.uint64, np.bool_]


def elements(rng: Any, shape: Any, dtype: Any) -> Any:
    """Few different ones, so that there are ties; NaN, infinities and zeros of both signs among floats."""
    kind = np.dtype(dtype).kind
    if kind in "iub":
        return rng.integers(0 if kind == "u" else -5, 6, shape).astype(dtype)
    x = rng.integers(-5, 6, shape) / 2.0
    x[rng.random(shape) < 0.05] = np.nan
    x[rng.random(shape) < 0.05] = -np.inf
    x[rng.random(shape) < 0.1] = -0.0
    return x.astype(dtype)


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from(DTYPES),
    st.integers(0, 99),
)
def test_permutations_agree(shape: Any, axis: int, descending: bool, dtype: Any, seed: int) -> None:
    x = elements(np.random.default_rng(seed), tuple(shape), dtype)
    same(lambda x: argsort(x, axis=axis % len(shape), descending=descending), x)


@pytest.mark.parametrize("n", [16, 17, 31, 33, 100, 1000, 1025])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_rows(n: int, dtype: Any) -> None:
    x = np.random.default_rng(n).normal(size=(40, n)).astype(dtype)
    program = same(lambda x: [argsort(x, axis=1, descending=d) for d in (False, True)], x, threads=True)
    assert chunks(program) > 1 or n < 100


def test_the_code_does_not_grow_with_the_row() -> None:
    """A row is filled up to a power of two times a short run, at most: by a loop."""
    sizes = []
    for n in (104, 100_003):  # runs of 13
        program, _ = native(lambda x: argsort(x, axis=0, descending=False), np.zeros(n, np.float32))
        sizes.append(len(text_of(program.routines[-1][1], program.schedule.cpu, "sort").splitlines()))
    assert sizes[1] < 1.2 * sizes[0]


@pytest.mark.parametrize("n", range(1, 17))
def test_the_network_sorts(n: int) -> None:
    """It is enough that it sorts zeros and ones."""
    for bits in range(1 << n) if n <= 10 else np.random.default_rng(0).integers(0, 1 << n, 300).tolist():
        row = [bits >> i & 1 for i in range(n)]
        for i, j in network(n):
            assert i < j
            row[i], row[j] = min(row[i], row[j]), max(row[i], row[j])
        assert row == sorted(row)


@given(st.integers(0, 30), st.integers(1, 30), st.sampled_from(["left", "right"]), st.sampled_from(DTYPES))
def test_places_in_sorted_rows(n: int, m: int, side: str, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    row, sought = elements(rng, (3, n), dtype), elements(rng, (3, m, 2), dtype)
    row = np.sort(row.astype(np.float32) if dtype == wl.bfloat16 else row, axis=1).astype(dtype)
    same(lambda a, v: searchsorted(a, v, side=side), row, sought)
    same(lambda a, v: searchsorted(a[0], v, side=side), row, sought)


def test_searches_are_shared_out() -> None:
    rng = np.random.default_rng(0)
    row, sought = np.sort(rng.normal(size=1000)), rng.normal(size=10_001)
    assert chunks(same(lambda a, v: searchsorted(a, v, side="left"), row, sought, threads=True)) > 1


def test_what_is_made_of_them() -> None:
    x = np.random.default_rng(0).normal(size=(6, 50)).astype(np.float32)
    same(lambda x: [wl.sort(x), wl.sort(x, axis=0, descending=True), *wl.topk(x, 5)], x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, wl.bfloat16], ids=str)
def test_nan_is_behind_all_numbers(dtype: Any) -> None:
    x = np.array([1.0, np.nan, -1.0, np.inf, np.nan, 0.0, -np.inf]).astype(dtype)
    same(lambda x: argsort(x, axis=0, descending=False), x)
    assert np.asarray(argsort(wl.asarray(x), axis=0, descending=False)).tolist() == [6, 2, 5, 0, 3, 1, 4]
    assert np.asarray(argsort(wl.asarray(x), axis=0, descending=True)).tolist() == [1, 4, 3, 0, 5, 2, 6]
