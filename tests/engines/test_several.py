"""Sums and extremes over rows are made of several rows at once: the same terms in the same order, however many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import chunks, native, on_threads, same
from wonderland.engines.native.kernels.kernel import Kernel
from wonderland.engines.native.kernels.several import suits


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def chosen(f: Any, *args: Any) -> list[bool]:
    steps = native(f, *args)[0].schedule.steps
    return [suits(step) for step in steps if isinstance(step, Kernel)]


def test_which_kernels_take_several_rows() -> None:
    x = numbers(90, 70)
    assert chosen(lambda x: x.sum(0), x) == [True]
    assert all(chosen(lambda x: (x.sum(0), x + 1.0), numbers(1000, 1000)))
    assert chosen(lambda x: x.sum(1), x) == [False]
    assert chosen(lambda x: x.max(0), x) == [True]
    assert chosen(lambda x: x.sum(0), x[:5]) == [False]
    assert chosen(lambda x: wl.exp(wl.exp(x)).sum(0), x) == [False]  # that is not what takes the time


@pytest.mark.parametrize("rows", [8, 9, 31, 130, 1030, 4099])
@pytest.mark.parametrize("columns", [17, 64, 333])
def test_sums_of_all_sizes(rows: int, columns: int) -> None:
    x, y = numbers(rows, columns), numbers(columns)
    program, arrays = native(lambda x, y: (x.sum(0), wl.where(x > y, x, 0.0), (x * x).sum(0)), x, y)
    total, stored, squares = on_threads(program, arrays)
    np.testing.assert_array_equal(stored, np.where(x > y, x, 0))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(total, wide.sum(0), rtol=0, atol=1e-6 * np.abs(wide).sum(0).max())
    np.testing.assert_allclose(squares, np.square(wide).sum(0), rtol=1e-6)


@pytest.mark.parametrize("rows, columns", [(9, 17), (31, 64), (130, 333), (4099, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, wl.bfloat16])
def test_extremes_of_all_sizes(rows: int, columns: int, dtype: Any) -> None:
    """One NaN is never lost, wherever it is, and neither is an extreme that is nowhere else."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, columns))
    for value, count in ((np.nan, 4), (9.0, columns), (-9.0, columns), (np.inf, 3)):
        x[random.integers(rows, size=count), random.choice(columns, count, False)] = value
    x = x.astype(dtype)
    same(lambda x: (x.max(0), x.min(0)), x, threads=True)
    same(lambda x: (x.max(1), x.min(1), x.max(), x[:, :1].min()), x, threads=True)


def test_terms_keep_their_order() -> None:
    """Of few rows the sum is the plain one, term by term, to the last bit."""
    x = numbers(103, 50)
    total = np.zeros(50, np.float32)
    for row in x:
        total = total + row
    program, arrays = native(lambda x: x.sum(0), x)
    np.testing.assert_array_equal(program(arrays)[0], total)


@pytest.mark.parametrize("axes", [(0, 1), (1,), (0, 2), (0,)])
def test_other_axes(axes: tuple[int, ...]) -> None:
    same(lambda x: (x * 2.0).sum(axes), numbers(40, 50, 60), rtol=1e-5, atol=1e-4, threads=True)


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16, wl.float64, wl.int32])
def test_other_types(dtype: Any) -> None:
    x = np.random.default_rng(1).integers(-4, 5, (700, 90)).astype(dtype)  # sums are exact
    program = same(lambda x: (x.sum(0), x + x), x, threads=True)
    assert chunks(program) >= 1
