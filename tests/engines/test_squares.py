"""Views that lie across are read in squares that are turned in registers: transposes, and work on them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import chunks, native, on_threads
from wonderland.engines.native.kernels import kernel
from wonderland.engines.native.kernels.kernel import Kernel
from wonderland.engines.native.machine import machine
from wonderland.engines.native.schedule import Schedule

LANES = machine().cpu.lanes(4)
DTYPES = [wl.bool, wl.int8, wl.uint16, wl.int32, wl.int64, wl.float16, wl.bfloat16, wl.float32, wl.float64]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Squares however little there is to turn."""
    monkeypatch.setattr(kernel, "TURNED", 0)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def kernels(f: Any, *args: Any) -> list[Kernel]:
    graph = wl.jit(f).graph(*map(wl.tensor, args))
    return [step for step in Schedule(graph, machine().cpu).steps if isinstance(step, Kernel)]


def test_which_kernels_go_through_squares() -> None:
    x = numbers(90, 170)
    assert [k.across for k in kernels(lambda x: x.T + 1.0, x)] == [0]
    assert [k.across for k in kernels(lambda x: x + 1.0, x)] == [None]
    assert [k.across for k in kernels(lambda x: x.T + 1.0, x[:, :3])] == [None]  # too few rows
    assert [k.across for k in kernels(lambda x: x.T + 1.0, x[:, :30])] == [None]  # not worth compiling
    assert [k.across for k in kernels(lambda x: wl.transpose(x, (0, 2, 1)) * 2.0, numbers(9, 40, 50))] == [1]
    cut = kernels(lambda x: x.T + 1.0, numbers(1000, 1000))[0]
    assert cut.chunks > 1
    assert cut.step % LANES == 0  # no square belongs to two chunks


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("rows", [LANES, 2 * LANES + 1, 130, 301])
@pytest.mark.parametrize("columns", [LANES, 3 * LANES - 1, 128 + LANES, 333])
def test_all_sizes(rows: int, columns: int) -> None:
    x, y = numbers(columns, rows), numbers(rows, columns)
    found = wl.jit(lambda x, y: x.T * 2.0 + y)(wl.tensor(x), wl.tensor(y))
    np.testing.assert_array_equal(found.numpy(), x.T * 2 + y)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_all_orders_of_axes(axes: tuple[int, ...]) -> None:
    x = numbers(37, 20, 65)
    row = numbers(*[x.shape[a] for a in axes[2:]])
    column = numbers(x.shape[axes[0]], 1, 1)
    f = wl.jit(lambda x, row, column: (wl.transpose(x, axes) + row) * column)
    found = f(*map(wl.tensor, (x, row, column)))
    np.testing.assert_array_equal(found.numpy(), (x.transpose(axes) + row) * column)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_types(dtype: Any) -> None:
    x = wl.tensor(np.minimum(np.abs(40 * numbers(70, 45)), 120)).astype(dtype)
    found = wl.jit(lambda x: wl.where(x.T == x.T, x.T, x.T[::-1]))(x)
    np.testing.assert_array_equal(found.astype(wl.float64).numpy(), x.astype(wl.float64).numpy().T)


def test_several_views_and_parts_of_them() -> None:
    x, y = numbers(400, 300), numbers(500, 350)
    f = wl.jit(lambda x, y: x.T - y[7:407, 11:311].T + 3.0 * x[::-1].T)
    np.testing.assert_allclose(
        f(*map(wl.tensor, (x, y))).numpy(), x.T - y[7:407, 11:311].T + 3 * x[::-1].T, rtol=1e-6, atol=1e-6
    )


def test_sums_on_the_side_of_what_is_turned() -> None:
    x = numbers(500, 700)
    f = wl.jit(lambda x: (wl.exp(x.T), wl.square(x.T + 1.0).sum(0)))
    turned, total = f(wl.tensor(x))
    np.testing.assert_allclose(turned.numpy(), np.exp(x.T), rtol=1e-6)
    np.testing.assert_allclose(total.numpy(), np.square(x.T.astype(np.float64) + 1).sum(0), rtol=1e-6)


@pytest.mark.usefixtures("small")
def test_gathers_beside_what_is_turned() -> None:
    x, places = numbers(90, 70), np.random.default_rng(1).integers(0, 40, (90, 70))
    f = wl.jit(lambda x, table, places: x.T + table[places.T])
    table = numbers(40)
    np.testing.assert_array_equal(f(*map(wl.tensor, (x, table, places))).numpy(), x.T + table[places.T])


def test_threads_do_not_matter() -> None:
    program, arrays = native(lambda x: (wl.tanh(x.T) + 1.0, (x.T * x.T).sum(0)), numbers(700, 800))
    assert chunks(program) > 1
    on_threads(program, arrays)
